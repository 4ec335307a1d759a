"""Label sets: class names, their file values and colours, and groups."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
