"""Command output: reports, findings, pages, plots and tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from segiou._support.document import GAP, Part, Section
from segiou._support.files import Problem, problem_lines, write_whole
from segiou._support.renderers import RENDERERS, rendered
from segiou._support.text import csv_of, csv_text, encodable, plural
from segiou.cli import console, inputs
from segiou.cli.thresholds import Outcome, not_worse, outcomes, to_junit
from segiou.masks.read import RawMask
from segiou.masks.sources import Source, open_source
from segiou.report.formats import nnunet_summary, render, to_json
from segiou.report.report import Report
from segiou.runs.run import Run

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison
    from segiou.analysis.slice_results import Slices


#: Columns of the tables that have slices below them.
_OF_GAPS = {"p": "gap_p", "p_holm": "gap_p_holm"}
_IN_REPORT = {"score": "iou", "low": "iou_low", "high": "iou_high", **_OF_GAPS}


def show_run(run: Run, parsed: argparse.Namespace) -> int:
    """Write the report, pages and tables, and check thresholds; returns the exit code."""
    if run.skipped and not parsed.quiet:
        console.note("\n  ".join(["skipped:", *problem_lines(run.skipped)]))
    inputs.note_state(run, part=getattr(parsed, "shard", None), quiet=parsed.quiet)
    intervals = None
    if inputs.wants_intervals(parsed):
        bounded = ["iou", "recall", "pixel_accuracy", *run.quick_scores]
        how = {"protocol": parsed.protocol, **inputs.resampling(parsed)}
        intervals = [run.intervals(metric, **how) for metric in bounded]
    report = run.report(
        parsed.protocol, intervals=intervals, worst=parsed.worst or 0, worst_by=parsed.worst_by
    )
    found = outcomes(
        run,
        report,
        inputs.thresholds_of(parsed, run.plans),
        confident=parsed.confident,
        groups=inputs.resampling(parsed).get("groups"),
    )
    change = sliced = None
    if parsed.slices:
        from segiou.cli.slice_thresholds import not_worse_slices, slice_outcomes

        sliced = slices_of([run], parsed)
        found += slice_outcomes(run, inputs.thresholds_of(parsed, run.plans), parsed)
        if parsed.fail_if_worse_slice is not None:
            found += not_worse_slices(inputs.open_baseline(parsed), run, parsed)
    if parsed.baseline:
        from segiou.analysis.comparing import compare
        from segiou.analysis.comparison_text import BASELINE

        both = inputs.open_baseline(parsed), run
        protocol = parsed.protocol or run.protocol
        change = compare(*both, protocol=protocol, **inputs.resampling(parsed), names=BASELINE)
        if parsed.fail_if_worse is not None:
            margin = float(parsed.fail_if_worse)
            found.append(not_worse(change, margin, confident=parsed.confident))
    inputs.note_undrawn(parsed, [*(intervals or ()), *([change] if change else [])])
    write_text(parsed.output, _rendered(run, report, parsed, found, change, sliced))
    _write_pages(run, report, parsed, change, sliced, found)
    if parsed.per_image:
        write_text(parsed.per_image, run.to_csv(protocol=report.protocol))
    if parsed.per_case:
        write_text(parsed.per_case, run.to_csv(long=True, protocol=report.protocol))
    if parsed.junit:
        write_text(parsed.junit, to_junit(found, run.name))
    failed = [outcome for outcome in found if not outcome.passed]
    for outcome in found:
        if not outcome.passed or outcome.state == "undecided":
            console.note(f"threshold {_result(outcome)}: {outcome.words}")
    if failed:
        return console.EXIT_THRESHOLD
    return 0 if run.finished else console.EXIT_DATA


def _result(outcome: Outcome) -> str:
    """The result of a threshold: of its value, or with bounds of its state."""
    if outcome.confident:
        return outcome.state
    return "passed" if outcome.passed else "failed"


def _rendered(
    run: Run,
    report: Report,
    parsed: argparse.Namespace,
    found: Sequence[Outcome],
    change: Comparison | None,
    sliced: Slices | None,
) -> str:
    """The report in the requested format, with thresholds and baseline."""
    kind = inputs.report_format(parsed)
    order = {"sort": parsed.sort, "reverse": parsed.reverse}
    if kind == "nnunet":
        return nnunet_summary(run)
    if kind == "json":
        also: dict[str, Any] = {
            "problems": [{"file": encodable(p.where), "problem": p.text} for p in run.skipped]
        }
        if found:
            also["thresholds"] = [outcome.to_dict() for outcome in found]
        if change is not None:
            also["baseline"] = {"run": parsed.baseline, **change.to_dict()}
        if sliced is not None:
            also["slices"] = sliced.to_dict()
        return to_json(report, 2, also)
    outcomes = _in_words(found)
    if kind not in RENDERERS:
        rows = _slice_rows(sliced, _IN_REPORT)
        page: dict[str, Any] = {"baseline": change, "slices": filter(None, [sliced])}
        page |= {"columns": parsed.columns, "outcomes": outcomes}
        return render(report, kind, **order, rows=rows, **page)
    more = {"columns": parsed.columns, "detail": parsed.detail, "outcomes": outcomes}
    parts = report._parts(**order, **more, change=change, means=kind == "latex")
    return in_format([*parts, *slices_section(sliced)], kind, parsed)


def _in_words(found: Sequence[Outcome]) -> list[tuple[str, bool]]:
    """Thresholds in words, and whether they are passed."""
    return [(outcome.words, outcome.passed) for outcome in found]


def slices_of(
    runs: Sequence[Run],
    parsed: argparse.Namespace,
    metric: str = "iou",
    names: tuple[str, ...] = (),
) -> Slices:
    """Slices by ``--slices``, of runs with names if these are not their own."""
    from segiou.analysis.slices import slices

    how = inputs.slices_options(parsed, parsed.slices)
    found = slices(*runs, metric=metric, level=parsed.level or 0.95, **how)
    return replace(found, names=names) if names else found


def csv_of_comparison(found: Comparison, sliced: Slices | None) -> str:
    """A comparison, and slices of two of its models, as CSV."""
    pair = sliced.names if sliced else ()
    names = {f"score:{name}": key for name, key in zip(pair, "ab", strict=False)}
    below = _slice_rows(sliced, {**names, "score": "delta", **_OF_GAPS})
    models = dict(zip(("model_a", "model_b"), pair, strict=False))
    return csv_of([*found.rows(), *(models | row for row in below)])


def _slice_rows(found: Slices | None, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Slices as rows below others, whose columns have other names."""
    for one, row in zip(found or (), found.rows() if found else (), strict=True):
        yield {"name": one.name} | {names.get(key, key): value for key, value in row.items()}


def _page_slices(
    sliced: Slices | None, runs: Sequence[Run], parsed: argparse.Namespace
) -> list[Slices]:
    """Slices by several scores: those of pixels, and one of each measure."""
    if sliced is None:
        return []
    scores = [one for plan in runs[0].plans for one in [*plan.scores.values()][:1]]
    # Differences of medians have no slices.
    measured = [one.name for one in scores if len(runs) < 2 or one.median_of is None]
    others = [one for one in ("iou", "dice", "pixel_accuracy", *measured) if one != sliced.metric]
    return [sliced, *(slices_of(runs, parsed, one, sliced.names) for one in others)]


def slices_section(found: Slices | None) -> list[Part]:
    """Slices below other findings."""
    return [] if found is None else [GAP, Section("Slices", [*found._parts()], shown=True)]


def _write_pages(
    run: Run,
    report: Report,
    parsed: argparse.Namespace,
    change: Comparison | None,
    sliced: Slices | None,
    found: Sequence[Outcome],
) -> None:
    """Write the HTML page and the plots, if requested."""
    if parsed.html:
        from segiou.report.report_page import write_html

        options = {**_page_options(run, parsed), "columns": parsed.columns}
        options["outcomes"] = _in_words(found)
        options["slices"] = _page_slices(sliced, [run], parsed)
        write_html(parsed.html, report, run=run, baseline=change, **options)
    if parsed.plots:
        from segiou.plots.kinds import save_plots

        save_plots(report, parsed.plots, intervals=report.intervals)
    if parsed.errors:
        from segiou.report.error_pictures import save_errors

        number, of = parsed.worst or 10, parsed.errors_of or ""
        how = {"images": parsed.images, "read": _page_reader(parsed)}
        save_errors(parsed.errors, run, number=number, by=parsed.worst_by, of=of, **how)


def write_comparison_pages(
    found: Comparison, runs: Sequence[Run], parsed: argparse.Namespace, sliced: Slices | None
) -> None:
    """Write the HTML page of the two best models and the plots, if requested."""
    if parsed.html:
        from segiou.report.comparison_page import write_comparison_html

        pair = found.pairs.index(found.best_pair)
        shown = [runs[found.names.index(name)] for name in (found.best_pair.a, found.best_pair.b)]
        options = _page_options(runs[0], parsed) | {"pair": pair}
        options["slices"] = _page_slices(sliced, shown, parsed)
        write_comparison_html(parsed.html, found, *shown, **options)
    if parsed.plots:
        from segiou.plots.kinds import save_plots

        save_plots(found, parsed.plots)


def _page_options(run: Run, parsed: argparse.Namespace) -> dict[str, Any]:
    """Options for images in pages; reports which images have a file in ``--images``."""
    if parsed.images and not parsed.quiet:
        from segiou.report.pictures import match_images

        match = match_images(parsed.images, run.ids)
        found = [f"found {len(match.files)} of {plural(len(run), 'image')} in {parsed.images}"]
        console.note("--images: " + "\n".join(match.sentences() or found))
    return {
        "images": parsed.images,
        "examples": parsed.examples,
        "read": _page_reader(parsed),
        "command": inputs.command_of(parsed),
    }


def _page_reader(parsed: argparse.Namespace) -> Callable[[str], bytes | RawMask]:
    """The reader of the masks of pages."""
    # Paths in runs have no passwords, so remote files are read from the places given.
    given = [getattr(parsed, name, None) or [] for name in ("truth", "pred", "model")]
    places = [place for one in given for place in ([one] if isinstance(one, str) else one)]
    remote = [open_source(place) for place in places if "://" in place]
    return partial(_read, remote)


def _read(remote: Sequence[Source], path: str) -> bytes | RawMask:
    """The content of a mask file, which may be in an archive or remote."""
    places = (place for place in remote if path.startswith(f"{place.root}/"))
    return (next(places, None) or open_source(path)).read(path)[0]


def write_findings(
    data: Callable[[], dict[str, Any]],
    parts: Iterable[Part],
    parsed: argparse.Namespace,
    table: Callable[[], str] | None = None,
) -> None:
    """Write findings as JSON, CSV (``table``), Markdown, LaTeX or text, depending on options."""
    kind = inputs.findings_format(parsed)
    if kind == "csv" and table is not None:
        write_text(parsed.output, table())
    else:
        found = as_json(data()) if kind == "json" else in_format(parts, kind, parsed)
        write_text(parsed.output, found)


def in_format(parts: Iterable[Part], kind: str, parsed: argparse.Namespace) -> str:
    """Parts in a format of documents; text for a terminal has its width and colours."""
    own: dict[str, Any] = {"transposed": parsed.transposed}
    if not parsed.output:
        own |= {"width": console.stdout_width(), "color": console.wants_color()}
    return rendered(parts, kind, **own)


def as_json(data: dict[str, Any]) -> str:
    """Findings as JSON."""
    return json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_problems(path: str, problems: Iterable[Problem]) -> None:
    """Write all problems as CSV, one per row."""
    rows = ((encodable(problem.where), encodable(problem.text)) for problem in problems)
    write_text(path, csv_text([("file", "problem"), *rows]))


def write_text(path: str | None, content: str) -> None:
    """Write to a file, or to stdout if there is none."""
    if path in (None, "/dev/stdout"):
        console.write(content)
    else:
        write_whole(str(path), content)
