"""Files → label arrays: formats, windows, folders and archives, and which files are a pair."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
