"""Areas of the classes on the ground, in truth and prediction."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
