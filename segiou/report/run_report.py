"""The report of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_kind
from segiou.analysis.gap.gains import ImageGains, ThresholdGain, steps_with_images, threshold_gains
from segiou.analysis.gap.steps import NextStep, next_steps
from segiou.inference.dependence import design_of
from segiou.inference.intervals import Intervals
from segiou.inference.scored_runs import scored_images, unit_of_pixels
from segiou.inference.units import Units
from segiou.metrics.pixel_scores import CASE_SCORES
from segiou.metrics.protocols import Protocol
from segiou.report.image_cautions import image_cautions
from segiou.report.measured import measured_parts
from segiou.report.report import Report
from segiou.report.report_numbers import FEWEST_IMAGES, WorstImages
from segiou.runs.run import Run

#: A report whose protocol does not need the counts of every image gets them only
#: up to this many numbers.
_MANY_COUNTS = 1 << 24
#: Gains of next steps have intervals up to this many; with more images they are certain anyway.
_MOST_MOVED = 1 << 19


def report_of(
    run: Run,
    protocol: Protocol,
    title: str,
    intervals: Intervals | Sequence[Intervals] | None,
    *,
    worst: int,
    worst_by: str,
) -> Report:
    """The report of a run; arguments as of :meth:`segiou.Run.report`."""
    check_integer("worst", worst, 0)
    check_kind("title", title, str, "text")
    check_kind("worst_by", worst_by, str, "the name of a score")
    passed = _checked(intervals)
    others = {*run.score_plans, *CASE_SCORES}
    measured = {given.metric: given for given in passed if given.metric in others}
    of_pixels = [given for given in passed if given.metric not in others]
    few = len(run) * run.options.num_classes <= _MANY_COUNTS
    kept = few or protocol.needs_images
    if kept and protocol.undeclared == "miss":
        _ = run.counts  # read with the sum, in one pass over a run file
    counted, run = run._tally, run.under(protocol)
    include = protocol.include_of(run)
    steps, gains_of_thresholds = _next_steps(run, protocol, include, passed, few=few, kept=kept)
    worst_images = tuple(run._table(protocol).worst(worst, worst_by)) if worst else ()
    return Report(
        class_names=run.class_names,
        tally=run._tally,
        counted=counted,
        pairs=len(run),
        protocol=protocol,
        include=include,
        per_image=run.counts if kept else None,
        ids=run.ids if kept else (),
        groups=run.options.groups,
        title=title or run.name,
        provenance=run.provenance,
        intervals=next(iter(of_pixels), None),
        more_intervals=tuple(of_pixels[1:]),
        worst_images=WorstImages(worst_by, worst_images) if worst else None,
        left_out=len(run.skipped),
        steps=steps,
        threshold_gains=gains_of_thresholds,
        image_cautions=image_cautions(run, include) if few else (),
        **measured_parts(run, measured),
    )


def _checked(intervals: Any) -> list[Intervals]:
    """The given intervals, of one score or of several, as a list."""
    several = intervals if isinstance(intervals, (list, tuple)) else [intervals]
    passed = [given for given in several if given is not None]
    for given in passed:
        check_kind("intervals", given, Intervals, "what Run.intervals gives")
    return passed


def _next_steps(
    run: Run,
    protocol: Protocol,
    include: NDArray[np.bool_],
    intervals: Sequence[Intervals],
    *,
    few: bool,
    kept: bool,
) -> tuple[tuple[NextStep, ...], tuple[ThresholdGain, ...]]:
    """The costliest errors and better thresholds, with intervals if counts of images are few."""
    per_image = run.counts if kept else None
    unit = unit_of_pixels(run)
    steps = next_steps(run._tally, run.class_names, protocol, include, per_image, unit)
    if not few:
        return steps, ()
    gains: ImageGains | None = None
    gains_of_thresholds: tuple[ThresholdGain, ...] = ()
    if len(run) >= FEWEST_IMAGES and len(run) * run.options.num_classes <= _MOST_MOVED:
        units = _units_of(run, protocol, intervals)
        gains = ImageGains(run.counts, units, protocol, include)
        gains_of_thresholds = _gains_of_thresholds(run, units, protocol, include)
    blocks = run._images.blocks(files=False)
    return steps_with_images(steps, run.class_names, blocks, gains), gains_of_thresholds


def _units_of(run: Run, protocol: Protocol, intervals: Sequence[Intervals]) -> Units:
    """The units of the intervals that were passed, or else those found in the ids."""
    for given in intervals:
        if given._over is not None and len(given._over.index) == len(run):
            return given._over
    images = scored_images(run, "iou", protocol)
    return design_of(images.ids, len(run), lambda: [images.of_images()]).units


def _gains_of_thresholds(
    run: Run, units: Units, protocol: Protocol, include: NDArray[np.bool_]
) -> tuple[ThresholdGain, ...]:
    """The gains of other thresholds of the first measure of scores that has any."""
    readers = (plan for plan in run.plans if plan.reads_predictions)
    others = (plan.alternative(run.parts(plan.key), run.counts, units.index) for plan in readers)
    if (other := next(filter(None, others), None)) is None:
        return ()
    return threshold_gains(run.counts, other, run.class_names, units, protocol, include)
