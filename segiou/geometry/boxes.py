"""Overlap of axis-parallel boxes, all pairs or element by element.

A box is the set of points x1 <= x < x2, y1 <= y < y2: its width is x2 - x1, without a "+ 1".
Truth comes first: rows of every (N, M) result are truth boxes, columns are predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou.geometry import _boxes
from segiou.geometry._boxes import BoxFormat

BoxMeasure = Literal["intersection", "union", "iou", "giou", "signed_iou", "iof"]
Result = NDArray[np.floating[Any]]


def box_intersection(
    truth: ArrayLike,
    pred: ArrayLike,
    *,
    fmt: BoxFormat = "xyxy",
    elementwise: bool = False,
    out: Result | None = None,
) -> Result:
    """Area that two boxes share; parameters, result and errors as for `box_iou`.

    Examples
    --------
    >>> box_intersection([[50, 100, 200, 300]], [[80, 120, 220, 310]])
    array([[21600.]])
    """
    return _boxes.evaluate("intersection", truth, pred, fmt, elementwise, out)


def box_union(
    truth: ArrayLike,
    pred: ArrayLike,
    *,
    fmt: BoxFormat = "xyxy",
    elementwise: bool = False,
    out: Result | None = None,
) -> Result:
    """Area that at least one of two boxes covers; parameters and errors as for `box_iou`.

    Examples
    --------
    >>> box_union([[50, 100, 200, 300]], [[80, 120, 220, 310]])
    array([[35000.]])
    """
    return _boxes.evaluate("union", truth, pred, fmt, elementwise, out)


def box_iou(
    truth: ArrayLike,
    pred: ArrayLike,
    *,
    fmt: BoxFormat = "xyxy",
    elementwise: bool = False,
    crowd: ArrayLike | None = None,
    out: Result | None = None,
) -> Result:
    """Intersection over union of boxes: of all pairs, or element by element.

    Parameters
    ----------
    truth : array_like, shape (N, 4)
        Boxes, integers or floats. With `elementwise`, any shape (..., 4).
    pred : array_like, shape (M, 4)
        Boxes to compare with them. With `elementwise`, a shape that broadcasts against `truth`.
    fmt : {"xyxy", "xywh", "cxcywh"}
        What the four numbers are: two corners; corner, width and height; or centre, width and
        height. Both arrays are in the same format.
    elementwise : bool
        Compare `truth[i]` with `pred[i]` instead of all pairs.
    crowd : array_like of bool, shape (N,), optional
        Truth boxes that mark a crowd. For these the area of the prediction takes the place of the
        union, as COCO's ``iscrowd`` has it (COCO's own matrix is the transpose of this one).
    out : ndarray of float32 or float64, optional
        Where to write the result, such as half the memory in float32, or a memory map.

    Returns
    -------
    ndarray of float64, or `out`
        Shape (N, M); with `elementwise`, the broadcast shape, and a scalar for two single boxes.
        0 where boxes touch or are disjoint; NaN where the union has no area.

    Raises
    ------
    TypeError
        If the boxes are neither integers nor floats, or `crowd` is not boolean.
    ValueError
        If a box has swapped ends, a negative size or a value that is not finite (the message names
        the first one), if shapes do not fit, or if areas are too large for float64.

    See Also
    --------
    box_blocks : the same in blocks of rows, for results that do not fit into memory.

    Notes
    -----
    Beside the result this needs less than 2 MB, or ten rows of it if that is more.
    Integers never overflow. For integers, sides below 2**53 and areas below 2**52 are exact and
    the IoU is their correctly rounded ratio; larger ones are rounded to float64, each by a part in
    1e16. For "cxcywh" this holds for numbers up to 2**52.

    Examples
    --------
    >>> box_iou([[0, 0, 10, 10], [0, 0, 5, 5]], [[5, 5, 15, 15], [0, 0, 5, 5], [5, 0, 9, 5]])
    array([[0.14285714, 0.25      , 0.2       ],
           [0.        , 1.        , 0.        ]])
    >>> float(box_iou([0, 0, 5, 5], [1, 1, 4, 4], fmt="xywh", elementwise=True))
    0.64
    """
    return _boxes.evaluate("iou", truth, pred, fmt, elementwise, out, crowd)


def box_giou(
    truth: ArrayLike,
    pred: ArrayLike,
    *,
    fmt: BoxFormat = "xyxy",
    elementwise: bool = False,
    out: Result | None = None,
) -> Result:
    """Generalised IoU: IoU less the share of the enclosing box that neither box covers.

    In (-1, 1], never above the IoU, below 0 for boxes far apart. Parameters and errors as for
    `box_iou`. Source: Rezatofighi et al., CVPR 2019, arXiv 1902.09630, algorithm 2.

    Examples
    --------
    >>> box_giou([[0, 0, 1, 1]], [[0, 0, 1, 1], [2, 0, 3, 1]])
    array([[ 1.        , -0.33333333]])
    """
    return _boxes.evaluate("giou", truth, pred, fmt, elementwise, out)


def box_signed_iou(
    truth: ArrayLike,
    pred: ArrayLike,
    *,
    fmt: BoxFormat = "xyxy",
    elementwise: bool = False,
    out: Result | None = None,
) -> Result:
    """Signed IoU: for disjoint boxes the box between them counts as a negative intersection.

    With s the area of the box between the larger of the starts and the smaller of the ends,
    negative if it is turned inside out along either axis, s / (A + B - s). In [-1, 1], equal to
    the IoU where boxes overlap, 0 where they touch or overlap along an axis without area.
    Parameters and errors as for `box_iou`. Source: Simonelli et al., ICCV 2019, arXiv 1905.12365.

    Examples
    --------
    >>> box_signed_iou([[0, 0, 1, 1]], [[0, 0, 1, 1], [2, 2, 3, 3]])
    array([[ 1.        , -0.33333333]])
    """
    return _boxes.evaluate("signed_iou", truth, pred, fmt, elementwise, out)


def box_iof(
    truth: ArrayLike,
    pred: ArrayLike,
    *,
    fmt: BoxFormat = "xyxy",
    elementwise: bool = False,
    out: Result | None = None,
) -> Result:
    """Intersection over foreground: the share of the prediction that lies inside the truth.

    What COCO uses for crowd regions, here for every pair. NaN where the prediction has no area.
    Parameters and errors as for `box_iou`.

    Examples
    --------
    >>> box_iof([[0, 0, 100, 100]], [[10, 10, 20, 20], [90, 0, 110, 50]])
    array([[1. , 0.5]])
    """
    return _boxes.evaluate("iof", truth, pred, fmt, elementwise, out)


def box_blocks(
    truth: ArrayLike,
    pred: ArrayLike,
    measure: BoxMeasure = "iou",
    *,
    fmt: BoxFormat = "xyxy",
    crowd: ArrayLike | None = None,
    rows: int = 256,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Iterate over the pairwise result, some rows at a time.

    Parameters
    ----------
    truth, pred, fmt, crowd
        As for `box_iou`; `crowd` goes with the measure "iou" only.
    measure : {"iou", "intersection", "union", "giou", "signed_iou", "iof"}
        What to compute.
    rows : int
        Truth boxes per block.

    Yields
    ------
    rows : slice
        Which truth boxes the block is about.
    block : ndarray of float64, shape (at most `rows`, M)
        Their values. Each block is a new array.

    Raises
    ------
    TypeError, ValueError
        At the call, not at the first block, as for `box_iou`; and for an unknown measure.

    Examples
    --------
    >>> truth = [[0, 0, 2, 2], [4, 4, 6, 6], [8, 8, 9, 9]]
    >>> for rows, block in box_blocks(truth, [[0, 0, 2, 1], [8, 8, 9, 9]], rows=2):
    ...     print(rows.start, rows.stop, block.max(axis=1))
    0 2 [0.5 0. ]
    2 3 [1.]
    """
    if crowd is not None and measure != "iou":
        msg = f"crowd flags belong to the measure 'iou', not to {measure!r}; leave crowd out"
        raise ValueError(msg)
    if rows < 1:
        msg = f"rows must be at least 1, got {rows}"
        raise ValueError(msg)
    return _boxes.blocks(measure, truth, pred, fmt, crowd, rows)
