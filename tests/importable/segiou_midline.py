"""Centreline Dice (S. Shit et al., CVPR 2021), as another package would add it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from segiou.measures import Field, Measure, Parts, Plan, Score


def centreline(mask):
    """The middle row of each column: enough of a skeleton for horizontal tubes."""
    rows = np.arange(len(mask))[:, None]
    number = mask.sum(0)
    middle = np.rint((mask * rows).sum(0) / np.maximum(number, 1)).astype(int)
    return (rows == middle) & (number > 0)


def share(part, whole):
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


@dataclass(frozen=True)
class CentrelineDice(Measure):
    """Share of the centrelines of each class that lies within the other mask."""

    key = "midline"
    title = "Centrelines"
    options = """centrelines: score
  --midline  score centrelines too: the centreline Dice of each class
  --midline-dilate PIXELS  a centreline may lie so many pixels beside the other mask"""

    dilate: int = 0

    def __post_init__(self):
        if self.dilate < 0:
            msg = f"dilate must not be negative, got {self.dilate}"
            raise ValueError(msg)

    def plan(self, classes, masks):
        return CentrelinePlan(self, classes, masks)


class CentrelinePlan(Plan):
    @property
    def layout(self):
        # Of each class: predicted centreline within the truth, and all of it; and of the truth.
        return {"lines": Field((self.classes.num_classes, 4))}

    def count(self, pair):
        found = np.zeros((self.classes.num_classes, 4), np.int64)
        for c in range(self.classes.num_classes):
            truth, pred = (side == c for side in pair.indices)
            for k, (one, other) in enumerate(((pred, truth), (truth, pred))):
                line, reach = centreline(one), other.copy()
                for _ in range(self.measure.dilate):
                    reach[1:] |= other[:-1]
                    reach[:-1] |= other[1:]
                found[c, 2 * k : 2 * k + 2] = (line & reach).sum(), line.sum()
        return Parts.of(self.layout, lines=found)

    @cached_property
    def scores(self):
        def midline(lines):
            precision = np.nan_to_num(share(lines[..., 0], lines[..., 1]))
            recall = np.nan_to_num(share(lines[..., 2], lines[..., 3]))
            found = np.nan_to_num(share(2 * precision * recall, precision + recall))
            return np.where(lines[..., 1] + lines[..., 3] > 0, found, np.nan)

        seen = {"seen": lambda parts: parts["lines"][..., 3] > 0}
        lines = lambda parts: parts["lines"]  # noqa: E731
        score = Score.of_classes("midline", "clDice", self.classes, lines, midline, **seen)
        return {"midline": score}
