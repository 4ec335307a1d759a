"""The built-in measure of boundaries: counts per pair, scores and their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_sums import BoundaryCounts, layout
from segiou.boundary.codes import LabelCodes
from segiou.boundary.image import count_labels
from segiou.boundary.measures import boundary_rows
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
        """Boundary IoU at the first width."""
        if not self.measure.widths:
            return {}
        title = _TITLES["boundary_iou"]
        return {
            "boundary_iou": Score.of_classes(
                "boundary_iou",
                title,
                self.classes,
                self._bands,
                _iou,
                seen=lambda parts: self._bands(parts)[..., [0, 2]].any(-1),
            )
        }

    def _bands(self, parts: Parts) -> NDArray[np.int64]:
        found = self.counts(parts).band_counts()[:, 0]
        return np.stack([found.tp, found.fp, found.fn], axis=-1)

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
        columns = []
        for row in (
            one for one in [*shown, *(r for r in rows if r not in shown)] if one["classes"]
        ):
            parts = (row["measure"], row["tolerance"], row["contour"])
            distance = row["tolerance"] is None
            values = tuple(row["classes"].values())
            means = (row["mean"], row["mean_classes"])
            head = self._head(row) if row in shown else ""
            unit = "px" if tuple(self.measure.spacing) == (1.0, 1.0) else ""
            kind: Any = {"kind": "distance", "unit": unit, "better": "lower"} if distance else {}
            column = Column(":".join(filter(None, parts)), head, values, means, **kind, digits=1)
            if row is shown[0] and (own := found.intervals.get("boundary_iou")) is not None:
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
