"""Compare models on the same images: paired intervals, paired tests, and who is best."""

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
    PairComparison,
    Power,
    Ranked,
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
from segiou.analysis.units import Groups, Metric, ScoredRun, some_of, weighted
from segiou.counting.counts import Counts
from segiou.measures.registry import measure_of_score
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, ratio

# Scores are near 1 at most, so two differences closer than this are equal but for rounding.
_TIE = 1e-12
_NORMAL = NormalDist()
#: Numbers of units whose power is found: these times a first guess, at least and at most.
_STEPS = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)
_LEAST, _MOST = 5, 1_000_000


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Attributes
    ----------
    only : mapping of str to tuple of str
        Run name → ids that it has and another one has not.
    """

    def __init__(self, only: Mapping[str, Sequence[str]]) -> None:
        self.only: dict[str, tuple[str, ...]] = {name: tuple(ids) for name, ids in only.items()}
        super().__init__(
            f"the runs were scored on different images, and a paired comparison needs the same: "
            f"{_only_in(self.only)}; score all models on the same images"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only,))


def compare(
    run_a: ScoredRun,
    run_b: ScoredRun,
    *more: ScoredRun,
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

    For every pair: the difference of the score and of each class, second minus
    first, with its bootstrap interval (both models on the same resamples,
    :func:`segiou.analysis.bootstrapping.bootstrap`), its paired permutation p
    (:func:`permutation_p`), and Holm's adjustment over the classes
    (:func:`holm`); the images without which the difference would change most;
    and how many images would show it (:func:`power`). Of several models, the
    share of the resamples in which each is best.

    Parameters
    ----------
    run_a, run_b, *more : Run
        On the same images, in any order.
    metric, aggregate
        See :func:`segiou.analysis.statistics.statistic`; or ``"boundary_iou"``, at the
        first width that was measured; or ``"surface_dice"``, at the first
        tolerance, the mean over the cases. A larger score is taken to be the
        better one.
    protocol : Protocol or str, optional
        Protocol of the mean; that of the runs by default.
    groups : str, mapping, callable or sequence, optional
        Images that belong together: a regular expression for their ids, a
        mapping or function from id to group, or the groups in the order of
        ``run_a.ids``. ``"none"`` states that the images are independent.
    blocks : "auto" or float, optional
        Draw and swap blocks of neighbouring images along each sequence, see
        :func:`segiou.analysis.bootstrapping.bootstrap`; ``"auto"`` takes the
        length from the differences of the models on each image.
    resamples, permutations, seed : int
        Number of resamples; number of permutations; seed of the random numbers.
    level : float
        Of the intervals; 1 − level is what p is held against.
    method : {"percentile", "bca"}
        How the intervals are made: percentiles of the resamples, or corrected for bias
        (BCa).
    names : sequence of str, optional
        What to call the models; the runs' names by default.
    influential : int
        Images to list on either side.

    Returns
    -------
    Comparison

    Raises
    ------
    DifferentImagesError
        If the runs have different images; they are named.
    TypeError, ValueError
        If the runs cannot be compared or an option is out of range.

    References
    ----------
    Sources of the parts are with the functions named. That pixels and frames
    are no independent cases: A. Reinke et al., Nature Methods 21 (2024).

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
            msg = f"compare takes runs, not {type(run).__name__}{hint}"
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
    permuted = [permutation_p(scores[i], scores[j], permutations, seed) for i, j in pairs]
    adjusted = holm(np.array([found.p[0] for found in permuted]))
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
    )


class _Compared(NamedTuple):
    """Models on the same images, and how every two of them are compared."""

    names: tuple[str, ...]
    pixels: list[ScoredImages[Counts]]
    scores: list[Statistic]
    alone: list[Statistic]
    """The scores over single images."""
    values: list[Floats]
    """The scores of resamples, (B, 1 + C)."""
    include: NDArray[np.bool_]
    level: float
    method: Method
    seed: int
    influential: int

    def ranking(self) -> tuple[Ranked, ...]:
        """Models by score, with the share of resamples in which each is best."""
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
            found.append(Ranked(name, float(score.values[0]), *ends))
        return tuple(sorted(found, key=lambda r: (np.isnan(r.value), -sign * r.value)))

    def pair(self, pair: tuple[int, int], permuted: Permuted, p_holm: float) -> PairComparison:
        """Compare two models, where Holm's adjustment over the pairs is known."""
        i, j = pair
        a, b, names = self.scores[i], self.scores[j], (self.names[i], self.names[j])
        adjusted = np.concatenate([[p_holm], holm(permuted.p[1:])])
        overall, *classes = self.differences(i, j, permuted.p, adjusted)
        for_b, for_a = self.influential_images(self.alone[i], self.alone[j])
        undefined = np.isnan([a.values[1:], b.values[1:]])
        one_sided = (undefined[0] != undefined[1]) & self.include[: undefined.shape[1]]
        pixels = self.pixels[i]
        return PairComparison(
            *names,
            overall=overall,
            classes=tuple(classes),
            permutations=permuted.permutations,
            exact=permuted.exact,
            for_a=for_a,
            for_b=for_b,
            power=power(a, b, level=self.level, seed=self.seed),
            one_sided=tuple(a.names[1 + c] for c in np.flatnonzero(one_sided).tolist()),
            imbalance=explain_difference(
                pixels.counts,
                self.pixels[j].counts,
                pixels.class_names or (),
                names=names,
                include=pixels.include,
                protocol=pixels.protocol,
            ),
        )

    def differences(self, i: int, j: int, p: Floats, adjusted: Floats) -> Iterator[Difference]:
        """The score and every class."""
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
        """Images without which the difference would change most: that raise it, that lower it."""
        ids, both = a.units.names, (b.values - a.values, b.left_out - a.left_out)
        found = Influence(a.metric, a.units.kind, ids, a.names, *both)
        columns = (column.tolist() for column in (found.effect[:, 0], a.alone, b.alone))
        images = [InfluentialImage(*row) for row in zip(ids, *columns, strict=True)]
        for side in found.strongest(self.influential):
            yield tuple(images[i] for i in side)


def _same_images(
    runs: Sequence[ScoredRun], names: Sequence[str], protocol: Protocol | str | None, metric: Metric
) -> list[ScoredImages[Counts]]:
    """Bring runs to the same images, and refuse what cannot be compared."""
    first = runs[0]
    chosen = load_protocol(first.protocol if protocol is None else protocol)
    for name, run in zip(names, runs, strict=True):
        if len(set(run.ids)) < len(run.ids):
            twice = [i for i, number in Counter(run.ids).items() if number > 1]
            msg = f"{name} has several images of one id: {some_of(twice)}; ids tell images apart"
            raise ValueError(msg)
    for name, run in zip(names[1:], runs[1:], strict=True):
        _check_classes(first, run, names[0], name)
        if protocol is None and run.protocol != first.protocol:
            msg = (
                f"{names[0]} was scored by protocol {first.protocol.name!r} and {name} by "
                f"{run.protocol.name!r}; say which to compare by: protocol=..."
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
    """The images in the order of the first run."""
    place = {id: i for i, id in enumerate(own)}
    return replace(images, parts=images.parts.take([place[id] for id in ids]))


def _check_plans(runs: Sequence[Any], names: Sequence[str], key: str) -> None:
    """Refuse runs of which a measure counted in different ways."""
    ways = [run._header.plan(key).way() for run in runs]
    for way, name in zip(ways, names, strict=True):
        first, second = (
            ", ".join(f"{part} {own[part]}".strip() for part in own if own[part] != other.get(part))
            for own, other in ((ways[0], way), (way, ways[0]))
        )
        if first or second:
            noun = runs[0]._header.plan(key).measure.noun
            msg = (
                f"{noun} are measured by {first} in {names[0]} and {second} in {name}; score both "
                "alike"
            )
            raise ValueError(msg)


def _names(runs: Sequence[ScoredRun], names: Sequence[str] | None) -> tuple[str, ...]:
    letters = [chr(ord("A") + i) if i < 26 else f"run {i + 1}" for i in range(len(runs))]
    if names is not None:
        given = read_several("names", names, "a sequence of names, one a run")
        if len(given) != len(runs) or len(set(given)) != len(runs):
            msg = f"names must be {len(runs)} different ones, one per run, got {given}"
            raise ValueError(msg)
        return tuple(given)
    own = [run.name or letter for run, letter in zip(runs, letters, strict=True)]
    return tuple(
        f"{name} ({letter})" if own.count(name) > 1 else name
        for name, letter in zip(own, letters, strict=True)
    )


def _check_classes(a: ScoredRun, b: ScoredRun, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = _only_in({name_a: only_a, name_b: only_b}) or "the order differs"
        msg = f"{name_a} and {name_b} have different classes: {what}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} leave different classes out of their means: "
            f"{some_of([a.class_names[c] for c in differ])}; exclude the same from both"
        )
        raise ValueError(msg)


def _only_in(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"only in {run}: {some_of(only)}" for run, only in names.items() if only)


def _same_order(
    runs: Sequence[ScoredRun], names: Sequence[str], images: Sequence[ScoredImages[Counts]]
) -> list[ScoredImages[Counts]]:
    """Images of each run in the order of the first; they must be of the same truth."""
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
            f"{names[0]} and {name} were scored against different truths: image {first.ids[i]} has "
            f"{a[i, c]} pixels of {first.class_names[c]} in one and {b[i, c]} in the "
            f"other{more}; score both against the same masks with the same ignored values"
        )
        raise ValueError(msg)
    return found


class Permuted(NamedTuple):
    """p-values and how they were found."""

    p: Floats
    """(1 + C,): of the score, then of the classes; NaN where there is no difference to test."""
    permutations: int
    """Swaps looked at."""
    exact: bool
    """Whether these were all there are."""


def permutation_p(a: Statistic, b: Statistic, permutations: int, seed: int) -> Permuted:
    """Two-sided paired permutation test of a difference of scores.

    If the two models were interchangeable, swapping their counts on any unit
    would change nothing: a swap s gives Δ_s, the difference of the scores of
    the swapped sums. ``p = (1 + #{|Δ_s| ≥ |Δ|}) / (B + 1)`` for B random swaps.
    Where there are no more than B swaps in all, 2^U, all of them are looked at
    and ``p = #{|Δ_s| ≥ |Δ|} / 2^U``. Swaps that leave a class without a value are
    not counted.

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
    The test: E. J. G. Pitman, Suppl. J. R. Stat. Soc. 4 (1937); one added
    above and below: B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol.
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
        """Rows of 0 and 1 per unit, 1 where the two models are swapped."""
        if exact:
            yield (np.arange(2**units)[:, None] >> np.arange(units)) & 1
            return
        # Apart from the stream of the bootstrap, which starts from the bare seed.
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


def holm(p: Floats) -> Floats:
    """Holm's adjustment of p-values for looking at several at once.

    In ascending order, p̃₍ᵢ₎ = max_{j ≤ i} min(1, (m − j + 1) p₍ⱼ₎): a class with
    p̃ below α is different with at most the chance α of one false alarm in all.

    Parameters
    ----------
    p : ndarray of float, shape (m,)
        NaN are left out and stay NaN.

    Returns
    -------
    ndarray of float64, shape (m,)

    References
    ----------
    S. Holm, Scand. J. Statist. 6 (1979), 65-70.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, np.nan, 0.03]))
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
    """Simulate the same comparison with fewer and with more units.

    An experiment with n units draws n of the run's units with replacement and
    takes the difference Δ* of the scores of their sums. It has seen the
    difference where Δ* has the sign of the observed Δ and its interval
    Δ* ± t s*/√n excludes 0; s* is the standard deviation of the drawn units'
    jackknife values u_i = (U − 1)(Δ − Δ₍ᵢ₎) and t the quantile of Student's
    distribution with n − 1 degrees of freedom. Power is the share of the
    experiments that have; between the simulated n it is interpolated in log n.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    level, target : float
        Level of the intervals, such as 0.95; power that is wanted, such as 0.8.
    simulations, seed : int
        Number of simulated comparisons; seed of the random numbers.

    Returns
    -------
    Power

    Notes
    -----
    The run stands for all images there are, and its difference for the true
    one. Both are guesses, and the answer is an order of magnitude: a difference
    that was seen because chance made it large needs more than is said here.
    """
    units = len(a.units)
    difference = float(b.values[0] - a.values[0])
    effects = (units - 1) * (difference - (b.left_out[:, 0] - a.left_out[:, 0]))
    rng = np.random.default_rng([seed, 2])

    def seen(number: int) -> float:
        """Share of experiments with ``number`` units that see the difference."""
        # Inside, because it loads in tens of milliseconds.
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
        # Around where the normal approximation has 80 % power.
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
    """First number of units with the target power, between grid points in log n."""
    if grid and grid[0][1] >= target:
        return grid[0][0]
    for (n0, p0), (n1, p1) in pairwise(grid):
        if p1 >= target:
            return int(np.ceil(n0 * (n1 / n0) ** ((target - p0) / (p1 - p0))))
    return None
