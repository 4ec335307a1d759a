"""Columns of the class table, by the names that a field uses."""

from __future__ import annotations

from collections.abc import Sequence

from segiou._support.arguments import read_several
from segiou._support.text import did_you_mean
from segiou.measures.score_names import ALIASES, read_name
from segiou.metrics.pixel_scores import OF_CLASSES, PIXEL_SCORES

#: Columns of the class table: attribute of a row and heading.
ClassColumns = dict[str, str]

COUNTS = {"tp": "TP", "fp": "FP", "fn": "FN"}
_USUAL = ("iou", "dice", "precision", "recall", "share")
_SETS = {
    "map": ("users_accuracy", "producers_accuracy", "f1", "share"),
    "medical": ("dice", "iou", "precision", "recall", "share"),
}


def column_of(name: str) -> tuple[str, str]:
    """The attribute of a row and the heading of a column, by any name of its score."""
    others = {**COUNTS, "share": "share", "name": "class"}
    if name in others:
        return name, others[name]
    score = read_name(name).score
    if score not in OF_CLASSES:
        msg = f"{name!r} has no column in the table of classes; choose from {', '.join(OF_CLASSES)}"
        raise ValueError(msg)
    own = ALIASES.get(name.lower())
    mean = name.lower() == name.lower().removeprefix("m") if own else True
    return score, own[1] if own and mean else PIXEL_SCORES[score].title


def class_columns(choice: str | Sequence[str] | None = None) -> ClassColumns:
    """The columns of a field, or of a list of scores.

    >>> class_columns("medical")["dice"], [*class_columns("recall,iou")]
    ('Dice', ['recall', 'iou'])
    """
    if choice is None:
        choice = _USUAL
    if isinstance(choice, str):
        choice = _SETS.get(choice) or choice.split(",")
    found: ClassColumns = {}
    for name in read_several("columns", choice, "names of scores, or 'map' or 'medical'"):
        try:
            key, title = column_of(str(name))
        except ValueError as error:
            hint = did_you_mean(str(name), [*_SETS, *COUNTS, "share", *OF_CLASSES, *ALIASES])
            names = [*_SETS, *OF_CLASSES, "share", *COUNTS]
            msg = f"unknown column {name!r}; choose from {', '.join(names)}{hint}"
            raise ValueError(msg) from error
        if key in found:
            msg = f"columns {found[key]!r} and {title!r} are the same score; keep one"
            raise ValueError(msg)
        found[key] = title
    return found


def is_map(columns: ClassColumns) -> bool:
    """Whether the columns are named as in remote sensing."""
    return columns.get("precision") == ALIASES["users_accuracy"][1]
