"""``--fail-under``: scores that a report must reach."""

from __future__ import annotations

import math
from collections.abc import Sequence

from segiou.report import Report

__all__ = ["failed_gates", "parse_gates"]

_ALIASES = {"miou": "mean_iou"}
_SCORES = (
    "mean_iou",
    "mean_dice",
    "pixel_accuracy",
    "mean_accuracy",
    "frequency_weighted_iou",
    "cohen_kappa",
    "boundary_iou",
)


def parse_gates(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Read ``NAME=VALUE`` texts.

    Raises
    ------
    ValueError
        If one has another form, or an unknown name.
    """
    gates = []
    for text in texts:
        name, _, value = text.rpartition("=")
        name = _ALIASES.get(name.strip(), name.strip())
        if name not in _SCORES and not name.startswith("iou:"):
            known = ", ".join(("miou", *_SCORES[1:], "iou:CLASS"))
            msg = f"--fail-under {text!r}: write NAME=VALUE with a name of {known}"
            raise ValueError(msg)
        try:
            least = float(value)
        except ValueError:
            least = math.nan
        if math.isnan(least):
            msg = f"--fail-under {text!r}: {value!r} is not a number"
            raise ValueError(msg)
        gates.append((name, least))
    return gates


def failed_gates(report: Report, gates: Sequence[tuple[str, float]]) -> list[str]:
    """Say which gates a report fails; an undefined score fails."""
    failures = []
    for name, least in gates:
        value = _value(report, name)
        if not value >= least:
            shown = "undefined" if value != value else repr(value)
            failures.append(f"gate failed: {name} is {shown}, below {least}")
    return failures


def _value(report: Report, name: str) -> float:
    if name in _SCORES:
        return float(getattr(report, name))
    wanted = name.removeprefix("iou:")
    for row in report.classes:
        if row.name == wanted:
            return row.iou
    msg = f"--fail-under {name}: no such class; there are {', '.join(report.class_names)}"
    raise ValueError(msg)
