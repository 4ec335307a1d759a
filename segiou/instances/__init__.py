"""Objects instead of pixels: IoU weighted by the size of instances."""

from segiou._support.lazy import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
