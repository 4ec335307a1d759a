"""Segmentation scores as a :class:`flax.nnx.Metric`."""

from __future__ import annotations

from inspect import Signature, signature
from typing import Any, Unpack

from segiou._support.optional import extra_named
from segiou.hooks._scoring import Counting, scoring_of
from segiou.hooks.hook_options import HookOptions

with extra_named("segiou.hooks.flax needs flax", "flax"):
    from flax import nnx

from segiou.hooks.jax import PixelCounter

__all__ = ["SegmentationScores"]


class SegmentationScores(Counting, nnx.Metric):
    """Mean IoU and other scores of everything since the last reset.

    :meth:`update` works inside ``nnx.jit`` and in an ``nnx.MultiMetric``. :meth:`compute` reads
    the counts on the host, so call it outside of compiled functions.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.HookOptions`; or a
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`, to count channels
        that may overlap, or scores, like it, without regions.
        ``scores`` is ``"mean_iou"`` or, of histograms, ``"average_precision"`` by default; with
        several names, the result is a dict. ``axis`` is -1 by default.
    """

    def __init__(self, labels: Any, **options: Unpack[HookOptions]) -> None:
        options.setdefault("axis", -1)
        self.scoring = scoring_of(SegmentationScores, labels, "mean_iou", options, HookOptions)
        self.counter = PixelCounter(self.scoring.empty())
        self.state = nnx.metrics.MetricState(self.counter.init())

    def reset(self) -> None:
        """Forget all counts."""
        self.state.set_value(self.counter.init())

    def update(self, *, logits: Any, labels: Any, mask: Any = None, **_: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        logits : array
            Scores with a class axis, or predicted labels.
        labels : array of int, or float with whole numbers
            The truth, with or without a class axis of size 1.
        mask : array of bool, optional
            Which pixels, or images if the shape is (N,), count.
        """
        truth, pred, decision = self.scoring.read(labels, logits)
        state = self.counter.update(self.state.get_value(), truth, pred, mask=mask, **decision)
        self.state.set_value(state)

    def compute(self) -> float | dict[str, float]:
        """Compute the scores; NaN if undefined."""
        return self.scoring.result(self._counted())

    def _counted(self) -> Any:
        return self.counter.counts(self.state.get_value())


# The metaclass of nnx hides the arguments from help() and editors.
_self, *_arguments = signature(SegmentationScores.__init__).parameters.values()
SegmentationScores.__signature__ = Signature(_arguments)
