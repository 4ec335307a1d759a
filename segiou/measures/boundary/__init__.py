"""Boundary quality of label maps per class, computed from counts that add up.

Unlike region overlap, these measures penalise ragged edges on large objects.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
