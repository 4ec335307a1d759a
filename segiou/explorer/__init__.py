"""An interactive page about IoU, and masks to paint on, with the command ``explore``."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
