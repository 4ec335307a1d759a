"""A Lightning callback that scores the validation and test loops."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partialmethod
from importlib import import_module
from pathlib import Path
from typing import Any

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.hooks._scoring import Scores, Scoring, missing
from segiou.hooks.images import Conflict, ImageCounts
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT, format_of
from segiou.report.report import Report

__all__ = ["SegmentationScores"]


def _callback() -> Any:
    """Lightning's Callback, of whichever of its two packages is in use."""
    # The classes of the two are not each other's; what is imported already is what is used.
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
            f"the step returned {found}; let it return {{'truth': ..., 'pred': ...}}, or say where "
            "they are: SegmentationScores(..., pairs=lambda outputs, batch: (truth, pred))"
        )
        raise TypeError(msg) from error


def _warn_of_repeated_images(name: str, loader: Any, processes: int) -> None:
    """Warn if the samplers of all processes together give more images than the data set has."""
    sampler: Any = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    try:
        drawn, images = processes * len(sampler), len(loader.dataset)
    except (TypeError, AttributeError):
        return  # without lengths nothing can be said
    if processes > 1 and drawn > images:
        text = (
            f"{name}: the samplers of {processes} processes give {drawn} images of a data set of "
            f"{images}, so that {drawn - images} are counted again and change the scores. Give "
            "SegmentationScores ids=lambda outputs, batch: ..., and each image counts once"
        )
        warnings.warn(text, stacklevel=2)


class SegmentationScores(Callback):
    """Logs scores of each validation and test epoch, ``val/mean_iou`` and so on.

    The sanity check is not scored. With several dataloaders each has its own
    scores, under Lightning's own suffix, ``/dataloader_idx_1``.

    On several devices Lightning's sampler repeats images so that each device
    has as many; give `ids`, and such an image is counted once. Without `ids`
    a warning says how many images are repeated.

    Parameters
    ----------
    labels, **options
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`.
    pairs : callable
        ``pairs(outputs, batch) -> (truth, pred)``, from what the step returned
        and its batch; by default ``outputs["truth"], outputs["pred"]``. If it
        gives None, the batch is not counted.
    ids : callable, optional
        ``ids(outputs, batch) -> ids``, one an image, as :class:`segiou.hooks.images.ImageCounts`
        takes them. Memory then grows by a KiB or so an image.
    conflict : {"error", "first"}
        What happens if an id comes with two results.
    scores, protocol
        Which scores to give, those of classes as ``val/iou/road``; the protocol of the means.
    report : path or callable, optional
        A file that the first process writes after each epoch, or a function that
        it calls with the report and the epoch. The ending tells the format: ``.html``
        is a page. ``{epoch}`` and ``{stage}`` in the path are filled in; with several
        dataloaders the name ends in ``_dataloader_idx_1``, as in the log.
    axis, threshold
        The class axis of scores; or the score above which the second of two
        classes is predicted.
    """

    def __init__(
        self,
        labels: Any,
        *,
        pairs: Callable[[Any, Any], tuple[Any, Any] | None] = _of_outputs,
        ids: Callable[[Any, Any], Any] | None = None,
        conflict: Conflict = "error",
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        report: str | Path | Callable[[Report, int], object] | None = None,
        axis: int = 1,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        options |= {"axis": axis, "threshold": threshold}
        self.scoring = Scoring(labels, scores=scores, protocol=protocol, **options)
        self.pairs, self.ids, self.report = pairs, ids, report
        self.conflict: Conflict = conflict
        if isinstance(report, (str, Path)):
            # Better now than after the first epoch.
            format_of(Path(report))
        #: Counts of the last epoch by dataloader; all processes together once it has ended.
        self.counted: dict[int, ConfusionMatrix | ImageCounts] = {}

    def _start(self, trainer: Any, _module: Any, stage: str) -> None:
        self.counted = {}
        loaders = getattr(trainer, f"{stage}_dataloaders")
        if self.ids is None and trainer.is_global_zero and not trainer.sanity_checking:
            several = loaders if isinstance(loaders, (list, tuple)) else [loaders]
            for i, loader in enumerate(several):
                _warn_of_repeated_images(f"{stage} dataloader {i}", loader, trainer.world_size)

    def _empty(self) -> ConfusionMatrix | ImageCounts:
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
        self.counted.setdefault(loader, self._empty()).update(truth, pred, **decision)

    def _end(self, trainer: Any, module: Any, stage: str) -> None:
        # Only here, so that a missing Lightning is named before a missing torch.
        from segiou.hooks.distributed import all_reduce

        loaders = len(getattr(trainer, f"num_{stage}_batches"))
        for loader in range(0 if trainer.sanity_checking else loaders):
            reduced: Any = all_reduce(self.counted.get(loader, self._empty()))  # type: ignore[type-var]
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
