"""Volumes of structures in truth and prediction: errors, and their agreement."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
