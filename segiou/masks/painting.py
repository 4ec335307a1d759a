"""Segments → masks: run lengths and polygons, pixel by pixel as pycocotools and OpenCV do it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: No mask has more pixels than this in a file of segments.
MOST_PIXELS = 1 << 28
#: The sides of polygons are followed on a grid this much finer, as pycocotools does.
_FINER = 5
#: No outline of a polygon is longer, in steps of that grid.
_MOST_STEPS = 1 << 26
#: Parts of a pixel in which OpenCV follows the sides.
_PARTS = 1 << 16


def check_size(size: Any) -> tuple[int, int]:
    """Height and width of an image.

    Raises
    ------
    ValueError
        If they are no such numbers, or those of no image.
    """
    sides = tuple(size) if isinstance(size, (list, tuple)) else ()
    whole = len(sides) == 2 and all(type(side) is int and side > 0 for side in sides)
    if not whole or sides[0] * sides[1] > MOST_PIXELS:
        msg = f"its size, height and width, is {size!r:.80}"
        raise ValueError(msg)
    return sides


class Painting:
    """A mask that grows segment by segment; later segments cover earlier ones.

    Attributes
    ----------
    size : (int, int)
        Height and width.
    """

    def __init__(self, size: tuple[int, int], background: int, dtype: Any) -> None:
        self.size = size
        self._flat = np.full(size[0] * size[1], background, dtype=dtype)

    @property
    def mask(self) -> NDArray[Any]:
        """The mask, shape (H, W)."""
        height, width = self.size
        return np.ascontiguousarray(self._flat.reshape(width, height).T)

    def add(self, segmentation: Any, value: int) -> None:
        """Give a segment's pixels a value: run lengths (a dict), polygons (a list), or an area.

        Raises
        ------
        ValueError
            If it is none of these, or does not fit the image.
        """
        if isinstance(segmentation, np.ndarray):
            self._flat[segmentation.T.ravel()] = value
        elif isinstance(segmentation, dict):
            if "size" in segmentation and check_size(segmentation["size"]) != self.size:
                msg = f"its size is {segmentation['size']}, and that of its image {self.size}"
                raise ValueError(msg)
            self._add_runs(run_lengths(segmentation.get("counts")), value)
        elif isinstance(segmentation, list):
            for corners in segmentation:
                self._add_runs(_polygon_runs(corners, self.size), value)
        else:
            msg = "it has neither run lengths nor polygons"
            raise ValueError(msg)

    def _add_runs(self, runs: NDArray[np.int64], value: int) -> None:
        """Runs of pixels, column by column, outside and inside the segment in turn."""
        if (runs < 0).any() or (runs > self._flat.size).any():
            msg = "its run lengths are negative, or longer than the image"
            raise ValueError(msg)
        if (covered := int(runs.sum())) != self._flat.size:
            msg = f"its run lengths cover {covered} of the image's {self._flat.size} pixels"
            raise ValueError(msg)
        if runs.size < 2:
            return
        first, inside = int(runs[0]), np.arange(runs.size - 1) % 2 == 0
        self._flat[first:][np.repeat(inside, runs[1:])] = value


def run_lengths(counts: Any) -> NDArray[np.int64]:
    """Run lengths from a list, or from the text that COCO packs them into.

    Examples
    --------
    >>> run_lengths("1310"), run_lengths([1, 3, 1, 3])
    (array([1, 3, 1, 3]), array([1, 3, 1, 3]))
    """
    if isinstance(counts, str):
        return _unpacked(counts)
    if not isinstance(counts, list) or not all(type(n) is int for n in counts):
        msg = "its run lengths are neither a text nor a list of integers"
        raise ValueError(msg)
    try:
        return np.array(counts, dtype=np.int64)
    except OverflowError:
        msg = "its run lengths are larger than any image"
        raise ValueError(msg) from None


def _unpacked(text: str) -> NDArray[np.int64]:
    """Numbers of six bits a character: a sign, five bits of the value, whether more follow."""
    bits = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 48
    if ((bits < 0) | (bits > 63)).any() or (bits.size and bits[-1] & 32):
        msg = "its packed run lengths are damaged or cut off"
        raise ValueError(msg)
    last = np.flatnonzero((bits & 32) == 0)
    first = np.concatenate([[0], last[:-1] + 1]).astype(np.int64)[: last.size]
    lengths = last - first + 1
    if lengths.size and lengths.max() > 8:
        msg = "its packed run lengths are larger than any image"
        raise ValueError(msg)
    shifts = 5 * (np.arange(bits.size) - np.repeat(first, lengths))
    runs = np.add.reduceat((bits & 31) << shifts, first) if last.size else bits
    runs = np.where(bits[last] & 16, runs - (1 << 5 * lengths), runs)
    # From the fourth on, a number is the difference to the second before.
    runs[1::2], runs[2::2] = runs[1::2].cumsum(), runs[2::2].cumsum()
    return runs


def _polygon_runs(corners: Any, size: tuple[int, int]) -> NDArray[np.int64]:
    """Run lengths of a polygon's inside, pixel by pixel those of pycocotools."""
    points = check_corners(corners, size, 3)
    height, width = size
    fine = (_FINER * points + 0.5).astype(np.int64)
    u, v = _outline(fine, np.roll(fine, -1, axis=0))
    # Where the outline goes on to another column, it toggles what lies below it.
    step = np.flatnonzero(u[1:] != u[:-1])
    goes_left = u[step + 1] < u[step]
    column = (np.where(goes_left, u[step + 1], u[step + 1] - 1) + 0.5) / _FINER - 0.5
    row = (np.minimum(v[step], v[step + 1]) + 0.5) / _FINER - 0.5
    kept = (np.floor(column) == column) & (column >= 0) & (column <= width - 1)
    rows = np.ceil(np.clip(row[kept], 0, height)).astype(np.int64)
    toggles = np.sort(column[kept].astype(np.int64) * height + rows)
    return np.diff(toggles, prepend=0, append=height * width)


def check_corners(corners: Any, size: tuple[int, int], least: int) -> NDArray[np.float64]:
    """Corners of a shape, (N, 2), from a list of pairs or of x, y in turn.

    Raises
    ------
    ValueError
        If they are too few, no numbers, or far outside of the image.
    """
    try:
        points = np.array(corners, dtype=np.float64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        points = np.empty((0, 2))
    if len(points) < max(1, least):
        msg = f"it is no list of at least {least} corners, x and y"
        raise ValueError(msg)
    if not (np.abs(points) <= 2 * max(size) + 64).all():  # also where a number is NaN
        msg = f"it has a corner that is no number, or far outside of the {size} pixels"
        raise ValueError(msg)
    return points


def _outline(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every point of the sides of a polygon on the fine grid, one after the other."""
    extent = np.abs(end - start)
    wide = extent[:, 0] >= extent[:, 1]
    # Of each corner first the coordinate in which its side is longer.
    start, end = (np.where(wide[:, None], ends, ends[:, ::-1]) for ends in (start, end))
    flipped = start[:, 0] > end[:, 0]
    least, most = (np.where(flipped[:, None], *ends) for ends in ((end, start), (start, end)))
    length, across = (most - least).T
    slope = across / np.maximum(length, 1)
    of, at = _steps(length + 1)
    at = np.where(flipped[of], length[of] - at, at)
    first = least[of, 0] + at
    second = (least[of, 1] + slope[of] * at + 0.5).astype(np.int64)
    return np.where(wide[of], first, second), np.where(wide[of], second, first)


def _steps(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every step along the sides of a polygon: its side, and its place on it."""
    if lengths.sum() > _MOST_STEPS:
        msg = f"it has a polygon whose outline is longer than {_MOST_STEPS // _FINER} pixels"
        raise ValueError(msg)
    of = np.repeat(np.arange(len(lengths)), lengths)
    return of, np.arange(of.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def filled(points: NDArray[np.int64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """A polygon's inside and its sides, pixel by pixel as OpenCV's fillPoly draws them."""
    after = np.roll(points, -1, axis=0)
    from_left = (points[:, 0] > after[:, 0])[:, None]
    start, way = np.where(from_left, after, points), np.abs(after - points)
    direction = np.sign(np.where(from_left, points, after) - start)
    of, at = _steps(way.max(axis=1) + 1)
    most = np.maximum(way.max(axis=1), 1)[of, None]
    # Of two pixels that are as near to a side, the one nearer to its left end.
    x, y = (start[of] + direction[of] * ((2 * way[of] * at[:, None] + most - 1) // (2 * most))).T
    is_inside = (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])
    area = _between_sides(points, after, size)
    area[y[is_inside], x[is_inside]] = True
    return area


def _between_sides(
    points: NDArray[np.int64], after: NDArray[np.int64], size: tuple[int, int]
) -> NDArray[np.bool_]:
    """Pixels between the first and second side of a row, the third and fourth, and so on."""
    height, width = size
    goes_up = (points[:, 1] > after[:, 1])[:, None]
    top, bottom = np.where(goes_up, after, points), np.where(goes_up, points, after)
    crossed = top[:, 1] < bottom[:, 1]
    top, rows = top[crossed], bottom[crossed] - top[crossed]
    # In parts of a pixel of 1 / 65536, as OpenCV does it.
    slope = np.trunc(rows[:, 0] * _PARTS / rows[:, 1]).astype(np.int64)
    of, at = _steps(rows[:, 1])
    x, y = top[of, 0] * _PARTS + slope[of] * at, top[of, 1] + at
    order = np.lexsort((x, y))
    y, left, right = y[order][::2], -(-x[order][::2] // _PARTS), x[order][1::2] // _PARTS + 1
    kept = (y >= 0) & (y < height) & (left < right)
    area = np.zeros((height, width + 1), dtype=np.int8)
    np.add.at(area, (y[kept], left[kept].clip(0, width)), 1)
    np.add.at(area, (y[kept], right[kept].clip(0, width)), -1)
    return np.asarray(area.cumsum(axis=1, dtype=np.int8)[:, :width] > 0)
