"""The built-in measure of scores: histograms of each image, derived scores, and their table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_flag, check_integer, check_number
from segiou._support.numbers import NUMBER
from segiou._support.text import Json, plain
from segiou.accumulators.histograms import threshold_curves as curves
from segiou.accumulators.histograms.calibration_errors import MOST_ROWS, top_calibration
from segiou.accumulators.histograms.formulas import Formula, formulas_of
from segiou.accumulators.histograms.region_overlaps import LIMIT, WHOLE, check_limit
from segiou.accumulators.histograms.score_bins import (
    FLOAT16,
    SCORE_UNIT,
    ScoreBins,
    activated,
    as_floats,
    as_scores,
    two_planes,
)
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.counts import Counts
from segiou.counting.scores import scores_to_labels
from segiou.labels.class_options import ClassOptions
from segiou.masks.formats.numpy_files import is_of_nnunet
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.reading import check_pattern
from segiou.masks.sources.folders import Source
from segiou.measures.mask_pair import MaskPair, Masks, ScoredPrediction
from segiou.measures.measure import Measure, read_number
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Alternative, Counted, Plan
from segiou.measures.score import MEAN, OVERALL, Score, mean_first, mean_weights
from segiou.measures.score_table import Chart, RowCurves, ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.measures.scores.files import ClassFiles, ScoreShape, read_scores
from segiou.measures.scores.group_channels import GroupChannels
from segiou.measures.scores.other_thresholds import other_thresholds
from segiou.metrics.ratio import Floats

#: Options of the command line other than --scores.
_OPTIONS = (
    *("threshold", "scores_axis", "scores_bins"),
    *("scores_channels", "scores_files", "scores_regions"),
)
_FOR_REGIONS = "for regions, use nnU-Net's dataset.json or another label set with groups as labels"
#: Distance from 1 of sums of probabilities that are rounded.
_NEAR = 0.02
#: Largest number of thresholds per class on a page.
_THRESHOLDS = 101


@dataclass(frozen=True)
class ScoreOptions(Measure):
    """Ranking, thresholds and calibration of probabilities or logits.

    Attributes
    ----------
    activation : {"", "softmax", "sigmoid"}
        Function that maps the scores to [0, 1]; empty if they are in [0, 1].
    bins : int or "float16"
        As of :class:`segiou.ScoreHistogram`.
    rows : int
        Number of bins of the reliability diagram, for calibration errors.
    threshold : float, optional
        For files with the score of the second of two classes: it is predicted where its
        score is greater. With an activation, the score is the probability that it returns.
    axis : {"", "first", "last"}
        The class axis of files; empty if only one axis fits the truth and the classes.
    files : str
        Path of the files below their folder if each contains one class, without
        extension: ``"{id}_{class}"``, where the class is a name or an index.
    regions : bool
        Whether to count the true regions as well, for the score ``aupro``: see
        :class:`segiou.ScoreHistogram`.
    aupro_limit : float
        Highest false positive rate of ``aupro``, from 1e-6 to 1: 0.3 as in MVTec AD, 0.05 as in
        MVTec AD 2. The score at another limit than 0.3 is named by it: ``aupro_0.05``.
    channels : {"", "classes", "groups"}
        Whether the channels of files are the classes, or the groups of the label set, which
        may overlap; groups by default if the labels are nnU-Net's ``dataset.json`` with regions.

    Raises
    ------
    TypeError
        If an option has the wrong type.
    ValueError
        If an option has the wrong value.

    Examples
    --------
    >>> ScoreOptions("softmax").bins
    4096
    """

    key: ClassVar[str] = "scores"
    title: ClassVar[str] = "Scores"
    score_names: ClassVar[tuple[str, ...]] = (
        *("average_precision", "roc_auc", "best_iou", "fpr95", "aupro"),
        *("ece", "mce", "ace", "brier"),
    )

    activation: str = ""
    bins: int | str = 4096
    rows: int = 15
    threshold: float | None = None
    axis: str = ""
    files: str = ""
    regions: bool = False
    channels: str = ""
    aupro_limit: float = LIMIT

    def __post_init__(self) -> None:
        check_flag("regions", self.regions)
        object.__setattr__(self, "aupro_limit", check_limit("aupro_limit", self.aupro_limit))
        if self.aupro_limit != LIMIT and not self.regions:
            msg = f"aupro_limit={self.aupro_limit} needs regions=True"
            raise ValueError(msg)
        check_choice("channels", self.channels, ("", "classes", "groups"))
        check_choice("axis", self.axis, ("", "first", "last"))
        check_choice("activation", self.activation, ("", "softmax", "sigmoid"))
        if self.threshold is not None:
            span = () if self.activation else (0, 1)
            share = check_number("threshold", self.threshold, *span)
            if self.activation and not 0 < share < 1:
                msg = (
                    f"threshold must be a probability between 0 and 1 with {self.activation}, got "
                    f"{share:g}; that of the logit 0 is 0.5"
                )
                raise ValueError(msg)
            object.__setattr__(self, "threshold", share)
        if not isinstance(self.files, str) or self.files:
            check_pattern("files", self.files)
        object.__setattr__(self, "rows", check_integer("rows", self.rows, 1, MOST_ROWS))
        object.__setattr__(self, "bins", ScoreBins(self.bins).kind)

    @classmethod
    def of(cls, choice: Any) -> ScoreOptions:
        """Build from options, the name of an activation, or True for probabilities."""
        return choice if isinstance(choice, cls) else cls() if choice is True else cls(choice)

    def check_arrays(self) -> None:
        """Reject options of files."""
        if self.threshold is not None:
            msg = (
                f"threshold={self.threshold:g} of ScoreOptions is for files; pass threshold=T "
                "beside the arrays, which is compared with the scores as they are: 0.5 for "
                "probabilities, the logit log(p / (1 - p)) for logits, such as 0"
            )
            raise ValueError(msg)
        for name in ("axis", "files"):
            if value := getattr(self, name):
                msg = f"{name}={value!r} of ScoreOptions is for files; omit it for arrays"
                raise ValueError(msg)

    @classmethod
    def flag_for(cls, score: str = "") -> str:
        """``--scores``, and the option that one score also needs."""
        return "--scores --scores-regions" if score.startswith("aupro") else "--scores"

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> ScoreOptions | None:
        """Options from the command line."""
        options = {name: given.get(name) for name in _OPTIONS}
        if not (kind := given.get("scores")):
            if others := [name for name, value in options.items() if value is not None]:
                msg = f"--{others[0].replace('_', '-')} needs --scores"
                raise ValueError(msg)
            return None
        bins, threshold = options["scores_bins"], options["threshold"]
        if bins not in (None, FLOAT16):
            bins = read_number("--scores-bins", bins, int)
        return cls(
            "" if kind == "probabilities" else kind,
            cls.bins if bins is None else bins,
            threshold=None if threshold is None else read_number("--threshold", threshold, float),
            axis=options["scores_axis"] or "",
            files=options["scores_files"] or "",
            regions=options["scores_regions"] is not None,
            channels=options["scores_channels"] or "",
            aupro_limit=_limit(options["scores_regions"]),
        )

    def predictions(self, source: Source, classes: ClassOptions) -> Source:
        """Files of one class each as one image."""
        if not self.files:
            return source
        return ClassFiles(source, self.files, classes.labels.class_names)

    def plan(self, classes: ClassOptions, masks: Masks) -> ScorePlan:
        """The plan for these classes."""
        _ = classes.decided_values  # each class needs one
        is_groups = self.channels == "groups"
        if not self.channels and classes.groups:
            is_groups = classes.labels.source.startswith("nnU-Net")
        return ScorePlan(self, classes, masks, GroupChannels.of(classes) if is_groups else None)


def _limit(given: str | None) -> float:
    """The limit of AUPRO on a command line."""
    if given is None:
        return LIMIT
    return check_limit("--scores-regions", read_number("--scores-regions", given, float))


def page_curves(histogram: ScoreHistogram, bins: int) -> Iterator[RowCurves]:
    """Curves of each class that has any; ``bins`` is that of the reliability diagram."""
    table, best = histogram.at_thresholds(), histogram.best_threshold()
    for c, name in enumerate(histogram.class_names):
        if name in histogram.undefined:
            continue
        at = int(np.searchsorted(table.thresholds, best.thresholds[c]))
        shown = _shown(table.recall[c], at)
        values = {"IoU": table.iou, "precision": table.precision, "recall": table.recall}
        series = {"threshold": tuple(float(f"{x:.5g}") for x in table.thresholds[shown])}
        series |= {title: _plain(values_of[c][shown]) for title, values_of in values.items()}
        calibration = histogram.calibration(bins, c)
        filled = calibration.pixels > 0
        confidence, accuracy = calibration.confidence[filled], calibration.accuracy[filled]
        points = zip(_plain(confidence), _plain(accuracy), strict=True)
        charts = (
            Chart("Precision and recall", "recall", "precision"),
            Chart("IoU at each threshold", "threshold", "IoU"),
            Chart("Reliability diagram", "mean score", "share of the class", tuple(points), True),
        )
        yield RowCurves(name, series, int(np.searchsorted(shown, at)), charts)


def _shown(recall: Floats, best: int) -> Any:
    """Indices of thresholds, half of them at equal steps of the index, half of recall."""
    number = len(recall)
    half = (_THRESHOLDS - 1) // 2
    equal = np.linspace(0, number - 1, half).round().astype(int)
    by_recall = number - np.searchsorted(recall[::-1], np.linspace(0, 1, half), side="left") - 1
    return np.unique([*equal, *np.clip(by_recall, 0, number - 1), best])


def _plain(values: Floats) -> tuple[Any, ...]:
    """Numbers with 4 decimal places; only exact ones are 0 or 1, and NaN is None."""
    near = np.where((values > 0) & (values < 1), values.clip(1e-5, 1 - 1e-5), values)
    kept = np.where((near < 1e-4) | (near > 1 - 1e-4), near.round(5), near.round(4))
    return tuple(None if np.isnan(x) else float(x) for x in kept)


@dataclass(frozen=True)
class HistogramTable(ScoreTable):
    """The table of scores, with the histograms that it was derived from."""

    diagram_rows: int = 15

    def curves(self) -> tuple[RowCurves, ...]:
        """Precision, recall and IoU by threshold, and the reliability diagram of each class."""
        assert self.histogram is not None
        every = page_curves(self.histogram, self.diagram_rows)
        return tuple(curve for curve in every if curve.row in self.rows)


@dataclass(frozen=True)
class ScorePlan(Plan):
    """Plan of the scores measure: the cells of a histogram per image."""

    measure: ScoreOptions
    #: Names of the channels, unless they are the classes.
    groups: GroupChannels | None = None

    reads_predictions: ClassVar[bool] = True

    @cached_property
    def channels(self) -> ClassOptions:
        """The classes, or the groups as classes."""
        return self.classes if self.groups is None else self.groups.options

    @cached_property
    def bins(self) -> ScoreBins:
        """The bins."""
        return ScoreBins(self.measure.bins)

    @property
    def _shape(self) -> tuple[int, int, int]:
        return self._nothing._empty().shape

    @property
    def layout(self) -> Layout:
        """The cells of :class:`ScoreHistogram`; most are 0."""
        return {"cells": Field(self._shape, sparse=True)}

    @cached_property
    def _nothing(self) -> ScoreHistogram:
        return ScoreHistogram.from_options(self.channels, self.measure.bins, self.measure.regions)

    def histogram(self, total: Parts, images: int) -> ScoreHistogram:
        """The histograms of all images."""
        new = self._nothing.copy()
        new._add(total.dense("cells")[0], images)
        return new

    def read_prediction(
        self, data: bytes | RawMask, path: str, truth: tuple[int, ...]
    ) -> ScoredPrediction:
        """Read a file of scores and decide its pixels."""
        wanted = self._valid_shapes(data, truth)
        array, volume = read_scores(data, path, wanted)
        axis = wanted.axis_of(array.shape, path)
        self._check_decision(axis, path)
        if array.ndim > len(truth) + 1:
            array = array[:, 0]
        elif axis is None:  # (H, W, 1)
            array = array.reshape(truth)
        try:
            scores = as_scores(array)
            if axis is not None:
                planes = np.moveaxis(scores, axis, 0)
                self._check_reading(planes, path, is_of_nnunet(data))
            else:
                planes = scores if self.groups is None else scores[None]
            decided = self._decided(planes, axis)
        except TypeError as error:
            raise MaskError(path, str(error)) from None
        labels = self.classes.decided_values[decided.astype(np.intp)]
        if volume is not None:
            volume = replace(volume, values=labels, spacing=volume.spacing[: labels.ndim])
        return ScoredPrediction(labels, planes, volume)

    def _valid_shapes(self, data: bytes | RawMask, truth: tuple[int, ...]) -> ScoreShape:
        """The shapes that a file may have, and the advice for those of the other reading."""
        other = len(self.classes.groups) if self.groups is None else self.classes.num_classes
        hint = self._other_reading
        if not other:
            hint = _FOR_REGIONS if is_of_nnunet(data) else ""
        return ScoreShape(truth, self.channels.num_classes, self.measure.axis, other, hint)

    def _check_decision(self, axis: int | None, path: str) -> None:
        """Raise a MaskError unless the channels of a file decide between the classes."""
        number, threshold = self.channels.num_classes, self.measure.threshold
        problem = ""
        if axis is None and number != 2 - (self.groups is not None):
            names = "classes" if self.groups is None else "groups"
            problem = f"has one score per pixel, but there are {number} {names}"
        elif axis is None and self.groups is None and self.measure.activation == "softmax":
            problem = "has one score per pixel, of which softmax cannot make a probability; pass "
            problem += "activation='sigmoid' (--scores=sigmoid)"
        elif axis is None and self.groups is None and threshold is None:
            problem = "has one score per pixel; pass threshold=T (--threshold T), such as 0.5"
        elif self.groups is None and threshold is not None and number != 2:
            problem = f"has scores of {number} classes, but a threshold decides between 2"
        if problem:
            raise MaskError(path, problem)

    def _decided(self, planes: NDArray[Any], axis: int | None) -> NDArray[Any]:
        """Class indices of scores (C, ...), or of one score per pixel if there is no axis."""
        if self.groups is not None:
            return self.groups.labels(as_floats(planes) > self._threshold)
        if self.measure.threshold is None:
            return scores_to_labels(planes, argmax=0, allow_nan=True)
        second = as_floats(planes if axis is None else planes[1])
        if self.measure.activation == "softmax":
            with np.errstate(invalid="ignore"):  # NaN is reported when scores are counted
                second = np.subtract(second, planes[0], dtype=np.float64)
        return scores_to_labels(second, threshold=self._threshold, allow_nan=True)

    @property
    def _threshold(self) -> float:
        """A class is predicted above this score, or above this logit if there is an activation."""
        share = 0.5 if self.measure.threshold is None else self.measure.threshold
        return math.log(share / (1 - share)) if self.measure.activation else share

    @property
    def _other_reading(self) -> str:
        """The option that reads the channels differently."""
        kind = "groups" if self.groups is None else "classes"
        return f"for channels that are {kind}, pass channels={kind!r} (--scores-channels {kind})"

    def _check_reading(self, planes: NDArray[Any], path: str, is_of_nnunet: bool) -> None:
        """Raise a MaskError if the values contradict a reading that nobody asked for."""
        if self.measure.channels or self.measure.activation:
            return
        may_be_other = is_of_nnunet and len(planes) > 1
        if self.groups is not None:
            may_be_other = len(planes) == self.classes.num_classes
        if not may_be_other:
            return
        is_sum_of_1 = bool((abs(as_floats(planes).sum(0, dtype=np.float32) - 1) < _NEAR).all())
        if is_sum_of_1 != (self.groups is not None):
            return
        observed = "sum to 1, so they are probably classes, not groups that may overlap"
        if self.groups is None:
            observed = (
                "do not sum to 1, so they are probably regions that overlap, not classes; "
                f"{_FOR_REGIONS}"
            )
        reading = "classes" if self.groups is None else "groups"
        problem = (
            f"has channels that {observed}; {self._other_reading}; otherwise channels={reading!r} "
            f"(--scores-channels {reading})"
        )
        raise MaskError(path, problem)

    def class_scores(self, scores: NDArray[Any], truth: tuple[int, ...]) -> NDArray[Any] | None:
        """Probabilities of each class; None for channels of groups."""
        if self.groups is not None:
            return None
        activation: Any = self.measure.activation or None
        planes = two_planes(scores, activation) if scores.shape == truth else as_floats(scores)
        return activated(planes, activation)

    def count(self, pair: MaskPair) -> Parts:
        """Count the scores of an image."""
        if pair.scores is None:
            msg = (
                "the measure 'scores' needs scores, but the prediction contains labels; pass "
                "scores with argmax=AXIS (the class axis) or threshold=T, or files of scores"
            )
            raise ValueError(msg)
        scores, truth, mask = as_scores(pair.scores), pair.truth, pair.mask
        axis = None if scores.ndim == np.ndim(truth) else 0
        activation: Any = self.measure.activation or None
        if self.groups is not None:
            if len(scores) != len(self.groups.members):
                msg = f"scores have {len(scores)} channels; {self._other_reading}"
                raise ValueError(msg)
            truth, mask = self.groups.of_truth(np.asarray(truth), mask)
        cells = self._nothing.count(truth, scores, axis, activation, mask=mask)
        return Parts.of(self.layout, cells=cells)

    def check(self, parts: Parts) -> None:
        """Reject cells whose numbers of pixels differ between the classes."""
        image, cell, numbers = _filled(parts)
        row, at = np.divmod(cell, 2 * self.bins.number)
        sums = self.channels.num_classes + 1
        # Channels of groups have no highest score.
        is_pixels, is_sum = row < sums - (self.groups is not None), (row == sums) & (at % 2 == 0)
        pixels = np.zeros((len(parts), sums - (self.groups is not None)))
        np.add.at(pixels, (image[is_pixels], row[is_pixels]), numbers[is_pixels])
        summed = np.bincount(image[is_sum], numbers[is_sum] * SCORE_UNIT, len(parts))
        wrong = (pixels != pixels[:, :1]).any() or (summed > pixels[:, -1]).any()
        is_region = row > sums
        regions = np.zeros((len(parts), self._shape[0]), np.int64)
        signed = np.where(at % 2 == 0, numbers, -WHOLE * numbers)
        np.add.at(regions, (image[is_region], row[is_region]), signed[is_region])
        if wrong or regions.any() or ((row >= sums) & (at % 2 == 1) & (at != 1)).any():
            msg = "invalid score histograms"
            raise ValueError(msg)

    @cached_property
    def _formulas(self) -> dict[str, Formula]:
        measure, channels = self.measure, self.channels.num_classes
        limit = measure.aupro_limit if measure.regions else None
        return formulas_of(channels, self.bins, measure.rows, limit=limit)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Areas and best IoU as means of the classes; calibration errors of the highest scores."""
        return {name: self._score(name, formula) for name, formula in self._formulas.items()}

    def _score(self, name: str, formula: Formula) -> Score:
        is_mean, include = formula.overall is None, self.channels.include

        def evaluate(flat: NDArray[Any]) -> Floats:
            cells = flat.reshape(*flat.shape[:-1], *self._shape)
            each = formula.of_classes(cells, np)
            if formula.overall is None:
                return mean_first(each, include)
            return np.concatenate([formula.overall(cells, np)[..., None], each], -1)

        return Score(
            name,
            formula.title,
            self.channels.labels.class_names,
            lambda parts: parts["cells"],
            evaluate,
            self._seen,
            better=formula.better,
            overall=MEAN if is_mean else OVERALL,
            include=include if is_mean else None,
            weights=mean_weights(evaluate, include) if is_mean else None,
        )

    def _seen(self, parts: Parts) -> NDArray[np.bool_]:
        image, cell, _ = _filled(parts)
        is_positive = (cell % 2 == 1) & (cell < self.channels.num_classes * 2 * self.bins.number)
        seen = np.zeros((len(parts), self.channels.num_classes), bool)
        seen[image[is_positive], cell[is_positive] // (2 * self.bins.number)] = True
        return seen

    def counts_of(self, run: Any) -> ScoreHistogram:
        """The histograms of all images."""
        return self.histogram(run.measured[self.key], len(run))

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Every score of each image, and the average precision and IoU of its classes."""
        columns: dict[str, NDArray[Any]] = {}
        for name, score in self.scores.items():
            by_name = dict(zip(score.column_names, score.of_images(parts).T, strict=True))
            detailed = name in ("average_precision", "best_iou")
            columns |= by_name if detailed else {name: by_name[name]}
        return columns

    def table(self, counted: Counted) -> ScoreTable:
        """Scores of each class with its best threshold; JSON adds the diagram."""
        cells = counted.total.dense("cells")[0][: self.channels.num_classes + 2]
        best = curves.best_threshold(
            cells[:-2], self.bins.edges, self.channels.include, "iou", beta=1.0
        )
        usual = super().table(counted)
        table = HistogramTable(
            self.key,
            "Scores",
            "Average precision (AP) and area under the ROC curve of each class against the rest, "
            "its IoU at the best threshold, and calibration errors (ECE, Brier; lower is better).",
            usual.rows,
            tuple(_add_thresholds(usual.columns, best)),
            note=self._note(best),
            empty=usual.empty,
            histogram=self.histogram(counted.total, counted.images),
            diagram_rows=self.measure.rows,
        )
        calibration = top_calibration(cells, self.bins, self.measure.rows)
        data: Any = table.to_dict()["scores"]
        data |= {"options": self.measure.to_dict(), "calibration": calibration.to_dict()}
        data["common_threshold"] = plain({"threshold": best.overall, "mean_iou": best.mean})
        return replace(table, data={"score_histograms": data})

    def alternative(
        self, parts: Parts, counts: Counts, units: NDArray[np.intp]
    ) -> Alternative | None:
        """Counts of each image at the thresholds that are best on the other units."""
        if self.groups is not None:
            return None
        include = self.channels.include
        return other_thresholds(parts["cells"], self.bins.edges, counts, units, include)

    def _note(self, best: curves.BestThreshold) -> str:
        kind = self.measure.bins
        bins = f"{kind} bins" if isinstance(kind, int) else "half-precision bins"
        activation = self.measure.activation or "probabilities"
        return (
            f"scores: {activation}, {bins}; best common threshold {best.overall:.3f} (mean IoU "
            f"{self.scores['best_iou'].shown(best.mean)}); the mean row shows the ECE of the "
            "highest scores and the sum of the Brier scores"
        )

    def way(self) -> Mapping[str, Json]:
        """Options that must be equal for scores to be comparable."""
        options = self.measure.to_dict()
        compared = ("activation", "bins", "rows", "threshold", "regions", "aupro_limit")
        compared_options = {name: options[name] for name in compared}
        return compared_options | {"channels": "classes" if self.groups is None else "groups"}


def _add_thresholds(
    columns: Iterable[ScoreValues], best: curves.BestThreshold
) -> Iterator[ScoreValues]:
    """The columns of a table and, after the best IoU, its threshold; some have no heading."""
    for column in columns:
        hidden = column.name in ("fpr95", "mce", "ace")
        yield replace(column, title="" if hidden else column.title)
        if column.name == "best_iou":
            rows = dict(zip(column.rows, best.thresholds.tolist(), strict=True))
            # No mean, because the mean IoU is that of the best thresholds, not of one.
            yield ScoreValues(
                "best_threshold",
                "threshold",
                rows,
                (np.nan,),
                unit=NUMBER,
                better=None,
                digits=3,
            )


def _filled(parts: Parts) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Image, flat index and number of every cell that is not 0."""
    table: Any = parts["cells"]
    image = np.repeat(np.arange(len(parts)), np.diff(table.indptr))
    return image, table.indices.astype(np.int64), table.data
