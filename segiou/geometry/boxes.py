"""Box IoU and related measures, for all pairs or elementwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_choice, check_integer
from segiou.counting.arrays import as_array
from segiou.geometry.positions import (
    Floats,
    Numbers,
    as_numbers,
    check_shapes,
    comparable,
    generalised_iou,
    quotient,
    refuse_any,
    signed_length,
)

Boxes = ArrayLike
Format = Literal["xyxy", "xywh", "cxcywh"]
Measure = Literal["intersection", "union", "iou", "giou", "signed_iou", "iof"]
Result = NDArray[np.floating[Any]]
Out = Result | None

#: Pairs computed at once, so that temporaries fit into the second-level cache.
_PAIRS = 2**14


def box_intersection(
    truth: Boxes, pred: Boxes, *, fmt: Format = "xyxy", elementwise: bool = False, out: Out = None
) -> Result:
    """Area of the intersection of boxes.

    Parameters
    ----------
    truth, pred, fmt, elementwise, out
        As for `box_iou`.

    Examples
    --------
    >>> box_intersection([[50, 100, 200, 300]], [[80, 120, 220, 310]])
    array([[21600.]])
    """
    return _compare("intersection", truth, pred, fmt, elementwise, out)


def box_union(
    truth: Boxes, pred: Boxes, *, fmt: Format = "xyxy", elementwise: bool = False, out: Out = None
) -> Result:
    """Area of the union of boxes.

    Parameters
    ----------
    truth, pred, fmt, elementwise, out
        As for `box_iou`.

    Examples
    --------
    >>> box_union([[50, 100, 200, 300]], [[80, 120, 220, 310]])
    array([[35000.]])
    """
    return _compare("union", truth, pred, fmt, elementwise, out)


def box_iou(
    truth: Boxes,
    pred: Boxes,
    *,
    fmt: Format = "xyxy",
    elementwise: bool = False,
    crowd: ArrayLike | None = None,
    out: Out = None,
) -> Result:
    """Intersection over union of boxes, for all pairs or elementwise.

    Parameters
    ----------
    truth : array_like, shape (N, 4)
        Boxes, integers or floats. With `elementwise`, any shape (..., 4).
    pred : array_like, shape (M, 4)
        Boxes to compare with them. With `elementwise`, a shape that broadcasts against `truth`.
    fmt : {"xyxy", "xywh", "cxcywh"}
        Format of both arrays: two corners; corner, width and height; or centre, width and height.
    elementwise : bool
        Compare `truth[i]` with `pred[i]` instead of all pairs.
    crowd : array_like of bool, shape (N,), optional
        Truth boxes that mark a crowd. For these, the area of the prediction replaces the union, as
        in COCO's ``iscrowd`` (COCO's matrix is the transpose of this one).
    out : ndarray of float32 or float64, optional
        Array to write the result to, for example a float32 array or a memory map.

    Returns
    -------
    ndarray of float64, or `out`
        Shape (N, M); with `elementwise`, the broadcast shape, and a scalar for two single boxes.
        0 if boxes touch or are disjoint; NaN if the union has no area.

    Raises
    ------
    TypeError
        If the boxes are neither integers nor floats, or `crowd` is not boolean.
    ValueError
        If a box has swapped ends, a negative size or a nonfinite value, shapes do not match, or
        areas are too large for float64.

    See Also
    --------
    iter_box_iou : The same in blocks of rows, for results that do not fit into memory.

    Notes
    -----
    Besides the result, this needs less than 2 MB, or ten rows of the result if that is more.
    Integers never overflow. For integers, sides below 2**53 and areas below 2**52 are exact, and
    the IoU is their correctly rounded ratio; larger ones are rounded to float64. For "cxcywh" this
    applies to numbers up to 2**52.

    Examples
    --------
    >>> box_iou([[0, 0, 10, 10], [0, 0, 5, 5]], [[5, 5, 15, 15], [0, 0, 5, 5], [5, 0, 9, 5]])
    array([[0.14285714, 0.25      , 0.2       ],
           [0.        , 1.        , 0.        ]])
    >>> float(box_iou([0, 0, 5, 5], [1, 1, 4, 4], fmt="xywh", elementwise=True))
    0.64
    """
    return _compare("iou", truth, pred, fmt, elementwise, out, crowd)


def box_giou(
    truth: Boxes, pred: Boxes, *, fmt: Format = "xyxy", elementwise: bool = False, out: Out = None
) -> Result:
    """Generalised IoU: IoU minus the share of the enclosing box that neither box covers.

    In (-1, 1], never above the IoU, negative for boxes far apart. Source: Rezatofighi et al.,
    CVPR 2019, arXiv 1902.09630, algorithm 2.

    Parameters
    ----------
    truth, pred, fmt, elementwise, out
        As for `box_iou`.

    Examples
    --------
    >>> box_giou([[0, 0, 1, 1]], [[0, 0, 1, 1], [2, 0, 3, 1]])
    array([[ 1.        , -0.33333333]])
    """
    return _compare("giou", truth, pred, fmt, elementwise, out)


def box_signed_iou(
    truth: Boxes, pred: Boxes, *, fmt: Format = "xyxy", elementwise: bool = False, out: Out = None
) -> Result:
    """Signed IoU: the box between two disjoint boxes counts as a negative intersection.

    Defined as s / (A + B - s), with s the area of the box from the larger starts to the smaller
    ends, negative if an end precedes its start on either axis. In [-1, 1]; equal to the IoU if the
    boxes overlap, 0 if they touch. Source: Simonelli et al., ICCV 2019, arXiv 1905.12365.

    Parameters
    ----------
    truth, pred, fmt, elementwise, out
        As for `box_iou`.

    Examples
    --------
    >>> box_signed_iou([[0, 0, 1, 1]], [[0, 0, 1, 1], [2, 2, 3, 3]])
    array([[ 1.        , -0.33333333]])
    """
    return _compare("signed_iou", truth, pred, fmt, elementwise, out)


def box_iof(
    truth: Boxes, pred: Boxes, *, fmt: Format = "xyxy", elementwise: bool = False, out: Out = None
) -> Result:
    """Intersection over foreground: the share of the prediction that is inside the truth.

    COCO uses this ratio for crowd regions. NaN if the prediction has no area.

    Parameters
    ----------
    truth, pred, fmt, elementwise, out
        As for `box_iou`.

    Examples
    --------
    >>> box_iof([[0, 0, 100, 100]], [[10, 10, 20, 20], [90, 0, 110, 50]])
    array([[1. , 0.5]])
    """
    return _compare("iof", truth, pred, fmt, elementwise, out)


def iter_box_iou(
    truth: Boxes,
    pred: Boxes,
    measure: Measure = "iou",
    *,
    fmt: Format = "xyxy",
    crowd: ArrayLike | None = None,
    rows: int = 256,
) -> Iterator[tuple[slice, Floats]]:
    """Iterate over the pairwise IoU, or a related measure, in blocks of rows.

    Parameters
    ----------
    truth, pred, fmt, crowd
        As for `box_iou`; `crowd` requires the measure "iou".
    measure : {"iou", "intersection", "union", "giou", "signed_iou", "iof"}
        Measure to compute.
    rows : int
        Truth boxes per block.

    Returns
    -------
    iterator of tuple of slice and ndarray
        The truth boxes of each block, and their values in a new array of
        float64, shape (at most `rows`, M).

    Raises
    ------
    TypeError, ValueError
        As for `box_iou`, or if the measure is unknown; raised by the call, not by the first block.

    Examples
    --------
    >>> truth = [[0, 0, 2, 2], [4, 4, 6, 6], [8, 8, 9, 9]]
    >>> for rows, block in iter_box_iou(truth, [[0, 0, 2, 1], [8, 8, 9, 9]], rows=2):
    ...     print(rows.start, rows.stop, block.max(axis=1))
    0 2 [0.5 0. ]
    2 3 [1.]
    """
    check_choice("measure", measure, get_args(Measure))
    if crowd is not None and measure != "iou":
        msg = f"crowd requires measure='iou', got {measure!r}; omit crowd"
        raise ValueError(msg)
    check_integer("rows", rows, 1)
    ours, theirs = _read_both(truth, pred, fmt, False, crowd)
    count = len(ours.area)
    blocks = (slice(start, min(start + rows, count)) for start in range(0, count, rows))
    pairs = ((some, _all_pairs(measure, ours.part(some), theirs)) for some in blocks)
    return ((some, block.astype(np.float64, copy=False)) for some, block in pairs)


def _compare(
    measure: Measure,
    truth: Boxes,
    pred: Boxes,
    fmt: Format,
    elementwise: bool,
    out: Out,
    crowd: ArrayLike | None = None,
) -> Result:
    """Compute a measure for all pairs or elementwise."""
    ours, theirs = _read_both(truth, pred, fmt, elementwise, crowd)
    if not elementwise:
        return _all_pairs(measure, ours, theirs, out)
    # An additional axis makes a single box an array.
    values = _FORMULAS[measure](ours.part((..., None)), theirs.part((..., None)))[..., 0]
    if out is None:
        single: Result = values[()]
        return single
    _writable(out, values.shape)[...] = values
    return out


def _all_pairs(measure: Measure, truth: _Sides, pred: _Sides, out: Out = None) -> Result:
    """The measure of all pairs, computed in cache-sized blocks."""
    shape = len(truth.area), len(pred.area)
    result = np.empty(shape) if out is None else _writable(out, shape)
    step = max(1, _PAIRS // max(1, len(pred.area)))
    for row in range(0, len(result), step):
        rows = truth.part(np.s_[row : row + step, None])
        result[row : row + step] = _FORMULAS[measure](rows, pred)
    return result


def read_boxes(values: ArrayLike, fmt: Format, kind: str) -> Numbers:
    """Valid boxes as (..., 4) corners, int64 or float64; errors as for `box_iou`."""
    check_choice("fmt", fmt, get_args(Format))
    boxes = as_numbers(values, 4, kind)
    if fmt == "xyxy":
        swapped = (boxes[..., 2:] < boxes[..., :2]).any(axis=-1)
        refuse_any(swapped, boxes, kind, "has swapped ends (x2 < x1 or y2 < y1)")
        return boxes
    anchor, size = boxes[..., :2], boxes[..., 2:]
    refuse_any((size < 0).any(axis=-1), boxes, kind, "has a negative width or height")
    with np.errstate(over="ignore"):
        start = anchor if fmt == "xywh" else anchor - size / 2
        end = anchor + (size if fmt == "xywh" else size / 2)
    # Only overflowed integers can end before they start.
    refuse_any((end < start).any(axis=-1), boxes, kind, "ends beyond int64")
    return np.concatenate([start, end], axis=-1)


def _read_both(
    truth: Boxes, pred: Boxes, fmt: Format, elementwise: bool, crowd: ArrayLike | None
) -> tuple[_Sides, _Sides]:
    ours = read_boxes(truth, fmt, "truth box")
    theirs = read_boxes(pred, fmt, "predicted box")
    check_shapes(ours.shape[:-1], theirs.shape[:-1], elementwise, "boxes")
    flags = None if crowd is None else as_flags(crowd, ours.shape[:-1], "crowd")
    ours, theirs = comparable(ours, theirs, "boxes")
    return _Sides.of(ours, flags), _Sides.of(theirs)


def as_flags(flags: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    """Boolean flags of a shape; 0 and 1 are accepted, as in COCO files."""
    array = as_array(flags, name)
    if array.size == 0:
        array = array.astype(np.bool_)
    if array.dtype.kind not in "biu":
        msg = f"{name} must contain True or False per truth, got dtype {array.dtype}"
        raise TypeError(msg)
    if not np.isin(array, (0, 1)).all():
        msg = f"{name} must contain True or False (1 or 0) per truth, got {array.max()}"
        raise ValueError(msg)
    if array.shape != shape:
        msg = f"{name} must have one flag per truth, shape {shape}, got {array.shape}"
        raise ValueError(msg)
    return array.astype(np.bool_)


def _writable(out: Result, shape: tuple[int, ...]) -> Result:
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float32, np.float64):
        kind = getattr(out, "dtype", type(out).__name__)
        msg = f"out must be a float32 or float64 array, got {kind}"
        raise TypeError(msg)
    if out.shape != shape:
        msg = f"out must have shape {shape}, got {out.shape}"
        raise ValueError(msg)
    return out


class _Sides(NamedTuple):
    """Starts and ends of boxes along x and y, their areas and crowd flags."""

    starts: tuple[Numbers, ...]
    ends: tuple[Numbers, ...]
    area: Floats
    crowd: NDArray[np.bool_] | None

    @classmethod
    def of(cls, corners: Numbers, crowd: NDArray[np.bool_] | None = None) -> _Sides:
        # Copies are contiguous; strided access would cost more than the arithmetic.
        x1, y1, x2, y2 = (corners[..., side].copy() for side in range(4))
        area = signed_length(x1, x2) * signed_length(y1, y2)
        return cls((x1, y1), (x2, y2), area, crowd)

    def part(self, index: Any) -> _Sides:
        starts, ends = (tuple(side[index] for side in sides) for sides in self[:2])
        crowd = None if self.crowd is None else self.crowd[index]
        return _Sides(starts, ends, self.area[index], crowd)


_Formula = Callable[[_Sides, _Sides], Floats]


def _lengths(truth: _Sides, pred: _Sides, start: np.ufunc, end: np.ufunc) -> list[Floats]:
    """Width and height between the chosen starts and ends of two boxes."""
    return [
        signed_length(start(truth.starts[a], pred.starts[a]), end(truth.ends[a], pred.ends[a]))
        for a in (0, 1)
    ]


def _intersection(truth: _Sides, pred: _Sides) -> Floats:
    # Negative lengths are gaps between two boxes.
    width, height = _lengths(truth, pred, np.maximum, np.minimum)
    np.maximum(width, 0.0, out=width)
    np.maximum(height, 0.0, out=height)
    return np.multiply(width, height, out=width)


def _joined(truth: _Sides, pred: _Sides, shared: Floats) -> Floats:
    union: Floats = truth.area + pred.area
    return np.subtract(union, shared, out=union)


def _iou(truth: _Sides, pred: _Sides) -> Floats:
    shared = _intersection(truth, pred)
    whole = _joined(truth, pred, shared)
    if truth.crowd is not None:
        whole = np.where(truth.crowd, pred.area, whole)
    return quotient(shared, whole)


def _giou(truth: _Sides, pred: _Sides) -> Floats:
    shared = _intersection(truth, pred)
    width, height = _lengths(truth, pred, np.minimum, np.maximum)
    return generalised_iou(shared, _joined(truth, pred, shared), width * height)


def _signed_iou(truth: _Sides, pred: _Sides) -> Floats:
    width, height = _lengths(truth, pred, np.maximum, np.minimum)
    shared = np.sign(np.minimum(width, height)) * np.abs(width * height)
    # Adding 0 turns -0, for boxes that touch at a corner, into 0.
    return quotient(shared, _joined(truth, pred, shared)) + 0.0


_FORMULAS: dict[Measure, _Formula] = {
    "intersection": _intersection,
    "union": lambda truth, pred: _joined(truth, pred, _intersection(truth, pred)),
    "iou": _iou,
    "giou": _giou,
    "signed_iou": _signed_iou,
    "iof": lambda truth, pred: quotient(_intersection(truth, pred), pred.area),
}
