"""One accumulator for loops: a confusion matrix and any measures, image by image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.labels.class_options import ClassOptions
from segiou.measures.measure import MaskPair, Masks, Measure, Plan
from segiou.measures.parts import Parts
from segiou.measures.registry import measure_of


class Evaluator:
    """Counts pixels and measures of one image after another; evaluators add up.

    Examples
    --------
    >>> found = Evaluator(2, measures=["objects"]).update([[0, 1]], [[0, 1]])
    >>> found.scores()
    {'mean_iou': 1.0, 'pq': 1.0, 'sq': 1.0, 'rq': 1.0}
    """

    def __init__(
        self,
        labels: Any,
        *,
        measures: Iterable[Measure | str] = (),
        masks: Masks | None = None,
        **options: Any,
    ) -> None:
        classes = ClassOptions.of(labels, **options)
        chosen = [measure_of(m).of(True) if isinstance(m, str) else m for m in measures]
        self.matrix: ConfusionMatrix = ConfusionMatrix.from_options(classes)
        self.plans: tuple[Plan, ...] = tuple(m.plan(classes, masks or Masks()) for m in chosen)
        self._parts: dict[str, list[Parts]] = {plan.key: [] for plan in self.plans}

    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        spacing: Any = None,
        ids: Any = (None, None),
    ) -> Self:
        """Count one image."""
        tally = self.matrix.count(truth, pred, mask=mask)
        self.matrix.add(tally, pairs=1)
        pair = MaskPair(
            np.asarray(truth), np.asarray(pred), self.matrix.options, ids, mask, spacing, tally
        )
        for plan in self.plans:
            several = self._parts[plan.key]
            several.append(plan.count(pair))
            if len(several) > 64:
                several[:] = [Parts.joined(plan.layout, several).total]
        return self

    def total(self, key: str) -> Parts:
        """What a measure counted in all."""
        layout = next(plan.layout for plan in self.plans if plan.key == key)
        return Parts.joined(layout, self._parts[key]).total

    def scores(self) -> dict[str, float]:
        """The mean of every score."""
        found = {"mean_iou": self.matrix.report().mean_iou}
        for plan in self.plans:
            total = self.total(plan.key)
            found |= {name: float(score.values(total)[0]) for name, score in plan.scores.items()}
        return found

    def merge(self, *others: Evaluator) -> Self:
        """Add others."""
        self.matrix.merge(*(other.matrix for other in others))
        for plan in self.plans:
            self._parts[plan.key] += [other.total(plan.key) for other in others]
        return self

    def state_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        parts = {
            plan.key: {**plan.to_dict(), "parts": self.total(plan.key).to_dict()}
            for plan in self.plans
        }
        return {"matrix": self.matrix.state_dict(), "measures": parts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """What :meth:`state_dict` gave."""
        new = cls.__new__(cls)
        new.matrix = ConfusionMatrix._of_state(state["matrix"]).load_state_dict(state["matrix"])
        from segiou.measures.registry import plan_of

        new.plans = tuple(plan_of(k, d, new.matrix.options) for k, d in state["measures"].items())
        new._parts = {
            p.key: [Parts.from_dict(p.layout, state["measures"][p.key]["parts"])] for p in new.plans
        }
        return new
