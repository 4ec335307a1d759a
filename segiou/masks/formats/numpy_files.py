"""NumPy files: ``.npy`` and ``.npz``, and the members of zip archives.

Headers are read first, so that memory is taken only for arrays that are wanted.
"""

from __future__ import annotations

import bz2
import copy
import io
import lzma
import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.masks.formats.decompression import inflater, pieces
from segiou.masks.raw_mask import MaskError, RawMask, damage, image_shape

#: Raises an error for a shape that is not wanted.
Fits = Callable[[tuple[int, ...]], object]
#: Size limit of arrays whose wanted shape is unknown, which are decompressed whole.
_MOST_BYTES = 1 << 30
#: Values converted at once.
_PIECE = 1 << 15
#: More than the longest header.
_HEAD_BYTES = 1 << 17
_NPY, _NPZ = "is a corrupt or unsafe .npy file", "is a corrupt or unsafe .npz file"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_VERSION_1 = b"\x93NUMPY\x01\0"
#: Headers of arrays of one type. NumPy parses them as Python, which before 3.11.8 and 3.12.2
#: fails by chance while other threads do the same (python/cpython#106905).
_PLAIN = re.compile(
    rb"\{'descr': '([^'\\]+)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d+, ?)*\d*)\),? *\}\s*"
)


class NpyHeader(NamedTuple):
    """Layout of an array in an ``.npy`` file."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @classmethod
    def of(cls, head: bytes, path: str | Path, problem: str = _NPY) -> NpyHeader:
        """The header in the first bytes of a file."""
        with damage(path, problem):
            header = cls._plain(head) or cls._parsed(head)
            if header.dtype.hasobject:
                msg = "it contains Python objects"
                raise ValueError(msg)
            return header

    @classmethod
    def _plain(cls, head: bytes) -> NpyHeader | None:
        """A header that is one of :data:`_PLAIN`, else None."""
        start = len(_VERSION_1) + 2
        end = start + int.from_bytes(head[start - 2 : start], "little")
        match = _PLAIN.fullmatch(head, start, end)
        if match is None or end > len(head) or not head.startswith(_VERSION_1):
            return None
        descr, is_fortran, shape = match.groups()
        lengths = tuple(int(length) for length in shape.split(b",") if length.strip())
        return cls(lengths, is_fortran == b"True", np.dtype(descr.decode("latin1")), end)

    @classmethod
    def _parsed(cls, head: bytes) -> NpyHeader:
        """Any header, as NumPy reads it."""
        file = io.BytesIO(head)
        return cls(*_HEADERS[np.lib.format.read_magic(file)](file), file.tell())

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def npy_array(data: bytes, path: str | Path, fits: Fits | None = None) -> NDArray[Any]:
    """The array of an ``.npy`` file with this content, which it shares."""
    header = NpyHeader.of(data[:_HEAD_BYTES], path)
    if fits is not None:
        fits(header.shape)
    with damage(path, _NPY):
        values = np.frombuffer(data, header.dtype, math.prod(header.shape), header.offset)
        array: NDArray[Any] = values.reshape(header.shape, order="F" if header.is_fortran else "C")
    _check_end(header.size, len(data), path)
    return array


def mapped_npy(path: Path) -> NDArray[Any]:
    """The array of an ``.npy`` file, memory-mapped."""
    with damage(path, _NPY):
        with path.open("rb") as file:
            header = NpyHeader.of(file.read(_HEAD_BYTES), path)
        order: Any = "F" if header.is_fortran else "C"
        mapped: Any = np.memmap(path, header.dtype, "r", header.offset, header.shape, order)
        _check_end(header.size, path.stat().st_size, path)
    array: NDArray[Any] = mapped
    return array


def whole_labels(array: NDArray[Any], path: str | Path) -> NDArray[Any]:
    """Integers or bool of an array, also of floats that are whole numbers; MaskError for others."""
    if array.dtype.kind in "biu":
        return array
    example = ""
    if array.dtype.kind == "f":
        if (integers := as_integers(array)) is not None:
            return integers
        example = f" [such as {others_than_integers(array)[0]!s:.24}]"
    raise MaskError(path, _no_labels(array.dtype, array.shape, example))


def _no_labels(dtype: np.dtype[Any], shape: tuple[int, ...], example: str = "") -> str:
    """The problem of an array of other values than labels."""
    kind, fix = dtype.newbyteorder("="), "save array.astype(int)"  # without the byte order
    if kind.kind == "f":  # integers of scores would be 0
        decided = " with a threshold, such as --threshold 0.5"
        decided = "" if len(image_shape(shape)) > 2 else decided
        fix = f"for scores, pass measures=['scores'] (--scores){decided}; for labels, {fix}"
    return f"contains {kind} values; expected integer labels; {fix}{example}"


def as_integers(values: NDArray[Any]) -> NDArray[Any] | None:
    """Floats as the smallest integers that they equal; None if one is not a whole number."""
    kinds = (np.uint8, np.int32, np.int64)
    return next((cast for kind in kinds if (cast := _cast(values, kind)) is not None), None)


def others_than_integers(values: NDArray[Any]) -> NDArray[Any]:
    """The floats that are not whole numbers."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values[values.astype(np.int64) != values])


def _cast(values: NDArray[Any], kind: type) -> NDArray[Any] | None:
    """The values as integers, None if one does not fit; in pieces that stay in the cache."""
    order: Any = "F" if values.flags.f_contiguous else "C"
    flat = values.ravel(order)
    integers: NDArray[Any] = np.empty(values.size, kind)
    with np.errstate(invalid="ignore"):
        for start in range(0, values.size, _PIECE):
            piece, cast = (x[start : start + _PIECE] for x in (flat, integers))
            np.copyto(cast, piece, casting="unsafe")
            # NumPy compares equal types much faster than mixed ones.
            if (cast.astype(values.dtype) != piece).any():
                return None
    return integers.reshape(values.shape, order=order)


def _check_end(end: int, size: int, path: str | Path) -> None:
    if end < size:
        problem = f"is a corrupt .npy file: {size - end} bytes follow its array; save it again"
        raise MaskError(path, problem)


def npz_array(data: bytes, path: str | Path, fits: Fits, names: Sequence[str]) -> NDArray[Any]:
    """The only array of an ``.npz`` file, or the first of these names that it has."""
    with damage(path, _NPZ), zipfile.ZipFile(io.BytesIO(data)) as archive:
        arrays = _arrays(archive)
        chosen = [name for name in names if name in arrays] or [*arrays]
        if len(arrays) != 1 and chosen[:1] not in [[name] for name in names]:
            contents = f"contains {plural(len(arrays), 'array')} ({', '.join([*arrays][:8])})"
            raise MaskError(path, f"{contents}; expected one array, or one named {names[0]!r}")
        return _member(archive, arrays[chosen[0]], path, lambda header: fits(header.shape))


def npz_mask(
    data: bytes, path: str | Path, key: str, fits: Fits | None, *, floats: bool = False
) -> tuple[NDArray[Any], tuple[float, ...] | None]:
    """The mask of an ``.npz`` file and its spacing; ``key`` names the array among several."""
    spacing: NDArray[Any] | None = None
    with damage(path, _NPZ), zipfile.ZipFile(io.BytesIO(data)) as archive:
        arrays = _arrays(archive)
        name = key if key in arrays or len(arrays) > 1 else next(iter(arrays), "")
        if name not in arrays:
            headers = {name: _header(archive, info, path) for name, info in arrays.items()}
            name = only_mask(headers, key, path)
        values = _member(archive, arrays[name], path, fits and partial(_check_labels, fits, path))
        if name != "spacing" and "spacing" in arrays and arrays["spacing"].file_size < 1 << 12:
            spacing = npy_array(zip_member(archive, arrays["spacing"]), path)
    labels = values if floats and values.dtype.kind == "f" else whole_labels(values, path)
    return labels, _spacing_of(spacing, values.shape)


def _arrays(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename.removesuffix(".npy"): info for info in archive.infolist()}


def array_names(data: bytes, path: str | Path) -> list[str]:
    """Names of the arrays in an ``.npz`` file."""
    with damage(path, _NPZ), zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [*_arrays(archive)]


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | Path) -> NpyHeader:
    head = b"".join(_pieces(_packed(archive, info), info, _HEAD_BYTES))
    return NpyHeader.of(head, path, f"{_NPZ}: {info.filename}")


def _member(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    path: str | Path,
    check: Callable[[NpyHeader], object] | None,
) -> NDArray[Any]:
    """An array, of which only the header is decompressed unless it is wanted."""
    header = _header(archive, info, path)
    if check is not None:
        check(header)
    elif header.size > _MOST_BYTES:
        problem = "decompresses beyond the size limit; save it as uncompressed .npy"
        raise MaskError(path, problem)
    if info.file_size > header.size + _HEAD_BYTES:  # what little follows is named below
        problem = f"{info.filename} declares {info.file_size} bytes, its array {header.size}"
        raise MaskError(path, f"{_NPZ}: {problem}")
    return npy_array(zip_member(archive, info), path)


def _check_labels(fits: Fits, path: str | Path, header: NpyHeader) -> None:
    """MaskError for an array of another shape; floats of another shape are scores."""
    try:
        fits(header.shape)
    except MaskError as error:
        if header.dtype.kind != "f":
            raise
        raise MaskError(path, _no_labels(header.dtype, header.shape)) from error


def only_mask(arrays: Mapping[str, Any], key: str, path: str | Path) -> str:
    """The only array of integers that is as large as the largest array; MaskError if several.

    Arrays have a type and a shape.
    """
    known = dict(arrays.items())
    if not key and len(known) == 1:
        return next(iter(known))
    if not key and known:
        largest = max((array.shape for array in known.values()), key=math.prod)
        masks = [
            name
            for name, array in known.items()
            if array.dtype.kind in "biu"
            and array.shape in (largest, largest[:-1])
            and len(array.shape) > 1
        ]
        if len(masks) == 1:
            return masks[0]
    if not known:
        raise MaskError(path, "contains no arrays; save the mask in it, or remove the file")
    several = [f"{name} {array.dtype} {array.shape}" for name, array in known.items()][:8]
    lacks = f"has no array {key!r}" if key else f"contains {len(known)} arrays"
    fix = "name the one with the mask: array_key='TRUTH,PRED' (--array-key TRUTH,PRED)"
    raise MaskError(path, f"{lacks} ({', '.join(several)}); {fix}")


def _spacing_of(sizes: Any, shape: tuple[int, ...]) -> tuple[float, ...] | None:
    """The spacing of a volume along its axes, which files often store in the order x, y, z.

    Axes of one length usually have one spacing. NaN if this does not decide the order.
    """
    if sizes is None or len(shape) != 3 or sizes.shape != (3,) or sizes.dtype.kind not in "fiu":
        return None
    spacing = tuple(map(float, sizes))
    orders = {spacing, spacing[::-1]}
    alike = {
        order
        for order in orders
        if all(order[i] == order[j] for i, j in ((0, 1), (1, 2)) if shape[i] == shape[j])
    }
    fitting = alike if len({*shape}) == 2 else orders
    return fitting.pop() if len(fitting) == 1 else (math.nan,) * 3


def zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Decompress an archive member, which must have exactly the declared size."""
    if info.compress_size > 2 * info.file_size + 4096:
        msg = f"{info.filename} is larger compressed than its declared size"
        raise zipfile.BadZipFile(msg)
    # A list of pieces would take the memory twice when joined.
    content = io.BytesIO()
    checksum = 0
    for piece in _pieces(_packed(archive, info), info, info.file_size + 1):
        content.write(piece)
        checksum = inflater.crc32(piece, checksum)
    if (size := content.tell()) != info.file_size:
        what = "more" if size > info.file_size else "fewer"
        msg = f"{info.filename} has {what} bytes than the {info.file_size} that it declares"
        raise zipfile.BadZipFile(msg)
    if checksum != info.CRC:
        msg = f"Bad CRC-32 for file {info.filename!r}"
        raise zipfile.BadZipFile(msg)
    return content.getvalue()


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The compressed bytes of a member."""
    if info.flag_bits & 1:
        msg = "is encrypted; extract the archive"
        raise zipfile.BadZipFile(msg)
    # zipfile decompresses without a bound and silently stops at the declared size, so it only
    # returns the compressed bytes here.
    raw = copy.copy(info)
    raw.compress_type, raw.file_size = zipfile.ZIP_STORED, info.compress_size
    del raw.CRC
    with archive.open(raw) as file:
        return file.read()


def _pieces(packed: bytes, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
    """At most the first ``most`` decompressed bytes of a member, in pieces."""
    if info.compress_type == zipfile.ZIP_STORED:
        yield packed[:most]
        return
    start, engine = _engine(packed, info.compress_type)
    yield from pieces(engine, packed[start:], most)


def _engine(packed: bytes, kind: int) -> tuple[int, Any]:
    """Start of the compressed bytes, and their decompressor."""
    if kind == zipfile.ZIP_DEFLATED:
        return 0, inflater.decompressobj(-15)
    if kind == zipfile.ZIP_BZIP2:
        return 0, bz2.BZ2Decompressor()
    if kind != zipfile.ZIP_LZMA:
        msg = f"compression type {kind} is not supported"
        raise NotImplementedError(msg)
    # Version and size of the properties; lc, lp and pb in one byte; size of the dictionary.
    _, size, lc_lp_pb, dictionary = struct.unpack_from("<HHBI", packed)
    lp_pb, lc = divmod(lc_lp_pb, 9)
    coding = {"lc": lc, "lp": lp_pb % 5, "pb": lp_pb // 5, "dict_size": dictionary}
    filters = [{"id": lzma.FILTER_LZMA1, **coding}]
    return 4 + size, lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)


def is_of_nnunet(content: bytes | RawMask) -> bool:
    """Whether a file contains nnU-Net's exported probabilities, which have reversed axes."""
    if isinstance(content, RawMask) or content[:4] != b"PK\x03\x04":
        return False
    return any(content[30:].startswith(name) for name in (b"probabilities.npy", b"softmax.npy"))
