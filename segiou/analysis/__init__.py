"""Analysis of scores: class imbalance, uncertainty and comparison of models."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
