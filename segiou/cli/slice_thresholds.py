"""Thresholds of slices: a score on each slice, or its change from the baseline."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from segiou._support.text import plural, signed_points
from segiou.analysis.slices import slices
from segiou.analysis.units import plural_of
from segiou.cli.inputs import slices_options
from segiou.cli.thresholds import Outcome, Threshold, compared

if TYPE_CHECKING:
    from segiou.analysis.slice_results import Slice, Slices
    from segiou.runs.run import Run


def slice_outcomes(
    run: Run, thresholds: Sequence[Threshold], parsed: argparse.Namespace
) -> list[Outcome]:
    """Compare the scores of slices with their thresholds, by one-sided 95 % bounds."""

    @cache
    def sliced(metric: str, column: str) -> Slices:
        how = slices_options(parsed, parsed.slices)
        return slices(run, metric=metric, columns=[column], level=0.9, **how)

    found = []
    for one in thresholds:
        column, _, value = one.where.partition("=")
        if not column:
            continue
        every = sliced(str(one.named), column)
        for own in every:
            if value in ("", own.value):
                named = one._replace(name=f"{one.name}@{own.name}")
                text = compared(named, own.score) + _too_few(own, every)
                outcome = Outcome(named.name, own.score, one.limit, text, one.better, _bounds(own))
                found.append(outcome._replace(confident=parsed.confident))
    return found


def not_worse_slices(baseline: Run, run: Run, parsed: argparse.Namespace) -> list[Outcome]:
    """Whether no slice is worse than in the baseline by more than a margin, beyond chance.

    The intervals are as of :func:`segiou.cli.thresholds.not_worse`, and adjusted for the number
    of slices by Bonferroni, which finds a worse slice if Holm does.
    """
    margin, both = float(parsed.fail_if_worse_slice), (baseline, run)
    how = slices_options(parsed, parsed.slices)
    tests = sum(not math.isnan(one.low) for one in slices(*both, **how))
    tail = (0.1 if margin else 1 - (parsed.level or 0.95)) / max(tests, 1)
    every = slices(*both, level=1 - tail, **how)
    found = []
    for own in every:
        outcome = Outcome(
            f"mean_iou:change@{own.name}",
            own.score,
            -margin,
            "",
            "higher",
            (0.0, 0.0) if own.score == 0 and math.isnan(own.low) else _bounds(own),
            parsed.confident,
            tolerant=True,
        )
        found.append(outcome._replace(text=_change_text(own, every, tests, outcome.state)))
    return found


def _change_text(own: Slice, every: Slices, tests: int, state: str) -> str:
    verb = {"failed": "is lower", "undecided": "may be lower", "passed": "is not lower"}[state]
    said = f"mean IoU on {own.name} {verb} than the baseline ({signed_points(own.score)} points"
    if math.isnan(own.low):
        return f"{said}{_too_few(own, every)})"
    ends = f"{signed_points(own.low)} to {signed_points(own.high)}"
    return f"{said}, interval adjusted for {plural(tests, 'slice')} {ends})"


def _bounds(own: Slice) -> tuple[float, float]:
    """The interval, which is infinite if units are too few; none if the score is undefined."""
    if math.isnan(own.low) and not math.isnan(own.score):
        return -math.inf, math.inf
    return own.low, own.high


def _too_few(own: Slice, every: Slices) -> str:
    """Why a slice has no interval."""
    if not math.isnan(own.low):
        return ""
    kind = every.unit if own.units == 1 else plural_of(every.unit)
    return f", no interval from {own.units} {kind}"
