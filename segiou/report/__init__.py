"""Numbers → something to read. Only what people read is rounded."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
