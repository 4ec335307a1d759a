"""The sections of numbers: headline, the way from accuracy to IoU, classes, images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from segiou.fine_grained import image_means, worst_mean
from segiou.html.report.bounds import Bounds, Range
from segiou.html.report.colors import hex_color
from segiou.html.report.numbers import number, percent
from segiou.metrics import Floats
from segiou.report import Report
from segiou.report.rows import ClassRow

__all__ = [
    "ClassLine",
    "Distribution",
    "Score",
    "Step",
    "class_lines",
    "distribution",
    "gap_steps",
    "scores",
    "skipped_text",
]

_BINS = 20


@dataclass(frozen=True, slots=True)
class Score:
    """A number of the headline, with its interval and what it is."""

    name: str
    text: str
    range: Range | None
    about: str


def scores(report: Report, bounds: Bounds) -> list[Score]:
    """The numbers beside mean IoU and those on the way to it."""
    found = (
        ("mean_dice", "Mean Dice", "mean of 2TP / (2TP + FP + FN)"),
        ("frequency_weighted_iou", "Weighted IoU", "IoU weighted by truth pixels"),
        ("cohen_kappa", "Cohen’s kappa", "agreement beyond chance"),
    )
    shown = [
        Score(name, number(getattr(report, key)), bounds.overall.get(key), about)
        for key, name, about in found
    ]
    per_image = image_scores(report)
    if not np.isnan(per_image).all():
        mean = number(float(np.nanmean(per_image)))
        shown.append(Score("Mean over images", mean, None, "mean IoU of each image, averaged"))
    ignored = report.ignored / report.pixels if report.pixels else math.nan
    shown.append(Score("Ignored", percent(ignored), None, "of the pixels, by their truth"))
    return shown


@dataclass(frozen=True, slots=True)
class Step:
    """A bar on the way from pixel accuracy to mean IoU.

    Attributes
    ----------
    name : str
    kind : {"accuracy", "imbalance", "recall", "positives", "iou"}
    low, high : float
        Where the bar begins and ends.
    text : str
        Its value.
    about : str
    range : (float, float) or None
        Interval of a score.
    baseline : float or None
        The score of always answering the most frequent class.
    """

    name: str
    kind: str
    low: float
    high: float
    text: str
    about: str
    range: Range | None = None
    baseline: float | None = None


def gap_steps(report: Report, bounds: Bounds) -> list[Step]:
    """PA − mIoU = (PA − mAcc) + (mAcc − mIoU), as bars; empty where a score is undefined."""
    pa, recall, iou = report.pixel_accuracy, report.mean_accuracy, report.mean_iou
    if any(math.isnan(x) for x in (pa, recall, iou)):
        return []
    majority = report.majority
    return [
        Step(
            "Pixel accuracy",
            "accuracy",
            0,
            pa,
            number(pa),
            "every pixel has one vote",
            bounds.overall.get("pixel_accuracy"),
            majority["pixel_accuracy"],
        ),
        _difference("imbalance", "imbalance", pa, recall, "classes vote instead of pixels"),
        Step(
            "Mean accuracy",
            "recall",
            0,
            recall,
            number(recall),
            "mean recall of the classes",
            bounds.overall.get("mean_accuracy"),
        ),
        _difference("false positives", "positives", recall, iou, "charged by IoU only"),
        Step(
            "Mean IoU",
            "iou",
            0,
            iou,
            number(iou),
            "every class has one vote",
            bounds.overall.get("mean_iou"),
            majority["mean_iou"],
        ),
    ]


def _difference(name: str, kind: str, start: float, end: float, about: str) -> Step:
    sign = "−" if end <= start else "+"
    size = f"{abs(start - end):.4f}"
    return Step(
        f"{sign}\N{NO-BREAK SPACE}{name}",
        kind,
        min(start, end),
        max(start, end),
        size if float(size) == 0 else f"{sign}{size}",
        about,
    )


@dataclass(frozen=True, slots=True)
class ClassLine:
    """A class as the page shows it."""

    index: int
    row: ClassRow
    color: str
    range: Range | None
    notes: tuple[str, ...]

    @property
    def gap(self) -> float:
        """Recall minus IoU: what false positives cost the class."""
        return self.row.recall - self.row.iou

    @property
    def share_bar(self) -> float:
        """The share on a square root scale, so that rare classes can be seen."""
        return 0.0 if math.isnan(self.row.share) else self.row.share**0.5


def class_lines(
    report: Report, colors: Sequence[tuple[int, int, int]], bounds: Bounds
) -> list[ClassLine]:
    """All classes in the label set's order."""
    lines = []
    for index, row in enumerate(report.classes):
        notes = [row.status] if row.status else []
        if not report.include[index]:
            notes.append("not in the means")
        if row.name in bounds.unsure:
            notes.append(bounds.unsure[row.name])
        lines.append(
            ClassLine(
                index, row, hex_color(colors[index]), bounds.classes.get(row.name), tuple(notes)
            )
        )
    return lines


def skipped_text(report: Report) -> str:
    """Which classes the mean leaves out, and why."""
    by_reason: dict[str, list[str]] = {}
    for index, why in report.iou_mean.skipped.items():
        by_reason.setdefault(why, []).append(report.class_names[index])
    return "; ".join(
        f"{len(names)} classes ({why})" if len(names) > 8 else f"{', '.join(names)} ({why})"
        for why, names in by_reason.items()
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Images whose score lies in an interval."""

    low: float
    high: float
    images: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """How a score is spread over the images.

    Attributes
    ----------
    bins : tuple of Bin
    most : int
        Images of the fullest bin.
    marks : tuple of (str, str, float)
        Places to be named: what, key, where.
    facts : tuple of (str, str)
    undefined : int
        Images without a score.
    values : tuple of float
        The scores, sorted; empty where there are too many to draw each.
    """

    bins: tuple[Bin, ...]
    most: int
    marks: tuple[tuple[str, str, float], ...]
    facts: tuple[tuple[str, str], ...]
    undefined: int
    values: tuple[float, ...]


def image_scores(report: Report) -> Floats:
    """Mean IoU of each image over the classes in its truth, NaN where it has none."""
    if report.per_image is None:
        return np.zeros(0)
    return image_means(report.per_image, include=report.include)


def distribution(report: Report) -> Distribution | None:
    """The spread of mean IoU over images; None where images were not kept apart."""
    scores = image_scores(report)
    defined = np.sort(scores[~np.isnan(scores)])
    if not defined.size:
        return None
    counts, edges = np.histogram(defined, _BINS, (0.0, 1.0))
    bins = tuple(
        Bin(float(low), float(high), int(n))
        for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
    )
    worst = float(worst_mean(defined, 10))
    facts = (
        ("mean over images", number(float(defined.mean()))),
        ("median", number(float(np.median(defined)))),
        ("worst 10 % of the images, mean", number(worst)),
        ("best image", number(float(defined[-1]))),
        ("images below one half", f"{(defined < 0.5).sum()} ({percent((defined < 0.5).mean())})"),
    )
    marks = (
        ("mean over images", "mean", float(defined.mean())),
        ("data set", "dataset", report.mean_iou),
    )
    return Distribution(
        bins,
        int(counts.max()),
        tuple(mark for mark in marks if not math.isnan(mark[2])),
        facts,
        int(np.isnan(scores).sum()),
        tuple(defined.tolist()) if defined.size <= 400 else (),
    )
