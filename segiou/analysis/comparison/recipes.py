"""Several training runs per model: intervals that cover both images and retraining."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inference.leave_one_out import steps_of
from segiou.inference.limits import Limits, bounds_of, wide_limits
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import FEWEST_COMPARED, ManyRows
from segiou.metrics.ratio import Floats


def mean_of_runs(runs: Sequence[Statistic]) -> Statistic:
    """The mean of a score over training runs on the same units."""
    if len(runs) == 1:
        return runs[0]
    first = runs[0]
    width = first.sums.shape[1]

    def evaluate(sums: NDArray[Any]) -> Floats:
        parts = (sums[..., i * width : (i + 1) * width] for i in range(len(runs)))
        values = [run.evaluate(part) for run, part in zip(runs, parts, strict=True)]
        return np.asarray(np.mean(values, 0))

    tables = [run.sums for run in runs]
    if all(isinstance(table, np.ndarray) for table in tables):
        sums: Any = np.concatenate(tables, axis=1)
    elif isinstance(first.sums, ManyRows):
        parts = [table.parts for table in tables]
        sums = ManyRows(
            lambda: (np.concatenate(rows, 1) for rows in zip(*(p() for p in parts), strict=True)),
            first.sums.number,
        )
    else:
        from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

        sums = sparse.hstack(tables, format="csr")
    weights = first.weights
    fixed = None if weights is None else (lambda _: weights)
    score = replace(first.score, evaluate=evaluate, occurs=None, weights=fixed, scale=first.scale)
    return replace(first, sums=sums, score=score, images=None)


@dataclass(frozen=True, eq=False)
class Crossed:
    """Differences of the means of two recipes, with images and training runs as crossed factors.

    The variance is that of the images, V_img (jackknife of the difference of
    the means), plus that of the runs, V_runs = s² (1/M_a + 1/M_b), less the
    image-by-run residual that both contain. s² is pooled over the recipes, so a
    recipe with one run takes the variance of the other. With as many runs of both, V_runs is
    the same without pooling, and has Welch's degrees of freedom.

    References
    ----------
    Degrees of freedom: F. E. Satterthwaite, Biometrics Bulletin 2 (1946),
    110-114; B. L. Welch, Biometrika 34 (1947), 28-35.

    Attributes
    ----------
    values : ndarray of float, shape (1 + C,)
        The differences, second minus first.
    images, runs, residual : ndarray of float, shape (1 + C,)
        Variances.
    image_freedom, run_freedom : ndarray of float, shape (1 + C,)
    units : int
    bounds : tuple of float
        The smallest and the largest possible difference.
    """

    values: Floats
    images: Floats
    runs: Floats
    residual: Floats
    image_freedom: Floats
    run_freedom: Floats
    units: int
    bounds: tuple[float, float]
    permuted = None
    is_students = False

    @classmethod
    def of(cls, a: Sequence[Statistic], b: Sequence[Statistic]) -> Crossed:
        """Compare the training runs of two recipes on the same units."""
        if not a[0].is_smooth:
            name = a[0].score.name
            msg = (
                f"medians and percentiles of several training runs cannot be compared ({name}); "
                "pass single runs"
            )
            raise ValueError(msg)
        first, second = mean_of_runs(a), mean_of_runs(b)
        units, seen = len(a[0].units), np.minimum(first.seen, second.seen)
        steps = np.concatenate([*steps_of(second)]) - np.concatenate([*steps_of(first)])
        images = (steps**2).sum(0)
        images[0] *= (units - 1) / units
        values = second.values - first.values
        images[(seen < 2) | ~np.isfinite(values)] = np.nan
        runs, freedom = _run_variance(a, b)
        several = [each for each in (a, b) if len(each) > 1]
        residual = sum((_residual(each, units) for each in several), np.zeros(len(values)))
        bounds = bounds_of(second)
        return cls(
            values=values,
            images=images,
            runs=runs,
            residual=residual,
            image_freedom=seen - 1.0,
            run_freedom=freedom,
            units=units,
            bounds=bounds,
        )

    @np.errstate(all="ignore")
    def spreads(self, units: int) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom over so many units."""
        share = units / self.units
        images, residual = self.images / share, self.residual / share
        image_freedom = np.maximum((self.image_freedom + 1) * share - 1, 1.0)
        variance = images + np.maximum(self.runs - residual, 0)
        own = np.maximum(images - residual, 0) ** 2 / image_freedom
        parts = own + self.runs**2 / self.run_freedom
        together = np.where(parts > 0, variance**2 / parts, np.inf)
        # The variance is less than that of its parts if the residual is larger than that of runs.
        together = np.fmax(together, np.fmin(image_freedom, self.run_freedom))
        return np.sqrt(variance), np.minimum(together, self.units * share - 1.0)

    @property
    def p(self) -> Floats:
        """Two-sided p of Student's t; NaN if undefined, and over too few units for limits."""
        error, freedom = self.spreads(self.units)
        with np.errstate(all="ignore"):
            p = 2 * student_below(-np.abs(self.values) / error, freedom)
        return np.where((error > 0) & (self.units >= FEWEST_COMPARED), p, np.nan)

    def limits(self, level: float) -> Limits:
        """Intervals of the score and of every class, at a two-sided level."""
        error, freedom = self.spreads(self.units)
        reach = student(freedom, (1 - level) / 2) * error
        ends = wide_limits(self.values - reach, self.values + reach, self.bounds)
        nowhere = np.full(len(self.values), np.nan)
        return Limits(self.values, *ends, error, freedom, nowhere)

    def spread(self, units: int, _level: float) -> tuple[float, float]:
        """Standard error and degrees of freedom of the score over so many units."""
        error, freedom = self.spreads(units)
        return float(error[0]), float(freedom[0])


def _run_variance(a: Sequence[Statistic], b: Sequence[Statistic]) -> tuple[Floats, Floats]:
    """Variance of the difference of the means from the runs, and its degrees of freedom."""
    several = [[run.values for run in runs] for runs in (a, b) if len(runs) > 1]
    own = [len(values) - 1 for values in several]
    spread = [np.var(values, 0, ddof=1) for values in several]
    pooled = sum(s * f for s, f in zip(spread, own, strict=True)) / sum(own)
    freedom = np.full(len(pooled), float(sum(own)))
    if len(a) == len(b):
        with np.errstate(all="ignore"):
            freedom = sum(spread) ** 2 / sum(s**2 / own[0] for s in spread)
    return pooled * (1 / len(a) + 1 / len(b)), freedom


def _residual(runs: Sequence[Statistic], units: int) -> Floats:
    """Variance of a mean over runs due to the interaction of images and runs."""
    left = np.stack([run.left_out for run in runs])
    rest = left - left.mean(0)
    rest = np.nan_to_num(rest - rest.mean(1, keepdims=True))
    number = len(runs)
    return np.asarray((units - 1) / units * (rest**2).sum((0, 1)) / (number * (number - 1)))
