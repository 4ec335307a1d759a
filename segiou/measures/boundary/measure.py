"""The measure of boundaries: options, counts per pair, scores and their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_flag
from segiou._support.numbers import short_percent
from segiou._support.text import Json
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.measures.boundary.byte_codes import ByteCodes
from segiou.measures.boundary.image import count_labels
from segiou.measures.boundary.scores import boundary_rows
from segiou.measures.boundary.sums import BoundaryCounts, layout
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.registry import check_installed, measure_of
from segiou.measures.score import Score
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.ratio import Floats, ratio
from segiou.regions.label_codes import LabelCodes
from segiou.regions.tolerance import Tolerance, read_tolerances, split_lengths

_ABOUT = "Boundary agreement per class: overlap within a band along the outline (Boundary IoU)."
Border = Literal["reference", "boundary", "none"]


@dataclass(frozen=True)
class BoundaryOptions(Measure):
    """Boundary IoU and trimaps; results with different options cannot be added.

    Parameters
    ----------
    widths : Tolerance, float or str, or several
        Widths d of Boundary IoU and of trimaps, in pixels or, as in ``"2%"``,
        relative to the image diagonal.
    trimaps : bool
        Whether trimaps are measured.
    border : {"reference", "boundary", "none"}
        Whether a class that touches the image border has a boundary there.
        ``"reference"`` follows the reference implementation of each measure:
        a boundary everywhere except in trimaps.

    Examples
    --------
    >>> options = BoundaryOptions(widths=["2%", 3])
    >>> [str(width) for width in options.widths]
    ['2%', '3']
    """

    key: ClassVar[str] = "boundary"
    noun: ClassVar[str] = "boundaries"
    score_names: ClassVar[tuple[str, ...]] = ("boundary_iou",)
    version: ClassVar[int] = 2

    widths: Any = ("2%",)
    trimaps: bool = True
    border: Border = "reference"

    def __post_init__(self) -> None:
        check_flag("trimaps", self.trimaps)
        check_choice("border", self.border, get_args(Border))
        object.__setattr__(self, "widths", _widths(self.widths))

    def difference(self, other: BoundaryOptions) -> str:
        """Describe the differences to other options; empty if there are none.

        Parameters
        ----------
        other : BoundaryOptions
            The options to compare with.
        """
        return "; ".join(
            f"boundary {name} is {_shown(mine)} here and {_shown(theirs)} there"
            for name in self.to_dict()
            if (mine := getattr(self, name)) != (theirs := getattr(other, name))
        )

    @property
    def band_border(self) -> bool:
        """Whether the image border is a boundary for Boundary IoU."""
        return self.border != "none"

    @property
    def trimap_border(self) -> bool:
        """Whether the image border is a boundary for trimaps."""
        return self.border == "boundary"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Options from the values of :meth:`to_dict`."""
        return cls(**{**data, "widths": tuple(Tolerance(**t) for t in data["widths"])})

    @classmethod
    def of(cls, choice: Any) -> BoundaryOptions:
        """Build from options, or True for the defaults."""
        if choice is not True and not isinstance(choice, BoundaryOptions):
            msg = f"boundary must be True or BoundaryOptions, got {choice!r}"
            raise TypeError(msg)
        return cls() if choice is True else choice

    @classmethod
    def from_options(
        cls, given: Mapping[str, Any], classes: ClassOptions
    ) -> BoundaryOptions | None:
        """Options from the command line; widths in mm are those of surfaces."""
        texts = split_lengths("--boundary", given.get("boundary") or "")
        widths = [text for text in texts if not text.endswith("mm")]
        if widths != texts:
            check_installed("surfaces", f"--boundary={','.join(texts)}")
        return cls(widths) if widths else None

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> Measure | None:
        """These options for images; the surfaces of volumes."""
        if not masks.volumes:
            return self
        if self.widths != BoundaryOptions().widths:
            msg = (
                f"widths {', '.join(map(str, self.widths))}: Boundary IoU of volumes needs widths "
                "in mm; pass --boundary=2mm (Python: surfaces=SurfaceOptions(widths=...))"
            )
            raise ValueError(msg)
        check_installed("surfaces", "Boundary IoU of volumes")
        surfaces: Any = measure_of("surfaces")
        if any(measure.key == surfaces.key for measure in measures):
            return None
        chosen: Measure = surfaces.of_protocol(protocol)
        return chosen.resolved(measures, masks, protocol)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return BoundaryPlan(self, classes, masks)


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _widths(values: Any) -> tuple[Tolerance, ...]:
    widths = read_tolerances(values, "widths")
    if not widths:
        msg = "widths must contain at least one width, such as '2%'"
        raise ValueError(msg)
    for width in widths:
        pixels = width.unit == "absolute" and width.value >= 1 and width.value % 1 == 0
        if not pixels and (width.unit != "diagonal" or not width.value):
            wanted = "a whole number of pixels, at least 1, or a share of the diagonal above 0 %"
            msg = f"a width must be {wanted}, got {width}"
            raise ValueError(msg)
    return widths


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
