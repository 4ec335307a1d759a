"""Segmentation scores as an :class:`ignite.metrics.Metric`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from segiou.hooks._histogram_scoring import (
    fix_of_repeats,
    of_kind,
    only_for_pixels,
    scoring_of,
)
from segiou.hooks._scoring import Scores, missing, warn_of_repeated_images

try:
    import torch
    from ignite import distributed as idist
    from ignite.metrics import Metric
    from ignite.metrics.metric import reinit__is_reduced, sync_all_reduce
except ImportError as error:
    raise missing("pytorch-ignite", "ignite") from error

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import not_compiled
from segiou.histograms.score_bins import Activation
from segiou.histograms.score_counts import ScoreHistogram
from segiou.hooks.distributed import add_up, counter_of
from segiou.hooks.images import Conflict, ImageCounts
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT

__all__ = ["SegmentationScores"]


_FIX = "Pass ids=True to SegmentationScores to count each image once"


class SegmentationScores(Metric):
    """Mean IoU and other scores of an epoch of an engine.

    With several processes, a DistributedSampler repeats images so that every
    process has the same number. Pass `ids` to count each image once; otherwise a
    warning reports how many images are repeated.

    Parameters
    ----------
    labels, **options
        The classes, ``ignore`` and the other options of :class:`segiou.ConfusionMatrix`;
        or a :class:`segiou.ScoreHistogram`, to count scores in histograms like it.
    scores : str or sequence of str, optional
        With one name, the result is a number; with several, a mapping, whose entries
        Ignite also adds to ``engine.state.metrics``. All scores of histograms by default.
    protocol : Protocol or str
        How means are computed.
    axis : int, optional
        The class axis of predictions that are scores; None as in
        :meth:`segiou.ScoreHistogram.update`.
    activation : {"softmax", "sigmoid"}, optional
        For a histogram, as in :meth:`segiou.ScoreHistogram.update`.
    threshold : float, optional
        With two classes, the second is predicted if its score is greater than this.
    output_transform : callable
        Converts the engine's output to ``(y_pred, y)``.
    ids : bool
        Whether the converted output is ``(y_pred, y, ids)``, with one id per
        image, as for :class:`segiou.hooks.images.ImageCounts`. Memory then grows
        by about 1 KiB per image, and ``state_dict`` does not contain the counts.
    conflict : {"error", "first"}
        Treatment of an image that is counted twice with different results.
    device : str or torch.device
        Device of the counts.
    """

    _state_dict_all_req_keys = ("_sums", "_maxima")

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores | None = None,
        protocol: Protocol | str = "segiou",
        axis: int | None = 1,
        activation: Activation | None = None,
        threshold: float | None = None,
        output_transform: Callable[..., Any] = lambda output: output,
        ids: bool = False,
        conflict: Conflict = "error",
        device: str | torch.device = "cpu",
        **options: Any,
    ) -> None:
        options |= {"axis": axis, "activation": activation, "threshold": threshold}
        options |= {"protocol": protocol, "default": DEFAULT}
        self.scoring = scoring_of(labels, scores=scores, **options)
        self.counter = counter_of(self.scoring)
        only_for_pixels(self.scoring, ids=ids)
        self._images = ImageCounts.from_options(self.scoring.options, conflict=conflict)
        self._has_ids, self._is_checked = ids, False
        super().__init__(output_transform=output_transform, device=device)

    @reinit__is_reduced
    def reset(self) -> None:
        """Discard all counts."""
        sums, maxima = self.counter.empty()
        self._sums, self._maxima = sums.to(self._device), maxima.to(self._device)
        self._images.reset()
        super().reset()

    @reinit__is_reduced
    @not_compiled
    def update(self, output: Any) -> None:
        """Count one ``(y_pred, y)``, or ``(y_pred, y, ids)``."""
        pred, truth = output[0], output[1]
        if self._has_ids:
            truth, pred, decision = self.scoring.read(truth, pred)
            self._images.update(truth, pred, ids=output[2], **decision)
            return
        # A copy, because a state_dict holds the earlier sums.
        sums = self._sums.clone()
        self._sums, self._maxima = self.counter.add(sums, self._maxima, truth, pred)

    def confusion_matrix(self) -> ConfusionMatrix:
        """All counts so far of all processes, as a :class:`segiou.ConfusionMatrix`."""
        return of_kind(self._counted(), ConfusionMatrix)

    def histogram(self) -> ScoreHistogram:
        """All counts so far of all processes, as a :class:`segiou.ScoreHistogram`."""
        return of_kind(self._counted(), ScoreHistogram)

    @sync_all_reduce("_sums:SUM", "_maxima:MAX")
    def _counted(self) -> Any:
        if self._has_ids:
            return add_up(self._images, _gather).total()
        return self.counter.accumulated(self._sums, self._maxima)

    def completed(self, engine: Any, name: str) -> None:
        """Compute the scores of the engine's epoch."""
        if not (self._has_ids or self._is_checked) and idist.get_rank() == 0:
            self._is_checked = True
            loader, fix = engine.state.dataloader, fix_of_repeats(self.scoring, _FIX)
            warn_of_repeated_images(name, loader, idist.get_world_size(), fix)
        super().completed(engine, name)

    def compute(self) -> float | dict[str, float]:
        """The scores over all processes: a number or a mapping."""
        values = self.scoring.values(self._counted())
        return values[self.scoring.only] if self.scoring.only else values


def _gather(item: Any) -> list[Any]:
    gathered: list[Any] = idist.all_gather(item) if idist.get_world_size() > 1 else [item]
    return gathered
