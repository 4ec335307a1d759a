"""The numbers of a report: every score of some counts, and its intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_kind
from segiou._support.optional import Drawable
from segiou._support.text import Json, Nouns, did_you_mean, nouns
from segiou.analysis.gap.baselines import majority_class, majority_counts
from segiou.analysis.gap.steps import NextStep, next_steps
from segiou.counting.counts import ConfusionCounts, Counts
from segiou.counting.encoding import BACKEND
from segiou.inference.count_scores import class_score
from segiou.inference.intervals import Intervals, confidence_intervals
from segiou.inference.order_statistics import worst_mean_limits
from segiou.inference.scored_runs import unit_of_pixels
from segiou.labels.label_set import background_of
from segiou.measures.score import MEAN, OVERALL
from segiou.measures.score_names import not_measured, read_name
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.per_image import QUANTILES, ImageLevelMeans, image_level_means, image_means
from segiou.metrics.pixel_scores import PIXEL_SCORES, metric_label
from segiou.metrics.protocols import Mean, Protocol
from segiou.metrics.ratio import Floats
from segiou.report.image_cautions import ImageCaution

if TYPE_CHECKING:
    from segiou.analysis.gap.gains import ThresholdGain
    from segiou.analysis.gap.imbalance import Imbalance

#: Plain data, as in JSON.
Plain = Mapping[str, Any]

#: Scores of predicting one class everywhere.
Baseline = TypedDict("Baseline", {"class": str, "pixel_accuracy": float, "mean_iou": float})
#: Intervals over fewer images are meaningless.
FEWEST_IMAGES: Final = 3
#: Intervals of more counts of an image and a class take over a second, so only if asked for.
_MOST_COUNTS = 10_000_000
#: A background that raises mean IoU by less is not reported.
_NOTABLE = 0.05


class BackgroundShare(NamedTuple):
    """The class of background, its IoU, and the mean IoU without it."""

    name: str
    iou: float
    mean_without: float


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
class ReportNumbers(Drawable):
    """Counts of a :class:`Report`, and every number computed from them."""

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
        return unit_of_pixels(self)

    @property
    def _nouns(self) -> Nouns:
        """Names of a pixel and an image, such as voxel and case."""
        return nouns(self.unit)

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
        """Mean IoU if undeclared predictions that the protocol ignores counted as missed."""
        counts = self.counts if self.counted is None else self.counted.counts
        return self.protocol.mean(metrics.iou, counts, include=self.include).value

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
    def background_share(self) -> BackgroundShare | None:
        """The background and the mean IoU without it, if it raises the mean notably."""
        name = background_of(self.class_names)
        if name is None or not self.include[place := self.class_names.index(name)]:
            return None
        others = self.include & (np.arange(len(self.class_names)) != place)
        without = self._mean(metrics.iou, others).value
        if not self.mean_iou - without >= _NOTABLE:
            return None
        return BackgroundShare(name, float(metrics.iou(self.counts)[place]), without)

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
        check_kind("key", key, str, "text")
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
        TypeError
            If the name or the row is not text.
        ValueError
            If the report does not have the score, the class or the structure.

        Examples
        --------
        >>> from segiou import ConfusionMatrix
        >>> report = ConfusionMatrix(["road", "car"]).update([0, 0, 1, 1], [0, 1, 1, 1]).report()
        >>> report.score("pixel_accuracy"), report.score("iou:road"), report.score("iou", "road")
        (0.75, 0.5, 0.5)
        """
        for what, text in {"name": name, "row": row}.items():
            check_kind(what, text, str, "text")
        score_name = read_name(f"{name}:{row}" if row else name, self.scores_by_name)
        score = self.scores_by_name.get(score_name.score)
        if score is None:
            raise not_measured(score_name)
        if (value := score.of_row(score_name.row)) is None:
            hint = did_you_mean(score_name.row, score.rows)
            known = ", ".join(score.rows)
            msg = f"{score_name.score}: unknown class {score_name.row!r}; classes: {known}{hint}"
            raise ValueError(msg)
        return value

    @cached_property
    def scores_by_name(self) -> Mapping[str, ScoreValues]:
        """Every score with its classes, groups or structures."""
        scores = {score.name: score for score in (*_pixel_scores(self), *self.measured_scores)}
        for table in self.tables:  # and the other numbers of tables, such as objects_missed
            for column in table.columns:
                if column.title and ":" not in column.name:
                    scores.setdefault(column.name, column)
        return scores

    @property
    def scales(self) -> Mapping[str, tuple[str, str]]:
        """Unit of each score of the measures, and the direction of better values."""
        return {score.name: (score.unit, score.better or "") for score in self.measured_scores}

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
        score = self._score_of(name)
        return "" if score is None else score.unit

    def _score_of(self, name: str) -> ScoreValues | None:
        """The score of a name, such as ``"iou:car"``; None of counts."""
        check_kind("the name of a score", name, str, "text")
        return self.scores_by_name.get(name.partition(":")[0])

    def better(self, name: str) -> str:
        """Which values of a score are better: ``"higher"``, ``"lower"``, or ``""`` of counts.

        Parameters
        ----------
        name : str
            Name of the score.
        """
        score = self._score_of(name)
        return "higher" if score is None else score.better or ""

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
    def _image_means(self) -> Floats | None:
        """Mean IoU of each image over the classes in its truth, (N,); None without their counts."""
        counts = self.per_image
        return None if counts is None else image_means(counts, include=self.include)

    @cached_property
    def worst_image_intervals(self) -> dict[int, tuple[float, float]]:
        """Intervals of the means over the worst images, by percentage.

        Only if images are the units of the intervals, and from two worst images on.
        """
        intervals, values = self.intervals_or_default, self._image_means
        if intervals is None or intervals.unit != "image" or values is None:
            return {}
        limits = {q: worst_mean_limits(values, q, level=intervals.level) for q in QUANTILES}
        return {q: ends for q, ends in limits.items() if not np.isnan(ends[0])}

    @cached_property
    def imbalance(self) -> Imbalance:
        """Gap between pixel accuracy and mean IoU, with its parts."""
        from segiou.analysis.gap.imbalance import explain

        return explain(self)

    @cached_property
    def next_steps(self) -> tuple[NextStep, ...]:
        """The errors that cost most mean IoU, the largest gain first; channels have none."""
        if self.steps is not None or not self.has_matrix:
            return self.steps or ()
        return next_steps(
            self.tally, self.class_names, self.protocol, self.include, pixel_unit=self.unit
        )

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
        by_metric = {} if first is None else {first.metric: first}
        if self.intervals is not None:
            given = (self.intervals, *self.more_intervals)
            return by_metric | {intervals.metric: intervals for intervals in given}
        # The pixel accuracy of overlapping channels is a different score: of yes and no.
        others = ("recall", *(["pixel_accuracy"] if self.has_matrix else []))
        return by_metric | {name: self.default_intervals(name) for name in others if by_metric}

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

        Those of groups that were given are beside those of classes.

        Parameters
        ----------
        name : str
            Name of the score.
        """
        if self._score_of(name) is None:
            raise not_measured(read_name(name, self.scores_by_name))
        if name in PIXEL_SCORES:
            by_name = self.pixel_intervals
            groups = [f"{name}:{group}" for group, _ in self.groups]
            rows = [row for group in groups if group in by_name for row in by_name[group].classes]
            of_classes = by_name.get(name)
            return of_classes and replace(of_classes, classes=(*of_classes.classes, *rows))
        intervals: Intervals | None = self.scores_by_name[name].intervals
        return intervals

    @cached_property
    def group_counts(self) -> Counts | None:
        """Counts of each group against the rest; None without groups."""
        if not self.groups:
            return None
        only = self.protocol.groups == "grouped"
        members = [classes for _, classes in self.groups]
        counts = self.tally.group_counts(members, grouped_truth_only=only)
        for at, (name, classes) in enumerate(self.groups):
            if name in self.class_names:  # one thing, whichever pixels groups are scored over
                for key in ("tp", "fp", "fn", "tn"):
                    getattr(counts, key)[at] = getattr(self.counts, key)[classes[0]]
        return counts

    def _mean(
        self, metric: Callable[[Counts], Floats], include: NDArray[np.bool_] | None = None
    ) -> Mean:
        included = self.include if include is None else include
        return self.protocol.mean(metric, self.counts, include=included, per_image=self.per_image)


def _pixel_scores(report: ReportNumbers) -> Iterator[ScoreValues]:
    """The scores of pixels; groups are scored as classes, and the mean does not cover them."""
    groups = report.group_counts
    for name, metric in PIXEL_SCORES.items():
        with np.errstate(all="ignore"):
            is_of_counts = report.has_matrix or metric.per_class
            values = metric.function(report.counts) if is_of_counts else getattr(report, name)
            rows: dict[str, float] = {}
            if metric.per_class:
                if groups is not None:
                    names = [name for name, _ in report.groups]
                    rows |= zip(names, metric.function(groups).tolist(), strict=True)
                if report.protocol.needs_images and report.per_image is not None:
                    rule: Any = report.class_names, report.include, report.protocol
                    score = class_score(name, metric.function, *rule)
                    values = score.values(report.per_image)[1:]
                rows |= zip(report.class_names, np.asarray(values).tolist(), strict=True)
                mean = report._mean(metric.function)
        title = metric_label(name, report.unit)
        value, classes = (mean.value, mean.classes) if metric.per_class else (float(values), None)
        overall = MEAN if metric.per_class else OVERALL
        about: dict[str, Any] = {"unit": metric.unit, "classes": classes, "overall": overall}
        yield ScoreValues(name, title, rows, (value,), **about)
