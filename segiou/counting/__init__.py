"""Pixels → integers.

``count_pairs`` counts exclusive classes, ``count_channels`` binary channels that
may overlap. Everything is checked here, once, before the compiled kernel or the
NumPy reference sees it.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
