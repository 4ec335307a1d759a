"""Scores as a flat mapping of names to numbers, as experiment trackers and hooks take them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.report.report import Report

#: One number for the data set.
SCALARS = (
    "mean_iou",
    "mean_dice",
    "mean_accuracy",
    "pixel_accuracy",
    "frequency_weighted_iou",
)
#: One number a class, under the class's name.
PER_CLASS = ("iou", "dice", "precision", "recall")
DEFAULT = ("mean_iou", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou", "iou")

#: The longest part of a class's name in a key: MLflow takes keys of up to 250 characters.
_LONGEST = 100


def check_scores(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of scores, or of one; refuses those that there are not."""
    several = (names,) if isinstance(names, str) else tuple(names)
    if unknown := [name for name in several if name not in SCALARS + PER_CLASS]:
        msg = f"there is no score {unknown[0]!r}; choose from {', '.join(SCALARS + PER_CLASS)}"
        raise ValueError(msg)
    return several


def score_keys(
    names: Sequence[str], class_names: Sequence[str], separator: str = "/"
) -> dict[str, tuple[str, int | None]]:
    """The score and the index of the class, None for a number of the data set, under each key."""
    found: dict[str, tuple[str, int | None]] = {}
    parts = _parts(class_names)
    for name in names:
        if name in SCALARS:
            found[name] = (name, None)
        else:
            found |= {f"{name}{separator}{part}": (name, i) for i, part in enumerate(parts)}
    return found


def named_scores(
    report: Report, names: Sequence[str], prefix: str, separator: str
) -> dict[str, float]:
    """See :meth:`segiou.Report.scores`."""
    keys = score_keys(names, report.class_names, separator)
    return {
        f"{prefix}{key}": float(getattr(report if i is None else report.classes[i], name))
        for key, (name, i) in keys.items()
    }


def _parts(class_names: Sequence[str]) -> list[str]:
    """Letters, digits and underscores of each name, different for each class."""
    parts: dict[str, None] = {}
    for i, name in enumerate(class_names):
        plain = re.sub(r"\W+", "_", name)[:_LONGEST].strip("_") or f"class_{i}"
        part, number = plain, 1
        while part in parts:
            number += 1
            part = f"{plain}_{number}"
        parts[part] = None
    return list(parts)
