"""Options that the adapters share, typed so that type checkers and editors find a wrong name."""

from __future__ import annotations

from collections.abc import Sequence

from segiou.accumulators.histograms.score_bins import Activation
from segiou.labels.class_options import ClassArguments
from segiou.metrics.protocols import Protocol

__all__ = ["HookOptions", "TorchOptions"]

Scores = str | Sequence[str]


class HookOptions(ClassArguments, total=False):
    """Options of every adapter.

    Attributes
    ----------
    pred_labels, ignore, exclude, unassigned
        As for :class:`segiou.ConfusionMatrix`.
    scores : str or sequence of str
        The scores to return. ``mean_iou_foreground``, ``mean_dice_foreground`` and
        ``mean_accuracy_foreground`` are means without the first class.
    protocol : Protocol or str
        How means are computed; protocols that average over images are not supported.
    axis : int, optional
        The class axis of predictions that are scores; None as in
        :meth:`segiou.ScoreHistogram.update`.
    activation : {"softmax", "sigmoid"}, optional
        For a histogram, as in :meth:`segiou.ScoreHistogram.update`.
    threshold : float, or sequence of float, optional
        With two classes, the second is predicted if its score is greater than this: 0 for
        logits, 0.5 after a sigmoid. With channels, each is predicted so; several thresholds
        are those of the channels.
    """

    scores: Scores | None
    protocol: Protocol | str
    axis: int | None
    activation: Activation | None
    threshold: float | Sequence[float] | None


class TorchOptions(HookOptions, total=False):
    """Options of adapters for PyTorch.

    Attributes
    ----------
    upsample : bool
        Whether scores of a smaller size than the truth are upsampled bilinearly.
    """

    upsample: bool
