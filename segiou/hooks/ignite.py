"""Segmentation scores as an :class:`ignite.metrics.Metric`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from segiou._support.optional import extra_named
from segiou.hooks._frameworks import attached_names
from segiou.hooks._repeats import warn_of_repeated_images
from segiou.hooks._scoring import Counting, fix_of_repeats, scoring_of

with extra_named("segiou.hooks.ignite needs pytorch-ignite", "ignite"):
    import torch
    from ignite import distributed as idist
    from ignite.engine import Engine
    from ignite.metrics import Metric
    from ignite.metrics.metric import EpochWise, MetricUsage, reinit__is_reduced, sync_all_reduce

from segiou.counting.arrays import not_compiled
from segiou.hooks._torch_counts import TorchCounter
from segiou.hooks.distributed import DeferredErrors, add_up, check_alike
from segiou.hooks.hook_options import TorchOptions
from segiou.report.formats import DEFAULT
from segiou.scoring.evaluator import Conflict, Evaluator

__all__ = ["SegmentationScores"]


_EPOCH = EpochWise()
_FIX = "Pass ids=True to SegmentationScores to count each image once"


def _unchanged(output: Any) -> Any:
    """The output of an engine; not a lambda, because metrics are pickled."""
    return output


class SegmentationScores(Counting, Metric):
    """Mean IoU and other scores of an epoch of an engine.

    With several processes, a DistributedSampler repeats images so that every
    process has the same number. Pass `ids` to count each image once; otherwise a
    warning reports how many images are repeated.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.TorchOptions`; or a
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`, to count channels
        that may overlap, or scores, like it.
        The result is a number for one name in ``scores``, or a mapping for several. Each of
        its entries is also in ``engine.state.metrics``, after the name under which this is
        attached: ``state.metrics["val/mean_iou"]``.
    output_transform : callable
        Converts the engine's output to ``(y_pred, y)``.
    ids : bool
        Whether the converted output is ``(y_pred, y, ids)``, with one id per
        image, as for :class:`segiou.scoring.Evaluator`. Memory then grows
        by about 1 KiB per image, and ``state_dict`` does not contain the counts.
    conflict : {"error", "first"}
        Treatment of an image that is counted twice with different results.
    device : str or torch.device
        Device of the counts.
    """

    _state_dict_all_req_keys = ("_sums", "_maxima")

    def __init__(
        self,
        labels: Any,
        *,
        output_transform: Callable[..., Any] = _unchanged,
        ids: bool = False,
        conflict: Conflict = "error",
        device: str | torch.device = "cpu",
        **options: Unpack[TorchOptions],
    ) -> None:
        self.scoring = scoring_of(SegmentationScores, labels, DEFAULT, options)
        self.scoring.check(ids=ids)
        self.counter = TorchCounter(self.scoring)
        self._images: Evaluator = self.scoring.counting(conflict)
        self._has_ids, self._is_checked = ids, False
        # Lists of images stay together, because Ignite splits lists of two items only.
        super().__init__(output_transform=output_transform, device=device, skip_unrolling=True)

    @reinit__is_reduced
    def reset(self) -> None:
        """Discard all counts."""
        sums, maxima = self.counter.empty()
        self._sums, self._maxima = sums.to(self._device), maxima.to(self._device)
        self._images.reset()
        self._deferred = DeferredErrors()
        super().reset()

    @reinit__is_reduced
    @not_compiled
    def update(self, output: Any) -> None:
        """Count one ``(y_pred, y)``, or ``(y_pred, y, ids)``."""
        pred, truth, *ids = output
        if self._has_ids:
            if not ids:
                msg = "ids=True needs (y_pred, y, ids); return them from output_transform"
                raise ValueError(msg)
            with self._deferred:
                self.scoring.update(self._images, truth, pred, ids=ids[0])
            return
        # A copy, because a state_dict holds the earlier sums.
        sums = self._sums.clone()
        self._sums, self._maxima = self.counter.add(sums, self._maxima, truth, pred)

    def _counted(self) -> Any:
        if self._has_ids:
            return add_up(self._images, _gather, self._deferred).total()
        check_alike(_gather(self.scoring.digest))  # sums of other sizes cannot be added
        return self._summed()

    @sync_all_reduce("_sums:SUM", "_maxima:MAX")
    def _summed(self) -> Any:
        return self.counter.accumulated(self._sums, self._maxima)

    def attach(self, engine: Engine, name: str, usage: str | MetricUsage = _EPOCH) -> None:
        """Attach to an engine; a ValueError if another metric has the name there."""
        if name in attached_names(engine, self._check_usage(usage).COMPLETED):
            msg = f"another metric is attached to this engine as {name!r}; choose another name"
            raise ValueError(msg)
        super().attach(engine, name, usage)

    def completed(self, engine: Engine, name: str) -> None:
        """Compute the scores of the engine's epoch; those of a mapping are named NAME/SCORE."""
        if not (self._has_ids or self._is_checked) and idist.get_rank() == 0:
            self._is_checked = True
            loader, fix = engine.state.dataloader, fix_of_repeats(self.scoring, _FIX)
            warn_of_repeated_images(name, loader, idist.get_world_size(), fix)
        engine.state.metrics[name] = result = self.compute()
        if isinstance(result, dict):
            engine.state.metrics |= {f"{name}/{key}": value for key, value in result.items()}

    def compute(self) -> float | dict[str, float]:
        """The scores over all processes: a number or a mapping."""
        return self.scoring.result(self._counted())


def _gather(item: Any) -> list[Any]:
    gathered: list[Any] = idist.all_gather(item) if idist.get_world_size() > 1 else [item]
    return gathered
