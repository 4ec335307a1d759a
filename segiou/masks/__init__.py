"""Mask files → label arrays: formats, windows, sources and pairing."""

from segiou._support import lazy_face

_RENAMED = {
    "BigMask": "WindowedMask",
    "is_lazy": "is_chunked",
    "open_big": "open_windowed",
    "reoriented": "reorient",
}
__getattr__, __dir__ = lazy_face(__name__, _RENAMED)
