"""Rows of a report: classes, the images that score lowest, and the majority baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypedDict

import numpy as np

from segiou._support.arguments import check_kind
from segiou.counting.counts import Counts
from segiou.metrics.pixel_scores import OF_CLASSES, PIXEL_SCORES
from segiou.metrics.ratio import ratio
from segiou.report.class_columns import column_of

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
    specificity: float = math.nan
    balanced_accuracy: float = math.nan
    volumetric_similarity: float = math.nan

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
    with np.errstate(all="ignore"):
        columns = {name: PIXEL_SCORES[name].function(counts).tolist() for name in OF_CLASSES}
    columns |= {name: getattr(counts, name).tolist() for name in ("tp", "fp", "fn")}
    columns["share"] = ratio(counts.truth, counts.total).tolist()
    rows = zip(*columns.values(), strict=True)
    named = zip(names, rows, strict=True)
    return tuple(ClassRow(name, **dict(zip(columns, row, strict=True))) for name, row in named)


def sorted_rows(
    rows: tuple[ClassRow, ...], key: str = "order", *, reverse: bool = False
) -> tuple[ClassRow, ...]:
    """Rows by ``"order"`` or a column; undefined values come last."""
    check_kind("the column to sort by", key, str, "the name of a column")
    if key == "order":
        return rows[::-1] if reverse else rows
    try:
        key, _ = column_of(key)
    except ValueError:
        columns = list(ClassRow.__dataclass_fields__)
        msg = f"cannot sort by {key!r}; sort by order, {', '.join(columns)}"
        raise ValueError(msg) from None
    value = attrgetter(key)
    missing = [row for row in rows if value(row) != value(row)]
    present = [row for row in rows if value(row) == value(row)]
    return (*sorted(present, key=value, reverse=reverse), *missing)
