"""Ranks of models from their scores of each case, by three schemes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_choice, check_number
from segiou._support.options import Options, option
from segiou.counting.arrays import read_floats
from segiou.metrics.overall import mean
from segiou.metrics.ratio import Floats, ratio

Scheme = Literal["aggregate-then-rank", "rank-then-aggregate", "test-then-rank"]
Ties = Literal["min", "max", "average"]
#: ``"error"``, ``"drop"``, or the score of a missing case.
Missing = float | Literal["error", "drop"]

# Scores are equal if they agree to this many decimals: sums differ in their last digits.
_DECIMALS = 12


class CaseRanks(NamedTuple):
    """Aggregated values of models and their ranks.

    Parameters
    ----------
    values : ndarray, shape (M,), float64
        Means or medians of scores or of ranks, or shares of the other models beaten.
    ranks : ndarray, shape (M,), float64
        Rank of each model, 1 for the best.
    """

    values: Floats
    ranks: Floats


@dataclass(frozen=True, kw_only=True)
class CaseRanking(Options):
    """Options of a ranking by the scores of cases, documented in :func:`rank_cases`."""

    scheme: Scheme = option("aggregate-then-rank", check_choice, get_args(Scheme))
    ties: Ties = option("min", check_choice, get_args(Ties))
    missing: Missing | None = None
    alpha: float = option(0.05, check_number, 0, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.missing, str):
            check_choice("missing", self.missing, ("error", "drop"))
        elif self.missing is not None:
            check_number("missing", self.missing)
        if self.scheme == "rank-then-aggregate" and self.missing is not None:
            msg = "missing scores rank last in rank-then-aggregate; omit missing="
            raise ValueError(msg)

    def prepared(self, scores: Floats, better: str) -> Floats:
        """Scores without the missing ones treated, or the ranks of each case."""
        if self.scheme == "rank-then-aggregate":
            return ranks_of(scores.T, better, self.ties).T
        if self.missing is not None and not isinstance(self.missing, str):
            return np.where(np.isfinite(scores), scores, self.missing)
        absent = np.isnan(scores)
        if absent.any() and self.missing != "drop":
            models, cases = np.nonzero(absent)
            msg = (
                f"{len(cases)} scores are missing, the first of model {models[0]} in case "
                f"{cases[0]}; pass missing='drop' to skip these cases, or a score to use "
                "instead, such as missing=0.0"
            )
            raise ValueError(msg)
        return scores


def rank_cases(
    scores: ArrayLike,
    *,
    scheme: Scheme = "aggregate-then-rank",
    statistic: Literal["mean", "median"] = "mean",
    better: Literal["higher", "lower"] = "higher",
    ties: Ties = "min",
    missing: Missing | None = None,
    alpha: float = 0.05,
) -> CaseRanks:
    """Rank models by a table of scores, as the R package challengeR does.

    Parameters
    ----------
    scores : array_like, shape (M, N)
        The score of each of M models on each of N cases; NaN if missing. Infinite
        distances are the worst.
    scheme : str
        ``"aggregate-then-rank"`` ranks the means of the scores.
        ``"rank-then-aggregate"`` ranks the models on each case, then the means
        of these ranks; a missing score ranks last. ``"test-then-rank"`` counts
        the other models that a model is significantly better than, by
        one-sided Wilcoxon signed-rank tests without adjustment.
    statistic : {"mean", "median"}
        How scores or ranks are aggregated.
    better : {"higher", "lower"}
        Which scores are better.
    ties : {"min", "max", "average"}
        Rank of equal values: the best, the worst, or the mean of their places.
    missing : "error", "drop" or float, optional
        What to do with missing scores: raise an error (the default), leave
        them out, or replace them and infinite ones by this score. Not for ranks
        per case.
    alpha : float
        Significance level of the tests.

    Returns
    -------
    CaseRanks

    Raises
    ------
    ValueError
        If a score is missing, or an option is out of range.

    References
    ----------
    M. Wiesenfarth et al., Sci. Rep. 11, 2369 (2021).

    Examples
    --------
    >>> found = rank_cases([[0.6, 0.4], [0.8, 1.0]])
    >>> found.values.tolist(), found.ranks.tolist()
    ([0.5, 0.9], [2.0, 1.0])
    """
    how = CaseRanking.of(locals())
    check_choice("better", better, ("higher", "lower"))
    check_choice("statistic", statistic, ("mean", "median"))
    table = read_floats(scores, "scores", "numbers, NaN for a missing case")
    if table.ndim != 2 or not table.size:
        msg = f"scores must have shape (M, N) for M models and N cases, got {table.shape}"
        raise ValueError(msg)
    table = how.prepared(table, better)
    if scheme == "test-then-rank":
        values = beaten(signed_rank_tests(table, better), alpha)[0]
        return CaseRanks(values, ranks_of(values, "higher", ties))
    values = medians(table) if statistic == "median" else mean(table)
    order = "lower" if scheme == "rank-then-aggregate" else better
    return CaseRanks(values, ranks_of(values, order, ties))


def ranks_of(values: Floats, better: str = "higher", ties: str = "min") -> Floats:
    """Ranks along the last axis; undefined values follow the last defined rank."""
    keys = np.round(values if better == "lower" else -values, _DECIMALS)
    ahead = (keys[..., None, :] < keys[..., :, None]).sum(-1)
    equal = (keys[..., None, :] == keys[..., :, None]).sum(-1)
    absent = np.isnan(keys)
    number = absent.sum(-1, keepdims=True)
    if ties == "average":
        ranks, more = ahead + (equal + 1) / 2, (number + 1) / 2
    elif ties == "max":
        ranks, more = (ahead + equal).astype(float), number
    else:
        ranks, more = ahead + 1.0, np.ones_like(number)
    last = np.where(absent, 0, ranks).max(-1, keepdims=True)
    return np.asarray(np.where(absent, last + more, ranks))


def medians(table: Floats) -> Floats:
    """Median of the defined values of each row; NaN without one."""
    rows = (row[~np.isnan(row)] for row in table)
    return np.array([np.median(row) if row.size else np.nan for row in rows])


def signed_rank_tests(scores: Floats, better: str, weights: NDArray[Any] | None = None) -> Floats:
    """One-sided p of each model against each other on weighted cases, (B, M, M)."""
    number, cases = scores.shape
    times = np.ones((1, cases)) if weights is None else weights
    signed = scores if better == "higher" else -scores
    p = np.full((len(times), number, number), np.nan)
    for i in range(number):
        for j in set(range(number)) - {i}:
            p[:, i, j] = _signed_rank_p(signed[i] - signed[j], times)
    return p


def beaten(p: Floats, alpha: float) -> Floats:
    """Share of the other models that each is significantly better than, (B, M)."""
    return ratio((p <= alpha).sum(-1), np.full(p.shape[:-1], p.shape[-1] - 1))


def _signed_rank_p(difference: Floats, weights: Floats) -> Floats:
    """One-sided p that differences are positive, by the normal approximation, (B,)."""
    # F. Wilcoxon, Biometrics Bulletin 1 (1945), with corrections for continuity and ties and
    # without zeros, as wilcox.test(paired = TRUE, exact = FALSE) of R. A weight is the number of
    # times that a case was drawn: equal sizes share the mean of their ranks.
    sizes = np.round(np.abs(difference), _DECIMALS)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]  # drops NaN as well
    if not order.size:
        return np.full(len(weights), np.nan)
    starts = np.flatnonzero(np.append(True, sizes[order][1:] != sizes[order][:-1]))
    drawn = weights[:, order].astype(float)
    tied = np.add.reduceat(drawn, starts, axis=1)
    rank = np.cumsum(tied, 1) - tied + (tied + 1) / 2
    positive = (np.add.reduceat(drawn * (difference[order] > 0), starts, axis=1) * rank).sum(1)
    n = tied.sum(1)
    variance = n * (n + 1) * (2 * n + 1) / 24 - (tied**3 - tied).sum(1) / 48
    from scipy.special import ndtr  # type: ignore[import-untyped, unused-ignore]

    with np.errstate(all="ignore"):
        return np.asarray(ndtr(-(positive - n * (n + 1) / 4 - 0.5) / np.sqrt(variance)))
