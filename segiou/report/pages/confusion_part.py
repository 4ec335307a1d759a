"""The confusions of a page: the matrix as a drawing, and its rows as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import count, short_count
from segiou.analysis.gap.steps import confusion_gains
from segiou.counting.counts import ConfusionCounts
from segiou.metrics.ratio import Floats, ratio
from segiou.report.pages.page import plural
from segiou.report.pages.pictures import grey_png
from segiou.report.wording import share_text

if TYPE_CHECKING:
    from segiou.report.report import Report

_CELLS = 12
#: The matrix of more classes is not drawn.
_MATRIX_CLASSES = 1000


def confusions(report: Report) -> dict[str, Any]:
    """The section of confusions, unless there are too many classes to draw."""
    tally, names = report.tally, report.class_names
    if not report.has_matrix or len(names) > _MATRIX_CLASSES:
        return {"heat": None, "matrix": None}
    rows = []
    for name, row in zip(names, tally.table.tolist(), strict=True):
        cells = [(label, n) for label, n in zip([*names, "no class"], row, strict=True) if n]
        cells.sort(key=lambda cell: -cell[1])
        rest = sum(n for _, n in cells[_CELLS:])
        more = [(plural(len(cells) - _CELLS, "other"), rest)] if rest else []
        rows.append((name, sum(row), cells[:_CELLS] + more))
    gains = confusion_gains(tally, report.protocol, report.include)
    ious = [(row.iou, i) for i, row in enumerate(report.classes) if row.tp + row.fn > 0]
    return {
        "heat": heatmap(tally, names),
        "confusions": confusion_rows(tally, names, gains),
        "matrix_rows": rows,
        "matrix": {
            "lens": min(ious)[1] if ious else None,
            "matrix": tally.matrix.tolist(),
            "unassigned": tally.unassigned.tolist() if tally.unassigned.any() else None,
        },
    }


#: Side of the drawn matrix in SVG units, and of a cell at most.
SIDE = 600.0
_LARGEST_CELL = 120.0
_TEXTS = 16
_NAMED = 48
_LONGEST_NAME = 20
_CONFUSIONS = 20


def heatmap(tally: ConfusionCounts, class_names: Sequence[str]) -> dict[str, Any]:
    """Drawing of a confusion matrix in SVG units, and its views.

    Pixels without a class have a separate column, if there are any. Long names are shortened;
    ``crowded`` means too many classes for names, ``small`` so few that the size is fixed.
    """
    table = _occupied(tally)
    num_columns = table.shape[1]
    side = min(_LARGEST_CELL, SIDE / num_columns)
    shown = [
        name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        for name in [*class_names, "no class"][:num_columns]
    ]
    columns = [(name, (i + 0.5) * side) for i, name in enumerate(shown)]
    font = min(15.0, 0.78 * side)
    return {
        "rows": columns[: len(table)],
        "columns": columns,
        "full_rows": class_names,
        "cell": side,
        "font": font,
        "margin": 0.58 * font * max(map(len, shown)) + 14,
        "crowded": num_columns > _NAMED,
        "small": num_columns * _LARGEST_CELL < SIDE,
        "views": _views(table, side),
    }


def _occupied(tally: ConfusionCounts) -> NDArray[np.int64]:
    return tally.table if tally.unassigned.any() else tally.matrix


def _views(table: NDArray[np.int64], side: float) -> list[dict[str, Any]]:
    """Readings of the matrix: a grey picture of one pixel a cell, what greys mean, and values."""
    # Square root: most confusions are below a tenth and could not be seen otherwise.
    steps = tuple((share**0.5, share_text(share)) for share in (0.0, 0.01, 0.1, 0.25, 0.5, 1.0))
    by_truth, by_pred = _shares(table)
    most = int(table.max(initial=0))
    logs = np.log10(table + 1.0) / max(np.log10(most + 1.0), 1e-9)
    powers = [0, *(10**k for k in range(1, len(str(most))) if k % 2 == 0)]
    ticks = tuple((float(np.log10(n + 1) / np.log10(most + 1)), count(n)) for n in powers if most)
    views = (
        ("rows", by_truth, np.sqrt(by_truth), steps, share_text),
        ("columns", by_pred, np.sqrt(by_pred), steps, share_text),
        ("counts", table, logs, ticks, short_count),
    )
    return [
        {
            "key": key,
            "legend": legend,
            "picture": grey_png(_grey(greys)),
            "texts": _texts(values, greys, side, text_of),
        }
        for key, values, greys, legend, text_of in views
    ]


def _shares(table: NDArray[np.int64]) -> list[Floats]:
    """Each cell's share of its truth class, and of its predicted class."""
    return [np.nan_to_num(ratio(table, table.sum(axis, keepdims=True))) for axis in (1, 0)]


def _grey(values: Floats) -> NDArray[np.uint8]:
    greys = np.rint(255 * values).astype(np.uint8)
    # Cells with a pixel are always visible.
    greys[(values > 0) & (greys < 14)] = 14
    return greys


def _texts(
    values: NDArray[Any], greys: Floats, side: float, text_of: Callable[[float], str]
) -> list[tuple[float, float, str, bool]]:
    """Text and position of each cell and whether the cell is dark; empty for many classes."""
    if values.shape[1] > _TEXTS:
        return []
    return [
        ((p + 0.5) * side, (t + 0.5) * side, text_of(values[t, p]), bool(greys[t, p] > 0.6))
        for t, p in np.argwhere(values > 0).tolist()
    ]


def confusion_rows(
    tally: ConfusionCounts, class_names: Sequence[str], gains: Floats
) -> list[dict[str, Any]]:
    """The top confusions by gain, by pixels, and by share of the true or predicted class.

    ``gains`` is what each gains, (C, C + 1); the rows come in this order.
    """
    table = _occupied(tally)
    names = [*class_names, "no class"]
    of_truth, of_pred = _shares(table)
    wrong = table > 0
    np.fill_diagonal(wrong, False)
    chosen: dict[int, None] = {}
    gains = gains[:, : table.shape[1]]
    for measure in (np.nan_to_num(gains), table, of_truth, of_pred):
        ranked = np.argsort(-np.where(wrong, measure, -1).ravel(), kind="stable")[:_CONFUSIONS]
        chosen |= dict.fromkeys(int(i) for i in ranked if wrong.ravel()[i])
    columns = {"pixels": table, "of_truth": of_truth, "of_pred": of_pred, "gain": gains}
    rows = [
        {"truth": names[t], "pred": names[p]}
        | {name: column[t, p].item() for name, column in columns.items()}
        for t, p in (divmod(i, table.shape[1]) for i in chosen)
    ]
    return sorted(rows, key=lambda row: (-np.nan_to_num(row["gain"]), -row["pixels"]))
