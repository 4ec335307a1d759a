"""One pair of label maps → boundary counts and exact distances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou.boundary.boundary_options import BoundaryOptions, Contour
from segiou.boundary.boundary_sums import BoundaryCounts, empty_parts
from segiou.boundary.codes import Codes, LabelCodes, code_dtype, ignored_code
from segiou.boundary.contours import ContourDistances, find_contour
from segiou.boundary.kernels import count_bands, count_valid
from segiou.counting.encoding import Encoding

__all__ = [
    "ImageBoundaries",
    "boundary_counts",
    "count_labels",
    "measure_boundaries",
    "measure_codes",
]


@dataclass(frozen=True, eq=False)
class ImageBoundaries:
    """What the boundaries of one pair of label maps measure.

    Attributes
    ----------
    counts : BoundaryCounts
        What adds up over images.
    distances : mapping of str to ContourDistances
        Exact distances, by contour: ``distances["pixels"].hausdorff(95)``.
    """

    counts: BoundaryCounts
    distances: dict[Contour, ContourDistances]


def measure_codes(
    truth: Codes, pred: Codes, num_classes: int, options: BoundaryOptions | None = None
) -> ImageBoundaries:
    """Measure the boundaries of two maps of class codes.

    Parameters
    ----------
    truth, pred : ndarray of uint8 or uint16, shape (H, W)
        0 … C − 1 are classes. The largest value of the dtype is an ignored
        pixel, and stands at the same places in both; anything else is valid
        but no class. uint8 for up to 253 classes, uint16 for more.
    num_classes : int
        C.
    options : BoundaryOptions, optional
        What to measure.

    Returns
    -------
    ImageBoundaries

    Raises
    ------
    ValueError
        If shapes, dtypes or ignored pixels differ or do not suit.
    """
    _check_codes(truth, pred, num_classes)
    return measure_checked(truth, pred, num_classes, options)


def measure_checked(
    truth: Codes, pred: Codes, num_classes: int, options: BoundaryOptions | None = None
) -> ImageBoundaries:
    """As :func:`measure_codes`, for codes that come from :class:`LabelCodes`."""
    options = BoundaryOptions() if options is None else options
    if 0 in truth.shape:
        msg = f"an image without pixels has no boundaries, got shape {truth.shape}"
        raise ValueError(msg)
    table, parts = empty_parts(num_classes, options)
    parts["images"][...] = 1
    parts["pixels"][...] = count_valid(truth)
    _count_bands(parts, truth, pred, num_classes, options)
    distances: dict[Contour, ContourDistances] = {}
    for contour in options.contours:
        distances[contour] = _measure_contour(truth, pred, num_classes, options, contour)
        tolerances = [t.distance(truth.shape[-2:], options.spacing) for t in options.tolerances]
        for name, values in distances[contour].counts(options, tolerances).items():
            parts[name][...] = values
    return ImageBoundaries(BoundaryCounts.trusted(table, num_classes, options), distances)


def _measure_contour(
    truth: Codes, pred: Codes, num_classes: int, options: BoundaryOptions, contour: Contour
) -> ContourDistances:
    truth_contour, pred_contour = (
        find_contour(x, num_classes, contour, options.contour_border) for x in (truth, pred)
    )
    return ContourDistances.of(truth_contour, pred_contour, contour, options.spacing)


def _count_bands(
    parts: dict[str, NDArray[np.int64]],
    truth: Codes,
    pred: Codes,
    num_classes: int,
    options: BoundaryOptions,
) -> None:
    trimap_border = options.trimap_border if options.trimaps else None
    for k, width in enumerate(options.widths):
        pixels = width.width((truth.shape[0], truth.shape[1]))
        band, trimap, outer = count_bands(
            truth, pred, num_classes, pixels, options.band_border, trimap_border
        )
        parts["band"][k] = band
        if options.trimaps:
            parts["trimap"][k], parts["outer"][k] = trimap, outer


def _check_codes(truth: Any, pred: Any, num_classes: int) -> None:
    expected = code_dtype(num_classes)
    for name, codes in (("truth", truth), ("pred", pred)):
        if not isinstance(codes, np.ndarray) or codes.dtype != expected or codes.ndim != 2:
            msg = f"{name} must be a two-dimensional array of {expected} for {num_classes} classes"
            raise ValueError(msg)
    if truth.shape != pred.shape:
        msg = f"truth has shape {truth.shape} but pred has {pred.shape}"
        raise ValueError(msg)
    ignored = ignored_code(expected)
    if not np.array_equal(truth == ignored, pred == ignored):
        msg = f"ignored pixels (code {ignored}) must be the same in truth and pred"
        raise ValueError(msg)


def measure_boundaries(
    truth: Any,
    pred: Any,
    num_classes: int,
    *,
    ignore: int | Iterable[int] = (),
    unassigned: Literal["error", "count"] = "error",
    mask: Any = None,
    options: BoundaryOptions | None = None,
) -> ImageBoundaries:
    """Measure the boundaries of two label maps.

    Parameters
    ----------
    truth, pred : array_like of int or bool, equal shapes (H, W)
        Labels 0 … C − 1.
    num_classes : int
        C.
    ignore : int or iterable of int
        Truth values whose pixels are left out, whatever was predicted there:
        they make no boundary and count nowhere.
    unassigned : {"error", "count"}
        What a prediction outside 0 … C − 1 is on a valid pixel: an error, or
        no class.
    mask : array_like of bool, optional
        True where a pixel is valid.
    options : BoundaryOptions, optional
        What to measure.

    Returns
    -------
    ImageBoundaries

    Raises
    ------
    TypeError
        If an array does not hold integers or bool.
    ValueError
        If the shapes differ or are not (H, W), or ``num_classes`` is less than 1.
    UndeclaredValuesError
        If a value is neither a class nor ignored.

    Examples
    --------
    >>> truth = np.zeros((8, 8), dtype=np.uint8)
    >>> truth[2:6, 2:6] = 1
    >>> pred = np.roll(truth, 1, axis=1)
    >>> options = BoundaryOptions(widths=1, tolerances=[0, 1])
    >>> result = measure_boundaries(truth, pred, 2, options=options)
    >>> result.distances["pixels"].hausdorff()
    array([1., 1.])
    """
    ignored = tuple(ignore) if isinstance(ignore, Iterable) else (ignore,)
    codes = _label_codes(num_classes, ignored, unassigned).encode(truth, pred, mask)
    return measure_checked(*codes, num_classes, options)


@lru_cache(maxsize=2, typed=True)
def _label_codes(
    num_classes: int, ignore: tuple[int, ...], unassigned: Literal["error", "count"]
) -> LabelCodes:
    # Kept from one image to the next: to make it takes a fifth of the time of a small image.
    return LabelCodes(Encoding.of_indices(num_classes, ignore, unassigned))


def boundary_counts(truth: Any, pred: Any, num_classes: int, **settings: Any) -> BoundaryCounts:
    """Count at the boundaries of two label maps: ``measure_boundaries(…).counts``.

    Parameters
    ----------
    truth : array_like
        Label map of the truth, (H, W).
    pred : array_like
        Predicted label map, (H, W).
    num_classes : int
        Number of classes.
    **settings
        As :func:`segiou.boundary.measure_boundaries` takes them.

    Returns
    -------
    BoundaryCounts
    """
    return measure_boundaries(truth, pred, num_classes, **settings).counts


def count_labels(
    codes: LabelCodes, truth: Any, pred: Any, options: BoundaryOptions, mask: Any = None
) -> BoundaryCounts:
    """Count at the boundaries of a pair of label maps; raises as :meth:`LabelCodes.encode`.

    Parameters
    ----------
    codes : LabelCodes
        Codes of the classes' values.
    truth : array_like
        Label map of the truth, (H, W).
    pred : array_like
        Predicted label map, (H, W).
    options : BoundaryOptions
        The options.
    mask : array_like, optional
        True where a pixel counts; all by default.

    Returns
    -------
    BoundaryCounts
    """
    encoded = codes.encode(truth, pred, mask)
    return measure_checked(*encoded, codes.encoding.num_classes, options).counts
