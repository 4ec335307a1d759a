"""Pixels → integers.

:func:`count_pairs` counts exclusive classes, :func:`count_channels` binary channels that may
overlap. Arguments are checked here, once, before the compiled kernel or the NumPy reference
sees them.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
