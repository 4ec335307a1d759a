"""A Lightning callback that scores the validation and test loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partialmethod
from pathlib import Path
from typing import Any, Unpack

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.hooks._frameworks import logged_by_steps
from segiou.hooks._lightning import Callback, ReportFiles, log_figure, number_of_loaders
from segiou.hooks._repeats import warn_of_lightning
from segiou.hooks._scoring import fix_of_repeats, scoring_of
from segiou.hooks.distributed import DeferredErrors, all_reduce
from segiou.hooks.hook_options import TorchOptions
from segiou.measures.measure import Measure
from segiou.report.formats import DEFAULT
from segiou.report.report import Report
from segiou.scoring.evaluator import Conflict, Evaluator
from segiou.scoring.score_arrays import id_text

__all__ = ["SegmentationScores"]


def _pair_of_outputs(outputs: Any, batch: Any) -> tuple[Any, Any]:
    try:
        return outputs["truth"], outputs["pred"]
    except (TypeError, LookupError) as error:
        kind = f"a dict of {[*outputs]}" if isinstance(outputs, dict) else type(outputs).__name__
        kind = "None" if outputs is None else kind
        msg = (
            f"the step returned {kind}; return {{'truth': ..., 'pred': ...}} from it, or pass "
            "SegmentationScores(..., pairs=lambda outputs, batch: (truth, pred))"
        )
        raise TypeError(msg) from error


_FIX = "Pass ids=lambda outputs, batch: ... to SegmentationScores to count each image once"
#: Ends names if there are several dataloaders, as those that Lightning logs.
_PLACE = "/dataloader_idx_{}"


def _check_names(names: set[str], who: str) -> None:
    if names:
        msg = (
            f"{who} {min(names)!r}, of which Lightning would keep a mixture or one; pass a "
            "different prefix= to SegmentationScores"
        )
        raise ValueError(msg)


class SegmentationScores(Callback):
    """Logs the scores of each validation and test epoch, such as ``val/mean_iou``.

    The sanity check is not scored. Each of several dataloaders has its own
    scores, with Lightning's suffix ``/dataloader_idx_1``.

    On several devices, Lightning's sampler repeats images so that every device
    has the same number. Pass `ids` to count each image once; otherwise a
    warning reports how many images are repeated.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.TorchOptions`; or a
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`, to count channels
        that may overlap, or scores, like it.
        Scores of classes are logged as ``val/iou/road``. All scores of histograms are
        logged by default.
    pairs : callable
        ``pairs(outputs, batch) -> (truth, pred)``, called with the return value
        of the step and its batch; ``outputs["truth"], outputs["pred"]`` by
        default. A batch for which it returns None is not counted.
    ids : callable, optional
        ``ids(outputs, batch) -> ids``, one id per image, as for
        :class:`segiou.scoring.Evaluator`. Memory then grows by about
        1 KiB per image. Histograms are not kept per image.
    conflict : {"error", "first"}
        Treatment of an image that is counted twice with different results.
    prefix : str
        Precedes each name, for one of several callbacks: with ``prefix="foreground/"``,
        ``val/foreground/mean_iou`` is logged.
    combine : bool
        Whether the images of several dataloaders are scored together. Their ids are then those
        of their dataloader, such as ``1/17``.
    measures : iterable of Measure or str
        Other scores of each image, such as ``"boundary"``, as for
        :class:`segiou.scoring.Evaluator`. They are counted on the host, and all of them are
        logged unless ``scores`` names some. Pass `ids` as well on several devices.
    report : path or callable, optional
        A file that the first process writes after each epoch, or a function that
        it calls with the report and the epoch. The extension sets the format,
        such as ``.html`` for a page. ``{epoch}``, ``{step}`` and ``{stage}`` in the path are
        replaced; with several dataloaders, the name ends in
        ``_dataloader_idx_1``, as in the log. If an epoch is validated several times
        (``val_check_interval``) and the path has ``{epoch}`` only, later names end in
        ``_step_40``.
    figure : bool
        Whether to log the confusion matrix as a figure to TensorBoard, Weights & Biases or
        MLflow after each epoch.
    prog_bar : bool
        Whether the progress bar shows the scores that are not of single classes.

    Raises
    ------
    ValueError
        At the start, if two callbacks would log the same names; or after an epoch, if the
        module logs one of them.
    """

    def __init__(
        self,
        labels: Any,
        *,
        pairs: Callable[[Any, Any], tuple[Any, Any] | None] = _pair_of_outputs,
        ids: Callable[[Any, Any], Any] | None = None,
        conflict: Conflict = "error",
        prefix: str = "",
        combine: bool = False,
        measures: Iterable[Measure | str] = (),
        report: str | Path | Callable[[Report, int], object] | None = None,
        figure: bool = False,
        prog_bar: bool = False,
        **options: Unpack[TorchOptions],
    ) -> None:
        self.scoring: Any = scoring_of(
            SegmentationScores, labels, DEFAULT, options, measures=measures
        )
        self.scoring.check(ids=ids, measures=measures, report=report, figure=figure)
        self.pairs, self.ids, self.report, self.figure = pairs, ids, report, figure
        self.prefix, self.combine, self.prog_bar = prefix, combine, prog_bar
        self._empty: Any = self.scoring.counting(None if ids is None else conflict)
        self._files = ReportFiles(report)
        # A warning for each epoch would repeat itself.
        self._checked: set[str] = set()
        self._deferred = DeferredErrors()
        self._logged: set[str] = set()
        #: Counts of the last epoch by dataloader, summed over processes at its end.
        self.counts: dict[int, ConfusionMatrix | Evaluator | ScoreHistogram] = {}

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raise a ValueError if another callback logs the same names."""
        for other in trainer.callbacks:
            if other is not self and isinstance(other, SegmentationScores):
                _check_names(self._names() & other._names(), "two SegmentationScores log")

    def _names(self) -> set[str]:
        return {f"{self.prefix}{name}" for name in self.scoring.keys}

    def _start(self, trainer: Any, _module: Any, stage: str) -> None:
        self.counts, self._deferred, self._logged = {}, DeferredErrors(), set()
        is_new = stage not in self._checked and not trainer.sanity_checking
        if is_new and self.ids is None and trainer.is_global_zero:
            self._checked.add(stage)
            warn_of_lightning(trainer, stage, fix_of_repeats(self.scoring, _FIX))

    def _count(
        self, trainer: Any, _module: Any, outputs: Any, batch: Any, _index: int, loader: int = 0
    ) -> None:
        if trainer.sanity_checking:
            return
        if (pair := self.pairs(outputs, batch)) is None:
            return
        key = 0 if self.combine else loader
        if key not in self.counts:
            self.counts[key] = self._empty.empty()
        with self._deferred:
            ids = {} if self.ids is None else {"ids": self._ids(trainer, outputs, batch, loader)}
            self.scoring.update(self.counts[key], *pair, **ids)

    def _ids(self, trainer: Any, outputs: Any, batch: Any, loader: int) -> Any:
        """The ids of a batch; those of several combined dataloaders may start again in each."""
        ids = self.ids(outputs, batch)  # type: ignore[misc]
        stage = "test" if trainer.testing else "val"
        if not self.combine or number_of_loaders(trainer, stage) == 1:
            return ids
        return [f"{loader}/{id_text(id)}" for id in ids]

    def _end(self, trainer: Any, module: Any, stage: str) -> None:
        loaders = 1 if self.combine else number_of_loaders(trainer, stage)
        for loader in range(0 if trainer.sanity_checking else loaders):
            counted: Any = self.counts.setdefault(loader, self._empty.empty())
            counted = all_reduce(counted, errors=self._deferred)
            self.counts[loader] = total = self.scoring.total(counted)
            suffix = _PLACE.format(loader) if loaders > 1 else ""
            values = self.scoring.values(total)
            for is_shown in (False, True):
                logged = {
                    self._name(stage, name, suffix): value
                    for name, value in values.items()
                    if (self.prog_bar and "/" not in name) is is_shown
                }
                # The values are equal on all processes, and their maximum is exact.
                usual = {"add_dataloader_idx": False, "sync_dist": True, "reduce_fx": "max"}
                module.log_dict(logged, prog_bar=is_shown, **usual)
                self._logged |= {*logged}
            if trainer.is_global_zero and (self.report is not None or self.figure):
                title = f"{stage}, epoch {trainer.current_epoch}{suffix}"
                report = total.report(self.scoring.protocol, title=title)
                self._files.give(report, trainer, stage, suffix)
                if self.figure:
                    log_figure(trainer, report, self._name(stage, "confusion_matrix", suffix))

    def _name(self, stage: str, name: str, suffix: str) -> str:
        return f"{stage}/{self.prefix}{name}{suffix}"

    def _check_module(self, trainer: Any, _module: Any, stage: str) -> None:
        """Raise a ValueError if a step of the module has logged one of the names."""
        names = self._logged or {f"{stage}/{name}" for name in self._names()}
        steps = logged_by_steps(trainer)
        others = {name if i is None else name + _PLACE.format(i) for name, i in steps}
        _check_names(names & others, "the module and SegmentationScores log")

    on_validation_epoch_start = partialmethod(_start, stage="val")
    on_test_epoch_start = partialmethod(_start, stage="test")
    on_validation_epoch_end = partialmethod(_end, stage="val")
    on_test_epoch_end = partialmethod(_end, stage="test")
    on_validation_end = partialmethod(_check_module, stage="val")
    on_test_end = partialmethod(_check_module, stage="test")
    on_validation_batch_end = on_test_batch_end = _count
