"""Reports and comparisons as fragments of HTML for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from segiou._support.html import LINE, MUTED, NAME, sentence_list, table
from segiou._support.text import called, p_text, plural
from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import ratio
from segiou.report.wording import (
    cell,
    interval_text,
    measured_tables,
    pairs_text,
    range_text,
    score_text,
    signed,
    with_short_names,
)

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, PairComparison
    from segiou.report.report import ClassRow, Report

# Middling tones, which show on white and on black.
_RIGHT = "38,148,128"
_WRONG = "214,122,36"
_ABSENT_SHOWN = 8
_MATRIX_SHOWN = 32


def render_notebook(report: Report) -> str:
    """Headline, classes with bars, the confusion matrix to be unfolded, and the protocol."""
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
    title = f"<div><b>{escape(report.title)}</b></div>" if report.title else ""
    return (
        f'<div class="segiou-report">{title}{_headline(report)}'
        f"{table(heads, classes, groups, left=(0, 2))}{left_out}{_worst_images(report)}"
        f"{_measured(report)}{_matrix(report)}{_footer(report)}</div>"
    )


def _percent(value: float) -> str:
    return escape(cell(value))


def _headline(report: Report) -> str:
    majority = report.majority
    accuracy, iou = _percent(majority["pixel_accuracy"]), _percent(majority["mean_iou"])
    return (
        f"<div><b>Mean IoU {_percent(report.mean_iou)}</b> over {report.mean_iou_classes} of "
        f"{plural(len(report.class_names), 'class', 'classes')} · "
        f"pixel accuracy {_percent(report.pixel_accuracy)} · "
        f"mean accuracy {_percent(report.mean_accuracy)}</div>{_interval(report)}"
        f'<div style="{MUTED}">Majority baseline, {escape(called(majority["class"]))} everywhere: '
        f"pixel accuracy {accuracy}, mean IoU {iou}{_images(report)}</div>"
    )


def _interval(report: Report) -> str:
    if report.intervals is None:
        return ""
    cautions = sentence_list(report.intervals.cautions()) if report.intervals.cautions() else ""
    return f"<div>{escape(interval_text(report))}</div>{cautions}"


def _worst_images(report: Report) -> str:
    found = report.worst_images
    if found is None:
        return ""
    rows = [(escape(row["id"]), escape(score_text(row[found.by]))) for row in found.rows]
    return table(("worst images", found.by), rows)


def _images(report: Report) -> str:
    if report.per_image is None:
        return ""
    scores = image_means(report.per_image, include=report.include)
    defined = scores[~np.isnan(scores)]
    if not defined.size:
        return ""
    return (
        f". Mean IoU of single images: {_percent(float(defined.min()))} to "
        f"{_percent(float(defined.max()))}, median {_percent(float(np.median(defined)))}"
    )


def _class_cells(row: ClassRow) -> tuple[str, ...]:
    note = f' <span style="{MUTED}">{escape(row.status)}</span>' if row.status else ""
    numbers = (_percent(x) for x in (row.dice, row.precision, row.recall))
    return (
        f"{escape(row.name)}{note}",
        f"<b>{_percent(row.iou)}</b>",
        _bar(row.iou),
        *numbers,
        _percent(row.share),
    )


def _measured(report: Report) -> str:
    """What was measured at boundaries and of objects, folded."""
    parts = []
    for found in measured_tables(report):
        body = [[escape(text) for text in line] for line in (*found.rows, *found.summary)]
        parts.append(
            f'<details style="margin-top:.5em"><summary>{found.title}</summary>'
            f"{table([*map(escape, found.heads)], body, left=(0,))}"
            f'<div style="{MUTED}">{escape(found.note)}</div></details>'
        )
    return "".join(parts)


def _bar(value: float) -> str:
    filled = 0.0 if math.isnan(value) else 100 * value
    return (
        '<div style="width:8em;height:.7em;background:rgba(128,128,128,.2)">'
        f'<div style="width:{filled:.1f}%;height:100%;background:rgb({_RIGHT})"></div></div>'
    )


def _matrix(report: Report) -> str:
    """The confusion matrix as shares of the truth, folded; nothing where it is too large."""
    if len(report.class_names) > _MATRIX_SHOWN or not report.matrix.size:
        return ""
    truth = report.matrix.sum(1) + report.unassigned
    shares = np.nan_to_num(ratio(report.matrix, truth[:, None]))
    names = [escape(name) for name in report.class_names]
    upright = 'style="writing-mode:vertical-rl;transform:rotate(180deg);text-align:left"'
    heads = "".join(f"<th><span {upright}>{name}</span></th>" for name in names)
    rows = "".join(
        f'<tr><th style="{NAME}">{name}</th>'
        + "".join(_share(share, right=t == p) for p, share in enumerate(row))
        + "</tr>"
        for t, (name, row) in enumerate(zip(names, shares.tolist(), strict=True))
    )
    return (
        f'<details style="margin-top:.5em"><summary>Confusion matrix: rows are truth, per cent '
        'of the row</summary><div style="overflow:auto"><table style="border-collapse:collapse">'
        f"<thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _share(share: float, *, right: bool) -> str:
    text = "" if share == 0 else "<1" if share < 0.005 else f"{100 * share:.0f}"
    color = f"rgba({_RIGHT if right else _WRONG},{0.85 * math.sqrt(share):.2f})"
    return (
        f'<td style="text-align:right;padding:.1em .4em;min-width:2.2em;background:{color}">'
        f"{escape(text)}</td>"
    )


def _footer(report: Report) -> str:
    return (
        f'<div style="{MUTED};font-size:90%">Protocol {escape(report.protocol.name)}: '
        f"{escape(report.protocol.description)}. {pairs_text(report)}, "
        f"{report.pixels} {report.unit}, {report.ignored} ignored.</div>"
    )


def render_comparison_notebook(comparison: Comparison) -> str:
    """What the comparison says, and a table of every pair of models."""
    comparison = with_short_names(comparison)
    said = sentence_list(comparison.sentences())
    pairs = "".join(_pair(comparison, pair) for pair in comparison.pairs)
    return f'<div class="segiou-comparison">{said}{pairs}</div>'


def _pair(comparison: Comparison, pair: PairComparison) -> str:
    heads = ("", pair.a, pair.b, "difference, points", "interval", "p, adjusted")
    rows = []
    for place, row in enumerate((pair.overall, *pair.classes)):
        sure = row.differs(comparison.level)
        cells = (
            escape(row.name),
            _percent(row.a),
            _percent(row.b),
            signed(row.delta),
            "–" if math.isnan(row.low) else f"{signed(row.low)} to {signed(row.high)}",
            escape(p_text(row.p_holm)),
        )
        # In bold: the score itself, and the classes that differ.
        rows.append([f"<b>{cell}</b>" if sure or place == 0 else cell for cell in cells])
    return f'<div style="{LINE};margin-top:.5em">{table(heads, rows, left=(0,))}</div>'
