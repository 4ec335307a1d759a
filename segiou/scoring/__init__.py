"""Scoring of mask pairs, in parallel: the only package that reads and counts files."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
