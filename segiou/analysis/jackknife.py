"""How much one image, or one group of images, moves a number: the jackknife."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou._support.text import plain
from segiou.analysis.statistics import Aggregate, Metric, statistic
from segiou.analysis.units import units_of
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Scores without each unit in turn.

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
        Without each.
    """

    metric: str
    unit: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    left_out: Floats

    @property
    def effect(self) -> Floats:
        """How much higher each value is for having the unit, (U, 1 + C)."""
        return self.values - self.left_out

    @property
    def standard_error(self) -> Floats:
        """Jackknife standard error of each value, √((U − 1)/U Σ (θ₍ᵢ₎ − θ̄)²), (1 + C,).

        B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
        chapter 11.
        """
        number = len(self.names)
        spread = ((self.left_out - self.left_out.mean(0)) ** 2).sum(0)
        return np.asarray(np.sqrt((number - 1) / number * spread))

    def strongest(self, count: int = 5, column: int = 0) -> tuple[list[int], list[int]]:
        """Units that raise a value most, and those that lower it most.

        Returns
        -------
        raising, lowering : list of int
            Indices into :attr:`names`, the strongest first.
        """
        effect = self.effect[:, column]
        order = np.argsort(effect, kind="stable")
        order = order[~np.isnan(effect[order])]
        lowering = [int(i) for i in order[:count] if effect[i] < 0]
        raising = [int(i) for i in order[::-1][:count] if effect[i] > 0]
        return raising, lowering

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
        found["effect"] = plain(self.effect)
        return found


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
    """Jackknife: the score and every class without each image or group in turn.

    All of them in one pass, from the counts: the sums without a unit are the
    sums less its own.

    Parameters
    ----------
    counts : Counts of shape (N, C)
    metric, groups, class_names, include, protocol, aggregate
        As for :func:`segiou.analysis.bootstrapping.bootstrap`.
    ids : sequence of str, length N, optional
        Names of the images.

    Examples
    --------
    >>> counts = Counts(tp=[[9], [1]], fp=[[0], [5]], fn=[[1], [4]], tn=[[0], [0]])
    >>> found = influence(counts, ids=["clear", "fog"])
    >>> found.values, found.left_out[:, 0], found.strongest(1)
    (array([0.5, 0.5]), array([0.1, 0.9]), ([0], [1]))

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapter 11.
    """
    check_counts(counts, "counts of each image")
    prepared = statistic(
        counts,
        metric,
        units=units_of(counts.tp.shape[0], groups, ids),
        class_names=class_names,
        include=include,
        protocol=protocol,
        aggregate=aggregate,
    )
    return Influence(
        prepared.metric,
        prepared.units.kind,
        prepared.units.names,
        prepared.names,
        prepared.values,
        prepared.left_out,
    )
