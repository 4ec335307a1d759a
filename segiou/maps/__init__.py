"""Accuracy and areas of a map from a reference sample: estimates, report, page and command."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
