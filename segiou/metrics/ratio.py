"""Ratios and means of counts: 0/0 is NaN, a mean skips it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Up to here float64 holds every integer, so one division rounds once.
_FLOAT_HOLDS = 1 << 53


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide; 0/0 is NaN, silently, and nothing else can have a zero denominator.

    The quotient of integers is the float64 nearest to the true quotient, also
    where they are past 2^53 and float64 could not hold them.
    """
    top, bottom = np.asarray(numerator), np.asarray(denominator)
    if _is_large(top) or _is_large(bottom):
        return _ratio_of_large(top, bottom)
    out = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def _is_large(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" and values.size > 0 and int(values.max()) > _FLOAT_HOLDS


def _ratio_of_large(top: NDArray[Any], bottom: NDArray[Any]) -> Floats:
    # Python divides integers of any size with one rounding.
    tops, bottoms = np.broadcast_arrays(top, bottom)
    quotients = [
        t / b if b else np.nan
        for t, b in zip(tops.ravel().tolist(), bottoms.ravel().tolist(), strict=True)
    ]
    return np.array(quotients, dtype=np.float64).reshape(tops.shape)


def included(include: Any, num_classes: int) -> NDArray[np.bool_]:
    """Read which classes may take part, (C,) or (..., C); all of them where nothing is said.

    Raises
    ------
    TypeError
        If it is not of booleans: class indices would be read as yes and no.
    ValueError
        If there is not one a class.

    Examples
    --------
    >>> included(None, 2), included([True, False], 2)
    (array([ True,  True]), array([ True, False]))
    """
    if include is None:
        return np.ones(num_classes, dtype=bool)
    taken = np.asarray(include)
    if taken.shape[-1:] != (num_classes,):
        msg = f"include must say of {num_classes} classes whether they take part, got {include!r}"
        raise TypeError(msg) if not taken.ndim else ValueError(msg)
    if taken.dtype != np.bool_:
        msg = (
            f"include must be bool, one a class, got {taken.dtype}; "
            "of indices make it by np.isin(np.arange(C), indices)"
        )
        raise TypeError(msg)
    return taken
