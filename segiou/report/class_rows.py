"""Rows of a report: classes, the images that score lowest, and the majority baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypedDict

from segiou import metrics
from segiou._support.arguments import check_kind
from segiou.counting.counts import Counts
from segiou.metrics.ratio import ratio

#: What predicting one class everywhere scores.
Baseline = TypedDict("Baseline", {"class": str, "pixel_accuracy": float, "mean_iou": float})


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of a report: ratios are NaN if undefined, counts are pixels."""

    name: str
    iou: float
    dice: float
    precision: float
    recall: float
    tp: int
    fp: int
    fn: int
    share: float

    @property
    def status(self) -> str:
        """Absent, never predicted, not in truth, or empty."""
        if self.tp + self.fp + self.fn == 0:
            return "absent"
        if self.tp + self.fn == 0:
            return "not in truth"
        return "never predicted" if self.tp + self.fp == 0 else ""


@dataclass(frozen=True, slots=True)
class WorstImages:
    """Rows of images with the lowest scores, the lowest first.

    Attributes
    ----------
    by : str
        The column that is the score.
    rows : tuple of dict
        Rows of :meth:`segiou.Run.rows`.
    """

    by: str
    rows: tuple[dict[str, Any], ...]


def class_rows(names: Sequence[str], counts: Counts) -> tuple[ClassRow, ...]:
    """Rows of classes, in their order."""
    ratios = (metrics.iou, metrics.dice, metrics.precision, metrics.recall)
    columns = (*(found(counts) for found in ratios), counts.tp, counts.fp, counts.fn)
    lists = (column.tolist() for column in (*columns, ratio(counts.truth, counts.total)))
    return tuple(ClassRow(*row) for row in zip(names, *lists, strict=True))


def sorted_rows(
    rows: tuple[ClassRow, ...], key: str = "order", *, reverse: bool = False
) -> tuple[ClassRow, ...]:
    """Rows by ``"order"`` or a column; undefined values come last."""
    check_kind("the column to sort by", key, str, "the name of a column")
    if key == "order":
        return rows[::-1] if reverse else rows
    columns = list(ClassRow.__dataclass_fields__)
    if key not in columns:
        msg = f"cannot sort by {key!r}; sort by order, {', '.join(columns)}"
        raise ValueError(msg)
    value = attrgetter(key)
    missing = [row for row in rows if value(row) != value(row)]
    present = [row for row in rows if value(row) == value(row)]
    return (*sorted(present, key=value, reverse=reverse), *missing)
