"""The confusion matrix as a heat map: a small grey picture a view, coloured by the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import short_count
from segiou.counting.counts import Tally
from segiou.metrics.ratio import Floats, ratio
from segiou.report.page import count
from segiou.report.pictures import grey_png

#: Side of the drawn matrix in SVG units, and of a cell at most.
SIDE = 600.0
_LARGEST_CELL = 120.0
_TEXTS = 16
_NAMED = 48
_LONGEST_NAME = 20
_CONFUSIONS = 20

_BY_TRUTH = (
    "Each row sums to 100 %: of the pixels that are a class, what they were predicted as. "
    "The diagonal is recall."
)
_BY_PRED = (
    "Each column sums to 100 %: of the pixels predicted as a class, what they really are. "
    "The diagonal is precision."
)
_BY_PIXELS = "Pixels, on a logarithmic scale."


def heatmap(tally: Tally, class_names: Sequence[str]) -> dict[str, Any]:
    """What the template draws of a confusion matrix, in SVG units, and its views.

    Pixels of no class get a column of their own where there are any. Names are cut where they are
    long; ``crowded`` are too many classes for names, ``small`` so few that it keeps its own size.
    """
    table = _table(tally)
    num_rows, num_columns = table.shape
    cell = min(_LARGEST_CELL, SIDE / num_columns)
    columns = [*class_names, "no class"][:num_columns]
    font = min(15.0, 0.78 * cell)
    shown = [_cut(name) for name in columns]
    return {
        "rows": [(_cut(name), (i + 0.5) * cell) for i, name in enumerate(class_names)],
        "columns": [(name, (i + 0.5) * cell) for i, name in enumerate(shown)],
        "full_rows": class_names,
        "cell": cell,
        "font": font,
        "margin": 0.58 * font * max(map(len, shown)) + 14,
        "width": num_columns * cell,
        "height": num_rows * cell,
        "diagonal": "".join(
            f"M{i * cell:.2f} {i * cell:.2f}h{cell:.2f}v{cell:.2f}h{-cell:.2f}z"
            for i in range(num_rows)
        ),
        "crowded": num_columns > _NAMED,
        "small": num_columns * _LARGEST_CELL < SIDE,
        "views": _views(table, cell),
    }


def _table(tally: Tally) -> NDArray[np.int64]:
    return tally.table if tally.unassigned.any() else tally.matrix


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _views(table: NDArray[np.int64], cell: float) -> list[dict[str, Any]]:
    """Readings of the matrix: a grey picture of one pixel a cell, what greys mean, and values."""
    # Square root: most confusions are below a tenth and could not be seen otherwise.
    by_truth, by_pred = (
        np.nan_to_num(ratio(table, table.sum(axis, keepdims=True))) for axis in (1, 0)
    )
    steps = tuple((share**0.5, _share_text(share)) for share in (0.0, 0.01, 0.1, 0.25, 0.5, 1.0))
    most = int(table.max(initial=0))
    logs = np.log10(table + 1.0) / max(np.log10(most + 1.0), 1e-9)
    powers = [0, *(10**k for k in range(1, len(str(most))) if k % 2 == 0)]
    ticks = tuple((float(np.log10(n + 1) / np.log10(most + 1)), count(n)) for n in powers if most)
    views = (
        ("rows", "by truth", _BY_TRUTH, by_truth, np.sqrt(by_truth), steps, _share_text),
        ("columns", "by prediction", _BY_PRED, by_pred, np.sqrt(by_pred), steps, _share_text),
        ("counts", "pixels", _BY_PIXELS, table, logs, ticks, short_count),
    )
    return [
        {
            **{"key": key, "title": title, "about": about, "legend": legend},
            "picture": grey_png(_grey(greys)),
            "texts": _texts(values, greys, cell, text_of),
        }
        for key, title, about, values, greys, legend, text_of in views
    ]


def _grey(values: Floats) -> NDArray[np.uint8]:
    greys = np.rint(255 * values).astype(np.uint8)
    # What happened at all is never quite invisible.
    greys[(values > 0) & (greys < 14)] = 14
    return greys


def _texts(
    values: NDArray[Any], greys: Floats, cell: float, text_of: Any
) -> list[tuple[float, float, str, bool]]:
    """What stands in each cell, where, and whether the cell is dark; nothing of many classes."""
    if values.shape[1] > _TEXTS:
        return []
    return [
        ((p + 0.5) * cell, (t + 0.5) * cell, text_of(values[t, p]), bool(greys[t, p] > 0.6))
        for t, p in np.argwhere(values > 0).tolist()
    ]


def _share_text(share: float) -> str:
    if 0 < share < 0.005:
        return "<1"
    return f"{100 * share:.0f}"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Pixels of one class that were predicted as another.

    Attributes
    ----------
    truth, pred : str
    pixels : int
    of_truth, of_pred : float
        Their share of the truth class and of what was predicted so.
    gain : float
        What mean IoU gains if they are put right; NaN where it is not known.
    """

    truth: str
    pred: str
    pixels: int
    of_truth: float
    of_pred: float
    gain: float


def confusion_rows(tally: Tally, class_names: Sequence[str], gains: Floats) -> list[Confusion]:
    """Confusions that are worth most, are largest in pixels, of their truth or of their prediction.

    Parameters
    ----------
    tally : Tally
    class_names : sequence of str
    gains : ndarray of float, shape (C, C + 1)
        What each gains; the rows come in this order.
    """
    table = _table(tally)
    names = [*class_names, "no class"]
    of_truth = np.nan_to_num(ratio(table, table.sum(1, keepdims=True)))
    of_pred = np.nan_to_num(ratio(table, table.sum(0, keepdims=True)))
    wrong = table > 0
    np.fill_diagonal(wrong, False)
    chosen: dict[int, None] = {}
    gains = gains[:, : table.shape[1]]
    for measure in (np.nan_to_num(gains), table, of_truth, of_pred):
        ranked = np.argsort(-np.where(wrong, measure, -1).ravel(), kind="stable")[:_CONFUSIONS]
        chosen |= dict.fromkeys(int(i) for i in ranked if wrong.ravel()[i])
    columns = (table, of_truth, of_pred, gains)
    rows = [
        Confusion(names[t], names[p], *(column[t, p].item() for column in columns))
        for t, p in (divmod(i, table.shape[1]) for i in chosen)
    ]
    return sorted(rows, key=lambda row: (-np.nan_to_num(row.gain), -row.pixels))
