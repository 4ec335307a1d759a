"""Compare models on the same images: paired intervals, paired tests and ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations, compress, repeat
from operator import add
from typing import Any, NamedTuple

import numpy as np

from segiou._support import text
from segiou._support.arguments import check_integer, names_options, read_several
from segiou.analysis.comparison.case_ranks import ranks_of
from segiou.analysis.comparison.influential import Influence
from segiou.analysis.comparison.ranking import (
    Contest,
    Duel,
    Ranking,
    adjusted_pairs,
    contest_of,
    placed,
)
from segiou.analysis.comparison.recipes import Crossed, mean_of_runs
from segiou.analysis.comparison.result import (
    Comparison,
    Difference,
    InfluentialImage,
    PairComparison,
)
from segiou.analysis.gap.imbalance_difference import explain_runs
from segiou.counting.counts import Counts
from segiou.inference.count_scores import Aggregate
from segiou.inference.dependence import BlockLength, Design
from segiou.inference.intervals import unit_attributes
from segiou.inference.limits import Limits, rows_of_limits
from segiou.inference.paired import Paired, Resampled
from segiou.inference.paired_runs import Common, SameImages, check_runs, names_of, same_images
from segiou.inference.resampling import PairedMethod, PairedResampling
from segiou.inference.scored_runs import clusters_of
from segiou.inference.significance import check_difference, holm_adjust, power
from segiou.inference.statistics import ScoredImages, Statistic, exchangeable
from segiou.inference.units import Groups, HasRunCounts, Metric, Units, difference, row_parts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

#: The level of intervals whose ends are one-sided bounds at 95 %.
_BOUNDS = 0.9


@np.errstate(invalid="ignore")  # differences of infinite distances are undefined
@names_options
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
    method: PairedMethod = "permutation",
    detect: float | None = None,
    names: Sequence[str] | None = None,
    influential: int = 5,
) -> Comparison:
    """Compare two or more models on the same images.

    Each pair gets the difference (second minus first) of the score and of every
    class with the p of a paired permutation test (:func:`permutation_test`), an
    interval from the same permutations that excludes 0 if and only if p < 1 − level
    (:class:`segiou.inference.paired.Change`), Holm's adjustment over the classes
    (:func:`holm_adjust`), the most influential images, and the difference that
    these images can detect (:func:`power`). More than two models are also
    ranked.

    Parameters
    ----------
    *runs : Run, or mapping of str to sequence of Run
        Two or more runs on the same images, in any order. Or one mapping from
        the name of a training recipe to the runs of several trainings, whose
        mean is compared; the interval then covers retraining
        (:class:`segiou.analysis.comparison.recipes.Crossed`).
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
        Number of resamples of a bootstrap or a ranking; maximum number of
        permutations; seed of the random numbers. At most 1 000 000 resamples or permutations.
    level : float
        Level of the intervals; 1 − level is the significance level of p.
    method : {"permutation", "percentile", "bca"}
        Intervals from the permutations, or a bootstrap: percentiles of the resamples, or
        corrected for bias and skew (BCa), which may contradict p; p is the same and decides.
        Medians always have a bootstrap. ``"jackknife"``, the default of scores, means
        ``"permutation"``.
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
    >>> round(pair.overall.delta, 4), round(pair.overall.p, 4), pair.exact
    (0.5048, 0.0169, True)
    """
    recipes, runs = _recipes(runs)
    check_integer("influential", influential, 0)
    check_difference(detect)
    how = PairedResampling.of(locals())
    if how.method == "jackknife":  # the default of scores means that of differences
        how = replace(how, method="permutation")
    run_names = names_of(runs, names if recipes is None else None)
    same = same_images(runs, run_names, protocol)
    images = same.scored(metric)
    recipes = recipes or {name: slice(i, i + 1) for i, name in enumerate(run_names)}
    cases = [scored.of_images(finite=True) for scored in images]
    design = how.design(images[0].ids, len(cases[0]), lambda: cases)
    common = Common.of(images, design.images, aggregate)
    if not common.scores[0].is_smooth:
        how = replace(how, method="percentile")
    compared = _Compared(
        excluded=_excluded(common),
        names=[*recipes],
        counts=_pooled([same.counts[at] for at in recipes.values()]),
        images=[common.images[at] for at in recipes.values()],
        cases=[cases[at] for at in recipes.values()],
        aggregate=aggregate,
        how=how,
        whole=design,
        same=same,
        detect=detect,
        influential=influential,
        uncommon={
            "uncommon_classes": common.uncommon,
            "protocol_scores": tuple(
                float(np.mean(common.protocol_scores[at]))
                for at in recipes.values()
                if common.uncommon
            ),
        },
    )
    return compared.comparison()


def _excluded(common: Common) -> dict[str, str]:
    """Classes that the means of all models skip, with the reasons."""
    score = common.scores[0].score
    if not score.is_mean or score.include is None:
        return {}
    reasons = dict.fromkeys(compress(score.names, ~score.include), "excluded")
    weights = score.weights
    if weights is not None:
        covered = np.any([weights(each.whole) > 0 for each in common.scores], 0)
        absent = (name for name, has in zip(score.names, covered, strict=True) if not has)
        reasons = dict.fromkeys(absent, "absent") | reasons
    return {name: why for name, why in reasons.items() if name not in common.uncommon}


def _statistics(
    recipes: Sequence[Sequence[ScoredImages]], units: Units, aggregate: Aggregate | None
) -> list[list[Statistic]]:
    """Scores of the runs of each recipe over units; models exchange the cases of medians."""
    scores = [[scored.over(units, aggregate) for scored in runs] for runs in recipes]
    if scores[0][0].is_smooth or any(len(runs) > 1 for runs in scores):
        return scores
    return [[score] for score in exchangeable([score for (score,) in scores])]


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
    """Counts of all runs of each model, repeated so that all models have the same truth."""
    number = math.lcm(*map(len, models))
    return [reduce(add, [*runs] * (number // len(runs))) for runs in models]


class _Model(NamedTuple):
    """A model and its scores."""

    name: str
    counts: Counts
    runs: list[Statistic]
    """Scores of each training run."""
    score: Statistic
    """The statistic of its run, or the mean of several."""
    alone: Statistic
    """The score over single images."""
    cases: Floats
    """Score of each image."""
    drawn: Floats | None
    """Scores of the resamples, (B, 1 + C)."""


class _Pair(NamedTuple):
    """Two models over their units; over too few, their differences have no limits."""

    design: Design
    a: _Model
    b: _Model
    differences: Paired | Resampled | Crossed
    level: float

    def limits(self, level: float) -> Limits:
        """Intervals of the score and of every class."""
        limits = self.differences.limits(level)
        return limits.undefined_limits() if self.design.units.too_few_to_compare else limits

    def spread(self, units: int) -> tuple[float, float]:
        """Error and degrees of freedom of the score by the number of units."""
        if self.design.units.too_few_to_compare:
            return math.nan, math.nan
        return self.differences.spread(units, self.level)

    @property
    def permutations(self) -> int:
        """Number of permutations; 0 with training runs, whose variation they would ignore."""
        return self.differences.permuted.permutations if self.differences.permuted else 0

    @property
    def is_exact(self) -> bool:
        """Whether nothing is random."""
        return self.differences.permuted is None or self.differences.permuted.exact

    @property
    def duel(self) -> Duel:
        """The difference of the score."""
        delta = float(difference(self.a.score.values[0], self.b.score.values[0]))
        return Duel(delta, float(self.differences.p[0]), *self.spread(len(self.design.units)))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Compared:
    """Models on the same images, compared in pairs."""

    names: list[str]
    counts: list[Counts]
    images: list[list[ScoredImages]]
    """One entry per training run, for each model."""
    cases: list[list[Floats]]
    """The score of each image."""
    aggregate: Aggregate | None
    how: PairedResampling
    whole: Design
    same: SameImages
    detect: float | None
    influential: int
    excluded: dict[str, str]
    """Classes that the means of all models skip, with the reasons."""
    uncommon: dict[str, Any]
    """Attributes of classes that the means exclude."""

    @property
    def is_drawn(self) -> bool:
        """Whether there are resamples: for intervals of a bootstrap, or for ranks."""
        return self.how.method != "permutation" or len(self.names) > 2

    def over(self, design: Design, places: Sequence[int]) -> list[_Model]:
        """Some models over units."""
        images = [self.images[place] for place in places]
        trained = _statistics(images, design.units, self.aggregate)
        is_same = design.units is design.images
        alone = trained if is_same else _statistics(images, design.images, self.aggregate)
        means = [*map(mean_of_runs, trained)]
        drawn = self.how.drawn(means) if self.is_drawn else repeat(None)
        return [
            _Model(
                name=self.names[place],
                counts=self.counts[place],
                runs=runs,
                score=mean,
                alone=mean_of_runs(single),
                cases=np.mean([scored.of_images() for scored in self.images[place]], 0),
                drawn=values,
            )
            for place, runs, mean, single, values in zip(
                places, trained, means, alone, drawn, strict=False
            )
        ]

    @cached_property
    def models(self) -> list[_Model]:
        """The models over the same units."""
        return self.over(self.whole, range(len(self.names)))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], _Pair]:
        """The pairs of models by their places, over units that depend on no other model."""
        return {at: self.paired(*at) for at in combinations(range(len(self.names)), 2)}

    def paired(self, i: int, j: int) -> _Pair:
        """Two models with intervals and p of their differences."""
        how, design, (a, b) = self.how, self.whole, (self.models[i], self.models[j])
        if len(self.names) > 2:
            cases, ids = [*self.cases[i], *self.cases[j]], self.images[0][0].ids
            design = how.design(ids, len(cases[0]), lambda: cases)
        units, whole = design.units, self.whole.units
        if units.kind != whole.kind or not np.array_equal(units.index, whole.index):
            a, b = self.over(design, (i, j))
        test = how.permutations, how.seed
        differences: Paired | Resampled | Crossed
        if len(a.runs) > 1 or len(b.runs) > 1:
            differences = Crossed.of(a.runs, b.runs)
        elif how.method == "permutation":
            differences = Paired.of(a.score, b.score, *test)
        else:
            assert a.drawn is not None and b.drawn is not None
            drawn = b.drawn - a.drawn
            differences = Resampled.of(a.score, b.score, drawn, how.method, *test)
        return _Pair(design, a, b, differences, how.level)

    def comparison(self) -> Comparison:
        """All pairs and the ranking."""
        first, several = self.models[0].score, len(self.names) > 2
        duels = {at: pair.duel for at, pair in self.pairs.items()}
        # Two models have no stability to print.
        contest = self.contest(duels if several else {})
        adjusted = self.adjusted(contest, duels)
        ranking = self.ranking(contest)
        is_random = self.is_drawn or not all(pair.is_exact for pair in self.pairs.values())
        pairs = zip(self.pairs.values(), adjusted, strict=True)
        return Comparison(
            metric=first.score.name,
            aggregate=first.aggregate,
            protocol=first.score.rule,
            names=ranking.names,
            images=ranking.images,
            level=self.how.level,
            method=self.how.method,
            resamples=self.how.resamples if self.is_drawn else None,
            seed=self.how.seed if is_random else None,
            ranking=ranking.models,
            pairs=tuple(self.compared(*pair_and_p) for pair_and_p in pairs),
            better=first.score.better,
            score_unit=first.score.unit,
            overall=first.score.overall,
            run_scores=self.run_scores(),
            stability=ranking if several else None,
            excluded_classes=self.excluded,
            is_matched=any(clusters_of(getattr(r, "provenance", {})) for r in self.same.runs),
            **self.uncommon,
            **self.units(self.whole),
        )

    def units(self, design: Design) -> dict[str, Any]:
        """Attributes that follow from units."""
        return unit_attributes(design, self.how.blocks, self.same.runs[0])

    def run_scores(self) -> tuple[tuple[float, ...], ...]:
        """Scores of the training runs of each model; empty if every model has only one."""
        if all(len(model.runs) == 1 for model in self.models):
            return ()
        return tuple(tuple(float(run.values[0]) for run in m.runs) for m in self.models)

    def contest(self, duels: Mapping[tuple[int, int], Duel]) -> Contest:
        """The models by score, with their differences."""
        scores, drawn = [m.score for m in self.models], [m.drawn for m in self.models]
        return contest_of(scores, duels, drawn, self.how)

    @staticmethod
    def adjusted(contest: Contest, duels: Mapping[tuple[int, int], Duel]) -> list[float]:
        """Adjusted p of the score of each pair."""
        ranks = ranks_of(contest.values, contest.better)
        p = np.full((len(ranks), len(ranks)), np.nan)
        for (i, j), duel in duels.items():
            p[i, j] = p[j, i] = duel.p
        adjusted = adjusted_pairs(p, ranks)
        return [float(adjusted[at]) for at in duels]

    def ranking(self, contest: Contest) -> Ranking:
        """Models by score, with the stability of their ranks."""
        first, names = self.models[0].score, tuple(self.names)
        return Ranking(
            by=(first.score.name,),
            scheme="aggregate-then-rank",
            aggregate=first.aggregate if first.median_of is None else "median",
            value_name=first.names[0],
            names=names,
            images=len(self.whole.images),
            level=self.how.level,
            method="jackknife" if self.how.method == "permutation" else self.how.method,
            seed=self.how.seed if self.is_drawn else None,
            better=first.score.better,
            score_unit=first.score.unit,
            cases=tuple(tuple(model.cases.tolist()) for model in self.models),
            case_name=first.names[0],
            case_unit=first.score.unit,
            **placed(names, contest, level=self.how.level),
            **self.uncommon,
            **self.units(self.whole),
        )

    def compared(self, pair: _Pair, p_adjusted: float) -> PairComparison:
        """The comparison of two models, given p adjusted over the pairs."""
        a, b, score = pair.a, pair.b, pair.a.score
        overall, *classes = self.differences(pair, p_adjusted)
        sides = [*self.influential_images(a, b)]  # those that raise it first
        favours_b, favours_a = sides if score.score.better == "higher" else sides[::-1]
        undefined = np.isnan([score.values[1:], b.score.values[1:]])
        for_one = undefined[0] != undefined[1]
        return PairComparison(
            a.name,
            b.name,
            overall=overall,
            classes=tuple(classes),
            permutations=pair.permutations,
            exact=pair.is_exact,
            _is_students=pair.differences.is_students,
            favours_a=favours_a,
            favours_b=favours_b,
            power=power(score.units, pair.spread, level=self.how.level, detect=self.detect),
            defined_for_one=tuple(score.names[1 + c] for c in np.flatnonzero(for_one).tolist()),
            imbalance=explain_runs(self.same, [a.counts, b.counts], (a.name, b.name)),
            images_differing=_images_differing(a.alone, b.alone),
            bounds=pair.limits(_BOUNDS).ends,
            over=self.units(pair.design),
        )

    def differences(self, pair: _Pair, p_adjusted: float) -> list[Difference]:
        """The difference of the score, then those of the classes."""
        a, b, p = pair.a.score, pair.b.score, pair.differences.p
        rows = rows_of_limits(
            pair.limits(self.how.level),
            name=a.names,
            a=a.values,
            b=b.values,
            delta=difference(a.values, b.values),
            p=p,
            p_holm=np.concatenate([[p_adjusted], holm_adjust(p[1:])]),
            units=a.seen,
        )
        overall, *classes = (Difference(**row) for row in rows)
        if p_adjusted > overall.p:  # so that the interval excludes 0 if this p is below 1 − level
            level = 1 - (1 - self.how.level) * overall.p / p_adjusted
            low, high = pair.limits(level).ends
            overall = replace(overall, low=low, high=high)
        return [overall, *classes]

    def influential_images(self, a: _Model, b: _Model) -> Iterator[tuple[InfluentialImage, ...]]:
        """The most influential images: those that raise the difference, those that lower it."""
        first, second, units = a.alone, b.alone, a.alone.units
        both = second.values - first.values, second.left_out - first.left_out
        influence = Influence(first.score.name, units.kind, units.names, first.names, *both)
        effect = influence.effect[:, 0]
        for side in influence.strongest(self.influential):
            names = [units.names[i] for i in side]
            rows = text.records(id=names, effect=effect[side], a=a.cases[side], b=b.cases[side])
            yield tuple(InfluentialImage(**row) for row in rows)


def _images_differing(first: Statistic, second: Statistic) -> int:
    """Images on which the counts of two models differ, or the values of which medians are made."""
    a, b = first.sums, second.sums
    if first.median_of is not None and second.median_of is not None:
        a, b = np.nan_to_num(first.median_of, nan=-1), np.nan_to_num(second.median_of, nan=-1)
    if a.shape != b.shape:  # of different numbers of runs
        return int(a.shape[0])
    both = zip(row_parts(a), row_parts(b), strict=True)
    return sum(int((first != second).any(1).sum()) for first, second in both)
