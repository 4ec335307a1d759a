from segiou.accumulators import histograms as histograms
from segiou.accumulators.base import Accumulator as Accumulator
from segiou.accumulators.confusion import (
    ChannelCounts as ChannelCounts,
    ConfusionMatrix as ConfusionMatrix,
)
