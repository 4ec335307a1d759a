"""Mask files → label arrays: formats, windows, sources and pairing."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
