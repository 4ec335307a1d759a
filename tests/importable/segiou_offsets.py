"""How far the centres of structures lie apart: counts, and float rows of each case."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from segiou.measures import Field, Measure, Parts, Plan, Score


@dataclass(frozen=True)
class Offsets(Measure):
    """Distance between the centres of truth and prediction, and how often both are there."""

    key = "offsets"
    title = "Centre offsets"
    noun = "offsets"
    options = """offsets: score
  --offsets  score the distance between the centres of each class too
  --offsets-scale SCALE  unit of the distances, in pixels"""
    score_names = ("offset", "presence")

    scale: float = 1.0

    def plan(self, classes, masks):
        return OffsetPlan(self, classes, masks)


class OffsetPlan(Plan):
    @property
    def layout(self):
        number = self.classes.num_classes
        return {
            "present": Field((number, 3)),  # in both, in the truth, in the prediction
            "offsets": Field((number,), rows=True, floats=True),
        }

    def count(self, pair):
        number = self.classes.num_classes
        present, offsets = np.zeros((number, 3), int), np.full((1, number), np.nan)
        for c in range(number):
            places = [np.argwhere(side == c) for side in pair.indices]
            there = [len(side) > 0 for side in places]
            present[c] = all(there), *there
            if all(there):
                apart = places[0].mean(0) - places[1].mean(0)
                offsets[0, c] = np.hypot(*apart) / self.measure.scale
        return Parts.of(self.layout, present=present, offsets=offsets)

    @cached_property
    def scores(self):
        def numbers(parts):
            known = ~np.isnan(parts["offsets"])
            return np.stack([np.nan_to_num(parts["offsets"]), known], axis=-1)

        def mean(sums):
            with np.errstate(invalid="ignore"):
                return np.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1], np.nan)

        def presence(sums):
            total = sums[..., 1] + sums[..., 2]
            with np.errstate(invalid="ignore"):
                return np.where(total > 0, 2 * sums[..., 0] / total, np.nan)

        how = {"seen": lambda parts: parts["present"][..., 1] > 0}
        return {
            "offset": Score.of_classes(
                "offset", "offset", self.classes, numbers, mean, unit="px", better="lower", **how
            ),
            "presence": Score.of_classes(
                "presence", "presence", self.classes, lambda p: p["present"], presence, **how
            ),
        }
