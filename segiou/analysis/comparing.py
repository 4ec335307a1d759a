"""Compare models on the same images: paired intervals, paired tests and ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou.analysis.bootstrapping import (
    Influence,
    Method,
    batches,
    check_method,
    intervals_of,
    limits_of,
    resampled,
)
from segiou.analysis.comparison import (
    Comparison,
    Difference,
    InfluentialImage,
    ModelRank,
    PairComparison,
    Power,
)
from segiou.analysis.dependence import BlockLength, design_of
from segiou.analysis.imbalance import explain_difference
from segiou.analysis.statistics import (
    Aggregate,
    ScoredImages,
    ScoredParts,
    Statistic,
    scored_parts,
)
from segiou.analysis.units import Groups, HasRunCounts, Metric, some_of, weighted
from segiou.counting.counts import Counts
from segiou.measures.registry import measure_of_score
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, ratio

# Differences closer than this are equal except for rounding.
_TIE = 1e-12
_NORMAL = NormalDist()
#: Power is simulated for these multiples of a first guess, within these limits.
_STEPS = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)
_LEAST, _MOST = 5, 1_000_000


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Attributes
    ----------
    only : mapping of str to tuple of str
        Run name → ids that are missing in another run.
    """

    def __init__(self, only: Mapping[str, Sequence[str]]) -> None:
        self.only: dict[str, tuple[str, ...]] = {name: tuple(ids) for name, ids in only.items()}
        super().__init__(
            f"cannot compare runs scored on different images: {_only_in(self.only)}; "
            "score all models on the same images"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only,))


def compare(
    run_a: HasRunCounts,
    run_b: HasRunCounts,
    *more: HasRunCounts,
    metric: Metric = "iou",
    aggregate: Aggregate | None = None,
    protocol: Protocol | str | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    resamples: int = 10_000,
    permutations: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "percentile",
    names: Sequence[str] | None = None,
    influential: int = 5,
) -> Comparison:
    """Compare two or more models on the same images.

    Each pair gets the difference (second minus first) of the score and of every
    class with a paired bootstrap interval
    (:func:`segiou.analysis.bootstrapping.bootstrap`), a paired permutation p
    (:func:`permutation_test`) and Holm's adjustment over the classes
    (:func:`holm_adjust`), the most influential images, and a power estimate
    (:func:`power`). More than two models are also ranked.

    Parameters
    ----------
    run_a, run_b, *more : Run
        On the same images, in any order.
    metric, aggregate
        See :func:`segiou.analysis.statistics.statistic`; or a score of a measure,
        such as ``"boundary_iou"`` or ``"surface_dice"``. Larger values of a
        function of Counts are better.
    protocol : Protocol or str, optional
        Protocol of the mean; by default, that of the runs.
    groups : str, mapping, callable or sequence, optional
        Groups of dependent images: a regular expression for their ids, a
        mapping or function from id to group, or the groups in the order of
        ``run_a.ids``. ``"none"`` declares the images independent.
    blocks : "auto" or float, optional
        Resample and permute blocks of neighbouring images along each sequence,
        see :func:`segiou.analysis.bootstrapping.bootstrap`; ``"auto"`` estimates
        the length from the per-image differences between the models.
    resamples, permutations, seed : int
        Number of resamples; number of permutations; seed of the random numbers.
    level : float
        Level of the intervals; 1 − level is the significance level of p.
    method : {"percentile", "bca"}
        Percentiles of the resamples, or corrected for bias and skew (BCa).
    names : sequence of str, optional
        Names of the models; by default, those of the runs.
    influential : int
        Number of influential images to list for each model.

    Returns
    -------
    Comparison

    Raises
    ------
    DifferentImagesError
        If the runs have different images; the message names them.
    TypeError, ValueError
        If the runs cannot be compared or an option is out of range.

    References
    ----------
    See the functions named above. Pixels and frames are not independent cases:
    A. Reinke et al., Nature Methods 21 (2024).

    Examples
    --------
    >>> from segiou import score
    >>> truths = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]
    >>> worse = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    >>> runs = [score([[t] for t in truths], [[t] for t in p], labels=2) for p in (worse, truths)]
    >>> found = compare(*runs, names=("old", "new"))
    >>> pair = found.pairs[0]
    >>> round(pair.overall.delta, 4), pair.overall.p, pair.exact
    (0.5048, 0.125, True)
    """
    runs = (run_a, run_b, *more)
    for run in runs:
        if not (hasattr(run, "counts") and hasattr(run, "ids")):
            hint = "; open a run file with segiou.Run.open" if isinstance(run, str) else ""
            msg = f"compare expects runs, got {type(run).__name__}{hint}"
            raise TypeError(msg)
    check_integer("resamples", resamples, 2)
    check_integer("permutations", permutations, 1)
    check_integer("seed", seed, 0)
    check_integer("influential", influential, 0)
    check_method(method, level)
    called = _names(runs, names)
    pixels = _same_images(runs, called, protocol, metric)
    images: list[Any] = list(pixels)
    if (key := measure_of_score(metric)) is not None:
        images = [scored_parts(*each, key) for each in zip(pixels, runs, called, strict=True)]
        _check_plans(runs, called, key)
        images = [
            _ordered(one, run.ids, runs[0].ids) for one, run in zip(images, runs, strict=True)
        ]
    design = design_of(images, groups, blocks)
    scores = [one.over(design.units, aggregate) for one in images]
    alone = scores
    if design.units is not design.images:
        alone = [one.over(design.images, aggregate) for one in images]
    values = resampled(alone if design.blocks else scores, resamples, seed, design.blocks)
    of_models = called, pixels, scores, alone, values, images[0].include
    compared = _Compared(*of_models, level, method, seed, influential)
    pairs = list(combinations(range(len(runs)), 2))
    permuted = [permutation_test(scores[i], scores[j], permutations, seed) for i, j in pairs]
    adjusted = holm_adjust(np.array([found.p[0] for found in permuted]))
    return Comparison(
        metric=scores[0].metric,
        aggregate=scores[0].aggregate,
        protocol=scores[0].protocol,
        names=called,
        images=len(design.images),
        unit=design.units.kind,
        units=len(design.units),
        level=level,
        method=method,
        resamples=resamples,
        seed=seed,
        ranking=compared.ranking(),
        pairs=tuple(map(compared.pair, pairs, permuted, adjusted)),
        dependence=design.dependence,
        block_length=design.block_length,
        better=scores[0].better,
        score_unit=scores[0].score_unit,
    )


class _Compared(NamedTuple):
    """Models on the same images, compared in pairs."""

    names: tuple[str, ...]
    pixels: list[ScoredImages[Counts]]
    scores: list[Statistic]
    alone: list[Statistic]
    """Scores over single images."""
    values: list[Floats]
    """Scores of the resamples, (B, 1 + C)."""
    include: NDArray[np.bool_]
    level: float
    method: Method
    seed: int
    influential: int

    def ranking(self) -> tuple[ModelRank, ...]:
        """Models by score, with the share of resamples in which each ranks first."""
        resamples = np.stack([values[:, 0] for values in self.values])
        resamples = resamples[:, ~np.isnan(resamples).any(0)]
        sign = 1 if self.scores[0].better == "higher" else -1
        top = sign * resamples == (sign * resamples).max(0, initial=-np.inf)
        best = ratio((top / np.maximum(top.sum(0), 1)).sum(1), resamples.shape[1])
        found = []
        for name, score, values, share in zip(
            self.names, self.scores, self.values, best.tolist(), strict=True
        ):
            ends = *limits_of(values[:, 0], self.level), share
            if score.units.few_groups:
                ends = (float("nan"),) * 3
            found.append(ModelRank(name, float(score.values[0]), *ends))
        return tuple(sorted(found, key=lambda r: (np.isnan(r.value), -sign * r.value)))

    def pair(self, pair: tuple[int, int], permuted: Permuted, p_holm: float) -> PairComparison:
        """Compare two models, given Holm's adjustment over the pairs."""
        i, j = pair
        a, b, names = self.scores[i], self.scores[j], (self.names[i], self.names[j])
        adjusted = np.concatenate([[p_holm], holm_adjust(permuted.p[1:])])
        overall, *classes = self.differences(i, j, permuted.p, adjusted)
        alone = self.alone[i], self.alone[j]
        sides = [*self.influential_images(*alone)]  # those that raise the difference first
        favours_b, favours_a = sides if a.better == "higher" else sides[::-1]
        unequal = np.asarray((alone[0].sums != alone[1].sums).sum(1))
        undefined = np.isnan([a.values[1:], b.values[1:]])
        for_one = (undefined[0] != undefined[1]) & self.include[: undefined.shape[1]]
        pixels = self.pixels[i]
        return PairComparison(
            *names,
            overall=overall,
            classes=tuple(classes),
            permutations=permuted.permutations,
            exact=permuted.exact,
            favours_a=favours_a,
            favours_b=favours_b,
            power=power(a, b, level=self.level, seed=self.seed),
            defined_for_one=tuple(a.names[1 + c] for c in np.flatnonzero(for_one).tolist()),
            imbalance=explain_difference(
                pixels.counts,
                self.pixels[j].counts,
                pixels.class_names or (),
                names=names,
                include=pixels.include,
                protocol=pixels.protocol,
            ),
            images_differing=int(np.count_nonzero(unequal)),
        )

    def differences(self, i: int, j: int, p: Floats, adjusted: Floats) -> Iterator[Difference]:
        """Differences of the score and of every class."""
        a, b = self.scores[i], self.scores[j]
        resampled, points = self.values[j] - self.values[i], b.values - a.values
        without = b.left_out - a.left_out if self.method == "bca" else None
        intervals = intervals_of(a, resampled, points, without, self.level)
        columns = (column.tolist() for column in (a.values, b.values, p, adjusted))
        for found, own_a, own_b, own_p, p_holm in zip(intervals, *columns, strict=True):
            delta = found.value, found.low, found.high, found.standard_error
            ps = own_p, p_holm
            yield Difference(
                found.name, own_a, own_b, *delta, *ps, found.units, found.undefined_share
            )

    def influential_images(
        self, a: Statistic, b: Statistic
    ) -> Iterator[tuple[InfluentialImage, ...]]:
        """The most influential images: those that raise the difference, those that lower it."""
        ids, both = a.units.names, (b.values - a.values, b.left_out - a.left_out)
        found = Influence(a.metric, a.units.kind, ids, a.names, *both)
        columns = (column.tolist() for column in (found.effect[:, 0], a.alone, b.alone))
        images = [InfluentialImage(*row) for row in zip(ids, *columns, strict=True)]
        for side in found.strongest(self.influential):
            yield tuple(images[i] for i in side)


def _same_images(
    runs: Sequence[HasRunCounts],
    names: Sequence[str],
    protocol: Protocol | str | None,
    metric: Metric,
) -> list[ScoredImages[Counts]]:
    """Images of all runs in the same order; reject runs that cannot be compared."""
    first = runs[0]
    chosen = load_protocol(first.protocol if protocol is None else protocol)
    for name, run in zip(names, runs, strict=True):
        if len(set(run.ids)) < len(run.ids):
            twice = [i for i, number in Counter(run.ids).items() if number > 1]
            msg = f"{name} has duplicate image ids: {some_of(twice)}; ids must be unique"
            raise ValueError(msg)
    for name, run in zip(names[1:], runs[1:], strict=True):
        _check_classes(first, run, names[0], name)
        if protocol is None and run.protocol != first.protocol:
            msg = (
                f"{names[0]} was scored under protocol {first.protocol.name!r} and {name} under "
                f"{run.protocol.name!r}; choose one with protocol=..."
            )
            raise ValueError(msg)
    common = set(first.ids).intersection(*(run.ids for run in runs[1:]))
    only = {n: [i for i in run.ids if i not in common] for n, run in zip(names, runs, strict=True)}
    if any(only.values()):
        raise DifferentImagesError(only)
    of_first = tuple(first.ids), tuple(first.class_names), chosen.include_of(first), chosen
    images = [ScoredImages(run.counts, metric, *of_first) for run in runs]
    return _same_order(runs, names, images)


def _ordered(images: ScoredParts, own: Sequence[str], ids: Sequence[str]) -> ScoredParts:
    """Images in the order of the first run."""
    place = {id: i for i, id in enumerate(own)}
    return replace(images, parts=images.parts.take([place[id] for id in ids]))


def _check_plans(runs: Sequence[Any], names: Sequence[str], key: str) -> None:
    """Reject runs whose measures were counted with different options."""
    ways = [run._header.plan(key).way() for run in runs]
    for way, name in zip(ways, names, strict=True):
        first, second = (
            ", ".join(f"{part} {own[part]}".strip() for part in own if own[part] != other.get(part))
            for own, other in ((ways[0], way), (way, ways[0]))
        )
        if first or second:
            noun = runs[0]._header.plan(key).measure.noun
            msg = (
                f"{noun} were measured with {first} in {names[0]} but {second} in {name}; score "
                "both with the same options"
            )
            raise ValueError(msg)


def _names(runs: Sequence[HasRunCounts], names: Sequence[str] | None) -> tuple[str, ...]:
    letters = [chr(ord("A") + i) if i < 26 else f"run {i + 1}" for i in range(len(runs))]
    if names is not None:
        given = read_several("names", names, "a sequence of names, one per run")
        if len(given) != len(runs) or len(set(given)) != len(runs):
            msg = f"names must be {len(runs)} distinct names, one per run, got {given}"
            raise ValueError(msg)
        return tuple(given)
    own = [run.name or letter for run, letter in zip(runs, letters, strict=True)]
    return tuple(
        f"{name} ({letter})" if own.count(name) > 1 else name
        for name, letter in zip(own, letters, strict=True)
    )


def _check_classes(a: HasRunCounts, b: HasRunCounts, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = _only_in({name_a: only_a, name_b: only_b}) or "the classes are in a different order"
        msg = f"{name_a} and {name_b} have different classes: {what}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} exclude different classes from their means: "
            f"{some_of([a.class_names[c] for c in differ])}; exclude the same classes in both"
        )
        raise ValueError(msg)


def _only_in(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"only in {run}: {some_of(only)}" for run, only in names.items() if only)


def _same_order(
    runs: Sequence[HasRunCounts], names: Sequence[str], images: Sequence[ScoredImages[Counts]]
) -> list[ScoredImages[Counts]]:
    """Images of each run in the order of the first; all must have the same truth."""
    first, found = runs[0], [images[0]]
    for name, run, own in zip(names[1:], runs[1:], images[1:], strict=True):
        place = {id: i for i, id in enumerate(run.ids)}
        order = np.array([place[id] for id in first.ids], dtype=np.intp)
        found.append(replace(own, counts=own.counts[order]))
        a, b = found[0].counts.truth, found[-1].counts.truth
        rows, classes = np.nonzero(a != b)
        if not len(rows):
            continue
        i, c, others = rows[0], classes[0], len({*rows.tolist()}) - 1
        more = f", and {others} more images" if others else ""
        msg = (
            f"{names[0]} and {name} were scored against different ground truth: image "
            f"{first.ids[i]} has {a[i, c]} pixels of {first.class_names[c]} in one and {b[i, c]} "
            f"in the other{more}; score both against the same masks with the same ignored values"
        )
        raise ValueError(msg)
    return found


class Permuted(NamedTuple):
    """p-values of a permutation test."""

    p: Floats
    """Of the score, then of the classes, (1 + C,); NaN if the difference is undefined."""
    permutations: int
    """Number of permutations."""
    exact: bool
    """Whether these are all permutations."""


def permutation_test(a: Statistic, b: Statistic, permutations: int, seed: int) -> Permuted:
    """Two-sided paired permutation test of a difference of scores.

    Under the null hypothesis, the two models are exchangeable on every unit.
    A permutation s swaps their counts on some units and gives the difference
    Δ_s; ``p = (1 + #{|Δ_s| ≥ |Δ|}) / (B + 1)`` for B random permutations. If
    there are at most B permutations, 2^U, the test is exact:
    ``p = #{|Δ_s| ≥ |Δ|} / 2^U``. Permutations in which a class is undefined are
    skipped.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    permutations, seed : int
        Number of permutations; seed of the random numbers.

    Returns
    -------
    Permuted

    References
    ----------
    E. J. G. Pitman, Suppl. J. R. Stat. Soc. 4 (1937). For the added ones:
    B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol.
    9:39 (2010).
    """
    units = len(a.units)
    exact = 2**units <= permutations
    sums_a, sums_b = a.products, b.products
    first_a, step = sums_a.sum(0), sums_b - sums_a
    whole = first_a + sums_b.sum(0)
    observed = np.abs(b.values - a.values)
    reached, defined = np.zeros(len(observed)), np.zeros(len(observed))

    def swaps() -> Iterator[NDArray[np.int64]]:
        """Rows of 0 and 1 per unit, 1 if the two models are swapped."""
        if exact:
            yield (np.arange(2**units)[:, None] >> np.arange(units)) & 1
            return
        # A different stream from that of the bootstrap, which starts from the bare seed.
        rng = np.random.default_rng([seed, 1])
        for size in batches(permutations, units, 2 * sums_a.shape[1]):
            yield rng.integers(0, 2, (size, units))

    for swapped in swaps():
        first = first_a + weighted(swapped, step)
        delta = np.abs(b.evaluate(whole - first) - a.evaluate(first))
        reached += (delta >= observed - _TIE).sum(0)
        defined += (~np.isnan(delta)).sum(0)
    added = 0 if exact else 1
    p = (reached + added) / np.maximum(defined + added, 1)
    p[np.isnan(observed)] = np.nan
    return Permuted(p, 2**units if exact else permutations, exact)


def holm_adjust(p: Floats) -> Floats:
    """Holm's adjustment of p-values for multiple comparisons.

    In ascending order, p̃₍ᵢ₎ = max_{j ≤ i} min(1, (m − j + 1) p₍ⱼ₎). Rejecting all
    p̃ below α controls the family-wise error rate at α.

    Parameters
    ----------
    p : ndarray of float, shape (m,)
        NaN values are skipped and stay NaN.

    Returns
    -------
    ndarray of float64, shape (m,)

    References
    ----------
    S. Holm, Scand. J. Statist. 6 (1979), 65-70.

    Examples
    --------
    >>> holm_adjust(np.array([0.01, 0.04, np.nan, 0.03]))
    array([0.03, 0.06,  nan, 0.06])
    """
    found = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    factors = np.arange(len(order), 0, -1)
    found[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return found


def power(
    a: Statistic,
    b: Statistic,
    *,
    level: float = 0.95,
    target: float = 0.8,
    simulations: int = 1000,
    seed: int = 0,
) -> Power:
    """Power of the same comparison with other numbers of units, by simulation.

    An experiment resamples n units and computes the difference Δ* of the
    scores. It detects the difference if Δ* has the sign of the observed Δ and
    the interval Δ* ± t s*/√n excludes 0; s* is the standard deviation of the
    jackknife values u_i = (U − 1)(Δ − Δ₍ᵢ₎) of the resampled units and t the
    quantile of Student's distribution with n − 1 degrees of freedom. Power is
    the share of such experiments, interpolated in log n.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    level, target : float
        Level of the intervals, e.g. 0.95; target power, e.g. 0.8.
    simulations, seed : int
        Number of simulated experiments; seed of the random numbers.

    Returns
    -------
    Power

    Notes
    -----
    The observed difference is taken as the true one, so the result is an order
    of magnitude. A difference that is large by chance needs more units.
    """
    units = len(a.units)
    difference = float(b.values[0] - a.values[0])
    effects = (units - 1) * (difference - (b.left_out[:, 0] - a.left_out[:, 0]))
    rng = np.random.default_rng([seed, 2])

    def seen(number: int) -> float:
        """Share of experiments with ``number`` units that detect the difference."""
        # Imported here because it takes tens of milliseconds.
        from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

        weights = rng.multinomial(number, np.full(units, 1 / units), simulations)
        of_a, of_b = (
            one.evaluate(weighted(weights, one.sums.astype(np.float64)))[:, 0] for one in (a, b)
        )
        drawn = weights @ effects / number
        spread = np.maximum(weights @ effects**2 / number - drawn**2, 0.0)
        freedom = max(number - 1, 1)
        reach = float(stdtrit(freedom, (1 + level) / 2)) * np.sqrt(spread / freedom)
        return float(((of_b - of_a) * np.sign(difference) > reach).mean())

    grid: tuple[tuple[int, float], ...] = ()
    if difference != 0 and np.isfinite([difference, *effects]).all():
        # Around the number for which the normal approximation has 80 % power.
        quantiles = _NORMAL.inv_cdf((1 + level) / 2) + _NORMAL.inv_cdf(0.8)
        guess = (quantiles * float(effects.std()) / difference) ** 2
        numbers = {units, *(round(min(max(guess * step, _LEAST), _MOST)) for step in _STEPS)}
        grid = tuple((number, seen(number)) for number in sorted(numbers))
    return Power(
        unit=a.units.kind,
        difference=difference,
        level=level,
        target=target,
        units=units,
        now=dict(grid).get(units, float("nan")),
        needed=_reached(grid, target),
        grid=grid,
        simulations=simulations,
    )


def _reached(grid: tuple[tuple[int, float], ...], target: float) -> int | None:
    """Smallest number of units with the target power, interpolated in log n."""
    if grid and grid[0][1] >= target:
        return grid[0][0]
    for (n0, p0), (n1, p1) in pairwise(grid):
        if p1 >= target:
            return int(np.ceil(n0 * (n1 / n0) ** ((target - p0) / (p1 - p0))))
    return None
