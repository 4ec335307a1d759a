"""The content of a mask file before a label set is applied, and the errors of reading it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import IS_A_POINTER, LFS_POINTER, FileError
from segiou.labels.label_set import VOID_VALUES, LabelSet

if TYPE_CHECKING:
    from segiou.masks.formats.georeference import Raster

#: The fix for masks of two classes with values between them.
SOFT_EDGES = (
    "if edges are soft, pass truth_threshold=128, pred_threshold=128 or both "
    "(--truth-threshold 128, --pred-threshold 128)"
)
#: Names of temporary files, and addresses in memory.
_RANDOM = re.compile(r" ?['\"]?\S*(?:segiou-\w+|/vsi\w+)/[^\s'\"]*['\"]?| ?\(0x[0-9a-f]+\)")
#: Characters of the text of a library's error that are shown at most.
_MOST_TEXT = 200
#: Errors of libraries whose text does not describe the file.
_SLIPS = (AssertionError, AttributeError, IndexError, KeyError, TypeError)
#: Extensions of label volumes.
VOLUME_SUFFIXES = (".nii.gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd", ".hdr", ".hdr.gz")
#: Extension of point cloud labels.
POINT_SUFFIX = ".label"
TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


class MaskError(FileError):
    """A file that cannot be read as a mask; the message names it and the fix.

    Attributes
    ----------
    path : str
        The file.
    problem : str
        The problem and its fix, without the path.
    """


class LossyMaskError(MaskError):
    """A mask in a lossy format."""


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """A label array and its geometry.

    Attributes
    ----------
    values : ndarray of int or bool, shape (X, Y, Z) or (X, Y)
        Labels with the axes of the file. NIfTI labels are in Fortran order; those of
        an uncompressed ``.nii`` file are a memory map.
    spacing : tuple of float
        Size of a voxel along each axis of ``values``, in millimetres: ``pixdim`` of
        NIfTI, as in nibabel's zooms and SimpleITK.
    affine : ndarray of float64, shape (4, 4)
        Maps indices of ``values`` to RAS+ millimetres, as in nibabel.
    orientation : str
        Direction of each axis of ``values``, such as ``"RAS"`` or ``"PIR"``.
    unit : str
        ``"mm"``, or ``"unknown"`` if the file has no unit; millimetres are then
        assumed.
    segments : tuple of (str, int)
        Names and values of the segments of a 3D Slicer file (``.seg.nrrd``).
    is_placed : bool
        Whether the file states an orientation and place; a NIfTI file without ``sform`` and
        ``qform`` does not, and ``affine`` is then that of nibabel. Such a volume is compared
        with others by shape and spacing.
    """

    values: NDArray[np.integer[Any] | np.bool_]
    spacing: tuple[float, ...]
    affine: NDArray[np.float64]
    orientation: str
    unit: str = "mm"
    segments: tuple[tuple[str, int], ...] = ()
    is_placed: bool = True


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
        Class names indexed by the values, for drawn shapes. The first is empty,
        for pixels outside all shapes.
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
    sets : tuple of tuple of int, optional
        Values of the classes of a pixel indexed by ``values``, for one file per class.
    palette : bytes
        Red, green and blue of each index, for palette images.
    drawn : str
        The tool whose rule decides which pixels on the sides of polygons are inside; empty
        without polygons.
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
    sets: tuple[tuple[int, ...], ...] = ()
    palette: bytes = b""
    drawn: str = ""

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
    return next(
        candidate for candidate in (value, *VOID_VALUES) if candidate not in labels.declared_values
    )


def check_content(data: bytes, path: str | Path) -> None:
    """MaskError for a file that is empty, or a pointer in place of a file."""
    if not data:
        raise MaskError(path, "is empty (0 bytes)")
    if data.startswith(LFS_POINTER):
        raise MaskError(path, IS_A_POINTER)


def image_shape(shape: tuple[int, ...], other: tuple[int, ...] = ()) -> tuple[int, ...]:
    """The shape without axes of length 1 if it is that of one image, also by that of its pair.

    >>> image_shape((1, 4, 3)), image_shape((4, 3, 1)), image_shape((4, 1, 1), (4, 1))
    ((4, 3), (4, 3), (4, 1))
    """
    longer, others = (tuple(n for n in lengths if n > 1) for lengths in (shape, other))
    if len(shape) < 3:
        return shape
    if len(longer) == 2:
        return longer
    return other if len(other) == 2 and longer == others else shape


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
        # Some libraries print context first, and their internal errors do not describe the file.
        text = str(error).rstrip().rpartition("\n")[2].strip() or type(error).__name__
        text = _RANDOM.sub("", text)
        text = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"  # may quote the file
        text = "" if isinstance(error, _SLIPS) else f": {text}"
        what = "is not supported" if isinstance(error, NotImplementedError) else what
        raise MaskError(path, f"{what}{text}") from error


def check_upright(orientation: int, path: str | Path) -> None:
    """Raise an error for an orientation of TIFF or EXIF by which some programs turn the pixels."""
    if orientation not in (0, 1):
        problem = (
            f"has the Orientation tag {orientation}, which programs interpret differently; save "
            "the pixels in display order, without the tag"
        )
        raise MaskError(path, problem)
