"""Reports to stdout or into files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from segiou._files import write_whole
from segiou.cli.terminal import stdout_width, wants_color, write
from segiou.report import Report
from segiou.report.formats import format_of, render
from segiou.run import Run

__all__ = ["write_findings", "write_pages", "write_report"]


def write_report(report: Report, parsed: argparse.Namespace) -> None:
    """Write a report as the report options say."""
    kind = parsed.format
    if kind is None:
        kind = format_of(Path(parsed.output)) if parsed.output else "table"
    if parsed.output:
        text = render(report, kind, sort=parsed.sort, reverse=parsed.reverse)
        write_whole(parsed.output, text)
    elif kind == "table":
        write(
            report.to_text(
                width=stdout_width(),
                color=wants_color(),
                sort=parsed.sort,
                reverse=parsed.reverse,
            )
        )
    else:
        write(render(report, kind, sort=parsed.sort, reverse=parsed.reverse))


def write_pages(run: Run, report: Report, parsed: argparse.Namespace) -> None:
    """Write the HTML page and the plots, if they are asked for."""
    if parsed.html:
        from segiou.html import write_html

        given = None if report.intervals is None else [report.intervals]
        write_html(
            parsed.html,
            report,
            run=run,
            images=parsed.images,
            examples=parsed.examples,
            intervals=given,
        )
    if parsed.plots:
        from segiou.plots import save_plots

        save_plots(report, parsed.plots, intervals=report.intervals)


def write_findings(
    data: Callable[[], dict[str, Any]], text: Callable[..., str], parsed: argparse.Namespace
) -> None:
    """Write findings as the output options say: as data, or as text for a width."""
    if parsed.format == "json":
        content = json.dumps(data(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    else:
        color = wants_color() and not parsed.output
        content = text(width=100 if parsed.output else stdout_width(), color=color)
    if parsed.output:
        write_whole(parsed.output, content)
    else:
        write(content)
