"""Interactive segmentation: number of clicks until a mask is good enough."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
