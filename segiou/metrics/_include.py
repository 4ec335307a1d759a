"""Which classes take part in a mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["included"]


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
