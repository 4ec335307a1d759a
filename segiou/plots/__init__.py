"""Figures as wide as a column of a paper, readable in colour and in black and white.

Every function draws into the given :class:`matplotlib.axes.Axes`, or into a new
figure 3.3 inches wide, which becomes the current one of pyplot, and returns the axes.
Requires matplotlib: ``pip install 'segiou[plot]'``.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
