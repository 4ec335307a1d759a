"""Leave one unit out: its influence on a score, and jackknife-t intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support import text
from segiou._support.text import Json
from segiou.analysis.statistics import Aggregate, Statistic, scored_counts
from segiou.analysis.student import student
from segiou.analysis.units import ImageParts, Metric, units_of
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

#: Least degrees of freedom of a mean of classes: t(1) is 12.7 standard errors wide.
LEAST_FREEDOM = 2.0
#: A standard error below this is rounding.
_ROUNDING = 1e-12
#: Numbers of left-out values that are kept between the two passes; more are computed twice.
_KEPT = 1 << 22


class Scale(NamedTuple):
    """Monotone function on whose scale an interval is symmetric, its inverse, slope and bounds."""

    forward: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    least: float
    most: float


def _logit(x: Floats) -> Floats:
    return np.log(x) - np.log1p(-x)


def _expit(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-z))


SCALES = {
    "identity": Scale(lambda x: x, lambda z: z, np.ones_like, -np.inf, np.inf),
    "logit": Scale(_logit, _expit, lambda x: 1 / (x * (1 - x)), 0.0, 1.0),
    "fisher": Scale(np.arctanh, np.tanh, lambda x: 1 / (1 - x * x), -1.0, 1.0),
    "log": Scale(np.log, np.exp, lambda x: 1 / x, 0.0, np.inf),
}


@dataclass(frozen=True, eq=False)
class Limits:
    """Intervals of a score and its classes, each array (1 + C,); NaN if undefined.

    Attributes
    ----------
    values : ndarray of float
        On the data itself; of two models, the second minus the first.
    low, high : ndarray of float
        Ends of the intervals.
    standard_error : ndarray of float
        Jackknife standard errors.
    freedom : ndarray of float
        Degrees of freedom of Student's t.
    undefined_share : ndarray of float
        Share of the resamples without a value; NaN if nothing was resampled.
    """

    values: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    freedom: Floats
    undefined_share: Floats

    def without_ends(self) -> Limits:
        """The same without intervals."""
        nowhere = np.full(len(self.values), np.nan)
        return replace(self, low=nowhere, high=nowhere)


@np.errstate(invalid="ignore")  # differences of infinite distances are undefined
def jackknife(of: Statistic, minus: Statistic | None = None, *, level: float = 0.95) -> Limits:
    """Jackknife-t intervals of a score and its classes, or of their differences.

    Every unit is left out in turn. The variance of a class, V_c = Σ_i (v_c − v_c(i))², has
    k_c − 1 degrees of freedom for k_c units whose truth has the class, and its limits are
    symmetric on the score's scale (the logit of a ratio), by the delta method. A mean of classes
    has Satterthwaite degrees of freedom, (Σ V_c)² / Σ V_c²/(k_c − 1), and unequal arms: each class
    contributes the distances of its limits from its value, so the interval keeps the correlation
    of the classes (MOVER on jackknife influences). A mean of distances is symmetric on the log
    scale. The variance of a score, but not of a difference, includes the square of its jackknife
    bias. A score at a bound of the scale has the limit of as many hits or misses in a row.
    Differences of classes stay on the identity scale.

    Parameters
    ----------
    of : Statistic
        The score over its units.
    minus : Statistic, optional
        The same score of another model over the same units, to be subtracted.
    level : float
        Between 0 and 1. Limits at 0.9 are one-sided bounds at 95 %.

    References
    ----------
    J. W. Tukey, Ann. Math. Statist. 29 (1958), 614; F. E. Satterthwaite, Biometrics Bulletin 2
    (1946), 110-114; G. Y. Zou and A. Donner, Statist. Med. 27 (2008), 1693-1702 (MOVER);
    J. A. Hanley and A. Lippman-Hand, JAMA 249 (1983), 1743-1745 (limits at a bound).
    """
    if of.median_of is not None:
        msg = "the jackknife is wrong for medians; use a bootstrap (method='percentile')"
        raise ValueError(msg)
    models = [_Model.of(one, flip) for flip, one in enumerate((of, minus)) if one is not None]
    units, tail = len(of.units), (1 - level) / 2
    spread = _Spread.of(models, units)
    values = of.values if minus is None else of.values - minus.values
    seen = of.seen if minus is None else np.minimum(of.seen, minus.seen)
    freedom = _freedom(models, spread.variance, seen)
    t = np.asarray(student(freedom, tail))
    down, up = _reach_of_score(models, spread, t[0], units)
    low, high = np.append(down, t[1:]), np.append(up, t[1:])
    error = np.sqrt(np.append(spread.score * (units - 1) / units, spread.variance))
    error[1:][seen[1:] < 2] = np.nan
    error[np.isinf(values)] = np.nan
    if minus is None:
        less, more = models[0].arms(error[1:], t[1:])
        low[1:] *= less
        high[1:] *= more
    low[1:], high[1:] = low[1:] * error[1:], high[1:] * error[1:]
    limits = np.stack([values - low, values + high])
    scale = models[0].scale
    room = scale.most - scale.least
    least, most = (scale.least, scale.most) if minus is None else (-room, room)
    limits = np.clip(limits, least, most)
    if minus is None and np.isfinite(room):
        away = room * (1 - tail ** (1 / np.maximum(seen, 1)))
        limits[1] = np.where(values == scale.least, scale.least + away, limits[1])
        limits[0] = np.where(values == scale.most, scale.most - away, limits[0])
    # No interval at all rather than one of no width: units that agree show no spread.
    equal = (limits[0] == limits[1]) | ((error == 0) & (minus is not None))
    limits[:, ~np.isfinite(error) | equal] = np.nan
    return Limits(values, limits[0], limits[1], error, freedom, np.full(len(values), np.nan))


@dataclass(frozen=True, eq=False)
class _Model:
    """A score's values, its scale, and the weight of each class in the score, (C,)."""

    statistic: Statistic
    values: Floats
    scale: Scale
    weights: Floats | None
    flip: bool
    """Whether it is subtracted."""

    @classmethod
    def of(cls, statistic: Statistic, flip: int) -> _Model:
        values = statistic.values
        return cls(statistic, values, SCALES[statistic.scale], statistic.weights, bool(flip))

    @property
    def by_class(self) -> Floats | None:
        """The weights if the score's arms are those of its classes.

        Without an upper bound, the arm of one rare class is many times the score.
        """
        return None if self.scale.most == np.inf else self.weights

    def steps(self) -> Iterator[Floats]:
        """Contribution of each unit to each value, (n, 1 + C); 0 for the only unit of a class."""
        for without in self.statistic.left_out_parts():
            step = self.values - without
            step[:, 1:][np.isnan(step[:, 1:])] = 0
            yield step

    def arms(self, errors: Floats, t: Any, score: bool = False) -> tuple[Floats, Floats]:
        """Distances of the limits on the score's scale, in units of t standard errors."""
        values = self.values[:1] if score else self.values[1:]
        with np.errstate(all="ignore"):
            reach = t * errors
            centre, move = self.scale.forward(values), reach * self.scale.slope(values)
            low = (values - self.scale.inverse(centre - move)) / reach
            high = (self.scale.inverse(centre + move) - values) / reach
        fine = np.isfinite(low) & np.isfinite(high) & (errors > _ROUNDING)
        return np.where(fine, low, 1.0), np.where(fine, high, 1.0)


@dataclass(frozen=True, eq=False)
class _Spread:
    """Sums of squares over the units, and what each unit adds to the values of each model."""

    score: float
    """Of the score, or of the difference of the scores."""
    bias: float
    """Of a score, by the jackknife; 0 for a difference, in which most of it cancels."""
    variance: Floats
    """Of each class, or of the difference of each class, (C,)."""
    own: list[Floats]
    """Of each value of each model by itself, (1 + C,)."""
    steps: Callable[[], Iterator[list[Floats]]]

    @classmethod
    def of(cls, models: list[_Model], units: int) -> _Spread:
        def steps() -> Iterator[list[Floats]]:
            for parts in zip(*(model.steps() for model in models), strict=True):
                yield list(parts)

        if units * len(models) * len(models[0].values) <= _KEPT:
            kept = [*steps()]
            steps = lambda: iter(kept)  # noqa: E731
        joint, drift = np.zeros(len(models[0].values)), 0.0
        own = [np.zeros(len(joint)) for _ in models]
        for parts in steps():
            both = parts[0] - parts[1] if len(parts) > 1 else parts[0]
            joint += _squares(both)
            drift += float(both[:, 0].sum())
            for total, part in zip(own, parts, strict=True):
                total += _squares(part)
        bias = 0.0 if len(models) > 1 else -drift * (units - 1) / units
        return cls(float(joint[0]), bias, joint[1:], own, steps)


def _squares(part: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", part, part))


def _reach_of_score(
    models: list[_Model], spread: _Spread, t: float, units: int
) -> tuple[float, float]:
    """How far the limits of the score are below and above its value."""
    # The difference's lower limit is the lower of the second model and the upper of the first.
    moves: list[Any] = []
    for model, own in zip(models, spread.own, strict=True):
        errors = np.sqrt(own)
        if model.by_class is None:
            low, high = model.arms(errors[:1], t, score=True)
            found: Any = [low[0], high[0]]
        else:
            found = [model.by_class * (arm - 1) for arm in model.arms(errors[1:], t)]
        moves.append(found[::-1] if model.flip else found)
    total = np.zeros(2)
    for parts in spread.steps():
        for side in (0, 1):
            moved = np.zeros(len(parts[0]))
            for model, part, move in zip(models, parts, moves, strict=True):
                moved += (-1 if model.flip else 1) * _moved(model, part, move[side])
            total[side] += moved @ moved
    variance = total * (units - 1) / units
    # The bias is too uncertain to be subtracted, so it widens the interval like a variance.
    if spread.score > 0:
        variance *= 1 + spread.bias**2 / (spread.score * (units - 1) / units)
    down, up = t * np.sqrt(variance)
    return float(down), float(up)


def _moved(model: _Model, step: Floats, move: Any) -> NDArray[Any]:
    """Contribution of each unit to the score, scaled by the arms of its parts, (n,)."""
    if model.by_class is None:
        return np.asarray(step[:, 0] * move)
    return np.asarray(step[:, 0] + step[:, 1:] @ move)


def _freedom(models: list[_Model], variance: Floats, seen: NDArray[np.int64]) -> Floats:
    """Degrees of freedom of the score and its classes."""
    freedom: Floats = seen.astype(np.float64) - 1.0
    taken = [model.weights > 0 for model in models if model.weights is not None]
    if not taken:
        return freedom
    use = np.logical_or.reduce(taken) & (freedom[1:] > 0) & (variance > 0)
    if use.any():
        v = variance[use] / variance[use].max()
        found = v.sum() ** 2 / (v**2 / freedom[1:][use]).sum()
        freedom[0] = min(max(float(found), LEAST_FREEDOM), freedom[0])
    return freedom


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Leave-one-out scores for each unit.

    Attributes
    ----------
    metric : str
    unit : {"image", "group"}
    names : tuple of str
        The units.
    columns : tuple of str
        The score, then the classes.
    values : ndarray of float, shape (1 + C,)
        With all units.
    left_out : ndarray of float, shape (U, 1 + C)
        Without each unit.
    """

    metric: str
    unit: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    left_out: Floats

    @property
    def effect(self) -> Floats:
        """Change of each value when the unit is included, (U, 1 + C)."""
        return self.values - self.left_out

    @property
    def standard_error(self) -> Floats:
        """Jackknife standard error of each value, √((U − 1)/U Σ (θ₍ᵢ₎ − θ̄)²), (1 + C,)."""
        number = len(self.names)
        spread = ((self.left_out - self.left_out.mean(0)) ** 2).sum(0)
        return np.asarray(np.sqrt((number - 1) / number * spread))

    def strongest(self, count: int = 5, column: int = 0) -> tuple[list[int], list[int]]:
        """Units that raise a value most and units that lower it most.

        Parameters
        ----------
        count : int, default 5
            Number of units of either kind.
        column : int, default 0
            Index of the value, one of :attr:`columns`.

        Returns
        -------
        raising : list of int
            Indices into :attr:`names`, strongest first.
        lowering : list of int
            Likewise.
        """
        effect = self.effect[:, column]
        order = np.argsort(effect, kind="stable")
        order = order[~np.isnan(effect[order])]
        lowering = [int(i) for i in order[:count] if effect[i] < 0]
        raising = [int(i) for i in order[::-1][:count] if effect[i] > 0]
        return raising, lowering

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        found: dict[str, Any] = text.plain(self)
        return found | {"effect": text.plain(self.effect)}


def influence(
    counts: Counts,
    metric: Metric = "iou",
    *,
    ids: Sequence[str] | None = None,
    groups: Sequence[Hashable] | None = None,
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str = "segiou",
    aggregate: Aggregate | None = None,
) -> Influence:
    """Jackknife: leave-one-out scores for each image or group.

    Computed in one pass: the counts without a unit are the total minus its own.

    Parameters
    ----------
    counts : Counts of shape (N, C)
        Counts per class, (..., C).
    metric, groups, class_names, include, protocol, aggregate
        As for :func:`segiou.analysis.intervals.confidence_intervals`.
    ids : sequence of str, length N, optional
        Names of the images.

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapter 11.

    Examples
    --------
    >>> counts = Counts(tp=[[9], [1]], fp=[[0], [5]], fn=[[1], [4]], tn=[[0], [0]])
    >>> found = influence(counts, ids=["clear", "fog"])
    >>> found.values, found.left_out[:, 0], found.strongest(1)
    (array([0.5, 0.5]), array([0.1, 0.9]), ([0], [1]))
    """
    parts = ImageParts.of(counts)
    images = scored_counts(parts, metric, protocol, class_names, include)
    prepared = images.over(units_of(parts.number, groups, ids), aggregate)
    return Influence(
        prepared.score.name,
        prepared.units.kind,
        prepared.units.names,
        prepared.names,
        prepared.values,
        prepared.left_out,
    )
