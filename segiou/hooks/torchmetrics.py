"""Segmentation scores as a :class:`torchmetrics.Metric`."""

from __future__ import annotations

from typing import Any

from segiou.hooks._scoring import Scores, Scoring, missing

try:
    import torch
    from torchmetrics import Metric
except ImportError as error:
    raise missing("torchmetrics", "torchmetrics") from error

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import not_compiled
from segiou.hooks._torch import TorchCounter
from segiou.metrics.protocols import Protocol

__all__ = ["SegmentationScores"]


class SegmentationScores(Metric):
    """Mean IoU and other scores of everything since the last reset.

    The state is the integer confusion matrix, summed over processes; it works
    in a ``MetricCollection``, with ``forward``, ``clone``, ``plot`` and checkpoints.
    In a process that a distributed sampler feeds, the images that it repeats
    are counted twice; :class:`segiou.hooks.images.ImageCounts` counts them once.

    Parameters
    ----------
    labels, **options
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`.
    scores : str or sequence of str
        One name gives one number, or for a per-class score such as ``"iou"`` a
        tensor of shape (C,), as ``ClasswiseWrapper`` wants it. A sequence of
        names gives a dict of numbers, those of classes as ``iou/road``.
    protocol : str
        The protocol of the means.
    axis : int
        The class axis of scores.
    threshold : float, optional
        For two classes: the second is predicted where the score is above this.
    metric_options : dict, optional
        Passed to :class:`torchmetrics.Metric`.
    """

    is_differentiable = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    sums: torch.Tensor
    maxima: torch.Tensor
    options: torch.Tensor
    pairs: torch.Tensor

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = "mean_iou",
        protocol: Protocol | str = "segiou",
        axis: int = 1,
        threshold: float | None = None,
        metric_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**(metric_options or {}))
        options |= {"axis": axis, "threshold": threshold}
        self.scores = scores if isinstance(scores, str) else tuple(scores)
        self.scoring = Scoring(labels, scores=scores, protocol=protocol, **options)
        self.counter = TorchCounter(self.scoring)
        sums, maxima = self.counter.empty()
        self.add_state("sums", sums, dist_reduce_fx="sum")
        self.add_state("maxima", maxima, dist_reduce_fx="max")
        self.add_state("options", self.counter.options(), dist_reduce_fx="max")
        self.add_state("pairs", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    @property
    def higher_is_better(self) -> bool | None:
        """True; None where there are several numbers, of which MetricTracker cannot take a best."""
        return None if self._gives_dict else True

    @property
    def num_classes(self) -> int:
        """C; MetricTracker asks for it where ClasswiseWrapper names the classes."""
        return self.scoring.options.num_classes

    @property
    def _gives_dict(self) -> bool:
        return not isinstance(self.scores, str)

    @not_compiled
    def update(self, preds: Any, target: Any) -> None:
        """Count a batch: labels, or scores with one more axis than the target; target last."""
        sums, maxima = self.counter.count(target, preds)
        self.sums = self.sums + sums.to(self.sums.device)
        self.maxima = torch.maximum(self.maxima, maxima.to(self.maxima.device))
        self.pairs = self.pairs + 1

    @not_compiled
    def confusion_matrix(self) -> ConfusionMatrix:
        """Everything counted so far, as segiou's own accumulator."""
        self.counter.check_options(self.options)
        return self.counter.read(self.sums, self.maxima, int(self.pairs))

    @not_compiled
    def compute(self) -> torch.Tensor | dict[str, torch.Tensor]:
        """The scores: a scalar, C values of a per-class score, or a dict of scalars."""
        dtype = torch.float32 if self.sums.device.type == "mps" else torch.float64
        values = self.scoring.values(self.confusion_matrix())
        tensors = {
            name: torch.tensor(value, dtype=dtype, device=self.sums.device)
            for name, value in values.items()
        }
        if self._gives_dict:
            return tensors
        return tensors[self.scoring.only] if self.scoring.only else torch.stack([*tensors.values()])

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw values of `compute` or `forward`, one or a list of them; those of now by default."""
        return self._plot(val, ax)

    def set_dtype(self, dst_type: Any) -> SegmentationScores:
        """Change nothing: the counts are integers of 64 bits, which no other type holds."""
        return self

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *rest: Any, **keywords: Any
    ) -> None:
        saved = state_dict.get(f"{prefix}options")
        if saved is not None:
            self.counter.check_options(saved)
        super()._load_from_state_dict(state_dict, prefix, *rest, **keywords)
