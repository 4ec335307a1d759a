"""Ratios of counts: pure functions from :class:`segiou.counting.counts.Counts` to float64.

Every function takes counts with any leading axes and the classes last. 0/0 is
NaN: a class that occurs in neither truth nor prediction has no IoU, and no
number is made up for it. Means skip NaN; ``segiou.metrics.protocols`` has the
means of other programs.

Below, TP, FP, FN and TN are one class's counts against the rest, truth
``t = TP + FN``, prediction ``p = TP + FP``, valid pixels ``n = TP + FP + FN + TN``.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(
    __name__,
    {
        "share": "prevalence",
        "fine_grained": "image_level_means",
        "FineGrained": "ImageLevelMeans",
    },
)
