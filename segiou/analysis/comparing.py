"""Compare models on the same images: paired intervals, paired tests and ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou.analysis.bootstrapping import bootstrap_limits, resampled
from segiou.analysis.comparison import (
    Comparison,
    Difference,
    InfluentialImage,
    PairComparison,
)
from segiou.analysis.dependence import BlockLength, design_of
from segiou.analysis.imbalance import explain_difference
from segiou.analysis.intervals import Method, check_method, of_design, plain_rows
from segiou.analysis.leave_one_out import Influence, Limits, jackknife
from segiou.analysis.paired_runs import check_runs, names_of, same_images, scored_runs
from segiou.analysis.ranking import Contest, Ranking, one_sided, placed
from segiou.analysis.recipes import across_runs, crossed
from segiou.analysis.significance import Permuted, holm_adjust, permutation_test, power
from segiou.analysis.statistics import Aggregate, ScoredImages, Statistic
from segiou.analysis.units import Groups, HasRunCounts, Metric
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats


@np.errstate(invalid="ignore")  # differences of infinite distances are undefined
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
    each = names_of(runs, names if recipes is None else None)
    pixels = same_images(runs, each, protocol, metric)
    images = scored_runs(runs, each, pixels)
    models = recipes or {name: slice(i, i + 1) for i, name in enumerate(each)}
    cases = [one.of_images() for one in images]
    design = design_of(images[0].ids, len(cases[0]), lambda: cases, groups, blocks)
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
        cases=[np.mean(cases[own], 0) for own in models.values()],
        include=images[0].include,
        level=level,
        # Medians are not smooth.
        method="percentile" if trained[0][0].median_of is not None else method,
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
    return found, check_runs("compare", runs)


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
    cases: list[Floats]
    """Scores of each image, of each model."""
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
        ranking = self.ranking([limits for limits, _ in compared], units)
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
            ranking=ranking.models,
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
            stability=ranking if len(self.names) > 2 else None,
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

    def ranking(self, compared: Sequence[Limits], units: dict[str, Any]) -> Ranking:
        """Models by score, with the stability of their ranks."""
        first = self.scores[0]
        ends = [self.own_limits(place) for place in range(len(self.names))]
        values = np.array([own.values[0] for own in self.scores])
        limits = np.array([(own.low[0], own.high[0]) for own in ends])
        pairs = dict(zip(combinations(range(len(self.names)), 2), compared, strict=True))
        # Two models have no ranking to print, and SciPy takes a while to load.
        nothing = np.full((len(self.names), len(self.names)), np.nan)
        p, drawn = one_sided(pairs, first) if len(self.names) > 2 else nothing, None
        if first.units.too_few:
            limits, p = np.full_like(limits, np.nan), np.full_like(p, np.nan)
        elif first.median_of is not None:
            p = np.full_like(p, np.nan)
        elif self.draws:
            drawn = np.stack([one[:, 0] for one in self.resampled], axis=1)
        contest = Contest(values, first.better, limits, p, drawn)
        return Ranking(
            by=(first.metric,),
            scheme="aggregate-then-rank",
            aggregate=first.aggregate if first.median_of is None else "median",
            value_name=first.names[0],
            names=self.names,
            images=len(self.pixels[0].ids or ()),
            level=self.level,
            method=self.method,
            seed=self.seed if self.draws else None,
            better=first.better,
            score_unit=first.score_unit,
            cases=tuple(tuple(own.tolist()) for own in self.cases),
            case_name=first.names[0],
            case_unit=first.score_unit,
            **placed(self.names, contest, level=self.level),
            **units,
        )

    def own_limits(self, i: int) -> Limits:
        """Intervals of a model's own scores."""
        score = self.scores[i]
        if self.method == "jackknife":
            return jackknife(score, level=self.level)
        return bootstrap_limits(self.resampled[i], score, level=self.level, method=self.method)

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
        values = self.resampled[j] - self.resampled[i]
        return bootstrap_limits(values, b, a, level=self.level, method=self.method), None

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
        values = a.values, b.values, b.values - a.values
        rest = limits.standard_error, p, adjusted, a.seen, shares, limits.freedom
        for row in plain_rows(a.names, *values, *ends, *rest):
            yield Difference(*row)

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
