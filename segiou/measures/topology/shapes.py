"""Skeletons and Betti numbers of binary masks, in two and three dimensions."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou._support.optional import import_whole
from segiou.counting.arrays import as_array
from segiou.regions.components import components
from segiou.regions.surface_points import bounding_box

Connectivity = Literal["full", "cross"]
CONNECTIVITIES = ("full", "cross")


def skeleton_counts(truth: Any, pred: Any) -> NDArray[np.int64]:
    """Count the pixels of skeletons that clDice and skeleton recall are computed from.

    Parameters
    ----------
    truth, pred : array_like of bool, shape (H, W) or (D, H, W)
        Masks of one structure.

    Returns
    -------
    ndarray of int64, shape (6,)
        Pixels of the predicted skeleton in the truth, and of the predicted skeleton;
        of the true skeleton in the prediction, and of the true skeleton; of the
        widened true skeleton in the prediction, and of the widened true skeleton. It is
        widened by two dilations with the cross and clipped to the truth.

    Raises
    ------
    TypeError
        If a mask is not boolean.
    ValueError
        If the masks do not have one shape of two or three axes.

    Notes
    -----
    clDice: Shit et al., CVPR 2021. Skeleton recall: Kirchhoff et al., ECCV 2024.
    Skeletons are those of ``skimage.morphology.skeletonize``. They depend on the
    orientation of a mask: flips change clDice by up to .01 in 2-D and .02 in 3-D.

    Examples
    --------
    >>> line = np.zeros((5, 9), bool)
    >>> line[2, 1:8] = True
    >>> skeleton_counts(line, line).tolist()
    [7, 7, 7, 7, 7, 7]
    """
    masks = [_checked(name, mask) for name, mask in (("truth", truth), ("pred", pred))]
    if masks[0].shape != masks[1].shape:
        msg = f"truth has shape {masks[0].shape}, pred {masks[1].shape}; pass masks of one shape"
        raise ValueError(msg)
    window = bounding_box(masks[0] | masks[1])  # contains the skeletons
    true, predicted = (mask[window] for mask in masks)
    true_line, predicted_line = _skeleton(true), _skeleton(predicted)
    wide = _dilated(_dilated(true_line)) & true
    parts = ((predicted_line, true), (true_line, predicted), (wide, predicted))
    pairs = ((np.count_nonzero(a & b), np.count_nonzero(a)) for a, b in parts)
    return np.array([number for pair in pairs for number in pair], np.int64)


def betti_numbers(mask: Any, *, connectivity: Connectivity = "full") -> tuple[int, ...]:
    """Count the components and holes of a mask.

    Parameters
    ----------
    mask : array_like of bool, shape (H, W) or (D, H, W)
        Mask of one structure.
    connectivity : {"full", "cross"}
        Whether pixels that touch only at a corner are connected. The background is
        connected in the other way.

    Returns
    -------
    tuple of int
        Components and holes; in 3-D components, tunnels and cavities.

    Raises
    ------
    TypeError
        If the mask is not boolean.
    ValueError
        If it does not have two or three axes, or the connectivity is unknown.

    Notes
    -----
    In 3-D, tunnels follow from the Euler characteristic: b1 = b0 + b2 − χ.

    Examples
    --------
    >>> ring = np.pad(np.zeros((1, 1), bool), 1, constant_values=True)
    >>> betti_numbers(ring)
    (1, 1)
    """
    checked = _checked("mask", mask)
    check_choice("connectivity", connectivity, CONNECTIVITIES)
    window = np.pad(checked[bounding_box(checked)], 1)  # contains the holes
    full, cross = window.ndim, 1
    near, far = (full, cross) if connectivity == "full" else (cross, full)
    pieces = _components(window, near, foreground=True)
    enclosed = _components(window, far, foreground=False) - 1
    if window.ndim == 2:
        return pieces, enclosed
    tunnels = pieces + enclosed - _euler_number(window, connectivity)
    return pieces, tunnels, enclosed


def _checked(name: str, mask: Any) -> NDArray[np.bool_]:
    array = as_array(mask, name)
    if array.dtype != bool:
        msg = f"{name} must be boolean, got {array.dtype}; pass labels == value"
        raise TypeError(msg)
    if array.ndim not in (2, 3):
        msg = f"{name} must have two or three axes, got shape {array.shape}"
        raise ValueError(msg)
    return array


def _skeleton(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if not mask.any():
        return mask
    return np.asarray(import_whole("skimage.morphology").skeletonize(mask), np.bool_)


def _dilated(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A mask with the neighbours that share a face."""
    dilated = mask.copy()
    for axis in range(mask.ndim):
        wide, narrow = np.moveaxis(dilated, axis, 0), np.moveaxis(mask, axis, 0)
        wide[1:] |= narrow[:-1]
        wide[:-1] |= narrow[1:]
    return dilated


def _components(mask: NDArray[np.bool_], rank: int, *, foreground: bool) -> int:
    """The number of components of the foreground, or background; see ``components``."""
    neighbours = {2: {1: 4, 2: 8}, 3: {1: 6, 3: 26}}[mask.ndim][rank]
    return int(np.count_nonzero(components(mask, (), neighbours, 0).values == foreground))


def _euler_number(mask: NDArray[np.bool_], connectivity: Connectivity) -> int:
    """Vertices − edges + faces − voxels of a volume with an empty border.

    With full connectivity, a cell belongs to the volume if any voxel that has it does;
    otherwise the dual cells whose voxels all do are counted.
    """
    is_full = connectivity == "full"
    joined = np.logical_or if is_full else np.logical_and
    characteristic = 0
    for axes in chain.from_iterable(combinations(range(3), size) for size in range(4)):
        cells = mask
        for axis in axes:
            along = np.moveaxis(cells, axis, 0)
            cells = np.moveaxis(joined(along[:-1], along[1:]), 0, axis)
        dimension = 3 - len(axes) if is_full else len(axes)
        characteristic += (-1) ** dimension * int(np.count_nonzero(cells))
    return characteristic
