"""Overlap of polygons (with shapely 2) and rasterised polygons (with scikit-image).

Polygons may have holes and several parts. Coordinates are x, y; in masks, pixel (row r, column c)
covers c <= x <= c + 1, r <= y <= r + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_flag, read_several
from segiou._support.optional import import_extra, import_whole
from segiou.counting.arrays import as_array
from segiou.geometry.binary_masks import Mask, as_shape
from segiou.geometry.positions import Floats, generalised_iou, quotient

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    Polygons = Sequence[BaseGeometry | ArrayLike] | NDArray[Any]

Geometries = NDArray[np.object_]

#: Intersections computed at once, of which only the areas are kept.
_PAIRS = 2**14


def polygon_intersection(
    truth: Polygons, pred: Polygons, *, elementwise: bool = False, repair: bool = False
) -> Floats:
    """Area of the intersection of polygons.

    Parameters
    ----------
    truth, pred, elementwise, repair
        As for `polygon_iou`.
    """
    return _overlap(*_read_both(truth, pred, elementwise, repair), elementwise)[0]


def polygon_union(
    truth: Polygons, pred: Polygons, *, elementwise: bool = False, repair: bool = False
) -> Floats:
    """Area of the union of polygons.

    Parameters
    ----------
    truth, pred, elementwise, repair
        As for `polygon_iou`.
    """
    return _overlap(*_read_both(truth, pred, elementwise, repair), elementwise)[1]


def polygon_iou(
    truth: Polygons, pred: Polygons, *, elementwise: bool = False, repair: bool = False
) -> Floats:
    """Intersection over union of polygons, for all pairs or elementwise.

    Parameters
    ----------
    truth : sequence of N polygons
        Each a shapely Polygon or MultiPolygon, or its outer ring as an array of shape (V, 2).
    pred : sequence of M polygons
        Polygons to compare with them.
    elementwise : bool
        Compare `truth[i]` with `pred[i]` instead of all pairs.
    repair : bool
        Repair invalid polygons with shapely's ``make_valid`` instead of raising an error.

    Returns
    -------
    ndarray of float64
        Shape (N, M); with `elementwise`, (N,). 0 if polygons touch or are disjoint, NaN if
        neither has an area.

    Raises
    ------
    ImportError
        If shapely is not installed.
    TypeError
        If an item is not a polygon.
    ValueError
        If a polygon is invalid, for example self-intersecting.

    Examples
    --------
    >>> import shapely
    >>> ring = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (3, 1), (3, 3), (1, 3)]])
    >>> polygon_iou([ring], [shapely.box(0, 0, 4, 2), shapely.box(1, 1, 3, 3)])
    array([[0.42857143, 0.        ]])
    """
    return quotient(*_overlap(*_read_both(truth, pred, elementwise, repair), elementwise))


def polygon_giou(
    truth: Polygons, pred: Polygons, *, elementwise: bool = False, repair: bool = False
) -> Floats:
    """Generalised IoU: IoU minus the share of the convex hull that neither polygon covers.

    The hull is that of both polygons together, so for boxes the result differs from `box_giou`,
    which uses the enclosing box. Source: Rezatofighi et al., CVPR 2019, arXiv 1902.09630,
    algorithm 1.

    Parameters
    ----------
    truth, pred, elementwise, repair
        As for `polygon_iou`.

    Examples
    --------
    >>> import shapely
    >>> polygon_giou([shapely.box(0, 0, 1, 1)], [shapely.box(2, 0, 3, 1)])
    array([[-0.33333333]])
    """
    ours, theirs = _read_both(truth, pred, elementwise, repair)
    shared, union = _overlap(ours, theirs, elementwise)
    return generalised_iou(shared, union, _hull_area(ours, theirs, elementwise))


def polygon_to_mask(
    polygon: BaseGeometry | ArrayLike, shape: tuple[int, int], *, repair: bool = False
) -> Mask:
    """Rasterise a polygon: a pixel is set if its centre is inside or on the outline.

    The centre of pixel (row r, column c) is x = c + 1/2, y = r + 1/2. Centres on the outline of a
    hole are also set. Therefore, the mask of a polygon with the corners of an integer box is the
    box.

    Parameters
    ----------
    polygon : shapely Polygon or MultiPolygon, or array_like of shape (V, 2)
        The polygon, which may have holes and several parts.
    shape : (int, int)
        Height and width of the mask; the polygon is clipped to it.
    repair : bool
        As for `polygon_iou`.

    Returns
    -------
    ndarray of bool, shape (H, W)
        The mask.

    Raises
    ------
    ImportError, TypeError, ValueError
        As for `polygon_iou`, and if `shape` is not two sizes.

    Examples
    --------
    >>> polygon_to_mask([(0, 0), (3, 0), (0, 3)], (3, 4)).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 0, 0],
           [1, 0, 0, 0]])
    """
    shapely = _shapely()
    height, width = as_shape(shape)
    geometry = _as_geometries([polygon], "polygon", repair)[0]
    mask = np.zeros((height, width), dtype=np.bool_)
    for part in shapely.get_parts(geometry):
        drawn = _ring_labels(part.exterior, mask.shape) > 0
        for hole in part.interiors:
            drawn &= _ring_labels(hole, mask.shape) != 1
        mask |= drawn
    return mask


def _ring_labels(ring: Any, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Label pixel centres: 0 outside, 1 inside, larger values on the ring."""
    measure = import_whole("skimage.measure")
    labels = np.zeros(shape, dtype=np.uint8)
    corners = _shapely().get_coordinates(ring)[:, ::-1] - 0.5
    if not len(corners):
        return labels
    first = np.clip(np.ceil(corners.min(axis=0)), 0, shape).astype(int)
    end = np.clip(np.floor(corners.max(axis=0)) + 1, first, shape).astype(int)
    if (first == end).any():
        return labels
    grid_points_in_poly: Callable[..., NDArray[np.uint8]] = measure.grid_points_in_poly
    inside = grid_points_in_poly(tuple(end - first), corners - first, binarize=False)
    labels[first[0] : end[0], first[1] : end[1]] = inside
    return labels


def _overlap(truth: Geometries, pred: Geometries, elementwise: bool) -> tuple[Floats, Floats]:
    """Areas of intersection and union."""
    shapely = _shapely()
    with np.errstate(all="ignore"):
        ours, theirs = shapely.area(truth), shapely.area(pred)
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        msg = "the polygons are so large that float64 overflows; scale the coordinates down"
        raise ValueError(msg)
    if elementwise:
        shared = shapely.area(shapely.intersection(truth, pred))
    else:
        ours = ours[:, None]
        shared = np.zeros((len(truth), len(pred)))
        rows, columns = shapely.STRtree(pred).query(truth, predicate="intersects")
        for start in range(0, len(rows), _PAIRS):
            some = rows[start : start + _PAIRS], columns[start : start + _PAIRS]
            shared[some] = shapely.area(shapely.intersection(truth[some[0]], pred[some[1]]))
    # Rounding can make the area of a part larger than that of the whole.
    shared = np.minimum(shared, np.minimum(ours, theirs))
    return shared, ours + theirs - shared


def _hull_area(truth: Geometries, pred: Geometries, elementwise: bool) -> Floats:
    shapely = _shapely()
    ours, theirs = shapely.convex_hull(truth), shapely.convex_hull(pred)
    hulls = np.empty(len(truth) if elementwise else (len(truth), len(pred)))
    # All pairs are computed row by row, because the hulls are kept as polygons.
    for some in (np.s_[:],) if elementwise else range(len(truth)):
        pairs = np.stack(np.broadcast_arrays(ours[some], theirs), axis=-1)
        hulls[some] = shapely.area(shapely.convex_hull(shapely.geometrycollections(pairs)))
    return hulls


def _read_both(
    truth: Polygons, pred: Polygons, elementwise: bool, repair: bool
) -> tuple[Geometries, Geometries]:
    ours = _as_geometries(truth, "truth polygon", repair)
    theirs = _as_geometries(pred, "predicted polygon", repair)
    check_flag("elementwise", elementwise)
    if elementwise and len(ours) != len(theirs):
        msg = (
            f"elementwise=True requires equal numbers of polygons, got {len(ours)} and "
            f"{len(theirs)}; omit it to compare all pairs"
        )
        raise ValueError(msg)
    return ours, theirs


def _as_geometries(polygons: Any, kind: str, repair: bool) -> Geometries:
    """Valid polygons and multi-polygons; an error names the first invalid item."""
    shapely = _shapely()
    if isinstance(polygons, shapely.Geometry):
        msg = f"expected a list of {kind}s, got a single {polygons.geom_type}"
        raise TypeError(msg)
    check_flag("repair", repair)
    several = read_several(f"{kind}s", polygons, "a sequence of polygons")
    geometries = np.empty(len(several), dtype=np.object_)
    for position, item in enumerate(several):
        geometries[position] = _as_geometry(item, f"{kind} {position}")
    for index in np.flatnonzero(~shapely.is_valid(geometries)).tolist():
        reason = shapely.is_valid_reason(geometries[index])
        if not repair:
            msg = (
                f"{kind} {index} is invalid: {reason}; correct it, or pass repair=True to "
                "repair it with shapely's make_valid"
            )
            raise ValueError(msg)
        geometries[index] = _repaired(geometries[index], f"{kind} {index}", reason)
    return geometries


def _as_geometry(item: Any, name: str) -> Any:
    shapely = _shapely()
    if isinstance(item, shapely.Geometry):
        if item.geom_type in ("Polygon", "MultiPolygon"):
            return item
        msg = f"{name} must be a Polygon or MultiPolygon, got a {item.geom_type}"
        raise TypeError(msg)
    ring = as_array(item, name)
    if ring.dtype.kind not in "iuf" or ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3:
        msg = (
            f"{name} must be a shapely Polygon or MultiPolygon, or an array of shape (V, 2) with "
            f"at least three corners; got {type(item).__name__} of shape {ring.shape}"
        )
        raise TypeError(msg)
    if not np.isfinite(ring).all():
        msg = f"{name} has a nonfinite corner: {ring.tolist()}"
        raise ValueError(msg)
    return shapely.Polygon(ring.astype(np.float64))


def _repaired(geometry: Any, name: str, reason: str) -> BaseGeometry:
    """Repair a polygon; lines and points in the result have no area and are dropped."""
    shapely = _shapely()
    if not np.isfinite(shapely.get_coordinates(geometry)).all():
        msg = f"{name} cannot be repaired: {reason}"
        raise ValueError(msg)
    parts = shapely.get_parts(shapely.get_parts(shapely.make_valid(geometry)))
    areas: BaseGeometry = shapely.union_all([p for p in parts if p.geom_type == "Polygon"])
    return areas if not areas.is_empty else shapely.Polygon()


def _shapely() -> Any:
    return import_extra("shapely", "polygons require shapely 2", "polygon")
