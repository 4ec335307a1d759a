"""Arrays in MATLAB and HDF5 files: ``.mat``, ``.h5`` and ``.hdf5``."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import import_extra
from segiou.masks.formats.matlab_tags import checked_file
from segiou.masks.formats.numpy_files import Fits, only_mask, whole_labels
from segiou.masks.raw_mask import MaskError, RawMask, damage

_HDF = b"\x89HDF\r\n\x1a\n"
#: MATLAB writes HDF5 after a user block.
_BLOCK = 512
#: Size limit of arrays, and of pieces that are decompressed whole.
_MOST_BYTES = 1 << 30
#: MATLAB's types of numbers; the others are structs, cells, text and objects.
_NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}
_NUMBERS |= {f"int{8 * size}": f"i{size}" for size in (1, 2, 4, 8)}
_NUMBERS |= {f"uint{8 * size}": f"u{size}" for size in (1, 2, 4, 8)}


class _Found(NamedTuple):
    """An array in a file, by its type and shape."""

    shape: tuple[int, ...]
    dtype: Any


def array_mask(
    data: bytes, path: str | Path, key: str = "", fits: Fits | None = None, *, floats: bool = False
) -> RawMask:
    """The mask in a MATLAB or HDF5 file; ``key`` names the array among several."""
    key = key.strip("/")
    with _opened(data, path) as arrays:
        is_inside = any(sign in key for sign in ".{")
        if not (arrays.found or is_inside):
            raise MaskError(path, _no_field("", arrays.others))
        name = key
        if key not in arrays.found and not is_inside:
            name = only_mask(arrays.found, "" if len(arrays.found) == 1 else key, path)
        known = arrays.found.get(name)
        if known is not None:
            size = math.prod(known.shape) * np.dtype(known.dtype).itemsize
            if size > _MOST_BYTES:
                problem = f"declares {size} bytes; save it as uncompressed .npy"
                raise MaskError(path, problem)
            if fits is not None:
                fits(known.shape)
        values = np.asarray(arrays.read(name))
    if not (floats and values.dtype.kind == "f"):
        values = whole_labels(values, path)
    return RawMask(values, "array", Path(path).suffix[1:].upper())


class _Arrays(NamedTuple):
    """The arrays of a file, and how one of them is read."""

    found: Mapping[str, _Found]
    read: Callable[[str], NDArray[Any]]
    #: Structs, cells and the like, in words.
    others: Sequence[str] = ()


@contextmanager
def _opened(data: bytes, path: str | Path) -> Iterator[_Arrays]:
    if data.startswith(_HDF) or data[_BLOCK : _BLOCK + len(_HDF)] == _HDF:
        with _hdf(data, path) as arrays:
            yield arrays
    elif str(path).lower().endswith(".mat"):
        yield _matlab(data, path)
    else:
        raise MaskError(path, f"is not an HDF5 file (starts with {data[:12]!r})")


def _matlab(data: bytes, path: str | Path) -> _Arrays:
    """The arrays of a MATLAB file before version 7.3."""
    from scipy.io import loadmat, whosmat  # type: ignore[import-untyped, unused-ignore]

    problem = "is a corrupt MATLAB file"
    with damage(path, problem):
        data = checked_file(data, _MOST_BYTES)
        # Data of MATLAB's own have a name with underscores.
        listed = [entry for entry in whosmat(io.BytesIO(data)) if not entry[0].startswith("__")]
    found = {n: _Found(tuple(s), np.dtype(_NUMBERS[k])) for n, s, k in listed if k in _NUMBERS}
    others = [f"{name} {kind} {shape}" for name, shape, kind in listed if kind not in _NUMBERS]

    def read(name: str) -> NDArray[Any]:
        parts = [name] if name in found else re.findall(r"[^.{}]+|\{\d+\}", name)
        root, *fields = parts or [name]
        with damage(path, problem):
            values: Any = loadmat(io.BytesIO(data), variable_names=[root]).get(root)
            for field in fields:
                if field.startswith("{"):  # of a cell, counted from 1 along its first axis
                    values = _cell_element(values, int(field[1:-1]))
                    continue
                names = getattr(getattr(values, "dtype", None), "names", None)
                values = values[field] if field in (names or ()) else None
                while (
                    isinstance(values, np.ndarray) and values.dtype == object and values.size == 1
                ):
                    values = values.item()
        if isinstance(values, np.ndarray) and values.dtype.kind == "c":
            text = f"contains complex values in {name!r}; expected integer labels"
            raise MaskError(path, f"{text}. Save its real part")
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
            raise MaskError(path, _no_field(name, [*found, *others]))
        return values

    return _Arrays(found, read, others)


def _cell_element(values: Any, number: int) -> Any:
    """An element of a cell array, counted from 1; None if there is none."""
    is_cell = isinstance(values, np.ndarray) and values.dtype == object
    return values.ravel(order="F")[number - 1] if is_cell and 0 < number <= values.size else None


def _no_field(name: str, known: Sequence[str]) -> str:
    lacks = f"has no array {name!r}" if name else "has no array of numbers"
    if not known:
        return f"{lacks}; save the mask as an array of integers"
    fix = (
        "for a field of a struct, pass array_key='STRUCT.FIELD' (--array-key STRUCT.FIELD), for an "
        "element of a cell 'CELL{1}'"
    )
    return f"{lacks} ({', '.join(known[:8])}); {fix}"


@contextmanager
def _hdf(data: bytes, path: str | Path) -> Iterator[_Arrays]:
    """The arrays of an HDF5 file; those of MATLAB have reversed axes."""
    try:
        h5py = import_extra("h5py", "HDF5 files need h5py", "hdf5")
    except ImportError as error:
        raise MaskError(path, str(error)) from error
    problem = "is a corrupt HDF5 file"
    is_matlab = not data.startswith(_HDF)
    stored: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        # MATLAB keeps the contents of cells in this group.
        is_array = isinstance(item, h5py.Dataset) and item.shape and item.dtype.kind in "biuf"
        if is_array and not name.startswith("#refs#"):
            stored[name] = item

    with damage(path, problem):
        file = h5py.File(io.BytesIO(data), "r")
    with file:
        with damage(path, problem):
            file.visititems(keep)
            step = -1 if is_matlab else 1
            found = {n: _Found(tuple(a.shape[::step]), a.dtype) for n, a in stored.items()}

        def read(name: str) -> NDArray[Any]:
            name = name if name in stored else name.replace(".", "/")
            if name not in stored:
                raise MaskError(path, _no_field(name, [*stored]))
            _check_pieces(stored[name], path)
            with damage(path, problem):
                values: NDArray[Any] = stored[name][()]
            return values.transpose() if is_matlab else values

        yield _Arrays(found, read)


def _check_pieces(array: Any, path: str | Path) -> None:
    """MaskError for an array in other files, or of pieces that take too much memory."""
    with damage(path, "is a corrupt HDF5 file"):
        is_elsewhere = bool(array.is_virtual or array.external)
        size = math.prod(array.chunks or ()) * array.dtype.itemsize
    if is_elsewhere:
        raise MaskError(path, f"stores {array.name} in other files; save it in one file")
    if size > _MOST_BYTES:
        raise MaskError(path, f"has chunks of {size} bytes; save it in smaller chunks")
