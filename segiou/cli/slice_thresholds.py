"""Thresholds of slices: a score on each slice, or its change from the baseline."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from segiou._support.numbers import signed_points
from segiou._support.text import plural
from segiou.analysis.slices.search import slices
from segiou.cli.inputs import slices_options
from segiou.cli.thresholds import Threshold, ThresholdResult, bounds_of_change
from segiou.inference.units import plural_of

if TYPE_CHECKING:
    from segiou.analysis.slices.result import Slice, Slices
    from segiou.runs.run import Run


def slice_results(
    run: Run, thresholds: Sequence[Threshold], parsed: argparse.Namespace
) -> list[ThresholdResult]:
    """Compare the scores of slices with their thresholds, by one-sided 95 % bounds."""

    @cache
    def sliced(metric: str, column: str) -> Slices:
        options = slices_options(parsed, parsed.slices)
        return slices(run, metric=metric, columns=[column], level=0.9, **options)

    results = []
    for threshold in thresholds:
        # "age < 37.75" is the name of the slice "age=< 37.75".
        where = re.sub(r" (?=[<≥] )", "=", threshold.where, count=1)
        column, _, value = where.partition("=")
        if not column:
            continue
        every = sliced(str(threshold.score), column)
        chosen = [part for part in every if value in ("", part.value)]
        results += [_result_on(threshold, part, every, parsed.confident) for part in chosen]
    return results


def _result_on(
    threshold: Threshold, part: Slice, every: Slices, confident: bool
) -> ThresholdResult:
    """The result of a threshold on one of the slices."""
    of_slice = threshold._replace(name=f"{threshold.name}@{part.name}")
    return of_slice.result(
        part.score, _bounds(part), confident=confident, more=_too_few(part, every)
    )


def not_worse_slices(baseline: Run, run: Run, parsed: argparse.Namespace) -> list[ThresholdResult]:
    """Whether no slice is worse than in the baseline by more than a margin, beyond chance.

    The intervals are as of :func:`segiou.cli.thresholds.not_worse`, and adjusted for the number
    of slices by Bonferroni, which finds a worse slice if Holm does.
    """
    margin, runs = float(parsed.fail_if_worse_slice), (baseline, run)
    options = slices_options(parsed, parsed.slices)
    tests = sum(not math.isnan(tested.p) for tested in slices(*runs, **options))
    level = 1 - 0.1 / max(tests, 1)
    every = slices(*runs, level=level, **options)
    results = []
    for part in every:
        result = ThresholdResult(
            name=f"mean_iou:change@{part.name}",
            value=part.score,
            limit=-margin,
            text="",
            bounds=bounds_of_change(part.score, part.p, (part.low, part.high), level),
            confident=parsed.confident,
            tolerant=True,
        )
        results.append(result._replace(text=_change_text(part, every, tests, result.state)))
    return results


def _change_text(part: Slice, every: Slices, tests: int, state: str) -> str:
    verb = {"failed": "is lower", "undecided": "may be lower", "passed": "is not lower"}[state]
    sentence = (
        f"mean IoU on {part.name} {verb} than the baseline ({signed_points(part.score)} points"
    )
    if math.isnan(part.low):
        return f"{sentence}{_too_few(part, every)})"
    ends = f"{signed_points(part.low)} to {signed_points(part.high)}"
    return f"{sentence}, interval adjusted for {plural(tests, 'slice')} {ends})"


def _bounds(part: Slice) -> tuple[float, float]:
    """The interval, which is infinite if units are too few; none if the score is undefined."""
    if math.isnan(part.low) and not math.isnan(part.score):
        return -math.inf, math.inf
    return part.low, part.high


def _too_few(part: Slice, every: Slices) -> str:
    """Why a slice has no interval."""
    if not math.isnan(part.low):
        return ""
    kind = every.unit if part.units == 1 else plural_of(every.unit)
    return f", no interval from {part.units} {kind}"
