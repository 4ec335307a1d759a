"""Agreement of raters, and of a model with them: folders, scores, page and command."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
