"""A report as a page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._files import write_whole
from segiou.counts import Tally
from segiou.html.report.boundaries import boundaries
from segiou.html.report.bounds import Bounds, bounds_of
from segiou.html.report.colors import IGNORED_COLOR, UNASSIGNED_COLOR, class_colors, hex_color
from segiou.html.report.gallery import Gallery, gallery
from segiou.html.report.heatmap import confusion_rows, heatmap
from segiou.html.report.making import making
from segiou.html.report.masks import Reader
from segiou.html.report.numbers import count, plural
from segiou.html.report.page import assemble
from segiou.html.report.scores import (
    ClassLine,
    class_lines,
    distribution,
    gap_steps,
    scores,
    skipped_text,
)
from segiou.imbalance import explain
from segiou.labels import LabelSet
from segiou.uncertainty import bootstrap

if TYPE_CHECKING:
    from segiou.imbalance import Imbalance
    from segiou.report import Report
    from segiou.run import Run
    from segiou.uncertainty import Intervals

__all__ = ["render_report", "write_html"]

_DUMBBELLS = 40
_CELLS = 12
#: Of fewer images an interval would say nothing.
_FEWEST_IMAGES = 3


def render_report(
    report: Report,
    *,
    run: Run | None = None,
    intervals: Iterable[Intervals] | None = None,
    imbalance: Imbalance | None = None,
    images: str | Path | None = None,
    examples: int = 24,
    seed: int = 0,
    read: Reader | None = None,
) -> str:
    """Render a report as one self-contained HTML page.

    Parameters
    ----------
    report : Report
    run : Run, optional
        The run that the report is of; needed for the gallery and for how to
        make it again.
    intervals : iterable of Intervals, optional
        Bootstrap intervals to be drawn, one entry a metric; by default those
        over images, where they were kept apart. Pass intervals over groups
        where images belong together, and an empty list for none.
    imbalance : Imbalance, optional
        Its sentences explain pixel accuracy against mean IoU; made from the
        report by default.
    images : str or path, optional
        Folder of photographs, matched to the images by name.
    examples : int
        Images in the gallery, at most; 0 for none.
    seed : int
        For the images that are chosen at random.
    read : callable, optional
        Gives the content of a mask file, by its path, where masks lie in an
        archive or at an address.

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
    bounds = bounds_of(_intervals(report) if intervals is None else intervals)
    shown = None
    if run is not None and examples:
        shown = gallery(run, colors, images=images, examples=examples, seed=seed, read=read)
    lines = class_lines(report, colors, bounds)
    context = {
        **_headings(report),
        **_numbers(report, bounds, lines),
        **confusion_context(report),
        **gallery_context(shown, lines),
        **_making(report, run),
        "boundaries": boundaries(report),
        "sentences": _explained(report) if imbalance is None else imbalance.sentences(),
    }
    data = {
        "names": list(report.class_names),
        "confusion": confusion_data(report),
        "gallery": None if shown is None else shown.payload(),
    }
    return assemble("report.html", context, data)


def _intervals(report: Report) -> list[Intervals]:
    """Intervals over images of what the headline and the classes show."""
    counts = report.per_image
    if counts is None or len(counts.tp) < _FEWEST_IMAGES:
        return []
    # The pixel accuracy of overlapping channels is that of yes and no, another one.
    metrics = ("iou", "recall", *(["pixel_accuracy"] if isinstance(report.tally, Tally) else []))
    return [
        bootstrap(
            counts,
            metric,
            class_names=report.class_names,
            include=report.include,
            protocol=report.protocol,
        )
        for metric in metrics
    ]


def _explained(report: Report) -> list[str]:
    if not isinstance(report.tally, Tally):
        return []
    return explain(report).sentences()


def write_html(path: str | Path, report: Report, **options: Any) -> Path:
    """Write the page of a report, whole or not at all.

    Parameters
    ----------
    path : str or path
    report : Report
    **options
        As for :func:`render_report`.
    """
    return write_whole(path, render_report(report, **options))


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
        "scores": scores(report, bounds),
        "steps": gap_steps(report, bounds),
        "skipped": skipped_text(report),
        "lines": lines,
        "class_names": report.class_names,
        "absent": sum(line.row.status == "absent" for line in lines),
        "groups": [(row, members[row.name]) for row in report.group_rows],
        "dumbbells": sorted(kept, key=lambda line: -line.row.share),
        "dumbbells_left": len(drawn) - len(kept),
        "spread": distribution(report),
    }


def confusion_context(report: Report) -> dict[str, Any]:
    """What the section of confusions shows; overlapping channels have none."""
    tally, names = report.tally, report.class_names
    if not isinstance(tally, Tally):
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
        "confusions": confusion_rows(tally, names),
        "matrix_rows": rows,
    }


def confusion_data(report: Report) -> dict[str, Any] | None:
    """What the script of the confusions needs."""
    if not isinstance(report.tally, Tally):
        return None
    unassigned = report.unassigned
    ious = [(row.iou, i) for i, row in enumerate(report.classes) if row.tp + row.fn > 0]
    return {
        "lens": min(ious)[1] if ious else None,
        "matrix": report.matrix.tolist(),
        "unassigned": unassigned.tolist() if unassigned.any() else None,
    }


def gallery_context(shown: Gallery | None, lines: list[Any]) -> dict[str, Any]:
    """What the gallery shows."""
    pictures = [] if shown is None else [e.pictures for e in shown.examples if e.pictures]
    return {
        "gallery": shown,
        "lines": lines,
        "class_colors": [] if shown is None else list(map(hex_color, shown.colors)),
        "ignored_color": hex_color(IGNORED_COLOR),
        "unassigned_color": hex_color(UNASSIGNED_COLOR),
        "has_unassigned": True,
        "shrunk": any(p.width < p.full_width for p in pictures),
    }


def _making(report: Report, run: Run | None) -> dict[str, Any]:
    made = making(report, run)
    return {
        "makings": [
            {
                "title": "",
                "facts": made.facts,
                "skipped": made.skipped,
                "skipped_more": made.skipped_more,
            }
        ],
        "recipes": [
            (title, text)
            for title, text in ((_command_title(report), made.command), ("In Python", made.python))
            if text
        ],
        "toml": made.toml,
    }


def _command_title(report: Report) -> str:
    grouped = report.intervals is not None and report.intervals.unit == "group"
    # A run does not know by which rule its images were grouped.
    return f"On the command line{'; add your --group-by' if grouped else ''}"
