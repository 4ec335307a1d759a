"""Lesion-wise scores: found, missed and false-positive lesions, by the rules of challenges."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
