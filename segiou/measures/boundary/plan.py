"""The built-in measure of boundaries: counts per pair, scores and their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import short_percent
from segiou._support.text import Json
from segiou.counting.encoding import Encoding
from segiou.measures.boundary.bands import BandOptions
from segiou.measures.boundary.byte_codes import ByteCodes
from segiou.measures.boundary.image import count_labels
from segiou.measures.boundary.scores import boundary_rows
from segiou.measures.boundary.sums import BoundaryCounts, layout
from segiou.measures.mask_pair import MaskPair
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Score
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.ratio import Floats, ratio
from segiou.regions.label_codes import LabelCodes
from segiou.regions.tolerance import Tolerance

_ABOUT = "Boundary agreement per class: overlap within a band along the outline (Boundary IoU)."


@dataclass(frozen=True)
class BoundaryPlan(Plan):
    """Plan of the boundary measure."""

    measure: BandOptions

    @property
    def layout(self) -> Layout:
        """The counts of an image as one row."""
        return {"table": Field((layout(self.classes.num_classes, self.measure)[0],))}

    @cached_property
    def _codes(self) -> LabelCodes:
        return ByteCodes(Encoding.of_classes(self.classes))

    def count(self, pair: MaskPair) -> Parts:
        """Count at the boundaries of a pair."""
        counts = count_labels(self._codes, pair.truth, pair.pred, self.measure, pair.mask)
        return Parts.of(self.layout, table=counts.table)

    def counts(self, parts: Parts) -> BoundaryCounts:
        """The counts of images, one row per image."""
        return BoundaryCounts(parts["table"], self.classes.num_classes, self.measure)

    def counts_of(self, run: Any) -> BoundaryCounts:
        """The counts of each image, about 200 bytes per class."""
        return self.counts(run.parts(self.key))

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Boundary IoU at the first width."""
        score = Score.of_classes("boundary_iou", "Boundary IoU", self.classes, self._bands, _iou)
        return {score.name: replace(score, seen=self._seen)}

    def _bands(self, parts: Parts) -> NDArray[np.int64]:
        """True positives, false positives and false negatives in the bands, (N, C, 3)."""
        counts = self.counts(parts).band_counts()[:, 0]
        return np.stack([counts.tp, counts.fp, counts.fn], axis=-1)

    def _seen(self, parts: Parts) -> NDArray[np.bool_]:
        """Whether the truth of each image has a band of each class, (N, C)."""
        return np.asarray(self._bands(parts)[..., [0, 2]].any(-1))

    def way(self) -> Mapping[str, Json]:
        """The first width, and whether the image border is a boundary."""
        border = "" if self.measure.band_border else ", without the image border"
        return {"": f"{self.measure.widths[0]}{border}"}

    def difference(self, other: Any) -> str:
        """Describe differing options."""
        return str(self.measure.difference(other.measure))

    def table(self, counted: Counted) -> ScoreTable:
        """Every measure as a column, of which text shows Boundary IoU."""
        names, include = self.classes.labels.class_names, self.classes.include
        rows: Any = boundary_rows(self.counts(counted.total).summed(), names, include=include)
        columns = [self._column(row) for row in rows if row["classes"]]
        columns[0] = replace(columns[0], intervals=counted.intervals.get("boundary_iou"))
        data = {"boundary": tuple(rows), "boundary_options": self.measure.to_dict()}
        return ScoreTable(
            key="boundaries",
            title="Boundaries",
            about=_ABOUT,
            rows=names,
            columns=tuple(columns),
            means=("mean", "classes"),
            note=self._note(),
            data=data,
        )

    def _column(self, row: Mapping[str, Any]) -> ScoreValues:
        """A measure at one width; only Boundary IoU has a header."""
        name, width = row["measure"], row["tolerance"]
        unit = "" if width.endswith("%") else " px"
        head = f"Boundary IoU {width}{unit}" if name == "boundary_iou" else ""
        means = row["mean"], row["mean_classes"]
        return ScoreValues(f"{name}:{width}", head, row["classes"], means)

    def _note(self) -> str:
        widths = ", ".join(map(_width_text, self.measure.widths))
        border = self.measure.border
        return f"boundaries: widths {widths}" + f"; image border: {border}" * (
            border != "reference"
        )


def _iou(numbers: NDArray[Any]) -> Floats:
    return ratio(numbers[..., 0], numbers.sum(-1))


def _width_text(width: Tolerance) -> str:
    return short_percent(width.value) if width.unit == "diagonal" else f"{width.value:g}"
