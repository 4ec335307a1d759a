from segiou.accumulators import histograms as histograms
from segiou.accumulators.base import Accumulator as Accumulator
from segiou.accumulators.channel_counts import ChannelCounts as ChannelCounts
from segiou.accumulators.confusion import ConfusionMatrix as ConfusionMatrix
