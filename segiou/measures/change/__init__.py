"""Scores of semantic change detection: SeK, F_scd and their mean IoU."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
