"""Compare models on the same images: paired intervals, paired tests and ranking."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou.analysis.bootstrapping import batches, bootstrap_limits, resampled
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
from segiou.analysis.intervals import Method, check_method, of_design
from segiou.analysis.leave_one_out import Influence, Limits, jackknife, student
from segiou.analysis.recipes import across_runs, crossed
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
#: Most units that a power estimate names.
_MOST_UNITS = 10_000_000


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
    *runs: HasRunCounts | Mapping[str, Sequence[HasRunCounts]],
    metric: Metric = "iou",
    aggregate: Aggregate | None = None,
    protocol: Protocol | str | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    resamples: int = 10_000,
    permutations: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "jackknife",
    detect: float | None = None,
    names: Sequence[str] | None = None,
    influential: int = 5,
) -> Comparison:
    """Compare two or more models on the same images.

    Each pair gets the difference (second minus first) of the score and of every
    class with a paired interval
    (:func:`segiou.analysis.leave_one_out.jackknife`), a paired permutation p
    (:func:`permutation_test`) and Holm's adjustment over the classes
    (:func:`holm_adjust`), the most influential images, and the difference that
    these images can detect (:func:`power`). More than two models are also
    ranked.

    Parameters
    ----------
    *runs : Run, or mapping of str to sequence of Run
        Two or more runs on the same images, in any order. Or one mapping from
        the name of a training recipe to the runs of several trainings, whose
        mean is compared; the interval then covers retraining
        (:func:`segiou.analysis.recipes.crossed`).
    metric, aggregate
        See :func:`segiou.analysis.statistics.statistic`; or a score of a measure,
        such as ``"boundary_iou"`` or ``"pq"``. Larger values of a
        function of Counts are better.
    protocol : Protocol or str, optional
        Protocol of the mean; by default, that of the runs.
    groups : str, mapping, callable or sequence, optional
        Groups of dependent images: a regular expression for their ids, a
        mapping or function from id to group, or the groups in the order of the
        ids of the first run. ``"none"`` declares the images independent.
    blocks : "auto" or float, optional
        Divide each sequence into batches of neighbouring images, see
        :func:`segiou.analysis.intervals.confidence_intervals`; ``"auto"`` uses
        the per-image differences between the models.
    resamples, permutations, seed : int
        Number of resamples of a bootstrap or a ranking; most permutations; seed
        of the random numbers.
    level : float
        Level of the intervals; 1 − level is the significance level of p.
    method : {"jackknife", "percentile", "bca"}
        Jackknife-t, or a bootstrap: percentiles of the resamples, or corrected
        for bias and skew (BCa).
    detect : float, optional
        True difference in score whose power and sample size to estimate, such
        as 0.01 for 1 point.
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
    recipes, runs = _recipes(runs)
    check_integer("resamples", resamples, 2)
    check_integer("permutations", permutations, 1)
    check_integer("seed", seed, 0)
    check_integer("influential", influential, 0)
    check_method(method, level)
    each = _names(runs, names if recipes is None else None)
    pixels = _same_images(runs, each, protocol, metric)
    images: list[Any] = list(pixels)
    if (key := measure_of_score(metric)) is not None:
        images = [scored_parts(*one, key) for one in zip(pixels, runs, each, strict=True)]
        _check_plans(runs, each, key)
        images = [
            _ordered(one, run.ids, runs[0].ids) for one, run in zip(images, runs, strict=True)
        ]
    models = recipes or {name: slice(i, i + 1) for i, name in enumerate(each)}
    design = design_of(images, groups, blocks)
    trained = [
        [one.over(design.units, aggregate) for one in images[own]] for own in models.values()
    ]
    alone = trained
    if design.units is not design.images:
        alone = [[one.over(design.images, aggregate) for one in images[o]] for o in models.values()]
    compared = _Compared(
        names=tuple(models),
        pixels=_pooled([pixels[own] for own in models.values()]),
        runs=trained,
        scores=[across_runs(own) for own in trained],
        alone=[across_runs(own) for own in alone],
        include=images[0].include,
        level=level,
        method=method,
        detect=detect,
        resamples=resamples,
        permutations=permutations,
        seed=seed,
        influential=influential,
    )
    return compared.comparison(of_design(design, blocks), len(design.images))


def _recipes(
    runs: Sequence[Any],
) -> tuple[dict[str, slice] | None, tuple[HasRunCounts, ...]]:
    """Runs in one sequence, and the place of those of each recipe if there are recipes."""
    found: dict[str, slice] | None = None
    if len(runs) == 1 and isinstance(runs[0], Mapping):
        found, several = {}, []
        for name, own in runs[0].items():
            several += read_several(f"runs of {name}", own, "a sequence of runs")
            found[str(name)] = slice(sum(s.stop - s.start for s in found.values()), len(several))
        runs = several
        if empty := [name for name, own in found.items() if own.start == own.stop]:
            msg = f"recipe {empty[0]!r} has no runs"
            raise ValueError(msg)
    if len(runs if found is None else found) < 2:
        msg = "compare expects at least two runs, or a mapping of two recipes to their runs"
        raise TypeError(msg)
    for run in runs:
        if not (hasattr(run, "counts") and hasattr(run, "ids")):
            hint = "; open a run file with segiou.Run.open" if isinstance(run, str) else ""
            msg = f"compare expects runs, got {type(run).__name__}{hint}"
            raise TypeError(msg)
    return found, tuple(runs)


def _pooled(models: Sequence[Sequence[ScoredImages[Counts]]]) -> list[ScoredImages[Counts]]:
    """Counts of all runs of each model together, as often as all models have the same truth."""
    number = math.lcm(*map(len, models))
    found = []
    for runs in models:
        first, *others = [*runs] * (number // len(runs))
        for one in others:
            first = replace(first, counts=first.counts + one.counts)
        found.append(first)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class _Compared:
    """Models on the same images, compared in pairs."""

    names: tuple[str, ...]
    pixels: list[ScoredImages[Counts]]
    runs: list[list[Statistic]]
    """Scores of each training run."""
    scores: list[Statistic]
    """Scores of each model: of its run, or the mean of several."""
    alone: list[Statistic]
    """Scores over single images."""
    include: NDArray[np.bool_]
    level: float
    method: Method
    detect: float | None
    resamples: int
    permutations: int
    seed: int
    influential: int

    def comparison(self, units: dict[str, Any], images: int) -> Comparison:
        """All pairs and the ranking."""
        first, pairs = self.scores[0], [*combinations(range(len(self.names)), 2)]
        permuted = [self.permuted(i, j) for i, j in pairs]
        compared = [self.limits(i, j) for i, j in pairs]
        ps = [
            found.p if own is None else own
            for found, (_, own) in zip(permuted, compared, strict=True)
        ]
        adjusted = holm_adjust(np.array([p[0] for p in ps]))
        is_random = self.draws or not all(found.exact for found in permuted)
        several = any(len(own) > 1 for own in self.runs)
        return Comparison(
            metric=first.metric,
            aggregate=first.aggregate,
            protocol=first.protocol,
            names=self.names,
            images=images,
            level=self.level,
            method=self.method,
            resamples=self.resamples if self.draws else None,
            seed=self.seed if is_random else None,
            ranking=self.ranking(),
            pairs=tuple(
                self.pair(pair, limits, found, p, p_holm)
                for pair, (limits, _), found, p, p_holm in zip(
                    pairs, compared, permuted, ps, adjusted, strict=True
                )
            ),
            better=first.better,
            score_unit=first.score_unit,
            run_scores=tuple(
                tuple(float(run.values[0]) for run in own) for own in self.runs if several
            ),
            **units,
        )

    @property
    def draws(self) -> bool:
        """Whether anything is resampled: for intervals, or to rank."""
        return self.method != "jackknife" or len(self.names) > 2

    @cached_property
    def resampled(self) -> list[Floats]:
        """Scores of the resamples, (B, 1 + C)."""
        return resampled(self.scores, self.resamples, self.seed)

    def ranking(self) -> tuple[ModelRank, ...]:
        """Models by score, with the share of resamples in which each ranks first."""
        sign = 1 if self.scores[0].better == "higher" else -1
        best = np.full(len(self.names), np.nan)
        if self.draws and not self.scores[0].units.too_few:
            drawn = sign * np.stack([values[:, 0] for values in self.resampled])
            drawn = drawn[:, ~np.isnan(drawn).any(0)]
            top = drawn == drawn.max(0, initial=-np.inf)
            best = ratio((top / np.maximum(top.sum(0), 1)).sum(1), drawn.shape[1])
        found = []
        for place, (name, score) in enumerate(zip(self.names, self.scores, strict=True)):
            limits = self.own_limits(place)
            ends = [limits.low[0], limits.high[0], best[place]]
            if score.units.too_few:
                ends = [math.nan] * 3
            numbers = (math.nan if x != x else float(x) for x in (score.values[0], *ends))
            found.append(ModelRank(name, *numbers))
        return tuple(sorted(found, key=lambda r: (np.isnan(r.value), -sign * r.value)))

    def own_limits(self, i: int) -> Limits:
        """Intervals of a model's own scores."""
        score = self.scores[i]
        if self.method == "jackknife":
            return jackknife(score, level=self.level)
        without = score.left_out if self.method == "bca" else None
        return bootstrap_limits(self.resampled[i], score.values, without, self.level)

    def permuted(self, i: int, j: int) -> Permuted:
        """The permutation test; none with several training runs, which it would ignore."""
        a, b = self.scores[i], self.scores[j]
        if len(self.runs[i]) > 1 or len(self.runs[j]) > 1:
            return Permuted(np.full(len(a.names), np.nan), 0, True)
        return permutation_test(a, b, self.permutations, self.seed)

    def limits(self, i: int, j: int) -> tuple[Limits, Floats | None]:
        """Intervals of the differences; p as well if there are several training runs."""
        a, b = self.scores[i], self.scores[j]
        if len(self.runs[i]) > 1 or len(self.runs[j]) > 1:
            return crossed(self.runs[i], self.runs[j], level=self.level)
        if self.method == "jackknife":
            return jackknife(b, a, level=self.level), None
        without = b.left_out - a.left_out if self.method == "bca" else None
        values = self.resampled[j] - self.resampled[i]
        return bootstrap_limits(values, b.values - a.values, without, self.level), None

    def pair(
        self, pair: tuple[int, int], limits: Limits, permuted: Permuted, p: Floats, p_holm: float
    ) -> PairComparison:
        """Compare two models, given Holm's adjustment over the pairs."""
        i, j = pair
        a, b, names = self.scores[i], self.scores[j], (self.names[i], self.names[j])
        adjusted = np.concatenate([[p_holm], holm_adjust(p[1:])])
        overall, *classes = self.differences(i, j, limits, p, adjusted)
        alone = self.alone[i], self.alone[j]
        sides = [*self.influential_images(*alone)]  # those that raise the difference first
        favours_b, favours_a = sides if a.better == "higher" else sides[::-1]
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
            power=power(a, limits, level=self.level, detect=self.detect),
            defined_for_one=tuple(a.names[1 + c] for c in np.flatnonzero(for_one).tolist()),
            imbalance=explain_difference(
                pixels.counts,
                self.pixels[j].counts,
                pixels.class_names or (),
                names=names,
                include=pixels.include,
                protocol=pixels.protocol,
            ),
            images_differing=self.images_differing(i, j),
        )

    def differences(
        self, i: int, j: int, limits: Limits, p: Floats, adjusted: Floats
    ) -> Iterator[Difference]:
        """Differences of the score and of every class."""
        a, b = self.scores[i], self.scores[j]
        nowhere = np.full(len(a.names), np.nan)
        ends = (nowhere, nowhere) if a.units.too_few else (limits.low, limits.high)
        shares = nowhere
        if self.method != "jackknife":
            shares = np.isnan(self.resampled[j] - self.resampled[i]).mean(0)
        columns = (
            *(a.values, b.values, b.values - a.values, *ends, limits.standard_error),
            *(p, adjusted, a.seen, shares, limits.freedom),
        )
        rows: Any = zip(a.names, *(column.tolist() for column in columns), strict=True)
        for row in rows:
            known: Any = [math.nan if number != number else number for number in row]
            yield Difference(*known)

    def images_differing(self, i: int, j: int) -> int:
        """Images on which the counts of two models differ."""
        a, b = self.alone[i].sums, self.alone[j].sums
        if a.shape != b.shape:  # of different numbers of runs
            return int(a.shape[0])
        return int(np.count_nonzero(np.asarray((a != b).sum(1))))

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
    score: Statistic,
    limits: Limits,
    *,
    level: float = 0.95,
    target: float = 0.8,
    detect: float | None = None,
) -> Power:
    """Difference that a comparison can detect, and the units it takes to detect another.

    A true difference δ is detected if its interval excludes 0, which has the
    probability T_ν(δ / s − t) for the standard error s of the observed
    difference, ν degrees of freedom and Student's t at the level. s is
    proportional to 1/√units. The observed difference itself is not used:
    power at the observed difference only restates p (J. Hoenig and D. Heisey,
    Am. Stat. 55 (2001), 19-24).

    Parameters
    ----------
    score : Statistic
        The score of one of the models, for its units.
    limits : Limits
        Of the difference, from :func:`segiou.analysis.leave_one_out.jackknife`.
    level, target : float
        Level of the intervals, e.g. 0.95; target power, e.g. 0.8.
    detect : float, optional
        A true difference to ask about.

    Returns
    -------
    Power
    """
    units = len(score.units)
    error, freedom = float(limits.standard_error[0]), float(limits.freedom[0])
    if math.isnan(freedom):  # of a bootstrap
        freedom = units - 1.0
    found = Power(score.units.kind, units, level, target, _reach(error, freedom, level, target))
    if detect is None or not error > 0 or math.isnan(found.detectable):
        return found
    from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

    def reach(number: int) -> float:
        share = number / units
        return _reach(error / math.sqrt(share), max(freedom * share, 1.0), level, target)

    size = abs(detect)
    now = float(stdtr(freedom, size / error - student(freedom, (1 - level) / 2)))
    numbers = range(2, _MOST_UNITS)
    needed = bisect_left(numbers, True, key=lambda number: reach(number) <= size)
    return replace(
        found, difference=size, now=now, needed=numbers[needed] if needed < len(numbers) else None
    )


def _reach(error: float, freedom: float, level: float, target: float) -> float:
    """The true difference that is detected with the target power."""
    return float((student(freedom, (1 - level) / 2) + student(freedom, 1 - target)) * error)
