"""Panoptic quality as a :class:`torchmetrics.Metric`."""

from typing import Any

import torch

from segiou._support.arguments import check_choice
from segiou.counting.arrays import not_compiled, to_host
from segiou.hooks._scoring import digest
from segiou.hooks.hook_options import Scores
from segiou.hooks.torchmetrics import CountedScores
from segiou.measures.objects.panoptic import PanopticCounts

__all__ = ["PanopticScores"]


class PanopticScores(CountedScores):
    """Panoptic quality of everything since the last reset.

    The state consists of integers: TP, FP and FN per class, summed over processes,
    and the class, intersection, union and number of matches, concatenated.

    Parameters
    ----------
    labels, **options
        The classes, ``things``, ``ignore``, ``protocol`` and the other options of
        :class:`segiou.measures.objects.PanopticCounts`.
    scores : str or sequence of str
        ``"pq"``, ``"sq"`` or ``"rq"``, averaged over the classes that occur. The
        result is a number for one name and a dict for a sequence.
    metric_options : dict, optional
        Options of :class:`torchmetrics.Metric`.
    """

    detections: torch.Tensor
    pairs: torch.Tensor
    options: torch.Tensor
    overlaps: list[torch.Tensor]

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = "pq",
        metric_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        empty = PanopticCounts(labels, **options)
        super().__init__(scores, metric_options)
        self.names: tuple[str, ...] = (scores,) if isinstance(scores, str) else tuple(scores)
        for name in self.names:
            check_choice("scores", name, ("pq", "sq", "rq"))
        self.empty = empty
        zeros = torch.from_numpy(self.empty.detections)
        self.add_state("detections", zeros, dist_reduce_fx="sum")
        self.add_state("pairs", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("overlaps", [], dist_reduce_fx="cat")
        # Different options keep metrics out of the same compute group.
        options = torch.tensor(digest(empty.state_dict()))
        self.add_state("options", options, dist_reduce_fx="max")

    @not_compiled
    def update(self, preds: Any, target: Any) -> None:
        """Count a batch (B, …, 2) of the class and id of each pixel; target last."""
        counts = self.empty.empty()
        sides = {"target": to_host(target), "preds": to_host(preds)}
        for name, side in sides.items():
            if side.ndim < 3 or side.shape[-1] != 2:
                msg = f"{name} must have shape (B, …, 2) with class and id, got {side.shape}"
                raise ValueError(msg)
        for truth, pred in zip(*sides.values(), strict=True):
            counts.update(truth[..., 0], truth[..., 1], pred[..., 0], pred[..., 1])
        device = self.detections.device
        self.detections = self.detections + torch.from_numpy(counts.detections).to(device)
        self.overlaps.append(torch.from_numpy(counts.overlaps).to(device))
        self.pairs = self.pairs + counts.pairs

    @property
    @not_compiled
    def counts(self) -> PanopticCounts:
        """All counts so far, as :class:`segiou.measures.objects.PanopticCounts`."""
        # After a sync over processes, the list is a single tensor.
        several = [self.overlaps] if isinstance(self.overlaps, torch.Tensor) else self.overlaps
        state = {
            "counts": self.detections.cpu().numpy(),
            "overlaps": [row for part in several for row in part.cpu().tolist()],
            "pairs": int(self.pairs),
        }
        return self.empty.empty().load_state_dict({**self.empty.state_dict(), **state})

    @not_compiled
    def compute(self) -> "torch.Tensor | dict[str, torch.Tensor]":
        """Compute the scores: a scalar or a dict of scalars."""
        quality = self.counts.panoptic_quality()
        return self._to_tensors({name: quality[name] for name in self.names})

    def _sync_dist(self, *rest: Any, **keywords: Any) -> None:
        # A process without a batch contributes an empty tensor of the same shape and type.
        self.overlaps = self.overlaps or [self.detections.new_zeros((0, 4))]
        super()._sync_dist(*rest, **keywords)
