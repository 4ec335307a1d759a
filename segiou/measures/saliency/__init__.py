"""Scores of grey maps of one foreground: salient and camouflaged objects, polyps."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
