"""Analysis of scores: what pixel accuracy hides, comparison of models, slices."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
