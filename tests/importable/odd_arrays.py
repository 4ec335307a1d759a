"""Arrays with the values of plain ones and unusual bytes."""

from __future__ import annotations

import numpy as np


def true_of_255(array):
    """As NumPy views a 1-bit image of Pillow; other types are unchanged."""
    return (array.view(np.uint8) * 255).view(bool) if array.dtype == bool else array


def unaligned(array):
    """Contiguous, one byte behind an aligned address."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64 + 1
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def backwards(array):
    """Every axis in memory from its end."""
    every = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[every])[every]


def swapped(array):
    """In the other byte order."""
    return array.astype(array.dtype.newbyteorder())


def transposed(array):
    """The last axis first in memory."""
    return np.asfortranarray(array)


LAYOUTS = [true_of_255, unaligned, backwards, swapped, transposed]
