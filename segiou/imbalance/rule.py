"""A protocol's mean taken apart: which values it averages, and with what weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.counts import Counts
from segiou.metrics import Floats
from segiou.metrics._ratio import ratio
from segiou.protocols import Protocol

__all__ = ["Case", "Scores", "Terms", "mean_terms"]


class Scores(NamedTuple):
    """The two scores that are held against each other."""

    pixel_accuracy: float
    mean_iou: float


@dataclass(frozen=True)
class Case:
    """Counts and the rule by which they are averaged.

    Attributes
    ----------
    images : Counts of shape (N, C)
    protocol : Protocol
    include : array_like of bool, shape (C,), or None
    """

    images: Counts
    protocol: Protocol
    include: Any = None

    @property
    def total(self) -> Counts:
        """Counts of the data set, shape (C,)."""
        return self.images.summed()

    @property
    def scored(self) -> Counts:
        """The counts that the rule takes ratios of."""
        return self.images if self.protocol.needs_images else self.total

    def with_counts(self, images: Counts) -> Case:
        """Other counts by the same rule."""
        return replace(self, images=images)

    def terms(self, metric: Callable[[Counts], Floats]) -> Terms:
        """Write the rule's mean of a metric as a weighted sum."""
        counts = self.scored
        return mean_terms(self.protocol, metric(counts), counts.truth > 0, self.include)


class Terms(NamedTuple):
    """The terms of a mean: it is the sum of ``values * weights``."""

    values: Floats
    """(C,) or (N, C); 0 where a value takes no part."""
    weights: Floats
    """Same shape; they sum to 1. NaN where nothing takes part."""

    @property
    def mean(self) -> float:
        """The mean itself."""
        return float((self.values * self.weights).sum())

    @property
    def classes(self) -> int:
        """How many classes take part."""
        taken = np.atleast_2d(self.weights > 0)
        return int(taken.any(0).sum())

    def per_class(self, values: Any = None) -> Floats:
        """Each class's part of the mean, or of the mean of other values."""
        parts = (self.values if values is None else values) * self.weights
        return np.asarray(np.atleast_2d(parts).sum(0))


def mean_terms(
    protocol: Protocol,
    values: Floats,
    in_truth: NDArray[np.bool_],
    include: Any = None,
) -> Terms:
    """Write a protocol's mean as a weighted sum of its values.

    Parameters
    ----------
    protocol : Protocol
    values, in_truth, include
        As for :meth:`segiou.protocols.Protocol.values_taken`; shape (C,) for a
        rule over the data set, (N, C) for a rule over images.

    Returns
    -------
    Terms
        Weights 1/K over K classes; 1/(N K_i) for the K_i classes of each of N
        images; or 1/M over M pairs of image and class.
    """
    values, part = protocol.values_taken(values, in_truth, include)
    if protocol.unit == "image":
        shares = ratio(part, part.sum(-1, keepdims=True))
        shares = np.nan_to_num(shares)
        return Terms(values, ratio(shares, part.any(-1).sum()))
    return Terms(values, ratio(part, part.sum()))
