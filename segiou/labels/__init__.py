"""What a class is: its name, the file values and colours that mean it, its group."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
