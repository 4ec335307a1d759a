"""What every form of a report says alike: numbers, phrases, the boundary table, short names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from segiou._support.files import printable
from segiou._support.text import called, listed, percent, plural, points, signed_points

if TYPE_CHECKING:
    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.comparison import Comparison, Difference, InfluentialImage, PairComparison
    from segiou.analysis.steps import NextStep
    from segiou.report.report import Report

#: More names than this are counted.
NAMED = 8


def cell(value: float) -> str:
    """A ratio in a table."""
    return percent(value, "–")


def score_text(value: float) -> str:
    """A score or a difference of scores in a table: two digits at least where it is tiny.

    What is an integer is a number of objects.
    """
    if isinstance(value, int):
        return str(value)
    return f"{100 * value:.2g} %" if 0 < abs(value) < 0.0001 else cell(value)


def share_text(share: float) -> str:
    """A share in a cell of a confusion matrix, in whole per cent."""
    return "<1" if 0 < share < 0.005 else f"{100 * share:.0f}"


def in_unit(text: str, unit: str) -> str:
    """Replace pixels by voxels if these are the unit."""
    both = {"pixel": "voxel", "Pixel": "Voxel"}
    return re.sub(r"\b[Pp]ixel", lambda m: both[m[0]], text) if unit == "voxels" else text


def ignored_text(report: Report) -> str:
    """Which part of the pixels is ignored."""
    return cell(report.ignored / report.pixels if report.pixels else math.nan)


def range_text(limits: tuple[float, float] | None) -> str:
    """Two limits of a ratio."""
    if limits is None or math.isnan(limits[0]):
        return "–"
    return f"{points(limits[0])} to {percent(limits[1])}"


def difference_cells(row: Difference) -> tuple[str, str, str, str, str]:
    """The score of two models, with its name, their difference in points, and its interval."""
    low, high = signed_points(row.low), signed_points(row.high)
    interval = "–" if math.isnan(row.low) else f"{low} to {high}"
    return printable(row.name), cell(row.a), cell(row.b), signed_points(row.delta), interval


def influences(pair: PairComparison) -> list[tuple[InfluentialImage, str]]:
    """Images that move the difference, and to which of the two models."""
    for_b = [(image, pair.b) for image in pair.for_b]
    return for_b + [(image, pair.a) for image in pair.for_a]


def interval_text(found: Intervals) -> str:
    """The interval of the mean in words, with what makes it unsafe."""
    if math.isnan(found.overall.low):
        return f"no interval over {found.resampled}"
    doubts = [f"few {found.unit}s"] if found.overall.few else []
    if found.unsafe and found.dependence is not None:
        doubts += found.dependence.doubts
    limits = range_text((found.overall.low, found.overall.high))
    unsafe = f" ({', '.join(doubts)}, so less sure)" if doubts else ""
    return f"{100 * found.level:g} % interval {limits} over {found.resampled}{unsafe}"


def verdict(report: Report, intervals: Intervals | None) -> str:
    """The verdict of a report: mean IoU with its interval, and what holds it back most."""
    absent = _absent(report)
    if math.isnan(report.mean_iou):
        if not absent or report.protocol.absent != "nan":
            return "There is no mean IoU: no class that takes part in it has a defined IoU."
        names, have = listed(absent, NAMED), "has" if len(absent) == 1 else "have"
        return f"There is no mean IoU by protocol {report.protocol.name}: {names} {have} no IoU."
    total = plural(len(report.class_names), "class", "classes")
    mean = f"Mean IoU over {report.mean_iou_classes} of {total} is {percent(report.mean_iou)}"
    interval = "" if intervals is None else f", {interval_text(intervals)}"
    steps = [step for step in report.next_steps if step.kind != "few_images"]
    held_back = _held_back(steps, report.unit) if steps else ""
    if absent and report.protocol.absent == "zero" and not report.protocol.needs_images:
        # What the mean would be without them, less what it is.
        lost = report.mean_iou * len(absent) / max(report.mean_iou_classes - len(absent), 1)
        if lost > max((step.gain for step in steps), default=0.0):
            held_back = plural(len(absent), "class that does", "classes that do")
            held_back += f" not occur count{'s' if len(absent) == 1 else ''} as 0 by protocol "
            held_back += f"{report.protocol.name} ({points(lost)} points)"
    return f"{mean}{interval}{f'; what holds it back most: {held_back}' if held_back else ''}."


def _absent(report: Report) -> list[str]:
    """Classes in neither truth nor prediction that are not left out of the mean by name."""
    rows = zip(report.classes, report.include, strict=True)
    return [called(row.name) for row, kept in rows if kept and row.status == "absent"]


def _held_back(steps: Sequence[NextStep], unit: str) -> str:
    """What costs most; of classes that are never predicted all, where one of them comes first."""
    # One cell may hold all that a class misses; that the class is missed says more.
    first = max(steps, key=lambda step: (round(step.gain, 12), step.kind != "confusion"))
    missed = [str(step.truth) for step in steps if step.kind == "missed_class"]
    each = " each" if first.kind == "missed_class" and len(missed) > 1 else ""
    if first.kind == "missed_class":
        names = listed([called(name) for name in missed], NAMED)
        what = f"{names} {'are' if each else 'is'} never predicted"
    elif first.kind == "false_class":
        pixels = plural(first.pixels, unit.removesuffix("s"))
        what = f"{called(str(first.pred))} is predicted on {pixels} and nowhere in the truth"
    elif first.kind == "swapped_classes":
        what = f"{called(str(first.truth))} and {called(str(first.pred))} are taken for each other"
    else:
        answer = "no class" if first.pred is None else called(first.pred)
        share = f"{percent(first.share)} of the {unit} of {called(str(first.truth))}"
        what = f"{share} are predicted as {answer}"
    gain = f"up to {points(first.gain)}" if each else points(first.gain)
    return f"{what} ({gain} points{each})"


def accuracy_text(report: Report) -> str:
    """The means beside mean IoU, in a line; Dice is what volumes are scored by."""
    means = {"mean Dice": report.mean_dice} if report.unit == "voxels" else {}
    means |= {"pixel accuracy": report.pixel_accuracy, "mean accuracy": report.mean_accuracy}
    text = " · ".join(f"{name} {cell(value)}" for name, value in means.items())
    return text[0].upper() + text[1:]


#: How predictions were brought to the grid of their truth, in words.
_ALIGNED = {
    "reorient": "axes of predictions exchanged where they differ",
    "ignore": "geometry of the files ignored",
    "nearest": "predictions resized",
}


def pairs_text(report: Report) -> str:
    """How many pairs were counted, what is missing of them, and how they were aligned."""
    left_out = f" ({report.left_out} left out)" if report.left_out else ""
    lacks = (("unfinished", "not finished"), ("partial", "not complete"))
    found = [(said, report.provenance.get(name)) for name, said in lacks]
    rest = "".join(f", {said}: {text}" for said, text in found if text)
    first = next(iter(report.provenance.get("merged", ())), report.provenance)
    aligned = [str(first.get(name)) for name in ("geometry", "resize_pred")]
    rest += "".join(f", {_ALIGNED[how]}" for how in aligned if how in _ALIGNED)
    return f"{plural(report.pairs, 'pair')}{left_out}{rest}"


def skipped_text(report: Report) -> str:
    """Which classes the mean leaves out, and why."""
    by_reason: dict[str, list[str]] = {}
    for index, why in report.iou_mean.skipped.items():
        by_reason.setdefault(why, []).append(printable(report.class_names[index]))
    return "; ".join(
        f"{f'{len(names)} classes' if len(names) > NAMED else ', '.join(names)} ({why})"
        for why, names in by_reason.items()
    )


def with_short_names(comparison: Comparison) -> Comparison:
    """Give the models short names, where they differ."""
    short = [short_name(name) for name in comparison.names]
    if len({*short}) < len(short) or not all(short):
        return comparison
    names = dict(zip(comparison.names, short, strict=True))
    return replace(
        comparison,
        names=tuple(short),
        ranking=tuple(replace(r, name=names[r.name]) for r in comparison.ranking),
        pairs=tuple(replace(p, a=names[p.a], b=names[p.b]) for p in comparison.pairs),
    )


def short_name(name: str) -> str:
    """A path's last part: a run is named by the folder of its predictions unless it was named.

    Examples
    --------
    >>> short_name("out/small"), short_name("base")
    ('small', 'base')
    """
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2]


def top_steps(steps: Sequence[NextStep], number: int = 3) -> list[NextStep]:
    """The steps that gain most, no two of the same class of the truth."""
    first: dict[str | None, NextStep] = {}
    for step in steps:
        first.setdefault(step.truth, step)
    return list(first.values())[:number]
