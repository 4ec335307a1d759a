"""Slices of a data set with their scores, differences and trends."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, compress
from typing import Any

import numpy as np

from segiou._support import text
from segiou._support.arguments import check_integer, check_kind
from segiou._support.optional import Drawable
from segiou._support.text import Json
from segiou.document.findings import Finding
from segiou.document.parts import Part
from segiou.inference.metadata import Metadata, MetadataColumn
from segiou.inference.significance import is_significant
from segiou.inference.units import plural_of

#: Fewer units have no interval.
FEWEST = 3
#: Fewer units are not tested: Holm's adjustment needs tails that so few units do not have.
FEWEST_TESTED = 5
#: Combinations of fewer units are not compared: false claims would be too many.
FEWEST_OF_PAIRS = 20
#: Between the columns, and the values, of a combination.
TIMES = " × "


def pairs_of(columns: Sequence[MetadataColumn]) -> Iterator[MetadataColumn]:
    """Combinations of the values of two columns; those of columns with lists are not defined."""
    for a, b in combinations([column for column in columns if not column.more], 2):
        values = tuple(f"{x}{TIMES}{y}" for x in a.values for y in b.values)
        codes = np.where((a.codes < 0) | (b.codes < 0), -1, a.codes * len(b.values) + b.codes)
        yield MetadataColumn(f"{a.name}{TIMES}{b.name}", values, codes)


@dataclass(frozen=True, slots=True)
class Gap:
    """A slice minus the rest, over the classes that at least two units of both contain.

    Attributes
    ----------
    value, low, high : float
        The difference and its interval.
    p, p_holm : float
        p inverts the interval; Holm's adjustment is over all tests of the result. NaN if the
        slice is not tested.
    classes : int
        Classes in the difference; 0 if the score is not a mean of classes.
    shared : int
        Units with images in the slice and in the rest.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    classes: int = 0
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """A score on the images with one value of the metadata.

    Attributes
    ----------
    column, value : str
        Such as ``"weather"`` and ``"night"``.
    images, units : int
        How many have the value.
    score, low, high : float
        With the interval of these images alone; of two models the second minus the first.
    scores : tuple of float
        The score of each model.
    classes : int
        Classes with a score.
    gap : Gap
        Compared with the rest.
    row : str
        The class, of a row of one class; else empty.
    p : float
        P-value of the change between two models; NaN for one model.
    """

    column: str
    value: str
    images: int
    units: int
    score: float
    low: float
    high: float
    scores: tuple[float, ...]
    classes: int
    gap: Gap
    row: str = ""
    p: float = math.nan

    @property
    def name(self) -> str:
        """Column and value, and the class."""
        sign = " " if re.match("[<≥] ", self.value) else "="  # of bins
        return f"{self.column}{sign}{self.value}{self.row and f', class={self.row}'}"

    def differs(self, level: float) -> bool:
        """Whether it differs from the rest beyond chance, among all tests of the result.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        return bool(is_significant(self.gap.p_holm, level))


@dataclass(frozen=True, slots=True)
class Trend:
    """Change of a score from the 10th to the 90th percentile of a numeric column.

    Attributes
    ----------
    column : str
    start, end : float or str
        The percentiles over units; text of dates.
    change, low, high : float
        Change of the score between them, with its interval.
    p, p_holm : float
        As of a :class:`Gap`.
    """

    column: str
    start: float | str
    end: float | str
    change: float
    low: float
    high: float
    p: float
    p_holm: float = math.nan


@dataclass(frozen=True, slots=True)
class Mix:
    """A score in another mix of the slices of a column.

    The distances of the limits of the slices from their scores, weighted by the shares, are
    squared and summed; those of slices with common units are correlated.

    Attributes
    ----------
    column : str
    shares : mapping of str to float
        Share of each value.
    score, low, high : float
        The score in the mix with its interval; for two models, second minus first.
    """

    column: str
    shares: Mapping[str, float]
    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Slices(Finding, Drawable):
    """Scores of slices; see :func:`segiou.slices`.

    Attributes
    ----------
    metric, title : str
        The score.
    names : tuple of str
        One run, or two of which the second minus the first is the score.
    score : float
        On all images.
    images, units : int
    unit : {"image", "group", "sequence", "batch"}
    level : float
        Confidence level of the intervals.
    better : {"higher", "lower"}
    score_unit : str
        Empty for a ratio.
    tests : int
        Number of tests that p is adjusted for.
    slices : tuple of Slice
    trends : tuple of Trend
        Trends along numeric columns.
    missing : mapping of str to int
        Images without a value in each column.
    skipped : mapping of str to str
        Why a column has no slices.
    alike : tuple of pairs of str
        Slices that are nearly the same images.
    key : str
        The column that has the ids.
    against : str
        The value that slices are compared with; empty for the rest.
    mixes : tuple of Mix
        The score in other mixes of slices.
    """

    _plot_kind = "slices"
    _index = ("column", "value")

    metric: str
    title: str
    names: tuple[str, ...]
    score: float
    images: int
    unit: str
    units: int
    level: float
    better: str
    score_unit: str
    tests: int
    slices: tuple[Slice, ...]
    trends: tuple[Trend, ...]
    missing: Mapping[str, int]
    skipped: Mapping[str, str]
    alike: tuple[tuple[str, str], ...]
    key: str
    against: str = ""
    mixes: tuple[Mix, ...] = ()
    _table: Metadata | None = field(default=None, repr=False, compare=False)
    _is_median: bool = field(default=False, repr=False, compare=False)
    _pixel_unit: str = field(default="pixels", repr=False, compare=False)

    @property
    def _image(self) -> str:
        """What an image is called."""
        return text.nouns(self._pixel_unit)[1]

    @property
    def _kind(self) -> str:
        """The plural of the unit."""
        return plural_of(self.unit, self._image)

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def __getitem__(self, name: str) -> Slice:
        check_kind("the name of a slice", name, str, "text, such as 'weather=night'")
        known = {row.name: row for row in self.slices}
        name = re.sub(r"=(?=[<≥] )", " ", name, count=1)
        if name not in known:
            msg = f"no slice {name!r}; slices: {text.listed([*known])}"
            raise KeyError(msg + text.did_you_mean(name, known))
        return known[name]

    def images_in(self, name: str) -> tuple[str, ...]:
        """Ids of the images in a slice.

        Parameters
        ----------
        name : str
            Such as ``"weather=night"``.
        """
        row, table = self[name], self._table
        assert table is not None
        columns = chain(table.columns, pairs_of(table.columns))
        column = next(column for column in columns if column.name == row.column)
        return tuple(compress(table.ids, column.inside(column.values.index(row.value))))

    def worst(self, n: int = 5) -> tuple[Slice, ...]:
        """Slices that are worse than the rest beyond chance, largest confirmed deficit first.

        Parameters
        ----------
        n : int
            At most so many.
        """
        sign = -1 if self.better == "lower" else 1
        worse = [s for s in self.slices if s.differs(self.level) and sign * s.gap.value < 0]
        worse.sort(key=lambda row: row.gap.high if sign > 0 else -row.gap.low)
        return tuple(worse[: check_integer("n", n, 0)])

    @property
    def reversed(self) -> tuple[str, ...]:
        """Columns in which all slices have the opposite sign of the overall difference."""
        if len(self.names) < 2:
            return ()
        each = self._complete()
        return tuple(c for c, scores in each.items() if all(v * self.score < 0 for v in scores))

    @property
    def outside(self) -> tuple[str, ...]:
        """Columns of which all slices are below, or all above, the whole; of one run."""
        if len(self.names) > 1:
            return ()
        each = self._complete()
        return tuple(c for c, v in each.items() if max(v) < self.score or min(v) > self.score)

    def _complete(self) -> dict[str, list[float]]:
        """Scores of the slices of columns in which every image has a value."""
        by_column: dict[str, list[float]] = {}
        for row in self.slices:
            is_part = row.row or TIMES in row.column or row.column in self.missing
            if not is_part and not math.isnan(row.score):
                by_column.setdefault(row.column, []).append(row.score)
        return {column: scores for column, scores in by_column.items() if len(scores) > 1}

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per slice; numbers are unrounded."""
        rows = []
        for part in self.slices:
            row: dict[str, Any] = {"column": part.column, "value": part.value}
            if any(other.row for other in self.slices):
                row["class"] = part.row
            row |= {"images": part.images, "units": part.units, "classes": part.classes}
            if len(self.names) > 1:
                scores = zip(self.names, part.scores, strict=True)
                row |= {f"score:{name}": score for name, score in scores}
            row |= {"score": part.score, "low": part.low, "high": part.high}
            gap = part.gap
            row |= {"gap": gap.value, "gap_low": gap.low, "gap_high": gap.high}
            row |= {"gap_classes": gap.classes, "p": gap.p, "p_holm": gap.p_holm}
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data: dict[str, Json] = text.plain(self)
        return data | {"reversed": list(self.reversed), "outside": list(self.outside)}

    def _parts(self) -> Iterable[Part]:
        from segiou.analysis.slices.text import slices_parts

        return slices_parts(self)
