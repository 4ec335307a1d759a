"""Connected components of label maps, as runs of pixels."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_number, read_several
from segiou._support.numbers import number_in
from segiou._support.optional import import_whole, load_part, warn_missing
from segiou.counting.arrays import as_label_array, compiled_view
from segiou.counting.counts import LARGEST
from segiou.counting.id_pairs import count_ids, count_run_pairs
from segiou.counting.value_codes import can_hold
from segiou.regions.surface_points import check_spacing, reached_by

_COMPILED = "segiou.regions._components"
_components = load_part(_COMPILED)

Ints = NDArray[np.int64]

#: Possible numbers of neighbours by the number of axes, fewest first.
_NEIGHBOURS = {2: (4, 8), 3: (6, 18, 26)}
#: The compiled routine numbers pixels with 32 bits.
MOST_PIXELS = (1 << 32) - 1


def compiled() -> Any:
    """The compiled routines; None, with a warning, if they were not built."""
    if _components is None:
        warn_missing(_COMPILED)
    return _components


@dataclass(frozen=True, eq=False)
class Components:
    """Connected components of a label map, as runs: pixels in sequence of one component.

    Attributes
    ----------
    shape : tuple of int
        Shape of the map.
    starts : ndarray of int, shape (R,)
        First pixel of each run, ascending.
    ids : ndarray of int, shape (R,)
        Component of each run, 1 … K.
    values : ndarray, shape (K,)
        Label of each component.
    """

    shape: tuple[int, ...]
    starts: NDArray[Any]
    ids: NDArray[Any]
    values: NDArray[Any]

    @classmethod
    def of_map(cls, ids: NDArray[Any], labels: NDArray[Any]) -> Components:
        """The components of a map with one id per component."""
        flat = ids.reshape(-1)
        starts = np.flatnonzero(np.append(np.ones(min(1, flat.size), bool), flat[1:] != flat[:-1]))
        _, first, inverse = np.unique(flat[starts], return_index=True, return_inverse=True)
        number = np.empty(len(first), np.int64)  # by first pixel
        number[first.argsort()] = np.arange(1, len(first) + 1)
        return cls(ids.shape, starts, number[inverse], labels.reshape(-1)[starts[np.sort(first)]])

    @cached_property
    def lengths(self) -> Ints:
        """Pixels of each run, (R,)."""
        return np.diff(self.starts, append=math.prod(self.shape)).astype(np.int64, copy=False)

    @property
    def sizes(self) -> Ints:
        """Pixels of each component, (K,)."""
        sizes = np.bincount(self.ids, self.lengths, len(self.values) + 1)
        return sizes[1:].astype(np.int64)  # exact below 2^53

    def drawn(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """A map with the number of each component, (K,)."""
        return np.repeat(numbers[self.ids - 1], self.lengths).reshape(self.shape)

    @property
    def id_map(self) -> Ints:
        """A map of the components, 1 … K."""
        return self.drawn(np.arange(1, len(self.values) + 1))

    def overlaps(self, other: Components) -> tuple[NDArray[Any], NDArray[Any], Ints]:
        """Component, other component and pixels of each two that share pixels."""
        length = math.prod(self.shape)
        return count_run_pairs((self.starts, self.ids), (other.starts, other.ids), length)


def label_components(
    labels: Any,
    values: Iterable[int | Collection[int]] | None = None,
    *,
    connectivity: int | None = None,
    min_size: float | str = 0,
    spacing: float | Sequence[float] | None = None,
    merge: int = 0,
) -> NDArray[np.int64]:
    """Number the connected components of each class.

    Parameters
    ----------
    labels : array_like of int or bool, shape (H, W) or (D, H, W)
        Class of each pixel.
    values : iterable of int or collection of int, optional
        Classes whose components are numbered; all except 0 by default. A
        collection of values is treated as one class, or region.
    connectivity : {4, 8} or {6, 18, 26}, optional
        Number of neighbours that belong to the same component; 8 in 2-D and 26
        in 3-D by default.
    min_size : float or str
        Smaller components are dropped: in pixels, or in the unit of ``spacing``
        (mm² or mm³). ``"50mm3"`` states the unit and requires a spacing.
    spacing : float or sequence of float, optional
        Size of a pixel along each axis.
    merge : int
        Components of a class that touch after this many dilations (with 8 or 18
        neighbours) are merged.

    Returns
    -------
    ndarray of int64, the shape of labels
        1 … K in each component, 0 elsewhere.

    Raises
    ------
    TypeError
        If the array does not contain integers.
    ValueError
        If it does not have two or three axes, or an option does not suit them.

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
    voxel, least = least_size(array, min_size, spacing)
    groups = [{v} for v in count_ids(array) if v] if values is None else read_groups(values)
    connected = components(array, groups, connectivity, merge)
    kept = np.isin(connected.values, _values_in_range([*chain(*groups)], array.dtype))
    kept &= connected.sizes * voxel >= least
    return connected.drawn(np.where(kept, kept.cumsum(), 0))


def _values_in_range(values: Iterable[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The range of values of an array's type."""
    return np.array([value for value in values if can_hold(dtype, value)], dtype)


def read_groups(values: Iterable[int | Collection[int]]) -> list[set[int]]:
    """Values of each class or region; a ValueError if two share a value."""
    several = read_several("values", values, "a sequence of classes or of collections of classes")
    groups = [_read_group(value) for value in several]
    if shared := [v for v, n in Counter(chain(*groups)).items() if n > 1]:
        msg = f"value {shared[0]} is in two regions; label overlapping regions in separate calls"
        raise ValueError(msg)
    return groups


def _read_group(value: int | Collection[int]) -> set[int]:
    several = value if isinstance(value, Collection) and not isinstance(value, str) else (value,)
    return {int(v) if v is True or v is False else check_integer("values", v) for v in several}


def components(
    array: NDArray[Any],
    groups: Collection[Collection[int]],
    connectivity: int | None,
    merge: int,
) -> Components:
    """Components of each label, of which those of a group are one; merged ones of groups only."""
    # Beyond the size of the image, more dilations change nothing.
    merge = min(check_integer("merge", merge, 0), sum(array.shape))
    choices = _NEIGHBOURS[array.ndim]
    if read_connectivity(connectivity) not in (None, *choices):
        shown = " or ".join(map(str, choices))
        msg = f"connectivity of {array.ndim} axes must be {shown}, got {connectivity!r}"
        raise ValueError(msg)
    rank = choices.index(connectivity) + 1 if connectivity else array.ndim
    firsts = []
    for group in groups if merge else [group for group in groups if len(group) > 1]:
        members = _values_in_range(group, array.dtype)
        firsts += members[:1].tolist()
        if len(members) > 1:
            array = np.where(np.isin(array, members), members[0], array)
    return _merged(array, firsts, merge, rank) if merge else _connected(array, rank)


def read_connectivity(connectivity: Any) -> int | None:
    """A number of neighbours in 2-D or 3-D, or None."""
    choices = (*_NEIGHBOURS[2], *_NEIGHBOURS[3])
    if connectivity is None or check_integer("connectivity", connectivity) in choices:
        return None if connectivity is None else int(connectivity)
    msg = f"connectivity must be {', '.join(map(str, choices[:-1]))} or {choices[-1]}"
    msg = f"{msg}, got {connectivity}"
    raise ValueError(msg)


def least_size(
    array: NDArray[Any], min_size: float | str, spacing: float | Sequence[float] | None
) -> tuple[float, float]:
    """Size of a pixel and of the smallest component, in one unit."""
    voxel = math.prod(check_spacing(array, spacing, "objects"))
    least, unit = read_size(min_size)
    if unit and (spacing is None or unit != f"mm{array.ndim}"):
        msg = (
            f"min_size={min_size} requires masks with {unit[-1]} axes and a spacing, got "
            f"{array.ndim} axes and spacing {spacing}; pass spacing=… (--spacing A,B), or give "
            "the size in pixels"
        )
        raise ValueError(msg)
    return voxel, least / reached_by(1)


def read_size(size: float | str) -> tuple[float, str]:
    """A size and its unit, ``"mm2"`` or ``"mm3"``; none for pixels."""
    number, unit = size, ""
    if isinstance(size, str):
        # Normalization turns mm³ into mm3.
        text = unicodedata.normalize("NFKC", size).strip()
        unit = text[-3:] if text.endswith(("mm2", "mm3")) else ""
        try:
            number = number_in(text.removesuffix(unit))
        except ValueError:
            msg = f"invalid min_size {size!r}; use pixels, such as 50, or a size such as 50mm3"
            raise ValueError(msg) from None
    return check_number("min_size", number, 0, LARGEST), unit


def dilate(mask: NDArray[np.bool_], times: int) -> NDArray[np.bool_]:
    """Dilate a mask by the neighbours that share a face or an edge (in 2-D, a corner)."""
    from scipy import ndimage  # type: ignore[import-untyped]

    ball = ndimage.generate_binary_structure(mask.ndim, 2)
    return np.asarray(ndimage.binary_dilation(mask, ball, iterations=times))


def _connected(array: NDArray[Any], rank: int) -> Components:
    """Components of all labels; neighbours differ along at most ``rank`` axes."""
    routines = compiled()
    if routines is None or not 0 < array.size <= MOST_PIXELS:
        return _label_with_scikit_image(array, rank)
    values = compiled_view(array)
    shape = (1,) * (3 - array.ndim) + array.shape
    runs = routines.find_components(values, values.itemsize, shape, rank)
    starts, ids, firsts = (np.frombuffer(each, np.uint32) for each in runs)
    return Components(array.shape, starts, ids, values.reshape(-1)[firsts])


def _label_with_scikit_image(array: NDArray[Any], rank: int) -> Components:
    measure: Any = import_whole("skimage.measure")
    _, classes = np.unique(array, return_inverse=True)
    ids = measure.label(classes.reshape(array.shape), background=-1, connectivity=rank)
    return Components.of_map(ids, array)


def _merged(array: NDArray[Any], values: Iterable[Any], merge: int, rank: int) -> Components:
    """Components of each value after dilation, restricted to its own pixels."""
    ids = np.zeros(array.shape, np.int64)
    for value in values:
        mask = array == value
        near = _connected(dilate(mask, merge), rank)
        ids[mask] = near.id_map[mask] + ids.max(initial=0)
    return Components.of_map(ids, array)
