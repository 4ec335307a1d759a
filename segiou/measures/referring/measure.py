"""The measure of referring segmentation: one mask per expression, which may have no target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import read_several
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Score
from segiou.measures.structures import TargetPlan
from segiou.metrics.ratio import Floats, exact_parts, joined_parts, ratio

#: Thresholds of precision: the score ``precision_70`` counts expressions with IoU of at least .7.
_THRESHOLDS = (70, 80, 90)


@dataclass(frozen=True)
class ReferringOptions(Measure):
    """Referring and reasoning segmentation: gIoU, cIoU, precision, N-acc and T-acc.

    Every pair is one expression, whose truth may be empty. Rules: Liu et al., CVPR 2023
    (gRefCOCO); Lai et al., CVPR 2024 (LISA) agrees on masks.

    Attributes
    ----------
    target : tuple of str or int
        Name or index of the class that the expressions refer to; by default the second
        of two classes.

    Examples
    --------
    >>> ReferringOptions(("target",))
    ReferringOptions(target=('target',))
    """

    key: ClassVar[str] = "referring"
    title: ClassVar[str] = "Referring segmentation"
    score_names: ClassVar[tuple[str, ...]] = (
        *("giou", "ciou", "n_acc", "t_acc"),
        *(f"precision_{threshold}" for threshold in _THRESHOLDS),
    )

    target: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", tuple(read_several("target", self.target, "classes")))

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return ReferringPlan(self, classes, masks)


@dataclass(frozen=True)
class ReferringPlan(TargetPlan):
    """Plan of the referring measure."""

    measure: ReferringOptions

    @property
    def layout(self) -> Layout:
        """Pixels of truth, prediction and both, of each expression."""
        return {"expressions": Field((3,), rows=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Count the pixels of one expression."""
        truth, pred = (side == self.target for side in pair.indices)
        sizes = [np.count_nonzero(side) for side in (truth, pred, truth & pred)]
        return Parts.of(self.layout, expressions=[sizes])

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """The scores by name."""
        rules: dict[str, tuple[str, Callable[[NDArray[Any]], Any]]] = {
            "giou": ("gIoU", _giou),
            "ciou": ("cIoU", lambda rows: (rows[:, 2], _union(rows))),
            "n_acc": ("N-acc", lambda rows: ((rows[:, :2] == 0).all(1), rows[:, 0] == 0)),
            "t_acc": ("T-acc", lambda rows: ((rows[:, :2] > 0).all(1), rows[:, 0] > 0)),
        }
        for threshold in _THRESHOLDS:
            title = f"Pr@0.{threshold // 10}"
            rules[f"precision_{threshold}"] = (title, partial(_reached, threshold))
        return {
            key: _score(key, title, self.target_name, rule) for key, (title, rule) in rules.items()
        }


def _score(key: str, title: str, name: str, rule: Callable[[NDArray[Any]], Any]) -> Score:
    """A ratio of two sums over expressions."""

    def sums(parts: Parts) -> NDArray[Any]:
        terms = np.stack([np.asarray(n, np.int64) for n in rule(parts["expressions"])], -1)
        return parts.summed("expressions", terms)[:, None]

    def divided(totals: NDArray[Any]) -> Floats:
        return ratio(joined_parts(totals) if key == "giou" else totals[..., 0], totals[..., -1])

    return Score.of_names(key, title, (name,), (True,), sums, divided)


def _union(rows: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(rows[:, 0] + rows[:, 1] - rows[:, 2])


def _giou(rows: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """IoU of each expression in parts, 1 if truth and prediction are empty; and their number."""
    values = np.where(_union(rows) == 0, 1.0, ratio(rows[:, 2], _union(rows)))
    return *exact_parts(values).T, np.ones(len(rows))


def _reached(threshold: int, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Whether the IoU of each expression with a target reaches a threshold, in per cent."""
    return (100 * rows[:, 2] >= threshold * _union(rows)) & (rows[:, 0] > 0), rows[:, 0] > 0
