"""The report: every number of one evaluation, and the rule by which it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counting import BACKEND
from segiou.counts import ChannelTally, Counts, Tally
from segiou.fine_grained import FineGrained, fine_grained
from segiou.imbalance import Imbalance, explain, majority_class, majority_counts
from segiou.metrics import Floats
from segiou.protocols import Mean, Protocol
from segiou.report import formats
from segiou.report.rows import ClassRow, WorstImages, class_rows, sorted_rows
from segiou.uncertainty import Intervals

__all__ = ["Report"]

Format = Literal["table", "json", "csv", "markdown", "html"]


@dataclass(frozen=True, eq=False)
class Report:
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
    """

    class_names: tuple[str, ...]
    tally: Tally | ChannelTally
    pairs: int
    protocol: Protocol
    include: NDArray[np.bool_]
    per_image: Counts | None = None
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    title: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    intervals: Intervals | None = None
    boundary: tuple[Mapping[str, Any], ...] = ()
    boundary_options: Mapping[str, Any] | None = None
    worst_images: WorstImages | None = None

    @cached_property
    def counts(self) -> Counts:
        """Counts of the data set, shape (C,)."""
        return self.tally.counts

    @property
    def backend(self) -> str:
        """Which counting routine is live."""
        return BACKEND

    @property
    def unit(self) -> str:
        """What the counts count, in words."""
        return "pixels"

    @property
    def pixels(self) -> int:
        """Pixels seen."""
        return int(self.tally.pixels)

    @property
    def ignored(self) -> int:
        """Pixels dropped by their truth value or a mask."""
        return int(self.tally.ignored)

    @property
    def matrix(self) -> NDArray[np.int64]:
        """Confusion matrix (C, C); rows are truth. Empty for overlapping channels."""
        return self.tally.matrix

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class whose prediction names no class, (C,)."""
        return self.tally.unassigned

    @cached_property
    def classes(self) -> tuple[ClassRow, ...]:
        """The classes in the label set's order."""
        return class_rows(self.class_names, self.counts, self._shares())

    def sorted_classes(self, key: str = "order", *, reverse: bool = False) -> tuple[ClassRow, ...]:
        """The classes by ``"order"`` or a column of theirs; undefined values come last."""
        return sorted_rows(self.classes, key, reverse=reverse)

    @cached_property
    def iou_mean(self) -> Mean:
        """Mean IoU with what it covers and skips."""
        return self._mean(metrics.iou)

    @property
    def mean_iou(self) -> float:
        """Mean IoU by the report's protocol."""
        return self.iou_mean.value

    @property
    def mean_iou_classes(self) -> int:
        """Number of classes that the mean IoU covers."""
        return self.iou_mean.classes

    @cached_property
    def mean_dice(self) -> float:
        """Mean Dice by the report's protocol."""
        return self._mean(metrics.dice).value

    @cached_property
    def mean_accuracy(self) -> float:
        """Mean recall by the report's protocol."""
        return self._mean(metrics.recall).value

    @cached_property
    def pixel_accuracy(self) -> float:
        """Share of the valid pixels that are right."""
        return float(metrics.pixel_accuracy(self.counts))

    @cached_property
    def frequency_weighted_iou(self) -> float:
        """IoU weighted by truth pixels."""
        return float(metrics.frequency_weighted_iou(self.counts))

    @cached_property
    def cohen_kappa(self) -> float:
        """Cohen's kappa."""
        return float(metrics.cohen_kappa(self.counts))

    @property
    def boundary_iou(self) -> float:
        """Mean Boundary IoU at the first width; NaN where it was not measured."""
        means = (row["mean"] for row in self.boundary if row["measure"] == "boundary_iou")
        return float(next(means, np.nan))

    @property
    def gap(self) -> float:
        """Pixel accuracy minus mean IoU."""
        return self.pixel_accuracy - self.mean_iou

    @cached_property
    def majority(self) -> dict[str, Any]:
        """What always answering the most frequent class would score."""
        chosen = majority_class(self.counts)
        counts = majority_counts(self.counts, chosen)
        images = None if self.per_image is None else majority_counts(self.per_image, chosen)
        mean = self.protocol.mean(metrics.iou, counts, include=self.include, per_image=images)
        return {
            "class": self.class_names[chosen],
            "pixel_accuracy": float(metrics.pixel_accuracy(counts)),
            "mean_iou": mean.value,
        }

    @cached_property
    def fine_grained(self) -> FineGrained | None:
        """IoU image by image: averages and worst cases; None where images were not kept apart."""
        if self.per_image is None:
            return None
        return fine_grained(self.per_image, include=self.include)

    @cached_property
    def imbalance(self) -> Imbalance:
        """What pixel accuracy hides: the gap to mean IoU taken apart."""
        return explain(self)

    def interval_of(self, name: str | None = None) -> tuple[float, float] | None:
        """Interval of the IoU of a class, or of the mean; None where there is none."""
        if self.intervals is None:
            return None
        found = next((c for c in self.intervals.classes if c.name == name), None)
        if name is None:
            found = self.intervals.overall
        return None if found is None else (found.low, found.high)

    @cached_property
    def group_rows(self) -> tuple[ClassRow, ...]:
        """The groups as classes of their own: confusion within a group is correct."""
        if not self.groups:
            return ()
        merged = self.tally.merged_classes([members for _, members in self.groups])
        names = [name for name, _ in self.groups]
        return class_rows(names, merged.counts, metrics.share(merged.counts))

    def _shares(self) -> Floats:
        return metrics.share(self.counts)

    def _mean(self, metric: Callable[[Counts], Floats]) -> Mean:
        return self.protocol.mean(
            metric, self.counts, include=self.include, per_image=self.per_image
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: names as attributes, None for undefined, counts as integers."""
        return formats.to_dict(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Strict JSON of :meth:`to_dict`, at full precision."""
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

        rows = self.sorted_classes(sort, reverse=reverse)
        return render_text(self, rows, width or 100, color=color)

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
        return formats.save(self, Path(path), format)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou.report.notebook import render_notebook

        return render_notebook(self)

    def __repr__(self) -> str:
        return (
            f"<Report: mean IoU {self.mean_iou:.4f} over {self.mean_iou_classes} of "
            f"{len(self.class_names)} classes, pixel accuracy {self.pixel_accuracy:.4f}, "
            f"{self.pairs} pairs>"
        )
