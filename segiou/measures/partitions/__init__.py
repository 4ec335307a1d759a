"""Scores of partitions: adapted Rand error and variation of information."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
