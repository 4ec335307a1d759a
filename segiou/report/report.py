"""A report: every number of some counts, with the protocol that made the means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_integer, check_kind, check_path
from segiou._support.files import write_whole
from segiou._support.optional import Drawable
from segiou._support.text import Json, did_you_mean, percent, plural
from segiou.analysis.baselines import majority_class, majority_counts
from segiou.analysis.intervals import Intervals, confidence_intervals
from segiou.analysis.order_statistics import worst_mean_limits
from segiou.analysis.scored_runs import of_volumes
from segiou.analysis.steps import NextStep, next_steps
from segiou.analysis.threshold_gains import ThresholdGain
from segiou.counting.counts import ConfusionCounts, Counts
from segiou.counting.encoding import BACKEND
from segiou.measures.score_names import ScoreName, not_measured, read_name
from segiou.measures.score_table import ScoreTable
from segiou.metrics.per_image import QUANTILES, ImageLevelMeans, image_level_means, image_means
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.metrics.protocols import Mean, Protocol
from segiou.metrics.ratio import Floats
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
from segiou.report.image_cautions import ImageCaution
from segiou.report.score_values import ScoreValues, of_pixels
from segiou.report.wording import in_python, verdict

if TYPE_CHECKING:
    import pandas

    from segiou._support.document import Part
    from segiou.analysis.imbalance import Imbalance

#: Plain data, as JSON has it.
Plain = Mapping[str, Any]

Format = Literal["table", "json", "csv", "markdown", "html", "latex"]

#: What predicting one class everywhere scores.
Baseline = TypedDict("Baseline", {"class": str, "pixel_accuracy": float, "mean_iou": float})
#: Of fewer images an interval would say nothing.
FEWEST_IMAGES: Final = 3
#: Intervals of more counts of an image and a class take over a second, so only if asked for.
_MOST_COUNTS = 10_000_000


@dataclass(frozen=True, slots=True)
class WorstImages:
    """Rows of images with the lowest scores, the lowest first.

    Attributes
    ----------
    by : str
        The column that is the score.
    rows : tuple of dict
        Rows of :meth:`segiou.Run.rows`.
    """

    by: str
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Report(Drawable):
    """Scores of one evaluation.

    It renders as a table in a terminal (``print``) and in a notebook, and
    writes itself as JSON, CSV, Markdown and HTML. Its numbers are exact: only
    what people read (text, Markdown, notebook, page) is in per cent and rounded.

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
        False where a class is left out of the means; it still counts.
    counted : ConfusionCounts, optional
        The counts with the pixels that the protocol ignores.
    per_image : Counts of shape (N, C), optional
        Counts of each image, where they were kept.
    groups : tuple of (str, tuple of int)
        Unions of classes that are reported too.
    title : str
        Title of the report.
    provenance : mapping
        How it was made: files, options.
    intervals : Intervals, optional
        Intervals of the mean and of each class's IoU.
    more_intervals : tuple of Intervals
        Those of other scores of pixels.
    tables : tuple of ScoreTable
        What other measures found.
    measured_scores : tuple of ScoreValues
        Scores of the measures.
    worst_images : WorstImages, optional
        Images with the lowest scores, to be listed too.
    left_out : int
        Pairs and files that could not be scored, or lacked their counterpart.
    ids : tuple of str
        Names of the images of ``per_image``.
    steps : tuple of NextStep, optional
        What :attr:`next_steps` gives, where the images that they name are known.
    threshold_gains : tuple of ThresholdGain
        Thresholds of scores that would raise IoU.
    image_cautions : tuple of ImageCaution
        Images with an empty prediction, without a correct structure or without valid pixels.
    """

    class_names: tuple[str, ...]
    tally: ConfusionCounts
    pairs: int
    protocol: Protocol
    include: NDArray[np.bool_]
    per_image: Counts | None = None
    counted: ConfusionCounts | None = None
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    title: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    intervals: Intervals | None = None
    more_intervals: tuple[Intervals, ...] = ()
    tables: tuple[ScoreTable, ...] = ()
    measured_scores: tuple[ScoreValues, ...] = ()
    worst_images: WorstImages | None = None
    left_out: int = 0
    ids: tuple[str, ...] = ()
    steps: tuple[NextStep, ...] | None = None
    threshold_gains: tuple[ThresholdGain, ...] = ()
    image_cautions: tuple[ImageCaution, ...] = ()

    # Pyright takes a property for what Scored asks for, and no cached one.
    @property
    def counts(self) -> Counts:
        """Counts of the data set, shape (C,)."""
        return self._counts

    @cached_property
    def _counts(self) -> Counts:
        return self.tally.counts

    @property
    def backend(self) -> str:
        """Name of the counting routine in use."""
        return BACKEND

    @property
    def unit(self) -> str:
        """Unit of the counts, in words."""
        return "voxels" if of_volumes(self.provenance) else "pixels"

    @property
    def pixels(self) -> int:
        """Pixels seen."""
        return int(self.tally.pixels.sum())

    @property
    def ignored(self) -> int:
        """Pixels dropped by their truth value or a mask."""
        return int(self.tally.ignored.sum())

    @property
    def has_matrix(self) -> bool:
        """Whether there is a confusion matrix; overlapping channels have none."""
        return True

    @property
    def matrix(self) -> NDArray[np.int64]:
        """Confusion matrix (C, C); rows are truth. Overlapping channels have none: (0, 0)."""
        return self.tally.matrix

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class with an undeclared prediction, (C,)."""
        return self.tally.unassigned

    @property
    def ignored_predictions(self) -> int:
        """Pixels with an undeclared prediction that the protocol ignores."""
        return 0 if self.counted is None else int((self.tally.ignored - self.counted.ignored).sum())

    @property
    def mean_iou_if_missed(self) -> float:
        """Mean IoU if these pixels counted as missed."""
        counts = self.counts if self.counted is None else self.counted.counts
        return self.protocol.mean(metrics.iou, counts, include=self.include).value

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
    def iou_mean(self) -> Mean:
        """Mean IoU with the classes that it covers and skips."""
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
        """Share of the valid pixels that are correct."""
        return float(metrics.pixel_accuracy(self.counts))

    @cached_property
    def frequency_weighted_iou(self) -> float:
        """IoU weighted by truth pixels."""
        return float(metrics.frequency_weighted_iou(self.counts))

    @cached_property
    def cohen_kappa(self) -> float:
        """Cohen's kappa."""
        return float(metrics.cohen_kappa(self.counts))

    def table(self, key: str) -> ScoreTable | None:
        """Table of a measure; None if it was not measured.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        return next((table for table in self.tables if table.key == key), None)

    @cached_property
    def measures(self) -> Mapping[str, Json]:
        """Results of the measures by their keys in the JSON report, such as ``"objects"``."""
        return {key: part for table in self.tables for key, part in table.to_dict().items()}

    def score(self, name: str, row: str = "") -> float:
        """One score of the report, by its name in ``--fail-under``.

        Parameters
        ----------
        name : str
            Such as ``"mean_iou"``, ``"iou:car"``, ``"pq"`` or ``"hausdorff_95:liver"``.
        row : str
            The class or structure, if the name does not have it.

        Returns
        -------
        float
            NaN where undefined.

        Raises
        ------
        ValueError
            If the report does not have the score, the class or the structure.

        Examples
        --------
        >>> from segiou import ConfusionMatrix
        >>> report = ConfusionMatrix(["road", "car"]).update([0, 0, 1, 1], [0, 1, 1, 1]).report()
        >>> report.score("pixel_accuracy"), report.score("iou:road"), report.score("iou", "road")
        (0.75, 0.5, 0.5)
        """
        named = read_name(f"{name}:{row}" if row else name, self.scores_by_name)
        one = self.scores_by_name.get(named.score)
        if one is None:
            raise not_measured(named)
        if (found := one.at(named.row)) is None:
            hint = did_you_mean(named.row, one.rows)
            known = ", ".join(one.rows)
            msg = f"{named.score}: unknown class {named.row!r}; classes: {known}{hint}"
            raise ValueError(msg)
        return found

    @cached_property
    def scores_by_name(self) -> Mapping[str, ScoreValues]:
        """Every score with its classes, groups or structures."""
        found = {one.name: one for one in (*of_pixels(self), *self.measured_scores)}
        for table in self.tables:  # and the other numbers of tables, such as objects_missed
            for c in (one for one in table.columns if ":" not in one.name):
                rows = dict(zip(table.rows, map(float, c.values), strict=True))
                whole = float(c.means[0]) if c.means else np.nan
                one = ScoreValues(c.name, c.title, c.unit, c.better or "", whole, rows, kind=c.kind)
                found.setdefault(c.name, one)
        return found

    @property
    def scales(self) -> Mapping[str, tuple[str, str]]:
        """Unit of each score of the measures, and which values are better."""
        return {one.name: (one.unit, one.better) for one in self.measured_scores}

    def score_unit(self, name: str) -> str:
        """Unit of a score, or of a column of images such as ``hausdorff_95:liver``.

        Parameters
        ----------
        name : str
            Name of the score.

        Returns
        -------
        str
            Empty for ratios.
        """
        found = self.scores_by_name.get(name.partition(":")[0])
        return "" if found is None else found.unit

    def better(self, name: str) -> str:
        """Which values of a score are better, ``"higher"`` or ``"lower"``.

        Parameters
        ----------
        name : str
            Name of the score.
        """
        found = self.scores_by_name.get(name.partition(":")[0])
        return "higher" if found is None else found.better

    @property
    def gap(self) -> float:
        """Pixel accuracy minus mean IoU."""
        return self.pixel_accuracy - self.mean_iou

    @cached_property
    def majority(self) -> Baseline:
        """Scores of always predicting the most frequent class (majority baseline)."""
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
    def image_level_means(self) -> ImageLevelMeans | None:
        """Means of IoU over images, and over the worst; None if their counts were not kept."""
        if self.per_image is None:
            return None
        return image_level_means(self.per_image, include=self.include)

    @cached_property
    def worst_image_intervals(self) -> dict[int, tuple[float, float]]:
        """Intervals of the means over the worst images, by percentage.

        Only if images are the units of the intervals, and from two worst images on.
        """
        intervals = self.intervals_or_default
        if intervals is None or intervals.unit != "image" or self.per_image is None:
            return {}
        values = image_means(self.per_image, include=self.include)
        limits = {q: worst_mean_limits(values, q, level=intervals.level) for q in QUANTILES}
        return {q: ends for q, ends in limits.items() if not np.isnan(ends[0])}

    @cached_property
    def imbalance(self) -> Imbalance:
        """Gap between pixel accuracy and mean IoU, with its parts."""
        from segiou.analysis.imbalance import explain

        return explain(self)

    @cached_property
    def next_steps(self) -> tuple[NextStep, ...]:
        """The errors that cost most mean IoU, the largest gain first; channels have none."""
        if self.steps is not None or not self.has_matrix:
            return self.steps or ()
        return next_steps(self.tally, self.class_names, self.protocol, self.include)

    @cached_property
    def verdict(self) -> str:
        """Mean IoU, cautions, the costliest error and better thresholds, in words."""
        return verdict(self)

    @cached_property
    def intervals_or_default(self) -> Intervals | None:
        """The given intervals of IoU, else the default ones over images."""
        if self.intervals is not None and self.intervals.metric == "iou":
            return self.intervals
        if self.per_image is None or np.isnan(self.mean_iou):
            return None
        images, classes = self.per_image.tp.shape
        few = images < FEWEST_IMAGES
        many = images * classes > _MOST_COUNTS
        return None if few or many else self.default_intervals("iou")

    @cached_property
    def pixel_intervals(self) -> Mapping[str, Intervals]:
        """Intervals of scores of pixels by name: the given ones, else those over images."""
        first = self.intervals_or_default
        found = {} if first is None else {first.metric: first}
        if self.intervals is not None:
            return found | {one.metric: one for one in (self.intervals, *self.more_intervals)}
        # The pixel accuracy of overlapping channels is a different score: of yes and no.
        others = ("recall", *(["pixel_accuracy"] if self.has_matrix else []))
        return found | {name: self.default_intervals(name) for name in others if found}

    def default_intervals(self, metric: str) -> Intervals:
        """Jackknife-t intervals of a metric over the images.

        Parameters
        ----------
        metric : str
            Name of a metric, such as ``"iou"``.
        """
        return confidence_intervals(self, metric)

    def intervals_of(self, name: str) -> Intervals | None:
        """The intervals of a score: the given ones, or the default ones of pixels.

        Parameters
        ----------
        name : str
            Name of the score.
        """
        if name in PIXEL_SCORES:
            return self.pixel_intervals.get(name)
        found: Intervals | None = self.scores_by_name[name].intervals
        return found

    @cached_property
    def group_counts(self) -> Counts | None:
        """Counts of each group against the rest; None without groups."""
        if not self.groups:
            return None
        only = self.protocol.groups == "grouped"
        members = [own for _, own in self.groups]
        return self.tally.group_counts(members, grouped_truth_only=only)

    @cached_property
    def group_rows(self) -> tuple[ClassRow, ...]:
        """Each group against the rest: confusion within a group is correct. Groups may overlap."""
        return () if self.group_table is None else rows_of(self.group_table)

    def _mean(self, metric: Callable[[Counts], Floats]) -> Mean:
        return self.protocol.mean(
            metric, self.counts, include=self.include, per_image=self.per_image
        )

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
        return {f"{prefix}{key}": self._value(one) for key, one in keys.items()}

    def _rows_of(self, name: str) -> Sequence[str]:
        """The classes or structures of a score; of pixels, without groups."""
        one = self.scores_by_name.get(name)
        rows = () if one is None else tuple(one.rows)
        return [row for row in rows if name not in PIXEL_SCORES or row in self.class_names]

    def _value(self, named: ScoreName) -> float:
        one = self.scores_by_name.get(named.score)
        found = None if one is None else one.at(named.row)
        return np.nan if found is None else found

    def to_dict(self) -> dict[str, Json]:
        """Plain data: names as attributes, None for undefined, counts as integers."""
        return formats.to_dict(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Strict JSON of :meth:`to_dict`, at full precision.

        Parameters
        ----------
        indent : int, default 2
            Blanks of each level; None gives one line.
        """
        if indent is not None:
            check_integer("indent", indent, 0)
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
        from segiou._support.document import markdown_of

        return markdown_of(self._parts(sort=sort, reverse=reverse, columns=columns))

    def to_html(self, **options: Any) -> str:
        """A self-contained page; options as for :func:`segiou.report.report_page.render_report`.

        Parameters
        ----------
        **options
            As there.
        """
        from segiou.report.report_page import render_report

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
        from segiou._support.terminal import text_of

        room = 100 if width is None else check_integer("width", width, 1)
        order: Any = {"sort": sort, "reverse": reverse, "columns": columns}
        return text_of(self._parts(**order, detail=bool(detail)), room, color=color)

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
        from segiou._support.latex import latex_of

        parts = self._parts(sort=sort, reverse=reverse, columns=columns, means=True)
        return latex_of(parts, transposed=transposed)

    def _parts(
        self,
        *,
        sort: str = "order",
        reverse: bool = False,
        columns: str | Sequence[str] | None = None,
        **more: Any,
    ) -> list[Part]:
        from segiou.report.report_document import report_parts, worded

        chosen = class_columns(columns, self.scores_by_name)
        for name in chosen:
            column_of(self.class_table, name)
        parts = report_parts(self, self._sorted(sort, reverse=reverse), chosen, **more)
        return [*worded(parts, self.unit)]

    def _sorted(self, key: str, *, reverse: bool) -> ScoreTable:
        table = self.class_table
        return table.taken(row_order(table, key, reverse=bool(reverse)))

    def to_pandas(self) -> pandas.DataFrame:
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
            The file; its extension selects the format unless ``format`` is given.
        format : {"table", "json", "csv", "markdown", "html", "latex"}, optional
        """
        check_path("path", path)
        path = Path(path)
        return write_whole(path, formats.render(self, format or formats.format_of(path)))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou._support.notebook import notebook_of

        return notebook_of(self._parts(), "report", in_python)

    def __repr__(self) -> str:
        return (
            f"<Report: mean IoU {percent(self.mean_iou)} over {self.mean_iou_classes} of "
            f"{plural(len(self.class_names), 'class', 'classes')}, "
            f"pixel accuracy {percent(self.pixel_accuracy)}, {plural(self.pairs, 'pair')}>"
        )
