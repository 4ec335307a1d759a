"""The report of overlapping channels, which has no matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counting.channels import CHANNELS_BACKEND
from segiou.counting.counts import Counts
from segiou.report.report import Report
from segiou.report.report_numbers import Baseline


@dataclass(frozen=True, eq=False, repr=False)
class ChannelReport(Report):
    """Scores of overlapping channels: each pixel belongs to any number of classes.

    Each channel has one binary value per pixel. ``pixels`` and ``ignored`` are
    numbers of these values (pixels × channels), ``pixel_accuracy``, ``cohen_kappa`` and
    ``matthews_correlation`` pool them over all channels, the ``share`` of a class is its
    share of the pixels, and the majority baseline predicts the more frequent value of
    each channel. There is no confusion matrix.
    """

    @property
    def backend(self) -> str:
        """Name of the counting routine in use."""
        return CHANNELS_BACKEND

    @property
    def unit(self) -> str:
        """Unit of the counts, in words."""
        return "values (pixels × channels)"

    @cached_property
    def counts(self) -> Counts:
        """Counts of the data set, shape (C,): positive against negative in each channel."""
        return self.tally.counts[..., 1]

    @property
    def has_matrix(self) -> bool:
        """No pairs of channels are counted."""
        return False

    @property
    def matrix(self) -> NDArray[np.int64]:
        """No pairs of channels, (0, 0)."""
        return np.zeros((0, 0), dtype=np.int64)

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Zeros, (C,): a binary channel has no other value to predict."""
        return np.zeros_like(self.counts.tp)

    @cached_property
    def pixel_accuracy(self) -> float:
        """Share of the correct values, Σ (TP + TN) / Σ (TP + FP + FN + TN)."""
        return _accuracy(self.counts)

    @cached_property
    def cohen_kappa(self) -> float:
        """Cohen's kappa, pooled over all channels."""
        return float(metrics.cohen_kappa(self.counts.pooled().one_vs_rest())[0])

    @cached_property
    def matthews_correlation(self) -> float:
        """Matthews correlation, pooled over all channels."""
        return float(metrics.matthews_correlation(self.counts.pooled().one_vs_rest())[0])

    @cached_property
    def majority(self) -> Baseline:
        """Scores of always predicting the more frequent value of each channel."""
        truth, rest = self.counts.truth, self.counts.total - self.counts.truth
        says_yes = truth > rest
        counts = Counts(
            tp=np.where(says_yes, truth, 0),
            fp=np.where(says_yes, rest, 0),
            fn=np.where(says_yes, 0, truth),
            tn=np.where(says_yes, 0, rest),
        )
        return {
            "class": "the more frequent value of each channel",
            "pixel_accuracy": _accuracy(counts),
            "mean_iou": self.protocol.mean(metrics.iou, counts, include=self.include).value,
        }


def _accuracy(counts: Counts) -> float:
    return float(metrics.pixel_accuracy(counts.pooled().one_vs_rest())[0])
