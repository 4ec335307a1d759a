"""Truth masks to review first: ranked regions and images, page and command."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
