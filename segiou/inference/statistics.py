"""Scores as functions of per-unit sums, so that resampling is a matrix product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_kind, read_several
from segiou.counting.counts import Counts
from segiou.inference.count_scores import Aggregate, class_score, overall_score
from segiou.inference.units import (
    MOST_RESAMPLED,
    ImageParts,
    ManyRows,
    Metric,
    Units,
    group_sums,
    is_large,
    resampled_sums,
    row_parts,
    unit_sums,
)
from segiou.measures.parts import Parts
from segiou.measures.score import Score
from segiou.measures.score_names import read_name, row_of
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, included

#: Metrics without per-class values, by name.
OVERALL_METRICS: dict[str, Callable[[Counts], Floats]] = {
    name: metric.function for name, metric in PIXEL_SCORES.items() if not metric.per_class
}
_EXACT = 2**53
#: Most numbers of the changed images of a score that is not a mean of classes.
_MOST_CHANGED = 1 << 26


@dataclass(frozen=True, eq=False)
class Statistic:
    """A score as a function of per-unit sums.

    Attributes
    ----------
    score : Score
        The score that is computed from the sums.
    units : Units
    sums : ndarray or sparse array of int64 or float64, shape (U, F)
        Numbers that are summed over units.
    seen : ndarray of int, shape (1 + C,) or (1,)
        Units whose truth contains the class; for the score, those with a value.
    aggregate : str
        ``"D"``, ``"I"``, ``"C"``, or the unit of the protocol.
    median_of : ndarray of float, shape (N, C), or None
        Values of the images, if the scores of the classes are their medians,
        which are not smooth.
    images : ImageParts or None
        Counts of the images, for the limits of a perfect score.
    """

    score: Score
    units: Units
    sums: Any
    seen: NDArray[np.int64]
    aggregate: str = "D"
    median_of: Floats | None = None
    images: ImageParts | None = None

    @cached_property
    def least_steps(self) -> Floats:
        """Smallest change of each value by one pixel of an image, (1 + C,); NaN if unknown."""
        values, score, images = self.values, self.score, self.images
        least = np.full(len(values), np.nan)
        if images is None:
            return least
        by_class = score.weights is None and images.number * images.width**2 <= _MOST_CHANGED
        # A pixel of every class at once shows the steps of the classes, but not that of the score.
        every: Any = np.ones((1, images.width), bool)
        single: Any = np.eye(images.width * by_class, images.width, dtype=np.bool_)
        for part in images.parts():
            if not isinstance(part, Counts):
                return least
            if not len(part.tp):  # no image of a slice is in this part
                continue
            before = score.sums(part)
            for place, classes in ((slice(1, None), every), (slice(1), single)):
                for changed in _one_pixel(part, classes):
                    moved = self.whole + (score.sums(changed) - before)
                    steps = np.abs(score.evaluate(moved) - values)
                    steps = np.where((steps > 0) & (steps < np.inf), steps, np.nan)
                    least[place] = np.fmin(least, np.fmin.reduce(steps))[place]
        return least

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values: the score, then the classes."""
        return (self.score.overall_title, *self.score.names)

    def evaluate(self, sums: NDArray[Any]) -> Floats:
        """(..., F) sums → (..., 1 + C) values.

        Parameters
        ----------
        sums : ndarray
            Sums over some of the units.
        """
        return self.score.evaluate(sums)

    @cached_property
    def whole(self) -> NDArray[Any]:
        """The sums over all units, (F,)."""
        return np.asarray(self.sums.sum(0))

    @property
    def values(self) -> Floats:
        """The score and the classes on all units."""
        return self.evaluate(self.whole)

    def has_score(self, sums: NDArray[Any], values: Floats) -> NDArray[np.bool_]:
        """Whether classes have a score, (..., C).

        Specificity of a class that never occurs is 1, but is not a score of the model.

        Parameters
        ----------
        sums : ndarray, shape (..., F)
            Sums over units in which every class of the truth occurs.
        values : ndarray of float, shape (..., 1 + C)
            Their values by :meth:`evaluate`.
        """
        defined = ~np.isnan(values[..., 1:])
        if self.score.occurs is None or (self.seen[1:] > 0).all():  # all are in the truth
            return defined
        return defined & self.score.occurs(sums)

    @property
    def has_scores(self) -> NDArray[np.bool_]:
        """Whether all units together have a score of each class, (C,)."""
        return self.has_score(self.whole, self.values)

    @property
    def weights(self) -> Floats | None:
        """Weight of each class in the score, (C,), if it is a mean of classes."""
        return None if self.score.weights is None else self.score.weights(self.whole)

    @property
    def scale(self) -> str:
        """Scale on which intervals are symmetric: log for distances (even 0), logit for shares."""
        if self.score.scale:
            return self.score.scale
        values = self.values[~np.isnan(self.values)]
        if self.score.unit:
            return "log" if (values >= 0).all() else "identity"
        return "logit" if ((values >= 0) & (values <= 1)).all() else "identity"

    @property
    def is_smooth(self) -> bool:
        """Whether the jackknife applies: not to medians and other percentiles."""
        return self.median_of is None and self.score.is_smooth

    @property
    def left_out(self) -> Floats:
        """Leave-one-out values, shape (U, 1 + C)."""
        return np.concatenate([*self.left_out_parts()])

    def left_out_parts(self) -> Iterator[Floats]:
        """Leave-one-out values of some units at a time."""
        return (self.evaluate(self.whole - part) for part in row_parts(self.sums))

    def part(
        self, images: Any, units: Units, sums: Any, hits: NDArray[Any], *, each: bool = False
    ) -> Statistic:
        """The score of some images over their units; this score must be over single images.

        Parameters
        ----------
        images : ndarray of bool, shape (N,)
            Whether each image is one of them.
        units : Units
            Units of these images.
        sums : ndarray or sparse array, shape (U, F)
            Sums over the units.
        hits : ndarray, shape (U, C)
            Images of each unit whose truth has each class.
        each : bool
            Whether the units stand for their images, which are then counted as seen.
        """
        number = int(images.sum()) if each else len(units)
        seen = seen_units(self.score, number, (hits if each else hits > 0).sum(0), sums, each=each)
        if self.median_of is not None:
            return _medians(self.score, self.median_of[images], units, seen, None)
        some = None if self.images is None else self.images.where(images)
        return replace(self, units=units, sums=sums, seen=seen, images=some)

    def sums_of_groups(self, index: NDArray[np.intp], groups: int) -> NDArray[Any]:
        """Sums (G, F) of some images over groups; this score must be over single images.

        Parameters
        ----------
        index : ndarray of int, shape (N,)
            The group of each image; -1 for other images.
        groups : int
            Number of groups.
        """
        rows, taken = self.sums, index >= 0
        if self.images is not None and isinstance(rows, ManyRows):  # only theirs are computed
            several = self.images.where(taken)
            rows = ManyRows(lambda: map(self.score.sums, several.parts()), several.number)
            index = index[taken]
        sums: NDArray[Any] = group_sums(rows, index, groups)
        return sums

    def of_unit(self, images: Any) -> Floats:
        """Values of some images as one unit, if this is over single images.

        Parameters
        ----------
        images : ndarray of bool, shape (N,)
            Whether each image is one of them.
        """
        if self.median_of is None:
            return self.evaluate(self.sums[images].sum(0))
        cases = self.median_of[images]
        exact = self.score.of_medians(cases, np.zeros(len(cases), np.intp), 1)
        return exact.evaluate(np.ones(1, np.int64))

    @property
    def products(self) -> NDArray[Any]:
        """The sums that are resampled, (U, F), in a data type in which every resample is exact.

        These are the sums of units, or of random groups of them if there are very many.
        float64 is exact below 2^53 and has fast matrix products; int64 is used
        if a resample could exceed that.

        Raises
        ------
        ValueError
            If a resample could exceed 2^63.
        """
        table = resampled_sums(self.sums)
        products: NDArray[Any] = table
        if table.dtype.kind == "f":
            return products
        numbers = table if isinstance(table, np.ndarray) else table.data
        most = int(np.abs(numbers).max(initial=0)) * table.shape[0]
        if most >= 2**63:
            msg = f"a resample of {len(self.units)} units could exceed 2^63 pixels ({most})"
            raise ValueError(msg)
        return products.astype(np.float64) if most < _EXACT else products


def statistic(
    counts: Counts | ImageParts,
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
    return scored_counts(counts, metric, protocol, class_names, include).over(units, aggregate)


@dataclass(frozen=True, eq=False)
class ScoredImages:
    """Counts of images, and the score to compute from them, by how images are aggregated."""

    images: ImageParts
    score_by: Callable[..., Score]
    ids: tuple[str, ...] | None = None

    @property
    def score(self) -> Score:
        """The score of the data set, or of the unit of the protocol."""
        return self.score_by(None)

    def reordered(self, ids: tuple[str, ...]) -> ScoredImages:
        """Images of a measure or of structures by their ids."""
        (parts,), own = self.images.parts(), {id: i for i, id in enumerate(self.ids or ())}
        places = [own[id] for id in ids]
        taken = parts.take(places) if isinstance(parts, Parts) else parts[places]
        return replace(self, images=ImageParts.of(taken), ids=ids)

    def over_classes(self, keep: NDArray[np.bool_]) -> ScoredImages:
        """The same with means over fewer classes."""
        return replace(self, score_by=partial(self.score_by, keep=keep))

    def of_images(self, *, finite: bool = False) -> Floats:
        """Per-image score; of pixels, over the classes in the image's truth, (N,)."""
        score = self.score
        if finite and score.alone is not None:
            return self.images.joined(score.alone)
        return self.images.joined(lambda part: self.score.of_images(part)[:, 0])

    def row_scores(self) -> Floats:
        """Per-image score, then that of each class or structure, (N, 1 + K)."""
        return self.images.joined(self.score.of_images)

    def present(self) -> NDArray[np.bool_]:
        """Whether the truth of each image has each class, (N, C)."""
        if not self.score.names:
            return np.zeros((self.images.number, 0), bool)
        return np.concatenate([*map(self.score.seen_in, self.images.parts())])

    def of_row(self, name: str) -> ScoredImages:
        """The same images with the score of one class or structure, or of all without a name."""
        if not name:
            return self
        row_of(name, self.score.names, self.score.title)
        return replace(self, score_by=lambda aggregate: self.score_by(aggregate).of_row(name))

    def over(self, units: Units, aggregate: Aggregate | None) -> Statistic:
        """The score as a statistic over units; that over single images is kept."""
        check_kind("units", units, Units, "Units of segiou.inference.units_of")
        if aggregate is not None:
            check_choice("aggregate", aggregate, get_args(Aggregate))
        if units.kind != "image":
            return self._over(units, aggregate)
        kept = self._image_statistics.get(aggregate)
        if kept is None or kept.units.names != units.names:
            kept = self._image_statistics[aggregate] = self._over(units, aggregate)
        return kept

    @cached_property
    def _image_statistics(self) -> dict[str | None, Statistic]:
        return {}

    def _over(self, units: Units, aggregate: Aggregate | None) -> Statistic:
        if self.images.number != len(units.index):
            shape = self.images.number, self.images.width
            msg = f"counts must have shape (N, C) for N = {len(units.index)} images, got {shape}"
            raise ValueError(msg)
        score = self.score_by(aggregate)
        hits = np.zeros(0, np.int64)
        if score.names:
            hits = _hits(units, map(score.seen_in, self.images.parts()))
        if score.median_of is not None:
            values = self.images.joined(score.median_of)
            return _medians(score, values, units, seen_units(score, len(units), hits), aggregate)
        sums = self._sums(score, units)
        seen = seen_units(score, len(units), hits, sums)
        over = aggregate or score.over
        return Statistic(score, units, sums, seen, over, images=self.images)

    def _sums(self, score: Score, units: Units) -> Any:
        """Sums of units (U, F), which are computed when they are read if these are many images."""
        images = self.images
        rows = ManyRows(lambda: map(score.sums, images.parts()), images.number)
        is_many = units.kind == "image" and images.width and images.number > MOST_RESAMPLED
        return rows if is_many and is_large(*rows.shape) else unit_sums(units, rows.parts())


def _hits(units: Units, parts: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Units whose truth has each class (C,), from images (n, C) whose truth has it."""
    if units.kind == "image":
        return np.asarray(sum((part > 0).sum(0) for part in parts))
    return np.asarray((unit_sums(units, parts) > 0).sum(0))


def seen_units(
    score: Score, number: int, hits: NDArray[np.int64], sums: Any = None, *, each: bool = False
) -> NDArray[np.int64]:
    """Units with the score, then with each class, from those whose truth has it (C,).

    ``each`` counts the images of groups that stand for single ones.
    """
    seen = np.array([number, *hits])
    if score.row is not None:
        seen[0] = seen[1]
    elif sums is not None and score.over in ("I", "image", "image-class"):
        # Denominators are last; the score's is the first of them.
        columns = (part[:, -1 - len(score.names)] for part in row_parts(sums))
        seen[0] = sum(int((column if each else column > 0).sum()) for column in columns)
    return seen


def _medians(
    score: Score, values: Floats, units: Units, seen: Any, aggregate: str | None
) -> Statistic:
    """Exact medians as a function of the resampled number of each unit."""
    exact = score.of_medians(values, units.index, len(units))
    return Statistic(exact, units, _each_once(len(units)), seen, aggregate or score.over, values)


def exchangeable(several: Sequence[Statistic]) -> list[Statistic]:
    """Medians of models as functions of the resampled number of each unit of each model."""
    cases = [of_model.median_of for of_model in several if of_model.median_of is not None]
    if not cases:
        return list(several)
    units, number, models = several[0].units, len(several[0].units), len(several)
    place = np.concatenate([units.index + m * number for m in range(models)])
    score = several[0].score.of_medians(np.concatenate(cases), place, number * models)
    return [
        replace(of_model, score=score, sums=_each_once(number, m, models))
        for m, of_model in enumerate(several)
    ]


def _each_once(units: int, model: int = 0, models: int = 1) -> Any:
    """Each unit drawn once for one of several models, (U, M U); sparse if large."""
    if not is_large(units, units * models):
        return np.eye(units, units * models, model * units, dtype=np.int64)
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    shape = units, units * models
    return sparse.eye_array(*shape, k=model * units, dtype=np.int64, format="csr")


def scored_counts(
    counts: Counts | ImageParts,
    metric: Metric,
    protocol: Protocol | str = "segiou",
    class_names: Sequence[str] | None = None,
    include: Any = None,
    ids: tuple[str, ...] | None = None,
    *,
    pixel_unit: str = "pixels",
) -> ScoredImages:
    """Per-image counts with a metric of pixels."""
    images, protocol = ImageParts.of(counts), load_protocol(protocol)
    names: Sequence[str] = [*map(str, range(images.width))]
    if class_names is not None:
        names = read_several("class_names", class_names, "a sequence of names, one per class")
        if len(names) != images.width:
            msg = f"counts have {images.width} classes, got {len(names)} class names"
            raise ValueError(msg)
    name, function, per_class = _resolved(metric, next(images.parts()))
    row = read_name(metric).row if isinstance(metric, str) else ""
    if not per_class:
        return ScoredImages(images, partial(overall_score, name, function, pixel_unit), ids)
    taken = included(include, images.width)
    score_by = partial(class_score, name, function, tuple(names), taken, protocol)
    return ScoredImages(images, score_by, ids).of_row(row)


def _resolved(metric: Metric, some: Counts) -> tuple[str, Callable[[Counts], Floats], bool]:
    """Name and function of a metric, and whether it has per-class values."""
    if callable(metric):
        name = getattr(metric, "__name__", "score")
        return name, metric, _has_classes(name, metric, some)
    check_kind("metric", metric, str, "the name of a metric or a function of Counts")
    name = read_name(metric).score
    if name not in PIXEL_SCORES:
        msg = f"{name} is a score of a measure, which counts of pixels do not have; pass a run"
        raise ValueError(msg)
    return name, PIXEL_SCORES[name].function, PIXEL_SCORES[name].per_class


def _has_classes(name: str, metric: Callable[[Counts], Floats], some: Counts) -> bool:
    """Whether a function has a value per class, rather than one; with any leading axes."""
    shape = some.tp.shape
    for counts in (some, some[None]):
        found, wanted = np.shape(metric(counts)), counts.tp.shape
        if found not in (wanted, wanted[:-1]):
            msg = (
                f"the metric {name!r} returned values of shape {found} for counts of shape "
                f"{wanted}; return shape {wanted[:-1]}, reduced over axis -1, or {wanted}"
            )
            raise ValueError(msg)
    return found[1:] == shape


def _one_pixel(counts: Counts, several: NDArray[np.bool_]) -> Iterator[Counts]:
    """Counts with one pixel of some classes missed, found, or false positive in each image."""
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    for classes in several:
        missed, found, false = (np.where(x > 0, classes, 0).astype(np.int64) for x in (tp, fn, tn))
        yield Counts.trusted(tp - missed, fp, fn + missed, tn)
        yield Counts.trusted(tp + found, fp, fn - found, tn)
        yield Counts.trusted(tp, fp + false, fn, tn - false)
