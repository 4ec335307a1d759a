"""What the views of TIFF and ``.npy`` files have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou.readers import MaskError

__all__ = ["FileMask"]


class FileMask(ABC):
    """A mask that stays in its file; windows are read, and not mapped.

    A mapped file that somebody cuts short ends the process; one that is read
    gives an error.

    Attributes
    ----------
    path : str
    shape : tuple of int
        Height and width.
    dtype : dtype
    chunks : tuple of int or None
        What is best read as a whole.
    mode, kind : str
        As :class:`segiou.readers.masks.RawMask`.
    lossy : bool
    """

    mode = ""
    kind = ""
    lossy = False

    def __init__(self, path: str | Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path = str(path)
        self.shape = shape
        self.dtype = dtype
        self.chunks: tuple[int, ...] | None = None
        self._file = os.open(self.path, os.O_RDONLY)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    @abstractmethod
    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        """A window."""

    def _bytes(self, offset: int, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = os.pread(self._file, count - len(data), offset + len(data))
            if not part:
                raise MaskError(self.path, f"is cut off: it should reach byte {offset + count}")
            data += part
        return bytes(data)
