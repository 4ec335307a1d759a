"""Pixels → integers.

``count_pairs`` counts exclusive classes, ``count_channels`` binary channels that
may overlap. Everything is checked here, once, before the compiled kernel or the
NumPy reference sees it.
"""

from segiou.counting._backend import BACKEND
from segiou.counting.arrays import as_label_array
from segiou.counting.channels import CHANNELS_BACKEND, count_channels
from segiou.counting.codes import ValueCodes
from segiou.counting.pairs import Encoding, PairCount, UndeclaredValuesError, count_pairs
from segiou.counting.scores import SCORES_BACKEND, decide

__all__ = [
    "BACKEND",
    "CHANNELS_BACKEND",
    "SCORES_BACKEND",
    "Encoding",
    "PairCount",
    "UndeclaredValuesError",
    "ValueCodes",
    "as_label_array",
    "count_channels",
    "count_pairs",
    "decide",
]
