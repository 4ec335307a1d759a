"""Reports and comparisons as fragments of HTML for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from segiou._support.html import MUTED, NAME, section, sentence_list, table
from segiou._support.text import called, p_text, plural, signed_points
from segiou.metrics.overall import pixel_accuracy
from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import ratio
from segiou.report.measured import measured_tables
from segiou.report.wording import (
    accuracy_text,
    cell,
    difference_cells,
    in_unit,
    influences,
    pairs_text,
    range_text,
    score_text,
    share_text,
    top_steps,
    with_short_names,
)

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, Difference, PairComparison
    from segiou.report.report import ClassRow, Report

# Middling tones, which show on white and on black.
_BAR = "38,148,128"
_CELL = "66,133,200"
_ABSENT_SHOWN = 8
_MATRIX_SHOWN = 32
_IMAGES_SHOWN = 100


def render_notebook(report: Report) -> str:
    """What counts most, the classes, and all else folded."""
    title = f"<div><b>{escape(report.title)}</b></div>" if report.title else ""
    classes = plural(len(report.class_names), "class", "classes")
    steps = sentence_list(in_unit(str(s), report.unit) for s in top_steps(report.next_steps))
    majority, protocol = report.majority, report.protocol
    accuracy, iou = _percent(majority["pixel_accuracy"]), _percent(majority["mean_iou"])
    worst_images = ""
    if (worst := report.worst_images) is not None:
        rows = [(escape(row["id"]), escape(score_text(row[worst.by]))) for row in worst.rows]
        worst_images = section(f"Worst images by {worst.by}", table(("image", worst.by), rows))
    cautions = sentence_list(report.intervals.cautions() if report.intervals is not None else ())
    return (
        f'<div class="segiou-report">{title}'
        f"<div><b>{escape(report.verdict)}</b></div>"
        f"<div>{escape(accuracy_text(report))}</div>"
        f'<div style="{MUTED}">Majority baseline, a model that says '
        f"{escape(called(majority['class']))} everywhere: "
        f"pixel accuracy {accuracy}, mean IoU {iou}</div>"
        f"{section('How far the interval can be relied on', cautions)}"
        f"{section('Next steps, by the points of mean IoU at stake', steps)}"
        f"{section(classes, _classes(report), shown=True)}"
        f"{_images(report)}{worst_images}{_measured(report)}{_matrix(report)}"
        f'<div style="{MUTED};font-size:90%">Protocol {escape(protocol.name)}: '
        f"{escape(in_unit(protocol.description, report.unit))}. {pairs_text(report)}, "
        f"{report.pixels} {report.unit}, {report.ignored} ignored.</div></div>"
    )


def _percent(value: float) -> str:
    return escape(cell(value))


def _classes(report: Report) -> str:
    rows = list(report.classes)
    absent = [row for row in rows if row.status == "absent"]
    left_out = ""
    if len(absent) > _ABSENT_SHOWN:
        rows = [row for row in rows if row.status != "absent"]
        left_out = f'<div style="{MUTED}">and {len(absent)} classes that do not occur</div>'
    heads = ["class", "IoU", "", "Dice", "precision", "recall", "share"]
    classes, groups = ([_class_cells(r) for r in part] for part in (rows, report.group_rows))
    if report.intervals is not None:
        heads.append(f"{100 * report.intervals.level:g} % interval of IoU")
        classes = [
            (*cells, escape(range_text(report.interval_of(row.name))))
            for cells, row in zip(classes, rows, strict=True)
        ]
        groups = [(*cells, "") for cells in groups]
    return f"{table(heads, classes, groups, left=(0, 2))}{left_out}"


def _images(report: Report) -> str:
    """The images with the lowest means; nothing where their counts were not kept."""
    if report.per_image is None or not report.ids:
        return ""
    scores = image_means(report.per_image, include=report.include)
    accuracies = pixel_accuracy(report.per_image)
    defined = scores[~np.isnan(scores)]
    if not defined.size:
        return ""
    lowest = np.argsort(scores, kind="stable")[:_IMAGES_SHOWN].tolist()
    rows = [
        (escape(report.ids[i]), f"<b>{_percent(scores[i])}</b>", _percent(accuracies[i]))
        for i in lowest
    ]
    number = len(scores)
    title = (
        f"{plural(number, 'image')}: mean IoU from {cell(float(defined.min()))} to "
        f"{cell(float(defined.max()))}, median {cell(float(np.median(defined)))}"
    )
    listed = table(("image", "mean IoU", "pixel accuracy"), rows)
    if len(rows) < number:
        listed += f'<div style="{MUTED}">the {len(rows)} lowest of {number} images</div>'
    return section(title, listed)


def _class_cells(row: ClassRow) -> tuple[str, ...]:
    note = f' <span style="{MUTED}">{escape(row.status)}</span>' if row.status else ""
    filled = 0.0 if math.isnan(row.iou) else 100 * row.iou
    bar = (
        '<div style="width:8em;height:.7em;background:rgba(128,128,128,.2)">'
        f'<div style="width:{filled:.1f}%;height:100%;background:rgb({_BAR})"></div></div>'
    )
    numbers = map(_percent, (row.dice, row.precision, row.recall, row.share))
    return f"{escape(row.name)}{note}", f"<b>{_percent(row.iou)}</b>", bar, *numbers


def _measured(report: Report) -> str:
    """What was measured at boundaries, of surfaces and of objects, folded."""
    parts = []
    for found in measured_tables(report):
        rows = [[*map(escape, line)] for line in found.rows]
        summary = [[*map(escape, line)] for line in found.summary]
        note = f'<div style="{MUTED}">{escape(found.note)}</div>'
        parts.append(section(found.title, table(found.heads, rows, summary) + note))
    return "".join(parts)


def _matrix(report: Report) -> str:
    """The confusion matrix as shares of the truth, folded; nothing where it is too large."""
    if len(report.class_names) > _MATRIX_SHOWN or not report.has_matrix:
        return ""
    truth = report.matrix.sum(1) + report.unassigned
    shares = np.nan_to_num(ratio(report.matrix, truth[:, None]))
    names = [escape(name) for name in report.class_names]
    upright = 'style="writing-mode:vertical-rl;transform:rotate(180deg);text-align:left"'
    heads = "".join(f"<th><span {upright}>{name}</span></th>" for name in names)
    rows = "".join(
        f'<tr><th style="{NAME}">{name}</th>' + "".join(map(_share, row)) + "</tr>"
        for name, row in zip(names, shares.tolist(), strict=True)
    )
    return section(
        "Confusion matrix: rows are truth, per cent of the row",
        '<div style="overflow:auto"><table style="border-collapse:collapse">'
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div>",
    )


def _share(share: float) -> str:
    text = share_text(share) if share else ""
    return (
        '<td style="text-align:right;padding:.1em .4em;min-width:2.2em;'
        f'background:rgba({_CELL},{0.6 * math.sqrt(share):.2f})">{escape(text)}</td>'
    )


def render_comparison_notebook(comparison: Comparison) -> str:
    """Who is ahead, the classes of every pair of models, and all else folded."""
    comparison = with_short_names(comparison)
    pairs = "".join(_pair(comparison, pair) for pair in comparison.pairs)
    closing = sentence_list(comparison.closing_sentences())
    ranking = "".join(f"<div>{escape(said)}</div>" for said in comparison.ranking_sentences())
    return (
        f'<div class="segiou-comparison">{ranking}{pairs}'
        f"{section('How far all of it can be relied on', closing)}</div>"
    )


def _pair(comparison: Comparison, pair: PairComparison) -> str:
    lead, *others = comparison.pair_sentences(pair)
    verdict = f"<div>{escape(others.pop(0))}</div>" if others else ""
    heads = ("", pair.a, pair.b, "difference, points", "interval", "p, adjusted")
    score, *classes = (_difference(comparison, row) for row in (pair.overall, *pair.classes))
    rows = table(heads, [score], classes)
    images = [
        (escape(m.id), escape(towards), signed_points(m.effect), _percent(m.a), _percent(m.b))
        for m, towards in influences(pair)
    ]
    moved = ("image", "moves it towards", "by points", pair.a, pair.b)
    moving = table(moved, images, left=(0, 1)) if images else ""
    return (
        f'<div style="margin-top:.5em"><b>{escape(lead)}</b></div>{verdict}'
        f"{section('More in words', sentence_list(others))}"
        f"{section('The classes', rows, shown=len(comparison.pairs) == 1)}"
        f"{section('Images that matter most', moving)}"
    )


def _difference(comparison: Comparison, row: Difference) -> list[str]:
    """The cells of a row, in bold where the two differ."""
    cells = map(escape, (*difference_cells(row), p_text(row.p_holm)))
    return [f"<b>{cell}</b>" if row.differs(comparison.level) else cell for cell in cells]
