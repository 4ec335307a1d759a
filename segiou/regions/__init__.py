"""Regions of label images and the distances between them, which several kinds of scores need."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
