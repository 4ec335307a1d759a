"""Two folders → pairs of files, by key and never by order."""

from segiou.pairing.finding import MASK_SUFFIXES, find_masks
from segiou.pairing.folders import Pair, Pairing, pair_folders

__all__ = ["MASK_SUFFIXES", "Pair", "Pairing", "find_masks", "pair_folders"]
