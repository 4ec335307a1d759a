"""Ranked models, and the stability of their ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from segiou._support import numbers, text
from segiou._support.numbers import cell, shown, shown_range
from segiou._support.optional import Drawable
from segiou._support.text import Json
from segiou.analysis.comparison.case_ranks import ranks_of
from segiou.document.findings import Finding
from segiou.document.parts import Cell, Column, Part, Section, Table
from segiou.inference.intervals import OverUnits, limits_by
from segiou.inference.resampling import Resampling
from segiou.inference.significance import holm_adjust, is_significant, least_p
from segiou.inference.statistics import Statistic
from segiou.metrics.ratio import Floats, ratio

#: Why rankings by medians are not resampled.
MEDIANS = (
    "medians and percentiles of resamples take only a few values, so their ranks jump or never "
    "change"
)


@dataclass(frozen=True, slots=True)
class ModelRank:
    """A model's rank among several.

    Attributes
    ----------
    name : str
    value : float
    low, high : float
        Interval of the value. Intervals of two models may overlap
        although their difference is significant, because they share images.
    best : float
        Share of the resamples in which the model ranks first; ties are split
        evenly. The resamples are spread as the interval of the difference from the
        closest rival.
    rank : float
    rank_low, rank_high : int or None
        Simultaneous confidence set of the ranks of all models.
    shares : tuple of float
        Share of the resamples in which the model has rank 1, 2, ….
    """

    name: str
    value: float
    low: float
    high: float
    best: float
    rank: float = math.nan
    rank_low: int | None = None
    rank_high: int | None = None
    shares: tuple[float, ...] = ()

    @property
    def possible_ranks(self) -> str:
        """The confidence set of the rank in words."""
        if self.rank_low is None or self.rank_low == self.rank_high:
            return "–" if self.rank_low is None else f"{self.rank_low}"
        return f"{self.rank_low} to {self.rank_high}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ranking(OverUnits, Finding, Drawable):
    """Models in order, with the stability of their ranks.

    Attributes
    ----------
    by : tuple of str
        The scores.
    scheme : str
    aggregate : str
        How images are aggregated; empty if tests are counted.
    value_name : str
        Name of the value that ranks the models, such as ``"mean IoU"`` or ``"mean rank"``.
    names : tuple of str
        Names of the models, in the given order.
    models : tuple of ModelRank
        Best first.
    images, units : int
        Numbers of images, and of the units that were resampled.
    unit : {"image", "group", "sequence", "batch"}
    level : float
    method : {"jackknife", "percentile", "bca"}
        Method of the intervals.
    resamples, seed : int or None
        None if nothing was resampled.
    tau : float
        Mean of Kendall's τ between the ranking and those of the resamples.
    tau_quartiles : tuple of float
        First and third quartile of τ.
    false_claim : float
        Probability that the claim "the first model is best" is false: P(first
        ≤ rival) with a flat prior, for the rival that it is largest for.
    rival : str
    better : {"higher", "lower"}
        Which values are better.
    score_unit : str
        Unit of the values, such as ``"mm"``; empty for a ratio.
    score_ranks : tuple of tuple of float
        If models are ranked by several scores: the ranks by each, in the order
        of ``by`` and ``names``.
    cases : tuple of tuple of float
        Per-image values of the first score, in the order of ``names``.
    case_name, case_unit : str
        Their name and unit.
    uncommon_classes : tuple of str
        Classes that only some of the models score, which the values exclude,
        as in a :class:`Comparison`.
    protocol_scores : tuple of float
        The score of each model over all classes of the protocol, in the order of
        ``names``, if classes are excluded; empty for ranks by several scores.
    dependence, block_length, independence, limit
        As for :class:`Comparison`.
    """

    _plot_kind = "rank_stability"
    _index = ("name",)

    by: tuple[str, ...]
    scheme: str
    value_name: str
    names: tuple[str, ...]
    models: tuple[ModelRank, ...]
    images: int
    tau: float
    tau_quartiles: tuple[float, float]
    false_claim: float
    rival: str
    better: str
    score_ranks: tuple[tuple[float, ...], ...] = ()
    cases: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    case_name: str = ""
    case_unit: str = ""
    uncommon_classes: tuple[str, ...] = ()
    protocol_scores: tuple[float, ...] = ()

    @property
    def is_resampled(self) -> bool:
        """Whether the units are enough for P(best): resamples of fewer repeat each other."""
        return bool(is_significant(least_p(2**self.units), self.level))

    @property
    def sets_name(self) -> str:
        """Header of a column of confidence sets."""
        return f"ranks ({numbers.short_percent(self.level)})"

    def sentences(self) -> list[str]:
        """Return the stability of the ranking as sentences."""
        return [*_sentences(self)]

    def _parts(self) -> Iterator[Part]:
        """The ranking and its stability."""
        rows, unit = self.models, self.score_unit
        values = [Cell(shown(r.value, unit), "bold" if r.rank == 1 else "") for r in rows]
        columns = (
            Column("rank", [f"{row.rank:g}" for row in rows], 7),
            Column("model", [row.name for row in rows], 9, is_text=True),
            Column(self.value_name, values, 8),
            Column("interval", [shown_range(row.low, row.high, unit) for row in rows], 4),
            Column("P(best)", [cell(row.best) if self.is_resampled else "–" for row in rows], 6),
            Column(self.sets_name, [row.possible_ranks for row in rows], 5),
        )
        yield Section("Ranking", [Table(columns, self.sentences())], shown=True)

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per model, best first.

        Yields
        ------
        dict
            The values of a row by column.
        """
        for model in self.models:
            row = text.plain(model)
            del row["shares"]
            yield row

    def __repr__(self) -> str:
        names = text.listed(self.names, 6)
        images = text.plural(self.images, self._image)
        return f"<Ranking of {names} by {', '.join(self.by)}: {images}>"

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined. Without the cases."""
        data = replace(self, cases=())._plain() | {"sentences": self.sentences()}
        del data["cases"]
        return data


def _sentences(ranking: Ranking) -> Iterator[str]:
    if ranking.uncommon_classes:
        yield _coverage(ranking)
    if ranking.aggregate == "median":
        yield f"Stability: unknown, because {MEDIANS}."
    if ranking.resamples and not ranking.is_resampled:
        yield f"P(best) cannot be estimated from {ranking.units_text}."
    elif ranking.resamples:
        draws = f"{numbers.count(ranking.resamples)} resamples of {ranking.units_text}"
        ranks = "in which the model ranks first, with the spread of the intervals"
        yield f"P(best): share of {draws} {ranks}."
        if not math.isnan(ranking.tau):
            low, high = ranking.tau_quartiles
            yield (
                f"Stability: Kendall's τ between this ranking and those of the resamples is "
                f"{ranking.tau:.2f} on average (quartiles {low:.2f} and {high:.2f})."
            )
    if ranking.models[0].rank_low is not None:
        sets = text.capital(ranking.sets_name)
        images = f"{ranking._image}s"
        yield f"{sets}: ranks that the {images} cannot rule out, simultaneously for all models."
    if not math.isnan(ranking.false_claim):
        yield _false_claim(ranking)


def _coverage(ranking: Ranking) -> str:
    """The classes that the means exclude, and the means under the protocol."""
    covered = (
        "The means cover the classes that all models score, without "
        f"{text.classes(ranking.uncommon_classes)}."
    )
    if not ranking.protocol_scores:
        return covered
    scores = zip(ranking.names, ranking.protocol_scores, strict=True)
    every = text.listed([f"{ranking._shown(score)} ({name})" for name, score in scores])
    return f"{covered} With every class of the protocol, they are {every}."


def _false_claim(ranking: Ranking) -> str:
    """The probability of a false claim that the first model is best."""
    first = [model.name for model in ranking.models if model.rank == ranking.models[0].rank]
    best = first[0] if len(first) == 1 else "a single model"
    return (
        f"Risk of calling {best} the best: with probability "
        f"{numbers.percent(ranking.false_claim)}, {ranking.rival} is as good or better."
    )


class Contest(NamedTuple):
    """Values of models and their uncertainty."""

    values: Floats
    """(M,)"""
    better: str
    limits: Floats
    """Intervals of the values, (M, 2)."""
    p: Floats
    """One-sided p that a model is better than another, (M, M); NaN if unknown."""
    drawn: Floats | None
    """Values of the resamples, (B, M)."""
    claims: Floats | None = None
    """Posterior probabilities that a model is not better than another; by default p."""


class Duel(NamedTuple):
    """The difference of two models, second minus first."""

    delta: float
    p: float
    """Two-sided."""
    error: float
    freedom: float
    """Degrees of freedom of the interval."""


def contest_of(
    scores: Sequence[Statistic],
    pairs: Mapping[tuple[int, int], Duel],
    drawn: Iterable[Floats | None],
    how: Resampling,
) -> Contest:
    """Models by a score: its limits, differences of pairs, and values of resamples."""
    units, score = scores[0].units, scores[0].score
    models = [*zip(scores, drawn, strict=False)]
    of_models = [limits_by(how.method, *model, level=how.level) for model in models]
    limits = np.array([model.ends for model in of_models])
    values = np.array([model.values[0] for model in of_models])
    if units.too_few_to_compare or not scores[0].is_smooth:
        unknown = np.full((len(values), len(values)), np.nan)
        return Contest(values, score.better, limits, unknown, None)
    p = _one_sided(len(values), pairs, score.better)
    several = [own[:, 0] for _, own in models if own is not None]
    if not several:
        return Contest(values, score.better, limits, p, None)
    best = int(np.argmin(ranks_of(values, score.better)))
    known = {place: duel for place, duel in pairs.items() if best in place}
    # The closest rival.
    i, j = max(known, key=lambda place: float(np.nanmax(p[best, list(place)])), default=(0, 0))
    error, freedom = (known[i, j].error, known[i, j].freedom) if known else (math.nan, math.nan)
    stacked = np.stack(several, axis=1)
    factor = float(ratio(error, np.std(stacked[:, j] - stacked[:, i])))
    spread = _spread(stacked, values, factor, freedom, len(units))
    return Contest(values, score.better, limits, p, spread)


def _spread(drawn: Floats, values: Floats, factor: float, freedom: float, units: int) -> Floats:
    """Resamples with the standard error and the t distribution of the interval of a difference.

    Resamples of few units vary less, which would contradict the interval.
    """
    if not 0 < factor < math.inf or math.isnan(freedom):
        factor, freedom = math.sqrt(units / (units - 1)), units - 1.0
    tails = np.sqrt(freedom / np.random.default_rng(0).chisquare(freedom, len(drawn)))
    away = (drawn - values) * (factor * tails)[:, None]
    return np.where(np.isfinite(away), values + away, drawn)


def _one_sided(number: int, pairs: Mapping[tuple[int, int], Duel], better: str) -> Floats:
    """One-sided p of each model against each other, half of that of the pair."""
    p = np.full((number, number), np.nan)
    for (i, j), duel in pairs.items():
        ahead = duel.delta * (1 if better == "higher" else -1)
        if ahead == 0 and not duel.error > 0:  # equal on every image
            p[j, i] = p[i, j] = 1.0
        elif not math.isnan(ahead):
            half = duel.p / 2
            p[j, i], p[i, j] = (half, 1 - half) if ahead > 0 else (1 - half, half)
    return p


def placed(
    names: Sequence[str], contest: Contest, ties: str = "min", level: float = 0.95
) -> dict[str, Any]:
    """Models in order, the stability of their ranks, and the probability of a false claim."""
    ranks, drawn = ranks_of(contest.values, contest.better, ties), np.empty((0, len(names)))
    if contest.drawn is not None:
        drawn = contest.drawn[~np.isnan(contest.drawn).all(1)]
    drawn_ranks, first = ranks_of(drawn, contest.better, ties), ranks_of(drawn, contest.better) == 1
    best = ratio((first / np.maximum(first.sum(1, keepdims=True), 1)).sum(0), len(first))
    lowest, highest = _rank_sets(contest.p, level, ranks if contest.claims is None else None)
    rows = text.records(
        name=names,
        value=contest.values,
        low=contest.limits[:, 0],
        high=contest.limits[:, 1],
        best=best,
        rank=ranks,
        rank_low=lowest,
        rank_high=highest,
        shares=_rank_shares(drawn_ranks),
    )
    models = [ModelRank(**row) for row in rows]
    order = sorted(range(len(names)), key=lambda i: (math.isnan(models[i].value), ranks[i]))
    claims = (contest.p if contest.claims is None else contest.claims)[order[0]]
    rival = None if np.isnan(claims).all() else int(np.nanargmax(claims))
    return {
        "models": tuple(models[i] for i in order),
        "resamples": len(contest.drawn) if contest.drawn is not None else None,
        **_stability(ranks, drawn_ranks),
        "false_claim": math.nan if rival is None else float(claims[rival]),
        "rival": "" if rival is None else names[rival],
    }


def _rank_shares(drawn_ranks: Floats) -> list[tuple[float, ...]]:
    """Share of the resamples in which each model has rank 1, 2, …; empty without resamples."""
    draws, number = drawn_ranks.shape
    if not draws:
        return [()] * number
    places = np.arange(1, number + 1)[:, None, None]
    below, above = np.floor(drawn_ranks), np.ceil(drawn_ranks)
    # A rank between two places counts half for each.
    at = ((below == places) | (above == places)).astype(float)
    shares = (at * np.where(below == above, 1.0, 0.5)).sum(1).T / draws
    return [*map(tuple, shares.tolist())]


def _stability(ranks: Floats, drawn_ranks: Floats) -> dict[str, Any]:
    """Kendall's τ between the ranking and those of the resamples: mean and quartiles."""
    taus = kendall_tau(ranks, drawn_ranks)
    taus = taus[~np.isnan(taus)]
    if not len(taus):
        return {"tau": math.nan, "tau_quartiles": (math.nan, math.nan)}
    quartiles = np.quantile(taus, (0.25, 0.75)).tolist()
    return {"tau": float(taus.mean()), "tau_quartiles": tuple(quartiles)}


def adjusted_pairs(p: Floats, ranks: Floats | None) -> Floats:
    """Adjust p of pairs of models, (M, M), over the pairs by Holm.

    That the best model beats every other is one claim, whose p is the largest of its
    pairs and needs no adjustment (Hung and Fithian, Annals of Statistics 47, 2019).
    """
    pairs = np.triu_indices(len(p), 1)
    adjusted = np.full(p.shape, np.nan)
    adjusted[pairs] = holm_adjust(p[pairs])
    adjusted = np.asarray(np.fmax(adjusted, adjusted.T))
    best = np.flatnonzero(ranks == 1) if ranks is not None else np.zeros(0, int)
    if len(best) == 1:
        together = np.delete(p[best[0]], best).max()  # NaN if one is
        adjusted[best] = np.fmin(adjusted[best], together)
        adjusted[:, best] = adjusted[best].T
    np.fill_diagonal(adjusted, np.nan)
    return adjusted


def _rank_sets(
    p: Floats, level: float, ranks: Floats | None
) -> tuple[list[int | None], list[int | None]]:
    """Least and largest rank of each model: those that beat it, and those that it beats."""
    number = len(p)
    adjusted = adjusted_pairs(np.minimum(1, 2 * np.fmin(p, p.T)), ranks)
    off = ~np.eye(number, dtype=bool)
    if np.isnan(adjusted[off]).any():
        return [None] * number, [None] * number
    beats = is_significant(adjusted, level) & (p < p.T)
    return (1 + beats.sum(0)).tolist(), (number - beats.sum(1)).tolist()


def kendall_tau(ranks: Floats, drawn: Floats) -> Floats:
    """Kendall's τ-b between ranks (M,) and each row of others (B, M); NaN if one is all ties."""
    i, j = np.triu_indices(len(ranks), 1)
    signs, others = np.sign(ranks[i] - ranks[j]), np.sign(drawn[:, i] - drawn[:, j])
    return ratio(others @ signs, np.sqrt((signs != 0).sum() * (others != 0).sum(1)))
