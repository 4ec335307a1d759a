"""The scores of a measure as a table that every format of a report renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from segiou._support.text import Json
from segiou.measures.score import Better, Score
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from segiou.accumulators.histograms.score_counts import ScoreHistogram

Kind = Literal["ratio", "distance", "count"]
Limits = tuple[tuple[float, float] | None, ...]


class Column(NamedTuple):
    """A column of a table: one number per row, then one per mean row.

    Attributes
    ----------
    name : str
        Name of the column for other programs.
    title : str
        Heading for people; tables of text omit columns without one.
    values, means : tuple of float
        Numbers of the rows and of the mean rows.
    kind : {"ratio", "distance", "count"}
        How the numbers are written: per cent, in their unit, as integers.
    unit : str
        Unit of the numbers.
    better : {"higher", "lower"}, optional
        Which numbers are better; None if neither is.
    limits : tuple of (float, float) or None
        Interval limits of the rows, then of the mean rows; empty without intervals.
    level : float
        Level of the intervals.
    digits : int
        Decimal places of distances.
    texts : tuple of str
        Of the rows; shown in place of a number unless empty.
    """

    name: str
    title: str
    values: tuple[float, ...]
    means: tuple[float, ...] = ()
    kind: Kind = "ratio"
    unit: str = ""
    better: Better | None = "higher"
    limits: Limits = ()
    level: float = 0.95
    digits: int = 2
    texts: tuple[str, ...] = ()

    @classmethod
    def of_score(cls, score: Score, values: Floats, intervals: Any = None) -> Column:
        """Make the column of a score from its mean and rows, with intervals if there are any.

        Parameters
        ----------
        score : Score
            The score.
        values : ndarray, shape (1 + R,)
            The mean, then the rows.
        intervals : Intervals, optional
            Confidence intervals of the score.
        """
        mean, *rows = values.tolist()
        column = cls(score.name, score.title, tuple(rows), (mean,))
        if intervals is not None:
            column = column.with_limits(intervals, score.names)
        kind: Kind = "distance" if score.unit else "ratio"
        return column._replace(kind=kind, unit=score.unit, better=score.better)

    def with_limits(self, intervals: Any, rows: Sequence[str], more: int = 0) -> Column:
        """The column with intervals of its rows and its mean, and ``more`` mean rows without.

        Parameters
        ----------
        intervals : Intervals
            Confidence intervals of the score.
        rows : sequence of str
            The rows.
        more : int
            Mean rows without an interval.
        """
        by_name = {one.name: (one.low, one.high) for one in intervals.classes}
        overall = (intervals.overall.low, intervals.overall.high)
        limits: Limits = (*(by_name.get(name) for name in rows), overall, *[None] * more)
        return self._replace(limits=limits, level=intervals.level)

    @classmethod
    def of_counts(cls, name: str, title: str, values: Any, means: Any = ()) -> Column:
        """Make a column of integers, which are neither good nor bad.

        Parameters
        ----------
        name, title : str
            As of the column.
        values, means : iterable of int
            Numbers of the rows and of the mean rows.
        """
        rows = tuple(int(value) for value in values)
        sums = tuple(int(value) for value in means)
        return cls(name, title, rows, sums, kind="count", better=None)

    def at(self, index: int) -> float:
        """The number at an index: the rows, then the mean rows.

        Parameters
        ----------
        index : int
            Index of the row.
        """
        return (*self.values, *self.means)[index]

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


class Chart(NamedTuple):
    """A line on a page; coordinates are in [0, 1].

    Attributes
    ----------
    title : str
        Title of the chart.
    x, y : str
        Labels of the axes; names of the series that are drawn if there are no points.
    points : tuple of (float, float)
        The line.
    diagonal : bool
        Whether the diagonal is drawn.
    """

    title: str
    x: str
    y: str
    points: tuple[tuple[float, float], ...] = ()
    diagonal: bool = False


class RowCurves(NamedTuple):
    """Numbers of a row at each step of a slider on a page, and lines through them.

    Attributes
    ----------
    row : str
        The class or structure.
    series : mapping of str to tuple
        Series of one length in [0, 1]; the first is that of the slider. None where
        undefined.
    best : int
        Index of the step that is marked.
    charts : tuple of Chart
        The lines.
    """

    row: str
    series: Mapping[str, tuple[float | None, ...]]
    best: int
    charts: tuple[Chart, ...]

    def to_dict(self) -> dict[str, Json]:
        """Plain values for the page."""
        charts: list[Json] = [chart._asdict() for chart in self.charts]
        return {**self._asdict(), "charts": charts}


class CaseScores(NamedTuple):
    """Scores of each case and structure, of which pages and plots draw one.

    Attributes
    ----------
    rows : sequence of mapping
        ``case``, ``label``, ``state`` (``"found"``, ``"missed"``, ``"false_positive"`` or
        ``"absent"``), and the scores by name.
    first : str
        The distance that is drawn unless another score is chosen.
    title, unit : str
        Its title and its unit.
    share : str
        The score between 0 and 1 that pages show with it.
    """

    rows: Sequence[Mapping[str, Any]]
    first: str
    title: str
    unit: str
    share: str


@dataclass(frozen=True)
class ScoreTable:
    """The scores of a measure in a report.

    Attributes
    ----------
    key : str
        Key of the measure.
    title, about, note : str
        Heading, explanation and footnote for people.
    rows : tuple of str
        Classes or structures.
    columns : tuple of Column
        Their numbers.
    means : tuple of str
        Names of the mean rows.
    of : str
        Kind of row: ``"class"``, ``"structure"``.
    empty : tuple of bool
        For the rows, then the mean rows: whether nothing was there to score.
    data : mapping, optional
        Entries of the JSON report; by default one entry under the key.
    cases : CaseScores, optional
        Scores of each case, for plots and pages.
    histogram : ScoreHistogram, optional
        Histograms of the scores, for plots of curves and calibration.
    """

    key: str
    title: str
    about: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    means: tuple[str, ...] = ("mean",)
    note: str = ""
    of: str = "class"
    empty: tuple[bool, ...] = ()
    data: Mapping[str, Any] | None = None
    cases: CaseScores | None = field(default=None, kw_only=True, repr=False, compare=False)
    histogram: ScoreHistogram | None = field(default=None, kw_only=True, repr=False, compare=False)

    def taken(self, rows: Sequence[int]) -> ScoreTable:
        """The table with some of its rows, in this order.

        Parameters
        ----------
        rows : sequence of int
            Indices of the rows.
        """
        number = len(self.rows)

        def of(values: tuple[Any, ...]) -> tuple[Any, ...]:
            return (*(values[i] for i in rows), *values[number:]) if values else ()

        columns = (
            c._replace(values=of(c.values), limits=of(c.limits), texts=of(c.texts))
            for c in self.columns
        )
        return replace(self, rows=of(self.rows), columns=tuple(columns), empty=of(self.empty))

    def curves(self) -> tuple[RowCurves, ...]:
        """Curves of rows for the page; none by default."""
        return ()

    def to_dict(self) -> dict[str, Json]:
        """Entries of the JSON report."""
        if self.data is not None:
            return dict(self.data)
        lines = [
            {self.of: name} | dict(cell for column in self.columns for cell in column.cells(i))
            for i, name in enumerate((*self.rows, *self.means))
        ]
        rows: list[Any] = lines[: len(self.rows)]
        means: list[Any] = lines[len(self.rows) :]
        units: Any = {column.name: column.unit for column in self.columns if column.unit}
        return {
            self.key: {
                "title": self.title,
                "rows": rows,
                "means": means,
                "units": units,
                "note": self.note,
            }
        }
