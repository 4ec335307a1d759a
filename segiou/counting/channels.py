"""Pairs of binary channels that may overlap → integer counts, checked before they are counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import fallback, load_part
from segiou.counting import reference
from segiou.counting.arrays import as_array, check_mask, check_same_shape, values_text
from segiou.counting.counts import Counts

#: Values that need converting or masking are converted this many at a time.
_BLOCK_VALUES = 1 << 20


_compiled = load_part("segiou.counting._channels")
#: "c" where the compiled routine was built, else "numpy"; both give the same counts.
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
    threshold: float | None = None,
) -> Counts:
    """Count binary channels that may overlap, each for itself.

    Parameters
    ----------
    truth, pred : array_like of bool or of the integers 0 and 1, equal shapes
        Masks with their channels along ``axis``: (C, H, W), (H, W, C),
        (N, C, H, W), … With a threshold, ``pred`` holds scores, and ``truth``
        may hold 0.0 and 1.0.
    axis : int
        The channel axis; it is never guessed.
    mask : array_like of bool, optional
        True where a value is valid: of the shape without the channel axis, for
        all channels, or of the whole shape, channel by channel. What is not
        valid is not looked at.
    threshold : float, optional
        A channel is predicted where its score is above this.

    Returns
    -------
    Counts of shape (C,)

    Raises
    ------
    TypeError
        If an array does not hold numbers, holds floats without a threshold, or
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
    both, in_truth, predicted = totals
    valid: Any = math.prod(shape) // shape[axis]
    if pair.mask is not None:
        others = tuple(a for a in range(len(shape)) if a != axis)
        valid = np.count_nonzero(pair.mask, axis=others)
    return Counts(both, predicted - both, in_truth - both, valid - in_truth - predicted + both)


@dataclass(frozen=True)
class _Pair:
    """Checked channels, with their axes in the order of memory where both agree on it."""

    truth: NDArray[Any]
    pred: NDArray[Any]
    axis: int
    mask: NDArray[np.bool_] | None
    threshold: float | None

    @classmethod
    def of(cls, truth: Any, pred: Any, axis: int, mask: Any, threshold: float | None) -> _Pair:
        if threshold is not None and math.isnan(threshold):
            msg = "threshold is NaN; nothing is above it"
            raise ValueError(msg)
        t, p = _channel_array(truth, "truth", threshold), _channel_array(pred, "pred", threshold)
        check_same_shape(t, p)
        if not -t.ndim <= axis < t.ndim:
            msg = f"channels of shape {t.shape} have no axis {axis}"
            raise ValueError(msg)
        axis %= t.ndim
        if t.shape[axis] == 0:
            msg = f"channels of shape {t.shape} have no channel along axis {axis}"
            raise ValueError(msg)
        valid = None if mask is None else _channel_mask(mask, t.shape, axis)
        # Any order of the pixels counts the same; that of memory needs no copy.
        order = sorted(range(t.ndim), key=lambda a: -abs(t.strides[a]))
        if valid is not None:
            valid = valid.transpose(order)
        return cls(t.transpose(order), p.transpose(order), order.index(axis), valid, threshold)

    def blocks(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Contiguous bytes of truth and prediction, 0 or 1 where they are right."""
        arrays = (self.truth, self.pred)
        as_bytes = all(x.dtype.itemsize == 1 and x.flags.c_contiguous for x in arrays)
        if as_bytes and self.mask is None and self.threshold is None:
            yield arrays  # memory can be counted as it lies
            return
        for block in self._slices():
            t, p = _as_bytes(self.truth[block]), _as_bytes(self.pred[block], self.threshold)
            if self.mask is not None:
                t, p = t * self.mask[block], p * self.mask[block]
            yield np.ascontiguousarray(t), np.ascontiguousarray(p)

    def _slices(self) -> Iterator[tuple[slice, ...]]:
        """Cut along the longest axis that is not the channel axis."""
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
        """Say which values are wrong, of the truth first."""
        _refuse_values("truth", self._values(self.truth))
        if self.threshold is None:
            _refuse_values("pred", self._values(self.pred))
        elif missing := sum(n for value, n in self._values(self.pred).items() if value != value):
            msg = (
                f"pred has {missing} NaN scores, which are neither above the threshold nor below; "
                "fix the model, or mask them out"
            )
            raise ValueError(msg)
        msg = "truth or pred changed while they were counted; count copies of them"
        raise ValueError(msg)

    def _values(self, array: NDArray[Any]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for block in self._slices():
            values = array[block] if self.mask is None else array[block][self.mask[block]]
            # A bool that was viewed from other bytes can hold more than 0 and 1.
            values = values.view(np.uint8) if values.dtype == np.bool_ else values
            distinct, counts = np.unique(values, return_counts=True)
            found.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
        return found


def _as_bytes(values: NDArray[Any], threshold: float | None = None) -> NDArray[np.uint8]:
    """1 for yes, 0 for no, and more for what is neither."""
    if threshold is not None:
        yes, wrong = values > threshold, values != values
    elif values.dtype.itemsize == 1:
        return values.view(np.uint8)
    else:
        yes, wrong = values != 0, (values != 0) & (values != 1)
    found: NDArray[np.uint8] = yes.view(np.uint8) | wrong * np.uint8(2)
    return found


def _refuse_values(name: str, found: Counter[Any]) -> None:
    wrong = {value: n for value, n in found.items() if value not in (0, 1)}
    if not wrong:
        return
    msg = (
        f"{name} must be bool or hold 0 and 1 only, found {values_text(wrong, 'time')}; say "
        f"{name} != 0 if every other value means yes, or mask= what is not to be counted"
    )
    raise ValueError(msg)


def _channel_array(data: Any, name: str, threshold: float | None) -> NDArray[Any]:
    array = as_array(data, name)
    if array.dtype.kind not in "biuf":
        msg = f"{name} has dtype {array.dtype}; channels must be bool or the integers 0 and 1"
        raise TypeError(msg)
    if array.dtype.kind == "f" and threshold is None:
        msg = (
            f"{name} is {array.dtype}; channels must be bool or the integers 0 and 1. If pred "
            "holds scores, say threshold=T"
        )
        raise TypeError(msg)
    return array


def _channel_mask(mask: Any, shape: tuple[int, ...], axis: int) -> NDArray[np.bool_]:
    array = np.asarray(mask)
    check_mask(array, array.shape)
    if array.shape == shape:
        return array
    pixels = shape[:axis] + shape[axis + 1 :]
    if array.shape != pixels:
        msg = f"mask has shape {array.shape}; it must be {pixels}, or {shape} channel by channel"
        raise ValueError(msg)
    return np.broadcast_to(np.expand_dims(array, axis), shape)
