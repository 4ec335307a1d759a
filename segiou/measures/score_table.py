"""The scores of a measure as a table that every format of a report renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.text import Json
from segiou.measures.score_values import ScoreValues

if TYPE_CHECKING:
    from segiou.accumulators.histograms.score_counts import ScoreHistogram


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
    columns : tuple of ScoreValues
        Their numbers.
    means : tuple of str
        Names of the mean rows.
    of : str
        Kind of row: ``"class"``, ``"structure"``.
    empty : tuple of bool
        For the rows, then the mean rows: whether nothing was there to score.
    data : mapping, optional
        Entries of the JSON report; by default one under the key, with the names of the scores.
    cases : CaseScores, optional
        Scores of each case, for plots and pages.
    histogram : ScoreHistogram, optional
        Histograms of the scores, for plots of curves and calibration.
    """

    key: str
    title: str
    about: str
    rows: tuple[str, ...]
    columns: tuple[ScoreValues, ...]
    means: tuple[str, ...] = ("mean",)
    note: str = ""
    of: str = "class"
    empty: tuple[bool, ...] = ()
    data: Mapping[str, Any] | None = None
    cases: CaseScores | None = field(default=None, kw_only=True, repr=False, compare=False)
    histogram: ScoreHistogram | None = field(default=None, kw_only=True, repr=False, compare=False)

    def with_rows(self, rows: Sequence[int]) -> ScoreTable:
        """The table with some of its rows, in this order.

        Parameters
        ----------
        rows : sequence of int
            Indices of the rows.
        """
        names, more = tuple(self.rows[i] for i in rows), self.empty[len(self.rows) :]
        empty = (*(self.empty[i] for i in rows), *more) if self.empty else ()
        columns = (
            replace(column, rows={name: column.rows[name] for name in names})
            for column in self.columns
        )
        return replace(self, rows=names, columns=tuple(columns), empty=empty)

    def curves(self) -> tuple[RowCurves, ...]:
        """Curves of rows for the page; none by default."""
        return ()

    def to_dict(self) -> dict[str, Json]:
        """Entries of the JSON report, which has the numbers in its ``scores``."""
        if self.data is not None:
            return dict(self.data)
        names: list[Json] = [column.name for column in self.columns]
        return {self.key: {"title": self.title, "scores": names, "note": self.note}}
