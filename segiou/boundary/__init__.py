"""Boundary quality of label maps, per class, from counts that add up.

Region overlap forgives ragged edges on large objects; these measures do not.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
