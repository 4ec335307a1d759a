"""Ratios of counts, in which 0/0 is NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import framework_of

Floats = NDArray[np.float64]

#: float64 represents all integers up to this one exactly, so a division rounds once.
_FLOAT_HOLDS = 1 << 53


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide; 0/0 is NaN without a warning. Quotients of integers of any size are rounded once.

    Tensors, also symbolic ones, are divided by their framework.
    """
    if framework_of(denominator):
        quotient: Floats = numerator / denominator
        return quotient
    top, bottom = np.asarray(numerator), np.asarray(denominator)
    are_integers = top.dtype.kind in "iu" and bottom.dtype.kind in "iu"
    if are_integers and (_is_large(top) or _is_large(bottom)):
        return _ratio_of_large(top, bottom)
    return np.asarray(np.divide(top, np.where(bottom == 0, np.nan, bottom), dtype=np.float64))


def exact_parts(values: Floats) -> NDArray[np.int64]:
    """Numbers as two integers each, (..., 2), whose sums are exact in any order and grouping.

    They count multiples of 2⁻³² and of 2⁻⁶⁴; :func:`joined_parts` is the inverse. ValueError
    for numbers that are too large.
    """
    scaled = np.asarray(values) * 2.0**32
    if not (np.abs(scaled) < 2.0**63).all():
        msg = f"contains {np.abs(values).max():.3g}, which is too large; correct the spacing"
        raise ValueError(msg)
    whole = np.floor(scaled)
    return np.stack([whole, np.rint((scaled - whole) * 2.0**32)], axis=-1).astype(np.int64)


def joined_parts(sums: NDArray[Any]) -> Floats:
    """The sum of numbers from the sums of their parts (..., 2)."""
    return np.asarray(sums[..., 0] * 2.0**-32 + sums[..., 1] * 2.0**-64)


def _is_large(integers: NDArray[Any]) -> bool:
    return int(np.maximum.reduce(integers, None, initial=0)) > _FLOAT_HOLDS


def _ratio_of_large(top: NDArray[Any], bottom: NDArray[Any]) -> Floats:
    # Python divides integers of any size with one rounding.
    tops, bottoms = np.broadcast_arrays(top, bottom)
    quotients = [
        t / b if b else np.nan
        for t, b in zip(tops.ravel().tolist(), bottoms.ravel().tolist(), strict=True)
    ]
    return np.array(quotients, dtype=np.float64).reshape(tops.shape)


def included(include: Any, num_classes: int) -> NDArray[np.bool_]:
    """A checked mask of the classes to average over, (C,) or (..., C); None means all classes."""
    if include is None:
        return np.ones(num_classes, dtype=bool)
    selected = np.asarray(include)
    if selected.shape[-1:] != (num_classes,):
        msg = f"include must have one bool per class ({num_classes} classes), got {include!r}"
        raise TypeError(msg) if not selected.ndim else ValueError(msg)
    if selected.dtype != np.bool_:
        msg = (
            f"include must be bool, one per class, got {selected.dtype}; "
            "for class indices, pass np.isin(np.arange(C), indices)"
        )
        raise TypeError(msg)
    return selected
