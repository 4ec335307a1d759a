"""Run lengths and polygons → masks, with exactly the pixels of pycocotools or OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Most pixels of a mask in an annotation file.
MOST_PIXELS = 1 << 28
#: Polygon sides are traced on a grid this much finer, as in pycocotools.
_FINER = 5
#: Most steps of an outline on that grid.
_MOST_STEPS = 1 << 26
#: Mean length in pixels below which all runs are set together; longer ones are set one by one.
_CLOSE = 64
#: Subpixel resolution of OpenCV.
_PARTS = 1 << 16


def check_size(size: Any) -> tuple[int, int]:
    """Height and width of an image."""
    sides = tuple(size) if isinstance(size, (list, tuple)) else ()
    whole = len(sides) == 2 and all(type(side) is int and side > 0 for side in sides)
    if not whole or sides[0] * sides[1] > MOST_PIXELS:
        msg = f"has an invalid size (height, width): {size!r:.80}"
        raise ValueError(msg)
    return sides


class Painting:
    """A mask drawn segment by segment; later segments cover earlier ones."""

    def __init__(self, size: tuple[int, int], background: int, dtype: Any) -> None:
        self.size = size
        self._flat = np.full(size[0] * size[1], background, dtype=dtype)

    @property
    def mask(self) -> NDArray[Any]:
        """The mask, shape (H, W)."""
        height, width = self.size
        return np.ascontiguousarray(self._flat.reshape(width, height).T)

    def add(self, segmentation: Any, value: int) -> None:
        """Set the pixels of a segment: run lengths (a dict), polygons (a list), or an area."""
        if isinstance(segmentation, np.ndarray):
            if segmentation.dtype != bool or segmentation.shape != self.size:
                msg = f"its area is {segmentation.dtype} of shape {segmentation.shape}; expected "
                msg += f"bool of shape {self.size}"
                raise ValueError(msg)
            self._flat[segmentation.T.ravel()] = value
        elif isinstance(segmentation, dict):
            if "size" in segmentation and check_size(segmentation["size"]) != self.size:
                msg = f"its size {segmentation['size']} differs from its image's {self.size}"
                raise ValueError(msg)
            self._add_runs(run_lengths(segmentation.get("counts")), value)
        elif isinstance(segmentation, list):
            for corners in segmentation:
                self._add_runs(_polygon_runs(corners, self.size), value)
        else:
            msg = "it has neither run lengths nor polygons"
            raise ValueError(msg)

    def _add_runs(self, runs: NDArray[np.int64], value: int) -> None:
        """Set runs of pixels, column by column, alternately outside and inside the segment."""
        if (runs < 0).any() or (runs > self._flat.size).any():
            msg = "its run lengths are negative, or longer than the image"
            raise ValueError(msg)
        if (covered := int(runs.sum())) != self._flat.size:
            msg = f"its run lengths cover {covered} of {self._flat.size} pixels"
            raise ValueError(msg)
        if runs.size < 2:
            return
        ends = runs.cumsum()
        first, last = int(ends[0]), int(ends[(runs.size - 2) // 2 * 2 + 1])
        if last - first < _CLOSE * runs.size:
            inside = np.arange(runs.size - 1) % 2 == 0
            self._flat[first:][np.repeat(inside, runs[1:])] = value
            return
        for begin, end in zip(ends[:-1:2].tolist(), ends[1::2].tolist(), strict=True):
            self._flat[begin:end] = value


def run_lengths(counts: Any) -> NDArray[np.int64]:
    """Run lengths from a list, or from COCO's compressed text.

    >>> run_lengths("1310"), run_lengths([1, 3, 1, 3])
    (array([1, 3, 1, 3]), array([1, 3, 1, 3]))
    """
    if isinstance(counts, str):
        return _decoded(counts)
    if not isinstance(counts, list) or not all(type(n) is int for n in counts):
        msg = "its run lengths are neither text nor a list of integers"
        raise ValueError(msg)
    try:
        return np.array(counts, dtype=np.int64)
    except OverflowError:
        msg = "its run lengths are larger than any image"
        raise ValueError(msg) from None


def _decoded(text: str) -> NDArray[np.int64]:
    """Decode numbers of six bits per character: five bits of the value and a continuation bit."""
    bits = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 48
    if ((bits < 0) | (bits > 63)).any() or (bits.size and bits[-1] & 32):
        msg = "its compressed run lengths are corrupt or truncated"
        raise ValueError(msg)
    last = np.flatnonzero((bits & 32) == 0)
    first = np.concatenate([[0], last[:-1] + 1]).astype(np.int64)[: last.size]
    lengths = last - first + 1
    if lengths.size and lengths.max() > 8:
        msg = "its compressed run lengths are larger than any image"
        raise ValueError(msg)
    shifts = 5 * (np.arange(bits.size) - np.repeat(first, lengths))
    runs = np.add.reduceat((bits & 31) << shifts, first) if last.size else bits
    runs = np.where(bits[last] & 16, runs - (1 << 5 * lengths), runs)
    # From the fourth number on, each is a difference to the second before.
    runs[1::2], runs[2::2] = runs[1::2].cumsum(), runs[2::2].cumsum()
    return runs


def _polygon_runs(corners: Any, size: tuple[int, int]) -> NDArray[np.int64]:
    """Run lengths of a polygon's inside, identical to pycocotools."""
    points = check_corners(corners, size, 3)
    height, width = size
    fine = (_FINER * points + 0.5).astype(np.int64)
    u, v = _outline(fine, np.roll(fine, -1, axis=0))
    # An outline that enters another column toggles the pixels below it.
    step = np.flatnonzero(u[1:] != u[:-1])
    goes_left = u[step + 1] < u[step]
    column = (np.where(goes_left, u[step + 1], u[step + 1] - 1) + 0.5) / _FINER - 0.5
    row = (np.minimum(v[step], v[step + 1]) + 0.5) / _FINER - 0.5
    kept = (np.floor(column) == column) & (column >= 0) & (column <= width - 1)
    rows = np.ceil(np.clip(row[kept], 0, height)).astype(np.int64)
    toggles = np.sort(column[kept].astype(np.int64) * height + rows)
    return np.diff(toggles, prepend=0, append=height * width)


def check_corners(corners: Any, size: tuple[int, int], least: int) -> NDArray[np.float64]:
    """Corners of a shape, (N, 2), from a list of pairs or of alternating x, y."""
    try:
        points = np.array(corners, dtype=np.float64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        points = np.empty((0, 2))
    if len(points) < max(1, least):
        msg = f"expected a list of at least {least} corners (x, y)"
        raise ValueError(msg)
    if not (np.abs(points) <= 2 * max(size) + 64).all():  # also where a number is NaN
        msg = f"it has a corner that is not a number, or far outside the {size} pixels"
        raise ValueError(msg)
    return points


def _outline(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All points of a polygon's sides on the fine grid, in order."""
    extent = np.abs(end - start)
    wide = extent[:, 0] >= extent[:, 1]
    # The coordinate in which a side is longer comes first.
    start, end = (np.where(wide[:, None], ends, ends[:, ::-1]) for ends in (start, end))
    flipped = start[:, 0] > end[:, 0]
    least, most = (np.where(flipped[:, None], *ends) for ends in ((end, start), (start, end)))
    length, across = (most - least).T
    slope = across / np.maximum(length, 1)
    side, step = _steps(length + 1)
    step = np.where(flipped[side], length[side] - step, step)
    first = least[side, 0] + step
    second = (least[side, 1] + slope[side] * step + 0.5).astype(np.int64)
    return np.where(wide[side], first, second), np.where(wide[side], second, first)


def _steps(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Side, and position on it, of each step along a polygon's sides."""
    if lengths.sum() > _MOST_STEPS:
        msg = f"a polygon's outline is longer than {_MOST_STEPS // _FINER} pixels"
        raise ValueError(msg)
    side = np.repeat(np.arange(len(lengths)), lengths)
    return side, np.arange(side.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def filled(points: NDArray[np.int64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """A polygon's inside and sides, identical to OpenCV's fillPoly if its corners are inside."""
    area = np.zeros(size, dtype=bool)
    window, part = filled_part(points, size)
    area[window] = part
    return area


def filled_part(
    points: NDArray[np.int64], size: tuple[int, int]
) -> tuple[tuple[slice, slice], NDArray[np.bool_]]:
    """The window of an image around a polygon, and the pixels of :func:`filled` in it."""
    after = np.roll(points, -1, axis=0)
    first = points.min(axis=0).clip(0, size[::-1])
    width, height = points.max(axis=0).clip(first - 1, np.array(size[::-1]) - 1) + 1 - first
    begin, end = _clipped(points, after, size)
    from_left = (begin[:, 0] > end[:, 0])[:, None]
    start, way = np.where(from_left, end, begin), np.abs(end - begin)
    direction = np.sign(np.where(from_left, begin, end) - start)
    side, step = _steps(way.max(axis=1) + 1)
    most = np.maximum(way.max(axis=1), 1)[side, None]
    # Ties go to the pixel nearer to the left end of the side.
    moved = (2 * way[side] * step[:, None] + most - 1) // (2 * most)
    x, y = (start[side] + direction[side] * moved - first).T
    is_inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    part = _pixels_between_sides(points - first, after - first, (int(height), int(width)))
    part[y[is_inside], x[is_inside]] = True
    left, top = first.tolist()
    return (slice(top, top + height), slice(left, left + width)), part


def _clipped(
    begin: NDArray[np.int64], end: NDArray[np.int64], size: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sides without their parts outside the image, in the order of OpenCV's clipLine."""
    ends, last = np.stack([begin, end]), (size[1] - 1, size[0] - 1)
    for axis in (1, 0):  # rows first
        for k in (0, 1):
            outside = (ends[k, :, axis] < 0) | (ends[k, :, axis] > last[axis])
            # Sides that are outside at both ends stay unchanged; none of their pixels is set.
            beyond = [(e[:, axis] > last[axis]) * 1 - (e[:, axis] < 0) for e in ends]
            chosen = outside & ((beyond[0] != beyond[1]) | (beyond[0] == 0))
            (x, u), (y, v) = ends[:, chosen, axis], ends[:, chosen, 1 - axis]
            to = np.where(ends[k, chosen, axis] < 0, 0, last[axis])
            moved = np.trunc((to - (x, u)[k]) * (v - y) / (u - x)).astype(np.int64)
            ends[k, chosen, 1 - axis] += moved
            ends[k, chosen, axis] = to
    return ends[0], ends[1]


def _pixels_between_sides(
    points: NDArray[np.int64], after: NDArray[np.int64], size: tuple[int, int]
) -> NDArray[np.bool_]:
    """Pixels between the first and second side in each row, the third and fourth, and so on."""
    height, width = size
    goes_up = (points[:, 1] > after[:, 1])[:, None]
    top, bottom = np.where(goes_up, after, points), np.where(goes_up, points, after)
    crossed = top[:, 1] < bottom[:, 1]
    top, rows = top[crossed], bottom[crossed] - top[crossed]
    # In 1/65536 of a pixel, as in OpenCV.
    slope = np.trunc(rows[:, 0] * _PARTS / rows[:, 1]).astype(np.int64)
    side, step = _steps(rows[:, 1])
    x, y = top[side, 0] * _PARTS + slope[side] * step, top[side, 1] + step
    order = np.lexsort((x, y))
    y, left, right = y[order][::2], -(-x[order][::2] // _PARTS), x[order][1::2] // _PARTS + 1
    kept = (y >= 0) & (y < height) & (left < right)
    area = np.zeros((height, width + 1), dtype=np.int8)
    np.add.at(area, (y[kept], left[kept].clip(0, width)), 1)
    np.add.at(area, (y[kept], right[kept].clip(0, width)), -1)
    return np.asarray(area.cumsum(axis=1, dtype=np.int8)[:, :width] > 0)
