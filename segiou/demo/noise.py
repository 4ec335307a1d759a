"""Smooth random fields in whole numbers, so that every machine draws the same scenes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def box_sum(field: npt.NDArray[np.integer | np.bool_], radius: int) -> IntArray:
    """Sum over the square window of side ``2 * radius + 1`` around each pixel.

    Parameters
    ----------
    field : ndarray of int or bool, shape (H, W)
        Values to sum; beyond the edge the nearest value goes on.
    radius : int
        Half the window's side, in pixels.

    Returns
    -------
    ndarray of int64, shape (H, W)

    Examples
    --------
    >>> box_sum(np.eye(3, dtype=np.int64), 1)
    array([[5, 3, 1],
           [3, 3, 3],
           [1, 3, 5]])
    """
    summed = field.astype(np.int64)
    for _ in range(2):
        padded = np.pad(summed, ((radius + 1, radius), (0, 0)), mode="edge")
        padded[0] = 0
        running = np.cumsum(padded, axis=0)
        summed = (running[2 * radius + 1 :] - running[: -2 * radius - 1]).T
    return summed


def smooth_noise(rng: np.random.Generator, shape: tuple[int, int], cell: int) -> IntArray:
    """Return a smooth random field, mean 0 and standard deviation about 300.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the random numbers.
    shape : tuple of int
        Height and width, in pixels.
    cell : int
        Size of the field's hills and hollows, in pixels.

    Returns
    -------
    ndarray of int64, shape (H, W)
        Values within [-1024, 1024]: uniform noise on a coarse grid, twice averaged over the grid's
        cells (a quadratic spline), in whole numbers.
    """
    height, width = shape
    coarse = rng.integers(-1024, 1025, (height // cell + 4, width // cell + 4))
    field = coarse.repeat(cell, axis=0).repeat(cell, axis=1)
    radius = cell // 2
    for _ in range(2):
        field = box_sum(field, radius) // (2 * radius + 1) ** 2
    return field[cell : cell + height, cell : cell + width]
