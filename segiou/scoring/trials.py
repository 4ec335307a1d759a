"""Samples of pairs, scored as if other options were passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from segiou.labels.class_options import ClassOptions
from segiou.masks.sources.pairing import Pair
from segiou.runs.image_counts import Columns, ImageCount
from segiou.runs.run import Run
from segiou.scoring.pair import PairScorer

#: Number of files sampled to suggest options, and to compare palettes.
SAMPLE = 40
T = TypeVar("T")


def sampled(items: Sequence[T], most: int) -> Sequence[T]:
    """At most so many items, evenly spread."""
    return items[:: max(1, -(-len(items) // most))]


def scored(scorer: PairScorer, options: ClassOptions, pairs: Sequence[Pair]) -> Run | None:
    """The pixels of the pairs under other options; None if one of them cannot be scored."""
    header = replace(scorer.header, options=options, plans=(), unread=())
    images = replace(scorer, header=header)(pairs)
    counted = [image for image in images if isinstance(image, ImageCount)]
    return Run(header, Columns.of(counted)) if len(counted) == len(images) else None
