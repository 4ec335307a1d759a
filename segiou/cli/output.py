"""What the command writes: reports, findings, pages, plots, tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from segiou._support.files import Problem, problem_lines, write_whole
from segiou._support.text import csv_text, encodable
from segiou.cli.checks import findings_format, report_format, wants_intervals
from segiou.cli.console import (
    EXIT_DATA,
    EXIT_THRESHOLD,
    harmless,
    note,
    stdout_width,
    wants_color,
    write,
)
from segiou.cli.inputs import open_baseline, resampling
from segiou.cli.thresholds import Outcome, Threshold, not_worse, outcomes, to_junit
from segiou.masks.read import RawMask
from segiou.masks.sources import open_source
from segiou.report.formats import render, to_json, to_markdown
from segiou.report.report import Report
from segiou.runs.run import Run

if TYPE_CHECKING:
    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.comparison import Comparison


def show_run(run: Run, parsed: argparse.Namespace, thresholds: Sequence[Threshold]) -> int:
    """Write the report, the pages and the tables, check the thresholds; gives the exit code."""
    if not parsed.quiet:
        for line in problem_lines(run.skipped):
            note(f"left out: {line}")
    if not run.finished:
        note(f"the run is not finished: {run.provenance['unfinished']}")
    if "partial" in run.provenance:
        note(f"the run is not complete: {run.provenance['partial']}")
    measured = {"pq": run.object_counts, "surface_dice": run.surface_dice}
    bounded = ["iou", *(name for name, counts in measured.items() if counts is not None)]
    report = run.report(
        parsed.protocol,
        intervals=[_intervals(run, parsed, metric) for metric in bounded]
        if wants_intervals(parsed)
        else None,
        worst=parsed.worst or 0,
        worst_by=parsed.worst_by,
    )
    found = outcomes(report, thresholds)
    change = _compared(run, parsed) if parsed.baseline else None
    if change is not None and parsed.fail_if_worse:
        found.append(not_worse(change))
    if report_format(parsed) == "nnunet":
        from segiou.report.nnunet_summary import nnunet_summary

        _write_text(parsed.output, nnunet_summary(run))
    else:
        _write_report(report, parsed, found, change)
    _write_pages(run, report, parsed, change)
    if parsed.per_image:
        _write_text(parsed.per_image, run.to_csv())
    if parsed.junit:
        _write_text(parsed.junit, to_junit(found, run.name))
    failed = [outcome for outcome in found if not outcome.passed]
    for outcome in failed:
        note(f"threshold failed: {outcome.text}")
    if failed:
        return EXIT_THRESHOLD
    return 0 if run.finished else EXIT_DATA


def _compared(run: Run, parsed: argparse.Namespace) -> Comparison:
    """How the run differs from its baseline, on the same images."""
    from segiou.analysis.comparing import compare

    return compare(
        open_baseline(parsed.baseline),
        run,
        protocol=parsed.protocol or run.protocol,
        **resampling(parsed),
        names=("the baseline", "this run"),
    )


def _write_report(
    report: Report, parsed: argparse.Namespace, found: Sequence[Outcome], change: Comparison | None
) -> None:
    kind = report_format(parsed)
    order = {"sort": parsed.sort, "reverse": parsed.reverse}
    color = wants_color() and not parsed.output
    if kind == "table":
        width = 100 if parsed.output else stdout_width()
        content = report.to_text(width=width, color=color, detail=parsed.detail, **order)
        if change is not None:
            from segiou.report.findings_text import render_baseline

            content = f"{content}\n{render_baseline(change, width, color=color)}"
    elif kind == "json":
        also: dict[str, Any] = {}
        if found:
            also["thresholds"] = [outcome.to_dict() for outcome in found]
        if change is not None:
            also["baseline"] = {"run": parsed.baseline, **change.to_dict()}
        content = to_json(report, 2, also)
    elif kind == "markdown":
        rows = report.sorted_classes(parsed.sort, reverse=parsed.reverse)
        said = [(outcome.text, outcome.passed) for outcome in found]
        content = to_markdown(report, rows, outcomes=said, change=change)
    else:
        content = render(report, kind, **order)
    if kind in ("table", "markdown"):
        content = harmless(content, color=color)
    _write_text(parsed.output, content)


def _write_pages(
    run: Run, report: Report, parsed: argparse.Namespace, change: Comparison | None
) -> None:
    """Write the HTML page and the plots, if they are asked for."""
    if parsed.html:
        from segiou.report.report_page import write_html

        _note_images(run, parsed)
        write_html(
            parsed.html,
            report,
            run=run,
            images=parsed.images,
            examples=parsed.examples,
            intervals=_page_intervals(run, report, parsed),
            baseline=change,
            read=_read,
        )
    if parsed.plots:
        from segiou.plots.kinds import save_plots

        save_plots(report, parsed.plots, intervals=report.intervals)


def _page_intervals(run: Run, report: Report, parsed: argparse.Namespace) -> list[Intervals] | None:
    """The intervals that were asked for, of every score that the page draws one for."""
    if report.intervals is None:
        return None
    others = [_intervals(run, parsed, metric) for metric in ("recall", "pixel_accuracy")]
    return [report.intervals, *others]


def _intervals(run: Run, parsed: argparse.Namespace, metric: str = "iou") -> Intervals:
    """Intervals of a run by the options of the command line."""
    return run.intervals(metric, protocol=parsed.protocol, **resampling(parsed))


def write_comparison_pages(
    found: Comparison, runs: Sequence[Run], parsed: argparse.Namespace
) -> None:
    """Write the HTML page of the first pair and the plots, if they are asked for."""
    if parsed.html:
        from segiou.report.comparison_page import write_comparison_html

        _note_images(runs[0], parsed)
        write_comparison_html(
            parsed.html,
            found,
            runs[0],
            runs[1],
            images=parsed.images,
            examples=parsed.examples,
            read=_read,
        )
    if parsed.plots:
        from segiou.plots.kinds import save_plots

        save_plots(found, parsed.plots)


def _note_images(run: Run, parsed: argparse.Namespace) -> None:
    """Say which images have no file where --images says that they are."""
    if parsed.images:
        from segiou.report.pictures import match_images

        for text in match_images(parsed.images, run.ids).sentences():
            note(f"--images: {text}")


def _read(path: str) -> bytes | RawMask:
    """The content of a mask file, also in an archive or at an address."""
    return open_source(path).read(path)[0]


def write_findings(
    data: Callable[[], dict[str, Any]], text: Callable[..., str], parsed: argparse.Namespace
) -> None:
    """Write findings as the output options say: as data, or as text for a width."""
    if findings_format(parsed) == "json":
        content = json.dumps(data(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    else:
        color = wants_color() and not parsed.output
        width = 100 if parsed.output else stdout_width()
        content = harmless(text(width=width, color=color), color=color)
    _write_text(parsed.output, content)


def write_problems(path: str, problems: Iterable[Problem]) -> None:
    """Write all problems as CSV, one a row."""
    rows = ((encodable(problem.where), encodable(problem.text)) for problem in problems)
    _write_text(path, csv_text([("file", "problem"), *rows]))


def _write_text(path: str | None, content: str) -> None:
    """Write to a file; to stdout where there is none, or where it is the file."""
    if path in (None, "/dev/stdout"):
        write(content)
    else:
        write_whole(str(path), content)
