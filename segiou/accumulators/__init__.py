"""Counts that grow batch by batch, merge and travel: a matrix of classes, and channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.accumulators.base import Accumulator as Accumulator
    from segiou.accumulators.channel_counts import ChannelCounts as ChannelCounts
    from segiou.accumulators.confusion import ConfusionMatrix as ConfusionMatrix
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "base": ("Accumulator",),
            "channel_counts": ("ChannelCounts",),
            "confusion": ("ConfusionMatrix",),
        },
    )
