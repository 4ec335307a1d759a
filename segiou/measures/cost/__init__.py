"""Expected cost: confusions weighted by a table."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
