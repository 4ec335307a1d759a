"""Distances between the surfaces of structures, in images and volumes."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
