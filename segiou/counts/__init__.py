"""The integers that every number is a function of."""

from segiou.counts.counts import Counts, check_counts, counts_array
from segiou.counts.tally import ChannelTally, Tally

__all__ = ["ChannelTally", "Counts", "Tally", "check_counts", "counts_array"]
