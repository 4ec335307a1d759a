"""How boxes are read, and the formulas behind the public functions of `boxes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._arguments import check_choice
from segiou.geometry._ends import (
    Numbers,
    as_array,
    as_numbers,
    check_shapes,
    comparable,
    refuse_any,
    refuse_overflow,
    signed_length,
)
from segiou.geometry._ratio import ratio

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
Floats = NDArray[np.float64]
Result = NDArray[np.floating[Any]]

# Pairs computed at once: the few temporaries of this length stay in a second-level cache.
_PAIRS = 2**14


@dataclass(frozen=True)
class Sides:
    """Boxes by their four sides and their area, all of one shape, and which are crowds."""

    x1: Numbers
    y1: Numbers
    x2: Numbers
    y2: Numbers
    area: Floats
    crowd: NDArray[np.bool_] | None = None

    def column(self, start: int, stop: int) -> Sides:
        """Take some of the boxes, as a column that broadcasts against a row of boxes."""
        return self._at((slice(start, stop), None))

    def deepened(self) -> Sides:
        """Take all boxes, with one axis more, so that a single box is an array as well."""
        return self._at((..., None))

    def _at(self, index: Any) -> Sides:
        x1, y1, x2, y2 = (side[index] for side in (self.x1, self.y1, self.x2, self.y2))
        crowd = None if self.crowd is None else self.crowd[index]
        return Sides(x1, y1, x2, y2, self.area[index], crowd)


def evaluate(
    measure: str,
    truth: ArrayLike,
    pred: ArrayLike,
    fmt: BoxFormat,
    elementwise: bool,
    out: Result | None,
    crowd: ArrayLike | None = None,
) -> Result:
    """Compute a measure of all pairs or element by element; see `boxes.box_iou`."""
    ours, theirs = _read_both(truth, pred, fmt, elementwise, crowd)
    formula = _formula(measure)
    if elementwise:
        values = formula(ours.deepened(), theirs.deepened())[..., 0]
        if out is None:
            single: Result = values[()]
            return single
        _writable(out, values.shape)[...] = values
        return out
    shape = (len(ours.area), len(theirs.area))
    result = np.empty(shape) if out is None else _writable(out, shape)
    _fill(formula, ours, theirs, 0, result)
    return result


def blocks(
    measure: str,
    truth: ArrayLike,
    pred: ArrayLike,
    fmt: BoxFormat,
    crowd: ArrayLike | None,
    rows: int,
) -> Iterator[tuple[slice, Floats]]:
    """Check now, compute when asked; see `boxes.box_blocks`."""
    ours, theirs = _read_both(truth, pred, fmt, False, crowd)
    formula = _formula(measure)
    count = len(ours.area)

    def compute() -> Iterator[tuple[slice, Floats]]:
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            block = np.empty((stop - start, len(theirs.area)))
            _fill(formula, ours, theirs, start, block)
            yield slice(start, stop), block

    return compute()


def _fill(formula: Formula, truth: Sides, pred: Sides, first: int, result: Result) -> None:
    """Write the rows of truth boxes `first` and following, a cache-sized block at a time."""
    step = max(1, _PAIRS // max(1, len(pred.area)))
    for row in range(0, len(result), step):
        stop = min(row + step, len(result))
        result[row:stop] = formula(truth.column(first + row, first + stop), pred)


def read_boxes(values: ArrayLike, fmt: BoxFormat, kind: str) -> Numbers:
    """Return valid boxes as (..., 4) corners, int64 or float64.

    Raises
    ------
    TypeError, ValueError
        As for `boxes.box_iou`.
    """
    check_choice("fmt", fmt, ("xyxy", "xywh", "cxcywh"))
    boxes = as_numbers(values, 4, kind)
    if fmt == "xyxy":
        swapped = (boxes[..., 2:] < boxes[..., :2]).any(axis=-1)
        refuse_any(swapped, boxes, kind, "has swapped ends (x2 < x1 or y2 < y1)")
        return boxes
    place, size = boxes[..., :2], boxes[..., 2:]
    refuse_any((size < 0).any(axis=-1), boxes, kind, "has a negative width or height")
    with np.errstate(over="ignore"):
        start = place if fmt == "xywh" else place - size / 2
        end = place + (size if fmt == "xywh" else size / 2)
    # Only integers that wrapped round can end before they start.
    refuse_any((end < start).any(axis=-1), boxes, kind, "ends beyond int64")
    return np.concatenate([start, end], axis=-1)


def _read_both(
    truth: ArrayLike,
    pred: ArrayLike,
    fmt: BoxFormat,
    elementwise: bool,
    crowd: ArrayLike | None,
) -> tuple[Sides, Sides]:
    ours = read_boxes(truth, fmt, "truth box")
    theirs = read_boxes(pred, fmt, "predicted box")
    check_shapes(ours.shape[:-1], theirs.shape[:-1], elementwise, "boxes")
    flags = None if crowd is None else as_flags(crowd, ours.shape[:-1], "crowd")
    ours, theirs = comparable(ours, theirs)
    refuse_overflow([(ours[..., a::2], theirs[..., a::2]) for a in (0, 1)], "boxes")
    return _sides(ours, flags), _sides(theirs)


def _sides(corners: Numbers, crowd: NDArray[np.bool_] | None = None) -> Sides:
    # Contiguous sides: a strided look-up costs more than the arithmetic on it.
    x1, y1, x2, y2 = (corners[..., side].copy() for side in range(4))
    return Sides(x1, y1, x2, y2, signed_length(x1, x2) * signed_length(y1, y2), crowd)


def as_flags(flags: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    """Return boolean flags of a shape; 0 and 1 are taken, as COCO files write them."""
    array = as_array(flags, name)
    if array.size == 0:
        array = array.astype(np.bool_)
    if array.dtype.kind not in "biu":
        msg = f"{name} must hold True or False for each truth, got dtype {array.dtype}"
        raise TypeError(msg)
    if not np.isin(array, (0, 1)).all():
        msg = f"{name} must hold True or False (1 or 0) for each truth, got {array.max()}"
        raise ValueError(msg)
    if array.shape != shape:
        msg = f"{name} must have one flag for each truth, shape {shape}, got {array.shape}"
        raise ValueError(msg)
    return array.astype(np.bool_)


def _writable(out: Result, shape: tuple[int, ...]) -> Result:
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float32, np.float64):
        found = getattr(out, "dtype", type(out).__name__)
        msg = f"out must be a float32 or float64 array, got {found}"
        raise TypeError(msg)
    if out.shape != shape:
        msg = f"out must have the shape of the result, {shape}, got {out.shape}"
        raise ValueError(msg)
    return out


def _formula(measure: str) -> Formula:
    check_choice("measure", measure, tuple(_FORMULAS))
    return _FORMULAS[measure]


def _intersection(truth: Sides, pred: Sides) -> Floats:
    width, height = _shared_lengths(truth, pred)
    np.maximum(width, 0.0, out=width)
    np.maximum(height, 0.0, out=height)
    return np.multiply(width, height, out=width)


def _union(truth: Sides, pred: Sides) -> Floats:
    return _joined(truth, pred, _intersection(truth, pred))


def _iou(truth: Sides, pred: Sides) -> Floats:
    shared = _intersection(truth, pred)
    whole = _joined(truth, pred, shared)
    if truth.crowd is not None:
        whole = np.where(truth.crowd, pred.area, whole)
    return ratio(shared, whole)


def _giou(truth: Sides, pred: Sides) -> Floats:
    shared = _intersection(truth, pred)
    union = _joined(truth, pred, shared)
    width = signed_length(np.minimum(truth.x1, pred.x1), np.maximum(truth.x2, pred.x2))
    height = signed_length(np.minimum(truth.y1, pred.y1), np.maximum(truth.y2, pred.y2))
    hull = np.multiply(width, height, out=width)
    # Rounding can leave the union an ulp above its own hull.
    return ratio(shared, union) - ratio(np.maximum(hull - union, 0.0), hull)


def _signed_iou(truth: Sides, pred: Sides) -> Floats:
    width, height = _shared_lengths(truth, pred)
    sign = np.sign(np.minimum(width, height))
    shared = sign * np.abs(width * height)
    # Adding 0 turns the -0 of boxes that touch at a corner into 0.
    return ratio(shared, _joined(truth, pred, shared)) + 0.0


def _iof(truth: Sides, pred: Sides) -> Floats:
    return ratio(_intersection(truth, pred), pred.area)


def _joined(truth: Sides, pred: Sides, shared: Floats) -> Floats:
    union: Floats = truth.area + pred.area
    return np.subtract(union, shared, out=union)


def _shared_lengths(truth: Sides, pred: Sides) -> tuple[Floats, Floats]:
    """Width and height of what two boxes share; negative where a gap lies between them."""
    width = signed_length(np.maximum(truth.x1, pred.x1), np.minimum(truth.x2, pred.x2))
    height = signed_length(np.maximum(truth.y1, pred.y1), np.minimum(truth.y2, pred.y2))
    return width, height


Formula = Callable[[Sides, Sides], Floats]

_FORMULAS: dict[str, Formula] = {
    "intersection": _intersection,
    "union": _union,
    "iou": _iou,
    "giou": _giou,
    "signed_iou": _signed_iou,
    "iof": _iof,
}
