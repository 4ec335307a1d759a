"""Means over named sets of classes, such as novel and base classes."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
