"""Scores of referring segmentation: one mask per expression, which may have no target."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
