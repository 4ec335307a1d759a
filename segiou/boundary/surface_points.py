"""The points of surfaces in 2-D and 3-D, and how far those of two surfaces lie apart."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part, warn_missing
from segiou.boundary.codes import as_bytes

__all__ = ["Both", "Distances", "Kind", "SurfacePair"]

_MODULE = "segiou.boundary._surfaces"
_kernel = load_part(_MODULE)

#: What the kernel measures: axes up to this length, spacings between these.
_LONGEST, _STEPS = 65535, (1e-9, 1e6)
#: The code of ignored voxels, and so many codes are left for labels; 0 is none.
_IGNORED = 255
#: So many points of a side are held at once, or a twelfth of the voxels; more only of one label.
_FEWEST_POINTS = 1 << 18

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["voxels", "elements"]


@dataclass(frozen=True, eq=False)
class Distances:
    """From the points of one surface to the nearest of the other, in ascending order.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
        Distances; none where the other surface has no points.
    weights : ndarray of int64 or float64, shape (n,)
        How many points are so far away, or their area.
    size : float
        Number, or area, of all points of the surface.
    each : bool
        Whether every point has an entry of its own.
    """

    values: Floats
    weights: NDArray[np.int64] | Floats
    size: float
    each: bool

    @classmethod
    def to_nothing(cls, size: float = 0.0) -> Distances:
        """Of a surface of this size, where there is no other."""
        return cls(np.empty(0), np.empty(0), size, True)


Both = tuple[Distances, Distances]
Label = int | str


@dataclass(frozen=True, eq=False)
class SurfacePair:
    """The surfaces of a pair of label arrays, and the distances between them.

    Attributes
    ----------
    truth, pred : ndarray of int or bool, equal shapes of two or three axes
    spacing : tuple of float
    kind : {"voxels", "elements"}
    ignore : frozenset of int
        Truth values whose voxels are left out.
    threads : int
        How many labels, or directions, are measured at once.
    """

    truth: NDArray[Any]
    pred: NDArray[Any]
    spacing: tuple[float, ...]
    kind: Kind
    ignore: frozenset[int] = frozenset()
    threads: int = 1

    def distances(
        self, structures: Mapping[Label, tuple[int, ...]] | None
    ) -> Iterator[tuple[Label, Both]]:
        """Each structure, by default each label but 0, and both directions; in no order."""
        if _kernel is None:
            warn_missing(_MODULE)
        is_odd = (
            self.truth.size == 0
            or max(self.truth.shape) > _LONGEST
            or not (_STEPS[0] < min(self.spacing) and max(self.spacing) < _STEPS[1])
        )
        if _kernel is None or is_odd:
            if structures is None:
                structures = {v: (v,) for v in self._occurring}
            yield from ((label, self.reference(v)) for label, v in structures.items())
            return
        for layer in self._layers(structures):
            yield from self._measured(layer)

    def reference(self, values: tuple[int, ...]) -> Both:
        """Both directions of one structure by SciPy: what the kernel must equal."""
        ignored = np.isin(self.truth, [*self.ignore]) if self.ignore else None
        masks = (np.isin(side, values) for side in (self.truth, self.pred))
        truth, pred = (mask if ignored is None else mask & ~ignored for mask in masks)
        return reference_distances(truth, pred, ignored, self.spacing, self.kind)

    def bands(
        self, values: tuple[int, ...], widths: tuple[float, ...]
    ) -> tuple[tuple[int, int, int], ...]:
        """Voxels within each width inside truth, prediction and both, beside none of the others."""
        from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped]

        ignored = np.isin(self.truth, [*self.ignore])
        # What is ignored ends nothing.
        given = [np.isin(side, values) | ignored for side in (self.truth, self.pred)]
        *solid, ignored = _cropped([*given, ignored])
        truth, pred = (distance_transform_edt(mask, sampling=self.spacing) for mask in solid)
        truth[~solid[0] | ignored] = pred[~solid[1] | ignored] = np.inf
        counted = []
        for width in widths:
            bands = truth <= width, pred <= width
            counted.append([*map(np.count_nonzero, (*bands, bands[0] & bands[1]))])
        return tuple((int(a), int(b), int(c)) for a, b, c in counted)

    @cached_property
    def _occurring(self) -> list[int]:
        found = {*np.unique(self.truth).tolist(), *np.unique(self.pred).tolist()}
        return sorted({int(value) for value in found} - {0} - self.ignore)

    @cached_property
    def _is_reversed(self) -> bool:
        """Whether the arrays are read from the last axis to the first, as they lie."""
        flags = self.truth.flags, self.pred.flags
        return all(f.f_contiguous for f in flags) and not all(f.c_contiguous for f in flags)

    @cached_property
    def _sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both arrays in C order, as bytes where their values are."""
        truth, pred = (as_bytes(x.T if self._is_reversed else x) for x in (self.truth, self.pred))
        return np.ascontiguousarray(truth), np.ascontiguousarray(pred)

    @cached_property
    def _steps(self) -> tuple[float, ...]:
        steps = self.spacing[::-1] if self._is_reversed else self.spacing
        # Nothing lies before or behind an image: so far away that no row there is searched.
        return steps if len(steps) == 3 else (1000 * max(steps), *steps)

    @cached_property
    def _areas(self) -> Floats:
        """Area by code of the kernel, of whose eight bits an image has the same four twice."""
        if self.kind == "voxels":
            return np.ones(256)
        if len(self.spacing) == 3:
            return element_areas(self._steps)
        areas = np.zeros(256)
        areas[::17] = element_areas(self._steps[1:])
        return areas

    def _layers(self, structures: Mapping[Label, tuple[int, ...]] | None) -> Iterator[_Layer]:
        """Structures that do not overlap, under one code each."""
        are_bytes = not self.ignore and all(side.dtype == np.uint8 for side in self._sides)
        if structures is None:
            labels = range(1, 256) if are_bytes else self._occurring
            structures = {value: (value,) for value in labels}
        for names in _disjoint(structures, _IGNORED - bool(self.ignore)):
            values = [structures[name] for name in names]
            if are_bytes and all(len(v) == 1 and 0 < v[0] < 256 for v in values):
                codes = [value for (value,) in values]
                sides, ignored = self._sides, -1
            else:
                codes = list(range(1, len(names) + 1))
                sides = self._coded(codes, values)
                ignored = _IGNORED if self.ignore else -1
            yield _Layer(dict(zip(codes, names, strict=True)), *sides, ignored)

    def _coded(self, codes: list[int], values: list[tuple[int, ...]]) -> tuple[Any, Any]:
        """Both sides with a code for each structure, and one for what is ignored."""
        table = {v: code for code, of_name in zip(codes, values, strict=True) for v in of_name}
        truth = _recoded(self._sides[0], table | dict.fromkeys(self.ignore, _IGNORED))
        pred = _recoded(self._sides[1], table)
        if self.ignore:
            pred[truth == _IGNORED] = _IGNORED
        return truth, pred

    def _measured(self, layer: _Layer) -> Iterator[tuple[Label, Both]]:
        codes = list(layer.names)
        found = self._found(layer, codes, max(_FEWEST_POINTS, layer.truth.size // 12))
        if found is not None:
            yield from self._between(layer, found)
            return
        # Too many points at once, in noise: label by label.
        occurring = {*_unique(layer.truth), *_unique(layer.pred)}
        for code in sorted(occurring.intersection(codes)):
            one = self._found(layer, [code], sys.maxsize)
            yield from self._between(layer, one or [])

    def _found(self, layer: _Layer, codes: list[int], limit: int) -> list[dict[int, bytes]] | None:
        """The points of each label of either side; None where there are more than the limit."""
        wanted = np.zeros(256, np.uint8)
        wanted[codes] = 1
        flat = layer.truth.ndim == 2
        shape = (1, *layer.truth.shape) if flat else layer.truth.shape
        rest = (*shape, flat, wanted, layer.ignored, self.kind == "elements", limit)
        found = self._map(lambda side: _kernel.find(side, *rest), (layer.truth, layer.pred))
        return None if None in found else found

    def _between(
        self, layer: _Layer, found: list[dict[int, bytes]]
    ) -> Iterator[tuple[Label, Both]]:
        codes = sorted({code for side in found for code in side})
        pairs = ([side.pop(code, b"") for side in found] for code in codes)
        tasks = (task for pair in pairs for task in (pair, pair[::-1]))
        sides = self._map(lambda task: self._distances(*task), tasks)
        for i, code in enumerate(codes):
            yield layer.names[code], (sides[2 * i], sides[2 * i + 1])

    def _distances(self, query: bytes, target: bytes) -> Distances:
        """From each point to the nearest of the other surface."""
        areas = self._areas
        if not (query and target):
            codes = (np.frombuffer(query, np.uint64) >> np.uint64(48)).astype(np.uint8)
            return Distances.to_nothing(float(areas[codes].sum()))
        rows, ranks, certain, values = _table(self._steps, self._is_reversed)
        given = _kernel.distances(
            query, target, rows, ranks, certain, *self._steps, self._is_reversed, areas
        )
        kinds = np.int64, np.float64, np.float64, np.uint8
        parts: list[Any] = [np.frombuffer(x, k) for x, k in zip(given, kinds, strict=True)]
        points, weights, far, far_codes = parts
        near = np.flatnonzero(points)
        # What lies far lies farther than anything near.
        order = np.argsort(far)
        values = np.concatenate([values[near], far[order]])
        if self.kind == "voxels":
            weights = np.concatenate([points[near], np.ones(len(far), np.int64)])
        else:
            weights = np.concatenate([weights[near], areas[far_codes[order]]])
        return Distances(values, weights, float(weights.sum()), False)

    def _map(self, function: Any, tasks: Any) -> list[Any]:
        if self.threads == 1:
            return [function(task) for task in tasks]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(function, tasks))


@dataclass(frozen=True, eq=False)
class _Layer:
    """Labels by their codes, which are bytes; 0 is none of them."""

    names: dict[int, Label]
    truth: NDArray[np.uint8]
    pred: NDArray[np.uint8]
    ignored: int


def _disjoint(structures: Mapping[Label, tuple[int, ...]], most: int) -> list[list[Label]]:
    """Groups of at most so many structures without a value in common."""
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


def _recoded(labels: NDArray[Any], codes: Mapping[int, int]) -> NDArray[np.uint8]:
    """The code of each label, 0 by default; plane by plane, since places take much memory."""
    found = np.zeros(labels.shape, np.uint8)
    info = np.iinfo(np.uint8 if labels.dtype == np.bool_ else labels.dtype)
    possible = sorted(value for value in codes if info.min <= value <= info.max)
    if not possible:
        return found
    low, high = possible[0], possible[-1]
    if high - low < 1 << 20:
        table = np.zeros(high - low + 1, np.uint8)
        table[[value - low for value in possible]] = [codes[value] for value in possible]
        for plane, out in zip(labels, found, strict=True):
            inside = (plane >= low) & (plane <= high)
            out[inside] = table[plane[inside].astype(np.int64) - low]
        return found
    keys = np.array(possible, labels.dtype)
    values = np.array([codes[value] for value in possible], np.uint8)
    for plane, out in zip(labels, found, strict=True):
        at = np.minimum(np.searchsorted(keys, plane), len(keys) - 1)
        out[...] = np.where(keys[at] == plane, values[at], 0)
    return found


def _unique(codes: NDArray[np.uint8]) -> list[int]:
    """The codes that occur; plane by plane, since counts take much memory."""
    seen = np.zeros(256, np.bool_)
    for plane in codes:
        seen[plane] = True
    return [int(code) for code in np.flatnonzero(seen)]


#: What the kernel searches around a point: at most so many rows, so far away, and so far along.
_ROWS, _ROW_REACH, _HALF = 64, 6, 29


@lru_cache(maxsize=8)
def _table(steps: tuple[float, ...], is_reversed: bool) -> tuple[Any, Any, int, Floats]:
    """Rows around a point, nearest first; the rank of each distance along them; all distances.

    Ranks up to the returned one are certain: nothing outside the rows lies nearer.
    """

    def square(dz: Any, dy: Any, dx: Any) -> Floats:
        offsets = (dz, dy, dx)[::-1] if is_reversed else (dz, dy, dx)
        sizes = steps[::-1] if is_reversed else steps
        first, second, third = (np.square(n * size) for n, size in zip(offsets, sizes, strict=True))
        found: Floats = first + second + third
        return found

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


def reference_distances(
    truth: Bools, pred: Bools, ignored: Bools | None, spacing: tuple[float, ...], kind: Kind
) -> Both:
    """Both directions between two masks by SciPy's transforms: what the kernel must equal."""
    from scipy.ndimage import distance_transform_edt

    masks = [truth, pred] if ignored is None else [truth, pred, ignored]
    truth, pred, *rest = _cropped(masks)
    sides = [_surface(side, rest[0] if rest else None, spacing, kind) for side in (truth, pred)]
    found = []
    for (points, weights), (others, _) in zip(sides, sides[::-1], strict=True):
        if not (points.any() and others.any()):
            found.append(Distances.to_nothing(float(weights.sum())))
            continue
        values = distance_transform_edt(~others, sampling=spacing)[points]
        order = np.lexsort((weights, values))
        values, weights = values[order], weights[order]
        found.append(Distances(values, weights, float(weights.sum()), True))
    return found[0], found[1]


def _cropped(masks: list[Bools]) -> list[Bools]:
    """In the box that holds the first two, with at least one voxel around it."""
    either = masks[0] | masks[1]
    box = []
    for axis in range(either.ndim):
        found = np.flatnonzero(either.any(tuple(a for a in range(either.ndim) if a != axis)))
        first, last = (found[0], found[-1]) if len(found) else (0, 0)
        box.append(slice(max(0, first - 1), last + 2))
    return [np.pad(mask[tuple(box)], 1) for mask in masks]


def _surface(
    mask: Bools, ignored: Bools | None, spacing: tuple[float, ...], kind: Kind
) -> tuple[Bools, Floats]:
    """Where a surface is, and the weight of each of its points."""
    if kind == "voxels":
        from scipy.ndimage import binary_erosion

        points = mask & ~binary_erosion(mask if ignored is None else mask | ignored)
        return points, np.ones(np.count_nonzero(points))
    codes = _corner_codes(mask)
    points = (codes != 0) & (codes != (1 << (1 << mask.ndim)) - 1)
    if ignored is not None:
        points &= _corner_codes(ignored) == 0
    return points, element_areas(spacing)[codes[points]]


def _corner_codes(mask: Bools) -> NDArray[np.uint8]:
    """Which voxels around each corner are in the mask."""
    codes = np.zeros(tuple(n - 1 for n in mask.shape), np.uint8)
    for place, bit in _corner_bits(mask.ndim).items():
        part = tuple(slice(i, n - 1 + i) for i, n in zip(place, mask.shape, strict=True))
        codes |= mask[part].astype(np.uint8) << bit
    return codes


def _corner_bits(ndim: int) -> dict[tuple[int, ...], int]:
    """Bit of each voxel around a corner; the first is the highest."""
    places = list(itertools.product((0, 1), repeat=ndim))
    return {place: len(places) - 1 - i for i, place in enumerate(places)}


#: Surface elements around a corner in eighths of a voxel's faces, by which of its voxels are in
#: the label: the triangles of marching cubes with edges cut in the middle (the table of
#: surface-distance, Nikolov et al. 2018). Turned, mirrored or inverted cases follow from these.
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
#: Likewise lines around a corner of pixels, in halves of a pixel's sides.
_LINES: Final = {0b1: [(1, 1)], 0b11: [(2, 0)], 0b110: [(1, 1)] * 2}


@lru_cache(maxsize=8)
def element_areas(spacing: tuple[float, ...]) -> Floats:
    """Area (length in two dimensions) of the elements by the bits of the voxels around."""
    ndim = len(spacing)
    bits = _corner_bits(ndim)
    faces = [math.prod(spacing[:axis] + spacing[axis + 1 :]) for axis in range(ndim)]
    areas = np.zeros(1 << len(bits))
    for code, elements in (_ELEMENTS if ndim == 3 else _LINES).items():
        for axes in itertools.permutations(range(ndim)):
            turned = np.array(elements)[:, axes] * faces / (8 if ndim == 3 else 2)
            area = sum(math.sqrt(float(n @ n)) for n in turned)
            for flips in itertools.product((0, 1), repeat=ndim):
                moved = 0
                for place, bit in bits.items():
                    to = tuple(place[a] ^ flip for a, flip in zip(axes, flips, strict=True))
                    moved |= (code >> bit & 1) << bits[to]
                areas[moved] = areas[len(areas) - 1 - moved] = area
    return areas
