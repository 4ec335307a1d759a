"""Truth and predictions whose polygons are drawn by different rules."""

from __future__ import annotations

from collections.abc import Sequence

from segiou._support.text import see
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.sources.adjusted import place_of
from segiou.masks.sources.pairing import Pair
from segiou.scoring.pair import PairScorer

#: Pairs that are read to find polygons.
_TRIED = 20


def polygons_text(scorer: PairScorer, pairs: Sequence[Pair]) -> str:
    """The rules of the polygons of both sides if they differ; empty otherwise."""
    sources = [place_of(source) for source in (scorer.truth_source, scorer.pred_source)]
    if not all(getattr(source, "draws", False) for source in sources):
        return ""
    for pair in pairs[:_TRIED]:
        try:
            raws = [source.read(path)[0] for source, path in zip(sources, pair.sides, strict=True)]
        except MaskError:  # reported when the pair is scored
            continue
        truth, pred = (raw.drawn if isinstance(raw, RawMask) else "" for raw in raws)
        if truth and pred:
            if truth == pred:
                return ""
            return (
                f"polygons of the truth are drawn as {truth} draws them and those of predictions "
                f"as {pred} does, so pixels on their sides differ; export both by one tool. "
                f"{see('formats')}"
            )
    return ""
