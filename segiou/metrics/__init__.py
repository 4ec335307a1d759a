"""Ratios of counts: pure functions from :class:`segiou.counting.counts.Counts` to float64.

Every function accepts counts with any leading axes and the classes on the last
axis. 0/0 is NaN, so an absent class has no IoU. Means skip NaN;
``segiou.metrics.protocols`` has the averages of other tools.

In the formulas, TP, FP, FN and TN are the counts of one class against the rest,
``t = TP + FN`` its pixels in the truth, ``p = TP + FP`` its pixels in the
prediction, and ``n = TP + FP + FN + TN`` all valid pixels.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
