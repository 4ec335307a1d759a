"""How many images give intervals of a wanted width, with the command ``plan``."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
