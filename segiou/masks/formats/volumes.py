"""Label volumes (NIfTI, NRRD, MetaImage) and their geometry."""

from __future__ import annotations

import gzip
import logging
import math
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, check_path
from segiou._support.files import Stamp, os_problem
from segiou.masks.formats.decompression import MAX_RATIO, inflater
from segiou.masks.formats.itk_headers import (
    ItkParts,
    itk_header,
    metaimage_parts,
    needed_library,
    nrrd_parts,
)
from segiou.masks.formats.nifti_pairs import as_header, is_pair_header, read_whole
from segiou.masks.formats.numpy_files import Fits, as_integers, others_than_integers
from segiou.masks.formats.slicer import flattened, numbered
from segiou.masks.raw_mask import MaskError, RawMask, Volume, check_content, damage
from segiou.masks.windows import ArrayFile

_GZIP = b"\x1f\x8b"
_UNKNOWN = Stamp(None, None)
#: Bytes of the longest NIfTI header.
_HEAD = 540
#: Bytes of a header without extensions.
_HEADER_BYTES = {"Nifti1Header": 348, "Nifti2Header": 540}
#: Most voxels of a volume.
_MOST_VOXELS = 1 << 33
#: Tolerance of spacing and affine, relative to the spacing.
_TOLERANCE = 1e-3
#: pixdim is the spacing if it agrees with the affine, whose elements are rounded, to this share.
_ROUNDING = 1e-5
#: Millimetres per unit by NIfTI's codes: unknown, metre, millimetre, micrometre.
_MILLIMETRES = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}


def read_volume(path: str | Path) -> Volume:
    """Read a label volume with its geometry.

    Parameters
    ----------
    path : str or path
        A ``.nii``, ``.nii.gz``, ``.nrrd``, ``.nhdr``, ``.mha`` or ``.mhd`` file, or one of the
        two files of a NIfTI pair (``.hdr`` and ``.img``).

    Raises
    ------
    MaskError
        If the file is corrupt, its header contradicts its content or itself,
        or it contains non-integer values.
    ImportError
        If the extra ``volumes`` is not installed.

    Notes
    -----
    A NIfTI ``vox_offset`` of 0 means that the data follow the header, as in
    nibabel and SimpleITK. ``pixdim`` and the affine must give the same spacing.

    Examples
    --------
    >>> volume = read_volume("case.nii.gz")  # doctest: +SKIP
    >>> volume.spacing, volume.orientation  # doctest: +SKIP
    ((0.5, 0.5, 3.0), 'PIR')
    """
    check_path("path", path)
    path = as_header(Path(path).expanduser())
    try:
        if is_pair_header(path):
            data, _ = read_whole(str(path), lambda name: (Path(name).read_bytes(), _UNKNOWN))
            return volume_from_bytes(data, path)
        if (header := _plain_header(path)) is None:
            return volume_from_bytes(path.read_bytes(), path)
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error
    return header.volume(np.memmap(path, header.dtype, "r", header.offset, header.shape, order="F"))


def volume_from_bytes(data: bytes, path: str | Path) -> Volume:
    """Read a label volume from the content of its file."""
    check_content(data, path)
    is_nrrd = data[:4] == b"NRRD"
    if is_nrrd or str(path).lower().endswith((".mha", ".mhd")):
        parts = nrrd_parts(data, path) if is_nrrd else metaimage_parts(data, path)
        header = _Header.of_itk(parts, path)
        layers = (parts.layers,) if parts.layers else ()
        values = header._replace(shape=(*layers, *header.shape)).stored(parts.content, parts.wbits)
        if layers:
            values = flattened(header.labels(values), parts.segments, path)
        return replace(header.volume(values), segments=numbered(parts.segments))
    header, wbits = _nifti_header(data, path)
    return header.volume(header.stored(data, wbits))


def nifti_bytes(labels: NDArray[Any], like: Volume) -> bytes:
    """A compressed NIfTI file of labels with the geometry of a volume."""
    image = needed_library("nibabel").Nifti1Image(labels, like.affine if like.is_placed else None)
    image.header.set_zooms(like.spacing)
    image.header.set_xyzt_units("mm")
    return gzip.compress(image.to_bytes(), mtime=0)


def scores_from_nifti(data: bytes, path: str | Path, fits: Fits) -> Volume:
    """Scores in a NIfTI file, with or without a fourth axis of classes, and their geometry.

    ``fits`` raises an error for a shape that is not wanted.
    """
    header, wbits = _nifti_header(data, path, channels=True)
    fits(header.shape)
    values = header.stored(data, wbits)
    if header.scale != (1, 0):
        values = values * header.scale[0] + header.scale[1]
    return _volume(values, header.affine, header.spacing, path, header.unit)


def scan(path: Path) -> Volume:
    """A scan, such as a CT: real numbers if it is NIfTI; of several channels the first."""
    data = path.read_bytes()
    if not str(path).lower().endswith((".nii", ".nii.gz")):
        return volume_from_bytes(data, path)
    volume = scores_from_nifti(data, path, lambda shape: None)
    return volume if volume.values.ndim < 4 else replace(volume, values=volume.values[..., 0])


# NIfTI ------------------------------------------------------------------------------------


def _nifti_header(
    data: bytes, path: str | Path, *, channels: bool = False
) -> tuple[_Header, int | None]:
    """The header of a NIfTI file, and the format in which zlib decompresses it, if any."""
    if data[:2] != _GZIP:
        return _Header.of_nifti(data[:_HEAD], path, channels=channels), None
    with damage(path, "is corrupt", MemoryError):
        head = inflater.decompressobj(31).decompress(data[:4096], _HEAD)
    return _Header.of_nifti(head, path, channels=channels), 31


def _plain_header(path: str | Path) -> _Header | None:
    """The header of an uncompressed NIfTI file of the size that it declares; None for others."""
    with Path(path).open("rb", buffering=0) as file:
        head = file.read(_HEAD)
        if _nifti_kind(head) is None:
            return None
        header = _Header.of_nifti(head, path)
        header.check_size(file.seek(0, os.SEEK_END))
    return header


def open_nifti(path: str | Path, bound: int) -> RawMask | None:
    """Open an uncompressed NIfTI file of at least ``bound`` voxels for windowed reading."""
    header = _plain_header(path)
    if header is None or math.prod(header.shape) < bound:
        return None
    # A single value replaces the data, because only the geometry is checked.
    geometry = header.volume(np.zeros([1] * len(header.shape), np.uint8))
    values: Any = ArrayFile(
        path, header.shape, header.dtype, header.offset, fortran=True, decoded=header.labels
    )
    return RawMask(values, "volume", "volume", volume=replace(geometry, values=values))


class _Header(NamedTuple):
    """Type, layout and geometry of a volume's values, from its header."""

    path: str | Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    affine: NDArray[np.float64]
    spacing: tuple[float, ...]
    unit: str = "mm"
    offset: int = 0
    scale: tuple[float, float] = (1, 0)
    is_placed: bool = True

    @classmethod
    def of_nifti(cls, head: bytes, path: str | Path, *, channels: bool = False) -> _Header:
        """Read and check the first bytes of a NIfTI file, which may have an axis of channels."""
        if (kind := _nifti_kind(head)) is None:
            raise MaskError(path, _other_problem(head))
        with damage(path, "has a corrupt NIfTI header", ImportError):
            shape, dtype, offset, scale, affine, pixdim, unit, placed = _library_header(kind, head)
        if unit not in _MILLIMETRES:
            raise MaskError(path, f"has an unknown NIfTI unit code: {unit}")
        if not all(map(math.isfinite, scale)):
            problem = f"has scl_slope {scale[0]} and scl_inter {scale[1]}; expected finite numbers"
            raise MaskError(path, f"{problem}, e.g. 1 and 0 for unscaled labels")
        axes = 3 if channels and len(shape) > 3 else len(shape)
        shape = (*_checked_shape(shape[:axes], path), *(n for n in shape[axes:] if n > 1))
        spacing = _nifti_spacing(pixdim[: len(shape)], affine, path)
        affine = affine.copy()
        affine[:3] *= _MILLIMETRES[unit]
        spacing = tuple(_MILLIMETRES[unit] * size for size in spacing)
        name = "mm" if unit else "unknown"
        return cls(
            path=path,
            shape=shape,
            dtype=dtype,
            affine=affine,
            spacing=spacing,
            unit=name,
            offset=offset,
            scale=scale,
            is_placed=placed,
        )

    @classmethod
    def of_itk(cls, parts: ItkParts, path: str | Path) -> _Header:
        """The header of NRRD or MetaImage data, parsed by SimpleITK."""
        with damage(path, "is corrupt", MemoryError, ImportError):
            shape, components, dtype, affine, spacing = itk_header(parts.image_io, parts.head)
        if components != 1:
            raise MaskError(path, f"has {components} values per voxel; expected one")
        dtype = dtype.newbyteorder(">" if parts.is_big else "<")
        return cls(path, _checked_shape(shape, path), dtype, affine.copy(), spacing)

    @property
    def size(self) -> int:
        """Bytes of the file when decompressed."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def check_size(self, size: int) -> None:
        """Raise an error if the file size differs."""
        if size != self.size:
            raise MaskError(self.path, _length_text(size, self.size))

    def stored(self, data: bytes, wbits: int | None) -> NDArray[Any]:
        """The stored values in these bytes, decompressed by zlib unless ``wbits`` is None."""
        if wbits is not None:
            data = _decompressed(data, self.size, self.path, wbits)
        self.check_size(len(data))
        values = np.frombuffer(data, self.dtype, math.prod(self.shape), self.offset)
        return values.reshape(self.shape, order="F")

    def labels(self, values: NDArray[Any]) -> NDArray[Any]:
        """Labels of stored values."""
        slope, intercept = self.scale
        if self.scale != (1, 0) and values.dtype.kind in "biuf":
            values = values.astype(np.float64) * slope + intercept
        return _whole_numbers(values, self.path)

    def volume(self, values: NDArray[Any]) -> Volume:
        """The volume of these stored values."""
        volume = _volume(self.labels(values), self.affine, self.spacing, self.path, self.unit)
        return volume if self.is_placed else replace(volume, is_placed=False)


def _nifti_kind(head: bytes) -> str | None:
    """The nibabel class for the header of an uncompressed file; None if it is not NIfTI."""
    # The size of the header comes first, in either byte order.
    size = {int.from_bytes(head[:4], order) for order in ("little", "big")}
    if 348 in size and head[344:348] == b"n+1\0":
        return "Nifti1Header"
    return "Nifti2Header" if 540 in size and head[4:8] == b"n+2\0" else None


def _other_problem(head: bytes) -> str:
    """Why a header is not that of a NIfTI file."""
    if head[344:348] == b"ni1\0":
        return (
            "is a NIfTI header with its data in another file; read both as .hdr and .img from a "
            "local folder or archive, or convert them: nib-convert A.img A.nii"
        )
    if len(head) < 348:
        return f"is truncated: a NIfTI header has 348 bytes, found {len(head)}; copy it again"
    return f"is not a volume (starts with {head[:12]!r})"


@lru_cache(maxsize=16)
def _library_header(kind: str, head: bytes) -> tuple[Any, ...]:
    """The header parsed by nibabel; cached, because it takes longer than a small file."""
    header_type = getattr(needed_library("nibabel"), kind)
    # from_fileobj would also read extensions, which can be longer than the bytes at hand.
    stored = header_type(head[: _HEADER_BYTES[kind]], check=False)
    header = stored.copy()
    # nibabel's own logger writes what it repairs to stderr.
    quiet = logging.Logger("segiou.masks.formats.volumes")
    quiet.addHandler(logging.NullHandler())
    header.check_fix(logger=quiet)
    shape = tuple(int(n) for n in header.get_data_shape())
    # vox_offset 0 means that the data follow the header.
    offset = max(int(header.get_data_offset()), 352 if kind == "Nifti1Header" else 544)
    # nibabel ignores slopes that are not finite, and replaces a pixdim of 0 by 1.
    scale = tuple(float(stored[name]) for name in ("scl_slope", "scl_inter"))
    scale = scale if scale[0] else (1.0, 0.0)
    pixdim = tuple(abs(float(size)) for size in stored["pixdim"][1:4])
    if not stored["sform_code"] and 0 in pixdim[: len(shape)]:
        msg = "its pixdim is 0 and it has no sform, so the spacing is unknown"
        raise ValueError(msg)
    unit = int(header["xyzt_units"]) % 8
    dtype, affine = header.get_data_dtype(), header.get_best_affine()
    is_placed = bool(stored["sform_code"] or stored["qform_code"])
    return shape, dtype, offset, scale, affine, pixdim, unit, is_placed


def _nifti_spacing(
    pixdim: tuple[float, ...], affine: NDArray[np.float64], path: str | Path
) -> tuple[float, ...]:
    """``pixdim`` if it agrees with the affine, else the spacing of the affine."""
    lengths = _lengths(affine)[: len(pixdim)]
    # pixdim may be unset if there is an sform.
    pairs = [(size, length) for size, length in zip(pixdim, lengths, strict=True) if size]
    differences = [abs(size - length) / length for size, length in pairs if length]
    if any(difference > _TOLERANCE for difference in differences):
        problem = (
            f"has spacing {spacing_text(pixdim)} in pixdim but {spacing_text(lengths)} in its "
            "affine (sform); correct the wrong one"
        )
        raise MaskError(path, problem)
    agrees = 0 not in pixdim and all(difference <= _ROUNDING for difference in differences)
    return pixdim if agrees else lengths


def _checked_shape(shape: tuple[int, ...], path: str | Path) -> tuple[int, ...]:
    """The shape of a label volume without trailing axes of length 1: two or three axes."""
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if not 2 <= len(shape) <= 3:
        problem = (
            f"has shape {shape}; expected two or three axes. Save each volume as a separate file"
        )
        raise MaskError(path, problem)
    if min(shape) < 1 or math.prod(shape) > _MOST_VOXELS:
        raise MaskError(path, f"declares an invalid size {shape}; save it again")
    return shape


def _decompressed(data: bytes, size: int, path: str | Path, wbits: int) -> bytes:
    """Decompress gzip members or one zlib stream to exactly ``size`` bytes."""
    if size > MAX_RATIO * len(data) + 1024:
        problem = f"declares {size} bytes, more than its {len(data)} compressed bytes can contain"
        raise MaskError(path, problem)
    parts: list[bytes] = []
    left, ended = size, True
    while ended and left >= 0 and (not parts or data[:2] == _GZIP):
        stream = inflater.decompressobj(wbits)
        with damage(path, "is corrupt", MemoryError):
            # One extra byte reveals that there is too much data.
            parts.append(stream.decompress(data, left + 1))
        left -= len(parts[-1])
        data, ended = stream.unused_data, stream.eof
    if left:
        raise MaskError(path, _length_text(size - left, size))
    if not ended:
        raise MaskError(path, "is truncated: its checksum is missing; copy it again")
    if data.strip(b"\0"):
        raise MaskError(
            path, "has bytes after its data; it is corrupt, or two files were concatenated"
        )
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _length_text(actual: int, declared: int) -> str:
    if actual > declared:
        return f"is corrupt: contains more than the {declared} bytes that its header declares"
    return f"is truncated: the header declares {declared} bytes, found {actual}; copy it again"


# Geometry ---------------------------------------------------------------------------------


def _volume(
    values: NDArray[Any],
    affine: NDArray[np.float64],
    spacing: tuple[float, ...],
    path: str | Path,
    unit: str,
) -> Volume:
    """A volume with a valid geometry."""
    codes = _axes(affine.tobytes())
    # An axis without a direction has no code.
    if None in codes:
        raise MaskError(
            path, f"has an impossible affine: {affine.tolist()}; save it with that of its image"
        )
    axes = values.ndim
    return Volume(values, spacing[:axes], affine, "".join(codes)[:axes], unit)


@lru_cache(maxsize=16)
def _axes(affine: bytes) -> tuple[Any, ...]:
    """Direction of each axis of an affine, None if it has none."""
    matrix = np.frombuffer(affine).reshape(4, 4)
    if not np.isfinite(matrix).all():
        return (None,)
    codes: tuple[Any, ...] = needed_library("nibabel").orientations.aff2axcodes(matrix)
    return codes


def _lengths(affine: NDArray[np.float64]) -> tuple[float, ...]:
    """Lengths of the axes of an affine."""
    return tuple(float(x) for x in np.sqrt((affine[:3, :3] ** 2).sum(0)))


def _whole_numbers(values: NDArray[Any], path: str | Path) -> NDArray[Any]:
    if values.dtype.kind in "biu":
        return values
    if values.dtype.kind != "f":
        raise MaskError(path, f"contains {values.dtype.name} values; expected integer labels")
    if (integers := as_integers(values)) is not None:
        return integers
    others = others_than_integers(values)
    problem = (
        f"contains non-integer values, e.g. {others[0]} ({others.size} of {values.size} voxels); "
        "expected integer labels; pass the label maps, not the images or probabilities"
    )
    raise MaskError(path, problem)


def geometry_difference(truth: Volume, pred: Volume) -> str | None:
    """Describe how the geometries of two volumes differ; None if they do not.

    The tolerance of spacing and of each affine element is a thousandth of the
    spacing.

    Parameters
    ----------
    truth, pred : Volume
        Truth and predicted volume.
    """
    for volume in (truth, pred):
        check_kind("volume", volume, Volume, "a Volume, as returned by segiou.masks.read_volume")
    are_placed = truth.is_placed and pred.is_placed
    if are_placed and truth.orientation != pred.orientation:
        return f"orientation {pred.orientation}, but its truth has {truth.orientation}"
    if truth.values.shape != pred.values.shape:
        return f"shape {pred.values.shape}, but its truth has {truth.values.shape}"
    bound = _TOLERANCE * np.array(truth.spacing)
    if (np.abs(np.subtract(truth.spacing, pred.spacing)) > bound).any():
        predicted, wanted = spacing_text(pred.spacing), spacing_text(truth.spacing)
        return f"spacing {predicted} mm, but its truth has {wanted} mm"
    if not are_placed:
        return None
    # The far corner moves by the error of the affine times the number of voxels.
    bounds = np.append(_TOLERANCE * np.array(_lengths(truth.affine)), bound.max())
    if (np.abs(truth.affine - pred.affine)[:3] > bounds).any():
        return f"affine {_rows(pred.affine)}, but its truth has {_rows(truth.affine)}"
    return None


def spacing_text(spacing: tuple[float, ...]) -> str:
    """Spacing as text."""
    return " × ".join(f"{size:.6g}" for size in spacing)


def _rows(affine: NDArray[np.float64]) -> str:
    return "[" + "; ".join(" ".join(f"{x:.6g}" for x in row) for row in affine[:3]) + "]"


def reorient(volume: Volume, like: Volume) -> Volume:
    """Reorient a volume to the axis order and directions of another.

    Axes are only permuted and flipped. Values are not interpolated or copied. A volume without
    orientation is returned unchanged, as is any volume beside such a one.

    Parameters
    ----------
    volume, like : Volume
        The volume to reorient, and the volume with the target orientation.
    """
    if not (volume.is_placed and like.is_placed):
        return volume
    orientations = needed_library("nibabel").orientations
    start, end = (orientations.io_orientation(v.affine) for v in (volume, like))
    change = orientations.ornt_transform(start, end)
    shape = (*volume.values.shape, *([1] * (3 - volume.values.ndim)))
    values = orientations.apply_orientation(volume.values.reshape(shape, order="A"), change)
    affine = volume.affine @ orientations.inv_ornt_aff(change, shape)
    values = values.reshape([n for n, _ in zip(values.shape, like.spacing, strict=False)])
    axes = volume.values.ndim
    spacing = (*volume.spacing, *_lengths(volume.affine)[axes:])
    spacing = tuple(spacing[axis] for axis in np.argsort(change[:, 0]))
    turned = _volume(values, affine, spacing, "", volume.unit)
    return replace(turned, segments=volume.segments)
