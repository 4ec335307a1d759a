"""The contract of scores that are counted in addition to the confusion matrix.

A measure has options, plans the counting for known classes and masks, counts
each image into parts that add up, and derives its scores from them. Each folder here is
a kind of scores, found by its entry point in ``segiou.measures``; nothing outside imports it.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__, folders=True)
