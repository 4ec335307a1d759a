"""One row a class: what the tables of every format are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from segiou import metrics
from segiou._arguments import check_kind
from segiou.counts import Counts
from segiou.metrics import Floats

__all__ = ["ClassRow", "WorstImages", "class_rows", "sorted_rows"]

_RATIOS: Sequence[Callable[[Counts], Floats]] = (
    metrics.iou,
    metrics.dice,
    metrics.precision,
    metrics.recall,
)


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of a report: ratios are NaN where undefined, counts are pixels."""

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
        """What to know about the class: absent, never predicted, not in truth, or nothing."""
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


def class_rows(names: Sequence[str], counts: Counts, shares: Floats) -> tuple[ClassRow, ...]:
    """Rows of classes, in their order."""
    columns = (
        names,
        *(ratio(counts).tolist() for ratio in _RATIOS),
        counts.tp.tolist(),
        counts.fp.tolist(),
        counts.fn.tolist(),
        shares.tolist(),
    )
    return tuple(ClassRow(*row) for row in zip(*columns, strict=True))


def sorted_rows(rows: tuple[ClassRow, ...], key: str, *, reverse: bool) -> tuple[ClassRow, ...]:
    """Rows sorted by a column; undefined values come last either way.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    check_kind("the column to sort by", key, str, "the name of a column")
    if key == "order":
        return rows[::-1] if reverse else rows
    columns = list(ClassRow.__dataclass_fields__)
    if key not in columns:
        msg = f"cannot sort by {key!r}; sort by order, {', '.join(columns)}"
        raise ValueError(msg)
    missing = [row for row in rows if getattr(row, key) != getattr(row, key)]
    present = [row for row in rows if getattr(row, key) == getattr(row, key)]
    present.sort(key=lambda row: getattr(row, key), reverse=bool(reverse))
    return (*present, *missing)
