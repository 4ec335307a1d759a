"""Slices as a section of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.numbers import p_text, shown, shown_change
from segiou.analysis.slices.text import changes, interval_text, mark, mixes, notes, trends, verdict
from segiou.report.pages.image_table import ImageTable

if TYPE_CHECKING:
    from segiou.analysis.slices.result import Slice, Slices


def sliced_part(sliced: Slices) -> dict[str, Any]:
    """The slices by one score as a page shows them."""
    ends = [x for row in sliced for x in (*row.scores, row.high if len(sliced.names) < 2 else 0)]
    reach = max([x for x in ends if np.isfinite(x)], default=1.0) if sliced.score_unit else 1.0
    is_one = len(sliced.names) == 1
    return {
        "metric": sliced.metric,
        "title": sliced.title,
        "names": sliced.names,
        "verdict": verdict(sliced),
        "mixes": [*mixes(sliced)],
        "notes": [*notes(sliced)],
        "trends": trends(sliced) if sliced.trends else None,
        "rows": [_row(sliced, row, reach or 1.0) for row in sliced],
        "whole": sliced.score / (reach or 1.0) if is_one else None,
        "whole_text": shown(sliced.score, sliced.score_unit),
        "level": f"{100 * sliced.level:g}\N{NO-BREAK SPACE}%",
    }


def _row(sliced: Slices, row: Slice, reach: float) -> dict[str, Any]:
    unit, gap = sliced.score_unit, row.gap
    is_one = len(sliced.names) == 1
    ends = (row.low / reach, row.high / reach) if is_one and row.low == row.low else None
    return {
        "name": row.name,
        "images": row.images,
        "score": row.score,
        "text": (shown if is_one else shown_change)(row.score, unit),
        "interval": interval_text(sliced, row.low, row.high),
        "places": [score / reach for score in row.scores],
        "ends": ends,
        "gap": gap.value,
        "gap_text": "" if np.isnan(gap.value) else shown_change(gap.value, unit),
        "gap_interval": changes(gap.low, gap.high, sliced),
        "p": gap.p_holm,
        "p_text": "" if np.isnan(gap.p_holm) else p_text(gap.p_holm),
        "mark": mark(sliced, row).text,
    }


def slice_images(sliced: Sequence[Slices], table: ImageTable | None) -> Mapping[str, Iterable[int]]:
    """The places of the listed images that are in each slice."""
    if not sliced or table is None:
        return {}
    place = {id: i for i, id in enumerate(table.ids)}
    inside = {row.name: sliced[0].images_in(row.name) for row in sliced[0]}
    return {name: [place[id] for id in ids if id in place] for name, ids in inside.items()}
