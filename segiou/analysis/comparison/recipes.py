"""Several training runs per model: intervals that cover both images and retraining."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inference.leave_one_out import Jackknife, Limits, with_width
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.metrics.ratio import Floats


def across_runs(runs: Sequence[Statistic]) -> Statistic:
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
    else:
        from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

        sums = sparse.hstack(tables, format="csr")
    score = replace(first.score, evaluate=evaluate, occurs=None, weights=None, scale=first.scale)
    weights = first.weights
    if weights is not None:
        score = replace(score, weights=lambda _: weights)
    return replace(first, sums=sums, score=score, images=None)


def crossed(
    a: Sequence[Statistic], b: Sequence[Statistic], *, level: float = 0.95
) -> tuple[Limits, Floats]:
    """Differences of the means of two recipes, with images and training runs as crossed factors.

    The variance is that of the images, V_img (jackknife of the difference of
    the means), plus that of the runs, V_seed = s²_a/M_a + s²_b/M_b, less the
    image-by-run residual that both contain. A recipe with one run takes the
    variance of the other.

    References
    ----------
    Degrees of freedom: F. E. Satterthwaite, Biometrics Bulletin 2 (1946),
    110-114; B. L. Welch, Biometrika 34 (1947), 28-35.
    """
    if not a[0].is_smooth:
        name = a[0].score.name
        msg = (
            f"medians and percentiles of several training runs cannot be compared ({name}); pass "
            "single runs"
        )
        raise ValueError(msg)
    difference = Jackknife.of(across_runs(b), across_runs(a))
    images = difference.limits(level)
    units = len(a[0].units)
    seeds, freedom, residual = _of_runs(a, b, units)
    of_images = images.standard_error**2
    variance = of_images + np.maximum(seeds - residual, 0)
    with np.errstate(all="ignore"):
        parts = np.maximum(of_images - residual, 0) ** 2 / images.freedom + seeds**2 / freedom
        together = np.where(parts > 0, variance**2 / parts, np.inf)
        # The variance is less than that of its parts if the residual is larger than that of runs.
        together = np.fmax(together, np.fmin(images.freedom, freedom))
        together = np.minimum(together, units - 1.0)
        error = np.sqrt(variance)
        p = 2 * student_below(-np.abs(images.values) / error, together)
    reach = student(together, (1 - level) / 2) * error
    low, high = with_width(images.values - reach, images.values + reach, difference.bounds)
    limits = replace(
        images, low=low, high=high, standard_error=error, freedom=together, left_out=None
    )
    return limits, np.where(error > 0, p, np.nan)


def _of_runs(
    a: Sequence[Statistic], b: Sequence[Statistic], units: int
) -> tuple[Floats, Floats, Floats]:
    """Variance of the means from the runs, its degrees of freedom, and the residual in it."""
    several = [runs for runs in (a, b) if len(runs) > 1]
    spread = [np.var([run.values for run in runs], 0, ddof=1) for runs in several]
    own_freedom = [len(runs) - 1 for runs in several]
    if len(spread) == 1:
        spread, own_freedom = spread * 2, own_freedom * 2
    means = [s / len(runs) for s, runs in zip(spread, (a, b), strict=True)]
    seeds = means[0] + means[1]
    with np.errstate(all="ignore"):
        freedom = seeds**2 / sum(m**2 / f for m, f in zip(means, own_freedom, strict=True))
    if min(len(a), len(b)) == 1:  # both variances are the same estimate
        freedom = np.full(len(seeds), float(own_freedom[0]))
    residual = sum((_residual(runs, units) for runs in several), np.zeros(len(seeds)))
    return seeds, freedom, residual


def _residual(runs: Sequence[Statistic], units: int) -> Floats:
    """Variance of a mean over runs due to the interaction of images and runs."""
    left = np.stack([run.left_out for run in runs])
    rest = left - left.mean(0)
    rest = np.nan_to_num(rest - rest.mean(1, keepdims=True))
    number = len(runs)
    return np.asarray((units - 1) / units * (rest**2).sum((0, 1)) / (number * (number - 1)))
