"""What is drawn and swapped: images, groups of images, or blocks of neighbouring images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from segiou._support.arguments import check_number, refuse_kind
from segiou.analysis.blocks import Blocks
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


@dataclass(frozen=True, eq=False)
class Design:
    """The units of a test set, and what their independence rests on.

    ``units`` are swapped, left out and counted. They are drawn, too, unless there are blocks:
    then ``images`` are. ``dependence`` is None where groups are given, or the images are said
    to be independent.
    """

    units: Units
    images: Units
    blocks: Blocks | None
    dependence: Dependence | None


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
        return Design(units_of(num_images, found, ids), images, None, None)
    sequences = _sequences(images.names, found, named=ids is not None)
    if blocks is None and sequences is None:
        return Design(images, images, None, None)
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


def _sequences(
    ids: Sequence[str], groups: Sequence[object] | None, *, named: bool
) -> Sequences | None:
    """Sequences in groups that are given, or else in the names."""
    if groups is not None:
        return sequences_of(ids, groups)
    return sequences_in_names(ids) if named else None
