"""Pairs → a run, in parallel: the one place where files are read and counted."""

from segiou.scoring.arrays import score
from segiou.scoring.dispatch import EngineLostError
from segiou.scoring.engines import score_pairs
from segiou.scoring.folder import score_folder
from segiou.scoring.pair import PairScorer, resized_nearest
from segiou.scoring.pairings import pair_paths, pairing_problems
from segiou.scoring.problems import DataError, Stopped, undeclared_text

__all__ = [
    "DataError",
    "EngineLostError",
    "PairScorer",
    "Stopped",
    "pair_paths",
    "pairing_problems",
    "resized_nearest",
    "score",
    "score_folder",
    "score_pairs",
    "undeclared_text",
]
