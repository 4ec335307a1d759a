"""The built-in measure of areas: the area of each class on the ground in truth and prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_flag
from segiou._support.text import plural
from segiou.labels.class_options import ClassOptions
from segiou.masks.formats.georeference import Raster
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Quantity, Score
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.ratio import Floats, exact_parts, joined_parts, ratio

#: Exact sums have room for values up to 2³¹; this factor makes it 2⁵⁷ m², 280 times the Earth.
_SCALE = 2.0**26
#: Square metres of an image above which its georeference is wrong: 20 times the Earth.
_MOST = 1e16
_PER_HECTARE = 10_000
_COLUMNS = {
    "area_truth": "truth area",
    "area_pred": "predicted area",
    "area_difference": "difference of areas",
}


@dataclass(frozen=True)
class AreaOptions(Measure):
    """Area of each class in truth and prediction, from georeferenced masks.

    Attributes
    ----------
    required : bool
        Whether masks without a known pixel area are an error. Otherwise, areas
        are undefined if there is one.

    Examples
    --------
    >>> AreaOptions()
    AreaOptions(required=True)
    """

    key: ClassVar[str] = "area"
    title: ClassVar[str] = "Areas"
    score_names: ClassVar[tuple[str, ...]] = ("area_error",)
    version: ClassVar[int] = 2

    required: bool = True

    def __post_init__(self) -> None:
        check_flag("required", self.required)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> AreaOptions | None:
        """Options from the command line."""
        return cls(required=given["area"] is True) if given.get("area") else None

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return AreaPlan(self, classes, masks)


@dataclass(frozen=True)
class AreaPlan(Plan):
    """Plan of the area measure: the area of each class in truth and prediction."""

    measure: AreaOptions

    @property
    def layout(self) -> Layout:
        """Areas by class in parts that add up; whether the area of a pixel is unknown."""
        return {"areas": Field((self.classes.num_classes, 2, 2)), "unknown": Field((1,))}

    def count(self, pair: MaskPair) -> Parts:
        """Areas of one image."""
        number = self.classes.num_classes
        try:
            rows = (pair.raster or Raster()).pixel_areas(pair.truth.shape[0])
        except ValueError:
            if self.measure.required:
                raise
            return Parts.of(self.layout, unknown=[1])
        if not (most := rows.max(initial=0) * pair.truth.size) < _MOST:
            msg = f"covers {most:.3g} m², more than the Earth; correct its georeference"
            raise ValueError(msg)
        areas = []
        for codes in pair.indices:
            # One bin more, for pixels outside all classes.
            by_row = [np.bincount(row + 1, minlength=number + 1)[1:] for row in codes]
            areas.append(rows @ np.array(by_row))
        parts = exact_parts(np.stack(areas, -1) / _SCALE)
        return Parts.of(self.layout, areas=parts, unknown=[0])

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """The absolute difference relative to the area in the truth."""
        score = Score.of_classes(
            "area_error",
            "area error",
            self.classes,
            lambda parts: parts["areas"],
            _error,
            better="lower",
            scale="log",  # may exceed 1
            seen=lambda parts: parts["areas"][..., 0, :].any(-1),
        )
        return {"area_error": score}

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """The areas and the error of each image."""
        by_name = super().columns(parts)
        for name, values in zip(_COLUMNS, self._hectares(parts), strict=True):
            names = (f"{name}:{row}" for row in self.classes.labels.class_names)
            by_name |= zip(names, values.T, strict=True)
        return by_name

    @property
    def case_quantities(self) -> Mapping[str, Quantity]:
        """The areas; neither direction is better."""
        return {n: Quantity(n, title, unit="ha", better=None) for n, title in _COLUMNS.items()}

    def table(self, counted: Counted) -> ScoreTable:
        """Areas of each class, their difference and the error."""
        usual = super().table(counted)
        unknown = int(counted.total["unknown"].sum())
        note = "areas: pixels neither ignored nor unassigned, by the georeference of the files"
        if unknown:
            note = f"areas are undefined: the pixel area of {plural(unknown, 'mask')} is unknown"
        titles = ("truth", "prediction", "difference")
        columns = [
            ScoreValues(
                name,
                title,
                dict(zip(usual.rows, np.where(unknown, math.nan, values[0]).tolist(), strict=True)),
                (math.nan,),
                unit="ha",
                better=None,
            )
            for name, title, values in zip(
                _COLUMNS, titles, self._hectares(counted.total), strict=True
            )
        ]
        about = "Area of each class in truth and prediction."
        return replace(usual, about=about, columns=(*columns, *usual.columns), note=note)

    def _hectares(self, parts: Parts) -> tuple[Floats, ...]:
        """Truth, prediction and difference of N images, each (N, C)."""
        truth, pred = np.moveaxis(joined_parts(parts["areas"]) * _SCALE / _PER_HECTARE, -1, 0)
        return truth, pred, pred - truth


def _error(sums: NDArray[Any]) -> Floats:
    """Difference relative to the truth, from the parts of both areas, (..., C, 4)."""
    truth, pred = joined_parts(sums[..., :2]), joined_parts(sums[..., 2:])
    return ratio(np.abs(pred - truth), truth)
