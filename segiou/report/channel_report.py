"""The report of overlapping channels, which has no matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counting.counts import Counts
from segiou.metrics.ratio import Floats, ratio
from segiou.report.report import Baseline, Report


@dataclass(frozen=True, eq=False, repr=False)
class ChannelReport(Report):
    """Scores of overlapping channels: a report whose pixels can be of several classes or of none.

    Every channel says yes or no at every pixel, and what the report of a label
    map says of pixels, this one says of these values: ``pixels`` and
    ``ignored`` are numbers of values (pixels × channels), ``pixel_accuracy`` and
    ``cohen_kappa`` are those of yes against no over all channels, the ``share``
    of a class is its share of the pixels, and the majority baseline says, in
    each channel, what is more frequent. There is no matrix.
    """

    @property
    def backend(self) -> str:
        """Which counting routine is live."""
        from segiou.counting.channels import CHANNELS_BACKEND

        return CHANNELS_BACKEND

    @property
    def unit(self) -> str:
        """What the counts count, in words."""
        return "values (pixels × channels)"

    @cached_property
    def counts(self) -> Counts:
        """Counts of the data set, shape (C,): each channel's yes against no."""
        return self.tally.counts[..., 1]

    @property
    def pixels(self) -> int:
        """Values seen."""
        return int(self.tally.pixels.sum())

    @property
    def ignored(self) -> int:
        """Values dropped by a mask."""
        return int(self.tally.ignored.sum())

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
        """Zeros, (C,): a channel says yes or no, there is nothing else to predict."""
        return np.zeros_like(self.counts.tp)

    @cached_property
    def pixel_accuracy(self) -> float:
        """Share of the correct values, Σ (TP + TN) / Σ (TP + FP + FN + TN)."""
        return float(_accuracy(self.counts))

    @cached_property
    def cohen_kappa(self) -> float:
        """Cohen's kappa of yes and no over all channels."""
        return float(metrics.cohen_kappa(self.counts.pooled().one_vs_rest())[0])

    @cached_property
    def majority(self) -> Baseline:
        """What the more frequent of yes and no, in each channel, scores when said everywhere."""
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
