"""Counts that grow batch by batch, merge and travel: a matrix of classes, and channels."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
