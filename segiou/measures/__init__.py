"""What every kind of measure beside the pixels is made of: a measure, its plan, parts, scores."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
