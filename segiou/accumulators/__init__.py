"""Accumulators that are updated per batch, merged and serialised.

They count confusion matrices (exclusive classes) and channels (overlapping classes).
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
