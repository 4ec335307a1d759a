"""Boundary counts of one pair of label maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part, warn_missing
from segiou.measures.boundary.sums import BoundaryCounts, empty_parts
from segiou.regions.label_codes import (
    BYTE_CLASSES,
    Codes,
    LabelCodes,
    ignored_code,
    unassigned_code,
)

if TYPE_CHECKING:
    from segiou.measures.boundary.measure import BoundaryOptions

__all__ = ["BACKEND", "count_labels"]

_kernel = load_part("segiou.measures.boundary._kernel")
BACKEND = "numpy" if _kernel is None else "c"

Bands = tuple[NDArray[np.int64], ...]


def count_labels(
    codes: LabelCodes, truth: Any, pred: Any, options: BoundaryOptions, mask: Any = None
) -> BoundaryCounts:
    """Boundary counts of a pair of label maps, encoded by given codes.

    Parameters
    ----------
    codes : LabelCodes
        Encoding of the classes.
    truth, pred : array_like of int or bool, equal shapes (H, W)
        True and predicted label map.
    options : BoundaryOptions
        Widths of the bands.
    mask : array_like of bool, optional
        True where a pixel is valid; all pixels by default.
    """
    return count_codes(*codes.encode(truth, pred, mask), codes.encoding.num_classes, options)


def count_codes(
    truth: Codes, pred: Codes, num_classes: int, options: BoundaryOptions
) -> BoundaryCounts:
    """Boundary counts of two maps of codes from :class:`LabelCodes`."""
    if 0 in truth.shape:
        msg = f"expected an image with at least one pixel, got shape {truth.shape}"
        raise ValueError(msg)
    sides: list[Any] = [np.ascontiguousarray(side) for side in (truth, pred)]
    truth, pred = sides
    table, parts = empty_parts(num_classes, options)
    parts["images"][...] = 1
    parts["pixels"][...] = np.count_nonzero(truth != ignored_code(truth.dtype))
    borders = options.band_border, options.trimap_border if options.trimaps else None
    for k, width in enumerate(options.widths):
        # No band is wider than the image.
        pixels = min(width.width(truth.shape), max(truth.shape))
        bands = count_bands(truth, pred, num_classes, pixels, *borders)
        # Only bands are kept if trimaps are off.
        for name, band in zip(("band", "trimap", "outer"), bands, strict=True):
            if name in parts:
                parts[name][k] = band
    return BoundaryCounts.trusted(table, num_classes, options)


def count_bands(
    truth: Codes,
    pred: Codes,
    num_classes: int,
    width: int,
    band_border: bool,
    trimap_border: bool | None,
) -> Bands:
    """Count the pixels within ``width`` (in chessboard distance) of a boundary."""
    # band (C, 3): inner band of each class in truth, in prediction, in both. trimap (C, 3): truth,
    # prediction and agreement in the band of all truth boundaries. outer (C, 2): pixels outside a
    # class but within the width of it, those predicted as the class and all.
    borders = band_border, trimap_border
    if _kernel is None:
        warn_missing("segiou.measures.boundary._kernel")
        return reference_bands(truth, pred, num_classes, width, *borders)
    bands = tuple(np.zeros((num_classes, n), dtype=np.int64) for n in (3, 3, 2))
    if truth.dtype == np.uint8:
        trimap = -1 if trimap_border is None else trimap_border
        _kernel.count_bands(
            truth, pred, *truth.shape, num_classes, width, band_border, trimap, *bands
        )
        return bands
    # The kernel counts bytes, so renumber the classes present in this image.
    present = np.union1d(truth, pred)
    present = present[present < num_classes]
    if len(present) > BYTE_CLASSES:
        return reference_bands(truth, pred, num_classes, width, *borders)
    table = np.full(1 << 16, unassigned_code(np.dtype(np.uint8)), dtype=np.uint8)
    table[present] = np.arange(len(present))
    table[ignored_code(truth.dtype)] = ignored_code(table.dtype)
    few = count_bands(table[truth], table[pred], len(present) or 1, width, *borders)
    for band, part in zip(bands, few, strict=True):
        band[present] = part[: len(present)]
    return bands


def reference_bands(
    truth: Codes,
    pred: Codes,
    num_classes: int,
    width: int,
    band_border: bool,
    trimap_border: bool | None,
) -> Bands:
    """NumPy reference of :func:`count_bands`."""
    inner_truth, inner_pred = _inner_band(truth, width), _inner_band(pred, width)
    frame = truth != ignored_code(truth.dtype)
    frame[width:-width, width:-width] = False
    in_truth, in_pred = (inner | (frame & band_border) for inner in (inner_truth, inner_pred))
    agreed = truth == pred
    band = _class_counts(
        num_classes, truth[in_truth], pred[in_pred], truth[in_truth & in_pred & agreed]
    )
    if trimap_border is None:
        return band, np.zeros_like(band), np.zeros((num_classes, 2), dtype=np.int64)
    near = inner_truth | (frame & trimap_border)
    trimap = _class_counts(num_classes, truth[near], pred[near], truth[near & agreed])
    return band, trimap, _outer_counts(truth, pred, num_classes, width)


def _class_counts(num_classes: int, *selected: Any) -> NDArray[np.int64]:
    counts = [np.bincount(codes, minlength=num_classes)[:num_classes] for codes in selected]
    return np.stack(counts, axis=-1).astype(np.int64)


def _inner_band(codes: Codes, width: int) -> NDArray[np.bool_]:
    """Mark valid pixels with a valid pixel of a different code in their window."""
    ignored = codes.dtype.type(ignored_code(codes.dtype))
    padded = np.zeros((2, codes.shape[0] + 2 * width, codes.shape[1] + 2 * width), codes.dtype)
    inner = padded[:, width:-width, width:-width]
    # The maximum of the complement is the complement of the minimum.
    inner[0] = np.where(codes == ignored, 0, codes)
    inner[1] = ~codes
    high, low = _window_max(padded, 2 * width + 1)
    return np.asarray((high != ~low) & (codes != ignored))


def _window_max(padded: NDArray[Any], size: int) -> NDArray[Any]:
    """Maximum over square windows that are entirely within the last two axes."""
    for axis in (-2, -1):
        values = np.moveaxis(padded, axis, 0)
        reach = 1
        while reach < size:
            step = min(reach, size - reach)
            values = np.maximum(values[:-step], values[step:])
            reach += step
        padded = np.moveaxis(values, 0, axis)
    return padded


def _outer_counts(truth: Codes, pred: Codes, num_classes: int, width: int) -> NDArray[np.int64]:
    ignored = ignored_code(truth.dtype)
    counts = np.zeros((num_classes, 2), dtype=np.int64)
    for c in np.unique(truth[truth < num_classes]).tolist():
        rows, cols = (
            slice(max(0, int(at.min()) - width), int(at.max()) + width + 1)
            for at in np.nonzero(truth == c)
        )
        t, p = truth[rows, cols], pred[rows, cols]
        near = _window_max(np.pad(t == c, width), 2 * width + 1) & (t != c) & (t != ignored)
        counts[c] = np.count_nonzero(near & (p == c)), np.count_nonzero(near)
    return counts
