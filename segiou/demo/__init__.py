"""Synthetic street scenes and two models' predictions, with the command ``demo``."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
