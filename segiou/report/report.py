"""The report: the scores of one evaluation, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from segiou._arguments import check_integer, check_path
from segiou.imbalance.wording import plural
from segiou.report import formats
from segiou.report.scores import Scores

__all__ = ["Report"]

Format = Literal["table", "json", "csv", "markdown", "html"]


@dataclass(frozen=True, eq=False)
class Report(Scores):
    """Scores of one evaluation.

    It renders as a table in a terminal (``print``) and in a notebook, and
    writes itself as JSON, CSV and Markdown. Nothing in it is rounded but in
    what ``to_text``, ``to_markdown`` and the notebook show.

    Attributes
    ----------
    class_names : tuple of str
    tally : Tally or ChannelTally
        The confusion matrix and what it leaves out; or the counts of
        overlapping channels, which have none.
    pairs : int
        Pairs of truth and prediction that were counted.
    protocol : Protocol
        By which rule the means are made.
    include : ndarray of bool, shape (C,)
        False where a class is left out of the means; it still counts.
    per_image : Counts of shape (N, C), optional
        Counts of each image, where they were kept.
    groups : tuple of (str, tuple of int)
        Unions of classes that are reported too.
    title : str
        What was scored.
    provenance : mapping
        How it was made: files, options.
    intervals : Intervals, optional
        Bootstrap intervals of the mean and of each class's IoU.
    boundary : tuple of mapping
        Boundary measures as :func:`segiou.boundary.boundary_rows` gives them;
        empty where they were not measured.
    boundary_options : mapping, optional
        What was measured, as ``BoundaryOptions.to_dict``.
    worst_images : WorstImages, optional
        Images with the lowest scores, to be listed too.
    left_out : int
        Pairs and files that could not be scored, or lacked their counterpart.
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain data: names as attributes, None for undefined, counts as integers."""
        return formats.to_dict(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Strict JSON of :meth:`to_dict`, at full precision."""
        if indent is not None:
            check_integer("indent", indent, 0)
        return formats.to_json(self, indent)

    def to_csv(self, *, sort: str = "order", reverse: bool = False) -> str:
        """The classes as CSV, one row each."""
        return formats.to_csv(self, self.sorted_classes(sort, reverse=reverse))

    def to_markdown(self, *, sort: str = "order", reverse: bool = False) -> str:
        """A Markdown section: headline, classes, rule."""
        return formats.to_markdown(self, self.sorted_classes(sort, reverse=reverse))

    def to_html(self, **options: Any) -> str:
        """A self-contained page; options as for :func:`segiou.html.render_report`."""
        from segiou.html import render_report

        return render_report(self, **options)

    def to_text(
        self,
        *,
        width: int | None = None,
        color: bool = False,
        sort: str = "order",
        reverse: bool = False,
    ) -> str:
        """The report for a terminal.

        Parameters
        ----------
        width : int, optional
            Columns to fill, 100 by default; columns of the table give way
            where it is narrow.
        color : bool
            Whether to use ANSI colours.
        sort, reverse
            As in :meth:`sorted_classes`.
        """
        from segiou.report.text import render_text

        columns = 100 if width is None else check_integer("width", width, 1)
        rows = self.sorted_classes(sort, reverse=reverse)
        return render_text(self, rows, columns, color=color)

    def to_pandas(self) -> Any:
        """The classes as a :class:`pandas.DataFrame`, indexed by name.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return formats.to_pandas(self)

    def save(self, path: str | Path, *, format: Format | None = None) -> Path:
        """Write the report; whole or not at all.

        Parameters
        ----------
        path : str or path
            Where to; the ending tells the format unless it is given.
        format : {"table", "json", "csv", "markdown", "html"}, optional
        """
        check_path("path", path)
        return formats.save(self, Path(path), format)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou.report.notebook import render_notebook

        return render_notebook(self)

    def __repr__(self) -> str:
        return (
            f"<Report: mean IoU {self.mean_iou:.4f} over {self.mean_iou_classes} of "
            f"{plural(len(self.class_names), 'class', 'classes')}, "
            f"pixel accuracy {self.pixel_accuracy:.4f}, {plural(self.pairs, 'pair')}>"
        )
