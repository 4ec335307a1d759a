"""Segmentation scores as an :class:`ignite.metrics.Metric`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from segiou.hooks._scoring import Scores, Scoring, missing

try:
    import torch
    from ignite.metrics import Metric
    from ignite.metrics.metric import reinit__is_reduced, sync_all_reduce
except ImportError as error:
    raise missing("pytorch-ignite", "ignite") from error

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import not_compiled
from segiou.hooks.distributed import TorchCounter
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT

__all__ = ["SegmentationScores"]


class SegmentationScores(Metric):
    """Mean IoU and other scores of an epoch of an engine.

    Parameters
    ----------
    labels, **options
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`.
    scores : str or sequence of str
        With one name, the result is a number; with several, a mapping, whose
        entries Ignite also adds to ``engine.state.metrics``.
    protocol : Protocol or str
        How means are computed.
    axis : int
        The class axis of predictions that are scores.
    threshold : float, optional
        With two classes, the second is predicted if its score is greater than this.
    output_transform : callable
        Converts the engine's output to ``(y_pred, y)``.
    device : str or torch.device
        Device of the counts.
    """

    _state_dict_all_req_keys = ("_sums", "_maxima")

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        axis: int = 1,
        threshold: float | None = None,
        output_transform: Callable[..., Any] = lambda output: output,
        device: str | torch.device = "cpu",
        **options: Any,
    ) -> None:
        options |= {"axis": axis, "threshold": threshold}
        self.scoring = Scoring(labels, scores=scores, protocol=protocol, **options)
        self.counter = TorchCounter(self.scoring)
        super().__init__(output_transform=output_transform, device=device)

    @reinit__is_reduced
    def reset(self) -> None:
        """Discard all counts."""
        sums, maxima = self.counter.empty()
        self._sums, self._maxima = sums.to(self._device), maxima.to(self._device)
        super().reset()

    @reinit__is_reduced
    @not_compiled
    def update(self, output: Any) -> None:
        """Count one ``(y_pred, y)``."""
        pred, truth = output[0], output[1]
        # A copy, because a state_dict holds the earlier sums.
        sums = self._sums.clone()
        self._sums, self._maxima = self.counter.add(sums, self._maxima, truth, pred)

    @sync_all_reduce("_sums:SUM", "_maxima:MAX")
    def confusion_matrix(self) -> ConfusionMatrix:
        """All counts so far of all processes, as a :class:`segiou.ConfusionMatrix`."""
        return self.counter.matrix(self._sums, self._maxima)

    def compute(self) -> float | dict[str, float]:
        """The scores over all processes: a number or a mapping."""
        values = self.scoring.values(self.confusion_matrix().counts)
        return values[self.scoring.only] if self.scoring.only else values
