"""Segmentation scores as an MMEngine metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from segiou._support.arguments import check_options
from segiou._support.optional import extra_named
from segiou.hooks._scoring import ChannelScoring, Scoring, scoring_of
from segiou.hooks.hook_options import TorchOptions

with extra_named("segiou.hooks.mmengine needs mmengine", "mmengine"):
    from mmengine.dist import get_world_size
    from mmengine.evaluator import BaseMetric
    from mmengine.registry import METRICS

from segiou.counting.counts import Cells
from segiou.hooks.distributed import DeferredErrors, all_reduce
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
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`, to count channels or
        scores (C, H, W) like it.
    truth_key, pred_key : str
        The entries of a data sample whose ``"data"`` holds the labels, or the scores:
        ``"seg_logits"`` in mmsegmentation.
    collect_device, prefix, collect_dir
        As for :class:`mmengine.evaluator.BaseMetric`.
    **options
        :class:`segiou.hooks.hook_options.TorchOptions`. The class axis of scores is the first;
        all scores of histograms are returned by default.
    """

    default_prefix = "segiou"
    results: list[Any]

    def __init__(
        self,
        labels: Any = None,
        *,
        truth_key: str = "gt_sem_seg",
        pred_key: str = "pred_sem_seg",
        collect_device: str = "cpu",
        prefix: str | None = None,
        collect_dir: str | None = None,
        **options: Unpack[TorchOptions],
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix, collect_dir=collect_dir)
        check_options(SegmentationScores, options, TorchOptions)
        self.keys = truth_key, pred_key
        self._labels = labels
        options.setdefault("axis", 0)
        self._options = options
        self._scoring: Scoring | None = None
        self._deferred = DeferredErrors()
        #: Counts of the last evaluation, on the first process.
        self.counts: Any = None

    @property
    def scoring(self) -> Scoring:
        """Class options and scores, available once the data set is known."""
        if self._scoring is None:
            labels = self._labels
            if labels is None and not (labels := (self.dataset_meta or {}).get("classes")):
                msg = "dataset_meta has no 'classes'; pass labels to the metric"
                raise ValueError(msg)
            self._scoring = scoring_of(SegmentationScores, labels, DEFAULT, self._options)
        return self._scoring

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Count each sample of a batch; if one of several processes cannot, `evaluate` raises."""
        with self._deferred:
            pairs = [[self._pixels(sample, key) for key in self.keys] for sample in data_samples]
            self.results += [self.scoring.cells(*pair) for pair in pairs]

    def _pixels(self, sample: dict[str, Any], key: str) -> Any:
        """The pixels of an entry of a data sample, without the first axis of one label map."""
        pixels = _data_of(sample, key)
        is_plain = isinstance(self.scoring, ChannelScoring) or len(pixels.shape) < 3
        return pixels if is_plain or pixels.shape[0] != 1 else pixels[0]

    def evaluate(self, size: int) -> dict[str, float]:
        """The scores of the whole data set; an error of `process` is raised on all processes."""
        errors, self._deferred = self._deferred, DeferredErrors()
        # MMEngine keeps the samples of an interrupted evaluation; those of this one are the last.
        results, self.results = self.results[-size // get_world_size() :], []
        all_reduce(self.scoring.empty(), errors=errors)
        self.results = results
        scores: dict[str, float] = super().evaluate(size)
        return scores

    def compute_metrics(self, results: list[Any]) -> dict[str, float]:
        """Compute the scores of the samples that MMEngine has not dropped as repeated."""
        # MMEngine makes the counts plain tuples.
        self.counts = self.scoring.summed([Cells(*cells) for cells in results])
        return self.scoring.values(self.counts)


def _data_of(sample: dict[str, Any], key: str) -> Any:
    """The pixels of an entry of a data sample; a ValueError if it has none."""
    if key in sample:
        return sample[key]["data"]
    msg = (
        f"a data sample has no {key!r}, only {', '.join(map(repr, sample))}; load annotations in "
        "the pipeline of the data set, or pass truth_key= and pred_key= to SegmentationScores"
    )
    raise ValueError(msg)
