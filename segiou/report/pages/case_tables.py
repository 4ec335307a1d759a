"""Tables of images by structure: the scores of a measure in each image, for pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.files import printable
from segiou._support.numbers import COUNT, cell, unit_text
from segiou._support.text import nouns
from segiou.inference.scored_runs import unit_of_pixels
from segiou.report.pages.image_table import LISTED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from segiou.measures.plan import Plan
    from segiou.measures.score import Quantity
    from segiou.runs.run import Run

#: Images of a table, and cells of all tables of a measure, at most.
_ROWS, _CELLS = 500, 20_000


class CaseTable(NamedTuple):
    """One score of a measure in every image."""

    key: str
    title: str
    heads: tuple[str, ...]
    first: str
    rows: list[tuple[str, list[tuple[str, str]]]]
    """The id of each image, and for each column a value to sort by and its text."""
    left: int


def case_tables(run: Run, plan: Plan) -> list[CaseTable]:
    """A table per score, the worst images first; none for very many images."""
    if len(run) > LISTED:
        return []
    parts = run.parts(plan.key)
    values = plan.columns(parts)
    groups: dict[str, list[Quantity]] = {}
    for column in plan.image_columns:
        groups.setdefault(column.name.partition(":")[0], []).append(column)
    most = max(1, min(_ROWS, _CELLS // max(1, len(values))))
    image = nouns(unit_of_pixels(run)).image
    return [
        _table(run.ids, f"{plan.key}-{name}", columns, values, most, image)
        for name, columns in groups.items()
        if any(":" in column.name for column in columns)
    ]


def _table(
    ids: tuple[str, ...],
    key: str,
    columns: list[Quantity],
    values: dict[str, NDArray[Any]],
    most: int,
    image: str,
) -> CaseTable:
    lower = columns[0].better == "lower"
    means = [c for c in columns if ":" not in c.name] or columns
    worst = [_worst([values[c.name][i] for c in means], lower=lower) for i in range(len(ids))]
    order = sorted(range(len(ids)), key=lambda i: worst[i])[:most]
    rows = [(ids[i], [_cell(c, values[c.name][i]) for c in columns]) for i in order]
    unit = f", {text}" if (text := unit_text(columns[0].unit)) else ""
    return CaseTable(
        key,
        f"{columns[0].title or columns[0].name.partition(':')[0]} per {image}{unit}",
        tuple(printable(c.name.partition(":")[2] or c.overall) for c in columns),
        "descending" if lower else "ascending",
        rows,
        len(ids) - len(order),
    )


def _worst(values: list[np.floating[Any]], *, lower: bool) -> tuple[bool, float]:
    """Sort key: the worst images first, those without a score last."""
    known = [float(value) for value in values if not math.isnan(value)]
    if not known:
        return True, 0.0
    mean = sum(known) / len(known)
    return False, -mean if lower else mean


def _cell(column: Quantity, value: Any) -> tuple[str, str]:
    number = float(value)
    if math.isnan(number):
        return "nan", "–"
    if column.unit == COUNT:
        return str(int(number)), str(int(number))
    text = "∞" if math.isinf(number) else f"{number:.2f}"
    return repr(number), text if column.unit else cell(number)
