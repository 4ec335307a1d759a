"""Few-shot segmentation: FB-IoU."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
