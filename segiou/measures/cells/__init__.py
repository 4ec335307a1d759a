"""Scores of cells and other objects with ids, as the tools of microscopy report them."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
