"""Influence of each image or group on a score: the score without it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou._support import text
from segiou._support.text import Json
from segiou.counting.counts import Counts
from segiou.inference.count_scores import Aggregate
from segiou.inference.statistics import scored_counts
from segiou.inference.units import ImageParts, Metric, units_of
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Leave-one-out scores for each unit.

    Attributes
    ----------
    metric : str
    unit : {"image", "group"}
    names : tuple of str
        The units.
    columns : tuple of str
        The score, then the classes.
    values : ndarray of float, shape (1 + C,)
        With all units.
    left_out : ndarray of float, shape (U, 1 + C)
        Without each unit.
    """

    metric: str
    unit: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    left_out: Floats

    @property
    def effect(self) -> Floats:
        """Change of each value when the unit is included, (U, 1 + C)."""
        return self.values - self.left_out

    @property
    def standard_error(self) -> Floats:
        """Jackknife standard error of each value, √((U − 1)/U Σ (θ₍ᵢ₎ − θ̄)²), (1 + C,)."""
        number = len(self.names)
        spread = ((self.left_out - self.left_out.mean(0)) ** 2).sum(0)
        return np.asarray(np.sqrt((number - 1) / number * spread))

    def strongest(self, count: int = 5, column: int = 0) -> tuple[list[int], list[int]]:
        """Units that raise a value most and units that lower it most.

        Parameters
        ----------
        count : int, default 5
            Number of units of either kind.
        column : int, default 0
            Index of the value, one of :attr:`columns`.

        Returns
        -------
        raising : list of int
            Indices into :attr:`names`, strongest first.
        lowering : list of int
            Likewise.
        """
        effect = self.effect[:, column]
        order = np.argsort(effect, kind="stable")
        order = order[~np.isnan(effect[order])]
        lowering = [int(i) for i in order[:count] if effect[i] < 0]
        raising = [int(i) for i in order[::-1][:count] if effect[i] > 0]
        return raising, lowering

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data: dict[str, Any] = text.plain(self)
        return data | {"effect": text.plain(self.effect)}


def influence(
    counts: Counts,
    metric: Metric = "iou",
    *,
    ids: Sequence[str] | None = None,
    groups: Sequence[Hashable] | None = None,
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str = "segiou",
    aggregate: Aggregate | None = None,
) -> Influence:
    """Jackknife: leave-one-out scores for each image or group.

    Computed in one pass: the counts without a unit are the total minus its own.

    Parameters
    ----------
    counts : Counts of shape (N, C)
        Counts per class, (..., C).
    metric, groups, class_names, include, protocol, aggregate
        As for :func:`segiou.inference.intervals.confidence_intervals`.
    ids : sequence of str, length N, optional
        Names of the images.

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapter 11.

    Examples
    --------
    >>> counts = Counts(tp=[[9], [1]], fp=[[0], [5]], fn=[[1], [4]], tn=[[0], [0]])
    >>> found = influence(counts, ids=["clear", "fog"])
    >>> found.values, found.left_out[:, 0], found.strongest(1)
    (array([0.5, 0.5]), array([0.1, 0.9]), ([0], [1]))
    """
    parts = ImageParts.of(counts)
    images = scored_counts(parts, metric, protocol, class_names, include)
    prepared = images.over(units_of(parts.number, groups, ids), aggregate)
    return Influence(
        prepared.score.name,
        prepared.units.kind,
        prepared.units.names,
        prepared.names,
        prepared.values,
        prepared.left_out,
    )
