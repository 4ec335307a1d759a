"""The commands beside ``score`` and ``demo``; each loads what it needs when it runs."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from segiou.cli.checks import (
    check_findings,
    check_images,
    check_paths,
    check_report,
    wants_intervals,
)
from segiou.cli.console import harmless, note, progress_bar, write
from segiou.cli.parsers import EXIT_DATA

if TYPE_CHECKING:
    from segiou.runs.run import Run

__all__ = ["compare", "explain", "explore", "inspect", "labelsets", "merge", "report"]


def compare(parsed: argparse.Namespace) -> int:
    """Compare two or more models on the same images."""
    from segiou.analysis.comparing import compare
    from segiou.cli.inputs import groups_argument
    from segiou.cli.output import write_comparison_pages, write_findings

    check_paths(parsed)
    check_findings(parsed)
    runs = _compared_runs(parsed)
    found = compare(
        *runs,
        metric=parsed.metric,
        protocol=parsed.protocol,
        groups=groups_argument(parsed.group_by),
        blocks=parsed.blocks,
        resamples=parsed.resamples,
        seed=parsed.seed,
        level=parsed.level,
        method=parsed.method,
        names=parsed.names.split(",") if parsed.names else None,
    )
    write_comparison_pages(found, runs, parsed)
    write_findings(found.to_dict, lambda width, color: found.to_text(width), parsed)
    return 0


def _compared_runs(parsed: argparse.Namespace) -> list[Run]:
    from segiou.cli.inputs import open_run, score_now

    if len(parsed.models) < 2:
        msg = "compare needs two or more models"
        raise ValueError(msg)
    if parsed.truth is None:
        how = "PRED PRED --truth DIR --labels SET"
        return [open_run(path, parsed, or_folders=how) for path in parsed.models]
    return [score_now(parsed.truth, path, parsed) for path in parsed.models]


def explain(parsed: argparse.Namespace) -> int:
    """Explain the gap between pixel accuracy and mean IoU."""
    from segiou.analysis.imbalance import explain
    from segiou.cli.output import write_findings
    from segiou.report.findings_text import render_imbalance

    check_paths(parsed)
    check_findings(parsed)
    run = _explained_run(parsed)
    found = explain(run, protocol=parsed.protocol)
    steps = run.report(parsed.protocol).next_steps
    write_findings(
        lambda: found.to_dict() | {"next_steps": [step.to_dict() for step in steps]},
        partial(render_imbalance, found, steps=steps),
        parsed,
    )
    return 0


def _explained_run(parsed: argparse.Namespace) -> Run:
    from segiou.cli.inputs import is_run_file, open_run, score_now

    if len(parsed.paths) > 2:
        msg = f"explain takes a run file, or TRUTH and PRED; got {len(parsed.paths)} paths"
        raise ValueError(msg)
    if len(parsed.paths) == 1:
        return open_run(parsed.paths[0], parsed, or_folders="TRUTH PRED --labels SET")
    truth, pred = parsed.paths
    if is_run_file(truth) and is_run_file(pred):
        msg = "explain takes one run file; segiou compare takes two"
        raise ValueError(msg)
    return score_now(truth, pred, parsed)


def explore(parsed: argparse.Namespace) -> int:
    """Write the page that teaches IoU, and open it in a browser."""
    import tempfile
    import webbrowser

    from segiou._support.files import is_device, write_whole
    from segiou.report.explorer import explorer_page

    check_paths(parsed)
    path = Path(parsed.output or Path(tempfile.mkdtemp(prefix="segiou-")) / "explore.html")
    page = write_whole(path, explorer_page()).resolve()
    if is_device(path):
        return 0
    write(harmless(f"{page}\n", color=False))
    if parsed.open and not webbrowser.open(page.as_uri()):
        note("no browser could be opened; open this file in one")
    return 0


def inspect(parsed: argparse.Namespace) -> int:
    """Show what is in the masks of a folder."""
    from segiou.cli.output import write_findings
    from segiou.labels.label_files import load_labels
    from segiou.scoring.inspection import inspect_folder

    check_paths(parsed)
    check_findings(parsed)
    labels = None if parsed.labels is None else load_labels(parsed.labels)
    with progress_bar("reading", quiet=parsed.quiet) as progress:
        found = inspect_folder(
            parsed.folder, labels=labels, workers=parsed.workers, progress=progress
        )
    write_findings(found.to_dict, found.to_text, parsed)
    return EXIT_DATA if found.problems else 0


def labelsets(parsed: argparse.Namespace) -> int:
    """List the presets, or print one set as TOML."""
    from segiou.labels.label_files import labelset_names, load_labels

    if parsed.name:
        write(load_labels(parsed.name).to_toml())
        return 0
    sets = [load_labels(name) for name in labelset_names()]
    width = max(len(labels.name) for labels in sets)
    for labels in sets:
        count = f"{labels.num_classes:>3} classes"
        write(f"{labels.name:<{width}}  {count}  {labels.title}\n")
    write("\nsegiou labelsets NAME prints one as TOML, to edit and give as --labels FILE.toml\n")
    return 0


def merge(parsed: argparse.Namespace) -> int:
    """Join run files into one."""
    from segiou.runs.merging import merge_files
    from segiou.runs.run import Run

    check_paths(parsed)
    merged = Run.open(merge_files(parsed.runs, parsed.output, partial=parsed.partial))
    if not parsed.quiet:
        runs = "1 run" if len(parsed.runs) == 1 else f"{len(parsed.runs)} runs"
        note(f"{len(merged)} images of {runs} are in {parsed.output}")
        if not merged.finished:
            note("one of the runs is not finished, and so this one is not either")
        if "partial" in merged.provenance:
            note(f"it is not complete: {merged.provenance['partial']}")
    return 0


def report(parsed: argparse.Namespace) -> int:
    """Show a run again, from its file alone."""
    from segiou.cli.output import show_run
    from segiou.cli.thresholds import read_thresholds
    from segiou.runs.run import Run

    thresholds = read_thresholds(parsed.fail_under)
    check_paths(parsed)
    if Path(parsed.run_file).expanduser().is_dir():
        msg = f"{parsed.run_file} is a folder, not a run file; to score it: segiou score"
        raise ValueError(msg)
    run = Run.open(parsed.run_file)
    check_report(parsed, thresholds, run.options, boundary=run.boundary_options is not None)
    if wants_intervals(parsed):
        check_images(run.ids, parsed)
    return show_run(run, parsed, thresholds)
