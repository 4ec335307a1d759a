"""Number of images for intervals of a given width, with the command ``plan``."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
