"""From counts of images to intervals and tests: units, scores over units, jackknife, bootstrap."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
