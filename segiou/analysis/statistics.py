"""Scores as functions of per-unit sums, so that resampling is a matrix product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_kind, read_several, refuse_kind
from segiou._support.text import did_you_mean
from segiou.analysis.units import (
    CountParts,
    HasCounts,
    Metric,
    Table,
    Units,
    is_large,
    row_parts,
    unit_sums,
)
from segiou.counting.counts import Counts
from segiou.measures.parts import Parts
from segiou.measures.registry import KEYWORDS, flag_of, measure_keys, measure_of_score, score_names
from segiou.measures.score import Score
from segiou.metrics.overall import (
    cohen_kappa,
    frequency_weighted_iou,
    matthews_correlation,
    pixel_accuracy,
)
from segiou.metrics.per_class import METRICS
from segiou.metrics.per_image import image_means
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, included, ratio

Aggregate = Literal["D", "I", "C"]

#: Metrics without per-class values, by name.
OVERALL_METRICS: dict[str, Callable[[Counts], Floats]] = {
    "pixel_accuracy": pixel_accuracy,
    "frequency_weighted_iou": frequency_weighted_iou,
    "cohen_kappa": cohen_kappa,
    "matthews_correlation": matthews_correlation,
}
_MEANS = {"mean_iou": "iou", "mean_dice": "dice", "mean_accuracy": "recall"}
_LABELS = {
    "iou": "IoU",
    "dice": "Dice",
    "frequency_weighted_iou": "frequency-weighted IoU",
}
#: Metrics whose intervals are symmetric elsewhere than on the logit.
_SCALES = {
    **dict.fromkeys(("pixel_accuracy", "frequency_weighted_iou"), "logit"),
    **dict.fromkeys(("cohen_kappa", "matthews_correlation"), "fisher"),
}
_EXACT = 2**53
_IN_TRUTH: dict[str, Any] = {"unit": "image", "over": "truth", "absent": "skip"}
#: Changes that an aggregate makes to a protocol.
_AGGREGATES: dict[str | None, dict[str, Any]] = {
    None: {},
    "D": {"unit": "dataset"},
    "I": _IN_TRUTH,
    "C": _IN_TRUTH,
}


@dataclass(frozen=True, eq=False)
class Statistic:
    """A score as a function of per-unit sums.

    Attributes
    ----------
    metric : str
    aggregate : str
        ``"D"``, ``"I"``, ``"C"``, or the unit of the protocol.
    protocol : str
    names : tuple of str
        Names of the values of :attr:`evaluate`: the score, then the classes.
    units : Units
    sums : ndarray or sparse array of int64 or float64, shape (U, F)
        Numbers that are summed over units.
    evaluate : callable
        (..., F) sums → (..., 1 + C) values, or (..., 1) for a metric without
        per-class values.
    seen : ndarray of int, shape (1 + C,) or (1,)
        Units whose truth contains the class; for the score, those with a value.
    scale : {"logit", "fisher", "log", "identity"}
        Scale on which intervals of the values are symmetric.
    weights : ndarray of float, shape (C,), or None
        Weight of each class in the score, if it is a mean of classes.
    better : {"higher", "lower"}
        Which values of the score are better.
    score_unit : str
        Unit of the score, such as ``"mm"``; empty for a ratio.
    median_of : ndarray of float, shape (N, C), or None
        Values of the images, if the scores of the classes are their medians,
        which are not smooth.
    """

    metric: str
    aggregate: str
    protocol: str
    names: tuple[str, ...]
    units: Units
    sums: Any
    evaluate: Callable[[NDArray[Any]], Floats]
    seen: NDArray[np.int64]
    scale: str = "identity"
    weights: Floats | None = None
    better: str = "higher"
    score_unit: str = ""
    median_of: Floats | None = None

    @property
    def values(self) -> Floats:
        """The score and the classes on all units."""
        return self.evaluate(self.sums.sum(0))

    @property
    def left_out(self) -> Floats:
        """Leave-one-out values, shape (U, 1 + C)."""
        return np.concatenate([*self.left_out_parts()])

    def left_out_parts(self) -> Iterator[Floats]:
        """Leave-one-out values of some units at a time."""
        whole = self.sums.sum(0)
        return (self.evaluate(whole - part) for part in row_parts(self.sums))

    @property
    def alone(self) -> Floats:
        """The score of each unit alone, shape (U,)."""
        return np.concatenate([self.evaluate(part)[:, 0] for part in row_parts(self.sums)])

    @property
    def products(self) -> Table:
        """The sums in a data type in which every resample is exact.

        float64 is exact below 2^53 and has fast matrix products; int64 is used
        if a resample could exceed that.

        Raises
        ------
        ValueError
            If a resample could exceed 2^63.
        """
        table: Table = self.sums
        if table.dtype.kind == "f":
            return table
        numbers = self.sums if isinstance(self.sums, np.ndarray) else self.sums.data
        most = int(np.abs(numbers).max(initial=0)) * len(self.units)
        if most >= 2**63:
            msg = f"a resample of {len(self.units)} units could exceed 2^63 pixels ({most})"
            raise ValueError(msg)
        return self.sums.astype(np.float64) if most < _EXACT else table


def statistic(
    counts: Counts | CountParts,
    metric: Metric = "iou",
    *,
    units: Units,
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str = "segiou",
    aggregate: Aggregate | None = None,
) -> Statistic:
    """Prepare a score for resampling.

    Parameters
    ----------
    counts : Counts of shape (N, C)
        Per-image counts.
    metric : str or callable
        A name in ``segiou.metrics.METRICS`` (the score is its mean over the
        classes) or :data:`OVERALL_METRICS`; ``"mean_iou"``, ``"mean_dice"`` or
        ``"mean_accuracy"``; or a function from Counts to (..., C) or (...)
        values.
    units : Units
        Units of the N images.
    class_names : sequence of str, optional
        By default, the class numbers.
    include : array_like of bool, shape (C,), optional
        Classes that are included in the mean.
    protocol : Protocol or str
        Protocol of the mean.
    aggregate : {"D", "I", "C"}, optional
        Overrides the unit of the protocol. D: sum counts over the data set,
        then divide. I: mean over images of the mean over the classes in the
        image's truth. C: mean over classes of the mean over the images whose
        truth contains the class. See Z. Wang et al., NeurIPS 2023
        (arXiv 2310.19252).

    Raises
    ------
    ValueError
        If a name is unknown, shapes do not match, or ``aggregate="C"`` is
        passed for a metric without per-class values.
    """
    protocol = load_protocol(protocol)
    return ScoredImages(counts, metric, None, class_names, include, protocol).over(units, aggregate)


C = TypeVar("C", bound=Counts | CountParts)


@dataclass(frozen=True, eq=False)
class ScoredImages(Generic[C]):
    """Per-image counts with names, protocol and metric."""

    counts: C
    metric: Metric
    ids: tuple[str, ...] | None
    class_names: Sequence[str] | None
    include: Any
    protocol: Protocol

    @property
    def num_images(self) -> int:
        """Number of images."""
        return CountParts.of(self.counts).num_images

    @property
    def title(self) -> str:
        """The name of the score in a sentence."""
        name, _, per_class = _resolved(self.metric, CountParts.of(self.counts))
        return metric_label(name) if not per_class else f"mean {metric_label(name)}"

    def of_images(self) -> Floats:
        """Per-image score over the classes in the image's truth, (N,)."""
        return image_scores(self.counts, self.metric, self.include)

    def of_class(self, name: str) -> Floats:
        """Per-image score of a class over the images whose truth contains it, (N,)."""
        counts = CountParts.of(self.counts)
        label, function, per_class = _resolved(self.metric, counts)
        known = [*map(str, self.class_names or range(counts.num_classes))] if per_class else []
        c = place_of(name, known, label)
        parts = (np.where(p.truth[:, c] > 0, function(p)[:, c], np.nan) for p in counts.parts())
        return np.concatenate([*parts])

    def over(self, units: Units, aggregate: Aggregate | None) -> Statistic:
        """The score as a statistic over units."""
        counts = CountParts.of(self.counts)
        if aggregate is not None:
            check_choice("aggregate", aggregate, get_args(Aggregate))
        classes = _names(counts, units, self.class_names)
        metric, function, per_class = _resolved(self.metric, counts)
        name, protocol, unit = metric_label(metric), "", "D"
        if per_class:
            averaged = replace(self.protocol, **_AGGREGATES[aggregate]).of_metric(function)
            taken = included(self.include, len(classes))
            adding = _class_sums(function, averaged, taken, aggregate)
            name, protocol = f"mean {name}", averaged.name
            unit = averaged.unit if averaged.needs_images else unit
        else:
            adding = _overall_sums(metric, function, aggregate)
            classes = ()
        present = unit_sums(units, (part.truth > 0 for part in counts.parts())) > 0
        seen = np.concatenate([[len(units)], present.sum(0)[: len(classes)]])
        sums = unit_sums(units, map(adding.rows, counts.parts()))
        if adding.divided:  # numerators, then denominators; the score's are first
            seen[0] = (sums[:, [sums.shape[1] // 2]] > 0).sum()
        return Statistic(
            metric=metric,
            aggregate=aggregate or unit,
            protocol=protocol,
            names=(name, *classes),
            units=units,
            sums=sums,
            evaluate=adding.evaluate,
            seen=seen,
            scale=_SCALES.get(metric, "logit" if metric in METRICS else "identity"),
            weights=adding.weights(sums.sum(0)),
        )


def place_of(name: str, known: Sequence[str], score: str) -> int:
    """The position of a class that has a score."""
    if name in known:
        return [*known].index(name)
    of = f"choose from {', '.join(known)}" if known else "it has no per-class values"
    msg = f"{score} of {name!r}: unknown class; {of}{did_you_mean(name, known)}"
    raise ValueError(msg)


def metric_label(metric: str) -> str:
    """The name of a metric in a sentence."""
    return _LABELS.get(metric, metric.replace("_", " "))


def _names(counts: CountParts, units: Units, class_names: Sequence[str] | None) -> tuple[str, ...]:
    shape = counts.num_images, counts.num_classes
    if shape[0] != len(units.index):
        msg = f"counts must have shape (N, C) for N = {len(units.index)} images, got {shape}"
        raise ValueError(msg)
    if class_names is None:
        return tuple(map(str, range(shape[1])))
    names = read_several("class_names", class_names, "a sequence of names, one per class")
    if len(names) != shape[1]:
        msg = f"counts have {shape[1]} classes, got {len(names)} class names"
        raise ValueError(msg)
    return tuple(names)


def _resolved(metric: Metric, counts: CountParts) -> tuple[str, Callable[[Counts], Floats], bool]:
    """Name and function of a metric, and whether it has per-class values."""
    if callable(metric):
        first = next(counts.parts())
        has_classes = metric(first).shape == first.tp.shape
        return getattr(metric, "__name__", "score"), metric, has_classes
    check_kind("metric", metric, str, "the name of a metric or a function of Counts")
    name = _MEANS.get(metric, metric)
    known = {**METRICS, **OVERALL_METRICS}
    if name not in known:
        others = [n for k in measure_keys() for n in score_names(k)]
        hint = did_you_mean(metric, [*known, *others])
        msg = (
            f"unknown metric {metric!r}; choose from {', '.join(known)}, pass a function of "
            f"Counts, or, if the run measured it, {', '.join(others)}{hint}"
        )
        raise ValueError(msg)
    return name, known[name], name in METRICS


class Sums(NamedTuple):
    """Functions from per-image counts to summable rows, and from their sums to values."""

    rows: Callable[[Counts], NDArray[Any]]
    evaluate: Callable[[NDArray[Any]], Floats]
    weights: Callable[[NDArray[Any]], Floats | None] = lambda sums: None
    """Weight of each class in the score, if it is a mean of classes."""
    divided: bool = False
    """Whether the rows are numerators, then denominators, of means over images."""


def _overall_sums(
    metric: str, function: Callable[[Counts], Floats], aggregate: Aggregate | None
) -> Sums:
    """Rows and values of a metric without per-class values."""
    if aggregate == "C":
        msg = f"{metric} has no per-class values; aggregate must be 'D' or 'I'"
        raise ValueError(msg)
    if aggregate != "I":
        return Sums(_packed, lambda sums: function(_unpacked(sums))[..., None])

    def of_images(counts: Counts) -> Floats:
        values = function(counts)[:, None]
        return np.concatenate([np.nan_to_num(values), ~np.isnan(values)], axis=-1)

    return Sums(of_images, _ratios, divided=True)


def _class_sums(
    function: Callable[[Counts], Floats],
    protocol: Protocol,
    taken: NDArray[np.bool_],
    aggregate: Aggregate | None,
) -> Sums:
    """Rows and values of a metric with per-class values."""

    def of_data_set(sums: NDArray[Any]) -> Floats:
        found = _unpacked(sums)
        values = function(found)
        filled, part = protocol.values_taken(values, found.truth > 0, taken)
        score = protocol.divide(filled.sum(-1), part.sum(-1))
        return np.concatenate([score[..., None], values], axis=-1)

    def of_images(counts: Counts) -> Floats:
        # Numerators of the score and the classes, then the denominators.
        filled, part = protocol.values_taken(function(counts), counts.truth > 0)
        top = np.where(taken, filled, 0.0).sum(-1)
        bottom = (part & taken).sum(-1)
        if protocol.unit == "image":
            top, bottom = np.nan_to_num(ratio(top, bottom)), bottom > 0
        return np.concatenate([top[:, None], filled, bottom[:, None], part], axis=-1)

    def of_classes(sums: NDArray[Any]) -> Floats:
        classes = _ratios(sums)[..., 1:]
        score = protocol.mean_of_classes(classes, taken)
        return np.concatenate([score[..., None], classes], axis=-1)

    def in_data_set(sums: NDArray[Any]) -> Floats:
        found = _unpacked(sums)
        values = function(found)
        part = protocol.values_taken(values, found.truth > 0, taken)[1]
        return ratio(part & ~np.isnan(values), part.sum())

    def in_classes(sums: NDArray[Any]) -> Floats:
        there = taken & ~np.isnan(_ratios(sums)[1:])
        return ratio(there, there.sum())

    if not protocol.needs_images:
        return Sums(_packed, of_data_set, in_data_set)
    if aggregate == "C" or protocol.unit == "class":
        return Sums(of_images, of_classes, in_classes)
    return Sums(of_images, _ratios, divided=True)


def _packed(counts: Counts) -> NDArray[np.int64]:
    """Counts as columns (N, 4 C), mostly 0 if images contain few of many classes."""
    # All classes of a label map have the same number of valid pixels, so that of the first class
    # and the differences of the others are stored.
    valid = counts.total
    differences = valid[:, 1:] - valid[:, :1]
    return np.concatenate([counts.tp, counts.fp, counts.fn, valid[:, :1], differences], axis=-1)


def _unpacked(sums: NDArray[Any]) -> Counts:
    tp, fp, fn, valid = np.split(sums.astype(np.int64), 4, axis=-1)
    valid[..., 1:] += valid[..., :1]
    return Counts.trusted(tp, fp, fn, valid - tp - fp - fn)


def _ratios(sums: NDArray[Any]) -> Floats:
    top, bottom = np.split(sums, 2, axis=-1)
    return ratio(top, bottom)


def image_scores(counts: Counts | CountParts, metric: Metric, include: Any = None) -> Floats:
    """Per-image score over the classes in the image's truth, (N,)."""
    counts = CountParts.of(counts)
    _, function, per_class = _resolved(metric, counts)
    score = partial(image_means, metric=function, include=include) if per_class else function
    return np.concatenate([score(part) for part in counts.parts()])


def scored_images(
    source: Counts | HasCounts,
    metric: Metric,
    protocol: Protocol | str | None,
    ids: Sequence[str] | None = None,
) -> ScoredImages[Any] | ScoredParts:
    """Per-image counts of a source, with the metric."""
    if isinstance(source, Counts):
        wanted = "a sequence, one id per image"
        given = None if ids is None else tuple(read_several("ids", ids, wanted))
        for name in given or ():
            check_kind("an id", name, str, "text")
        return ScoredImages(source, metric, given, None, None, load_protocol(protocol or "segiou"))
    run: Any = source
    if not hasattr(run, "ids"):
        raise _no_images(run)
    is_report = hasattr(run, "per_image")
    number, classes = len(run.ids), len(run.class_names)
    if hasattr(run, "count_parts") and is_large(number, 4 * classes):
        # In parts, because all of them would not fit into memory.
        counts = CountParts(number, classes, run.count_parts)
    else:
        counts = run.per_image if is_report else run.counts
    if counts is None:
        msg = "the report has no per-image counts; pass the run it was made from"
        raise ValueError(msg)
    protocol = load_protocol(protocol or run.protocol)
    ids, include = tuple(run.ids) or None, protocol.include_of(run)
    images = ScoredImages(counts, metric, ids, run.class_names, include, protocol)
    name = "the report" if is_report else "the run"
    if (key := measure_of_score(metric)) is not None:
        return scored_parts(images, run, name, key)
    return images


def _no_images(source: Any) -> TypeError:
    wanted = "a run, a report or per-image counts (segiou.Counts of shape (N, C))"
    if not hasattr(source, "counts"):
        hint = "; open a run file with segiou.Run.open" if isinstance(source, str) else ""
        return TypeError(f"{refuse_kind('counts', source, wanted)}{hint}")
    return TypeError(
        f"a {type(source).__name__} has no per-image counts, which resampling needs; pass {wanted}"
    )


@dataclass(frozen=True, eq=False)
class ScoredParts:
    """Per-image parts of a measure, and the score to compute from them."""

    score: Score
    parts: Parts
    ids: tuple[str, ...] | None
    include: Any

    class_names: Sequence[str]

    @property
    def num_images(self) -> int:
        """Number of images."""
        return len(self.parts)

    @property
    def title(self) -> str:
        """The name of the score in a sentence."""
        return self.score.overall_title

    def of_images(self) -> Floats:
        """Per-image score, (N,)."""
        if self.score.alone is not None:
            return self.score.alone(self.parts)
        return self.score.of_images(self.parts)[:, 0]

    def of_class(self, name: str) -> Floats:
        """Per-image score of a class or structure, (N,)."""
        place = place_of(name, self.score.names, self.score.title)
        return self.score.of_images(self.parts)[:, 1 + place]

    def over(self, units: Units, aggregate: Aggregate | None) -> Statistic:
        """The score as a statistic over units."""
        score, parts = self.score, self.parts
        is_median = score.median_of is not None and aggregate not in ("I", "C")
        sums, evaluate = score.sums(parts), score.evaluate
        if aggregate in ("I", "C"):
            values = score.of_images(parts)
            # An infinite distance, of a missed structure, makes the mean infinite.
            defined = ~np.isnan(values)
            sums = np.concatenate([np.where(defined, values, 0.0), defined], axis=-1)
            evaluate = _ratios if aggregate == "I" else _mean_of_ratios
        seen = np.zeros((len(parts), len(score.names)), bool)
        if score.seen is not None:
            seen = score.seen(parts)
        in_units = (units.sums(seen.astype(np.int64)) > 0).sum(0)
        sums = units.sums(sums)
        values = evaluate(sums.sum(0))
        return Statistic(
            metric=score.name,
            aggregate=aggregate or ("class" if score.rule == "cases" else "D"),
            protocol=score.rule,
            names=(score.overall_title, *score.names),
            units=units,
            sums=sums,
            evaluate=evaluate,
            seen=np.concatenate([[len(units)], in_units]),
            scale=_scale_of(score, values),
            weights=_weights_of(values) if score.is_mean else None,
            better=score.better,
            score_unit=score.unit,
            median_of=score.median_of(parts) if is_median and score.median_of else None,
        )


def _scale_of(score: Score, values: Floats) -> str:
    """Scale on which intervals are symmetric: log for distances (even 0), logit for shares."""
    if score.unit:
        return "log" if (values[~np.isnan(values)] >= 0).all() else "identity"
    inside = (values >= 0) & (values <= 1)
    return "logit" if (inside | np.isnan(values)).all() else "identity"


def _weights_of(values: Floats) -> Floats | None:
    """Weights of the classes if the score is their mean, undefined ones left out or counted 0."""
    there = np.isfinite(values[1:])
    total = float(values[1:][there].sum())
    for number in {int(there.sum()), len(there)} - {0}:
        if abs(total / number - values[0]) <= 1e-9 * abs(values[0]):
            return there / number
    return None


def _mean_of_ratios(sums: NDArray[Any]) -> Floats:
    classes = _ratios(sums)[..., 1:]
    return np.concatenate([np.nanmean(classes, -1, keepdims=True), classes], axis=-1)


def scored_parts(images: ScoredImages[Any], run: Any, name: str, key: str) -> ScoredParts:
    """Per-image parts of the measure that has a score."""
    plan = getattr(run, "score_plans", {}).get(images.metric)
    if plan is None:
        how = f"{key}=True" if key in KEYWORDS else f"measures=[{key!r}]"
        noun = key.removesuffix("s")
        flag = flag_of(key, str(images.metric))
        msg = f"{name} has no {noun} counts; rescore with {how} ({flag})"
        raise ValueError(msg)
    score = plan.scores[images.metric]
    return ScoredParts(
        score, run.parts(plan.key), images.ids, np.ones(len(score.names), bool), score.names
    )
