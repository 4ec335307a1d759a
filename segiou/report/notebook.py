"""Reports and comparisons as fragments of HTML for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from segiou._support.html import MUTED, NAME, section, sentence_list, table
from segiou._support.text import called, p_text, plural, shown, shown_change
from segiou.analysis import comparison_text
from segiou.metrics.overall import pixel_accuracy
from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import ratio
from segiou.report.measured import measured_tables
from segiou.report.wording import (
    accuracy_text,
    cell,
    counts_text,
    difference_cells,
    difference_head,
    in_python,
    in_unit,
    influences,
    range_text,
    share_text,
    significant_text,
    top_steps,
    with_short_names,
    worst_score,
)

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, Difference, PairComparison
    from segiou.report.class_rows import ClassRow
    from segiou.report.report import Report

# Tones that are visible on white and on black.
_BAR = "38,148,128"
_CELL = "66,133,200"
_ABSENT_SHOWN = 8
_MATRIX_SHOWN = 32
_IMAGES_SHOWN = 100


def render_notebook(report: Report) -> str:
    """The verdict, the classes, and collapsed details."""
    title = f"<div><b>{escape(report.title)}</b></div>" if report.title else ""
    classes = plural(len(report.class_names), "class", "classes")
    steps = sentence_list(in_unit(str(s), report.unit) for s in top_steps(report.next_steps))
    majority, protocol = report.majority, report.protocol
    accuracy, iou = _percent(majority["pixel_accuracy"]), _percent(majority["mean_iou"])
    worst_images = ""
    if (worst := report.worst_images) is not None:
        rows = [
            (escape(row["id"]), escape(worst_score(report, row, worst.by))) for row in worst.rows
        ]
        worst_images = section(f"Worst images by {worst.by}", table(("image", worst.by), rows))
    intervals, caution, method = report.intervals_or_default, "", ""
    if intervals is not None and (doubt := intervals.caution()) is not None:
        caution = f"<div>{escape(in_python(f'Caution: {doubt}'))}</div>"
    if report.intervals is not None:
        lines = [*report.intervals.interval_method(), *report.intervals.class_cautions()]
        method = section("Interval method", sentence_list(lines))
    return (
        f'<div class="segiou-report">{title}'
        f"<div><b>{escape(report.verdict)}</b></div>"
        f"<div>{escape(accuracy_text(report))}</div>"
        f'{caution}<div style="{MUTED}">Majority baseline (always '
        f"{escape(called(majority['class']))}): pixel accuracy {accuracy}, mean IoU {iou}</div>"
        f"{section('Costliest errors', steps)}"
        f"{section(classes, _classes(report), shown=True)}"
        f"{_images(report)}{worst_images}{_measured(report)}{_matrix(report)}{method}"
        f'<div style="{MUTED};font-size:90%">Protocol {escape(protocol.name)}: '
        f"{escape(in_unit(protocol.description, report.unit))}. {counts_text(report)}."
        "</div></div>"
    )


def _percent(value: float) -> str:
    return escape(cell(value))


def _classes(report: Report) -> str:
    rows = list(report.classes)
    absent = [row for row in rows if row.status == "absent"]
    left_out = ""
    if len(absent) > _ABSENT_SHOWN:
        rows = [row for row in rows if row.status != "absent"]
        left_out = f'<div style="{MUTED}">{len(absent)} absent classes not shown</div>'
    heads = ["class", "IoU", "", "Dice", "precision", "recall", "share"]
    classes, groups = ([_class_cells(r) for r in part] for part in (rows, report.group_rows))
    if report.intervals is not None:
        heads.append(f"{100 * report.intervals.level:g} % interval (IoU)")
        classes = [
            (*cells, escape(range_text(report.iou_interval(row.name))))
            for cells, row in zip(classes, rows, strict=True)
        ]
        groups = [(*cells, "") for cells in groups]
    return f"{table(heads, classes, groups, left=(0, 2))}{left_out}"


def _images(report: Report) -> str:
    """The images with the lowest means; empty without per-image counts."""
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
        listed += f'<div style="{MUTED}">the {len(rows)} lowest-scoring of {number} images</div>'
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
    """Collapsed tables of the measures."""
    parts = []
    for found in measured_tables(report):
        rows = [[*map(escape, line)] for line in found.rows]
        summary = [[*map(escape, line)] for line in found.summary]
        note = f'<div style="{MUTED}">{escape(found.note)}</div>'
        parts.append(section(found.title, table(found.heads, rows, summary) + note))
    return "".join(parts)


def _matrix(report: Report) -> str:
    """The collapsed confusion matrix in row percentages; empty if it is too large."""
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
        "Confusion matrix (rows: truth; row percentages)",
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
    """Verdict, evidence and caution of every pair, and collapsed details."""
    comparison = with_short_names(comparison)
    pairs = "".join(_pair(comparison, pair) for pair in comparison.pairs)
    return f'<div class="segiou-comparison">{_ranking(comparison)}{pairs}</div>'


def _ranking(found: Comparison) -> str:
    ranking = found.stability
    if ranking is None:
        return ""
    rows = [
        (
            *(f"{model.rank:g}", escape(model.name)),
            escape(shown(model.value, ranking.score_unit)),
            *(_percent(model.best), model.possible_ranks),
        )
        for model in ranking.models
    ]
    heads = ("rank", "model", ranking.value_name, "P(best)", ranking.sets_name)
    return section("Ranking", table(heads, rows) + sentence_list(ranking.sentences()), shown=True)


def _pair(found: Comparison, pair: PairComparison) -> str:
    lead, *others = found.pair_sentences(pair)
    lines = "".join(f"<div>{escape(in_python(line))}</div>" for line in others)
    opening = f'<div style="margin-top:.5em"><b>{escape(lead)}</b></div>{lines}'
    if not pair.images_differing:
        return opening
    unit = found.score_unit
    heads = ("", pair.a, pair.b, difference_head(pair, unit), "interval", "p (Holm)")
    score, *classes = (_difference(found, row) for row in (pair.overall, *pair.classes))
    images = [
        (
            escape(image.id),
            escape(favoured),
            escape(shown_change(image.effect, unit)),
            escape(shown(image.a, unit)),
            escape(shown(image.b, unit)),
        )
        for image, favoured in influences(pair)
    ]
    columns = ("image", "shifts toward", f"effect ({unit or 'points'})", pair.a, pair.b)
    influential = table(columns, images, left=(0, 1)) if images else ""
    reasons = sentence_list(pair.imbalance.sentences() if pair.imbalance.disagree else ())
    method = sentence_list(map(in_python, comparison_text.method(found, pair)))
    title = f"Classes ({significant_text(found, pair)})" if classes else "Score"
    return (
        f"{opening}{section(title, table(heads, [score], classes), shown=len(found.pairs) == 1)}"
        f"{section('Why pixel accuracy disagrees', reasons)}"
        f"{section('Most influential images', influential)}{section('Method', method)}"
    )


def _difference(found: Comparison, row: Difference) -> list[str]:
    """The cells of a row, in bold if the difference is significant."""
    cells = map(escape, (*difference_cells(row, found.score_unit), p_text(row.p_holm)))
    return [f"<b>{cell}</b>" if row.differs(found.level) else cell for cell in cells]
