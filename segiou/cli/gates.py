"""``--fail-under``: scores that a report must reach."""

from __future__ import annotations

import math
from collections.abc import Sequence

from segiou.report import Report

__all__ = ["check_gates", "failed_gates", "parse_gates"]

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
#: Scores of one class, asked for as ``iou:CLASS``.
_OF_A_CLASS = ("iou", "dice", "precision", "recall")

Gates = Sequence[tuple[str, float]]


def parse_gates(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Read ``NAME=VALUE`` texts.

    Raises
    ------
    ValueError
        If one has another form, an unknown name, or a value that no score reaches.
    """
    gates = []
    for text in texts:
        name, _, value = text.rpartition("=")
        name = _ALIASES.get(name.strip(), name.strip())
        if name not in _SCORES and _split(name)[0] not in _OF_A_CLASS:
            known = ", ".join(("miou", *_SCORES[1:], *(f"{kind}:CLASS" for kind in _OF_A_CLASS)))
            msg = f"--fail-under {text!r}: write NAME=VALUE with a name of {known}"
            raise ValueError(msg)
        gates.append((name, _least(text, value)))
    return gates


def _split(name: str) -> tuple[str, str]:
    """The score and the class of a gate; no score where it is of no class."""
    kind, colon, class_name = name.partition(":")
    return (kind, class_name) if colon else ("", "")


def _least(text: str, value: str) -> float:
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if math.isnan(least):
        msg = f"--fail-under {text!r}: {value!r} is not a number"
        raise ValueError(msg)
    if least > 1:
        hint = f"; for {least:g} % write {least / 100:g}" if least <= 100 else ""
        msg = f"--fail-under {text!r}: no score is above 1{hint}"
        raise ValueError(msg)
    return least


def check_gates(gates: Gates, class_names: Sequence[str], *, boundary: bool) -> None:
    """Refuse gates on scores that a report will not have.

    Raises
    ------
    ValueError
        If a class is none of ``class_names``, or boundaries are not measured.
    """
    for name, _ in gates:
        if name == "boundary_iou" and not boundary:
            msg = f"--fail-under {name}: boundaries are not measured; score with --boundary"
            raise ValueError(msg)
        if name not in _SCORES and _split(name)[1] not in class_names:
            msg = f"--fail-under {name}: no such class; there are {', '.join(class_names)}"
            raise ValueError(msg)


def failed_gates(report: Report, gates: Gates) -> list[str]:
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
    kind, class_name = _split(name)
    row = report.classes[report.class_names.index(class_name)]
    return float(getattr(row, kind))
