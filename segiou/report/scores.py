"""Every number of one evaluation, and the rule by which it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counting import BACKEND
from segiou.counts import ChannelTally, Counts, Tally
from segiou.fine_grained import FineGrained, fine_grained
from segiou.imbalance import Imbalance, explain, majority_class, majority_counts
from segiou.metrics import Floats
from segiou.protocols import Mean, Protocol
from segiou.report.rows import ClassRow, WorstImages, class_rows, sorted_rows
from segiou.uncertainty import Intervals

__all__ = ["Scores"]


@dataclass(frozen=True, eq=False)
class Scores:
    """The numbers of a :class:`segiou.Report`, all functions of its counts."""

    class_names: tuple[str, ...]
    tally: Tally | ChannelTally
    pairs: int
    protocol: Protocol
    include: NDArray[np.bool_]
    per_image: Counts | None = None
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    title: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    intervals: Intervals | None = None
    boundary: tuple[Mapping[str, Any], ...] = ()
    boundary_options: Mapping[str, Any] | None = None
    worst_images: WorstImages | None = None
    left_out: int = 0

    @cached_property
    def counts(self) -> Counts:
        """Counts of the data set, shape (C,)."""
        return self.tally.counts

    @property
    def backend(self) -> str:
        """Which counting routine is live."""
        return BACKEND

    @property
    def unit(self) -> str:
        """What the counts count, in words."""
        return "pixels"

    @property
    def pixels(self) -> int:
        """Pixels seen."""
        return int(self.tally.pixels)

    @property
    def ignored(self) -> int:
        """Pixels dropped by their truth value or a mask."""
        return int(self.tally.ignored)

    @property
    def matrix(self) -> NDArray[np.int64]:
        """Confusion matrix (C, C); rows are truth. Empty for overlapping channels."""
        return self.tally.matrix

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class whose prediction names no class, (C,)."""
        return self.tally.unassigned

    @cached_property
    def classes(self) -> tuple[ClassRow, ...]:
        """The classes in the label set's order."""
        return class_rows(self.class_names, self.counts, self._shares())

    def sorted_classes(self, key: str = "order", *, reverse: bool = False) -> tuple[ClassRow, ...]:
        """The classes by ``"order"`` or a column of theirs; undefined values come last."""
        return sorted_rows(self.classes, key, reverse=reverse)

    @cached_property
    def iou_mean(self) -> Mean:
        """Mean IoU with what it covers and skips."""
        return self._mean(metrics.iou)

    @property
    def mean_iou(self) -> float:
        """Mean IoU by the report's protocol."""
        return self.iou_mean.value

    @property
    def mean_iou_classes(self) -> int:
        """Number of classes that the mean IoU covers."""
        return self.iou_mean.classes

    @cached_property
    def mean_dice(self) -> float:
        """Mean Dice by the report's protocol."""
        return self._mean(metrics.dice).value

    @cached_property
    def mean_accuracy(self) -> float:
        """Mean recall by the report's protocol."""
        return self._mean(metrics.recall).value

    @cached_property
    def pixel_accuracy(self) -> float:
        """Share of the valid pixels that are right."""
        return float(metrics.pixel_accuracy(self.counts))

    @cached_property
    def frequency_weighted_iou(self) -> float:
        """IoU weighted by truth pixels."""
        return float(metrics.frequency_weighted_iou(self.counts))

    @cached_property
    def cohen_kappa(self) -> float:
        """Cohen's kappa."""
        return float(metrics.cohen_kappa(self.counts))

    @property
    def boundary_iou(self) -> float:
        """Mean Boundary IoU at the first width; NaN where it was not measured."""
        means = (row["mean"] for row in self.boundary if row["measure"] == "boundary_iou")
        return float(next(means, np.nan))

    @property
    def gap(self) -> float:
        """Pixel accuracy minus mean IoU."""
        return self.pixel_accuracy - self.mean_iou

    @cached_property
    def majority(self) -> dict[str, Any]:
        """What always answering the most frequent class would score."""
        chosen = majority_class(self.counts)
        counts = majority_counts(self.counts, chosen)
        images = None if self.per_image is None else majority_counts(self.per_image, chosen)
        mean = self.protocol.mean(metrics.iou, counts, include=self.include, per_image=images)
        return {
            "class": self.class_names[chosen],
            "pixel_accuracy": float(metrics.pixel_accuracy(counts)),
            "mean_iou": mean.value,
        }

    @cached_property
    def fine_grained(self) -> FineGrained | None:
        """IoU image by image: averages and worst cases; None where images were not kept apart."""
        if self.per_image is None:
            return None
        return fine_grained(self.per_image, include=self.include)

    @cached_property
    def imbalance(self) -> Imbalance:
        """What pixel accuracy hides: the gap to mean IoU taken apart."""
        return explain(self)

    def interval_of(self, name: str | None = None) -> tuple[float, float] | None:
        """Interval of the IoU of a class, or of the mean; None where there is none."""
        if self.intervals is None:
            return None
        found = next((c for c in self.intervals.classes if c.name == name), None)
        if name is None:
            found = self.intervals.overall
        return None if found is None else (found.low, found.high)

    @cached_property
    def group_rows(self) -> tuple[ClassRow, ...]:
        """The groups as classes of their own: confusion within a group is correct."""
        if not self.groups:
            return ()
        merged = self.tally.merged_classes([members for _, members in self.groups])
        names = [name for name, _ in self.groups]
        return class_rows(names, merged.counts, metrics.share(merged.counts))

    def _shares(self) -> Floats:
        return metrics.share(self.counts)

    def _mean(self, metric: Callable[[Counts], Floats]) -> Mean:
        return self.protocol.mean(
            metric, self.counts, include=self.include, per_image=self.per_image
        )
