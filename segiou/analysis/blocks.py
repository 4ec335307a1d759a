"""Blocks: stretches of neighbouring images, drawn and swapped together along each sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segiou.analysis.dependence import Sequences
from segiou.analysis.units import Units

#: Draws weights (B, N) of images for B resamples.
Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Stretches of a mean length along sequences."""

    sequences: Sequences
    length: float

    def units(self, ids: Sequence[str]) -> Units:
        """Blocks of equal length, the last of a sequence maybe shorter: what is swapped."""
        size = max(1, round(self.length))
        index = np.empty(self.sequences.images, np.intp)
        names: list[str] = []
        for own in self.sequences.members:
            for start in range(0, len(own), size):
                part = own[start : start + size]
                index[part] = len(names)
                names.append(f"{ids[part[0]]} to {ids[part[-1]]}")
        return Units("block", tuple(names), index)

    def draw(self, seed: int) -> Draw:
        """Draw weights by the stationary bootstrap, along each sequence by itself.

        D. N. Politis and J. P. Romano, J. Amer. Statist. Assoc. 89 (1994), 1303-1313: from a
        place drawn at random go on to the next, the first after the last, and with chance
        1 / length start again.
        """
        # One stream for places and one for ends, so that batches do not change the numbers.
        places, ends = (np.random.default_rng([seed, stream]) for stream in (3, 4))
        order = np.concatenate(self.sequences.members)
        sizes = np.array([len(own) for own in self.sequences.members])
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        size = np.repeat(sizes, sizes)
        number = len(order)
        place = np.arange(number)

        def weights(resamples: int) -> NDArray[np.int64]:
            start = (places.random((resamples, number)) * size).astype(np.intp)
            new = (ends.random((resamples, number)) * self.length < 1) | (place == first)
            last = np.maximum.accumulate(np.where(new, place, 0), axis=1)
            drawn = np.take_along_axis(start, last, axis=1) + place - last
            drawn = order[first + drawn % size] + number * np.arange(resamples)[:, None]
            found = np.bincount(drawn.ravel(), minlength=resamples * number)
            return found.reshape(resamples, number)

        return weights
