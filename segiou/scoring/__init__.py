"""Pairs → a run, in parallel: the one place where files are read and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.scoring.dispatch import EngineLostError as EngineLostError
    from segiou.scoring.folder import score_folder as score_folder
    from segiou.scoring.inspection import (
        Fit as Fit,
        Inspection as Inspection,
        inspect_folder as inspect_folder,
    )
    from segiou.scoring.pair import PairScorer as PairScorer
    from segiou.scoring.pairings import (
        DataError as DataError,
        Stopped as Stopped,
        pairing_problems as pairing_problems,
        undeclared_text as undeclared_text,
    )
    from segiou.scoring.score_arrays import score as score
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "dispatch": ("EngineLostError",),
            "folder": ("score_folder",),
            "inspection": (
                "Fit",
                "Inspection",
                "inspect_folder",
            ),
            "pair": ("PairScorer",),
            "pairings": (
                "DataError",
                "Stopped",
                "pairing_problems",
                "undeclared_text",
            ),
            "score_arrays": ("score",),
        },
    )
