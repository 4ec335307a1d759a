"""Two invented models: each prediction is its scene's truth with that model's faults.

One is tidy and blind to whatever is thin; the other sees the thin things and frays at every edge.
The first has the better pixel accuracy, the second the better mean IoU.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from segiou.demo.classes import (
    BICYCLE,
    BUILDING,
    CAR,
    COMMON,
    PAVEMENT,
    PERSON,
    POLE,
    RARE,
    ROAD,
    SIGN,
    SKY,
    TREE,
    VOID,
)
from segiou.demo.noise import box_sum, smooth_noise

Mask = npt.NDArray[np.uint8]


def predict_smooth(truth: Mask, rng: np.random.Generator) -> Mask:
    """Predict as a model that paints broad areas well and never a rare class.

    Parameters
    ----------
    truth : ndarray of uint8, shape (H, W)
        Class values of a scene.
    rng : numpy.random.Generator
        Decides where the borders wander.

    Returns
    -------
    ndarray of uint8, shape (H, W)
        Common classes only; none is void.
    """
    pred = absorb(truth, (*RARE, VOID))
    pred = _wander(pred, rng, cell=20, reach=1)
    for source, target, percent in ((TREE, BUILDING, 5), (PAVEMENT, ROAD, 3), (CAR, ROAD, 4)):
        pred = _confuse(pred, rng, source, target, percent, cell=20)
    return _majority(pred, radius=2)


def predict_detailed(truth: Mask, rng: np.random.Generator) -> Mask:
    """Predict as a model that finds the rare classes, too large, and frays at the borders.

    Parameters
    ----------
    truth : ndarray of uint8, shape (H, W)
        Class values of a scene.
    rng : numpy.random.Generator
        Decides what is missed, invented and frayed.

    Returns
    -------
    ndarray of uint8, shape (H, W)
        Any declared class; none is void.
    """
    pred = absorb(truth, (*RARE, VOID))
    confusions = (
        (BUILDING, TREE, 5),
        (TREE, BUILDING, 8),
        (ROAD, PAVEMENT, 2),
        (PAVEMENT, ROAD, 8),
        (SKY, BUILDING, 1),
        (CAR, ROAD, 6),
    )
    for source, target, percent in confusions:
        pred = _confuse(pred, rng, source, target, percent, cell=16)
    pred = _wander(pred, rng, cell=8, reach=4)
    _invent(pred, rng)
    for value in (POLE, SIGN, BICYCLE, PERSON):
        found = (truth == value) & (smooth_noise(rng, truth.shape, 24) > -350)
        grown = box_sum(found, 1) > (smooth_noise(rng, truth.shape, 6) > 120)
        pred[grown] = value
    return _wander(pred, rng, cell=12, reach=1)


def absorb(labels: Mask, values: Sequence[int]) -> Mask:
    """Give the pixels of `values` to whichever common class surrounds them most."""
    result = labels.copy()
    open_pixels = np.isin(labels, values)
    radius = 3
    while open_pixels.any():
        votes = np.stack([box_sum(result == value, radius) for value in COMMON])
        decided = open_pixels & votes.any(axis=0)
        result[decided] = np.array(COMMON, np.uint8)[votes.argmax(axis=0)][decided]
        open_pixels &= ~decided
        radius *= 2
    return result


def _majority(labels: Mask, radius: int) -> Mask:
    votes = np.stack([box_sum(labels == value, radius) for value in COMMON])
    winners: Mask = np.array(COMMON, np.uint8)[votes.argmax(axis=0)]
    return winners


def _wander(labels: Mask, rng: np.random.Generator, cell: int, reach: int) -> Mask:
    """Shift every pixel by a smooth field of typically under `reach` pixels."""
    height, width = labels.shape
    down, across = ((smooth_noise(rng, labels.shape, cell) * reach + 256) // 512 for _ in range(2))
    rows = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    columns = np.clip(np.arange(width) + across, 0, width - 1)
    shifted: Mask = labels[rows, columns]
    return shifted


def _confuse(
    labels: Mask, rng: np.random.Generator, source: int, target: int, percent: int, cell: int
) -> Mask:
    """Turn blobs, about `percent` of the source class, into the target: most where it is near."""
    nearness = box_sum(labels == target, cell) * 1500 // (2 * cell + 1) ** 2
    field = smooth_noise(rng, labels.shape, cell) + nearness
    candidates = np.sort(field[labels == source])
    if not candidates.size:
        return labels
    cut = candidates[len(candidates) * (100 - percent) // 100]
    return np.where((labels == source) & (field >= cut), np.uint8(target), labels)


def _invent(labels: Mask, rng: np.random.Generator) -> None:
    """Add a few poles, signs, people and bicycles where there are none."""
    height, width = labels.shape
    middle = height // 2
    shapes = (
        (POLE, 3, 40, 1),
        (POLE, 3, 26, 2),
        (SIGN, 7, 7, 1),
        (PERSON, 5, 16, 2),
        (BICYCLE, 12, 8, 1),
    )
    for value, across, down, most in shapes:
        for _ in range(int(rng.integers(0, most + 1))):
            column = int(rng.integers(8, width - 8 - across))
            row = middle - down + int(rng.integers(-6, 18))
            labels[row : row + down, column : column + across] = value
