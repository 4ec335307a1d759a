"""The measure of cells: scores of objects with ids under the names of the tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.labels.class_options import ClassOptions
from segiou.measures.cells.matching import (
    THRESHOLDS,
    CellCounts,
    CellScores,
    Overlaps,
    average_precision,
    f1,
)
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import (
    OVERALL,
    Score,
    case_values,
    finite_parts,
    mean_first,
    mean_of_parts,
)
from segiou.measures.structures import StructureOptions, StructurePlan
from segiou.metrics.ratio import Floats, exact_parts

#: The scores of images in the array ``cases``, with their titles.
_CASES = {
    "cellpose_ap50": "AP50 (Cellpose)",
    "cellpose_ap75": "AP75 (Cellpose)",
    "cellpose_ap90": "AP90 (Cellpose)",
    "cellpose_aji": "AJI (Cellpose)",
    "hovernet_aji": "AJI (HoVer-Net)",
    "hovernet_aji_plus": "AJI+ (HoVer-Net)",
    "hovernet_dq": "DQ (HoVer-Net)",
    "hovernet_sq": "SQ (HoVer-Net)",
    "hovernet_pq": "PQ (HoVer-Net)",
}


@dataclass(frozen=True)
class CellOptions(StructureOptions):
    """Cells and other objects with ids, as StarDist, Cellpose, HoVer-Net and the CTC score them.

    Attributes
    ----------
    classes : tuple of str or int
        As for :class:`segiou.measures.StructureOptions`: all but a background by default.

    Examples
    --------
    >>> CellOptions()
    CellOptions(classes=())
    """

    key: ClassVar[str] = "cells"
    title: ClassVar[str] = "Cells"
    score_names: ClassVar[tuple[str, ...]] = (
        *CellScores.__annotations__,
        *("pannuke_mpq", "pannuke_bpq"),
    )

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return CellPlan(self, classes, masks)


@dataclass(frozen=True)
class CellPlan(StructurePlan):
    """Plan of the measure of cells."""

    measure: CellOptions

    @property
    def layout(self) -> Layout:
        """Numbers of objects and the sum of SEG per class; and the scores of each image.

        The last row of ``cases`` has those of the objects of all classes together.
        """
        number = self.classes.num_classes
        return {
            "objects": Field((number, 2 + len(THRESHOLDS))),
            "seg": Field((number, 2)),
            "cases": Field((number + 1, len(_CASES)), rows=True, floats=True, single=True),
        }

    def count(self, pair: MaskPair) -> Parts:
        """Match the cells of one image."""
        arrays: dict[str, Any] = {
            name: np.zeros(field.shape, field.dtype) for name, field in self.layout.items()
        }
        arrays["cases"].fill(np.nan)
        for index in self.scored:
            counts = _matched(pair, [index])
            arrays["objects"][index] = counts.objects
            arrays["seg"][index] = exact_parts(counts.seg).sum(0)
            arrays["cases"][index] = counts.of_image
        is_one = len(self.scored) == 1  # then its scores are those of all cells
        of_all = counts if is_one else _matched(pair, self.scored)
        arrays["cases"][-1] = of_all.of_image
        return Parts.of(self.layout, **arrays)

    def check(self, parts: Parts) -> None:
        """Reject more matches than objects."""
        objects = parts["objects"]
        if (objects[..., 2:].max(-1, initial=0) > objects[..., :2].min(-1)).any():
            msg = "more matched cells than cells"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """The scores by name: of all objects together, or means over images."""
        every = (
            self._pooled("stardist_ap50", "AP50 (StarDist)", _precision_at(0.5)),
            self._pooled("stardist_ap75", "AP75 (StarDist)", _precision_at(0.75)),
            self._pooled("stardist_ap", "AP (StarDist)", _mean_precision),
            self._pooled("stardist_f1", "F1 (StarDist)", f1),
            *(
                self._image_mean(name, title, partial(_class_cases, at))
                for at, (name, title) in enumerate(_CASES.items())
            ),
            self._seg(),
            self._whole_image_mean("pannuke_mpq", "mPQ (PanNuke)", self._mean_pq),
            self._whole_image_mean("pannuke_bpq", "bPQ (PanNuke)", _binary_pq),
        )
        return {score.name: score for score in every}

    @property
    def _include(self) -> NDArray[np.bool_]:
        return self.is_scored & self.classes.include

    def _pooled(self, name: str, title: str, formula: Callable[[Any], Floats]) -> Score:
        """A score of all objects together."""
        names = self.classes.labels.class_names
        return Score.of_names(name, title, names, self._include, _objects, formula)

    def _image_mean(self, name: str, title: str, values: Callable[[Parts], Floats]) -> Score:
        """A mean over the images that have a true object."""
        score = Score.of_cases(name, title, self.classes.labels.class_names, values)
        return score.over_classes(self._include)

    def _seg(self) -> Score:
        names = self.classes.labels.class_names
        return Score.of_names("ctc_seg", "SEG (CTC)", names, self._include, _segs, mean_of_parts)

    def _whole_image_mean(self, name: str, title: str, whole: Callable[[Parts], Floats]) -> Score:
        """A mean over images of a value of all classes; beside it, the mean PQ of each class."""
        names = self.classes.labels.class_names

        def values(parts: Parts) -> Floats:
            return np.concatenate([whole(parts), _class_cases(_PQ, parts)], axis=1)

        def sums(parts: Parts) -> NDArray[np.int64]:
            numbers = finite_parts(values(parts))
            return numbers.reshape(len(numbers), 3 * (1 + len(names)))

        def evaluate(flat: NDArray[Any]) -> Floats:
            return mean_of_parts(flat.reshape(*flat.shape[:-1], 1 + len(names), 3))

        return Score(name, title, names, sums, evaluate, overall=OVERALL, rule="cases", each=values)

    def _mean_pq(self, parts: Parts) -> Floats:
        """Mean PQ of the classes in the truth of each image, (N, 1)."""
        return mean_first(_class_cases(_PQ, parts), self._include)[:, :1]


_PQ = [*_CASES].index("hovernet_pq")


def _matched(pair: MaskPair, classes: Sequence[int]) -> CellCounts:
    """The cells of some classes of an image, matched without regard to the classes."""
    sides = (
        np.where(np.isin(codes, classes), ids, 0)
        for codes, ids in zip(pair.codes, pair.id_maps, strict=True)
    )
    return CellCounts.of(Overlaps.of(*sides))


def _binary_pq(parts: Parts) -> Floats:
    """PQ of each image without regard to the classes, (N, 1)."""
    return case_values(_PQ, parts)[:, -1:]


def _objects(parts: Parts) -> NDArray[np.int64]:
    return parts["objects"]


def _segs(parts: Parts) -> NDArray[np.int64]:
    """Sum of SEG in two parts and number of true objects, (N, C, 3)."""
    return np.concatenate([parts["seg"], parts["objects"][..., :1]], axis=-1)


def _class_cases(at: int, parts: Parts) -> Floats:
    """Values of a score of each image and class, (N, C)."""
    return case_values(at, parts)[:, :-1]


def _precision_at(threshold: float) -> Callable[[Any], Floats]:
    at = THRESHOLDS.index(threshold)
    return lambda objects: average_precision(objects)[..., at]


def _mean_precision(objects: NDArray[Any]) -> Floats:
    return np.asarray(average_precision(objects).mean(-1))
