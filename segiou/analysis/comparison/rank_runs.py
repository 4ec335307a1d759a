"""Rank runs by any score, by three schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, repeat
from typing import Any, NamedTuple

import numpy as np

from segiou._support.arguments import check_choice, check_integer, names_options, read_several
from segiou._support.options import option
from segiou.analysis.comparison.case_ranks import (
    CaseRanking,
    Missing,
    Scheme,
    Ties,
    beaten,
    medians,
    ranks_of,
    signed_rank_tests,
)
from segiou.analysis.comparison.ranking import MEDIANS, Contest, Duel, Ranking, contest_of, placed
from segiou.inference.bootstrapping import resampled, times_drawn
from segiou.inference.count_scores import Aggregate, addends, means_of
from segiou.inference.dependence import BlockLength
from segiou.inference.intervals import unit_attributes
from segiou.inference.paired import Paired
from segiou.inference.paired_runs import Common, check_runs, common_scores, names_of, same_images
from segiou.inference.resampling import MOST_RESAMPLES, Resampling
from segiou.inference.statistics import ScoredImages, Statistic
from segiou.inference.units import Groups, HasRunCounts, ImageParts, Metric, Units, difference
from segiou.measures.score import OVERALL, Score
from segiou.metrics.overall import mean
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

_AGGREGATES = ("D", "I", "C", "median")


@dataclass(frozen=True, kw_only=True)
class _Options(Resampling, CaseRanking):
    """Options of :func:`rank`, which documents them."""

    draws: int = option(1000, check_integer, 0, MOST_RESAMPLES)
    aggregate: Any = None


@names_options
def rank(
    runs: Sequence[HasRunCounts] | Mapping[str, HasRunCounts],
    *,
    by: Metric | Sequence[Metric] = "mean_iou",
    scheme: Scheme = "aggregate-then-rank",
    aggregate: str | None = None,
    missing: Missing | None = None,
    ties: Ties = "min",
    alpha: float = 0.05,
    protocol: Protocol | str | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Ranking:
    """Rank models, and estimate how stable the ranking is.

    Parameters
    ----------
    runs : sequence of Run, or mapping of str to Run
        Two or more runs on the same images.
    by : str, callable or sequence of them
        A score as for :func:`compare`, or of a class or structure, such as
        ``"dice:liver"``. By several scores, models are ranked by the mean of
        their ranks by each.
    scheme : str
        ``"aggregate-then-rank"`` ranks the scores of the data set.
        ``"rank-then-aggregate"`` ranks the models on each image, then the means
        of these ranks. ``"test-then-rank"`` counts the other models that a model
        is significantly better than on the images
        (:func:`segiou.analysis.rank_cases`).
    aggregate : {"D", "I", "C", "median"}, optional
        How images are aggregated: as for :func:`compare`, or ``"I"`` (means)
        and ``"median"`` of their scores or ranks.
    missing : "error", "drop" or float, optional
        What to do with images that lack a score of some model: raise an
        error (the default), skip them for this model, or replace them by
        a score. In ``"rank-then-aggregate"`` they rank last. Runs may lack
        images if this is set, or ranks are aggregated. An infinite distance, of
        a missed structure, is a score, but a replacement also replaces it.
    ties : {"min", "max", "average"}
        Rank of equal values: the best, the worst, or the mean of their places.
    alpha : float
        Significance level of ``"test-then-rank"``.
    protocol, groups, blocks, names
        See :func:`compare`.
    draws : int
        Number of resamples of images (or groups), at most 1 000 000; 0 for none.
    seed : int
        Seed of the random numbers.
    level : float
        Level of intervals and of the confidence sets of ranks.

    Returns
    -------
    Ranking

    Raises
    ------
    TypeError, ValueError
        If the runs cannot be ranked, a score is missing, or the stability of a
        ranking by medians is requested.

    References
    ----------
    Schemes: M. Wiesenfarth et al., Sci. Rep. 11, 2369 (2021). Confidence sets,
    here with Holm's adjustment of permutation tests of all pairs:
    M. Mogstad et al., Rev. Econ. Stud. 91 (2024), 476-518. Probability of a
    false claim: E. Christodoulou et al., arXiv 2505.04720 (2025).

    Examples
    --------
    >>> from segiou import score
    >>> truths = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]
    >>> worse = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    >>> truths, worse = ([[image] for image in images] for images in (truths, worse))
    >>> runs = {"old": score(truths, worse, labels=2), "new": score(truths, truths, labels=2)}
    >>> found = rank(runs, scheme="rank-then-aggregate")
    >>> [(model.name, model.value, model.rank) for model in found.models]
    [('new', 1.0, 1.0), ('old', 2.0, 2.0)]
    """
    how = _Options.of(locals())
    aggregate = _checked_aggregate(scheme, aggregate, draws)
    how = replace(how, aggregate=aggregate)
    run_names, several = _named_runs(runs, names)
    scores = _metrics(by)
    in_cases = _ranks_cases(scheme, aggregate, missing)
    some = in_cases and (scheme == "rank-then-aggregate" or missing not in (None, "error"))
    same = same_images(several, run_names, protocol, partial=some)
    scored = [_Scored.of(key, same.scored(key)) for key in scores]
    first, cases = scored[0], scored[0].image_scores(finite=True)
    design = how.design(first.ids, len(first.ids), lambda: [*cases])
    setup = _Setup(how, design.units, first.ids, cases)
    pairs = [setup.contest(score, in_cases=in_cases) for score in scored]
    contests, commons = zip(*pairs, strict=True)
    ranks = [ranks_of(contest.values, contest.better, ties) for contest in contests]
    is_combined = len(scored) > 1
    contest = _combined(contests, ranks, ties) if is_combined else contests[0]
    name, unit = _value_name(scheme, aggregate, scored)
    return Ranking(
        by=tuple(score.name for score in scored),
        scheme=scheme,
        aggregate=aggregate or "",
        value_name=name,
        names=run_names,
        images=len(design.images),
        level=level,
        method="jackknife",
        seed=seed if draws else None,
        better=contest.better,
        score_unit=unit,
        score_ranks=tuple(tuple(of_score.tolist()) for of_score in ranks if is_combined),
        cases=tuple(map(tuple, first.restricted[0].cases.tolist())),
        case_name=first.score.overall_title,
        case_unit=first.score.unit,
        uncommon_classes=tuple(dict.fromkeys(chain(*(one.uncommon for one in commons)))),
        protocol_scores=() if is_combined else commons[0].protocol_scores,
        **placed(run_names, contest, ties, level),
        **unit_attributes(design, blocks, several[0]),
    )


def _named_runs(
    runs: Sequence[HasRunCounts] | Mapping[str, HasRunCounts], names: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[HasRunCounts, ...]]:
    """Names of at least two runs, and the runs."""
    if isinstance(runs, Mapping):
        names, runs = [*runs] if names is None else names, [*runs.values()]
    several = check_runs("rank", read_several("runs", runs, "a sequence of runs"))
    if len(several) < 2:
        msg = f"rank expects at least two runs, got {len(several)}"
        raise ValueError(msg)
    return names_of(several, names), several


def _metrics(by: Metric | Sequence[Metric]) -> list[Metric]:
    """The scores to rank by, at least one."""
    scores = [by] if isinstance(by, str) or callable(by) else read_several("by", by, "scores")
    if not scores:
        msg = "by must name at least one score"
        raise ValueError(msg)
    return scores


def _value_name(scheme: str, aggregate: str | None, scored: Sequence[_Scored]) -> tuple[str, str]:
    """Name and unit of the values that rank the models."""
    if scheme == "rank-then-aggregate" or len(scored) > 1:
        return ("median rank" if aggregate == "median" else "mean rank"), "ranks"
    if scheme == "test-then-rank":
        return "models beaten", ""
    return scored[0].score.overall_title, scored[0].score.unit


def _checked_aggregate(scheme: str, aggregate: str | None, draws: int) -> str | None:
    """Aggregation of images; ValueError if the scheme does not support it."""
    if aggregate is None:
        return "I" if scheme == "rank-then-aggregate" else None
    fits = {"rank-then-aggregate": ("I", "median"), "test-then-rank": ()}
    check_choice("aggregate", aggregate, _AGGREGATES)
    if aggregate not in fits.get(scheme, _AGGREGATES):
        msg = f"aggregate={aggregate!r} does not apply to {scheme}; omit it"
        raise ValueError(msg)
    if aggregate == "median" and draws:
        raise _no_bootstrap()
    return aggregate


def _ranks_cases(scheme: str, aggregate: str | None, missing: Missing | None) -> bool:
    """Whether models are ranked by scores of images; ``missing`` applies only to those."""
    in_cases = scheme != "aggregate-then-rank" or aggregate in ("I", "median")
    if missing is not None and not in_cases:
        msg = "missing= applies to scores of images; pass aggregate='I', or omit missing="
        raise ValueError(msg)
    return in_cases


def _no_bootstrap() -> ValueError:
    return ValueError(
        f"the bootstrap cannot show the stability of this ranking: {MEDIANS}. Pass draws=0 to rank "
        "without it, or aggregate='I' to rank by means"
    )


@dataclass(frozen=True, eq=False)
class _Scored:
    """A score of all models: of each image, and of the data set."""

    name: str
    ids: tuple[str, ...]
    images: list[ScoredImages]
    """One entry per run."""

    @classmethod
    def of(cls, by: Metric, images: list[ScoredImages]) -> _Scored:
        """The score of models; ValueError if no image has one."""
        ids = tuple(dict.fromkeys(id for scored in images for id in scored.ids or ()))
        scored = cls(by if isinstance(by, str) else images[0].score.name, ids, images)
        if np.isnan(scored.cases).all():
            msg = f"no image has a score {by!r}, so nothing can be ranked"
            raise ValueError(msg)
        return scored

    @property
    def score(self) -> Score:
        """Of the data set."""
        return self.images[0].score

    @cached_property
    def restricted(self) -> tuple[_Scored, Common]:
        """The score of images over the classes that every run scores in some image."""
        defined = [~np.isnan(scored.row_scores()[:, 1:]).all(0) for scored in self.images]
        images, uncommon = common_scores(self.images, self.score, defined)
        if not uncommon:
            return self, Common(images, [])
        scores = tuple(mean(self.cases).tolist())
        return replace(self, images=images), Common(images, [], uncommon, scores)

    @cached_property
    def cases(self) -> Floats:
        """(M, N); NaN where an image or its score is missing."""
        return self.image_scores()

    def image_scores(self, *, finite: bool = False) -> Floats:
        """The score of each image by each run, (M, N)."""
        place = {id: i for i, id in enumerate(self.ids)}
        table = np.full((len(self.images), len(place)), np.nan)
        for row, scored in zip(table, self.images, strict=True):
            row[[place[id] for id in scored.ids or ()]] = scored.of_images(finite=finite)
        return table


class _Setup(NamedTuple):
    """Options of a ranking, its units, and the score of each image for the units of pairs."""

    how: _Options
    units: Units
    ids: tuple[str, ...]
    cases: Floats

    def contest(self, scored: _Scored, *, in_cases: bool) -> tuple[Contest, Common]:
        """Values of the models by one score, and the classes that they exclude."""
        if in_cases:
            scored, common = scored.restricted
            return self.case_contest(scored), common
        common = Common.of(scored.images, self.units, self.how.aggregate)
        return self.image_contest(common.images, self.how.aggregate), common

    def case_contest(self, scored: _Scored) -> Contest:
        """Values of the models from the score of each image."""
        how, better = self.how, scored.score.better
        # Images without a score of any model, such as those without the class, are not cases.
        kept = ~np.isnan(scored.cases).all(0)
        cases, known = np.full(scored.cases.shape, np.nan), scored.cases[:, kept]
        cases[:, kept] = how.prepared(known, better)
        score = _RANKS if how.scheme == "rank-then-aggregate" else scored.score
        if how.aggregate == "median":
            return _unknown(medians(cases), score.better)
        means = [_case_mean(row, score) for row in cases]
        if how.scheme == "test-then-rank":
            claims = self._replace(how=replace(how, draws=0)).image_contest(means, None).p
            return self.tests(cases, better)._replace(claims=claims)
        return self.image_contest(means, None)

    def image_contest(self, images: Sequence[ScoredImages], aggregate: Aggregate | None) -> Contest:
        """Values, intervals and tests of smooth scores."""
        statistics = [model.over(self.units, aggregate) for model in images]
        if not statistics[0].is_smooth:
            if self.how.draws:
                raise _no_bootstrap()
            values = np.array([statistic.values[0] for statistic in statistics])
            return _unknown(values, statistics[0].score.better)
        duels = {}
        for i, j in combinations(range(len(images)), 2):
            units = self.units_of(i, j)
            duels[i, j] = self.duel(*(images[place].over(units, aggregate) for place in (i, j)))
        draws, seed = self.how.draws, self.how.seed
        drawn = resampled(statistics, draws, seed) if draws else repeat(None)
        return contest_of(statistics, duels, drawn, self.how)

    def units_of(self, i: int, j: int) -> Units:
        """The units of two models, which depend on no other model."""
        several = [self.cases[i], self.cases[j]]
        return self.how.design(self.ids, len(self.ids), lambda: several).units

    @np.errstate(invalid="ignore")  # differences of infinite distances are undefined
    def duel(self, first: Statistic, second: Statistic) -> Duel:
        """The difference of two models, with its p."""
        change = Paired.of(first, second, seed=self.how.seed).score
        delta = float(difference(first.values[0], second.values[0]))
        return Duel(delta, change.p, *change.spread(len(first.units), self.how.level))

    def tests(self, cases: Floats, better: str) -> Contest:
        """Shares of the other models that are beaten, on images and on resamples."""
        p = signed_rank_tests(cases, better)
        drawn = None
        if self.how.draws and not self.units.too_few:
            number, images = len(self.units), cases.shape[1]
            batches = (
                signed_rank_tests(cases, better, times[:, self.units.index])
                for times in times_drawn(self.how.draws, number, images, self.how.seed)
            )
            drawn = np.concatenate([beaten(batch, self.how.alpha) for batch in batches])
        # The tests take images as independent, so they give sets of ranks for images only.
        sets = p[0] if self.units.kind == "image" else np.full(p[0].shape, np.nan)
        nowhere = np.full((len(cases), 2), np.nan)
        return Contest(beaten(p, self.how.alpha)[0], "higher", nowhere, sets, drawn)


#: Ranks of a model on images, as a score.
_RANKS = Score(
    "rank", "rank", (), addends, means_of, better="lower", overall=OVERALL, scale="identity"
)


def _case_mean(row: Floats, score: Score) -> ScoredImages:
    """The mean of the values of a score on images, (N,)."""
    names = () if score.row is None else score.names
    mean = Score(
        score.name,
        score.title,
        names,
        addends,
        means_of,
        unit=score.unit,
        better=score.better,
        overall=OVERALL,
        include=np.ones(1, bool) if names else None,
        scale=score.scale,
        over="I",
        row=score.row,
    )
    values = np.repeat(row[:, None], 1 + len(names), axis=1)
    images = ImageParts(len(row), 1, lambda: iter([values]))
    return ScoredImages(images, lambda _: mean)


def _combined(contests: Sequence[Contest], ranks: Sequence[Floats], ties: str) -> Contest:
    """Means of the ranks by several scores; their resamples are the same."""
    drawn = [
        ranks_of(contest.drawn, contest.better, ties)
        for contest in contests
        if contest.drawn is not None
    ]
    return _unknown(np.mean(ranks, 0), "lower", np.mean(drawn, 0) if drawn else None)


def _unknown(values: Floats, better: str, drawn: Floats | None = None) -> Contest:
    """Values without intervals and tests."""
    nowhere = np.full((len(values), max(2, len(values))), np.nan)
    return Contest(values, better, nowhere[:, :2], nowhere, drawn)
