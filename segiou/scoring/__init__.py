"""Pairs → a run, in parallel: the one place where files are read and counted."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
