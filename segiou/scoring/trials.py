"""Samples of pairs, scored as if other options were passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from segiou._support.files import Problem
from segiou._support.numbers import percent
from segiou.labels.class_options import ClassOptions
from segiou.masks.colors import PALETTE_SUFFIXES
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import from_bytes
from segiou.masks.sources.folders import Source
from segiou.masks.sources.pairing import Pair
from segiou.runs.image_counts import Columns, ImageCount
from segiou.runs.run import Run
from segiou.scoring.pair import PairScorer

#: Number of files sampled to suggest options, and to compare palettes.
SAMPLE = 40
#: Most bytes of a file of a sample.
LARGE = 1 << 24
T = TypeVar("T")


def sampled(items: Sequence[T], most: int) -> Sequence[T]:
    """At most so many items, evenly spread."""
    return items[:: max(1, -(-len(items) // most))]


def palette_files(source: Source, paths: Sequence[str]) -> Iterator[tuple[str, RawMask]]:
    """Masks of a sample of files that may have palettes; large and unreadable ones are skipped."""
    for path in sampled(paths, SAMPLE):
        if not path.lower().endswith(PALETTE_SUFFIXES):
            continue
        try:
            if (source.stamp(path).size or 0) <= LARGE:
                yield path, from_bytes(source.read(path)[0], path)
        except (MaskError, OSError):  # reported when the pair is scored
            continue


def tried(scorer: PairScorer, pairs: Sequence[Pair]) -> tuple[Run, list[Problem]]:
    """The run of the pairs that can be scored, and the problems of the others."""
    results = scorer(pairs)
    counted = [result for result in results if isinstance(result, ImageCount)]
    problems = chain(*(result for result in results if not isinstance(result, ImageCount)))
    return Run(scorer.header, Columns.of(counted)), [*problems]


def scored(scorer: PairScorer, options: ClassOptions, pairs: Sequence[Pair]) -> Run | None:
    """The pixels of the pairs under other options; None if one of them cannot be scored."""
    header = replace(scorer.header, options=options, plans=(), unread=())
    run, problems = tried(replace(scorer, header=header), pairs)
    return None if problems else run


def mean_lines(options: Iterable[tuple[str, float]]) -> list[str]:
    """Lines of options, each with its mean IoU."""
    return [f"  {text}  # {percent(mean)}" for text, mean in options]
