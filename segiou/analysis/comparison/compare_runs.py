"""Compare models on the same images: paired intervals, paired tests and ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, repeat
from operator import add
from typing import Any, NamedTuple

import numpy as np

from segiou._support import text
from segiou._support.arguments import check_integer, read_several
from segiou.analysis.comparison.case_ranks import ranks_of
from segiou.analysis.comparison.influential import Influence
from segiou.analysis.comparison.ranking import Contest, Ranking, adjusted_claims, contest_of, placed
from segiou.analysis.comparison.recipes import across_runs, crossed
from segiou.analysis.comparison.result import (
    Comparison,
    Difference,
    InfluentialImage,
    PairComparison,
)
from segiou.analysis.gap.imbalance import ImbalanceDifference, explain_difference
from segiou.counting.counts import Counts
from segiou.inference.bootstrapping import resampled
from segiou.inference.dependence import BlockLength, design_of
from segiou.inference.intervals import Method, check_method, limits_by, of_design
from segiou.inference.leave_one_out import Limits
from segiou.inference.paired_runs import (
    Common,
    SameImages,
    check_runs,
    names_of,
    same_images,
)
from segiou.inference.scored_runs import unit_of_pixels
from segiou.inference.significance import (
    Permuted,
    holm_adjust,
    least_p,
    least_p_of,
    permutation_test,
    power,
)
from segiou.inference.statistics import Aggregate, ScoredImages, Statistic, exchangeable
from segiou.inference.units import Groups, HasRunCounts, Metric, Units, difference
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats, ratio

#: The level of intervals whose ends are one-sided bounds at 95 %.
_BOUNDS = 0.9


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
    (:func:`segiou.inference.leave_one_out.jackknife`), a paired permutation p
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
        (:func:`segiou.analysis.comparison.recipes.crossed`).
    metric, aggregate
        See :func:`segiou.inference.statistics.statistic`; or a score of a measure,
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
        :func:`segiou.inference.intervals.confidence_intervals`; ``"auto"`` uses
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
    run_names = names_of(runs, names if recipes is None else None)
    same = same_images(runs, run_names, protocol)
    images = same.scored(metric)
    recipes = recipes or {name: slice(i, i + 1) for i, name in enumerate(run_names)}
    cases = [one.of_images(finite=True) for one in images]
    design = design_of(images[0].ids, len(cases[0]), lambda: cases, groups, blocks)

    common = Common.of(images, design.images, aggregate)
    images = images if common.keep is None else common.images

    by_recipe = [images[at] for at in recipes.values()]
    trained = _over(by_recipe, design.units, aggregate)
    is_same = design.units is design.images
    alone = trained if is_same else _over(by_recipe, design.images, aggregate)
    if not trained[0][0].is_smooth:
        method = "percentile"
    means = [across_runs(statistics) for statistics in trained]
    draws = method != "jackknife" or len(recipes) > 2
    models = map(
        _Model,
        recipes,
        _pooled([same.counts[at] for at in recipes.values()]),
        trained,
        means,
        map(across_runs, alone),
        (np.mean([one.of_images() for one in several], 0) for several in by_recipe),
        resampled(means, resamples, seed) if draws else repeat(None),
    )
    compared = _Compared([*models], same, level, method, detect, permutations, seed, influential)
    units = of_design(design, blocks, unit_of_pixels(runs[0]))
    comparison = compared.comparison(units, resamples if draws else None)
    return _with_uncommon(comparison, common, [*recipes.values()])


def _over(
    recipes: Sequence[Sequence[ScoredImages]], units: Units, aggregate: Aggregate | None
) -> list[list[Statistic]]:
    """Scores of the runs of each recipe over units; models exchange the cases of medians."""
    scores = [[one.over(units, aggregate) for one in runs] for runs in recipes]
    if scores[0][0].is_smooth or any(len(runs) > 1 for runs in scores):
        return scores
    return [[score] for score in exchangeable([score for (score,) in scores])]


def _with_uncommon(comparison: Comparison, common: Common, recipes: Sequence[slice]) -> Comparison:
    """The comparison with the classes that it leaves out, if any, and the scores with them."""
    if common.keep is None:
        return comparison
    values = [float(np.mean(common.protocol_scores[at])) for at in recipes]
    more: dict[str, Any] = {"uncommon_classes": common.uncommon, "protocol_scores": tuple(values)}
    if comparison.stability is not None:
        more["stability"] = replace(comparison.stability, **more)
    return replace(comparison, **more)


def _recipes(
    runs: Sequence[Any],
) -> tuple[dict[str, slice] | None, tuple[HasRunCounts, ...]]:
    """Runs in one sequence, and the place of those of each recipe if there are recipes."""
    places: dict[str, slice] | None = None
    several: list[Any] = []
    if len(runs) == 1 and isinstance(runs[0], Mapping):
        places = {}
        for name, trained in runs[0].items():
            start = len(several)
            several += read_several(f"runs of {name}", trained, "a sequence of runs")
            if len(several) == start:
                msg = f"recipe {name!r} has no runs"
                raise ValueError(msg)
            places[str(name)] = slice(start, len(several))
        runs = several
    if len(runs if places is None else places) < 2:
        msg = "compare expects at least two runs, or a mapping of two recipes to their runs"
        raise TypeError(msg)
    return places, check_runs("compare", runs)


def _pooled(models: Sequence[Sequence[Counts]]) -> list[Counts]:
    """Counts of all runs of each model together, as often as all models have the same truth."""
    number = math.lcm(*map(len, models))
    return [reduce(add, [*runs] * (number // len(runs))) for runs in models]


class _Model(NamedTuple):
    """A model and its scores."""

    name: str
    counts: Counts
    runs: list[Statistic]
    """Scores of each training run."""
    score: Statistic
    """Of its run, or the mean of several."""
    alone: Statistic
    """The score over single images."""
    cases: Floats
    """Score of each image."""
    drawn: Floats | None
    """Scores of the resamples, (B, 1 + C)."""


class _Adjusted(NamedTuple):
    """Adjustments of a pair of models over all pairs."""

    p: float
    """The adjusted p of the permutation test."""
    times: float
    """Factor of the p of its interval."""
    family: int
    """Most that p is multiplied by."""


class _Compared(NamedTuple):
    """Models on the same images, compared in pairs."""

    models: list[_Model]
    same: SameImages
    level: float
    method: Method
    detect: float | None
    permutations: int
    seed: int
    influential: int

    def comparison(self, units: dict[str, Any], resamples: int | None) -> Comparison:
        """All pairs and the ranking."""
        first, pairs = self.models[0].score, [*combinations(self.models, 2)]
        tests = [self.tested(a, b) for a, b in pairs]
        contest = self.contest([limits for limits, _ in tests])
        adjusted = self.adjusted(contest, np.array([permuted.p[0] for _, permuted in tests]))
        ranking = self.ranking(contest, units, resamples)
        is_random = resamples is not None or not all(permuted.exact for _, permuted in tests)
        return Comparison(
            metric=first.score.name,
            aggregate=first.aggregate,
            protocol=first.score.rule,
            names=ranking.names,
            images=ranking.images,
            level=self.level,
            method=self.method,
            resamples=resamples,
            seed=self.seed if is_random else None,
            ranking=ranking.models,
            pairs=tuple(
                self.pair(*pair, *test, both)
                for pair, test, both in zip(pairs, tests, adjusted, strict=True)
            ),
            better=first.score.better,
            score_unit=first.score.unit,
            run_scores=self.run_scores(),
            stability=ranking if len(self.models) > 2 else None,
            **units,
        )

    def run_scores(self) -> tuple[tuple[float, ...], ...]:
        """Scores of the training runs of each model; empty if every model has only one."""
        if all(len(model.runs) == 1 for model in self.models):
            return ()
        return tuple(tuple(float(run.values[0]) for run in m.runs) for m in self.models)

    def contest(self, compared: Sequence[Limits]) -> Contest:
        """The models by score, with their differences."""
        drawn = [model.drawn for model in self.models]
        limits = [
            limits_by(self.method, model.score, level=self.level, drawn=model.drawn)
            for model in self.models
        ]
        pairs = zip(combinations(range(len(self.models)), 2), compared, strict=True)
        # Two models have no stability to print.
        known = dict(pairs) if len(self.models) > 2 else {}
        return contest_of([model.score for model in self.models], limits, known, drawn)

    def adjusted(self, contest: Contest, p: Floats) -> Iterator[_Adjusted]:
        """Adjustments of the pairs for their number."""
        ranks = ranks_of(contest.values, contest.better)
        pairs = [*combinations(range(len(self.models)), 2)]
        is_alone = (ranks == 1).sum() == 1
        lead = np.array([is_alone and bool((ranks[[*pair]] == 1).any()) for pair in pairs])
        holm, together = holm_adjust(p), p[lead].max(initial=0)
        claims = adjusted_claims(contest.p, ranks)
        for (i, j), p_holm, is_lead in zip(pairs, holm.tolist(), lead.tolist(), strict=True):
            a, b = (i, j) if contest.p[i, j] < contest.p[j, i] else (j, i)
            times = float(ratio(claims[a, b], 2 * contest.p[a, b]))
            is_together = is_lead and together <= p_holm
            yield _Adjusted(
                float(together) if is_together else p_holm,
                times if times > 1 + 1e-9 else 1.0,
                1 if is_together else len(pairs),
            )

    def ranking(self, contest: Contest, units: dict[str, Any], resamples: int | None) -> Ranking:
        """Models by score, with the stability of their ranks."""
        first = self.models[0].score
        names = tuple(model.name for model in self.models)
        return Ranking(
            by=(first.score.name,),
            scheme="aggregate-then-rank",
            aggregate=first.aggregate if first.median_of is None else "median",
            value_name=first.names[0],
            names=names,
            images=len(self.models[0].cases),
            level=self.level,
            method=self.method,
            seed=None if resamples is None else self.seed,
            better=first.score.better,
            score_unit=first.score.unit,
            cases=tuple(tuple(model.cases.tolist()) for model in self.models),
            case_name=first.names[0],
            case_unit=first.score.unit,
            **placed(names, contest, level=self.level),
            **units,
        )

    def tested(self, a: _Model, b: _Model) -> tuple[Limits, Permuted]:
        """Intervals and p of the differences."""
        limits, p = self.limits(a, b, self.level)
        if p is not None:  # a permutation test would ignore that the training runs vary
            return limits, Permuted(p, 0, True)
        return limits, permutation_test(a.score, b.score, self.permutations, self.seed)

    @staticmethod
    def has_runs(a: _Model, b: _Model) -> bool:
        """Whether a model has several training runs, which have a t test."""
        return len(a.runs) > 1 or len(b.runs) > 1

    def limits(self, a: _Model, b: _Model, level: float) -> tuple[Limits, Floats | None]:
        """Intervals of the differences, and p of those of several training runs."""
        if self.has_runs(a, b):
            limits, p = crossed(a.runs, b.runs, level=level)
            few = a.score.units.too_few_to_compare
            return (limits.without_ends(), np.full(len(p), np.nan)) if few else (limits, p)
        drawn = None if a.drawn is None or b.drawn is None else b.drawn - a.drawn
        return limits_by(self.method, b.score, a.score, level=level, drawn=drawn), None

    def ends(self, a: _Model, b: _Model, limits: Limits, level: float) -> tuple[float, float]:
        """Limits of the difference of the score at another level."""
        if a.score.units.too_few_to_compare:
            return math.nan, math.nan
        left_out = limits.left_out
        other = self.limits(a, b, level)[0] if left_out is None else left_out.limits(level)
        return text.number_of(other.low[0]), text.number_of(other.high[0])

    def pair(
        self, a: _Model, b: _Model, limits: Limits, permuted: Permuted, over_pairs: _Adjusted
    ) -> PairComparison:
        """Compare two models, given the adjustments over the pairs."""
        score, names = a.score, (a.name, b.name)
        overall, *classes = self.differences(a, b, limits, permuted, over_pairs)
        sides = [*self.influential_images(a, b)]  # those that raise it first
        favours_b, favours_a = sides if score.score.better == "higher" else sides[::-1]
        undefined = np.isnan([score.values[1:], b.score.values[1:]])
        for_one = undefined[0] != undefined[1]
        return PairComparison(
            *names,
            overall=overall,
            classes=tuple(classes),
            permutations=permuted.permutations,
            exact=permuted.exact,
            favours_a=favours_a,
            favours_b=favours_b,
            power=power(score, limits, level=self.level, detect=self.detect),
            defined_for_one=tuple(score.names[1 + c] for c in np.flatnonzero(for_one).tolist()),
            imbalance=self.explained(a, b),
            images_differing=_images_differing(a.alone, b.alone),
            bounds=self.ends(a, b, limits, _BOUNDS),
        )

    def explained(self, a: _Model, b: _Model) -> ImbalanceDifference:
        """Why pixel accuracy and mean IoU differ."""
        explained = explain_difference(
            a.counts,
            b.counts,
            self.same.class_names,
            names=(a.name, b.name),
            include=self.same.include,
            protocol=self.same.protocol,
        )
        return replace(explained, _pixel=text.nouns(unit_of_pixels(self.same.runs[0]))[0])

    def differences(
        self, a: _Model, b: _Model, limits: Limits, permuted: Permuted, over_pairs: _Adjusted
    ) -> list[Difference]:
        """The difference of the score, then those of the classes."""
        score = a.score
        adjusted = np.concatenate([[over_pairs.p], holm_adjust(permuted.p[1:])])
        rows = text.records(
            name=score.names,
            a=score.values,
            b=b.score.values,
            delta=difference(score.values, b.score.values),
            low=limits.low,
            high=limits.high,
            standard_error=limits.standard_error,
            p=permuted.p,
            p_holm=adjusted,
            units=score.seen,
            undefined_share=limits.undefined_share,
            freedom=limits.freedom,
        )
        overall, *classes = (Difference(**row) for row in rows)
        if over_pairs.times > 1:
            low, high = self.ends(a, b, limits, 1 - (1 - self.level) / over_pairs.times)
            overall = replace(overall, low=low, high=high)
        family = over_pairs.family
        least = max(least_p(len(score.units)), least_p_of(permuted.permutations, permuted.exact))
        is_testable = self.has_runs(a, b) or family * least < 1 - self.level
        return [replace(overall, testable=is_testable, _family=family), *classes]

    def influential_images(self, a: _Model, b: _Model) -> Iterator[tuple[InfluentialImage, ...]]:
        """The most influential images: those that raise the difference, those that lower it."""
        first, second, units = a.alone, b.alone, a.alone.units
        both = second.values - first.values, second.left_out - first.left_out
        influence = Influence(first.score.name, units.kind, units.names, first.names, *both)
        rows = text.records(id=units.names, effect=influence.effect[:, 0], a=a.cases, b=b.cases)
        images = [InfluentialImage(**row) for row in rows]
        for side in influence.strongest(self.influential):
            yield tuple(images[i] for i in side)


def _images_differing(first: Statistic, second: Statistic) -> int:
    """Images on which the counts of two models differ, or the values of which medians are made."""
    a, b = first.sums, second.sums
    if first.median_of is not None and second.median_of is not None:
        a, b = np.nan_to_num(first.median_of, nan=-1), np.nan_to_num(second.median_of, nan=-1)
    if a.shape != b.shape:  # of different numbers of runs
        return int(a.shape[0])
    return int(np.count_nonzero(np.asarray((a != b).sum(1))))
