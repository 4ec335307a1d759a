"""A Lightning callback that scores the validation and test loops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partialmethod
from importlib import import_module
from pathlib import Path
from typing import Any

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.histograms.score_bins import Activation
from segiou.histograms.score_counts import ScoreHistogram
from segiou.hooks._histogram_scoring import fix_of_repeats, only_for_pixels, scoring_of
from segiou.hooks._scoring import Scores, missing, warn_of_repeated_images
from segiou.hooks.images import Conflict, ImageCounts
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT, format_of
from segiou.report.report import Report

__all__ = ["SegmentationScores"]


def _callback() -> Any:
    """Callback of the Lightning package in use; the classes of its two packages differ."""
    # The package that is already imported comes first.
    packages = ["lightning.pytorch", "pytorch_lightning"]
    packages.sort(key=lambda name: name not in sys.modules)
    for name in packages:
        try:
            return import_module(name).Callback
        except ImportError as error:
            reason = error
    raise missing("lightning", "lightning") from reason


Callback: Any = _callback()


def _of_outputs(outputs: Any, batch: Any) -> tuple[Any, Any]:
    try:
        return outputs["truth"], outputs["pred"]
    except (TypeError, LookupError) as error:
        found = f"a dict of {[*outputs]}" if isinstance(outputs, dict) else type(outputs).__name__
        found = "None" if outputs is None else found
        msg = (
            f"the step returned {found}; return {{'truth': ..., 'pred': ...}} from it, or pass "
            "SegmentationScores(..., pairs=lambda outputs, batch: (truth, pred))"
        )
        raise TypeError(msg) from error


_FIX = "Pass ids=lambda outputs, batch: ... to SegmentationScores to count each image once"


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
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`;
        or a :class:`segiou.ScoreHistogram`, to count scores in histograms like it.
    pairs : callable
        ``pairs(outputs, batch) -> (truth, pred)``, called with the return value
        of the step and its batch; ``outputs["truth"], outputs["pred"]`` by
        default. A batch for which it returns None is not counted.
    ids : callable, optional
        ``ids(outputs, batch) -> ids``, one id per image, as for
        :class:`segiou.hooks.images.ImageCounts`. Memory then grows by about
        1 KiB per image. Histograms are not kept per image.
    conflict : {"error", "first"}
        Treatment of an image that is counted twice with different results.
    scores : str or sequence of str, optional
        The scores to log; those of classes are named ``val/iou/road``. All scores of
        histograms are logged by default.
    protocol : Protocol or str
        How means are computed.
    report : path or callable, optional
        A file that the first process writes after each epoch, or a function that
        it calls with the report and the epoch. The extension sets the format,
        such as ``.html`` for a page. ``{epoch}`` and ``{stage}`` in the path are
        replaced; with several dataloaders, the name ends in
        ``_dataloader_idx_1``, as in the log.
    axis : int, optional
        The class axis of predictions that are scores; None as in
        :meth:`segiou.ScoreHistogram.update`.
    activation : {"softmax", "sigmoid"}, optional
        For a histogram, as in :meth:`segiou.ScoreHistogram.update`.
    threshold : float, optional
        With two classes, the second is predicted if its score is greater than this.
    """

    def __init__(
        self,
        labels: Any,
        *,
        pairs: Callable[[Any, Any], tuple[Any, Any] | None] = _of_outputs,
        ids: Callable[[Any, Any], Any] | None = None,
        conflict: Conflict = "error",
        scores: Scores | None = None,
        protocol: Protocol | str = "segiou",
        report: str | Path | Callable[[Report, int], object] | None = None,
        axis: int | None = 1,
        activation: Activation | None = None,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        options |= {"axis": axis, "activation": activation, "threshold": threshold}
        options |= {"protocol": protocol, "default": DEFAULT}
        self.scoring: Any = scoring_of(labels, scores=scores, **options)
        self.pairs, self.ids, self.report = pairs, ids, report
        only_for_pixels(self.scoring, ids=ids, report=report)
        self.conflict: Conflict = conflict
        if isinstance(report, (str, Path)):
            # Raises for an unknown format now instead of after the first epoch.
            format_of(Path(report))
        # A warning for each epoch would repeat itself.
        self._checked: set[str] = set()
        #: Counts of the last epoch by dataloader, summed over processes at its end.
        self.counted: dict[int, ConfusionMatrix | ImageCounts | ScoreHistogram] = {}

    def _start(self, trainer: Any, _module: Any, stage: str) -> None:
        self.counted = {}
        loaders = getattr(trainer, f"{stage}_dataloaders")
        is_new = stage not in self._checked and not trainer.sanity_checking
        if is_new and self.ids is None and trainer.is_global_zero:
            self._checked.add(stage)
            several = loaders if isinstance(loaders, (list, tuple)) else [loaders]
            fix = fix_of_repeats(self.scoring, _FIX)
            for i, loader in enumerate(several):
                warn_of_repeated_images(f"{stage} dataloader {i}", loader, trainer.world_size, fix)

    def _empty(self) -> Any:
        if self.ids is None:
            return self.scoring.empty()
        return ImageCounts.from_options(self.scoring.options, conflict=self.conflict)

    def _count(
        self, trainer: Any, _module: Any, outputs: Any, batch: Any, _index: int, loader: int = 0
    ) -> None:
        if trainer.sanity_checking:
            return
        if (pair := self.pairs(outputs, batch)) is None:
            return
        truth, pred, decision = self.scoring.read(*pair)
        if self.ids is not None:
            decision["ids"] = self.ids(outputs, batch)
        counted: Any = self.counted.setdefault(loader, self._empty())
        counted.update(truth, pred, **decision)

    def _end(self, trainer: Any, module: Any, stage: str) -> None:
        # Imported here, so that a missing Lightning is reported before a missing torch.
        from segiou.hooks.distributed import all_reduce

        loaders = len(getattr(trainer, f"num_{stage}_batches"))
        for loader in range(0 if trainer.sanity_checking else loaders):
            reduced: Any = all_reduce(self.counted.get(loader, self._empty()))
            total = reduced.total() if isinstance(reduced, ImageCounts) else reduced
            self.counted[loader] = total
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

    on_validation_epoch_start = partialmethod(_start, stage="val")
    on_test_epoch_start = partialmethod(_start, stage="test")
    on_validation_epoch_end = partialmethod(_end, stage="val")
    on_test_epoch_end = partialmethod(_end, stage="test")
    on_validation_batch_end = on_test_batch_end = _count
