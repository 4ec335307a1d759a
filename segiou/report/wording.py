"""Wording shared by all report formats: numbers, phrases, short names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from segiou._support.numbers import cell, count, interval_name, percent, points, shown, shown_range
from segiou._support.text import by_reason, called, capital, listed, plural

if TYPE_CHECKING:
    from segiou.analysis.gap.gains import ThresholdGain
    from segiou.analysis.gap.steps import NextStep
    from segiou.inference.intervals import Intervals
    from segiou.report.report_numbers import ReportNumbers

#: Most names that are listed.
NAMED = 8
#: Most classes whose thresholds are listed in the verdict.
_FEW = 3


def worst_score(report: ReportNumbers, row: dict[str, Any], by: str) -> str:
    """The score of an image in a list of the worst, with its unit; integers are counts.

    Tiny ratios have two significant digits.
    """
    value, unit = row[by], report.score_unit(by)
    if unit or not isinstance(value, int):
        is_tiny = not unit and 0 < abs(value) < 0.0001
        return f"{100 * value:.2g} %" if is_tiny else shown(value, unit)
    return str(value)


def share_text(share: float) -> str:
    """A share in a confusion matrix, in whole per cent."""
    return "<1" if 0 < share < 0.005 else f"{100 * share:.0f}"


def ignored_text(report: ReportNumbers) -> str:
    """Share of ignored pixels."""
    return cell(report.ignored / report.pixels if report.pixels else math.nan)


def interval_text(intervals: Intervals) -> str:
    """The interval of the mean and its units."""
    if math.isnan(intervals.overall.low):
        same = not intervals.too_few and math.isfinite(intervals.overall.value)
        why = " with equal scores" if same else ""
        return f"no interval, {intervals.units_text}{why}"
    limits = shown_range(intervals.overall.low, intervals.overall.high)
    return f"{interval_name(intervals.level)} {limits}, {intervals.units_text}"


def other_methods(report: ReportNumbers) -> list[str]:
    """Methods of intervals of measures that differ from that of IoU."""
    titles: dict[str, list[str]] = {}
    for score in report.measured_scores if report.intervals is not None else ():
        if score.intervals is not None:
            titles.setdefault(score.intervals.method_text(), []).append(score.title)
    usual = report.intervals and report.intervals.method_text()
    return [f"{capital(listed(names))}: {text}." for text, names in titles.items() if text != usual]


def verdict(report: ReportNumbers) -> str:
    """The verdict of a report: mean IoU, cautions, the costliest error, and better thresholds."""
    mean, loss = _headline(report)
    parts = (mean, *map(str, report.image_cautions), loss, threshold_text(report))
    return " ".join(filter(None, parts))


def threshold_text(report: ReportNumbers) -> str:
    """The thresholds that would raise IoU; empty if there are none."""
    gains = report.threshold_gains
    if not gains:
        return ""
    first = gains[0]
    if first.score == "mean_iou":
        return f"A threshold of {first.threshold:.3g} would raise mean IoU by {_gain(first)}."
    if len(gains) == 1:
        at = f"A threshold of {first.threshold:.3g} for {called(first.name)}"
        return f"{at} would raise its IoU by {_gain(first)}."
    several = [f"{called(gain.name)} at {gain.threshold:.3g} by {_gain(gain)}" for gain in gains]
    return f"Class thresholds would raise IoU: {listed(several, _FEW)}."


def _gain(gain: ThresholdGain) -> str:
    """Gain of a threshold, with the interval."""
    limits = f"{interval_name(gain.level)} {points(gain.low)} to {points(gain.high)}"
    return f"{points(gain.gain)} points ({limits})"


def _headline(report: ReportNumbers) -> tuple[str, str]:
    """Mean IoU, and the costliest error if there is one."""
    absent = _absent(report)
    if math.isnan(report.mean_iou):
        if not absent or report.protocol.absent != "nan":
            return "Mean IoU is undefined: no included class has a defined IoU.", ""
        names, have = listed(absent, NAMED), "has" if len(absent) == 1 else "have"
        name = report.protocol.name
        return f"Mean IoU is undefined under protocol {name}: {names} {have} no IoU.", ""
    total = plural(len(report.class_names), "class", "classes")
    mean = f"Mean IoU {percent(report.mean_iou)} over {report.mean_iou_classes} of {total}."
    steps = report.next_steps
    if absent and report.protocol.absent == "zero" and not report.protocol.needs_images:
        # The mean without the absent classes, minus the mean.
        lost = report.mean_iou * len(absent) / max(report.mean_iou_classes - len(absent), 1)
        if lost > max((step.gain for step in steps), default=0.0):
            count_as = "class counts" if len(absent) == 1 else "classes count"
            zero = f"{len(absent)} absent {count_as} as 0 under protocol {report.protocol.name}"
            return mean, f"Largest loss: {zero} ({points(lost)} points)."
    return mean, f"Costliest error: {_costliest(steps)}" if steps else ""


def _absent(report: ReportNumbers) -> list[str]:
    """Included classes in neither truth nor prediction."""
    counts = report.counts
    is_absent = report.include & (counts.tp + counts.fp + counts.fn == 0)
    return [called(report.class_names[c]) for c in is_absent.nonzero()[0].tolist()]


def _costliest(steps: Sequence[NextStep]) -> str:
    """The costliest error, or the first two if their gains differ within noise."""
    first = steps[0]
    missed = [called(str(step.truth)) for step in steps if step.kind == "missed_class"]
    if first.kind == "missed_class" and len(missed) > 1:
        up_to = f"(up to {points(first.gain)} points each)"
        return f"{listed(missed, NAMED)} are never predicted {up_to}."
    other = next((step for step in steps if step.tied and step.truth != first.truth), None)
    if first.kind != "confusion" or other is None or other.kind != "confusion":
        return _error(first)
    errors = " or ".join(_error(step).rstrip(".") for step in (first, other))
    return f"{errors}; their order is within noise."


def _error(step: NextStep) -> str:
    """An error and its cost."""
    noise = ", within noise" if step.uncertain else ""
    return f"{step.error} ({points(step.gain)} points{noise})."


#: Alignments of predictions with the truth.
_ALIGNED = {
    "reorient": "prediction axes reoriented to match the truth",
    "ignore": "file geometry ignored",
    "nearest": "predictions resized",
    "by shape": "arrays in the only order of axes that fits (nnU-Net's: z, y, x)",
    "xyz": "arrays with axes x, y, z",
    "zyx": "arrays with axes z, y, x",
    "nyx": "arrays of three axes as images",
}


def pairs_text(report: ReportNumbers) -> str:
    """Number of pairs, skipped ones, and their alignment."""
    skipped = f" ({report.left_out} skipped)" if report.left_out else ""
    return f"{plural(report.pairs, 'pair')}{skipped}{aligned_text(report)}"


def lacks(report: ReportNumbers) -> Iterator[str]:
    """What is missing in the run: pairs, shards, scores of measures."""
    kinds = {"unfinished": "unfinished", "partial": "incomplete", "unread": "incomplete"}
    for name, lead in kinds.items():
        if text := report.provenance.get(name):
            yield f"{lead}: {text}"


def aligned_text(report: ReportNumbers) -> str:
    """Alignment of predictions with the truth, after a comma."""
    first = next(iter(report.provenance.get("merged", ())), report.provenance)
    aligned = [str(first.get(name)) for name in ("geometry", "resize_pred", "array_axes")]
    return "".join(f", {_ALIGNED[mode]}" for mode in aligned if mode in _ALIGNED)


def counts_text(report: ReportNumbers) -> str:
    """Number of pairs, of pixels and of ignored pixels."""
    ignored = f"{count(report.ignored)} ignored ({ignored_text(report)})"
    return f"{pairs_text(report)}, {count(report.pixels)} {report.unit}, {ignored}"


def skipped_text(report: ReportNumbers) -> str:
    """Classes that are excluded from the mean, and the reasons."""
    skipped = report.iou_mean.skipped.items()
    return by_reason({report.class_names[index]: why for index, why in skipped})
