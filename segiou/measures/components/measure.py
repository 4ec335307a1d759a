"""The measure of single components: Dice and IoU around each true component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import label_arrays
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Score, mean_of_parts
from segiou.measures.structures import StructureOptions, StructurePlan
from segiou.metrics.ratio import Floats, exact_parts, ratio
from segiou.regions.components import label_components

#: Weight of true positives in each ratio.
_WEIGHTS = {"Dice": 2, "IoU": 1}


def component_counts(truth: Any, pred: Any) -> NDArray[np.int64]:
    """Count pixels around each connected component of the truth.

    Every pixel belongs to the nearest component, regardless of spacing; components
    have 8 or 26 neighbours. Ties are broken as in SciPy.

    Parameters
    ----------
    truth, pred : array_like of bool, equal shapes (H, W) or (D, H, W)
        Masks of one structure.

    Returns
    -------
    ndarray of int64, shape (K, 3)
        True positives, false positives and false negatives of each component.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes differ.

    References
    ----------
    MONAI, ``DiceMetric(per_component=True)``; A. Jaus et al., CC-Metrics (2024).

    Examples
    --------
    >>> component_counts([[1, 1, 0, 0, 0, 1]], [[1, 0, 0, 0, 1, 1]])
    array([[1, 0, 1],
           [1, 1, 0]])
    """
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped, unused-ignore]

    true, predicted = (side != 0 for side in label_arrays(truth, pred, ("truth", "pred")))
    ids = label_components(true)
    number = int(ids.max(initial=0))
    if not number:
        return np.zeros((0, 3), np.int64)
    nearest = distance_transform_edt(ids == 0, return_distances=False, return_indices=True)
    owner = ids[tuple(nearest)]
    parts = (true & predicted, ~true & predicted, true & ~predicted)
    return np.stack([np.bincount(owner[part], minlength=number + 1)[1:] for part in parts], -1)


@dataclass(frozen=True)
class ComponentOptions(StructureOptions):
    """Dice and IoU per connected component of the truth, so small ones weigh the same.

    Attributes
    ----------
    classes : tuple of str or int
        As for :class:`segiou.measures.StructureOptions`: all but a background by default.

    Examples
    --------
    >>> ComponentOptions(("lesion",))
    ComponentOptions(classes=('lesion',))
    """

    key: ClassVar[str] = "components"
    title: ClassVar[str] = "Components"
    score_names: ClassVar[tuple[str, ...]] = (
        *("component_dice", "component_iou", "component_dice_cases", "component_iou_cases"),
    )

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return ComponentPlan(self, classes, masks)


@dataclass(frozen=True)
class ComponentPlan(StructurePlan):
    """Plan of the measure of components."""

    measure: ComponentOptions

    @property
    def layout(self) -> Layout:
        """Class, TP, FP and FN of each component; and mean Dice and IoU of each image."""
        shape = self.classes.num_classes, 2
        return {
            "components": Field((4,), rows=True),
            "cases": Field(shape, rows=True, floats=True, single=True),
        }

    def count(self, pair: MaskPair) -> Parts:
        """Count the pixels around the components of one image."""
        rows = [np.zeros((0, 4), np.int64)]
        for index in self.scored:
            counts = component_counts(*(side == index for side in pair.indices))
            rows.append(np.insert(counts, 0, index, axis=1))
        parts = Parts.of(self.layout, components=np.concatenate(rows))
        cases = [mean_of_parts(self._sums(weight, parts)) for weight in _WEIGHTS.values()]
        return Parts.of(self.layout, components=parts["components"], cases=np.stack(cases, -1))

    def check(self, parts: Parts) -> None:
        """Reject rows of other classes, and components without pixels."""
        rows = parts["components"]
        wrong = ~np.isin(rows[:, 0], self.scored) | (rows < 0).any(1)
        wrong |= rows[:, 1] + rows[:, 3] < 1
        if wrong.any():
            msg = "a component has an unknown class or impossible numbers"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Means over all components, and over the means of the images."""
        names = self.classes.labels.class_names
        include = self.is_scored & self.classes.include
        scores = {}
        for at, (title, weight) in enumerate(_WEIGHTS.items()):
            sums, cases = partial(self._sums, weight), partial(_cases, include, at)
            pooled = f"component_{title.lower()}", f"component {title}"
            each = f"{pooled[0]}_cases", f"{pooled[1]}, cases"
            scores[pooled[0]] = Score.of_names(*pooled, names, include, sums, mean_of_parts)
            scores[each[0]] = Score.of_cases(*each, names, cases)
        return scores

    def _sums(self, weight: int, parts: Parts) -> NDArray[np.int64]:
        """Sum of the ratios w·TP / (w·TP + FP + FN) and number of components, (N, C, 3)."""
        index, tp, fp, fn = parts["components"].T
        units = exact_parts(ratio(weight * tp, weight * tp + fp + fn))
        numbers = np.zeros((len(parts), self.classes.num_classes, 3), np.int64)
        values = np.append(units, np.ones_like(units[:, :1]), axis=1)
        np.add.at(numbers, (parts.owner("components"), index), values)
        return numbers


def _cases(include: NDArray[np.bool_], at: int, parts: Parts) -> Floats:
    return np.where(include, parts["cases"][..., at], np.nan)
