"""Scores of objects: panoptic quality, and instance-weighted IoU."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
