"""Objects of a class map: its connected components."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_number
from segiou.boundary.surfaces import check_spacing
from segiou.counting.arrays import as_label_array
from segiou.counting.id_pairs import count_id_pairs

__all__ = ["dilate", "label_components"]

#: By the axes of an array, how many neighbours can be meant, the fewest first.
_NEIGHBOURS = {2: (4, 8), 3: (6, 18, 26)}
#: Values that lie closer together are looked up in a table.
_MOST_VALUES = 1 << 16


def label_components(
    labels: Any,
    values: Iterable[int | Collection[int]] | None = None,
    *,
    connectivity: int | None = None,
    min_size: float = 0,
    spacing: float | Sequence[float] | None = None,
    merge: int = 0,
) -> NDArray[np.int64]:
    """Give each connected component of each class a number.

    Parameters
    ----------
    labels : array_like of int or bool, shape (H, W) or (D, H, W)
        Class of each pixel.
    values : iterable of int or collection of int, optional
        Classes whose components are numbered; all but 0 by default. Several
        values together are one class, or region.
    connectivity : {4, 8} or {6, 18, 26}, optional
        How many neighbours of a pixel belong to the same component; all 8, or
        26, by default.
    min_size : float
        Components below it are no objects: in pixels, or in the unit of
        ``spacing`` (mm² or mm³).
    spacing : float or sequence of float, optional
        Size of a pixel along each axis.
    merge : int
        Components of a class that touch after so many dilations (by 8, or 18
        neighbours) are one.

    Returns
    -------
    ndarray of int64, the shape of labels
        1 … K in each component, 0 elsewhere.

    Raises
    ------
    TypeError
        If the array does not hold integers.
    ValueError
        If it has not two or three axes, or an option fits them not.

    Notes
    -----
    ``connected-components-3d`` does the work where it is installed, else
    scikit-image.

    Examples
    --------
    >>> label_components([[1, 0, 2, 2], [0, 1, 0, 2]])
    array([[1, 0, 2, 2],
           [0, 1, 0, 2]])
    >>> label_components([[1, 2, 0, 2]], [(1, 2)])
    array([[1, 1, 0, 2]])
    >>> label_components([[1, 0, 2, 2], [0, 1, 0, 2]], connectivity=4, min_size=2)
    array([[0, 0, 1, 1],
           [0, 0, 0, 1]])
    """
    array = as_label_array(labels, "labels")
    voxel = math.prod(check_spacing(array, spacing, "objects"))
    check_number("min_size", min_size, 0)
    check_integer("merge", merge, 0)
    choices = _NEIGHBOURS[array.ndim]
    if connectivity not in (None, *choices):
        shown = " or ".join(map(str, choices))
        msg = f"connectivity of {array.ndim} axes must be {shown}, got {connectivity!r}"
        raise ValueError(msg)
    rank = choices.index(connectivity) + 1 if connectivity else array.ndim
    if values is None:
        values = count_id_pairs(array, np.zeros(array.shape, bool))[0].tolist()
        values = [value for value in values if value]
    classes = _numbered(array, [[v] if isinstance(v, (int, np.integer)) else [*v] for v in values])
    found = _merged(classes, merge, rank) if merge else _connected(classes, rank)
    sizes = np.bincount(found.reshape(-1), minlength=1)
    kept = sizes * voxel >= min_size
    kept[0] = False
    return np.where(kept, np.cumsum(kept), 0)[found]


def _numbered(array: NDArray[Any], groups: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """The number of the group, from 1, that holds each value; 0 for none."""
    numbers = {value: number for number, group in enumerate(groups, 1) for value in group}
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    table = np.zeros(high - low + 1 if high - low < _MOST_VALUES else 0, np.int32)
    if len(table):
        for value, number in numbers.items():
            if low <= value <= high:
                table[value - low] = number
        return np.asarray(table[array.astype(np.int64) - low])
    classes = np.zeros(array.shape, np.int32)
    for value, number in numbers.items():
        classes[array == value] = number
    return classes


def dilate(mask: NDArray[np.bool_], times: int) -> NDArray[np.bool_]:
    """Grow a mask by the neighbours that share a face or an edge (in 2-D, a corner)."""
    from scipy import ndimage  # type: ignore[import-untyped]

    ball = ndimage.generate_binary_structure(mask.ndim, 2)
    grown: NDArray[np.bool_] = ndimage.binary_dilation(mask, ball, iterations=times)
    return grown


def _connected(classes: NDArray[np.int32], rank: int) -> NDArray[np.integer[Any]]:
    """Components, numbered; neighbours differ along at most ``rank`` axes."""
    if importlib.util.find_spec("cc3d"):
        connected: Any = importlib.import_module("cc3d").connected_components
        ids = connected(classes, connectivity=_NEIGHBOURS[classes.ndim][rank - 1])
    else:
        label: Any = importlib.import_module("skimage.measure").label
        ids = label(classes, connectivity=rank)
    return np.asarray(ids)


def _merged(classes: NDArray[np.int32], merge: int, rank: int) -> NDArray[np.int64]:
    """Components of each class dilated, and of them what is in the class."""
    found = np.zeros(classes.shape, np.int64)
    for number in range(1, int(classes.max(initial=0)) + 1):
        mask = classes == number
        ids = _connected(dilate(mask, merge).astype(np.int32), rank)
        found[mask] = ids[mask] + found.max(initial=0)
    return found
