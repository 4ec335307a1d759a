"""Scores as integer histograms: curves, thresholds and calibration.

Scores are counted by class, bin and whether the pixel is of the class; everything
else is derived from these counts, which add up like any others.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
