"""The built-in measure of boundaries: counts per pair, scores and their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json
from segiou.boundary.boundary_image import count_labels
from segiou.boundary.boundary_options import BINS, BoundaryOptions, bin_distances
from segiou.boundary.boundary_scores import (
    boundary_rows,
    dice_of_lengths,
    distance_of_histograms,
    f1_of_lengths,
)
from segiou.boundary.boundary_sums import BoundaryCounts, layout
from segiou.boundary.contours import element_lengths
from segiou.boundary.label_codes import LabelCodes
from segiou.counting.encoding import Encoding
from segiou.measures.mask_pair import MaskPair
from segiou.measures.measure import Counted, Plan
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.score import Score
from segiou.measures.score_table import Column, ScoreTable
from segiou.metrics.ratio import Floats, ratio

_TITLES = {
    "boundary_iou": "Boundary IoU",
    "boundary_f1": "boundary F1",
    "surface_dice": "surface Dice",
    "hausdorff_95": "HD95",
}
#: The scores, and the rows of the report that show them.
_SCORES = {
    "boundary_iou": "Boundary IoU",
    "boundary_f1": "boundary F1",
    "boundary_surface_dice": "boundary surface Dice",
    "boundary_hd95": "boundary HD95",
}
_SCORE_OF = dict(zip(_TITLES, _SCORES, strict=True))
_ABOUT = (
    "Boundary agreement per class: overlap within a band along the outline (Boundary IoU), share "
    "of the outline matched within a tolerance (F1, surface Dice), and 95th-percentile distance "
    "(HD95; ∞ if a class has no counterpart in some image)."
)


@dataclass(frozen=True)
class BoundaryPlan(Plan):
    """Plan of the boundary measure."""

    measure: BoundaryOptions

    @property
    def layout(self) -> Layout:
        """The counts of an image as one row."""
        return {"table": Field((layout(self.classes.num_classes, self.measure)[0],))}

    @cached_property
    def _codes(self) -> LabelCodes:
        return LabelCodes(Encoding.of_classes(self.classes))

    def count(self, pair: MaskPair) -> Parts:
        """Count at the boundaries of a pair."""
        found = count_labels(self._codes, pair.truth, pair.pred, self.measure, pair.mask)
        return Parts.of(self.layout, table=found.table)

    def counts(self, parts: Parts) -> BoundaryCounts:
        """The counts of images, one row per image."""
        return BoundaryCounts(parts["table"], self.classes.num_classes, self.measure)

    def counts_of(self, run: Any) -> BoundaryCounts:
        """The counts of each image, about 10 KB per class with distances, 200 bytes without."""
        return self.counts(run.parts(self.key))

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Boundary IoU at the first width; of the first kind of contour, the others."""
        found = []
        if self.measure.widths:
            score = self._score("boundary_iou", self._bands, _iou)
            found.append(replace(score, seen=self._in_band))
        if self.measure.contours:
            far: Any = {"unit": self.unit or "units", "better": "lower", "is_smooth": False}
            score = self._score("boundary_hd95", self._distances, self._hd95)
            scores = [replace(score, alone=self._alone, **far)]
            if self.measure.tolerances:
                f1, dice = self._of_lengths(f1_of_lengths), self._of_lengths(dice_of_lengths)
                scores.insert(0, self._score("boundary_surface_dice", self._lengths, dice))
                scores.insert(0, self._score("boundary_f1", self._lengths, f1))
            found += [replace(one, seen=self._seen) for one in scores]
        return {one.name: one for one in found}

    def _score(self, name: str, numbers: Any, values: Any) -> Score:
        return Score.of_classes(name, _SCORES[name], self.classes, numbers, values)

    def _in_band(self, parts: Parts) -> NDArray[np.bool_]:
        """Whether the truth of each image has a band of each class, (N, C)."""
        return np.asarray(self._bands(parts)[..., [0, 2]].any(-1))

    def _seen(self, parts: Parts) -> NDArray[np.bool_]:
        """Whether the truth of each image has a contour of each class, (N, C)."""
        return np.asarray(self._contours(parts)["total"][:, 0].any(-1))

    @property
    def unit(self) -> str:
        """Unit of distances; empty if pixels have a size, whose unit is unknown."""
        return "px" if tuple(self.measure.spacing) == (1.0, 1.0) else ""

    def _bands(self, parts: Parts) -> NDArray[np.int64]:
        found = self.counts(parts).band_counts()[:, 0]
        return np.stack([found.tp, found.fp, found.fn], axis=-1)

    def _contours(self, parts: Parts) -> dict[str, NDArray[np.int64]]:
        return self.counts(parts).contour_parts(None)[1]

    def _lengths(self, parts: Parts) -> NDArray[np.int64]:
        """Elements within the first tolerance, and all, of both sides, (N, C, 2, 2, W)."""
        found = self._contours(parts)
        return np.moveaxis(np.stack([found["matched"][:, 0], found["total"]], 1), -2, 1)

    def _of_lengths(self, function: Callable[[Floats, Floats], Floats]) -> Any:
        lengths = element_lengths(self.measure.contours[0], self.measure.spacing)

        def values(numbers: NDArray[Any]) -> Floats:
            both = numbers.reshape(*numbers.shape[:-1], 2, 2, len(lengths)) @ lengths
            return function(*np.moveaxis(both, (-2, -3), (0, -1)))

        return values

    def _distances(self, parts: Parts) -> NDArray[np.int64]:
        """Histograms of both directions, (N, C, 2, W, bins)."""
        return np.moveaxis(self._contours(parts)["histogram"], 2, 1)

    def _hd95(self, numbers: NDArray[Any]) -> Floats:
        contour, kinds = self.measure.contours[0], numbers.shape[-1] // (2 * BINS)
        found = numbers.reshape(*numbers.shape[:-1], 2, kinds, BINS)
        return distance_of_histograms(np.moveaxis(found, -4, -3), 95, contour, self.measure)

    def _alone(self, parts: Parts) -> Floats:
        """Mean distance of each image; the largest counted distance if it is infinite."""
        values = self.scores["boundary_hd95"].of_images(parts)[:, 0]
        most = float(bin_distances(self.measure.resolution)[-2])
        return np.where(np.isfinite(values), values, most)

    def way(self) -> Mapping[str, Json]:
        """The first width, and whether the image border is a boundary."""
        if not self.measure.widths:
            return {}
        border = "" if self.measure.band_border else ", without the image border"
        return {"": f"{self.measure.widths[0]}{border}"}

    def difference(self, other: Any) -> str:
        """Describe the differences in options."""
        return str(self.measure.difference(other.measure))

    def table(self, found: Counted) -> ScoreTable:
        """Every measure as a column, of which text shows some."""
        names, include = self.classes.labels.class_names, self.classes.include
        counts = self.counts(found.total).summed()
        rows: Any = boundary_rows(counts, names, include=include)
        shown = [row for row in rows if row["measure"] == "boundary_iou"]
        for measure in ("boundary_f1", "surface_dice", "hausdorff_95"):
            shown += [row for row in rows if row["measure"] == measure][:1]
        first = {row["measure"]: row for row in reversed(shown)}
        columns = []
        for row in (
            one for one in [*shown, *(r for r in rows if r not in shown)] if one["classes"]
        ):
            parts = (row["measure"], row["tolerance"], row["contour"])
            distance = row["tolerance"] is None
            values = tuple(row["classes"].values())
            means = (row["mean"], row["mean_classes"])
            head = self._head(row) if row in shown else ""
            kind: Any = {"kind": "distance", "unit": self.unit, "better": "lower"}
            column = Column(":".join(filter(None, parts)), head, values, means, digits=1)
            column = column._replace(**(kind if distance else {}))
            own = found.intervals.get(_SCORE_OF.get(row["measure"], ""))
            if row is first.get(row["measure"]) and own is not None:
                column = column.with_limits(own, names, 1)
            columns.append(column)
        data = {"boundary": tuple(rows), "boundary_options": self.measure.to_dict()}
        return ScoreTable(
            "boundaries",
            "Boundaries",
            _ABOUT,
            names,
            tuple(columns),
            ("mean", "classes"),
            self._note(shown),
            data=data,
        )

    def _head(self, row: Mapping[str, Any]) -> str:
        if row["tolerance"] is None:
            return _TITLES[row["measure"]]
        of_pixels = row["contour"] is None or tuple(self.measure.spacing) == (1.0, 1.0)
        unit = " px" if of_pixels and not row["tolerance"].endswith("%") else ""
        return f"{_TITLES[row['measure']]} {row['tolerance']}{unit}"

    def _note(self, shown: list[dict[str, Any]]) -> str:
        o = self.measure
        parts = [f"boundaries: widths {_distances(o.widths)}"]
        if o.contours:
            parts += [
                f"contours of {' and '.join(o.contours)}",
                f"tolerances {_distances(o.tolerances)}",
            ]
        square = tuple(o.spacing) == (1.0, 1.0)
        if not square:
            parts.append(f"pixels of {o.spacing[0]:g} × {o.spacing[1]:g}")
        if o.border != "reference":
            parts.append(f"image border: {o.border}")
        if not square and any(row["measure"] == "hausdorff_95" for row in shown):
            parts.append("HD95 in these units")
        return "; ".join(parts)


def _iou(numbers: NDArray[Any]) -> Floats:
    return ratio(numbers[..., 0], numbers.sum(-1))


def _distances(values: Any) -> str:
    shown = (f"{100 * v.value:g} %" if v.unit == "diagonal" else f"{v.value:g}" for v in values)
    return ", ".join(shown) or "none"
