"""Memory that one mask after another is read into."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scratch"]

#: Masks that are larger are few, and their memory is better given back.
_MOST_BYTES = 1 << 24


class Scratch:
    """Memory for the labels of a mask, taken again and again by one thread.

    Fresh memory costs a page fault for every 4096 pixels, which takes longer
    than the reading itself and is done by one thread of a process at a time.

    Examples
    --------
    >>> scratch = Scratch()
    >>> first = scratch.take((2, 3))
    >>> second = scratch.take((1, 4))
    >>> bool(np.shares_memory(first, second))
    True
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """An array of any content; those taken before must not be used any longer."""
        size = math.prod(shape)
        if size > _MOST_BYTES:
            return np.empty(shape, np.uint8)
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].reshape(shape)
