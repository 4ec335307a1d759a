"""Arrays beside the truth that may be regions of interest, with the mean IoU that each gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from segiou.masks.formats.numpy_files import array_names
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import from_bytes
from segiou.masks.sources.adjusted import AdjustedSource
from segiou.masks.sources.class_files import inside
from segiou.masks.sources.pairing import Pair
from segiou.scoring.pair import PairScorer
from segiou.scoring.trials import SAMPLE, mean_lines, sampled, scored

#: Names of regions of interest.
_OF_REGIONS = re.compile("mask|valid|roi|fov|region|visible|observed", re.IGNORECASE)


def regions_text(scorer: PairScorer, pairs: Sequence[Pair]) -> str:
    """The options for regions of interest in the truth files; empty if there are none."""
    source = scorer.truth_source
    if not isinstance(source, AdjustedSource) or not source.key or source.roi is not None:
        return ""
    sample, means = sampled(pairs, SAMPLE), []
    for name in _regions_in(source, pairs[0].truth) if pairs else ():
        other = replace(scorer, truth_source=replace(source, roi=name))
        if (run := scored(other, scorer.header.options, sample)) is not None:
            means.append((f"--roi {name}", run.report().mean_iou))
    if not means:
        return ""
    lead = "the truth files have regions, none of which was applied; with the mean IoU inside each:"
    return "\n".join((lead, *mean_lines(means)))


def _regions_in(source: AdjustedSource, path: str) -> Iterator[str]:
    """Names of arrays that are 0 outside a region of the mask in an ``.npz`` file."""
    try:
        data = source.place.read(path)[0]
        if isinstance(data, RawMask) or data[:4] != b"PK\x03\x04":
            return
        shape = source.adjusted(data, path).values.shape
        for name in array_names(data, path):
            if name != source.key and re.fullmatch(r"\w+", name) and _OF_REGIONS.search(name):
                try:
                    region = inside(from_bytes(data, path, key=name), path, allow_lossy=False)
                except MaskError:
                    continue
                if region.shape == shape and region.any() and not region.all():
                    yield name
    except MaskError:
        return
