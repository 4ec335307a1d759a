"""Votes of several raters as counts of pixels by vote pattern, and the scores that follow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.metrics.ratio import Floats, ratio

#: The vote of a rater who did not mark the pixel, or does not have the case.
UNMARKED = -1
#: STAPLE stops once no sensitivity or specificity changes by more than 1e-7, as in ITK.
_STILL = 1e-14
#: Most iterations of STAPLE; of 1075 random cases, the slowest took 204 620.
_MOST = 300_000
#: Probabilities that STAPLE may not tell apart when it stops are tied.
_TIE = 1e-6


class Votes(NamedTuple):
    """The votes of K raters in one case: pixels with the same votes are counted together.

    Attributes
    ----------
    patterns : ndarray of int64, shape (P, K)
        Class index of each rater; -1 if unmarked.
    pixels : ndarray of int64, shape (P,)
        Number of pixels with each pattern.
    has_case : ndarray of bool, shape (K,)
        Whether the rater has the case.
    """

    patterns: NDArray[np.int64]
    pixels: NDArray[np.int64]
    has_case: NDArray[np.bool_]

    @classmethod
    def of(cls, masks: Sequence[NDArray[Any] | None]) -> tuple[Votes, NDArray[np.int64]]:
        """Patterns of class indices, of one mask or None per rater, and that of each pixel."""
        shape = next(mask.shape for mask in masks if mask is not None)
        none = np.full(shape, UNMARKED)
        filled = [none if mask is None else mask for mask in masks]
        codes, base = np.zeros(shape, np.int64), 2 + max(int(m.max(initial=0)) for m in filled)
        for mask in filled:  # joined one by one, so that codes stay below pixels × classes
            _, codes = np.unique(codes * base + mask + 1, return_inverse=True)
            codes = codes.reshape(shape)
        _, first, inverse, pixels = np.unique(
            codes, return_index=True, return_inverse=True, return_counts=True
        )
        patterns = np.stack([mask.reshape(-1)[first] for mask in filled], axis=1)
        has_case = np.array([mask is not None for mask in masks])
        return cls(patterns.astype(np.int64), pixels, has_case), inverse.reshape(shape)

    def expert_votes(self, experts: int) -> Votes:
        """The votes of the first raters, without those of a model."""
        return Votes(self.patterns[:, :experts], self.pixels, self.has_case[:experts])

    def table(self, num_classes: int) -> NDArray[np.int64]:
        """Number of votes for each class, per pattern, (P, C)."""
        return np.stack([(self.patterns == c).sum(1) for c in range(num_classes)], axis=1)

    def overlaps(self, num_classes: int) -> NDArray[np.int64]:
        """Pixels that both raters of a pair marked: both, first and second, (pairs, C, 3)."""
        counted = np.zeros((0, num_classes, 3), np.int64)
        for a, b in combinations(self.patterns.T, 2):
            sides = [np.arange(num_classes) == side[:, None] for side in (a, b)]
            weights = np.where((a >= 0) & (b >= 0), self.pixels, 0)
            cells = np.stack([sides[0] & sides[1], *sides], axis=-1)
            counted = np.concatenate([counted, np.einsum("p,pcx->cx", weights, cells)[None]])
        return counted


def pairwise_agreement(table: NDArray[np.int64]) -> Floats:
    """Share of the pairs of raters that agree, per pixel or pattern of equally many votes, (P,)."""
    number = table.sum(1)
    return ratio((table * (table - 1)).sum(1), number * (number - 1))


def fleiss_kappa(agreement: Any, shares: Floats) -> Floats:
    """Fleiss' kappa from the mean pairwise agreement and the share of votes of each class.

    Parameters
    ----------
    agreement : float or ndarray, shape (...)
        Mean over the pixels.
    shares : ndarray of float, shape (..., C)
        Shares of the votes.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN if all votes name one class.

    Notes
    -----
    Fleiss, Psychological Bulletin 1971.
    """
    expected = (np.asarray(shares) ** 2).sum(-1)
    return ratio(agreement - expected, 1 - expected)


def coincidences(table: NDArray[np.int64], pixels: NDArray[np.int64]) -> Floats:
    """Krippendorff's coincidence matrix of pixels with at least two votes, (C, C)."""
    is_used = table.sum(1) >= 2
    votes, weights = table[is_used].astype(np.float64), pixels[is_used]
    weights = weights / (votes.sum(1) - 1)
    return np.asarray((votes * weights[:, None]).T @ votes - np.diag(weights @ votes))


def krippendorff_alpha(table: Floats) -> Floats:
    """Krippendorff's alpha of nominal values, from sums of coincidences.

    Parameters
    ----------
    table : ndarray of float, shape (..., C, C)
        Coincidences.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN if all votes name one class.

    Notes
    -----
    Krippendorff, Content Analysis, chapter 11.
    """
    totals = np.rint(table.sum(-1))  # numbers of votes, whose weights are fractions such as 1/3
    number = totals.sum(-1)
    disagreed = np.where(np.eye(table.shape[-1], dtype=bool), 0.0, table).sum((-2, -1))
    chance = (totals * (number[..., None] - totals)).sum(-1)
    return 1 - ratio((number - 1) * disagreed, chance)


class Staple(NamedTuple):
    """A STAPLE estimate of one class.

    Attributes
    ----------
    probability : ndarray of float64, shape (P,)
        Probability of the class, per pattern.
    sensitivity, specificity : ndarray of float64, shape (K,)
        One value per rater; NaN for raters without the case.
    """

    probability: Floats
    sensitivity: Floats
    specificity: Floats


def staple(votes: Votes, index: int) -> Staple:
    """Estimate a class by STAPLE, as ITK does; unmarked pixels are not the class.

    Notes
    -----
    Warfield, Zou and Wells, IEEE TMI 2004. The estimate starts from the share of votes, and stops
    after 300 000 iterations at the latest.
    """
    chosen = votes.patterns[:, votes.has_case] == index
    pixels, nan = votes.pixels, np.full(len(votes.has_case), np.nan)
    if not chosen.any():
        return Staple(np.full(len(pixels), np.nan), nan, nan)
    weight = chosen.mean(1)
    prior = (weight * pixels).sum() / pixels.sum()
    last = np.full(2 * chosen.shape[1], np.inf)
    for _ in range(_MOST):
        inside, outside = weight * pixels, (1 - weight) * pixels
        sensitivity = ratio(inside @ chosen, inside.sum())
        specificity = ratio(outside @ ~chosen, outside.sum())
        now = np.concatenate([sensitivity, specificity])
        yes = prior * np.where(chosen, sensitivity, 1 - sensitivity).prod(1)
        no = (1 - prior) * np.where(chosen, 1 - specificity, specificity).prod(1)
        weight = ratio(yes, yes + no)
        if not (np.abs(now - last) ** 2 > _STILL).any():
            break
        last = now
    spread = [nan.copy(), nan.copy()]
    for values, rates in zip(spread, (sensitivity, specificity), strict=True):
        values[votes.has_case] = rates
    return Staple(weight, *spread)


def majority(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class with most votes of each pattern; -1 if votes are tied or missing, (P,)."""
    return _winner(table, table)


def _winner(table: NDArray[np.int64], scores: NDArray[Any]) -> NDArray[np.int64]:
    """The class with the highest score of each pattern; -1 if scores are tied or votes missing."""
    is_tied = np.count_nonzero(scores > scores.max(1, keepdims=True) - _TIE, axis=1) > 1
    return np.where(is_tied | (table.sum(1) == 0), UNMARKED, scores.argmax(1))


def consensus(votes: Votes, rule: str) -> NDArray[np.int64]:
    """The consensus of each pattern by majority or STAPLE; -1 if undecided, (P,)."""
    number = 1 + int(votes.patterns.max(initial=0))
    table = votes.table(number)
    if rule == "majority":
        return majority(table)
    likely = [np.nan_to_num(staple(votes, c).probability) for c in range(number)]
    return _winner(table, np.stack(likely, axis=1))
