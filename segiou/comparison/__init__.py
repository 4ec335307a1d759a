"""Two or more models on the same images: a difference of models, or of images."""

from segiou.comparison.comparing import compare
from segiou.comparison.findings import Comparison, Difference, Mover, PairComparison, Ranked
from segiou.comparison.pairing import DifferentImagesError, PairedRun
from segiou.comparison.permutation import holm, permutation_p
from segiou.comparison.power import Power, power

__all__ = [
    "Comparison",
    "Difference",
    "DifferentImagesError",
    "Mover",
    "PairComparison",
    "PairedRun",
    "Power",
    "Ranked",
    "compare",
    "holm",
    "permutation_p",
    "power",
]
