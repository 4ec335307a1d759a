"""Mask files → label arrays: file formats, NumPy files, and labels of raw masks."""

from __future__ import annotations

import bz2
import copy
import io
import lzma
import math
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_flag, check_kind, check_path
from segiou._support.files import os_problem
from segiou.labels.label_set import LabelSet
from segiou.masks.pairing import (
    IS_A_PICKLE,
    MASK_SUFFIXES,
    RASTER_SUFFIXES,
    UNSUPPORTED,
    split_ending,
)

if TYPE_CHECKING:
    from segiou.masks.georeference import Raster
    from segiou.masks.image_files import Scratch
    from segiou.masks.volumes import Volume

# zlib-ng is several times faster and equally strict; faster libraries accept codes that
# RFC 1951 forbids.
inflater: Any
try:
    from zlib_ng import zlib_ng as inflater
except ImportError:
    inflater = zlib

#: The largest ratio of a deflate stream: 258 bytes from two bits.
MAX_RATIO = 1032

#: The fix for masks of two classes with values between them.
SOFT_EDGES = (
    "if edges are soft, pass truth_threshold=128, pred_threshold=128 or both "
    "(--truth-threshold 128, --pred-threshold 128)"
)
#: Size limit of arrays in .npz files, which are decompressed whole.
_MOST_NPZ_BYTES = 1 << 30
#: Errors of libraries whose text does not describe the file.
_SLIPS = (AssertionError, AttributeError, IndexError, KeyError, TypeError)
#: Extensions of label volumes.
VOLUME_SUFFIXES = (".nii.gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd")
#: Extension of point cloud labels.
POINT_SUFFIX = ".label"
#: Candidate values of pixels outside all segments.
VOID_VALUES = (0, 255, 65535, (1 << 31) - 1, -1)
TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


class MaskError(ValueError):
    """A file that cannot be read as a mask; the message names it and the fix.

    Attributes
    ----------
    path : str
        The file.
    problem : str
        The problem and its fix, without the path.
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path: str = str(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.path, self.problem))


class LossyMaskError(MaskError):
    """A mask in a lossy format."""


class RawMask(NamedTuple):
    """The content of a mask file, before a label set is applied.

    Attributes
    ----------
    values : ndarray or FileMask
        Labels of shape (H, W), integers or bool, or colours: (H, W, 3), uint8, or
        packed as by :func:`segiou.masks.colors.packed`. Images otherwise equal
        ``np.asarray`` of Pillow's image; huge files give a windowed mask.
    mode : str
        Pillow's mode (``"L"``, ``"P"``, ``"RGB"``, …), or the kind of file
        (``"npy"``, ``"npz"``, ``"tiff"``).
    kind : str
        Name of the file format, such as ``"PNG"``.
    lossy : bool
        Whether the format may have changed values.
    volume : Volume, optional
        The same values with their geometry, for volume formats.
    raster : Raster, optional
        Georeference and nodata value of a GeoTIFF.
    names : tuple of str
        Class names indexed by the values, for drawn shapes. The first is empty
        and stands for pixels outside all shapes.
    background : int, optional
        Value of pixels outside all objects, for JSON files of objects.
    void : int, optional
        Value of pixels outside all segments, for panoptic files.
    valid : ndarray of bool, optional
        Pixels inside the region of interest, if there is one.
    spacing : tuple of float, optional
        Size of a voxel along each axis, if an ``.npz`` file has it.
    maximum : int, optional
        Largest possible value, for PGM files, which declare it.
    """

    values: Any
    mode: str
    kind: str
    lossy: bool = False
    volume: Volume | None = None
    raster: Raster | None = None
    names: tuple[str, ...] = ()
    background: int | None = None
    void: int | None = None
    valid: Any = None
    spacing: tuple[float, ...] | None = None
    maximum: int | None = None

    @property
    def is_color(self) -> bool:
        """Whether the values are colours."""
        return self.mode in ("RGB", "RGBA")

    def outside(self, labels: LabelSet) -> int | None:
        """Label of pixels outside all segments, if the file has segments.

        Parameters
        ----------
        labels : LabelSet
            Classes whose values void must not take.

        Returns
        -------
        int or None
            The label, or None if the file has no segments.
        """
        return self.background if self.void is None else void_value(self.void, labels)


def void_value(value: int, labels: LabelSet) -> int:
    """Void's value in a file, or another value if a class has it."""
    return next(one for one in (value, *VOID_VALUES) if one not in labels.declared_values)


@contextmanager
def damage(path: str | Path, what: str, *passed: type[BaseException]) -> Iterator[None]:
    """Turn errors of a library that reads a file into errors that name the file."""
    try:
        yield
    except MaskError:
        raise
    except passed:
        raise
    except Exception as error:
        # Some libraries print a page of context first; their slips say nothing about the file.
        text = str(error).rstrip().rpartition("\n")[2].strip() or type(error).__name__
        text = "" if isinstance(error, _SLIPS) else f": {text}"
        raise MaskError(path, f"{what}{text}") from error


def read_mask(
    path: str | Path, labels: LabelSet | None = None, *, allow_lossy: bool = False
) -> NDArray[np.integer[Any] | np.bool_]:
    """Read the labels of a mask file.

    Parameters
    ----------
    path : str or path
        The file.
    labels : LabelSet, optional
        Required for colour masks: each pixel gets the first value of the class
        with exactly its colour.
    allow_lossy : bool
        Whether to accept JPEG and other lossy formats.

    Returns
    -------
    ndarray of int or bool, shape (H, W)
        File values; palette images give their indices, and grey PNG samples of 2
        and 4 bits are scaled to 0–255, as in Pillow.

    Raises
    ------
    MaskError
        If the file cannot be read as a mask; the message states the problem and its fix.
    """
    if labels is not None:
        check_kind("labels", labels, LabelSet, "a LabelSet, as returned by segiou.load_labels")
    check_flag("allow_lossy", allow_lossy)
    return to_labels(open_mask(path), path, labels, allow_lossy=allow_lossy)


def open_mask(path: str | Path) -> RawMask:
    """Read the content of a mask file.

    Supported are PNG, TIFF, NumPy files, label volumes (NIfTI, NRRD, MetaImage)
    and the other formats of Pillow. Palette images give their indices, never
    their colours. A TIFF in which 0 is white gives its stored values. Grey PNG
    samples of 2 and 4 bits are scaled to 0–255, as in Pillow.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    MaskError
        If it is not a regular file, cannot be read, is corrupt, has several
        frames, is not fully opaque, or contains floats.
    """
    check_path("path", path)
    path = Path(path).expanduser()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise MaskError(path, "is not a regular file")
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                return RawMask(load_npy(path, path), "npy", "NPY")
            if path.name.lower().endswith(".nii"):
                from segiou.masks.volumes import read_volume

                return _of_volume(read_volume(path))
            file.seek(0)
            return from_bytes(file.read(), path)
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error


def from_bytes(
    data: bytes | RawMask, path: str | Path, scratch: Scratch | None = None, *, key: str = ""
) -> RawMask:
    """Read a mask from the content of its file; values in ``scratch`` last until its next use.

    ``key`` names the array in an ``.npz`` file with several.
    """
    if isinstance(data, RawMask):  # from a source that decodes its masks
        return data
    if not data:
        raise MaskError(path, "is empty (0 bytes)")
    if data[:6] == b"\x93NUMPY":
        return RawMask(load_npy(io.BytesIO(data), path), "npy", "NPY")
    if data[:1] == b"\x80" and data[-1:] == b".":
        raise MaskError(path, IS_A_PICKLE)
    if data[:4] == b"PK\x03\x04":
        return _from_npz(data, path, key)
    if data[:4] in TIFF_MAGIC:
        from segiou.masks.tiff import from_tiff

        return from_tiff(data, path)
    ending = split_ending(str(path))[1].lower()
    if ending in VOLUME_SUFFIXES:
        from segiou.masks.volumes import volume_from_bytes

        return _of_volume(volume_from_bytes(data, path))
    if ending == POINT_SUFFIX:
        if len(data) % 4:
            raise MaskError(path, f"is corrupt: {len(data)} bytes is not a multiple of 4")
        # SemanticKITTI: the low half is the class of a point, the high half its object.
        return RawMask(np.frombuffer(data, dtype="<u4")[None], "label", "LABEL")
    if ending == "_lidarseg.bin":
        # nuScenes: one byte per point.
        return RawMask(np.frombuffer(data, dtype=np.uint8)[None], "lidarseg", "LIDARSEG")
    if ending in UNSUPPORTED:
        raise MaskError(path, UNSUPPORTED[ending])
    if ending not in MASK_SUFFIXES and (added := _from_plugin(data, path, ending)) is not None:
        return added
    if ending in RASTER_SUFFIXES:
        from segiou.masks.rasters import open_raster

        raw = open_raster(path)
        with raw.values as values:
            return raw._replace(values=values[:, :])
    from segiou.masks.image_files import from_image

    return from_image(data, path, scratch)


def _from_plugin(data: bytes, path: str | Path, ending: str) -> RawMask | None:
    """The mask read by a plug-in; None if no plug-in supports the extension."""
    from segiou._support.optional import find_plugin

    if (read := find_plugin("formats", ending[1:])) is None:
        return None
    with damage(path, f"cannot be read as {ending}"):
        values = np.asarray(read(data, str(path)))
    is_color = values.ndim == 3 and values.shape[2] == 3 and values.dtype == np.uint8
    if not is_color and (values.ndim != 2 or values.dtype.kind not in "biu"):
        found = f"{values.dtype.name} of shape {values.shape}"
        raise MaskError(
            path, f"was read as {found}; expected integers (H, W) or uint8 colours (H, W, 3)"
        )
    return RawMask(values, "RGB" if is_color else ending[1:], ending[1:].upper())


def to_labels(
    raw: RawMask, path: str | Path, labels: LabelSet | None, *, allow_lossy: bool = False
) -> NDArray[np.integer[Any] | np.bool_]:
    """Labels of a mask; colours are mapped exactly by the label set."""
    if raw.lossy and not allow_lossy:
        fix = "save masks as PNG, or pass allow_lossy=True (--allow-lossy)"
        if labels is not None and labels.num_classes == 2:
            fix = f"{SOFT_EDGES}, {fix.removeprefix('save masks as PNG, ')}"
        problem = f"is a lossy {raw.kind}, which can change label values; {fix}"
        raise LossyMaskError(path, problem)
    if raw.kind == "LABEL":
        return np.asarray(raw.values & np.uint32(0xFFFF))
    if raw.names:
        return _labels_of_names(raw, labels, path)
    values: NDArray[Any] = raw.values
    if raw.void is not None and labels is not None:
        return _replaced(values, raw.void, void_value(raw.void, labels))
    if not raw.is_color:
        return values
    from segiou.masks.colors import labels_of_colors

    return labels_of_colors(raw, labels, path)


def with_background(values: Any, own: int | None, of_truth: int | None, path: str | Path) -> Any:
    """Labels of a prediction whose pixels outside all objects have their value in the truth."""
    if own is None or of_truth is None or own == of_truth:
        return values
    if (values == of_truth).any():
        problem = (
            f"contains category {of_truth}, which is the value of pixels outside all segments of "
            f"its truth; add category {of_truth} to 'categories' in the truth file"
        )
        raise MaskError(path, problem)
    return _replaced(values, own, of_truth)


def _replaced(values: NDArray[Any], old: int, new: int) -> NDArray[Any]:
    """The same with one value in place of another."""
    if old == new:
        return values
    dtype = np.promote_types(values.dtype, np.min_scalar_type(new))
    return np.where(values == old, dtype.type(new), values)


def load_npy(file: Path | io.BytesIO, path: str | Path) -> NDArray[Any]:
    """Read the integers of an ``.npy`` file, memory-mapped if a path is given."""
    array: NDArray[Any]
    with damage(path, "is a corrupt or unsafe .npy file"):
        if isinstance(file, Path):
            array = mapped = np.load(file, mmap_mode="r", allow_pickle=False)
            end, size = mapped.offset + mapped.nbytes, file.stat().st_size
        else:
            array = np.lib.format.read_array(file, allow_pickle=False)
            end, size = file.tell(), len(file.getbuffer())
    if array.dtype.kind not in "biu":
        kind = array.dtype.newbyteorder("=")  # without the byte order
        problem = f"contains {kind} values; expected integer labels; save array.astype(int)"
        if array.dtype.kind == "f" and array.ndim >= 3:
            problem += ", or use --scores if these are class scores"
        raise MaskError(path, problem)
    if end < size:
        problem = f"is a corrupt .npy file: {size - end} bytes follow its array; save it again"
        raise MaskError(path, problem)
    return array


def _of_volume(volume: Volume) -> RawMask:
    return RawMask(volume.values, "volume", "volume", volume=volume)


def _from_npz(data: bytes, path: str | Path, key: str = "") -> RawMask:
    spacing: Any = None
    with (
        damage(path, "is a corrupt or unsafe .npz file"),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        arrays = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        name = key if key in arrays or len(arrays) > 1 else next(iter(arrays), "")
        if name not in arrays:
            name = _only_mask(archive, arrays, name, path)
        if arrays[name].file_size > _MOST_NPZ_BYTES:
            problem = "decompresses beyond the size limit; save it as uncompressed .npy"
            raise MaskError(path, problem)
        content = zip_member(archive, arrays[name])
        if name != "spacing" and "spacing" in arrays and arrays["spacing"].file_size < 1 << 12:
            spacing = io.BytesIO(zip_member(archive, arrays["spacing"]))
            spacing = np.lib.format.read_array(spacing, allow_pickle=False)
    values = load_npy(io.BytesIO(content), path)
    return RawMask(values, "npz", "NPZ", spacing=_spacing_of(spacing, values.shape))


def _only_mask(
    archive: zipfile.ZipFile, arrays: dict[str, zipfile.ZipInfo], key: str, path: str | Path
) -> str:
    """The only array of integers that is as large as the largest array; MaskError if several."""
    shapes, dtypes = {}, {}
    for name, info in arrays.items():
        with archive.open(info) as file:
            version = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
            shapes[name], _, dtypes[name] = read(file)
    if not key and shapes:
        largest = max(shapes.values(), key=math.prod)
        found = [
            name
            for name, shape in shapes.items()
            if dtypes[name].kind in "biu" and shape in (largest, largest[:-1]) and len(shape) > 1
        ]
        if len(found) == 1:
            return found[0]
    several = [f"{name} {dtypes[name]} {shape}" for name, shape in shapes.items()][:8]
    lacks = f"has no array {key!r}" if key else f"contains {len(arrays)} arrays"
    fix = "name the one with the mask: array_key='TRUTH,PRED' (--array-key TRUTH,PRED)"
    raise MaskError(path, f"{lacks} ({', '.join(several)}); {fix}")


def _spacing_of(found: Any, shape: tuple[int, ...]) -> tuple[float, ...] | None:
    """The spacing of a volume along its axes, which files often store in the order x, y, z.

    Axes of one length usually have one spacing. NaN if this does not decide the order.
    """
    if found is None or len(shape) != 3 or found.shape != (3,) or found.dtype.kind not in "fiu":
        return None
    given = tuple(map(float, found))
    orders = {given, given[::-1]}
    alike = {
        one
        for one in orders
        if all(one[i] == one[j] for i, j in ((0, 1), (1, 2)) if shape[i] == shape[j])
    }
    fitting = alike if len({*shape}) == 2 else orders
    return fitting.pop() if len(fitting) == 1 else (math.nan,) * 3


def zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Decompress an archive member, which must have exactly the declared size."""
    # zipfile decompresses without a bound and silently stops at the declared size, so it only
    # returns the compressed bytes here.
    raw = copy.copy(info)
    raw.compress_type, raw.file_size = zipfile.ZIP_STORED, info.compress_size
    del raw.CRC
    if info.compress_size > 2 * info.file_size + 4096:
        msg = f"{info.filename} is larger compressed than its declared size"
        raise zipfile.BadZipFile(msg)
    with archive.open(raw) as file:
        content = _decompressed(file.read(), info.compress_type, info.file_size + 1)
    if len(content) != info.file_size:
        what = "more" if len(content) > info.file_size else "fewer"
        msg = f"{info.filename} has {what} bytes than the {info.file_size} that it declares"
        raise zipfile.BadZipFile(msg)
    if zlib.crc32(content) != info.CRC:
        msg = f"Bad CRC-32 for file {info.filename!r}"
        raise zipfile.BadZipFile(msg)
    return content


def _decompressed(packed: bytes, kind: int, most: int) -> bytes:
    """At most the first ``most`` decompressed bytes."""
    if kind == zipfile.ZIP_STORED:
        return packed[:most]
    if kind == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-15).decompress(packed, most)
    if kind == zipfile.ZIP_BZIP2:
        return bz2.BZ2Decompressor().decompress(packed, most)
    if kind != zipfile.ZIP_LZMA:
        msg = f"compression type {kind} is not supported"
        raise NotImplementedError(msg)
    # Version and size of the properties; lc, lp and pb in one byte; size of the dictionary.
    _, size, lc_lp_pb, dictionary = struct.unpack_from("<HHBI", packed)
    lp_pb, lc = divmod(lc_lp_pb, 9)
    coding = {"lc": lc, "lp": lp_pb % 5, "pb": lp_pb // 5, "dict_size": dictionary}
    engine = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, **coding}])
    return engine.decompress(packed[4 + size :], most)


def _labels_of_names(
    raw: RawMask, labels: LabelSet | None, path: str | Path
) -> NDArray[np.integer[Any]]:
    """Map each pixel to the first value of the class with its name."""
    known = {one.name: one.values[0] for one in labels.classes} if labels else {}
    ignored = labels.ignore[0] if labels and labels.ignore else None
    free = known.get("background", known.get("_background_", ignored))
    known |= {
        name: value for name, value in (("", free), ("__ignore__", ignored)) if value is not None
    }
    has_free = bool((raw.values == 0).any())
    unknown = [name for name in raw.names if name not in known and (name or has_free)]
    if unknown:
        what = "no label set" if labels is None else f"label set {labels.name!r}"
        named = ", ".join(repr(name) for name in unknown[:8] if name) or "pixels outside all shapes"
        problem = f"has {named}, not declared in {what}; add a class of that name"
        hint = ", and 'background' or an ignored value for pixels outside all shapes"
        raise MaskError(path, problem + (hint if "" in unknown else ""))
    table = np.array([known.get(name, 0) for name in raw.names], dtype=np.int64)
    found: NDArray[np.integer[Any]] = table[raw.values]
    return found
