"""A report as a fragment of HTML that takes its colours from the notebook's theme."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from segiou.report.formats import number, percent

if TYPE_CHECKING:
    from segiou.report.report import ClassRow, Report

__all__ = ["render_notebook"]

_CELL = "padding:.15em .8em;text-align:right"
_NAME = "padding:.15em .8em;text-align:left"


def render_notebook(report: Report) -> str:
    """Headline, classes with bars, and the rule."""
    head = "".join(
        f'<th style="{_NAME if name == "class" else _CELL}">{name}</th>'
        for name in ("class", "IoU", "", "Dice", "precision", "recall", "share")
    )
    body = "".join(_row(row) for row in (*report.classes, *report.group_rows))
    title = f"<div><b>{escape(report.title)}</b></div>" if report.title else ""
    return (
        f'<div class="segiou-report">{title}{_headline(report)}'
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{_footer(report)}</div>"
    )


def _headline(report: Report) -> str:
    majority = report.majority
    return (
        f"<div><b>Mean IoU {number(report.mean_iou)}</b> over {report.mean_iou_classes} of "
        f"{len(report.class_names)} classes · pixel accuracy {number(report.pixel_accuracy)} · "
        f"mean accuracy {number(report.mean_accuracy)}</div>"
        f'<div style="opacity:.75">Always answering {escape(majority["class"])}: pixel accuracy '
        f"{number(majority['pixel_accuracy'])}, mean IoU {number(majority['mean_iou'])}</div>"
    )


def _row(row: ClassRow) -> str:
    filled = 0.0 if row.iou != row.iou else 100 * row.iou
    bar = (
        '<div style="width:8em;height:.7em;background:rgba(128,128,128,.2)">'
        f'<div style="width:{filled:.1f}%;height:100%;background:#3b82c4"></div></div>'
    )
    numbers = [number(x) for x in (row.dice, row.precision, row.recall)]
    cells = "".join(f'<td style="{_CELL}">{x}</td>' for x in (*numbers, percent(row.share)))
    return (
        f'<tr title="{escape(row.status)}"><td style="{_NAME}">{escape(row.name)}</td>'
        f'<td style="{_CELL}">{number(row.iou)}</td><td style="{_NAME}">{bar}</td>{cells}</tr>'
    )


def _footer(report: Report) -> str:
    return (
        f'<div style="opacity:.75;font-size:90%">Rule {escape(report.protocol.name)}: '
        f"{escape(report.protocol.rule)}. {report.pairs} pairs, {report.pixels} {report.unit}, "
        f"{report.ignored} ignored.</div>"
    )
