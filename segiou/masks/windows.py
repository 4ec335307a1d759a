"""Masks larger than memory, read window by window.

Anything with a shape, an integer dtype and slices is enough: zarr and dask
arrays, memory maps, and the views of TIFF, ``.npy`` and ``.nii`` files that
:func:`open_big` gives. Counts add up, so that windows give the same integers
as the whole.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from segiou.masks.read import MaskError, load_npy

if TYPE_CHECKING:
    from segiou.masks.geotiff import Raster
    from segiou.masks.volumes import Volume

#: Masks of fewer pixels are read whole.
WHOLE_PIXELS = 1 << 26
#: Pixels of a window: large enough that steps between cost nothing.
WINDOW_PIXELS = 1 << 20


class BigMask(Protocol):
    """What a mask must have to be counted window by window."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its size along each axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What its pixels are."""

    def __getitem__(self, index: Any, /) -> Any:
        """A part, by a tuple of slices."""


def window_slices(
    shape: tuple[int, ...], steps: tuple[int, ...] | None = None, pixels: int = WINDOW_PIXELS
) -> Iterator[tuple[slice, ...]]:
    """Slices that cover an array once, in windows of about so many pixels.

    Parameters
    ----------
    shape : tuple of int
        Height and width, in pixels.
    steps : tuple of int, optional
        Sizes of the chunks it is stored in. Windows are made of whole chunks
        along the first axis, as far as that is not too much at once.
    pixels : int
        How many pixels a window has at most, unless a single chunk has more.

    Yields
    ------
    tuple of slice

    Examples
    --------
    >>> list(window_slices((5, 4), pixels=8))
    [(slice(0, 2, None), slice(0, 4, None)), (slice(2, 4, None), slice(0, 4, None)),
     (slice(4, 5, None), slice(0, 4, None))]
    """
    sizes = [max(1, length) for length in shape]
    # From the first axis on, cut as thin as it takes for the rest to be whole.
    for axis, length in enumerate(shape):
        rest = math.prod(shape[axis + 1 :])
        thin = max(1, pixels // max(1, rest))
        if steps is not None:
            thin = max(steps[axis], thin - thin % steps[axis])
        sizes[axis] = max(1, min(length, thin))
        if sizes[axis] * rest <= pixels:
            break
        pixels = max(1, pixels // sizes[axis])
    ranges = [range(0, length, size) for length, size in zip(shape, sizes, strict=True)]
    for starts in product(*ranges):
        yield tuple(
            slice(start, min(start + size, length))
            for start, size, length in zip(starts, sizes, shape, strict=True)
        )


def is_lazy(array: Any) -> bool:
    """Whether an array is stored in chunks, as those of zarr, dask and h5py are.

    Parameters
    ----------
    array : array_like
        Any array.

    Returns
    -------
    bool
    """
    return not isinstance(array, np.ndarray) and chunks_of(array) is not None


def chunks_of(mask: Any) -> tuple[int, ...] | None:
    """Sizes of the chunks that a mask is stored in, None where it has none."""
    # zarr gives one size an axis, dask the sizes of all chunks.
    chunks = getattr(mask, "chunks", None)
    if not isinstance(chunks, tuple) or len(chunks) != len(mask.shape):
        return None
    return tuple(max(1, max(c) if isinstance(c, tuple) else int(c)) for c in chunks)


def open_big(path: str | Path, *, least: int | None = None) -> FileMask | None:
    """A view of a mask file that is too large to be read whole, or None.

    Parameters
    ----------
    path : str or path
        A TIFF, ``.npy`` or ``.nii`` file; any other file gives None.
    least : int, optional
        Pixels from which on a mask is too large, 64 Mi by default.

    Returns
    -------
    FileMask or None

    Raises
    ------
    ImportError
        If a volume needs the extra ``volumes``.
    MaskError
        If the file is such a mask, but damaged or of the wrong kind.
    OSError
        If it cannot be read.
    """
    bound = WHOLE_PIXELS if least is None else least
    with Path(path).open("rb") as file:
        magic = file.read(6)
    if magic == b"\x93NUMPY":
        # Mapped for its header only: nothing of the map is ever touched.
        array = load_npy(Path(path), Path(path).stat().st_size, path)
        assert isinstance(array, np.memmap)
        return None if array.size < bound else NpyMask(path, array)
    if magic[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        from segiou.masks.tiff import open_tiff

        return open_tiff(path, bound)
    if str(path).lower().endswith(".nii"):
        from segiou.masks.volumes import open_nifti

        return open_nifti(path, bound)
    return None


class ResizedMask:
    """A mask at another size: each pixel is the nearest one of the mask.

    Parameters
    ----------
    mask : BigMask
        The mask.
    shape : tuple of int
        The size that is wanted, in pixels.
    """

    def __init__(self, mask: BigMask, shape: tuple[int, ...]) -> None:
        self._mask = mask
        self.shape = shape
        self.dtype: Any = mask.dtype
        self._nearest = [
            ((2 * np.arange(new, dtype=np.int64) + 1) * old) // (2 * max(1, new))
            for old, new in zip(mask.shape, shape, strict=True)
        ]

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        if 0 in self.shape:
            return np.empty(
                [len(range(*part.indices(n))) for part, n in zip(index, self.shape, strict=True)],
                dtype=self.dtype,
            )
        wanted = [near[part] for near, part in zip(self._nearest, index, strict=True)]
        part = np.asarray(self._mask[tuple(slice(int(w[0]), int(w[-1]) + 1) for w in wanted)])
        for axis, nearest in enumerate(wanted):
            part = part.take(nearest - nearest[0], axis=axis)
        return part


#: Fetches the bytes of a remote file from one place to another.
Reader = Callable[[int, int], bytes]


class RemoteFile(NamedTuple):
    """A file at an address: open, its size, what fetches parts of it, and where fsspec has it."""

    file: Any
    size: int
    read: Reader
    files: Any
    name: str


class FileMask(ABC):
    """A mask that stays in its file; windows are read, and not mapped.

    If somebody cuts the file short, reading gives an error, where a map would
    end the process.

    Parameters
    ----------
    path : str or Path
        The file.
    shape : tuple of int
        Height and width, in pixels.
    dtype : dtype
        Type of the values.
    read : Reader, optional
        Reads a window; by default bytes of the file.

    Attributes
    ----------
    path : str
    shape : tuple of int
        Height and width.
    dtype : dtype
    chunks : tuple of int or None
        Size of the pieces that are best read as a whole.
    mode, kind : str
        As :class:`segiou.masks.read.RawMask`.
    lossy : bool
    volume : Volume, optional
        The same with its geometry, of a format that has one.
    raster : Raster, optional
        Where the pixels of a GeoTIFF lie, and which value is no data.
    """

    mode: str = ""
    kind = ""
    lossy: bool = False
    volume: Volume | None = None
    raster: Raster | None = None

    def __init__(
        self,
        path: str | Path,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        read: Reader | None = None,
    ) -> None:
        self.path: str = str(path)
        self.shape = shape
        self.dtype = dtype
        self.chunks: tuple[int, ...] | None = None
        self._file = None if read else os.open(self.path, os.O_RDONLY)
        self._read_remote = read

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)

    @abstractmethod
    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        """A window."""

    def _bytes(self, offset: int, count: int) -> bytes:
        parts: list[bytes] = []
        found = 0
        while found < count:
            start = offset + found
            if self._read_remote is not None:
                parts.append(self._read_remote(start, offset + count)[: count - found])
            else:
                assert self._file is not None
                parts.append(os.pread(self._file, count - found, start))
            if not parts[-1]:
                raise MaskError(self.path, f"is cut off: it should reach byte {offset + count}")
            found += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _window(
        self, index: tuple[slice, ...], shape: tuple[int, ...], offset: int
    ) -> NDArray[Any]:
        """Read a window of an array whose last axis runs fastest, and which begins at a byte."""
        spans = [part.indices(length)[:2] for part, length in zip(index, shape, strict=True)]
        out = np.empty([stop - start for start, stop in spans], dtype=self.dtype)
        # From this axis on, the window lies in one piece.
        cut = len(shape) - 1
        while cut > 0 and spans[cut] == (0, shape[cut]):
            cut -= 1
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        for at in product(*(range(*span) for span in spans[:cut])):
            first = sum(i * stride for i, stride in zip(at, strides, strict=False))
            first += spans[cut][0] * strides[cut]
            target = out[tuple(i - span[0] for i, span in zip(at, spans, strict=False))]
            data = self._bytes(offset + first * self.dtype.itemsize, target.nbytes)
            target[...] = np.frombuffer(data, dtype=self.dtype).reshape(target.shape)
        return out


class NpyMask(FileMask):
    """A large ``.npy`` file."""

    mode: str = "npy"
    kind = "NPY"

    def __init__(self, path: str | Path, array: np.memmap[Any, Any]) -> None:
        super().__init__(path, array.shape, array.dtype)
        self._offset = int(array.offset)
        self._fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        if self._fortran:
            self.chunks: tuple[int, ...] | None = (*self.shape[:-1], 1)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        if self._fortran:
            return self._window(index[::-1], self.shape[::-1], self._offset).transpose()
        return self._window(index, self.shape, self._offset)
