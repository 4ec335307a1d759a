"""Scores of classes as predictions: curves, thresholds and calibration of folders and runs."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
