"""What is drawn and swapped: images, groups of images, or blocks of neighbouring images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_number, refuse_kind
from segiou.analysis.dependence import (
    Dependence,
    Sequences,
    dependence_of,
    sequences_in_names,
    sequences_of,
)
from segiou.analysis.units import (
    FEW_UNITS,
    INDEPENDENT,
    Groups,
    Units,
    groups_of,
    one_per_image,
    units_of,
)
from segiou.metrics.ratio import Floats

#: Length of the blocks, or ``"auto"``: by how far the scores of neighbours go together.
BlockLength = float | Literal["auto"]
#: Draws weights (B, N) of images for B resamples.
Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Stretches of a mean length along sequences, drawn and swapped together."""

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
            return times_drawn(order[first + drawn % size], number)

        return weights


def independent_draw(seed: int, units: int) -> Draw:
    """Draws how often each unit is in each resample, (B, U): Multinomial(U, 1/U), U draws each."""
    rng = np.random.default_rng(seed)
    return lambda resamples: times_drawn(rng.integers(0, units, (resamples, units)), units)


def times_drawn(drawn: NDArray[np.intp], units: int) -> NDArray[np.int64]:
    """How often each unit stands in each row (B, U); the array is used up."""
    drawn += np.arange(len(drawn))[:, None] * units
    found = np.bincount(drawn.ravel(), minlength=len(drawn) * units)
    return found.reshape(len(drawn), units)


@dataclass(frozen=True, eq=False)
class Design:
    """The units of a test set, and what their independence rests on.

    ``units`` are swapped, left out and counted. They are drawn, too, unless there are blocks:
    then ``images`` are. ``dependence`` is None where groups are given, or the images are said
    to be independent.
    """

    units: Units
    images: Units
    blocks: Blocks | None = None
    dependence: Dependence | None = None

    @property
    def block_length(self) -> float | None:
        """Mean length of the blocks, if there are any."""
        return None if self.blocks is None else self.blocks.length


def design_of(
    num_images: int,
    ids: Sequence[str] | None,
    groups: Groups | None,
    blocks: BlockLength | None,
    scores: Callable[[], Sequence[Floats]],
) -> Design:
    """Find what is drawn, and how far it is from independent by the scores of images, (N,) each."""
    check_blocks(groups, blocks)
    independent = isinstance(groups, str) and groups == INDEPENDENT
    if isinstance(groups, str) and ids is None and not independent:
        raise refuse_kind("groups", groups, "a sequence where images have no ids to search")
    found = one_per_image("group", groups_of(ids or (), groups), num_images)
    images = units_of(num_images, None, ids)
    unknown = found is not None or independent or ids is None or num_images < FEW_UNITS
    if blocks is None and unknown:
        return Design(units_of(num_images, found, ids), images)
    if found is not None:
        sequences: Sequences | None = sequences_of(images.names, found)
    else:
        sequences = None if ids is None else sequences_in_names(images.names)
    if blocks is None and sequences is None:
        return Design(images, images)
    sequences = sequences or Sequences(("",), (np.arange(num_images),))
    each = [dependence_of(values, sequences) for values in scores()]
    strongest = max(each, key=lambda found: found.design_effect)
    if blocks is None:
        return Design(images, images, None, strongest)
    longest = max(found.block_length for found in each)
    chosen = Blocks(sequences, longest if blocks == "auto" else float(blocks))
    return Design(chosen.units(images.names), images, chosen, strongest)


def check_blocks(groups: Groups | None, blocks: BlockLength | None) -> None:
    """Refuse blocks that are no length, or blocks of images that are said to be independent."""
    if blocks is None:
        return
    if isinstance(blocks, str) and blocks != "auto":
        msg = f"blocks must be 'auto' or a number of images, got {blocks!r}"
        raise ValueError(msg)
    if not isinstance(blocks, str):
        check_number("blocks", blocks, 1)
    if isinstance(groups, str) and groups == INDEPENDENT:
        msg = (
            "groups 'none' says that the images are independent, and blocks that they are not; "
            "leave one of them out"
        )
        raise ValueError(msg)
