"""A report: every number of some counts, with the protocol that made the means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import check_flag, check_integer, check_kind, check_path
from segiou._support.files import write_whole
from segiou._support.numbers import percent
from segiou._support.optional import import_extra
from segiou._support.text import plural
from segiou.document.renderers import rendered
from segiou.measures.score_names import ScoreName
from segiou.measures.score_table import ScoreTable
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.report import formats
from segiou.report.class_table import (
    ClassRow,
    class_columns,
    class_table,
    column_of,
    group_table,
    row_order,
    rows_of,
)
from segiou.report.measured import cells_by_row
from segiou.report.report_numbers import ReportNumbers
from segiou.report.wording import verdict

if TYPE_CHECKING:
    import pandas

    from segiou.document.parts import Part
    from segiou.document.report_dict import ReportDict


@dataclass(frozen=True, eq=False)
class Report(ReportNumbers):
    """Scores of one evaluation.

    It is printed as a table, rendered in notebooks, and written as JSON, CSV,
    Markdown, LaTeX and HTML. Numbers are fractions in full precision; only human-readable
    output (text, Markdown, LaTeX, notebooks, pages) has rounded percentages.

    Attributes
    ----------
    class_names : tuple of str
    tally : ConfusionCounts
        The confusion matrix and the pixels outside it; or the counts of
        overlapping channels, which have none.
    pairs : int
        Pairs of truth and prediction that were counted.
    protocol : Protocol
        Rules of the means.
    include : ndarray of bool, shape (C,)
        Whether each class is included in the means. Excluded classes are still counted.
    counted : ConfusionCounts, optional
        The counts with the pixels that the protocol ignores.
    per_image : Counts of shape (N, C), optional
        Counts of each image, if they were kept.
    groups : tuple of (str, tuple of int)
        Unions of classes that are also reported.
    title : str
        Title of the report.
    provenance : mapping
        Its origin: files and options.
    intervals : Intervals, optional
        Intervals of the mean and of each class's IoU.
    more_intervals : tuple of Intervals
        Intervals of other pixel scores and of groups, such as ``run.intervals("iou:vehicle")``.
    tables : tuple of ScoreTable
        Tables of the measures.
    measured_scores : tuple of ScoreValues
        Scores of the measures.
    worst_images : WorstImages, optional
        Images with the lowest scores, to be listed.
    left_out : int
        Pairs and files that could not be scored, or lacked their counterpart.
    ids : tuple of str
        Names of the images of ``per_image``.
    steps : tuple of NextStep, optional
        The value of :attr:`next_steps`, if it is known.
    threshold_gains : tuple of ThresholdGain
        Thresholds of scores that would raise IoU.
    image_cautions : tuple of ImageCaution
        Images with an empty prediction, without a correct structure or without valid pixels.
    """

    @cached_property
    def classes(self) -> tuple[ClassRow, ...]:
        """The classes in the label set's order."""
        return rows_of(self.class_table)

    @cached_property
    def class_table(self) -> ScoreTable:
        """Every score that has a value of classes, as a table."""
        return class_table(self)

    @cached_property
    def group_table(self) -> ScoreTable | None:
        """The same scores of each group against the rest; None without groups."""
        return group_table(self)

    def sorted_classes(self, key: str = "order", *, reverse: bool = False) -> tuple[ClassRow, ...]:
        """The classes by ``"order"`` or one of their columns; undefined values come last.

        Parameters
        ----------
        key : str, default "order"
            ``"order"``, or a column.
        reverse : bool, default False
            Whether the order is reversed.

        Raises
        ------
        ValueError
            If the column is unknown.
        """
        return rows_of(self._sorted(key, reverse=reverse))

    @cached_property
    def verdict(self) -> str:
        """Mean IoU, cautions, the costliest error and better thresholds, in words."""
        return verdict(self)

    @cached_property
    def group_rows(self) -> tuple[ClassRow, ...]:
        """Each group against the rest: confusion within a group is correct. Groups may overlap."""
        return () if self.group_table is None else rows_of(self.group_table)

    def scores(
        self,
        prefix: str = "",
        *,
        names: str | Sequence[str] = formats.DEFAULT,
        separator: str = "/",
    ) -> dict[str, float]:
        """The scores as one flat mapping, for experiment trackers.

        Parameters
        ----------
        prefix : str
            Put before each name, such as ``"val/"``.
        names : str or sequence of str
            ``"mean_iou"``, ``"mean_dice"``, ``"mean_accuracy"``,
            ``"pixel_accuracy"``, ``"frequency_weighted_iou"``; and for each class
            ``"iou"``, ``"dice"``, ``"precision"``, ``"recall"``. A score of a
            measure, such as ``"pq"``, has its mean and every class or structure.
        separator : str
            Between a score and its class.

        Returns
        -------
        dict of str to float
            NaN if undefined. Non-alphanumeric characters in the name of a class
            become ``_``, which every tracker accepts; if two names would become
            equal, the second ends in ``_2``.

        Raises
        ------
        ValueError
            If the score is unknown.

        Examples
        --------
        >>> from segiou import ConfusionMatrix
        >>> cm = ConfusionMatrix(["road", "Traffic Sign (Back)"]).update([0, 0, 1], [0, 1, 1])
        >>> cm.report().scores("val/", names=["mean_accuracy", "recall"])
        {'val/mean_accuracy': 0.75, 'val/recall/road': 0.5, 'val/recall/Traffic_Sign_Back': 1.0}
        """
        check_kind("prefix", prefix, str, "text, such as 'val/'")
        check_kind("separator", separator, str, "text, such as '/'")
        keys = formats.score_keys(
            formats.check_scores(names, self.scores_by_name),
            self._rows_of,
            separator,
            self.scores_by_name,
        )
        return {f"{prefix}{key}": self._value(score) for key, score in keys.items()}

    def _rows_of(self, name: str) -> Sequence[str]:
        """The classes or structures of a score; of pixels, without groups."""
        score = self.scores_by_name.get(name)
        rows = () if score is None else tuple(score.rows)
        return [row for row in rows if name not in PIXEL_SCORES or row in self.class_names]

    def _value(self, name: ScoreName) -> float:
        score = self.scores_by_name.get(name.score)
        value = None if score is None else score.of_row(name.row)
        return np.nan if value is None else value

    def to_dict(self) -> ReportDict:
        """Plain data: names as attributes, None for undefined, counts as integers."""
        return formats.to_dict(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Strict JSON of :meth:`to_dict`, at full precision.

        Parameters
        ----------
        indent : int, default 2
            Blanks of each level; None gives one line.
        """
        return formats.to_json(self, indent)

    def to_csv(self, *, sort: str = "order", reverse: bool = False) -> str:
        """The classes as CSV, one row each.

        Parameters
        ----------
        sort, reverse
            As in :meth:`sorted_classes`.
        """
        return formats.to_csv(self, self._sorted(sort, reverse=reverse))

    def to_markdown(
        self,
        *,
        sort: str = "order",
        reverse: bool = False,
        columns: str | Sequence[str] | None = None,
    ) -> str:
        """A Markdown section: headline, classes, protocol.

        Parameters
        ----------
        sort, reverse
            As in :meth:`sorted_classes`.
        columns : str or sequence of str, optional
            As in :meth:`to_text`.
        """
        return rendered(self._parts(sort=sort, reverse=reverse, columns=columns), "markdown")

    def to_html(self, **options: Any) -> str:
        """A self-contained page; options as for :func:`segiou.report.render_report`.

        Parameters
        ----------
        **options
            As there.
        """
        from segiou.report.pages.report_page import render_report

        return render_report(self, **options)

    def to_text(
        self,
        *,
        width: int | None = None,
        color: bool = False,
        sort: str = "order",
        reverse: bool = False,
        detail: bool = False,
        columns: str | Sequence[str] | None = None,
    ) -> str:
        """The report for a terminal.

        Parameters
        ----------
        width : int, optional
            Columns to fill, 100 by default; where it is narrow, the table has
            fewer columns.
        color : bool
            Whether to use ANSI colours.
        sort, reverse
            As in :meth:`sorted_classes`.
        detail : bool
            Whether to add the mean accuracy, and means over images and over the
            images that score least.
        columns : str or sequence of str, optional
            Columns of the class table: ``"map"`` (user's and producer's accuracy,
            F1), ``"medical"`` (Dice first), or names of scores.
        """
        room = 100 if width is None else check_integer("width", width, 1)
        order: Any = {"sort": sort, "reverse": reverse, "columns": columns}
        check_flag("detail", detail)
        parts = self._parts(**order, detail=detail)
        return rendered(parts, "table", width=room, color=color)

    def to_latex(
        self,
        *,
        transposed: bool = False,
        sort: str = "order",
        reverse: bool = False,
        columns: str | Sequence[str] | None = None,
    ) -> str:
        """Tables for LaTeX with the package booktabs, and sentences as comments.

        Parameters
        ----------
        transposed : bool
            Whether classes are in columns.
        sort, reverse
            As in :meth:`sorted_classes`.
        columns : str or sequence of str, optional
            Columns of the class table, as in :meth:`to_text`.
        """
        parts = self._parts(sort=sort, reverse=reverse, columns=columns, means=True)
        check_flag("transposed", transposed)
        return rendered(parts, "latex", transposed=transposed)

    def _parts(
        self,
        *,
        sort: str = "order",
        reverse: bool = False,
        columns: str | Sequence[str] | None = None,
        **more: Any,
    ) -> list[Part]:
        from segiou.report.report_document import report_parts

        chosen = class_columns(columns, self.scores_by_name)
        for name in chosen:
            column_of(self.class_table, name)
        return [*report_parts(self, self._sorted(sort, reverse=reverse), chosen, **more)]

    def _sorted(self, key: str, *, reverse: bool) -> ScoreTable:
        check_flag("reverse", reverse)
        table = self.class_table
        return table.with_rows(row_order(table, key, reverse=bool(reverse)))

    def to_pandas(self) -> pandas.DataFrame:
        """The classes as a :class:`pandas.DataFrame`, indexed by name.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = import_extra("pandas", "to_pandas needs pandas", "pandas")
        table: pandas.DataFrame = pd.DataFrame(cells_by_row(self, self.class_table))
        return table.set_index("name")

    def save(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write the report atomically.

        Parameters
        ----------
        path : str or path
            The file; its extension selects the format unless ``format`` is given.
        format : {"table", "markdown", "latex", "json", "csv", "html"}, optional
        """
        check_path("path", path)
        path = Path(path)
        kind = formats.format_of(path) if format is None else format
        return write_whole(path, formats.render(self, kind))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou.document.notebook import notebook_of

        return notebook_of(self._parts(python=True), "report")

    def __repr__(self) -> str:
        return (
            f"<Report: mean IoU {percent(self.mean_iou)} over {self.mean_iou_classes} of "
            f"{plural(len(self.class_names), 'class', 'classes')}, "
            f"{self._nouns.pixel} accuracy {percent(self.pixel_accuracy)}, "
            f"{plural(self.pairs, 'pair')}>"
        )
