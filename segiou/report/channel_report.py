"""The report of binary channels that may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from segiou import metrics
from segiou.counting import CHANNELS_BACKEND
from segiou.counts import Counts
from segiou.metrics import Floats
from segiou.metrics._ratio import ratio
from segiou.report.report import Report

__all__ = ["ChannelReport"]


@dataclass(frozen=True, eq=False)
class ChannelReport(Report):
    """Scores of overlapping channels: a report whose pixels can be of several classes or of none.

    Every channel answers yes or no at every pixel, so what a label map's report
    says of pixels is said of these answers: ``pixels`` and ``ignored`` are
    numbers of values (pixels × channels), ``pixel_accuracy`` and
    ``cohen_kappa`` are those of yes against no over all channels, the ``share``
    of a class is its share of the pixels, and the all-majority predictor says,
    channel by channel, what is more frequent. There is no matrix.
    """

    @property
    def backend(self) -> str:
        """Which counting routine is live."""
        return CHANNELS_BACKEND

    @property
    def unit(self) -> str:
        """What the counts count, in words."""
        return "values (pixels × channels)"

    @cached_property
    def pixel_accuracy(self) -> float:
        """Share of the right answers, Σ (TP + TN) / Σ (TP + FP + FN + TN)."""
        return float(_accuracy(self.counts))

    @cached_property
    def cohen_kappa(self) -> float:
        """Cohen's kappa of yes and no over all channels."""
        return float(metrics.cohen_kappa(self.counts.pooled().one_vs_rest())[0])

    @cached_property
    def majority(self) -> dict[str, Any]:
        """What saying the more frequent of yes and no, channel by channel, would score."""
        says_yes = 2 * self.counts.truth > self.counts.total
        counts = _constant_counts(self.counts, says_yes)
        images = None if self.per_image is None else _constant_counts(self.per_image, says_yes)
        mean = self.protocol.mean(metrics.iou, counts, include=self.include, per_image=images)
        return {
            "class": "the more frequent of yes and no in each channel",
            "pixel_accuracy": float(_accuracy(counts)),
            "mean_iou": mean.value,
        }

    def _shares(self) -> Floats:
        return ratio(self.counts.truth, self.counts.total)


def _accuracy(counts: Counts) -> Floats:
    return metrics.pixel_accuracy(counts.pooled().one_vs_rest())[..., 0]


def _constant_counts(counts: Counts, says_yes: Any) -> Counts:
    truth, rest = counts.truth, counts.total - counts.truth
    nothing = np.zeros_like(truth)
    return Counts(
        tp=np.where(says_yes, truth, nothing),
        fp=np.where(says_yes, rest, nothing),
        fn=np.where(says_yes, nothing, truth),
        tn=np.where(says_yes, nothing, rest),
    )
