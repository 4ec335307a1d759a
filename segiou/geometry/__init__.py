"""IoU of other kinds of sets: boxes, polygons, intervals, label sets, annotators."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
