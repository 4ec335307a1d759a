"""A Lightning callback that scores the validation and test loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from segiou.confusion import ConfusionMatrix
from segiou.hooks._lightning import Callback
from segiou.hooks._scoring import DEFAULT, Scores, Scoring, rule_for
from segiou.hooks.distributed import all_reduce
from segiou.protocols import Protocol
from segiou.report import Report

__all__ = ["SegmentationScores"]


def _of_outputs(outputs: Any, batch: Any) -> tuple[Any, Any]:
    return outputs["truth"], outputs["pred"]


class SegmentationScores(Callback):
    """Logs scores of each validation and test epoch, ``val/mean_iou`` and so on.

    The sanity check is left out. Where there are several dataloaders, each has
    its own scores under Lightning's own suffix, ``/dataloader_idx_1``.

    Parameters
    ----------
    labels, **options
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`.
    pairs : callable
        ``pairs(outputs, batch) -> (truth, pred)``, of what the step returned
        and its batch; by default ``outputs["truth"], outputs["pred"]``.
    scores, protocol
        Which numbers, those of classes as ``val/iou/road``; the rule of the means.
    report : path or callable, optional
        Written, or called with the report and the epoch, by the first process
        after each epoch; ``{epoch}`` and ``{stage}`` in the path are filled in.
    axis, threshold
        The class axis of scores; or the score above which the second of two
        classes is predicted.
    """

    def __init__(
        self,
        labels: Any,
        *,
        pairs: Callable[[Any, Any], tuple[Any, Any]] = _of_outputs,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        report: str | Path | Callable[[Report, int], object] | None = None,
        axis: int = 1,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        self.scoring = Scoring(labels, scores=scores, protocol=protocol, **options)
        self.pairs, self.report = pairs, report
        self.axis, self.threshold = axis, threshold
        #: Counts of the last epoch by dataloader; all processes together once it has ended.
        self.counted: dict[int, ConfusionMatrix] = {}

    def _start(self, *_: Any) -> None:
        self.counted = {}

    def _count(
        self, trainer: Any, _module: Any, outputs: Any, batch: Any, _index: int, loader: int = 0
    ) -> None:
        if not trainer.sanity_checking:
            truth, pred = self.pairs(outputs, batch)
            counted = self.counted.setdefault(loader, self.scoring.empty())
            counted.update(truth, pred, **rule_for(truth, pred, self.axis, self.threshold))

    def _end(self, trainer: Any, module: Any, stage: str, loaders: int) -> None:
        for loader in range(0 if trainer.sanity_checking else loaders):
            total = all_reduce(self.counted.get(loader, self.scoring.empty()))
            self.counted[loader] = total
            place = f"/dataloader_idx_{loader}" if loaders > 1 else ""
            values = self.scoring.values(total)
            logged = {f"{stage}/{name}{place}": value for name, value in values.items()}
            module.log_dict(logged, add_dataloader_idx=False)
            if self.report is not None and trainer.is_global_zero and loader == 0:
                self._give(total.report(self.scoring.protocol), trainer.current_epoch, stage)

    def _give(self, report: Report, epoch: int, stage: str) -> None:
        if callable(self.report):
            self.report(report, epoch)
            return
        path = Path(str(self.report).format(epoch=epoch, stage=stage))
        path.parent.mkdir(parents=True, exist_ok=True)
        report.save(path)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the scores of the validation set."""
        self._end(trainer, pl_module, "val", len(trainer.num_val_batches))

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the scores of the test set."""
        self._end(trainer, pl_module, "test", len(trainer.num_test_batches))

    on_validation_epoch_start = on_test_epoch_start = _start
    on_validation_batch_end = on_test_batch_end = _count
