"""Regions of truth masks to review first: where a whole region disagrees with the prediction."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
