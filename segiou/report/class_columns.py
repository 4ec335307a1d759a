"""Columns of the class table, by the names that a field uses."""

from __future__ import annotations

from collections.abc import Sequence

from segiou._support.arguments import read_several
from segiou._support.text import did_you_mean

#: Columns of the class table: attribute of a row and heading.
ClassColumns = dict[str, str]

_RATIOS = {
    "iou": "IoU",
    "dice": "Dice",
    "precision": "precision",
    "recall": "recall",
    "share": "share",
}
COUNTS = {"tp": "TP", "fp": "FP", "fn": "FN"}
#: Names of the same scores in other fields.
_ALIASES = {
    "users_accuracy": ("precision", "user's accuracy"),
    "producers_accuracy": ("recall", "producer's accuracy"),
    "f1": ("dice", "F1"),
    "ppv": ("precision", "PPV"),
    "sensitivity": ("recall", "sensitivity"),
}
_SETS = {
    "map": ("users_accuracy", "producers_accuracy", "f1", "share"),
    "medical": ("dice", "iou", "precision", "recall", "share"),
}


def class_columns(choice: str | Sequence[str] | None = None) -> ClassColumns:
    """The columns of a field, or of a list of scores.

    >>> class_columns("medical")["dice"], [*class_columns("recall,iou")]
    ('Dice', ['recall', 'iou'])
    """
    if choice is None:
        return dict(_RATIOS)
    if isinstance(choice, str):
        choice = _SETS.get(choice) or choice.split(",")
    known = {key: (key, title) for key, title in (_RATIOS | COUNTS).items()} | _ALIASES
    found: ClassColumns = {}
    for name in read_several("columns", choice, "names of scores, or 'map' or 'medical'"):
        if name not in known:
            names = [*_SETS, *known]
            hint = did_you_mean(str(name), names)
            msg = f"unknown column {name!r}; choose from {', '.join(names)}{hint}"
            raise ValueError(msg)
        key, title = known[name]
        if key in found:
            msg = f"columns {found[key]!r} and {title!r} are the same score; keep one"
            raise ValueError(msg)
        found[key] = title
    return found


def is_map(columns: ClassColumns) -> bool:
    """Whether the columns are named as in remote sensing."""
    return columns.get("precision") == _ALIASES["users_accuracy"][1]
