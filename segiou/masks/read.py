"""Mask files → label arrays: formats, PNG decoding, and colours.

Plain PNG masks are decoded by compiled code, with the same result as Pillow, which reads all
others. Corrupt files never give values.
"""

from __future__ import annotations

import bz2
import copy
import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from segiou._support.arguments import check_flag, check_kind, check_path
from segiou._support.files import os_problem
from segiou._support.optional import load_part, warn_missing
from segiou._support.text import plural
from segiou.labels.label_set import LabelSet
from segiou.masks.pairing import IS_A_PICKLE, MASK_SUFFIXES, split_ending

if TYPE_CHECKING:
    from segiou.masks.tiff import Raster
    from segiou.masks.volumes import Volume

_COMPILED = "segiou.masks._png"
_png = load_part(_COMPILED)
#: Whether the compiled decoder is available; if not, :func:`read_png` returns None.
EXTENSION_BUILT = _png is not None

# zlib-ng is several times faster and equally strict; faster libraries accept codes that
# RFC 1951 forbids.
inflater: Any
try:
    from zlib_ng import zlib_ng as inflater
except ImportError:
    inflater = zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Pillow's limit before it warns of a decompression bomb.
MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3
#: The largest ratio of a deflate stream: 258 bytes from two bits.
MAX_RATIO = 1032

#: Larger buffers are not kept.
_MOST_SCRATCH = 1 << 24
#: Spare bytes that the compiled decoder needs.
_GAP = 16
#: Size limit of arrays in .npz files, which are decompressed whole.
_MOST_NPZ_BYTES = 1 << 30
#: Extensions of label volumes.
VOLUME_SUFFIXES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd")
#: Extension of point cloud labels.
POINT_SUFFIX = ".label"
_LOSSY = {"JPEG", "JPEG2000", "MPO", "WEBP", "AVIF", "HEIF"}
_LABEL_MODES = {"1", "L", "P", "I", "I;16", "I;16B", "I;16L"}
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
        Labels of shape (H, W), integers or bool, or colours (H, W, 3), uint8. Images
        equal ``np.asarray`` of Pillow's image; huge files give a windowed mask.
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
    """

    values: Any
    mode: str
    kind: str
    lossy: bool = False
    volume: Volume | None = None
    raster: Raster | None = None
    names: tuple[str, ...] = ()

    @property
    def is_color(self) -> bool:
        """Whether the values are colours."""
        return self.mode in ("RGB", "RGBA")


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
        # Some libraries print a page of context first.
        text = str(error).rstrip().rpartition("\n")[2].strip() or type(error).__name__
        raise MaskError(path, f"{what}: {text}") from error


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
        File values; palette images give their indices.

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
    their colours. A TIFF in which 0 is white gives its stored values.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    RawMask

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


def from_bytes(data: bytes | RawMask, path: str | Path, scratch: Scratch | None = None) -> RawMask:
    """Read a mask from the content of its file; values in ``scratch`` last until its next use."""
    if isinstance(data, RawMask):  # from a source that decodes its masks
        return data
    if not data:
        raise MaskError(path, "is empty (0 bytes)")
    if data[:6] == b"\x93NUMPY":
        return RawMask(load_npy(io.BytesIO(data), path), "npy", "NPY")
    if data[:1] == b"\x80" and data[-1:] == b".":
        raise MaskError(path, IS_A_PICKLE)
    if data[:4] == b"PK\x03\x04":
        return _from_npz(data, path)
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
    if ending not in MASK_SUFFIXES and (added := _from_plugin(data, path, ending)) is not None:
        return added
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
        problem = (
            f"is a lossy {raw.kind}, which can change label values; save masks as PNG, or pass "
            "allow_lossy=True (--allow-lossy)"
        )
        raise LossyMaskError(path, problem)
    if raw.kind == "LABEL":
        return np.asarray(raw.values & np.uint32(0xFFFF))
    if raw.names:
        return _labels_of_names(raw, labels, path)
    values: NDArray[Any] = raw.values
    if not raw.is_color:
        return values
    if labels is None or not labels.has_colors:
        name = "no label set" if labels is None else f"nothing in label set {labels.name!r}"
        problem = f"is a colour image (mode {raw.mode}), but {name} maps its colours to classes"
        if (values == values[..., :1]).all():
            problem += "; its channels are equal, so save it as single-channel PNG"
        else:
            problem += f"; pass a label set with colors{_if_coco(labels)}"
        raise MaskError(path, problem)
    return _labels_of_colors(values, labels, path)


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
        problem = f"contains {kind} values; expected integer labels: save array.astype(int)"
        raise MaskError(path, problem)
    if end < size:
        problem = f"is a corrupt .npy file: {size - end} bytes follow its array; save it again"
        raise MaskError(path, problem)
    return array


def _of_volume(volume: Volume) -> RawMask:
    return RawMask(volume.values, "volume", "volume", volume=volume)


def _from_npz(data: bytes, path: str | Path) -> RawMask:
    with (
        damage(path, "is a corrupt or unsafe .npz file"),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        members = archive.infolist()
        if len(members) != 1:
            listed = ", ".join(info.filename.removesuffix(".npy") for info in members[:8])
            raise MaskError(path, f"contains {len(members)} arrays ({listed}); expected one")
        if members[0].file_size > _MOST_NPZ_BYTES:
            problem = "decompresses beyond the size limit; save it as uncompressed .npy"
            raise MaskError(path, problem)
        content = zip_member(archive, members[0])
    return RawMask(load_npy(io.BytesIO(content), path), "npz", "NPZ")


def zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Decompress an archive member, which must have exactly the declared size."""
    # zipfile decompresses without a bound and silently stops at the declared size, so it only
    # returns the compressed bytes here.
    raw = copy.copy(info)
    raw.compress_type, raw.file_size = zipfile.ZIP_STORED, info.compress_size
    del raw.CRC
    if info.compress_size > 2 * info.file_size + 4096:
        msg = f"{info.filename} is larger compressed than the size that it declares"
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


class Scratch:
    """Reusable memory for the labels of a mask, for one thread.

    Fresh memory costs a page fault per 4096 pixels, which takes longer than
    decoding and is serialised within a process.

    Examples
    --------
    >>> scratch = Scratch()
    >>> first = scratch.take(6)
    >>> second = scratch.take(4)
    >>> bool(np.shares_memory(first, second))
    True
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """``size`` uninitialised bytes; arrays taken before must not be used any more."""
        if size > _MOST_SCRATCH:
            return np.empty(size, np.uint8)
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size]


def read_png(data: bytes, *, scratch: Scratch | None = None) -> RawMask | None:
    """Read a grey or palette PNG of at most eight bits.

    Parameters
    ----------
    data : bytes
        The whole file.
    scratch : Scratch, optional
        Memory for the values, which are valid until its next use.

    Returns
    -------
    RawMask or None
        None if the file is left to Pillow: 16 bits, colour, alpha, interlaced,
        animated, more than 89 million pixels, corrupt or irregular in any way, or not
        a PNG; and always if the C extension was not built.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (3, 2), 7).save(file, "PNG")
    >>> mask = read_png(file.getvalue())
    >>> mask.mode, mask.values.tolist()
    ('L', [[7, 7, 7], [7, 7, 7]])
    """
    if not EXTENSION_BUILT:
        if bytes(data[: len(SIGNATURE)]) == SIGNATURE:
            warn_missing(_COMPILED)
        return None
    if len(data) < 26:
        return None
    width, height, depth = struct.unpack_from(">IIB", data, 16)
    rows = height * (-(-width * depth // 8) + 1)
    # Forged sizes must not allocate memory.
    if rows > MAX_RATIO * len(data) or width * height > MAX_PIXELS:
        return None
    memory = (scratch or Scratch()).take(max(width * height, rows + _GAP) + _GAP)
    if (found := _png.read_png(data, memory)) is None:
        return None
    height, width, mode = found
    return RawMask(memory[: height * width].reshape(height, width), mode, "PNG")


def from_image(data: bytes, path: str | Path, scratch: Scratch | None = None) -> RawMask:
    """Read an image from its content: a PNG, or another format of Pillow."""
    if (plain := read_png(data, scratch=scratch)) is not None:
        return plain
    if data.startswith(SIGNATURE):
        _check_png(data, path)
    with damage(path, "is corrupt"):
        try:
            with Image.open(io.BytesIO(data)) as image:
                return _from_pillow(image, path)
        except UnidentifiedImageError as error:
            raise MaskError(path, f"is not an image (starts with {data[:12]!r})") from error
        except Image.DecompressionBombError as error:
            problem = f"declares an invalid size: {error}; save huge masks as TIFF or .npy"
            raise MaskError(path, problem) from error


def _check_png(data: bytes, path: str | Path) -> None:
    """Check every checksum; Pillow does not, and would return corrupt pixels."""
    at = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        head = data[at : at + 8]
        stop = at + 12 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or stop > len(data):
            raise MaskError(path, "is truncated")
        kind = head[4:]
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop], "big"):
            name = kind.decode("latin-1")
            raise MaskError(path, f"is corrupt: chunk {name!r} fails its checksum")
        at = stop


def _from_pillow(image: Image.Image, path: str | Path) -> RawMask:
    kind = image.format or "image"
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise MaskError(
            path, f"has {frames} frames; expected one. Save each frame as a separate file"
        )
    image.load()
    mode, pixels = image.mode, np.asarray(image)
    if mode in ("LA", "PA", "RGBA"):
        if translucent := int((pixels[..., -1] != 255).sum()):
            found = plural(translucent, "transparent pixel")
            problem = f"has {found}; save the mask without an alpha channel"
            raise MaskError(path, problem)
        pixels = pixels[..., :3] if mode == "RGBA" else pixels[..., 0]
    elif mode not in _LABEL_MODES and mode != "RGB":
        problem = (
            f"has mode {mode!r}; expected one channel of integers, or RGB colours. Save it as PNG"
        )
        raise MaskError(path, problem)
    return RawMask(pixels, mode, kind, kind in _LOSSY)


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


_UNKNOWN = np.uint16(0xFFFF)


def _labels_of_colors(
    rgb: NDArray[np.uint8], labels: LabelSet, path: str | Path
) -> NDArray[np.integer[Any]]:
    """Map each pixel to the first value of the class with its colour."""
    table, values = _color_table(labels)
    codes = table[_packed(rgb)]
    if (codes == _UNKNOWN).any():
        raise MaskError(path, _unknown_text(rgb[codes == _UNKNOWN], labels))
    found: NDArray[np.integer[Any]] = values[codes]
    return found


def _packed(rgb: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Colours as integers 0xRRGGBB."""
    wide = rgb.astype(np.uint32)
    return np.asarray((wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2], dtype=np.uint32)


@lru_cache(maxsize=4)
def _color_table(labels: LabelSet) -> tuple[NDArray[np.uint16], NDArray[Any]]:
    """Codes of all 2^24 colours, and the value of each code."""
    table = np.full(1 << 24, _UNKNOWN, dtype=np.uint16)
    entries = [(entry.values[0], entry.colors) for entry in labels.classes]
    if labels.ignore_colors:
        entries.append((labels.ignore[0], labels.ignore_colors))
    for code, (_, colors) in enumerate(entries):
        for red, green, blue in colors:
            table[red << 16 | green << 8 | blue] = code
    values = [value for value, _ in entries]
    kinds = [np.iinfo(dtype) for dtype in (np.uint8, np.int64, np.uint64)]
    fits = [k.dtype for k in kinds if k.min <= min(values) and max(values) <= k.max]
    return table, np.array(values, dtype=fits[0] if fits else object)


def count_colors(rgb: NDArray[np.uint8]) -> dict[str, int]:
    """Pixels of each colour, most frequent first, as ``"#rrggbb"``."""
    colors, counts = np.unique(_packed(rgb).ravel(), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {f"#{int(colors[i]):06x}": int(counts[i]) for i in order}


def _if_coco(labels: LabelSet | None) -> str:
    """A hint for COCO categories, whose panoptic PNG files contain ids."""
    is_coco = labels is not None and labels.source == "COCO categories"
    hint = "; for COCO panoptic ids, pass objects='coco' (segiou score --objects coco)"
    return hint if is_coco else ""


def _unknown_text(unknown: NDArray[np.uint8], labels: LabelSet) -> str:
    found = count_colors(unknown)
    shown = ", ".join(f"{color} ({plural(n, 'pixel')})" for color, n in list(found.items())[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    values = {*labels.ignore, *(value for values in labels.class_values for value in values)}
    greys = {f"#{value:02x}{value:02x}{value:02x}" for value in values if 0 <= value < 256}
    if greys.issuperset(found):
        hint = "its channels are equal, so save it as single-channel PNG"
    elif len(found) > 64:
        hint = (
            "many similar colours: probably resized with interpolation or saved with lossy "
            "compression"
        )
    else:
        hint = f"add them to a class or to ignore_colors{_if_coco(labels)}"
    return f"has colours not in label set {labels.name!r}: {shown}{more}; {hint}"
