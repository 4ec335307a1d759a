"""What pixel accuracy hides, as the parts of a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from segiou._support.text import (
    cell,
    points,
    signed_points,
    tone_of,
)
from segiou.analysis.gap.steps import top_steps
from segiou.document.parts import (
    GAP,
    Cell,
    Column,
    Facts,
    Line,
    Part,
    Table,
)

if TYPE_CHECKING:
    from segiou.analysis.gap.imbalance import Imbalance, ImbalanceDifference
    from segiou.analysis.gap.steps import NextStep


def imbalance_parts(imbalance: Imbalance, steps: Sequence[NextStep] = ()) -> Iterator[Part]:
    """Next steps, findings, the split of the gap and the classes."""
    yield from (Line(str(s), lead=f"{n}. ") for n, s in enumerate(top_steps(steps), 1))
    yield from [GAP] if steps else []
    yield from map(Line, imbalance.sentences())
    yield from (GAP, Facts([*_split(imbalance)]), GAP)
    rows = sorted(imbalance.classes, key=lambda row: (math.isnan(row.gap_part), -row.gap_part))
    columns = (
        Column("class", [row.name for row in rows], 9, is_text=True),
        Column("share", [cell(row.share) for row in rows], 7),
        Column("recall", [cell(row.recall) for row in rows], 4),
        Column("IoU", [Cell(cell(row.iou), tone_of(row.iou)) for row in rows], 8),
        Column("accuracy loss", [_points(row.accuracy_cost) for row in rows], 2),
        Column("mean IoU loss", [_points(row.mean_iou_cost) for row in rows], 3),
        Column("gap points", [_points(row.gap_part) for row in rows], 5),
    )
    note = "loss: points that each score would drop if the model stopped finding the class"
    yield Table(columns, [note])


def imbalance_difference_parts(difference: ImbalanceDifference) -> Iterator[Part]:
    """Findings, both scores and each class's part of the two differences."""
    yield from map(Line, difference.sentences())
    a, b = difference.models
    names = [*difference.accuracy_parts]
    order = sorted(names, key=lambda name: -abs(difference.mean_iou_parts.get(name) or 0.0))
    heads = [f"{name} recall" for name in difference.names]
    recalls = [{row.name: row.recall for row in model.classes} for model in (a, b)]
    shares = {row.name: row.share for row in a.classes}
    columns = (
        Column("class", ["all classes", *order], 9, is_text=True),
        Column("share", ["", *(cell(shares[name]) for name in order)], 7),
        Column(heads[0], [cell(a.mean_accuracy), *(cell(recalls[0][n]) for n in order)], 4),
        Column(heads[1], [cell(b.mean_accuracy), *(cell(recalls[1][n]) for n in order)], 5),
        _parts_of("accuracy", difference.accuracy_difference, difference.accuracy_parts, order, 6),
        _parts_of("mean IoU", difference.mean_iou_difference, difference.mean_iou_parts, order, 8),
    )
    note = f"accuracy, mean IoU: {difference.names[1]} minus {difference.names[0]}, in points"
    yield from (GAP, Table(columns, [note], first=1))


def _parts_of(
    head: str, whole: float, parts: Mapping[str, float], order: Sequence[str], rank: int
) -> Column:
    values = [whole, *(parts.get(name, math.nan) for name in order)]
    return Column(head, ["–" if math.isnan(x) else signed_points(x) for x in values], rank)


def _split(imbalance: Imbalance) -> Iterator[tuple[str, str, str]]:
    yield "pixel accuracy", cell(imbalance.pixel_accuracy), ""
    for name, score, lost, why in (
        ("mean accuracy", imbalance.mean_accuracy, imbalance.gap_imbalance, "imbalance"),
        ("mean IoU", imbalance.mean_iou, imbalance.gap_false_positives, "false positives"),
    ):
        yield name, cell(score), f"{signed_points(-lost)} points: {why}"
    for name, base in (
        ("majority baseline", imbalance.majority),
        ("random baseline", imbalance.random),
    ):
        yield name, cell(base.mean_iou), f"mean IoU; pixel accuracy {cell(base.pixel_accuracy)}"


def _points(value: float) -> str:
    return "–" if math.isnan(value) else points(value)
