"""Points of surfaces in 2-D and 3-D, and the distances between those of two surfaces."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import LEAST_SPACING, MOST_SPACING, refuse_kind
from segiou._support.optional import load_part, warn_missing
from segiou.counting.id_pairs import mapped
from segiou.regions.label_codes import as_bytes

_MODULE = "segiou.regions._surfaces"
_kernel = load_part(_MODULE)

#: Limits of the kernel: length of an axis, and range of the spacing.
_LONGEST, _STEPS = 65535, (1e-9, 1e6)
#: The code of ignored voxels; lower codes are labels, and 0 is background and the outside.
_IGNORED = 255
#: Number of labels that are measured at once.
_MOST = 253
#: Codes where the outside is ignored: 0 is ignored, and background is the code above all labels.
_WITHOUT_BORDER = np.arange(256, dtype=np.uint8)
_WITHOUT_BORDER[[0, _IGNORED]] = _MOST + 1, 0
#: Points of a side held at once, unless a twelfth of the voxels is more or there is one label.
_FEWEST_POINTS = 1 << 18
#: Relative imprecision of a spacing: twice that of float32.
_IMPRECISION = 2.0**-23
#: Rounding error of shares of area sums.
_ROUNDING = 1e-9

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["voxels", "elements"]
Label = int | str
Result = TypeVar("Result")

#: A point is an integer: its index in an array with the shape of :func:`point_shape`, and, for a
#: corner, from this bit on the voxels around it that have the label (four, stored twice, in 2-D).
Points = NDArray[np.uint64]
_CODE_BITS = np.uint64(48)
#: Areas of equally weighted points.
_ONES = np.ones(256)


def check_spacing(
    array: NDArray[Any], spacing: float | Sequence[float] | None, what: str
) -> tuple[float, ...]:
    """The spacing along each of two or three axes; ``what`` is the subject of the error."""
    if array.ndim not in (2, 3):
        msg = f"{what} require arrays of shape (H, W) or (D, H, W), got shape {array.shape}"
        raise ValueError(msg)
    steps = np.asarray(1.0 if spacing is None else spacing)
    wanted = "one number from 1e-12 to 1e12 or one per axis"
    if steps.dtype.kind not in "iuf":
        raise refuse_kind("spacing", spacing, wanted)
    steps = steps.astype(float)
    is_known = ((steps >= LEAST_SPACING) & (steps <= MOST_SPACING)).all()
    if steps.shape not in ((), (array.ndim,)) or not is_known:
        msg = f"spacing must be {wanted}, got {spacing}"
        raise ValueError(msg)
    return tuple(np.broadcast_to(steps, array.ndim).tolist())


def reached_by(limit: float) -> float:
    """A limit that multiples of a spacing equal to it do not exceed: 3 × 0.1 is within 0.3.

    Headers of NIfTI files have the precision of float32, in which 0.8 is 0.800000012.
    """
    return limit * (1 + _IMPRECISION)


def point_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the three axes used to index points of a 2-D or 3-D array."""
    if max(shape) <= _LONGEST:
        return (_LONGEST + 1,) * 3
    return (1,) * (3 - len(shape)) + tuple(n + 1 for n in shape)


def point_places(points: Points) -> NDArray[np.int64]:
    """Index of each point."""
    return (points & np.uint64((1 << 48) - 1)).astype(np.int64)


def point_codes(points: Points) -> NDArray[np.uint8]:
    """Bits of the voxels around each point that have the label."""
    return (points >> _CODE_BITS).astype(np.uint8)


def find_points(
    labels: NDArray[Any],
    wanted: Iterable[int],
    kind: Kind,
    ignored: int = -1,
    limit: int = sys.maxsize,
) -> dict[int, Points] | None:
    """Surface points of each wanted label, in order; None if they may exceed the limit.

    Label 0 is also the outside of the array and has no surface.
    """
    if _kernel is None:
        warn_missing(_MODULE)
    is_odd = labels.size == 0 or max(labels.shape) > _LONGEST or labels.dtype != np.uint8
    if _kernel is None or is_odd:
        return _find_by_numpy(labels, wanted, kind, ignored)
    is_wanted = np.zeros(256, np.uint8)
    is_wanted[[*wanted]] = 1
    is_flat, is_corners = labels.ndim == 2, kind == "elements"
    shape = (1,) * is_flat + labels.shape
    labels = np.ascontiguousarray(labels)
    points = _kernel.find(labels, *shape, is_flat, is_wanted, ignored, is_corners, limit)
    return points and {label: np.frombuffer(part, np.uint64) for label, part in points.items()}


def _find_by_numpy(
    labels: NDArray[Any], wanted: Iterable[int], kind: Kind, ignored: int
) -> dict[int, Points]:
    """NumPy reference of :func:`find_points`, label by label."""
    from scipy import ndimage  # type: ignore[import-untyped, unused-ignore]

    points: dict[int, Points] = {}
    _, height, width = point_shape(labels.shape)
    strides = (height * width, width, 1)[-labels.ndim :]
    padded, chosen = np.pad(labels, 1), {*wanted}
    ends = itertools.product((slice(-1), slice(1, None)), repeat=labels.ndim)
    corners = list(ends) * (4 - labels.ndim)
    for label, box in enumerate(ndimage.find_objects(labels, max(chosen)), 1):
        if box is None or label not in chosen:
            continue
        part = padded[tuple(slice(side.start, side.stop + 2) for side in box)]
        inside, is_void = part == label, part == ignored
        if kind == "voxels":
            on_edge = inside & ndimage.binary_dilation(~(inside | is_void))
            on_surface = on_edge[(slice(1, -1),) * labels.ndim]
            codes = np.zeros(on_surface.shape, np.uint8)
        else:
            bits = [inside[corner].view(np.uint8) << i for i, corner in enumerate(corners)]
            codes = np.bitwise_or.reduce(bits)
            on_surface = (codes % 255 > 0) & ~np.any([is_void[corner] for corner in corners], 0)
        if on_surface.any():
            at = np.argwhere(on_surface) + [side.start for side in box]
            places = np.asarray(at @ strides).astype(np.uint64)
            points[label] = places | codes[on_surface].astype(np.uint64) << _CODE_BITS
    return points


class Nearest(NamedTuple):
    """Distance from each point to the nearest of other points."""

    #: Common distances, ascending.
    values: Floats
    #: Area of the points at each common distance.
    areas: Floats
    #: Rank of each point's distance; the number of common distances if it is larger than those.
    ranks: NDArray[np.uint16]
    #: The larger distances, in the order of the points.
    far: Floats

    @property
    def each(self) -> Floats:
        """The distance of each point."""
        distances: Floats = np.append(self.values, 0.0)[self.ranks]
        distances[self.ranks == len(self.values)] = self.far
        return distances


class Grid(NamedTuple):
    """Shape and voxel size of an array."""

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    #: Whether squares along the axes are summed from the last axis to the first.
    is_reversed: bool = False


def find_nearest(query: Points, target: Points, grid: Grid, areas: Floats = _ONES) -> Nearest:
    """Distance from each query to the nearest target; ``areas`` are indexed by point code."""
    if _kernel is None:
        warn_missing(_MODULE)
    shape, spacing, is_reversed = grid
    # An image has one slice: set the next ones so far away that they are never searched.
    steps = spacing if len(spacing) == 3 else (1000 * max(spacing), *spacing)
    is_odd = max(shape) > _LONGEST or min(spacing) <= _STEPS[0] or max(spacing) >= _STEPS[1]
    if _kernel is None or is_odd:
        far = _nearest_by_scipy(query, target, Grid(point_shape(shape), steps, is_reversed))
        return Nearest(np.empty(0), np.empty(0), np.zeros(len(far), np.uint16), far)
    rows, ranks, certain, values = _table(steps, is_reversed)
    ranks_of_query, sums, squares = _kernel.nearest(
        query, target, rows, ranks, certain, *steps, is_reversed, areas
    )
    far = np.sqrt(np.frombuffer(squares))
    return Nearest(values, np.frombuffer(sums), np.frombuffer(ranks_of_query, np.uint16), far)


def _nearest_by_scipy(query: Points, target: Points, grid: Grid) -> Floats:
    """SciPy reference of :func:`find_nearest`."""
    from scipy.spatial import cKDTree  # type: ignore[import-untyped]

    unknown, known = (
        np.stack(np.unravel_index(point_places(points), grid.shape), -1)
        for points in (query, target)
    )
    nearest = cKDTree(known * grid.spacing).query(unknown * grid.spacing)[1]
    # Integer offsets, unlike the tree's scaled points, are rounded only once per axis.
    squares = np.square((unknown - known[nearest]) * grid.spacing)
    distances: Floats = np.sqrt((squares[:, ::-1] if grid.is_reversed else squares).sum(-1))
    return distances


#: Search window of the kernel: number of rows, reach across rows, half the length along a row.
_ROWS, _ROW_REACH, _HALF = 64, 6, 29


@lru_cache(maxsize=8)
def _table(steps: tuple[float, ...], is_reversed: bool) -> tuple[Any, Any, int, Floats]:
    """Rows around a point, nearest first, the ranks of distances along them, and all distances.

    Ranks up to the returned one are certain: nothing outside the rows is nearer.
    """

    def square(*offsets: Any) -> Any:
        squares = [np.square(n * size) for n, size in zip(offsets, steps, strict=True)]
        return sum(squares[::-1] if is_reversed else squares)

    reach = range(-_ROW_REACH, _ROW_REACH + 1)
    rows = np.array(list(itertools.product(reach, reach)), np.int32)
    squares = square(rows[:, 0], rows[:, 1], 0)
    order = np.argsort(squares, kind="stable")
    order = order[squares[order] < ((_ROW_REACH + 1) * min(steps[:2])) ** 2][:_ROWS]
    rows = np.ascontiguousarray(rows[order])
    along = square(rows[:, :1], rows[:, 1:], np.arange(_HALF))
    values, ranks = np.unique(along, return_inverse=True)
    limit = min((_HALF * steps[2]) ** 2, squares[order[-1]])
    certain = int(np.searchsorted(values, limit, "right")) - 1
    ranks = np.ascontiguousarray(ranks.reshape(along.shape), np.uint16)
    return rows, ranks, certain, np.sqrt(values[: certain + 1])


class Distances(NamedTuple):
    """Distances from the points of one surface to the nearest of the other, ascending."""

    #: Distances; empty if the other surface has no points.
    values: Floats = np.empty(0)
    #: Number of points at each distance, or their area.
    weights: Floats = np.empty(0)
    #: Number of all points of the surface, or their area.
    size: float = 0.0

    def within(self, limit: float) -> float:
        """Size of the part of the surface within a distance."""
        return float(self.weights[: np.searchsorted(self.values, limit, "right")].sum())


class Both(NamedTuple):
    """Distances between two surfaces: from truth to prediction, and back."""

    there: Distances = Distances()
    back: Distances = Distances()

    def average(self, rule: str) -> float:
        """The mean over both surfaces pooled, or the mean of the two means."""
        sums = [float((side.values * side.weights).sum()) for side in self]
        if rule == "pooled":
            return sum(sums) / (self.there.size + self.back.size)
        return (sums[0] / self.there.size + sums[1] / self.back.size) / 2

    def percentile(self, rule: str, share: float) -> float:
        """A percentile of the distances, by the rule of a convention."""
        if rule == "pooled":
            values = np.concatenate([side.values for side in self])
            weights = np.concatenate([side.weights for side in self])
            order = np.argsort(values)
            return _linear(Distances(values[order], weights[order]), share)
        find = {"linear": _linear, "weighted": _weighted, "summed": _summed}[rule]
        return max(find(side, share) for side in self)

    def has_tie(self, percentiles: tuple[float, ...]) -> bool:
        """Whether the order of summation may decide; then each point needs a separate entry."""
        shares = [np.cumsum(side.weights) / side.size for side in self if len(side.values)]
        return any(
            (np.abs(sums - percentile / 100) < _ROUNDING).any()
            for sums in shares
            for percentile in percentiles
        )


def _linear(side: Distances, share: float) -> float:
    """The percentile of weighted points, interpolated as in ``np.quantile``."""
    ends = np.cumsum(side.weights)
    position = (int(ends[-1]) - 1) * share
    below = int(position)
    places = np.searchsorted(ends, [below, min(below + 1, ends[-1] - 1)], "right")
    low, high = side.values[places]
    part = position - below
    step = high - low
    return float(low + step * part if part < 0.5 else high - step * (1 - part))


def _summed(side: Distances, share: float) -> float:
    """The percentile as in surface-distance, where float sums decide ties."""
    shares = np.cumsum(side.weights) / np.sum(side.weights)
    index = min(int(np.searchsorted(shares, share)), len(shares) - 1)
    return float(side.values[index])


def _weighted(side: Distances, share: float) -> float:
    """The smallest distance that contains that share of the area."""
    within = np.cumsum(side.weights)
    index = np.searchsorted(within, share * within[-1] * (1 - _ROUNDING))
    return float(side.values[index])


@dataclass(frozen=True, eq=False)
class SurfacePair:
    """The surfaces of a pair of label arrays, and the distances between them."""

    truth: NDArray[Any]
    pred: NDArray[Any]
    spacing: tuple[float, ...]
    kind: Kind
    ignore: frozenset[int] = frozenset()
    threads: int = 1
    of_each: bool = False
    border: bool = True

    def distances(
        self, structures: Mapping[Label, tuple[int, ...]] | None
    ) -> Iterator[tuple[Label, Both]]:
        """Distances of each structure, by default each label except 0, in no particular order."""
        for names, sides, ignored in self._layers(structures):
            for code, distances in self._measured([*names], sides, ignored):
                yield names[code], distances

    def each_distance(self, values: tuple[int, ...]) -> Both:
        """Distances of one structure present on both sides, with one entry per point."""
        # In C order, areas are computed in the order of the spacing.
        truth, pred = map(np.ascontiguousarray, (self.truth, self.pred))
        pair = replace(self, truth=truth, pred=pred, of_each=True)
        ((_, distances),) = pair.distances({"": values})
        return distances

    def bands(
        self, structures: Mapping[Label, tuple[int, ...]], widths: tuple[float, ...]
    ) -> Iterator[tuple[Label, tuple[tuple[int, int, int], ...]]]:
        """Voxels in the inner bands of truth, prediction and both, per present structure."""
        for names, sides, ignored in self._layers(structures):
            seen = _occurring(sides)
            for code, name in names.items():
                if not seen[code]:
                    continue
                # Ignored voxels do not end a structure.
                left_out = sides[0] == ignored if ignored >= 0 else np.False_
                solid = [(side == code) | left_out for side in sides]
                box = bounding_box(solid[0] | solid[1])
                counted = []
                for width in widths:
                    truth, pred = (
                        (side[box] == code) & ~_inner(mask[box], width, self._grid.spacing)
                        for side, mask in zip(sides, solid, strict=True)
                    )
                    counted.append(tuple(map(np.count_nonzero, (truth, pred, truth & pred))))
                yield name, tuple((int(a), int(b), int(shared)) for a, b, shared in counted)

    @cached_property
    def _grid(self) -> Grid:
        """The grid in memory order: reversed axes for Fortran-ordered arrays."""
        flags = self.truth.flags, self.pred.flags
        if all(f.f_contiguous for f in flags) and not all(f.c_contiguous for f in flags):
            return Grid(self.truth.shape[::-1], self.spacing[::-1], is_reversed=True)
        return Grid(self.truth.shape, self.spacing)

    @cached_property
    def _areas(self) -> Floats:
        """Area of a point by its code."""
        return _ONES if self.kind == "voxels" else element_areas(self._grid.spacing)

    def _layers(
        self, structures: Mapping[Label, tuple[int, ...]] | None
    ) -> Iterator[tuple[dict[int, Label], list[NDArray[np.uint8]], int]]:
        """Groups of disjoint structures by code, both sides in these codes, the ignored code."""
        turned = (x.T if self._grid.is_reversed else x for x in (self.truth, self.pred))
        truth, pred = sides = [np.ascontiguousarray(as_bytes(side)) for side in turned]
        are_bytes = self.border and not self.ignore and truth.dtype == pred.dtype == np.uint8
        if structures is None and are_bytes:
            yield {value: value for value in range(1, 256)}, sides, -1
            return
        if structures is None:
            values = [np.unique(side).tolist() for side in sides]
            labels = {0}.union(*values) - {0} - self.ignore
            structures = {value: (value,) for value in sorted(labels)}
        for names in _disjoint(structures, _MOST):
            members = [structures[name] for name in names]
            if are_bytes and all(len(m) == 1 and 0 < m[0] < 256 for m in members):
                yield {v: name for name, (v,) in zip(names, members, strict=True)}, sides, -1
                continue
            codes, ignored = self._codes(truth, pred, members)
            yield dict(enumerate(names, 1)), codes, ignored

    def _codes(
        self, truth: NDArray[Any], pred: NDArray[Any], members: list[tuple[int, ...]]
    ) -> tuple[list[NDArray[np.uint8]], int]:
        """Both sides in codes of structures, which count from 1, and the ignored code."""
        table = {v: code for code, of_name in enumerate(members, 1) for v in of_name}
        codes = mapped(truth, table | dict.fromkeys(self.ignore, _IGNORED), np.uint8)
        pred_codes = mapped(pred, table, np.uint8)
        if self.ignore:
            pred_codes[codes == _IGNORED] = _IGNORED
        if not self.border:
            return [_WITHOUT_BORDER[codes], _WITHOUT_BORDER[pred_codes]], 0
        return [codes, pred_codes], _IGNORED if self.ignore else -1

    def _measured(
        self, codes: list[int], sides: list[NDArray[np.uint8]], ignored: int
    ) -> Iterator[tuple[int, Both]]:
        """Distances of each code; one code at a time if there are too many points."""
        limit = max(_FEWEST_POINTS, sides[0].size // 12) if len(codes) > 1 else sys.maxsize
        truth, pred = self._map(
            lambda side: find_points(side, codes, self.kind, ignored, limit), sides
        )
        if truth is None or pred is None:
            seen = _occurring(sides)
            for code in codes:
                if seen[code]:
                    yield from self._measured([code], sides, ignored)
            return
        occurring = sorted({*truth, *pred})
        none = np.empty(0, np.uint64)
        pairs = ((truth.pop(code, none), pred.pop(code, none)) for code in occurring)
        tasks = (task for pair in pairs for task in (pair, pair[::-1]))
        directions = self._map(lambda task: self._distances(*task), tasks)
        yield from zip(occurring, map(Both, directions[::2], directions[1::2]), strict=True)

    def _distances(self, query: Points, target: Points) -> Distances:
        """Distances from each point to the nearest point of the other surface."""
        if not (len(query) and len(target)):
            return Distances(size=float(self._weights(query).sum()))
        nearest = find_nearest(query, target, self._grid, self._areas)
        if self.of_each:
            values, weights = nearest.each, self._weights(query)
            order = np.lexsort((weights, values))
            values, weights = values[order], weights[order]
        else:
            near = np.flatnonzero(nearest.areas)
            values, weights = nearest.values[near], nearest.areas[near]
            order = np.argsort(nearest.far)  # all of these are larger than the common distances
            codes = point_codes(query)[nearest.ranks == len(nearest.values)].take(order)
            values = np.append(values, nearest.far.take(order))
            weights = np.append(weights, self._areas.take(codes))
        return Distances(values, weights, float(weights.sum()))

    def _weights(self, points: Points) -> Floats:
        return self._areas[point_codes(points)]

    def _map(self, function: Callable[[Any], Result], tasks: Iterable[Any]) -> list[Result]:
        if self.threads == 1:
            return [function(task) for task in tasks]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(function, tasks))


def _occurring(sides: list[NDArray[np.uint8]]) -> Bools:
    """Whether each code occurs."""
    seen = np.zeros(256, np.bool_)
    for plane in itertools.chain(*sides):  # plane by plane to save memory
        seen[plane] = True
    return seen


def bounding_box(mask: Bools) -> tuple[slice, ...]:
    """Bounding box of a mask; that of an empty mask is empty."""
    others = [tuple({*range(mask.ndim)} - {axis}) for axis in range(mask.ndim)]
    places = (np.flatnonzero(mask.any(axes)) for axes in others)
    return tuple(slice(at[0], at[-1] + 1) if len(at) else slice(0) for at in places)


def _inner(mask: Bools, width: float, steps: tuple[float, ...]) -> Bools:
    """Voxels of a mask farther than a width from every voxel outside it."""
    missing = 3 - mask.ndim
    shape = (1,) * missing + mask.shape
    around = [int(min(width / step, n - 1)) + 1 for step, n in zip(steps, mask.shape, strict=True)]
    # An image has no voxels in front of and behind its only slice.
    depth, height, length = (0,) * missing + (*around,)
    steps = (1.0,) * missing + steps
    # Number of bits that must be set on either side, for each row around a voxel.
    z, y = np.ogrid[-depth : depth + 1, -height : height + 1]
    across = np.square(z * steps[0]) + np.square(y * steps[1])
    along = np.square(np.arange(length + 1) * steps[2])
    reach = (np.sqrt(across[..., None] + along) <= reached_by(width)).sum(-1) - 1
    rows = np.packbits(mask.reshape(shape), axis=-1, bitorder="little")
    inner = np.full_like(rows, 0xFF)
    rows = np.pad(rows, ((depth, depth), (height, height), (0, 0)))
    for steps_along in range(int(reach.max()) + 1):
        if steps_along:
            before, behind = rows << 1, rows >> 1
            before[..., 1:] |= rows[..., :-1] >> 7
            behind[..., :-1] |= rows[..., 1:] << 7
            rows &= before & behind
        for at, beside in np.argwhere(reach == steps_along).tolist():
            inner &= rows[at : at + shape[0], beside : beside + shape[1]]
    bits = np.unpackbits(inner, axis=-1, count=shape[2], bitorder="little")
    return bits.view(np.bool_).reshape(mask.shape)


def _disjoint(structures: Mapping[Label, tuple[int, ...]], most: int) -> list[list[Label]]:
    """Groups of at most ``most`` structures that share no value."""
    groups: list[tuple[list[Label], set[int]]] = []
    for name, values in structures.items():
        for names, taken in groups:
            if len(names) < most and taken.isdisjoint(values):
                break
        else:
            groups.append((names := [], taken := set()))
        names.append(name)
        taken.update(values)
    return [names for names, _ in groups]


#: Surface elements around a corner in eighths of a voxel's faces, indexed by the voxels that have
#: the label: marching-cubes triangles with edges cut in the middle (the table of surface-distance,
#: Nikolov et al. 2018). Rotated, mirrored and inverted cases follow from these.
_ELEMENTS: Final = {
    0b1: [(1, 1, 1)],
    0b11: [(2, 2, 0)] * 2,
    0b110: [(1, 1, 1)] * 2,
    0b111: [(1, 1, 1), (2, 2, 2), (4, 0, 0)],
    0b1111: [(4, 0, 0)] * 2,
    0b10110: [(1, 1, 1)] * 3,
    0b10111: [(1, 1, 1)] * 2 + [(2, 2, 2)] * 2,
    0b11000: [(1, 1, 1)] * 2,
    0b11001: [(0, 2, 2)] * 2 + [(1, 1, 1)],
    0b11011: [(0, 2, 2), (1, 1, 1), (2, 0, 2), (3, 3, 3)],
    0b11110: [(1, 1, 1)] * 2 + [(2, 2, 2), (4, 0, 0)],
    0b111100: [(2, 2, 0)] * 4,
    0b1101001: [(1, 1, 1)] * 4,
}


@lru_cache(maxsize=8)
def element_areas(spacing: tuple[float, ...]) -> Floats:
    """Area of the elements at a corner, indexed by the bits of the voxels with the label.

    In 2-D, where voxels have depth 1, this is a length.
    """
    spacing = (1.0, *spacing)[-3:]
    places = list(itertools.product((0, 1), repeat=3))
    faces = [math.prod(spacing[:axis] + spacing[axis + 1 :]) for axis in range(3)]
    areas = np.zeros(256)
    for code, elements in _ELEMENTS.items():
        inside = [corner for i, corner in enumerate(places) if code >> i & 1]
        for axes in itertools.permutations(range(3)):
            turned = np.array(elements)[:, axes] * faces / 8
            area = sum(math.sqrt(float(n @ n)) for n in turned)
            for flips in places:
                moved = 0
                for corner in inside:
                    to = tuple(corner[a] ^ flip for a, flip in zip(axes, flips, strict=True))
                    moved |= 1 << places.index(to)
                areas[moved] = areas[255 - moved] = area
    return areas
