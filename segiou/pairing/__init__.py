"""Two folders → pairs of files, by key and never by order."""

from segiou.pairing.finding import IS_A_FILE, MASK_SUFFIXES, find_masks
from segiou.pairing.folders import Pair, Pairing, pair_folders

__all__ = ["IS_A_FILE", "MASK_SUFFIXES", "Pair", "Pairing", "find_masks", "pair_folders"]
