"""Arrays that are one-hot or multi-label channels where label maps are expected."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import level_of_caller
from segiou.counting.arrays import (
    as_array,
    is_binary,
    is_on_device,
    is_one_hot,
    to_host,
    with_dimensions_of,
)

#: Two random label maps of so many pixels are not each other's complement.
_MANY_PIXELS = 64


class OneHotError(ValueError):
    """Arrays that may be one-hot or multi-label channels instead of label maps.

    Attributes
    ----------
    axis : int
        The axis that is as long as the classes.
    shape : tuple of int
        Shape of the arrays.
    """

    def __init__(self, shape: tuple[int, ...], axis: int) -> None:
        self.shape: tuple[int, ...] = shape
        self.axis: int = axis
        count = shape[axis]
        super().__init__(
            f"truth and pred have shape {shape} and contain only 0 and 1, and axis {axis} is as "
            f"long as the {count} classes, so they are probably channels, not label maps. For "
            f"one-hot channels, pass argmax={axis}, which decides both sides, or to adapters "
            f"truth.argmax({axis}) and pred.argmax({axis}); for channels that may overlap, use "
            f"segiou.ChannelCounts({count}).update(truth, pred, axis={axis}); for label maps, pass "
            "truth.ravel() and pred.ravel()"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (OneHotError, (self.shape, self.axis))


def check_label_maps(truth: Any, pred: Any, num_classes: int) -> None:
    """Raise a OneHotError for arrays of 0 and 1 with an axis that is probably the class axis."""
    shape: Any = getattr(truth, "shape", None)
    shape = tuple(as_array(truth, "truth").shape if shape is None else shape)
    axes = _class_axes(shape, num_classes)
    if not axes:
        return
    pred = with_dimensions_of(truth, pred)
    if num_classes == 2:
        _check_two_classes(shape, axes, truth, pred)
        return
    sides = [_host_array(truth, "truth"), _host_array(pred, "pred")]
    if sides[1].shape != shape or not all(map(is_binary, sides)):
        return
    # Overlapping channels without a true pixel give the counts of label maps.
    later = axes[-1] > 0 and len(shape) > 2 and bool(sides[0].any())
    _refuse_channels(shape, [k for k in axes if (k and later) or _are_channels(sides, k)])
    if axes[0] == 0 and len(shape) > 2 and np.bool_ in (sides[0].dtype, sides[1].dtype):
        text = (
            f"bool arrays of shape {shape} are counted as {num_classes} label maps of the first "
            f"two of {num_classes} classes. For channels, use segiou.ChannelCounts({num_classes})"
            ".update(truth, pred, axis=0); for label maps, pass integers"
        )
        warnings.warn(text, stacklevel=level_of_caller())


def _host_array(data: Any, name: str) -> NDArray[Any]:
    return to_host(data) if is_on_device(data) else as_array(data, name)


def _check_two_classes(shape: tuple[int, ...], axes: list[int], truth: Any, pred: Any) -> None:
    """Raise a OneHotError if both sides are one-hot of two classes.

    Label maps of two classes contain only 0 and 1 as well, so each channel must be the complement
    of the other on both sides, in many pixels and with both classes.
    """
    if math.prod(shape) < 2 * _MANY_PIXELS:
        return
    if is_on_device(truth) or is_on_device(pred):
        axes = [axis for axis in axes if axis]  # without a transfer of every batch of two images
    for axis in axes:
        are_channels = _are_complements(truth, "truth", shape, axis)
        if are_channels and _are_complements(pred, "pred", shape, axis):
            _refuse_channels(shape, [axis])


def _are_complements(data: Any, name: str, shape: tuple[int, ...], axis: int) -> bool:
    """Whether an array is one-hot along an axis of two channels, and both classes occur."""
    array = _host_array(data, name)
    if array.shape != shape:
        return False
    before, after = (0,) * axis, (0,) * (array.ndim - axis - 1)
    if array[(*before, 0, *after)] == array[(*before, 1, *after)]:  # as in most label maps
        return False
    planes = np.moveaxis(array, axis, 0)
    row: Any = (slice(None), *[0] * (array.ndim - 2))
    first, second = planes[row]
    if not (first != second).all() or not is_one_hot(array, axis):
        return False
    return bool(planes[0].any() and planes[1].any())


def check_counted(shape: tuple[int, ...], cells: Any, num_classes: int) -> None:
    """The same by the counts (index, number of pixels) of the arrays of an image."""
    axes = _class_axes(shape, num_classes) if num_classes > 2 else []
    index = np.asarray(cells.indices)
    row = num_classes + 1
    if axes and not cells.ignored and np.isin(index, (0, 1, row, row + 1)).all():
        pixels = int(cells.values[index >= row].sum())
        is_one_hot = pixels * num_classes == math.prod(shape) > num_classes**2
        _refuse_channels(shape, axes if is_one_hot or (len(shape) > 2 and pixels) else [])


def _class_axes(shape: tuple[int, ...], num_classes: int) -> list[int]:
    """The axes that may be those of the classes."""
    if num_classes < 2 or num_classes not in shape or len(shape) < 2:
        return []
    return [axis for axis in sorted({0, 1, len(shape) - 1}) if shape[axis] == num_classes]


def _refuse_channels(shape: tuple[int, ...], axes: list[int]) -> None:
    if axes:
        axis = axes[0]
        raise OneHotError(shape, axis - len(shape) if axis > 1 else axis)


def _are_channels(sides: list[NDArray[Any]], axis: int) -> bool:
    """Whether arrays of 0 and 1 are one-hot along an axis.

    The first axis may be that of images. They are rarely one-hot unless each has a single class,
    and rarely contain each other, as the regions of tumours do.
    """
    one_hot = [side for side in sides if is_one_hot(side, axis)]
    if axis or any(np.ptp(side.argmax(0)) for side in one_hot):
        return bool(one_hot)
    planes = sides[0].reshape(len(sides[0]), -1) != 0
    planes = planes[planes.sum(1).argsort()]
    is_mixed = planes[0].any() and not planes[-1].all() and (planes[0] != planes[-1]).any()
    return sides[0].ndim > 2 and bool(is_mixed) and bool((planes[:-1] <= planes[1:]).all())


def decided_truth(truth: Any, pred: Any, argmax: int | None, values: NDArray[Any]) -> Any:
    """The labels, of these values, of a truth that is one-hot along the class axis of scores."""
    shape = getattr(truth, "shape", None)
    if argmax is None or shape is None or tuple(shape) != tuple(np.shape(pred)):
        return truth
    array = _host_array(truth, "truth")
    if not -array.ndim <= argmax < array.ndim:
        return truth
    other = _common_values(array, argmax)
    if other is None:
        return truth
    is_other = other != 0
    if (array.sum(argmax)[~is_other] != 1).any():
        msg = (
            f"truth has the shape of the scores, {array.shape}, but is not one-hot along axis "
            f"{argmax}; for channels that may overlap, use segiou.ChannelCounts"
        )
        raise ValueError(msg)
    index = array.argmax(argmax)
    if len(values) != array.shape[argmax]:  # the scores raise an error
        return index
    if is_other.any():
        return np.where(is_other, other, values[index])
    if len(values) <= 256 and (values == np.arange(len(values))).all():
        return index.astype(np.uint8)
    return values[index]


def _common_values(array: NDArray[Any], axis: int) -> NDArray[Any] | None:
    """Values that a pixel has in all channels, as ignored ones in a one-hot array, else 0.

    None if other values than 0 and 1 occur elsewhere.
    """
    if is_binary(array):
        return np.zeros(array.shape[:axis] + array.shape[axis:][1:], np.uint8)
    if array.dtype.kind not in "iuf":
        return None
    first = array.take(0, axis)
    is_same = (array == np.expand_dims(first, axis)).all(axis) & (first != 1)
    is_known = (array == 0) | (array == 1) | np.expand_dims(is_same, axis)
    return np.where(is_same, first, 0).astype(np.int64) if is_known.all() else None
