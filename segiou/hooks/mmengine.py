"""Segmentation scores as an MMEngine metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.hooks._histogram_scoring import AnyScoring, scoring_of
from segiou.hooks._scoring import Scores, Scoring, missing

try:
    from mmengine.evaluator import BaseMetric
    from mmengine.registry import METRICS
except ImportError as error:
    raise missing("mmengine", "mmengine") from error

from segiou.counting.counts import Cells, ConfusionCounts, SparseConfusionCounts
from segiou.histograms.score_bins import Activation
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT

__all__ = ["SegmentationScores"]


@METRICS.register_module()
class SegmentationScores(BaseMetric):
    """Mean IoU and other scores, in [0, 1], of a validation or test set.

    The counts of each sample are kept, so that MMEngine can drop the samples
    that a distributed sampler repeats to fill its last batch.

    Parameters
    ----------
    labels : as for :class:`segiou.ConfusionMatrix`, optional
        The classes; those of ``dataset_meta["classes"]`` by default. Or a
        :class:`segiou.ScoreHistogram`, to count scores (C, H, W) in histograms like it.
    scores : sequence of str, optional
        The scores to return; those of classes are named ``iou/road``. All scores of
        histograms are returned by default.
    protocol : Protocol or str
        How means are computed.
    activation : {"softmax", "sigmoid"}, optional
        For a histogram, as in :meth:`segiou.ScoreHistogram.update`.
    truth_key, pred_key : str
        The entries of a data sample whose ``"data"`` holds the labels, or the scores:
        ``"seg_logits"`` in mmsegmentation.
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
        scores: Scores | None = None,
        protocol: Protocol | str = "segiou",
        activation: Activation | None = None,
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
        self._options = {"scores": scores, "protocol": protocol, "default": DEFAULT, **options}
        self._options["activation"] = activation
        self._scoring: AnyScoring | None = None

    @property
    def scoring(self) -> AnyScoring:
        """Class options and scores, available once the data set is known."""
        if self._scoring is None:
            labels = self._labels
            if labels is None and not (labels := (self.dataset_meta or {}).get("classes")):
                msg = "dataset_meta has no 'classes'; pass labels to the metric"
                raise ValueError(msg)
            self._scoring = scoring_of(labels, axis=0, **self._options)
        return self._scoring

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Count each sample of a batch."""
        counting: Any = self.scoring.empty()
        pairs = [[sample[key]["data"].squeeze(0) for key in self.keys] for sample in data_samples]
        read = [self.scoring.read(*pair) for pair in pairs]
        self.results += [_packed(counting.count(t, p, **how)) for t, p, how in read]

    def compute_metrics(self, results: list[Cells]) -> dict[str, float]:
        """Compute the scores of the samples that MMEngine has not dropped as repeated."""
        parts = [Cells(*part) for part in results]  # MMEngine makes them plain tuples
        if isinstance(self.scoring, Scoring):
            classes = self.scoring.options.num_classes
            return self.scoring.values(SparseConfusionCounts.summed(classes, parts))
        counted = self.scoring.empty()
        cells = counted._empty()
        for part in parts:
            cells.ravel()[part.indices] += part.values
        counted._add(cells, len(parts))
        return self.scoring.values(counted)


def _packed(count: ConfusionCounts | NDArray[np.int64]) -> Cells:
    """The counts of a sample, most of which are 0."""
    if isinstance(count, ConfusionCounts):
        return count.cells
    flat = count.ravel()
    filled = np.flatnonzero(flat)
    return Cells(filled, flat[filled], 0)
