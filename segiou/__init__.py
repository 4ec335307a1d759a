"""Exact, fast and explained scores for semantic segmentation.

Three lines are enough::

    import segiou
    run = segiou.score_folder("truth/", "predictions/", labels="camvid")
    print(run.report())

Names are loaded when they are first used, so that importing costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BACKEND": "segiou.counting",
    "ChannelCounts": "segiou.channels",
    "ConfusionMatrix": "segiou.confusion",
    "Counts": "segiou.counts",
    "DataError": "segiou.scoring",
    "LabelSet": "segiou.labels",
    "MaskError": "segiou.readers",
    "Protocol": "segiou.protocols",
    "Report": "segiou.report",
    "Run": "segiou.run",
    "bootstrap": "segiou.uncertainty",
    "compare": "segiou.comparison",
    "explain": "segiou.imbalance",
    "load_labels": "segiou.labels",
    "read_mask": "segiou.readers",
    "score": "segiou.scoring",
    "score_folder": "segiou.scoring",
}

__all__ = [
    "BACKEND",
    "ChannelCounts",
    "ConfusionMatrix",
    "Counts",
    "DataError",
    "LabelSet",
    "MaskError",
    "Protocol",
    "Report",
    "Run",
    "bootstrap",
    "compare",
    "explain",
    "load_labels",
    "read_mask",
    "score",
    "score_folder",
]

if TYPE_CHECKING:
    from segiou.channels import ChannelCounts
    from segiou.comparison import compare
    from segiou.confusion import ConfusionMatrix
    from segiou.counting import BACKEND
    from segiou.counts import Counts
    from segiou.imbalance import explain
    from segiou.labels import LabelSet, load_labels
    from segiou.protocols import Protocol
    from segiou.readers import MaskError, read_mask
    from segiou.report import Report
    from segiou.run import Run
    from segiou.scoring import DataError, score, score_folder
    from segiou.uncertainty import bootstrap


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module 'segiou' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
