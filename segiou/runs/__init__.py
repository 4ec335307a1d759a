"""Runs: the counts of every image of an evaluation, in memory and on disk."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
