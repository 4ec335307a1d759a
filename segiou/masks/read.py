"""Mask files → label arrays: file formats, NumPy files, and labels of raw masks."""

from __future__ import annotations

import math
import stat
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, check_path, names_options
from segiou._support.files import os_problem
from segiou._support.text import plural
from segiou.labels.label_set import LabelSet, background_of
from segiou.masks.finding import (
    ARRAY_SUFFIXES,
    HEADER_SUFFIXES,
    IS_A_PICKLE,
    MASK_SUFFIXES,
    RASTER_SUFFIXES,
    UNSUPPORTED,
    is_raster,
    split_ending,
)
from segiou.masks.formats.nifti_pairs import as_header
from segiou.masks.raw_mask import (
    POINT_SUFFIX,
    SOFT_EDGES,
    TIFF_MAGIC,
    VOLUME_SUFFIXES,
    LossyMaskError,
    MaskError,
    RawMask,
    Volume,
    check_content,
    damage,
    void_value,
)
from segiou.masks.windows import ArrayFile

if TYPE_CHECKING:
    from segiou.masks.colors import ReadPalette
    from segiou.masks.formats.image_files import Scratch
    from segiou.masks.formats.numpy_files import Fits

#: Masks with fewer pixels are read whole.
WHOLE_PIXELS = 1 << 26


@names_options
def read_mask(
    path: str | Path,
    labels: LabelSet | None = None,
    *,
    allow_lossy: bool = False,
    read_palette: ReadPalette | None = None,
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
    read_palette : {"indices", "colors"}, optional
        Reading of palette images: their indices, or their colours. By default indices, and an
        error if the palette contradicts them.

    Returns
    -------
    ndarray of int or bool, shape (H, W)
        File values; palette images give their indices, and grey PNG samples of 2
        and 4 bits are scaled to 0–255, as in Pillow. NumPy files may have more axes, such
        as (N, H, W) of N images or of a volume.

    Raises
    ------
    MaskError
        If the file cannot be read as a mask; the message states the problem and its fix.
    """
    if labels is not None:
        check_kind("labels", labels, LabelSet, "a LabelSet, as returned by segiou.load_labels")
    from segiou.masks.colors import as_read
    from segiou.masks.reading import Reading

    Reading(allow_lossy=allow_lossy, read_palette=read_palette)
    raw = as_read(open_mask(path), path, read_palette)
    return to_labels(raw, path, labels, allow_lossy=allow_lossy)


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
    path = as_header(Path(path).expanduser())
    try:
        _check_regular(path)
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                from segiou.masks.formats.numpy_files import mapped_npy

                return _npy_mask(mapped_npy(path), path)
            if path.name.lower().endswith((".nii", *HEADER_SUFFIXES)):
                from segiou.masks.formats.volumes import read_volume

                return _volume_mask(read_volume(path))
            file.seek(0)
            data = file.read()
        return from_bytes(data, path)
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error


def _check_regular(path: Path) -> None:
    """Raise a MaskError for a pipe or device, whose opening or reading might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise MaskError(path, "is not a regular file")


def open_windowed(path: str | Path, *, least: int | None = None) -> RawMask | None:
    """Open a mask file that is too large to read whole; None for other files.

    Parameters
    ----------
    path : str or path
        A TIFF, ``.npy`` or ``.nii`` file; other files give None.
    least : int, optional
        Masks with at least this many pixels are opened; 64 Mi by default.

    Returns
    -------
    RawMask or None
        Its values are a :class:`FileMask`, which must be closed like a file.

    Raises
    ------
    ImportError
        If a volume needs the extra ``volumes``.
    MaskError
        If the file is such a mask, but corrupt or of the wrong kind.
    OSError
        If it cannot be read.
    """
    check_path("path", path)
    bound = WHOLE_PIXELS if least is None else least
    _check_regular(Path(path))
    with Path(path).open("rb") as file:
        magic = file.read(6)
    if magic == b"\x93NUMPY":
        from segiou.masks.formats.numpy_files import mapped_npy, whole_labels

        # Mapped only to read the header; the data are never touched.
        array = mapped_npy(Path(path))
        assert isinstance(array, np.memmap)
        if array.size < bound:
            return None
        whole_labels(array[:0], path)
        is_fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        values = ArrayFile(
            path,
            array.shape,
            array.dtype,
            int(array.offset),
            fortran=is_fortran,
            decoded=lambda window: whole_labels(window, path),
        )
        return RawMask(values, "npy", "NPY")
    if magic[:4] in TIFF_MAGIC:
        from segiou.masks.formats.tiff import open_tiff

        return open_tiff(path, bound)
    if is_raster(path):
        from segiou.masks.formats.rasters import open_raster

        raw = open_raster(path)
        if math.prod(raw.values.shape) >= bound:
            return raw
        raw.values.__exit__()
    if str(path).lower().endswith(".nii"):
        from segiou.masks.formats.volumes import open_nifti

        return open_nifti(path, bound)
    return None


def from_bytes(
    data: bytes | RawMask,
    path: str | Path,
    scratch: Scratch | None = None,
    fits: Fits | None = None,
    *,
    key: str = "",
    floats: bool = False,
) -> RawMask:
    """Read a mask from the content of its file; values in ``scratch`` last until its next use.

    ``key`` names the array in an ``.npz`` file with several. With ``floats``, floats
    are kept unchanged. ``fits`` raises an error for a shape that is not wanted, before memory is
    taken for it.
    """
    if isinstance(data, RawMask):  # from a source that decodes its masks
        return data
    check_content(data, path)
    ending = split_ending(str(path))[1].lower()
    is_known = ending in MASK_SUFFIXES or ending in HEADER_SUFFIXES
    raw = None if is_known else _added_or_unsupported(data, path, ending)
    if ending in ARRAY_SUFFIXES and raw is None:
        from segiou.masks.formats.array_files import array_mask

        return array_mask(data, path, key, fits, floats=floats)
    raw = (
        raw
        or _read_by_magic(data, path, fits, key, floats=floats)
        or _read_by_extension(data, path, ending)
    )
    if raw is not None:
        return raw
    from segiou.masks.formats.image_files import read_pixels

    return read_pixels(data, path, scratch)


def _read_by_magic(
    data: bytes, path: str | Path, fits: Fits | None, key: str, *, floats: bool
) -> RawMask | None:
    """A mask in a format that the first bytes tell; None for others."""
    if data[:6] == b"\x93NUMPY":
        from segiou.masks.formats.numpy_files import npy_array

        array = npy_array(data, path)
        return RawMask(array, "npy", "NPY") if floats else _npy_mask(array, path)
    if data[:1] == b"\x80" and data[-1:] == b".":
        raise MaskError(path, IS_A_PICKLE)
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):  # also without files
        from segiou.masks.formats.numpy_files import npz_mask

        values, spacing = npz_mask(data, path, key, fits, floats=floats)
        return RawMask(values, "npz", "NPZ", spacing=spacing)
    if data[:4] in TIFF_MAGIC:
        from segiou.masks.formats.tiff import read_tiff

        return read_tiff(data, path, floats=floats)
    return None


def _read_by_extension(data: bytes, path: str | Path, ending: str) -> RawMask | None:
    """A mask in a format that the extension tells; None for images."""
    if ending in VOLUME_SUFFIXES:
        from segiou.masks.formats.volumes import volume_from_bytes

        return _volume_mask(volume_from_bytes(data, path))
    if ending == POINT_SUFFIX:
        if len(data) % 4:
            raise MaskError(path, f"is corrupt: {len(data)} bytes is not a multiple of 4")
        # SemanticKITTI: the low half is the class of a point, the high half its object.
        return RawMask(np.frombuffer(data, dtype="<u4")[None], "label", "LABEL")
    if ending == ".labels":
        # Semantic3D: text with one label per point and line.
        with damage(path, "is not text with one integer per line", MemoryError):
            points = np.loadtxt(BytesIO(data), np.int64, comments=None, ndmin=1)
        if points.ndim > 1:
            raise MaskError(path, f"has {points.shape[1]} numbers per line; expected one label")
        return RawMask(points[None], "labels", "LABELS")
    if ending == "_lidarseg.bin":
        # nuScenes: one byte per point.
        return RawMask(np.frombuffer(data, dtype=np.uint8)[None], "lidarseg", "LIDARSEG")
    if ending in RASTER_SUFFIXES:
        from segiou.masks.formats.rasters import open_raster

        raw = open_raster(path)
        with raw.values as values:
            return raw._replace(values=values[:, :])
    return None


def _added_or_unsupported(data: bytes, path: str | Path, ending: str) -> RawMask | None:
    """The mask read by a plug-in; None if there is none, but MaskError if nothing else reads it."""
    from segiou._support.optional import ForeignExitError, find_plugin, no_exit

    if (read := find_plugin("formats", ending[1:]) if ending else None) is None:
        if ending in UNSUPPORTED:
            raise MaskError(path, UNSUPPORTED[ending])
        return None
    whose = f"{path}: the plug-in for {ending}"
    with damage(path, f"cannot be read as {ending}", ForeignExitError), no_exit(whose):
        values = np.asarray(read(data, str(path)))
    is_color = values.ndim == 3 and values.shape[2] == 3 and values.dtype == np.uint8
    if not is_color and (values.ndim not in (2, 3) or values.dtype.kind not in "biu"):
        content = f"{values.dtype.name} of shape {values.shape}"
        wanted = "integers (H, W) or of a volume (Z, Y, X), or uint8 colours (H, W, 3)"
        raise MaskError(path, f"was read as {content}; expected {wanted}")
    return RawMask(values, "RGB" if is_color else ending[1:], ending[1:].upper())


def to_labels(
    raw: RawMask,
    path: str | Path,
    labels: LabelSet | None,
    *,
    allow_lossy: bool = False,
    pages: bool = False,
) -> NDArray[np.integer[Any] | np.bool_]:
    """Labels of a mask; colours are mapped exactly by the label set. Pages may be a volume's."""
    check_lossy(raw, path, labels, allow_lossy=allow_lossy)
    if raw.sets:
        return _labels_of_sets(raw, path)
    if raw.kind == "LABEL":
        return class_values(raw, raw.values)
    if raw.names:
        return _labels_of_names(raw, labels, path)
    values: NDArray[Any] = raw.values
    if raw.void is not None and labels is not None:
        return _replaced(values, raw.void, void_value(raw.void, labels))
    if raw.palette and labels is not None and not raw.is_color:
        from segiou.masks.colors import check_palette

        check_palette(raw, path, labels)
    if not raw.is_color:
        if raw.mode == "tiff" and values.ndim > 2 and not pages:
            problem = f"has {len(values)} pages; expected one. Save each page as a separate file"
            raise MaskError(path, f"{problem}, or the volume as .npy or NIfTI")
        if labels is not None and labels.unnamed_colors:
            _check_named(values, path, labels)
        return values
    from segiou.masks.colors import labels_of_colors

    return labels_of_colors(raw, labels, path)


def check_lossy(
    raw: RawMask, path: str | Path, labels: LabelSet | None, *, allow_lossy: bool
) -> None:
    """Raise a LossyMaskError for a lossy format, unless it is allowed."""
    if raw.lossy and not allow_lossy:
        fix = "save masks as PNG, or pass allow_lossy=True (--allow-lossy)"
        if labels is not None and labels.num_classes == 2:
            fix = f"{SOFT_EDGES}, {fix.removeprefix('save masks as PNG, ')}"
        problem = f"is a lossy {raw.kind}, which can change label values; {fix}"
        from segiou.masks.colors import is_photo

        if raw.is_color and is_photo(raw.values):
            problem = f"is a photograph, or a mask that lossy {raw.kind} has changed; pass the "
            problem += f"folder of masks, {fix}"
        raise LossyMaskError(path, problem)


def _check_named(values: NDArray[Any], path: str | Path, labels: LabelSet) -> None:
    """MaskError if values are those that colours without a name got by their frequency."""
    meant = [v for v in np.unique(values).tolist() if v in labels.unnamed_colors]
    if meant:
        name = next(entry.name for entry in labels.classes if meant[0] in entry.values)
        problem = (
            f"has value {meant[0]}, but label set {labels.name!r} numbers its colours by frequency "
            f"(class {name!r}); give the classes their names, and the values of these masks"
        )
        raise MaskError(path, problem)


def class_values(raw: RawMask, window: NDArray[Any]) -> NDArray[Any]:
    """The classes in a window of values; those of points also have the number of an object."""
    return np.asarray(window & np.uint32(0xFFFF)) if raw.kind == "LABEL" else window


def _labels_of_sets(raw: RawMask, path: str | Path) -> NDArray[Any]:
    """The label map of classes that do not overlap."""
    several = [number for number, values in enumerate(raw.sets) if len(values) > 1]
    if shared := int(np.isin(raw.values, several).sum()):
        problem = (
            f"has several classes in {plural(shared, 'pixel')}, but boundaries, surfaces, objects "
            "and pictures need one; score these classes separately (--labels), or omit these scores"
        )
        raise MaskError(path, problem)
    only = np.array([values[0] for values in raw.sets])
    labels: NDArray[Any] = only.astype(np.min_scalar_type(int(only.max())))[raw.values]
    return labels


def mapped_background(values: Any, void: int | None, of_truth: int | None, path: str | Path) -> Any:
    """Labels of a prediction whose pixels outside all objects have their value in the truth."""
    if void is None or of_truth is None or void == of_truth:
        return values
    if (values == of_truth).any():
        problem = (
            f"contains category {of_truth}, which is the value of pixels outside all segments of "
            f"its truth; add category {of_truth} to 'categories' in the truth file"
        )
        raise MaskError(path, problem)
    return _replaced(values, void, of_truth)


def _replaced(values: NDArray[Any], old: int, new: int) -> NDArray[Any]:
    """The same with one value in place of another."""
    if old == new:
        return values
    dtype = np.promote_types(values.dtype, np.min_scalar_type(new))
    return np.where(values == old, dtype.type(new), values)


def _npy_mask(array: NDArray[Any], path: str | Path) -> RawMask:
    from segiou.masks.formats.numpy_files import whole_labels

    return RawMask(whole_labels(array, path), "npy", "NPY")


def _volume_mask(volume: Volume) -> RawMask:
    return RawMask(volume.values, "volume", "volume", volume=volume)


def _numbered(values: Mapping[str, int], background: str | None) -> dict[str, int]:
    """Values by the numbers of YOLO's classes, which do not count the background."""
    things = [value for name, value in values.items() if name != background]
    return {str(i): value for i, value in enumerate(things)}


def _labels_of_names(
    raw: RawMask, labels: LabelSet | None, path: str | Path
) -> NDArray[np.integer[Any]]:
    """Map each pixel to the first value of the class with its name."""
    values = {c.name: c.values[0] for c in labels.classes if c.values} if labels else {}
    ignored = labels.ignore[0] if labels and labels.ignore else None
    is_yolo = raw.kind == "YOLO"
    background = background_of(values)
    free = values[background] if background else None if is_yolo else ignored
    known = _numbered(values, background) if is_yolo and labels else values
    known |= {
        name: value for name, value in (("", free), ("__ignore__", ignored)) if value is not None
    }
    has_free = bool((raw.values == 0).any())
    unknown = [name for name in raw.names if name not in known and (name or has_free)]
    if unknown:
        what = "no label set" if labels is None else f"label set {labels.name!r}"
        names = ", ".join(repr(name) for name in unknown[:8] if name) or "pixels outside all shapes"
        problem = f"has {names}, not declared in {what}; add a class of that name"
        hint = ", and 'background' or an ignored value for pixels outside all shapes"
        if is_yolo:
            hint = ", and 'background' for other pixels, or pass data.yaml of its data set"
        raise MaskError(path, problem + (hint if "" in unknown else ""))
    table = np.array([known.get(name, 0) for name in raw.names], dtype=np.int64)
    mapped: NDArray[np.integer[Any]] = table[raw.values]
    return mapped
