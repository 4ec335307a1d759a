"""Pixels → integers.

``count_pairs`` counts exclusive classes, ``count_channels`` binary channels that
may overlap. Everything is checked here, once, before the compiled kernel or the
NumPy reference sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.counting.arrays import as_label_array as as_label_array
    from segiou.counting.channels import (
        CHANNELS_BACKEND as CHANNELS_BACKEND,
        count_channels as count_channels,
    )
    from segiou.counting.counts import (
        ChannelTally as ChannelTally,
        Counts as Counts,
        Tally as Tally,
        check_counts as check_counts,
    )
    from segiou.counting.encoding import (
        BACKEND as BACKEND,
        Encoding as Encoding,
        PairCount as PairCount,
        UndeclaredValuesError as UndeclaredValuesError,
        ValueCodes as ValueCodes,
        count_pairs as count_pairs,
    )
    from segiou.counting.scores import SCORES_BACKEND as SCORES_BACKEND, decide as decide
    from segiou.counting.window_counts import count_windows as count_windows
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "arrays": ("as_label_array",),
            "channels": (
                "CHANNELS_BACKEND",
                "count_channels",
            ),
            "counts": (
                "ChannelTally",
                "Counts",
                "Tally",
                "check_counts",
            ),
            "encoding": (
                "BACKEND",
                "Encoding",
                "PairCount",
                "UndeclaredValuesError",
                "ValueCodes",
                "count_pairs",
            ),
            "scores": (
                "SCORES_BACKEND",
                "decide",
            ),
            "window_counts": ("count_windows",),
        },
    )
