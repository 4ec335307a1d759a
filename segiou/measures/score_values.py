"""A score with its values: a column of tables, and an entry of every other output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from segiou._support.numbers import COUNT
from segiou._support.text import Json
from segiou.measures.score import Quantity, Score
from segiou.metrics.ratio import Floats

Limits = tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True)
class ScoreValues(Quantity):
    """A score, or another number, with its values.

    Attributes
    ----------
    rows : mapping of str to float
        Values of the classes, groups or structures.
    means : tuple of float
        The overall value, and those of further mean rows of a table; empty if there is none.
    intervals : Intervals, optional
        Confidence intervals of the score.
    classes : int, optional
        Number of rows that the overall value covers, if it is their mean.
    about : str
        A sentence on what its measure counts.
    digits : int
        Decimal places of numbers with a unit.
    texts : mapping of str to str
        Texts that are shown in place of the values of rows.

    Notes
    -----
    Tables of text omit columns without a title.
    """

    rows: Mapping[str, float]
    means: tuple[float, ...] = ()
    intervals: Any = field(default=None, kw_only=True)
    classes: int | None = field(default=None, kw_only=True)
    about: str = field(default="", kw_only=True)
    digits: int = field(default=2, kw_only=True)
    texts: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of_score(
        cls, score: Score, total: Any, values: Floats, intervals: Any = None
    ) -> ScoreValues:
        """Make those of a score.

        Parameters
        ----------
        score : Score
            The score.
        total : Parts or Counts
            Counts of all images.
        values : ndarray, shape (1 + K,)
            The overall value, then the rows.
        intervals : Intervals, optional
            Confidence intervals of the score.
        """
        whole, *of_rows = values.tolist()
        return cls(
            score.name,
            score.title,
            dict(zip(score.names, of_rows, strict=True)),
            (whole,),
            unit=score.unit,
            better=score.better,
            overall=score.overall,
            intervals=intervals,
            classes=_covered(score, total, values[1:]),
        )

    @classmethod
    def of_counts(
        cls, name: str, title: str, rows: Iterable[str], values: Any, means: Any = ()
    ) -> ScoreValues:
        """Make a column of integers, which are neither good nor bad.

        Parameters
        ----------
        name, title : str
            As of the column.
        rows : iterable of str
            Names of the rows.
        values, means : iterable of int
            Numbers of the rows and of the mean rows.
        """
        by_row = dict(zip(rows, map(int, values), strict=True))
        return cls(name, title, by_row, tuple(map(int, means)), unit=COUNT, better=None)

    @property
    def value(self) -> float:
        """The overall value; NaN if there is none."""
        return self.means[0] if self.means else np.nan

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the rows."""
        return tuple(self.rows.values())

    def of_row(self, row: str = "") -> float | None:
        """The overall value, or that of a row; None without such a row.

        Parameters
        ----------
        row : str
            Name of the row.
        """
        return self.rows.get(row) if row else self.value

    @cached_property
    def limits(self) -> Limits:
        """Interval limits of the rows, then of the mean rows; empty without intervals."""
        if self.intervals is None:
            return ()
        ends = {interval.name: (interval.low, interval.high) for interval in self.intervals.classes}
        overall = (self.intervals.overall.low, self.intervals.overall.high)
        others = [None] * (len(self.means) - 1)
        return (*(ends.get(name) for name in self.rows), overall, *others)

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return np.nan if self.intervals is None else self.intervals.level

    @cached_property
    def _numbers(self) -> tuple[float, ...]:
        return (*self.rows.values(), *self.means)

    def at(self, index: int) -> float:
        """The number at an index: the rows, then the mean rows.

        Parameters
        ----------
        index : int
            Index of the row.
        """
        return self._numbers[index]

    def cells(self, index: int) -> Iterator[tuple[str, float]]:
        """Name and number of a row, and the limits of its interval as ``NAME_low``, ``NAME_high``.

        Parameters
        ----------
        index : int
            Index of the row.

        Yields
        ------
        tuple of str and float
        """
        yield self.name, self.at(index)
        if self.limits and (ends := self.limits[index]) is not None:
            yield from ((f"{self.name}_low", ends[0]), (f"{self.name}_high", ends[1]))

    def to_dict(self) -> dict[str, Json]:
        """Plain values with the limits of their intervals."""
        limits = dict(zip((*self.rows, ""), self.limits, strict=False))

        def limited(value: float, name: str) -> dict[str, Any]:
            ends = limits.get(name)
            return {"value": value, **dict(zip(("low", "high"), ends or (), strict=False))}

        rows: Any = {name: limited(value, name) for name, value in self.rows.items()}
        whole = limited(self.value, "")
        return {**self.described(), **whole, "classes": self.classes, "rows": rows}


def _covered(score: Score, total: Any, values: Floats) -> int | None:
    """Number of rows in the mean of a score; None if it is not a mean of rows."""
    if not score.is_mean or score.include is None or score.weights is None:
        return None
    known = score.include & ~np.isnan(values)
    if score.median_of is None and (sums := score.sums(total)).shape[0]:
        # Less than 1 if undefined classes count 0 in the mean.
        counts_all = score.weights(sums.sum(0)).sum() < 1 - 1e-9
        return int(score.include.sum() if counts_all else known.sum())
    return int(known.sum())
