"""The HTML page of a report."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import write_whole
from segiou.analysis.imbalance import explain
from segiou.analysis.steps import confusion_gains
from segiou.labels.label_set import LabelSet
from segiou.metrics.per_image import image_means, worst_mean
from segiou.metrics.ratio import Floats
from segiou.report.heatmap import confusion_rows, heatmap
from segiou.report.image_table import EXAMPLES, ImageTable, Source, choose, image_table
from segiou.report.page import (
    Bounds,
    Color,
    Range,
    assemble,
    bounds_of,
    class_colors,
    count,
    hex_color,
    plural,
)
from segiou.report.pictures import Reader, match_images
from segiou.report.provenance import PageOptions, making
from segiou.report.report import ClassRow, Report
from segiou.report.wording import (
    cell,
    coefficient,
    measured_tables,
    signed,
    skipped_text,
    top_steps,
    verdict,
)

if TYPE_CHECKING:
    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.comparison import Comparison
    from segiou.analysis.imbalance import Imbalance
    from segiou.runs.run import Run

Ints = NDArray[np.int64]

_BINS = 20
_DUMBBELLS = 40
_CELLS = 12
#: The matrix of more classes is not drawn.
_MATRIX_CLASSES = 1000
#: Images up to which each is drawn in the histogram.
_DRAWN = 400


def render_report(
    report: Report,
    *,
    run: Run | None = None,
    intervals: Iterable[Intervals] | None = None,
    imbalance: Imbalance | None = None,
    baseline: Comparison | None = None,
    images: str | Path | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
    read: Reader | None = None,
    folder: str | Path | None = None,
) -> str:
    """Render a report as one self-contained HTML page, or as the index of a folder.

    Parameters
    ----------
    report : Report
        The report to show.
    run : Run, optional
        The run that the report is of; needed for the images and for how to
        make it again.
    intervals : iterable of Intervals, optional
        Bootstrap intervals to be drawn, one entry a metric; by default those of
        the report, else those over images, where their counts were kept. Pass
        intervals over groups where images belong together, and an empty list for
        none.
    imbalance : Imbalance, optional
        Its sentences explain pixel accuracy against mean IoU; made from the
        report by default.
    baseline : Comparison, optional
        How an earlier run (the first) and this one differ, to be said below the verdict.
    images : str or path, optional
        Folder of images (photographs, slices) that lie under the masks,
        matched by name as :func:`segiou.report.match_images` says.
    examples : int
        Images with pictures in the page, at most; the others are listed without.
    seed : int
        For the images that are chosen at random.
    read : callable, optional
        Gives the content of a mask file, by its path, where masks lie in an
        archive or at an address.
    folder : str or path, optional
        Folder that the page is for. The pictures of all images are written
        there, as files that the page loads when they are seen.

    Returns
    -------
    str
        The page. Its masks are read from the paths that the run holds; where
        they are gone, the page says so.

    Raises
    ------
    FileNotFoundError
        If ``images`` is no folder.
    ValueError
        If ``examples`` is negative.
    OSError
        If ``folder`` cannot be written.

    Examples
    --------
    >>> import segiou
    >>> run = segiou.score([[[0, 1], [1, 1]]], [[[0, 1], [1, 0]]], labels=["road", "car"])
    >>> page = render_report(run.report(), run=run)
    >>> page[:15], "Mean IoU" in page
    ('<!doctype html>', True)
    """
    if examples < 0:
        msg = f"examples must be at least 0, got {examples}"
        raise ValueError(msg)
    labels = LabelSet.from_names(report.class_names) if run is None else run.labels
    colors = class_colors(labels)
    drawn = _intervals(report) if intervals is None else list(intervals)
    bounds = bounds_of(drawn)
    steps = top_steps(report.next_steps)
    table = None if run is None else image_table((run,), ("prediction",))
    first = [id for step in steps for id in step.images]
    chosen = [] if table is None else choose(table, examples, first, seed)
    source = source_of(colors, table, images, read, folder)
    options = page_options(images, examples, folder)
    sentences = _explained(report) if imbalance is None else imbalance.sentences()
    context = {
        **_headings(report),
        **_numbers(report, bounds, _class_lines(report, colors, bounds)),
        **_confusion_context(report),
        **images_context(table, source, chosen),
        **making_context([("", making(report, run, options))]),
        "verdict": verdict(report, next((i for i in drawn if i.metric == "iou"), None)),
        "steps": steps,
        "change": [] if baseline is None else baseline.pair_sentences(baseline.pairs[0])[:2],
        "measured": measured_tables(report),
        **_distance_boxes(report),
        "sentences": [text.replace(" pixels", f" {report.unit}") for text in sentences],
    }
    data = {
        "names": list(report.class_names),
        "confusion": _confusion_data(report),
        "images": None if table is None else table.payload(source, chosen),
    }
    return assemble("report.html", context, data)


def _distance_boxes(report: Report) -> dict[str, Any]:
    """How the distances of each structure are spread over its cases, as parts of the longest."""
    found = report.surface_values() if any(row["found"] for row in report.surfaces) else {}
    of_cases = [(name, *of_label) for name, of_label in found.items() if of_label[0].size]
    if not of_cases:
        return {"boxes": []}
    longest = max(float(values[-1]) for _, values, _ in of_cases) or 1.0
    boxes = []
    for name, values, lost in of_cases:
        low, middle, high = np.percentile(values, [25, 50, 75]).tolist()
        reach = 1.5 * (high - low)
        inside = values[(values >= low - reach) & (values <= high + reach)]
        ends = low, middle, high, float(inside[0]), float(inside[-1])
        beyond = values[(values < inside[0]) | (values > inside[-1])].tolist()
        boxes.append(
            {
                "name": name,
                "ends": [value / longest for value in ends],
                "beyond": [value / longest for value in beyond],
                "text": f"{middle:.2f}",
                "cases": f"{plural(values.size, 'case')}{f', {lost} without' if lost else ''}",
            }
        )
    measure = next((n for n in report.surfaces[0] if n.startswith("hausdorff_")), "hausdorff")
    percentile = measure.removeprefix("hausdorff").removeprefix("_")
    unit = report.surface_plan["unit"] if report.surface_plan else ""
    return {
        "boxes": boxes,
        "boxes_of": f"HD{percentile}",
        "longest": f"{longest:.4g} {unit}".strip(),
    }


def write_html(path: str | Path, report: Report, **options: Any) -> Path:
    """Write the page of a report, whole or not at all.

    Parameters
    ----------
    path : str or path
        A file; or a folder, which exists or whose name ends in a slash, for a
        page ``index.html``, written last, with the pictures of all images in
        files beside it.
    report : Report
        The report to show.
    **options
        As for :func:`render_report`.

    Returns
    -------
    Path
    """
    return write_page(path, partial(render_report, report, **options))


def write_page(path: str | Path, render: Callable[..., str]) -> Path:
    """Write what ``render(folder=…)`` gives: one file, or a folder with its index last."""
    folder = Path(path).expanduser()
    if not str(path).endswith(("/", os.sep)) and not folder.is_dir():
        return write_whole(path, render(folder=None))
    folder.mkdir(parents=True, exist_ok=True)
    return write_whole(folder / "index.html", render(folder=folder))


def _intervals(report: Report) -> list[Intervals]:
    """Those of the report; else over images, of the scores that headline and classes show."""
    found = report.shown_intervals
    if found is None or report.intervals is not None:
        return [] if found is None else [found]
    # The pixel accuracy of overlapping channels is that of yes and no, another one.
    others = ("recall", *(["pixel_accuracy"] if report.has_matrix else []))
    return [found, *map(report.usual_intervals, others)]


def _explained(report: Report) -> list[str]:
    if not report.has_matrix:
        return []
    return explain(report).sentences()


def _headings(report: Report) -> dict[str, Any]:
    # A run is named by the folder of its predictions unless it was named.
    heading = report.title.replace("\\", "/").rstrip("/").rpartition("/")[2] or "Segmentation"
    return {
        "what": "report",
        "page_title": f"{heading}: segmentation scores",
        "heading": heading,
        "subtitle": (
            f"{plural(report.pairs, 'image')}, "
            f"{plural(len(report.class_names), 'class', 'classes')}, "
            f"{count(report.pixels)} {report.unit}"
            f"{f'; {count(report.left_out)} left out' if report.left_out else ''}"
        ),
    }


def _numbers(report: Report, bounds: Bounds, lines: list[ClassLine]) -> dict[str, Any]:
    members = {
        name: ", ".join(report.class_names[i] for i in indices) for name, indices in report.groups
    }
    drawn = [line for line in lines if not np.isnan(line.row.iou)]
    kept = sorted(drawn, key=lambda line: -abs(np.nan_to_num(line.gap)))[:_DUMBBELLS]
    return {
        "report": report,
        "bounds": bounds,
        "scores": _scores(report, bounds),
        "gap": gap_steps(report, bounds),
        "skipped": skipped_text(report),
        "lines": lines,
        "class_names": report.class_names,
        "absent": sum(line.row.status == "absent" for line in lines),
        "groups": [(row, members[row.name]) for row in report.group_rows],
        "dumbbells": sorted(kept, key=lambda line: -line.row.share),
        "dumbbells_left": len(drawn) - len(kept),
        "spread": distribution(report),
    }


def _scores(report: Report, bounds: Bounds) -> list[tuple[str, str, Range | None, str]]:
    """The numbers beside mean IoU and those on the way to it: name, text, interval, what it is."""
    per_image = _image_scores(report)
    over_images = math.nan if np.isnan(per_image).all() else float(np.nanmean(per_image))
    ignored = report.ignored / report.pixels if report.pixels else math.nan
    rows = (
        ("mean_dice", "Mean Dice", report.mean_dice, "mean of 2TP / (2TP + FP + FN)"),
        (
            *("frequency_weighted_iou", "Weighted IoU", report.frequency_weighted_iou),
            f"IoU weighted by truth {report.unit}",
        ),
        ("cohen_kappa", "Cohen’s kappa", report.cohen_kappa, "agreement beyond chance"),
        ("", "Mean over images", over_images, "mean IoU of each image, averaged"),
        ("", "Ignored", ignored, f"of the {report.unit}, by their truth"),
    )
    return [
        (name, (coefficient if "kappa" in key else cell)(value), bounds.overall.get(key), about)
        for key, name, value, about in rows
        if name != "Mean over images" or not math.isnan(value)
    ]


def gap_steps(report: Report, bounds: Bounds) -> list[dict[str, Any]]:
    """PA − mIoU = (PA − mAcc) + (mAcc − mIoU), as bars; empty where a score is undefined."""
    pa, recall, iou = report.pixel_accuracy, report.mean_accuracy, report.mean_iou
    if any(math.isnan(x) for x in (pa, recall, iou)):
        return []

    def bar(name: str, kind: str, ends: tuple[float, float], text: str, key: str) -> dict[str, Any]:
        return {
            **{"name": name, "kind": kind, "low": min(ends), "high": max(ends), "text": text},
            **{"range": bounds.overall.get(key), "baseline": report.majority.get(key)},
        }

    def lost(name: str, kind: str, start: float, end: float) -> dict[str, Any]:
        title = f"{'−' if end <= start else '+'}\N{NO-BREAK SPACE}{name}"
        return bar(title, kind, (start, end), signed(end - start), "")

    bars = [
        bar("Pixel accuracy", "accuracy", (0, pa), cell(pa), "pixel_accuracy"),
        lost("imbalance", "imbalance", pa, recall),
        bar("Mean accuracy", "recall", (0, recall), cell(recall), "mean_accuracy"),
        lost("false positives", "positives", recall, iou),
        bar("Mean IoU", "iou", (0, iou), cell(iou), "mean_iou"),
    ]
    return [{**bar, "about": _ABOUT_BARS[bar["kind"]]} for bar in bars]


_ABOUT_BARS = {
    "accuracy": "every pixel has one vote",
    "imbalance": "classes vote instead of pixels",
    "recall": "mean recall of the classes",
    "positives": "only IoU counts them",
    "iou": "every class has one vote",
}


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


def _class_lines(
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


def _image_scores(report: Report) -> Floats:
    """Mean IoU of each image over the classes in its truth, NaN where it has none."""
    if report.per_image is None:
        return np.zeros(0)
    return image_means(report.per_image, include=report.include)


def distribution(report: Report) -> dict[str, Any] | None:
    """How the mean IoU of images is spread; None where their counts were not kept."""
    scores = _image_scores(report)
    defined = np.sort(scores[~np.isnan(scores)])
    if not defined.size:
        return None
    counts, edges = np.histogram(defined, _BINS, (0.0, 1.0))
    below = defined < 0.5
    facts = (
        ("Mean over images", cell(float(defined.mean()))),
        ("Median", cell(float(np.median(defined)))),
        ("Mean of the worst 10 % of the images", cell(float(worst_mean(defined, 10)))),
        ("Best image", cell(float(defined[-1]))),
        ("Images below 50 %", f"{below.sum()} ({cell(below.mean())})"),
    )
    marks = (
        ("mean over images", "mean", float(defined.mean())),
        ("data set", "dataset", report.mean_iou),
    )
    drawn = [mark for mark in marks if not math.isnan(mark[2])]
    return {
        "bins": bins_of(counts, edges),
        "most": int(counts.max()),
        "marks": drawn,
        "lowest": min(value for _, _, value in drawn),
        "facts": facts,
        "undefined": int(np.isnan(scores).sum()),
        "scores": defined.tolist() if defined.size <= _DRAWN else [],
    }


def bins_of(counts: Ints, edges: Floats) -> tuple[tuple[float, float, int], ...]:
    """From, below, and how many of each bin; the last one holds its upper end."""
    edges[-1] = np.nextafter(edges[-1], np.inf)
    return tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))


def _confusion_context(report: Report) -> dict[str, Any]:
    """What the section of confusions shows; overlapping channels have none."""
    tally, names = report.tally, report.class_names
    if not _draws_matrix(report):
        return {"heat": None, "confusions": [], "matrix_rows": []}
    rows = []
    for index, name in enumerate(names):
        row = [*tally.matrix[index].tolist(), int(tally.unassigned[index])]
        cells = [(label, n) for label, n in zip([*names, "no class"], row, strict=True) if n]
        cells.sort(key=lambda cell: -cell[1])
        rest = sum(n for _, n in cells[_CELLS:])
        more = [(f"{len(cells) - _CELLS} others", rest)] if rest else []
        rows.append((name, sum(row), cells[:_CELLS] + more))
    return {
        "heat": heatmap(tally, names),
        "confusions": confusion_rows(
            tally, names, confusion_gains(tally, report.protocol, report.include)
        ),
        "matrix_rows": rows,
    }


def _draws_matrix(report: Report) -> bool:
    """Whether there is a matrix that a screen can show: its cells grow with the square."""
    return report.has_matrix and len(report.class_names) <= _MATRIX_CLASSES


def _confusion_data(report: Report) -> dict[str, Any] | None:
    """What the script of the confusions needs."""
    if not _draws_matrix(report):
        return None
    unassigned = report.unassigned
    ious = [(row.iou, i) for i, row in enumerate(report.classes) if row.tp + row.fn > 0]
    return {
        "lens": min(ious)[1] if ious else None,
        "matrix": report.matrix.tolist(),
        "unassigned": unassigned.tolist() if unassigned.any() else None,
    }


def source_of(
    colors: tuple[Color, ...],
    table: ImageTable | None,
    images: str | Path | None,
    read: Reader | None,
    folder: str | Path | None,
) -> Source:
    """Where the pictures of a page come from, and where they go."""
    match = None
    if table is not None and images is not None:
        match = match_images(images, table.runs[0].ids)
    return Source(colors, match, read, None if folder is None else Path(folder))


def page_options(
    images: str | Path | None, examples: int, folder: str | Path | None
) -> PageOptions:
    """What a page was asked for."""
    place = {} if folder is None else {"path": f"{Path(folder)}/"}
    return PageOptions(str(images or ""), examples, **place)


def images_context(
    table: ImageTable | None, source: Source, examples: Sequence[int]
) -> dict[str, Any]:
    """What the table of images shows."""
    notes: list[str] = [] if source.match is None else source.match.sentences()
    if table is not None:
        listed = plural(len(table.ids), "image")
        if table.left:
            which = "worst" if len(table.runs) == 1 else "most different"
            notes.append(f"The {listed} that are {which} are listed, {count(table.left)} are not.")
        if table.cut:
            notes.append(
                f"Of each image the page holds the {table.kept} largest pairs of classes; smaller "
                "ones do not lead to it."
            )
        if source.folder is None and len(examples) < len(table.ids):
            notes.append(
                f"This file holds the pictures of {len(examples)} of {listed}. A folder holds "
                "all: --html DIR/, or write_html('DIR/', …)."
            )
    return {"table": table, "notes": notes, "linked": table is not None}


def making_context(makings: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What the section on how it was made shows, of each title."""
    return {
        "makings": makings,
        "recipes": [
            (f"{title}, {how}" if title else f"{how[:1].upper()}{how[1:]}", text)
            for title, made in makings
            for how, text in made["recipes"]
        ],
        "toml": makings[0][1]["toml"],
    }
