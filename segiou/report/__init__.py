"""Reports, pages and pictures. Only human-readable output is rounded."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
