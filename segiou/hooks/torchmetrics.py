"""Segmentation scores as a :class:`torchmetrics.Metric`."""

from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from segiou._support.optional import extra_named
from segiou.hooks._frameworks import is_logged, wrapper_of
from segiou.hooks._repeats import warn_in_loops
from segiou.hooks._scoring import Counting, fix_of_repeats, scoring_of
from segiou.hooks.hook_options import Scores, TorchOptions

with extra_named("segiou.hooks.torchmetrics needs torchmetrics", "torchmetrics"):
    import torch
    from torchmetrics import Metric

from segiou.counting.arrays import not_compiled
from segiou.hooks._torch_counts import TorchCounter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CountedScores", "SegmentationScores"]

#: The problem and the fix of several scores, by wrapper.
_MISREAD = {
    "ClasswiseWrapper": (
        "ClasswiseWrapper cannot wrap a metric with several scores; wrap a metric with a single "
        "per-class score, such as scores='iou', and combine several in a MetricCollection"
    ),
    "MetricTracker": (
        "MetricTracker cannot pick the best of a metric with several scores; wrap it as "
        "MetricTracker(MetricCollection([metric]), maximize=True), or request a single score"
    ),
    "MinMaxMetric": (
        "MinMaxMetric cannot wrap a metric with several scores; request a single score"
    ),
    "MetricCollection.plot": (
        "MetricCollection.plot cannot draw a metric with several scores on axes of its own; pass "
        "together=True, or plot the metric itself"
    ),
}
_LOGGED = (
    "self.log of Lightning needs a metric with a single scalar, such as scores='mean_iou'; in "
    "on_validation_epoch_end, call self.log_dict(metric.compute()) and metric.reset(), or use the "
    "callback segiou.hooks.lightning.SegmentationScores"
)

_REPEATED = (
    "A torchmetrics metric cannot tell which; segiou.hooks.lightning.SegmentationScores(..., "
    "ids=lambda outputs, batch: ...) counts each image once"
)


class CountedScores(Metric):
    """Base class of metrics with integer counts.

    Parameters
    ----------
    scores : str or sequence of str
        The scores that the metric returns.
    metric_options : dict, optional
        Options of torchmetrics' ``Metric``.
    """

    is_differentiable: bool | None = False
    full_state_update: bool | None = False
    plot_lower_bound: float | None = 0.0
    plot_upper_bound: float | None = 1.0

    __jit_unused_properties__: ClassVar[list[str]] = [
        *Metric.__jit_unused_properties__,
        "_forward_cache",
        "counts",
    ]
    scores: str | tuple[str, ...]
    _repeated = _REPEATED
    _is_better_higher = True

    def __init__(self, scores: Scores, metric_options: dict[str, Any] | None) -> None:
        # A dict is not cached, since it depends on the caller.
        kept = {"compute_with_cache": isinstance(scores, str)}
        super().__init__(**kept | (metric_options or {}))
        self.scores = scores if isinstance(scores, str) else tuple(scores)

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a single score is better if higher; None for several scores."""
        if isinstance(self.scores, str):
            return self._is_better_higher
        self._refuse_misreaders()
        return None

    @property
    def _forward_cache(self) -> Any:
        """The last result of `forward`, which Lightning reads when it starts to log a metric."""
        is_read = self._is_scalar() or torch.compiler.is_compiling()
        if not is_read and is_logged():
            raise TypeError(_LOGGED)
        return self.__dict__["_forward_cache"]

    @_forward_cache.setter
    def _forward_cache(self, value: Any) -> None:
        self.__dict__["_forward_cache"] = value

    def _is_scalar(self) -> bool:
        return isinstance(self.scores, str)

    def _to_tensors(self, values: dict[str, float]) -> "torch.Tensor | dict[str, torch.Tensor]":
        """The result of `compute`: a number, a value per class, or a dict."""
        kind = self.device.type
        result = values[self.scores] if self.scores in values else [*values.values()]
        # MPS has no float64. Each operation on a small tensor takes as long as the mean.
        numbers = torch.from_numpy(np.array(result, np.float32 if kind == "mps" else np.float64))
        if kind != "cpu":
            numbers = numbers.to(self.device)
        if isinstance(self.scores, str):
            return numbers
        self._refuse_misreaders()
        return dict(zip(values, numbers, strict=True))

    def _refuse_misreaders(self) -> None:
        """Raise a TypeError if the caller is a torchmetrics wrapper that cannot use a dict."""
        if wrapper := wrapper_of(self):
            raise TypeError(_MISREAD[wrapper])

    def _sync_dist(self, *rest: Any, **keywords: Any) -> None:
        warn_in_loops(self._repeated)
        try:
            super()._sync_dist(*rest, **keywords)
        except RuntimeError as error:
            if "equal size" not in str(error):
                raise
            msg = "the numbers of classes differ between processes; pass the same to all"
            raise ValueError(msg) from error

    def plot(self, val: Any = None, ax: Any = None) -> "tuple[Figure, Axes]":
        """Plot one or several results of `compute` or `forward`; the current one by default."""
        drawn: tuple[Figure, Axes] = self._plot(val, ax)
        return drawn

    def set_dtype(self, dst_type: Any) -> Self:
        """Do nothing, because counts are always 64-bit integers."""
        return self


class SegmentationScores(Counting, CountedScores):
    """Mean IoU and other scores of everything since the last reset.

    The state is the integer confusion matrix, summed over processes, or the integers
    of a :class:`segiou.ScoreHistogram`, whose scores are copied to the host. The metric
    works in a ``MetricCollection`` and supports ``forward``, ``clone``, ``plot``
    and checkpoints. An image that a distributed sampler repeats is counted
    again; :class:`segiou.scoring.Evaluator` counts it once.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.TorchOptions`; or a
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`, to count channels
        that may overlap, or scores, like it.
        ``scores`` is ``"mean_iou"`` or, of histograms, ``"average_precision"`` by default.
        The result for one name is a number, or a tensor of shape (C,) for a per-class
        score such as ``"iou"``, as ``ClasswiseWrapper`` expects; that for a sequence of
        names is a dict of numbers, those of classes named ``iou/road``.
    metric_options : dict, optional
        Options of :class:`torchmetrics.Metric`.
    """

    sums: torch.Tensor
    maxima: torch.Tensor

    def __init__(
        self,
        labels: Any,
        *,
        metric_options: dict[str, Any] | None = None,
        **options: Unpack[TorchOptions],
    ) -> None:
        scoring = scoring_of(SegmentationScores, labels, "mean_iou", options)
        super().__init__(scoring.scores, metric_options)
        self.scoring, self.counter = scoring, TorchCounter(scoring)
        self._is_better_higher = scoring.higher_is_better
        self._repeated = fix_of_repeats(scoring, _REPEATED)
        #: MetricTracker uses it if ClasswiseWrapper names the classes.
        self.num_classes: int = scoring.options.num_classes
        sums, maxima = self.counter.empty()
        self.add_state("sums", sums, dist_reduce_fx="sum")
        self.add_state("maxima", maxima, dist_reduce_fx="max")

    def _is_scalar(self) -> bool:
        return self.scoring.only is not None

    @not_compiled
    def update(self, preds: Any, target: Any) -> None:
        """Count a batch: labels, or scores with one more axis than the target; target last."""
        counted = self.counter.add(self.sums, self.maxima, target, preds)
        # Else counted in place; assignments to modules take long.
        if counted[0] is not self.sums or counted[1] is not self.maxima:
            self.sums, self.maxima = counted

    def _counted(self) -> Any:
        return self.counter.accumulated(self.sums, self.maxima)

    @not_compiled
    def compute(self) -> "torch.Tensor | dict[str, torch.Tensor]":
        """Compute the scores: a scalar, C values of a per-class score, or a dict of scalars."""
        return self._to_tensors(self.scoring.values(self.counter.read(self.sums, self.maxima)))

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *rest: Any, **keywords: Any
    ) -> None:
        saved = state_dict.get(f"{prefix}maxima")
        if saved is not None:
            self.counter.check(saved)
        super()._load_from_state_dict(state_dict, prefix, *rest, **keywords)
