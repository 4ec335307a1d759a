"""Scores of single components: Dice and IoU around each true component."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
