"""Scores of counts as functions of their sums: of classes and their means, and over images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.counting.counts import Counts
from segiou.measures.score import OVERALL, Score, weights_of
from segiou.metrics.overall import mean
from segiou.metrics.pixel_scores import metric_label, scale_of, unit_of
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, ratio

Aggregate = Literal["D", "I", "C"]


def overall_score(
    name: str,
    function: Callable[[Counts], Floats],
    pixel_unit: str,
    aggregate: Aggregate | None,
) -> Score:
    """A score of Counts without per-class values."""
    if aggregate == "C":
        msg = f"{name} has no per-class values; aggregate must be 'D' or 'I'"
        raise ValueError(msg)
    whole = Score(
        name,
        metric_label(name, pixel_unit),
        (),
        _packed,
        lambda sums: function(_unpacked(sums))[..., None],
        unit=unit_of(name),
        overall=OVERALL,
        scale=scale_of(name),
        each=lambda counts: function(counts)[:, None],
    )
    return aggregated(whole, aggregate)


class _ClassMean(NamedTuple):
    """A metric of the classes of Counts, and its mean over some of them under a protocol."""

    metric: Callable[[Counts], Floats]
    protocol: Protocol
    taken: NDArray[np.bool_]

    def pooled_values(self, sums: NDArray[Any]) -> Floats:
        """Mean and classes of pooled pixels, (..., 1 + C)."""
        counts = _unpacked(sums)
        values = self.metric(counts)
        score = self.protocol.pooled_mean(self.metric, counts, self.taken, values=values)
        return np.concatenate([score[..., None], values], axis=-1)

    def weights(self, sums: NDArray[Any]) -> Floats:
        """Weight of each class in the mean of pooled pixels, (C,)."""
        counts = _unpacked(sums)
        values = self.metric(counts)
        _, part = self.protocol.taken(self.metric, counts, self.taken, values=values)
        return weights_of(values, part, absent_is_zero=True)

    def image_values(self, counts: Counts) -> Floats:
        """Mean and classes of each image, over the classes in its truth, (N, 1 + C)."""
        values = np.where(counts.truth > 0, self.metric(counts), np.nan)
        return np.concatenate([mean(values, self.taken)[:, None], values], axis=-1)

    def ratios(self, counts: Counts) -> Floats:
        """Numerators of mean and classes of each image, then denominators, (N, 2 + 2 C)."""
        values, part = self.protocol.taken(self.metric, counts)
        top = np.where(self.taken, values, 0.0).sum(-1)
        bottom = (part & self.taken).sum(-1)
        if self.protocol.unit == "image":
            top, bottom = np.where(bottom > 0, ratio(top, bottom), 0.0), bottom > 0
        return np.concatenate([top[:, None], values, bottom[:, None], part], axis=-1)

    def averaged_values(self, sums: NDArray[Any]) -> Floats:
        """Mean and classes over images, from sums of :meth:`ratios`."""
        top, bottom = np.split(sums, 2, axis=-1)
        values = ratio(top, bottom)
        values[..., 0] = self.protocol.divide(top[..., 0], bottom[..., 0])
        return values


def class_score(
    name: str,
    function: Callable[[Counts], Floats],
    names: tuple[str, ...],
    taken: NDArray[np.bool_],
    protocol: Protocol,
    aggregate: Aggregate | None = None,
    keep: NDArray[np.bool_] | None = None,
) -> Score:
    """A score of Counts with per-class values, and its mean under a protocol or over images."""
    if aggregate is not None:
        protocol = replace(protocol, unit="dataset")
    protocol = protocol.of_metric(function)
    taken = taken if keep is None else taken & keep
    classes = _ClassMean(function, protocol, taken)
    score = Score(
        name,
        metric_label(name),
        names,
        _packed,
        classes.pooled_values,
        seen=lambda counts: counts.truth > 0,
        occurs=_occurs,
        rule=protocol.name,
        include=taken,
        weights=classes.weights,
        scale=scale_of(name),
        each=classes.image_values,
    )
    if protocol.needs_images:
        images: dict[str, Any] = {"sums": classes.ratios, "evaluate": classes.averaged_values}
        score = replace(score, **images, occurs=None, weights=None, over=protocol.unit)
    if protocol.unit == "class":
        return _mean_of_classes(score, protocol)
    return aggregated(score, aggregate)


def aggregated(
    score: Score, aggregate: Aggregate | None, keep: NDArray[np.bool_] | None = None
) -> Score:
    """The mean of a score over images (I), or over the images of each class (C)."""
    score = score if keep is None else score.over_classes(keep)
    if aggregate in (None, "D"):
        return score

    averaged = replace(
        score,
        sums=lambda parts: addends(score.of_images(parts)),
        evaluate=means_of,
        occurs=None,
        weights=None,
        median_of=None,
    )
    if aggregate == "I":
        return replace(averaged, over="I")
    return _mean_of_classes(averaged, load_protocol("segiou"))


def addends(values: Floats) -> Floats:
    """Numbers (N, 3 K) that add up to means of values (N, K): finite ones, infinite, defined."""
    # A sum over resamples would multiply an infinite value by 0.
    infinite, defined = np.isinf(values), ~np.isnan(values)
    finite = np.where(defined & ~infinite, values, 0.0)
    return np.concatenate([finite, infinite, defined], axis=-1)


def means_of(sums: NDArray[Any]) -> Floats:
    """Means (..., K) from sums (..., 3 K) of :func:`addends`; one infinite value makes it so."""
    finite, infinite, defined = np.split(sums, 3, axis=-1)
    return np.where(infinite > 0, np.inf, ratio(finite, defined))


def _mean_of_classes(score: Score, protocol: Protocol) -> Score:
    """The mean over classes, under a protocol, of means over images."""
    means = score.evaluate

    def evaluate(sums: NDArray[Any]) -> Floats:
        classes = means(sums)[..., 1:]
        mean_of = protocol.mean_of_classes(classes, score.include)
        return np.concatenate([mean_of[..., None], classes], axis=-1)

    def weights(sums: NDArray[Any]) -> Floats:
        classes = means(sums)[1:]
        covered = protocol.taken_classes(classes, score.include)[1]
        return weights_of(classes, covered, absent_is_zero=True)

    return replace(score, evaluate=evaluate, weights=weights, over="class")


def _packed(counts: Counts) -> NDArray[np.int64]:
    """Counts as columns (N, 4 C), mostly 0 if images contain few of many classes."""
    # All classes of a label map have the same number of valid pixels, so that of the first class
    # and the differences of the others are stored.
    valid = counts.total
    differences = valid[:, 1:] - valid[:, :1]
    return np.concatenate([counts.tp, counts.fp, counts.fn, valid[:, :1], differences], axis=-1)


def _occurs(sums: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether truth or prediction contain each class, from sums of counts."""
    counts = _unpacked(sums)
    return np.asarray(counts.tp + counts.fp + counts.fn > 0)


def _unpacked(sums: NDArray[Any]) -> Counts:
    sums = sums.astype(np.int64, copy=False)
    tp, fp, fn, valid = np.moveaxis(sums.reshape(*sums.shape[:-1], 4, -1), -2, 0)
    tn = valid - tp
    tn -= fp
    tn -= fn
    tn[..., 1:] += valid[..., :1]
    return Counts.trusted(tp, fp, fn, tn)
