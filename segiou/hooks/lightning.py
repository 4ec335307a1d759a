"""A Lightning callback that scores the validation and test loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.hooks._lightning import Callback
from segiou.hooks._scoring import DEFAULT, Scores, Scoring, rule_for
from segiou.hooks.distributed import all_reduce
from segiou.hooks.images import Conflict, ImageCounts
from segiou.metrics.protocols import Protocol
from segiou.report.formats import format_of
from segiou.report.report import Report

__all__ = ["SegmentationScores"]


def _of_outputs(outputs: Any, batch: Any) -> tuple[Any, Any]:
    return outputs["truth"], outputs["pred"]


def _total(counted: ConfusionMatrix | ImageCounts) -> ConfusionMatrix:
    if isinstance(counted, ImageCounts):
        return all_reduce(counted).total()
    return all_reduce(counted)


class SegmentationScores(Callback):
    """Logs scores of each validation and test epoch, ``val/mean_iou`` and so on.

    The sanity check is left out. Where there are several dataloaders, each has
    its own scores under Lightning's own suffix, ``/dataloader_idx_1``.

    On several devices Lightning's sampler repeats images so that each device
    has as many; give `ids`, and such an image is counted once.

    Parameters
    ----------
    labels, **options
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`.
    pairs : callable
        ``pairs(outputs, batch) -> (truth, pred)``, of what the step returned
        and its batch; by default ``outputs["truth"], outputs["pred"]``.
    ids : callable, optional
        ``ids(outputs, batch) -> ids``, one an image, as :class:`segiou.hooks.images.ImageCounts`
        takes them. Memory then grows by a KiB or so an image.
    conflict : {"error", "first"}
        What is done when an id comes with two results.
    scores, protocol
        Which numbers, those of classes as ``val/iou/road``; the rule of the means.
    report : path or callable, optional
        Written, or called with the report and the epoch, by the first process
        after each epoch. The ending tells the format: ``.html`` is a page. ``{epoch}``
        and ``{stage}`` in the path are filled in; several dataloaders are told
        apart as in the log, ``_dataloader_idx_1``.
    axis, threshold
        The class axis of scores; or the score above which the second of two
        classes is predicted.
    """

    def __init__(
        self,
        labels: Any,
        *,
        pairs: Callable[[Any, Any], tuple[Any, Any]] = _of_outputs,
        ids: Callable[[Any, Any], Any] | None = None,
        conflict: Conflict = "error",
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        report: str | Path | Callable[[Report, int], object] | None = None,
        axis: int = 1,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        self.scoring = Scoring(labels, scores=scores, protocol=protocol, **options)
        self.pairs, self.ids, self.report = pairs, ids, report
        self.conflict: Conflict = conflict
        self.axis, self.threshold = axis, threshold
        if isinstance(report, (str, Path)):
            # Better now than after the first epoch.
            format_of(Path(report))
        #: Counts of the last epoch by dataloader; all processes together once it has ended.
        self.counted: dict[int, ConfusionMatrix | ImageCounts] = {}

    def _start(self, *_: Any) -> None:
        self.counted = {}

    def _empty(self) -> ConfusionMatrix | ImageCounts:
        if self.ids is None:
            return self.scoring.empty()
        return ImageCounts.from_options(self.scoring.options, conflict=self.conflict)

    def _count(
        self, trainer: Any, _module: Any, outputs: Any, batch: Any, _index: int, loader: int = 0
    ) -> None:
        if trainer.sanity_checking:
            return
        truth, pred = self.pairs(outputs, batch)
        how = rule_for(truth, pred, self.axis, self.threshold)
        if self.ids is not None:
            how["ids"] = self.ids(outputs, batch)
        self.counted.setdefault(loader, self._empty()).update(truth, pred, **how)

    def _end(self, trainer: Any, module: Any, stage: str, loaders: int) -> None:
        for loader in range(0 if trainer.sanity_checking else loaders):
            total = self.counted[loader] = _total(self.counted.get(loader, self._empty()))
            place = f"/dataloader_idx_{loader}" if loaders > 1 else ""
            values = self.scoring.values(total)
            logged = {f"{stage}/{name}{place}": value for name, value in values.items()}
            module.log_dict(logged, add_dataloader_idx=False)
            if self.report is not None and trainer.is_global_zero:
                title = f"{stage}, epoch {trainer.current_epoch}{place}"
                report = total.report(self.scoring.protocol, title=title)
                self._give(report, trainer.current_epoch, stage, place.replace("/", "_"))

    def _give(self, report: Report, epoch: int, stage: str, suffix: str) -> None:
        if callable(self.report):
            self.report(report, epoch)
            return
        path = Path(str(self.report).format(epoch=epoch, stage=stage))
        path.parent.mkdir(parents=True, exist_ok=True)
        report.save(path.with_stem(path.stem + suffix))

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the scores of the validation set."""
        self._end(trainer, pl_module, "val", len(trainer.num_val_batches))

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the scores of the test set."""
        self._end(trainer, pl_module, "test", len(trainer.num_test_batches))

    on_validation_epoch_start = on_test_epoch_start = _start
    on_validation_batch_end = on_test_batch_end = _count
