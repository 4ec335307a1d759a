"""Pairs of binary channels that may overlap → integer counts, after checks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_number
from segiou._support.optional import fallback, load_part
from segiou.counting import reference
from segiou.counting.arrays import (
    AtLeast,
    as_array,
    as_float,
    check_mask,
    check_same_shape,
    is_bfloat16,
    values_text,
    with_dimensions_of,
)
from segiou.counting.counts import Counts
from segiou.counting.scores import rounded

#: Number of values that are converted or masked at a time.
_BLOCK_VALUES = 1 << 20


_compiled = load_part("segiou.counting._channels")
#: "c" if the compiled routine was built, else "numpy"; both return the same counts.
CHANNELS_BACKEND = "c" if _compiled else "numpy"
_count_bytes: Callable[..., bool] = (
    _compiled.count_bytes
    if _compiled
    else fallback("segiou.counting._channels", reference.count_bytes)
)


def count_channels(
    truth: Any,
    pred: Any,
    *,
    axis: int,
    mask: Any = None,
    threshold: float | Sequence[float] | None = None,
) -> Counts:
    """Count binary channels that may overlap, each one separately, (C,).

    Parameters
    ----------
    truth, pred : array_like of bool or of the integers 0 and 1, equal shapes
        Masks with their channels along ``axis``: (C, H, W), (H, W, C),
        (N, C, H, W), … With a threshold, ``pred`` contains scores and ``truth``
        may contain 0.0 and 1.0.
    axis : int
        The channel axis.
    mask : array_like of bool, optional
        True where a value is valid. Its shape is either the shape without the
        channel axis (one mask for all channels) or the whole shape (one mask
        per channel). Values that are not valid are not checked.
    threshold : float or sequence of float, optional
        A channel is predicted if its score is greater than this, or than its own one of
        several; a score equal to the threshold is not predicted. Thresholds are rounded to
        the dtype of the scores first.

    Raises
    ------
    TypeError
        If an array does not contain numbers, holds floats without a threshold, or
        the mask is not bool.
    ValueError
        If the shapes differ, the axis does not exist, a value is neither 0 nor
        1, or a score is NaN.

    Examples
    --------
    >>> truth = [[1, 1, 0, 0], [0, 1, 1, 0]]
    >>> pred = [[1, 0, 0, 1], [0, 1, 1, 0]]
    >>> count_channels(truth, pred, axis=0)
    Counts(tp=[1 2], fp=[1 0], fn=[1 0], tn=[1 2])
    >>> count_channels([[1], [0]], [[0.9], [0.2]], axis=1, threshold=0.5)
    Counts(tp=[1], fp=[0], fn=[0], tn=[1])
    """
    pair = _Pair.of(truth, pred, axis, mask, threshold)
    shape, axis = pair.truth.shape, pair.axis
    totals = np.zeros((3, shape[axis]), dtype=np.int64)
    for t, p in pair.blocks():
        outer, inner = math.prod(t.shape[:axis]), math.prod(t.shape[axis + 1 :])
        if not _count_bytes(t, p, outer, shape[axis], inner, totals):
            pair.refuse()
    tp, in_truth, predicted = totals
    valid: Any = math.prod(shape) // shape[axis]
    if pair.mask is not None:
        others = tuple(a for a in range(len(shape)) if a != axis)
        valid = np.count_nonzero(pair.mask, axis=others)
    return Counts(tp, predicted - tp, in_truth - tp, valid - in_truth - predicted + tp)


@dataclass(frozen=True)
class _Pair:
    """Checked channels, with their axes in the order of memory where both agree on it."""

    truth: NDArray[Any]
    pred: NDArray[Any]
    axis: int
    mask: NDArray[np.bool_] | None
    #: The threshold of each channel, along their axis.
    threshold: Any
    is_at_least: bool

    @classmethod
    def of(cls, truth: Any, pred: Any, axis: int, mask: Any, threshold: Any) -> _Pair:
        pred = with_dimensions_of(truth, pred)
        t, p = _channel_array(truth, "truth", threshold), _channel_array(pred, "pred", threshold)
        check_same_shape(t, p)
        check_axis(t.shape, axis)
        axis %= t.ndim
        if t.shape[axis] == 0:
            msg = f"channels of shape {t.shape} have no channels along axis {axis}"
            raise ValueError(msg)
        mask = with_dimensions_of(truth, mask)
        valid = None if mask is None else _channel_mask(mask, t.shape, axis)
        # Counts do not depend on the order of the pixels; memory order needs no copy.
        order = sorted(range(t.ndim), key=lambda a: -abs(t.strides[a]))
        if valid is not None:
            valid = valid.transpose(order)
        limits = None
        if threshold is not None:
            limits = np.array([rounded(x, p.dtype) for x in limits_of(threshold, t.shape[axis])])
            limits = np.expand_dims(limits, [*range(1, t.ndim)]).swapaxes(0, order.index(axis))
            p = as_float(p)
        is_at_least = isinstance(threshold, AtLeast)
        places = order.index(axis), valid, limits, is_at_least
        return cls(t.transpose(order), p.transpose(order), *places)

    def blocks(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Contiguous bytes of truth and prediction; valid values are 0 and 1."""
        arrays = (self.truth, self.pred)
        as_bytes = all(x.dtype.itemsize == 1 and x.flags.c_contiguous for x in arrays)
        if as_bytes and self.mask is None and self.threshold is None:
            yield arrays  # no copy is needed
            return
        for block in self._slices():
            t, p = _as_bytes(self.truth[block]), self._predicted(block)
            if self.mask is not None:
                t, p = t * self.mask[block], p * self.mask[block]
            yield np.ascontiguousarray(t), np.ascontiguousarray(p)

    def _predicted(self, block: tuple[slice, ...]) -> NDArray[np.uint8]:
        """1 for a predicted value, 0 for another, and more for anything else."""
        values = self.pred[block]
        if self.threshold is None:
            return _as_bytes(values)
        yes = values >= self.threshold if self.is_at_least else values > self.threshold
        encoded: NDArray[np.uint8] = yes.view(np.uint8) | (values != values) * np.uint8(2)
        return encoded

    def _slices(self) -> Iterator[tuple[slice, ...]]:
        """Blocks along the longest axis that is not the channel axis."""
        shape = self.truth.shape
        others = [a for a in range(len(shape)) if a != self.axis]
        if not others:
            yield (slice(None),)
            return
        longest = max(others, key=lambda a: shape[a])
        step = max(1, _BLOCK_VALUES * shape[longest] // max(1, self.truth.size))
        for start in range(0, shape[longest], step):
            block = [slice(None)] * len(shape)
            block[longest] = slice(start, start + step)
            yield tuple(block)

    def refuse(self) -> NoReturn:
        """Raise an error that lists the wrong values, those of the truth first."""
        refuse_channel_values("truth", self._values(self.truth))
        if self.threshold is None:
            refuse_channel_values("pred", self._values(self.pred))
        elif missing := sum(n for value, n in self._values(self.pred).items() if value != value):
            msg = f"pred has {missing} NaN scores; fix the model, or mask them out"
            raise ValueError(msg)
        msg = "truth or pred changed during counting; pass copies"
        raise ValueError(msg)

    def _values(self, array: NDArray[Any]) -> Counter[Any]:
        pixels: Counter[Any] = Counter()
        for block in self._slices():
            values = array[block] if self.mask is None else array[block][self.mask[block]]
            distinct, counts = np.unique(values, return_counts=True)
            pixels.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
        return pixels


def check_axis(shape: Sequence[int | None], axis: int) -> None:
    """Raise unless channels of this shape have the axis."""
    if not -len(shape) <= check_integer("axis", axis) < len(shape):
        msg = f"axis={axis} is out of range for channels of shape {tuple(shape)}"
        raise ValueError(msg)


def limits_of(threshold: Any, number: int) -> list[float]:
    """The thresholds of this number of channels."""
    several: list[float] = [threshold] * number if np.ndim(threshold) == 0 else list(threshold)
    for limit in several:
        if math.isnan(check_number("threshold", limit)):
            msg = "threshold must be a number, got NaN"
            raise ValueError(msg)
    if len(several) != number:
        msg = f"expected one threshold, or {number} for {number} channels, got {len(several)}"
        raise ValueError(msg)
    return several


def _as_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """1 for 1, 0 for 0, and more for anything else."""
    if values.dtype.itemsize == 1:
        return values.view(np.uint8)
    yes, wrong = values != 0, (values != 0) & (values != 1)
    encoded: NDArray[np.uint8] = yes.view(np.uint8) | wrong * np.uint8(2)
    return encoded


def refuse_channel_values(name: str, pixels: Mapping[Any, int]) -> None:
    """Raise a ValueError for values of channels other than 0 and 1."""
    wrong = {value: n for value, n in pixels.items() if value not in (0, 1)}
    if not wrong:
        return
    msg = (
        f"{name} must be bool or contain only 0 and 1, found {values_text(wrong, 'time')}; pass "
        f"{name} != 0 if any non-zero value means positive, or exclude pixels with mask="
    )
    raise ValueError(msg)


def _channel_array(data: Any, name: str, threshold: Any) -> NDArray[Any]:
    array = as_array(data, name)
    if is_bfloat16(array.dtype) and threshold is not None:
        return array
    if array.dtype.kind not in "biuf":
        msg = f"{name} has dtype {array.dtype}; channels must be bool or the integers 0 and 1"
        raise TypeError(msg)
    if array.dtype.kind == "f" and threshold is None:
        msg = (
            f"{name} has dtype {array.dtype}; channels must be bool or the integers 0 and 1. If "
            "pred contains scores, pass threshold=T"
        )
        raise TypeError(msg)
    return array


def _channel_mask(mask: Any, shape: tuple[int, ...], axis: int) -> NDArray[np.bool_]:
    array = as_array(mask, "mask")
    check_mask(array, array.shape)
    if array.shape == shape:
        return array
    pixels = shape[:axis] + shape[axis + 1 :]
    if array.shape != pixels:
        msg = f"mask must have shape {pixels}, or {shape} for separate channels, got {array.shape}"
        raise ValueError(msg)
    return np.broadcast_to(np.expand_dims(array, axis), shape)
