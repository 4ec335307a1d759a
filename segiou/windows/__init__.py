"""Masks larger than memory, counted window by window."""

from __future__ import annotations

from pathlib import Path

from segiou.windows.counting import BigMask, ResizedMask, count_windows, is_lazy, window_slices
from segiou.windows.files import FileMask

__all__ = [
    "BigMask",
    "FileMask",
    "ResizedMask",
    "count_windows",
    "is_lazy",
    "open_big",
    "window_slices",
]

#: Masks of fewer pixels are read whole.
WHOLE_PIXELS = 1 << 26


def open_big(path: str | Path, *, least: int | None = None) -> FileMask | None:
    """A view of a mask file that is too large to be read whole, or None.

    Parameters
    ----------
    path : str or path
        A TIFF or ``.npy`` file; of any other file the answer is None.
    least : int, optional
        Pixels from which on a mask is too large, 64 Mi by default.

    Raises
    ------
    MaskError
        If the file is such a mask, but damaged or of the wrong kind.
    OSError
        If it cannot be read.
    """
    bound = WHOLE_PIXELS if least is None else least
    with Path(path).open("rb") as file:
        magic = file.read(6)
    if magic == b"\x93NUMPY":
        from segiou.windows.npy import open_npy

        return open_npy(path, bound)
    if magic[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        from segiou.windows.tiff import open_tiff

        return open_tiff(path, bound)
    return None
