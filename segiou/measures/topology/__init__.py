"""Topology of thin structures: skeletons, connected components and holes."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
