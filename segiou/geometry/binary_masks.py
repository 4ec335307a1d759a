"""Conversion between masks and boxes, and the IoU of binary masks.

Pixel (row r, column c) covers c <= x < c + 1, r <= y < r + 1, and its centre is (c + 1/2, r + 1/2).
A box with integer sides therefore covers whole pixels, and its mask has exactly its area.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou.counting.arrays import as_array, with_dimensions_of
from segiou.geometry.boxes import Format, as_flags, read_boxes
from segiou.geometry.positions import check_shapes, quotient

Mask = NDArray[np.bool_]

#: float32 counts up to 2**24 exactly; blocks of this many pixels stay far below.
_PIXELS = 2**16


def mask_to_box(mask: ArrayLike) -> NDArray[np.int64]:
    """Bounding box of the foreground of a mask.

    Parameters
    ----------
    mask : array_like of bool or integers, shape (..., H, W)
        One mask or a stack of them; nonzero is foreground.

    Returns
    -------
    ndarray of int64, shape (..., 4)
        ``x1, y1, x2, y2`` with exclusive ends: ``mask[y1:y2, x1:x2]`` contains the foreground.
        All 0 for an empty mask.

    Raises
    ------
    TypeError
        If the mask is neither boolean nor integer.
    ValueError
        If it has fewer than two axes.

    Examples
    --------
    >>> mask_to_box([[0, 0, 0, 0], [0, 1, 1, 0]])
    array([1, 1, 3, 2])
    """
    array = _binary(mask, "mask")
    x1, x2 = _first_and_end(np.any(array, axis=-2))
    y1, y2 = _first_and_end(np.any(array, axis=-1))
    return np.stack([x1, y1, x2, y2], axis=-1)


def box_to_mask(
    box: ArrayLike, shape: tuple[int, int], *, fmt: Format = "xyxy"
) -> NDArray[np.bool_]:
    """Rasterise boxes: a pixel is set if its centre is in x1 <= x < x2, y1 <= y < y2.

    Parameters
    ----------
    box : array_like, shape (..., 4)
        One box or many.
    shape : (int, int)
        Height and width of the masks; boxes are clipped to them.
    fmt : {"xyxy", "xywh", "cxcywh"}
        As for `box_iou`.

    Returns
    -------
    ndarray of bool, shape (..., H, W)
        A mask for each box.

    Raises
    ------
    TypeError, ValueError
        If a box is invalid (as for `box_iou`), or `shape` is not two sizes.

    Examples
    --------
    >>> box_to_mask([1, 0, 3, 1], (2, 4)).astype(int)
    array([[0, 1, 1, 0],
           [0, 0, 0, 0]])
    """
    height, width = as_shape(shape)
    corners = read_boxes(box, fmt, "box")[..., None]
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    columns = (corners[..., 0, :] <= x) & (x < corners[..., 2, :])
    rows = (corners[..., 1, :] <= y) & (y < corners[..., 3, :])
    drawn: Mask = rows[..., :, None] & columns[..., None, :]
    return drawn


def mask_iou(
    truth: ArrayLike, pred: ArrayLike, *, elementwise: bool = False, crowd: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Intersection over union of binary masks: of all pairs, or element by element.

    Parameters
    ----------
    truth : array_like of bool or integers, shape (N, H, W)
        Masks; nonzero is foreground. With `elementwise`, any shape (..., H, W).
    pred : array_like of bool or integers, shape (M, H, W)
        Masks of the same height and width.
    elementwise : bool
        Compare `truth[i]` with `pred[i]` instead of all pairs.
    crowd : array_like of bool, shape (N,), optional
        Truth masks that mark a crowd; for these, the area of the prediction replaces the union.

    Returns
    -------
    ndarray of float64
        Shape (N, M); with `elementwise`, the broadcast shape. NaN if both masks are empty.

    Raises
    ------
    TypeError
        If the masks are neither boolean nor integer.
    ValueError
        If shapes do not match.

    Examples
    --------
    >>> mask_iou([[[1, 1, 0]]], [[[0, 1, 1]], [[1, 1, 0]]])
    array([[0.33333333, 1.        ]])
    """
    ours, theirs = _binary(truth, "truth"), _binary(with_dimensions_of(truth, pred), "pred")
    if ours.shape[-2:] != theirs.shape[-2:]:
        msg = f"masks must have equal height and width, got {ours.shape} and {theirs.shape}"
        raise ValueError(msg)
    check_shapes(ours.shape[:-2], theirs.shape[:-2], elementwise, "masks")
    flags = None if crowd is None else as_flags(crowd, ours.shape[:-2], "crowd")
    truth_area, pred_area = (np.count_nonzero(mask, axis=(-2, -1)) for mask in (ours, theirs))
    if elementwise:
        shared = np.count_nonzero(ours & theirs, axis=(-2, -1))
    else:
        shared = _intersections(ours, theirs)
        truth_area = truth_area[:, None]
        flags = None if flags is None else flags[:, None]
    whole = truth_area + pred_area - shared
    return quotient(shared, whole if flags is None else np.where(flags, pred_area, whole))


def as_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Height and width as integers; a ValueError if they are not two sizes."""
    sizes = np.asarray(shape)
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        msg = f"shape must be two sizes, (height, width), got {shape!r}"
        raise ValueError(msg)
    return int(sizes[0]), int(sizes[1])


def _binary(mask: ArrayLike, name: str) -> Mask:
    array = as_array(mask, name)
    if array.dtype.kind not in "biu":
        msg = f"{name} must be boolean or integer, got dtype {array.dtype}; pass mask > threshold"
        raise TypeError(msg)
    if array.ndim < 2:
        msg = f"{name} must have a height and a width, got shape {array.shape}"
        raise ValueError(msg)
    return array != 0 if array.dtype.kind != "b" else array


def _intersections(truth: Mask, pred: Mask) -> NDArray[np.int64]:
    """Pixels shared by each pair, from matrix products over blocks of the masks."""
    ours, theirs = (side.reshape(len(side), math.prod(side.shape[1:])) for side in (truth, pred))
    total = np.zeros((len(truth), len(pred)), dtype=np.int64)
    for start in range(0, ours.shape[1], _PIXELS):
        piece = slice(start, start + _PIXELS)
        product = ours[:, piece].astype(np.float32) @ theirs[:, piece].astype(np.float32).T
        total += product.astype(np.int64)
    return total


def _first_and_end(present: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first True along the last axis and one past the last; 0, 0 if there is none."""
    if present.shape[-1] == 0:
        nothing = np.zeros(present.shape[:-1], dtype=np.int64)
        return nothing, nothing
    some = present.any(axis=-1)
    first = np.where(some, present.argmax(axis=-1), 0)
    end = np.where(some, present.shape[-1] - present[..., ::-1].argmax(axis=-1), 0)
    return first, end
