"""Private parts of frameworks and their call stacks, each read in one function.

Frameworks do not tell a metric which wrapper or loop calls it. A function that finds its private
part missing warns once, with the versions it was tried with, and returns a fallback.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_Function = Callable[..., _Result]


def callers() -> Iterator[tuple[Any, FrameType]]:
    """The objects whose methods called the current one, innermost first, and their frames."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        yield frame.f_locals.get("self"), frame
        frame = frame.f_back


def tried_with(version: str, loss: str, fallback: Any = None) -> Callable[[_Function[Any]], Any]:
    """Mark a function that reads private parts; without them it warns and returns a fallback."""

    def marked(read: _Function[Any]) -> _Function[Any]:
        has_warned = False

        @wraps(read)
        def call(*arguments: Any) -> Any:
            nonlocal has_warned
            try:
                return read(*arguments)
            except (AttributeError, LookupError, TypeError, ImportError) as error:
                if not has_warned:
                    has_warned = True
                    text = f"{loss}, because segiou was tested with {version}: {error}"
                    warnings.warn(text, stacklevel=3)
                return fallback

        return call

    return marked


def _loaded(module: str, name: str) -> Iterator[Any]:
    """A private class of each loaded package of Lightning."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        if package in sys.modules and (loaded := sys.modules.get(f"{package}.{module}")):
            yield getattr(loaded, name)


@tried_with("Lightning 2.6", "joined dataloaders are counted one by one")
def joins_loaders(trainer: Any) -> bool:
    """Whether a CombinedLoader joins the batches of its loaders, as all but sequential ones do."""
    return not trainer._evaluation_loop._is_sequential


@tried_with("Lightning 2.6", "names that the module also logs are not found", ())
def logged_by_steps(trainer: Any) -> list[tuple[str, int | None]]:
    """The names that steps of the module have logged, and their dataloaders."""
    ends = ("on_validation_epoch_end", "on_test_epoch_end")
    results = [metric for metric in (trainer._results or {}).values() if not metric.has_reset]
    return [
        (result.meta.name, result.meta.dataloader_idx)
        for result in results
        if result.meta.fx not in ends
    ]


@tried_with("Lightning 2.6", "images that samplers repeat are not reported", ())
def calling_loops() -> list[tuple[Any, Any, str]]:
    """The evaluation loops of Lightning that called, with their trainers and stages."""
    kinds = (*_loaded("loops.evaluation_loop", "_EvaluationLoop"),)
    loops = [loop for loop, _ in callers() if isinstance(loop, kinds)] if kinds else []
    return [(loop, loop.trainer, loop._stage.dataloader_prefix) for loop in loops]


@tried_with("Lightning 2.6", "self.log of several scores is not refused", fallback=False)
def is_logged() -> bool:
    """Whether Lightning reads a metric in `self.log`."""
    module = "trainer.connectors.logger_connector.result"
    kinds = (*_loaded(module, "_ResultMetric"),)
    frame = sys._getframe(3)  # this function, the one that `tried_with` makes, and the property
    return bool(kinds) and isinstance(frame.f_locals.get("self"), kinds)


@tried_with("torchmetrics 1.9", "wrappers that misread several scores are not refused", "")
def wrapper_of(metric: Any) -> str:
    """The wrapper of torchmetrics that called and that would misread several scores, if any."""
    from torchmetrics import ClasswiseWrapper, MetricCollection, MetricTracker
    from torchmetrics.wrappers import MinMaxMetric

    for caller, frame in callers():
        method = frame.f_code.co_name
        if isinstance(caller, ClasswiseWrapper) and caller.metric is metric:
            return "ClasswiseWrapper"
        if isinstance(caller, MinMaxMetric) and caller._base_metric is metric:
            return "MinMaxMetric"
        if isinstance(caller, MetricTracker):
            is_own = method == "__init__" and frame.f_locals["metric"] is metric
            if is_own or (
                method == "best_metric" and isinstance(caller._base_metric, type(metric))
            ):
                return "MetricTracker"
        if isinstance(caller, MetricCollection) and method == "plot":
            return "" if frame.f_locals["together"] else "MetricCollection.plot"
    return ""


@tried_with("transformers 5.23", "an interrupted evaluation is continued by the next")
def evaluation() -> Any:
    """An object that lives as long as the evaluation of the Trainer that called; or None."""
    from transformers import Trainer

    name = "all_losses"  # a loader with persistent workers serves several evaluations
    if name not in Trainer.evaluation_loop.__code__.co_varnames:
        raise LookupError(name)
    frames = (frame for _, frame in callers() if frame.f_code.co_name == "evaluation_loop")
    return next((frame.f_locals[name] for frame in frames if name in frame.f_locals), None)


@tried_with("Keras 3.15", "metrics with equal names are not found", ())
def compiled_metrics() -> list[tuple[str, Any]]:
    """The metrics of the model whose step called, after the names of their outputs, if several."""
    kind = sys.modules["keras.src.trainers.compile_utils"].CompileMetrics
    compiled = next((caller for caller, _ in callers() if isinstance(caller, kind)), None)
    if compiled is None:
        return []
    parts = [part for part in (*compiled._flat_metrics, *compiled._flat_weighted_metrics) if part]
    return [(part.output_name or "", metric) for part in parts for metric in part.metrics]


@tried_with("Ignite 0.5", "metrics that are attached with equal names are not found", ())
def attached_names(engine: Any, event: Any) -> list[str]:
    """The names under which metrics are attached to an engine."""
    from ignite.metrics import Metric

    return [
        arguments[-1]
        for handler, arguments, _ in engine._event_handlers[event]
        if isinstance(getattr(handler, "__self__", None), Metric)
        and handler.__name__ == "completed"
    ]


@tried_with("Accelerate 1.15", "images that samplers repeat are not reported", ())
def prepared_loaders(accelerator: Any) -> list[Any]:
    """The dataloaders that an accelerator has prepared."""
    return [*accelerator._dataloaders]
