"""Figures for a paper's column, in colour and in black and white.

Every function takes an :class:`matplotlib.axes.Axes` or makes one, 3.3 inches
wide, and returns it; pyplot and its global state are never touched. Needs
matplotlib: ``pip install 'segiou[plot]'``.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
