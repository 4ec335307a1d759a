"""Segmentation scores as an MMEngine metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from segiou.hooks._scoring import Scores, Scoring, missing

try:
    from mmengine.evaluator import BaseMetric
    from mmengine.registry import METRICS
except ImportError as error:
    raise missing("mmengine", "mmengine") from error

from segiou.counting.counts import SparseConfusionCounts
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT
from segiou.runs.image_counts import Columns, ImageCount

__all__ = ["SegmentationScores"]


@METRICS.register_module()
class SegmentationScores(BaseMetric):
    """Mean IoU and other scores, in [0, 1], of a validation or test set.

    The counts of each sample are kept, so that MMEngine can drop the samples
    that a distributed sampler repeats to fill its last batch.

    Parameters
    ----------
    labels : as for :class:`segiou.ConfusionMatrix`, optional
        The classes; those of ``dataset_meta["classes"]`` by default.
    scores : sequence of str
        The scores to return; those of classes are named ``iou/road``.
    protocol : Protocol or str
        How means are computed.
    truth_key, pred_key : str
        The entries of a data sample whose ``"data"`` holds the labels.
    collect_device, prefix, collect_dir
        As for :class:`mmengine.evaluator.BaseMetric`.
    **options
        ``ignore``, ``exclude``, ``pred_labels`` and ``unassigned`` of
        :class:`segiou.ConfusionMatrix`.
    """

    default_prefix = "segiou"

    def __init__(
        self,
        labels: Any = None,
        *,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        truth_key: str = "gt_sem_seg",
        pred_key: str = "pred_sem_seg",
        collect_device: str = "cpu",
        prefix: str | None = None,
        collect_dir: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix, collect_dir=collect_dir)
        self.keys = truth_key, pred_key
        self._labels = labels
        self._options = {"scores": scores, "protocol": protocol, **options}
        self._scoring: Scoring | None = None

    @property
    def scoring(self) -> Scoring:
        """Class options and scores, available once the data set is known."""
        if self._scoring is None:
            labels = self._labels
            if labels is None and not (labels := (self.dataset_meta or {}).get("classes")):
                msg = "dataset_meta has no 'classes'; pass labels to the metric"
                raise ValueError(msg)
            self._scoring = Scoring(labels, **self._options)
        return self._scoring

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Count each sample of a batch."""
        counting = self.scoring.empty()
        pairs = [[sample[key]["data"].squeeze(0) for key in self.keys] for sample in data_samples]
        self.results += [ImageCount.of("", counting.count(*pair)) for pair in pairs]

    def compute_metrics(self, results: list[ImageCount]) -> dict[str, float]:
        """Compute the scores of the samples that MMEngine has not dropped as repeated."""
        images = Columns.of(results)
        tally = SparseConfusionCounts.summed(self.scoring.options.num_classes, [images.summed()])
        return self.scoring.values(tally.counts)
