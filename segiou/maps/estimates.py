"""Accuracy and area of a map, estimated from a stratified reference sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_level, names_options
from segiou._support.text import listed
from segiou.maps.result import Estimate, MapAccuracy
from segiou.maps.samples import check_sample, checked_unit_area, read_sample
from segiou.metrics.ratio import Floats

_SCALED = "value", "standard_error", "low", "high", "margin"


@names_options
def map_accuracy(
    sample: Any,
    areas: Mapping[Any, float] | Sequence[float],
    *,
    strata: Any = None,
    level: float = 0.95,
    unit_area: float | None = None,
) -> MapAccuracy:
    r"""Estimate the accuracy of a map and the area of its classes from a reference sample.

    The sample is a simple random sample in each stratum. The standard errors are
    those of Olofsson et al. [1]_ [2]_ if the strata are the map's classes, and of
    Stehman [3]_ otherwise, which contain the former. Intervals are Wilson's with the
    effective sample size of the design [4]_; that of kappa is normal.

    Parameters
    ----------
    sample : ConfusionMatrix, array_like or table
        The sample units: counts, with the reference class (truth) in rows and the
        map class (prediction) in columns, or a table with the columns
        ``"reference"`` and ``"map"``: a data frame, a mapping of columns, or a
        list of mappings.
    areas : mapping or sequence of float
        Mapped area of each class, or area of each stratum, in any unit. Classes
        that only occur in the reference have area 0.
    strata : sequence or str, optional
        The stratum of each row of a table, or the column that contains it. By
        default, the strata are the map's classes.
    level : float
        Confidence level.
    unit_area : float, optional
        Area of a sample unit, for the finite population correction
        :math:`1 - n_h / N_h`; 1 if areas are numbers of pixels. Without it,
        no correction is applied, as in [2]_.

    Raises
    ------
    ValueError
        For unknown or missing classes, negative areas, strata without a sample
        unit, and sample units outside the map; the message names the row and the
        value.

    Notes
    -----
    Every score is a ratio :math:`R = Y / X` of stratified totals, such as the
    correctly mapped area of a class and its area. With the residuals
    :math:`e = y - R x` of the sample units,

    .. math:: V(R) = X^{-2} \sum_h N_h^2 (1 - n_h / N_h) s_{e,h}^2 / n_h .

    For producer's accuracy this is eq. 7 of [2]_. Its first term contains the
    *mapped* area of the class, as in the R package ``mapaccuracy`` today.
    Older versions of the package use the *estimated* area there, and include the
    class itself in the second term, which is a sum over the other classes. F1
    and kappa are not in the papers; their standard errors follow from the same
    linearization.

    References
    ----------
    .. [1] Olofsson et al. (2013), Remote Sensing of Environment 129, 122–131.
    .. [2] Olofsson et al. (2014), Remote Sensing of Environment 148, 42–57.
    .. [3] Stehman (2014), International Journal of Remote Sensing 35, 4923–4939.
    .. [4] Yan and Su (2010), Statistics in Biopharmaceutical Research 2, 329–335.

    Examples
    --------
    >>> counts = [[97, 3, 2], [0, 279, 1], [3, 18, 97]]  # columns: map class
    >>> found = map_accuracy(counts, {"loss": 22353, "forest": 1122543, "other": 610228})
    >>> loss = found.areas[0]
    >>> f"{loss.value:.0f} ± {loss.margin:.0f} ha"
    '45112 ± 21072 ha'
    """
    level = check_level("level", level)
    unit_area = checked_unit_area(unit_area)
    names, stratum_names, counts, sizes = read_sample(sample, areas, strata)
    check_sample(counts, sizes, stratum_names)
    return _Estimator(names, stratum_names, counts, sizes, level, unit_area, strata is None).all()


class _Estimator:
    """Stratified ratio estimators of counts (strata, reference, map)."""

    def __init__(
        self,
        names: tuple[str, ...],
        stratum_names: tuple[str, ...],
        counts: NDArray[np.int64],
        sizes: Floats,
        level: float,
        unit_area: float | None,
        by_map: bool,
    ) -> None:
        self._names, self._strata, self._level, self._by_map = names, stratum_names, level, by_map
        self._counts, self._sizes, self._n = counts, sizes, counts.sum((1, 2))
        self._shares = counts / np.maximum(self._n, 1)[:, None, None]
        fraction = self._n * (unit_area or 0.0) / np.where(sizes > 0, sizes, np.inf)
        self._weights = sizes**2 * np.maximum(0.0, 1 - fraction) / np.maximum(self._n, 1)
        # Cells that can contain units of a stratum; a map class can contain only its column.
        self._possible = np.ones(counts.shape, dtype=bool)
        if by_map:
            self._possible &= np.eye(len(names), dtype=bool)[:, None, :]

    def all(self) -> MapAccuracy:
        """All estimates."""
        count = len(self._names)
        truth, pred = (np.eye(count)[:, :, None], np.eye(count)[:, None, :])
        ones = np.ones((count, count))
        total = float(self._sizes.sum())
        p = np.tensordot(self._sizes, self._shares, 1) / total
        by_class: dict[str, list[Estimate]] = {k: [] for k in ("users", "producers", "f1", "areas")}
        for c in range(count):
            row, column, cell = truth[c] * ones, pred[c] * ones, truth[c] * pred[c]
            no_truth = "" if p[c].any() else f"no sample unit has reference class {self._names[c]}"
            no_pred = "" if p[:, c].any() else self._unmapped(c)
            by_class["users"].append(self._ratio(cell, column, reason=no_pred))
            by_class["producers"].append(self._ratio(cell, row, reason=no_truth or no_pred))
            by_class["f1"].append(self._ratio(2 * cell, row + column, reason=no_truth or no_pred))
            by_class["areas"].append(self._ratio(row, ones, total, reason=no_truth))
        users, producers, f1, areas = map(tuple, by_class.values())
        return MapAccuracy(
            class_names=self._names,
            overall=self._ratio(np.eye(count), ones),
            kappa=self._kappa(p),
            users=users,
            producers=producers,
            f1=f1,
            areas=areas,
            mapped=tuple((self._sizes if self._by_map else p.sum(0) * total).tolist()),
            proportions=p,
            counts=self._counts.sum(0),
            total=total,
            level=self._level,
        )

    def _unmapped(self, c: int) -> str:
        name = self._names[c]
        return f"the map lacks {name}" if self._by_map else f"no sample unit is mapped as {name}"

    def _ratio(self, y: Floats, x: Floats, scale: float = 1.0, reason: str = "") -> Estimate:
        """The ratio of the totals of two scores of cells, times a constant."""
        if reason:
            return Estimate(*(math.nan,) * 4, reason)
        sum_y, sum_x = (float(self._sizes @ self._means(z)) for z in (y, x))
        value = sum_y / sum_x
        variance, reason = self._variance(y - value * x)
        estimate = self._estimate(value, math.sqrt(variance) / sum_x, reason)
        if not math.isnan(variance):
            low, high = self._wilson(value, self._cautious_variance(y - value * x) / sum_x**2)
            estimate = replace(estimate, low=low, high=high)
        scaled = (scale * getattr(estimate, name) for name in _SCALED)
        return replace(estimate, **dict(zip(_SCALED, scaled, strict=True)))

    def _cautious_variance(self, cells: Floats) -> float:
        """Variance of a total with one more unit per stratum, half of it right, half wrong."""
        right = np.eye(len(self._names), dtype=bool) & self._possible
        wrong = self._possible & ~right
        more = sum(
            half / np.maximum(half.sum((1, 2), keepdims=True), 1) / 2 for half in (right, wrong)
        )
        counts, n = self._counts + more, self._n + more.sum((1, 2))
        means = (counts * cells).sum((1, 2)) / n
        spread = ((cells - means[:, None, None]) ** 2 * counts).sum((1, 2)) / n
        return float(self._weights @ spread)

    def _wilson(self, value: float, variance: float) -> tuple[float, float]:
        """Wilson's interval of a share with the sample size that would have this variance."""
        z2 = NormalDist().inv_cdf((1 + self._level) / 2) ** 2
        if variance <= 0:
            return value, value
        # At 0 and 1, the share has the variance of a sample with half an error more.
        size = int(self._n.sum())
        share = min(max(value, 0.5 / (size + 1)), 1 - 0.5 / (size + 1))
        n = share * (1 - share) / variance
        centre = (value + z2 / (2 * n)) / (1 + z2 / n)
        reach = math.sqrt(z2 / n * (value * (1 - value) + z2 / (4 * n))) / (1 + z2 / n)
        # Rounding may put the limit of 0 or 1 beside it.
        return min(max(centre - reach, 0.0), value), max(min(centre + reach, 1.0), value)

    def _kappa(self, p: Floats) -> Estimate:
        truth, pred = p.sum(1), p.sum(0)
        agreed, chance = float(np.trace(p)), float(truth @ pred)
        if math.isclose(chance, 1):
            return Estimate(*(math.nan,) * 4, "all sample units have the same class")
        slope = (1 - agreed) / (1 - chance) ** 2
        linear = np.eye(len(p)) / (1 - chance) - slope * (pred[:, None] + truth[None, :])
        variance, reason = self._variance(linear)
        error = math.sqrt(variance) / float(self._sizes.sum())
        return self._estimate((agreed - chance) / (1 - chance), error, reason)

    def _means(self, cells: Floats) -> Floats:
        means: Floats = np.tensordot(self._shares, cells, 2)
        return means

    def _variance(self, cells: Floats) -> tuple[float, str]:
        """Variance of the total of a score of cells, and why it is 0 or NaN."""
        least = np.where(self._possible, cells, np.inf).min((1, 2))
        most = np.where(self._possible, cells, -np.inf).max((1, 2))
        varies = (most > least) & (self._sizes > 0)
        if (once := varies & (self._n == 1)).any():
            strata = [self._strata[h] for h in np.flatnonzero(once)]
            several = "stratum {} has", "strata {} each have"
            subject = several[len(strata) > 1].format(listed(strata))
            return math.nan, f"{subject} one sample unit, so its variance is unknown"
        spread = ((cells - self._means(cells)[:, None, None]) ** 2 * self._counts).sum((1, 2))
        variances = spread / np.maximum(self._n - 1, 1)
        # Rounding differs from 0, relative to the cells of each stratum and not to the whole map.
        differs = varies & (variances > 1e-24 * np.maximum(abs(least), abs(most)) ** 2)
        if varies.any() and not differs.any():
            return 0.0, "the sample units do not differ, so the standard error is 0"
        return float(self._weights @ np.where(differs, variances, 0.0)), ""

    def _estimate(self, value: float, error: float, reason: str) -> Estimate:
        margin = NormalDist().inv_cdf((1 + self._level) / 2) * error
        return Estimate(value, error, value - margin, value + margin, reason, margin)
