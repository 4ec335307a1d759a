"""Options of resampling as one object: units, resamples, level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from segiou._support.arguments import check_choice, check_integer, check_level
from segiou._support.options import Options, option
from segiou.inference.bootstrapping import resampled
from segiou.inference.dependence import BlockLength, Design, design_of
from segiou.inference.statistics import Statistic
from segiou.inference.units import Groups
from segiou.metrics.ratio import Floats

Method = Literal["jackknife", "percentile", "bca"]
#: Options for differences of models.
PairedMethod = Literal["permutation", "percentile", "bca"]

#: With a million resamples, the Monte Carlo error of the 2.5 % tail is 0.02 points, and the values
#: of a score take 8 MB per class.
MOST_RESAMPLES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Resampling(Options):
    """Units, resamples and level; :func:`segiou.confidence_intervals` documents the options."""

    groups: Groups | None = None
    blocks: BlockLength | None = None
    resamples: int = option(10_000, check_integer, 2, MOST_RESAMPLES)
    seed: int = option(0, check_integer, 0)
    level: float = option(0.95, check_level)
    method: Any = option("jackknife", check_choice, get_args(Method))

    def design(
        self, ids: Sequence[str] | None, number: int, scores: Callable[[], Sequence[Floats]]
    ) -> Design:
        """The units of images, from their names and scores."""
        return design_of(ids, number, scores, self.groups, self.blocks)

    def drawn(self, statistics: Sequence[Statistic]) -> list[Floats]:
        """Values (B, 1 + C) of each statistic on the same resamples."""
        return resampled(statistics, self.resamples, self.seed)


@dataclass(frozen=True, kw_only=True)
class PairedResampling(Resampling):
    """These options of differences; :func:`segiou.compare` documents its own."""

    method: Any = option("permutation", check_choice, ("jackknife", *get_args(PairedMethod)))
    permutations: int = option(10_000, check_integer, 1, MOST_RESAMPLES)
