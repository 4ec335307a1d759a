"""Command output: reports, findings, pages, plots and tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.csv_text import csv_of, csv_text
from segiou._support.files import Problem, problem_lines, write_whole
from segiou._support.text import encodable, nouns, plural
from segiou.cli import console, inputs
from segiou.cli.junit import junit_of_results
from segiou.cli.thresholds import ThresholdResult, not_worse, threshold_results
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Part, Section
from segiou.document.renderers import rendered
from segiou.masks.raw_mask import RawMask
from segiou.masks.sources.folders import Source
from segiou.masks.sources.opening import open_source
from segiou.metrics.pixel_scores import OF_CLASSES
from segiou.report.class_table import class_columns
from segiou.report.formats import nnunet_summary, to_csv, to_json
from segiou.report.report import Report
from segiou.runs.run import Run

if TYPE_CHECKING:
    from segiou.analysis.comparison.result import Comparison
    from segiou.analysis.slices.result import Slices
    from segiou.report.pages.photos import ImageMatch


#: Columns of the tables that have slices below them.
_OF_GAPS = {"p": "gap_p", "p_holm": "gap_p_holm"}
_IN_REPORT = {"score": "iou", "low": "iou_low", "high": "iou_high", **_OF_GAPS}


class _Scored(NamedTuple):
    """A run and the results that a command reports."""

    run: Run
    report: Report
    results: list[ThresholdResult]
    change: Comparison | None
    slices: Slices | None


def show_run(run: Run, parsed: argparse.Namespace) -> int:
    """Write the report, pages and tables, and check thresholds; returns the exit code."""
    if run.skipped and not parsed.quiet:
        console.note("\n  ".join(["skipped:", *problem_lines(run.skipped)]))
    inputs.note_state(run, part=getattr(parsed, "shard", None), quiet=parsed.quiet)
    scored = _scored(run, parsed)
    resampled = [scored.report.intervals, *scored.report.more_intervals, scored.change]
    inputs.note_undrawn(parsed, [finding for finding in resampled if finding is not None])
    write_text(parsed.output, _render(scored, parsed))
    _write_pages(scored, parsed)
    if parsed.per_image:
        write_text(parsed.per_image, run.to_csv(protocol=scored.report.protocol))
    if parsed.per_case:
        write_text(parsed.per_case, run.to_csv(long=True, protocol=scored.report.protocol))
    if parsed.junit:
        write_text(parsed.junit, junit_of_results(scored.results, run.name))
    return _exit_code(scored)


def _scored(run: Run, parsed: argparse.Namespace) -> _Scored:
    """The report, the results of thresholds, the change and the slices of a run."""
    intervals = None
    if inputs.wants_intervals(parsed):
        shown = class_columns(parsed.columns, run.score_plans) if parsed.columns else ()
        pixels = dict.fromkeys(("iou", "recall", *(name for name in shown if name in OF_CLASSES)))
        metrics = [*pixels, "pixel_accuracy", *run.quick_scores]
        groups = [name for name, _ in run.options.groups if name not in run.class_names]
        metrics += [f"{metric}:{name}" for metric in pixels for name in groups]
        options = {"protocol": parsed.protocol, **inputs.resampling(parsed)}
        intervals = [run.intervals(metric, **options) for metric in metrics]
    report = run.report(
        parsed.protocol, intervals=intervals, worst=parsed.worst or 0, worst_by=parsed.worst_by
    )
    change, of_change = _change_of(run, parsed) if parsed.baseline else (None, [])
    results = _threshold_results(run, report, parsed) + of_change
    return _Scored(
        run, report, results, change, slices_of([run], parsed) if parsed.slices else None
    )


def _change_of(run: Run, parsed: argparse.Namespace) -> tuple[Comparison, list[ThresholdResult]]:
    """The comparison with the baseline, whose interval agrees with p, and its thresholds."""
    from segiou.analysis.comparison.compare_runs import compare
    from segiou.analysis.comparison.text import BASELINE

    models = inputs.baseline_and(run, parsed)
    protocol = parsed.protocol or run.protocol
    how = inputs.resampling(parsed) | {"method": "permutation"}
    change = compare(*models, protocol=protocol, **how, names=BASELINE)
    results: list[ThresholdResult] = []
    if parsed.slices and parsed.fail_if_worse_slice is not None:
        from segiou.cli.slice_thresholds import not_worse_slices

        results += not_worse_slices(*models, parsed)
    if parsed.fail_if_worse is not None:
        margin = float(parsed.fail_if_worse)
        results.append(not_worse(change, margin, confident=parsed.confident))
    return change, results


def _threshold_results(
    run: Run, report: Report, parsed: argparse.Namespace
) -> list[ThresholdResult]:
    """The results of the thresholds of scores, and of slices."""
    thresholds = inputs.thresholds_of(parsed, run.plans)
    groups = inputs.resampling(parsed).get("groups")
    results = threshold_results(run, report, thresholds, confident=parsed.confident, groups=groups)
    if parsed.slices:
        from segiou.cli.slice_thresholds import slice_results

        results += slice_results(run, thresholds, parsed)
    return results


def _exit_code(scored: _Scored) -> int:
    """The exit code; reports the thresholds that are not passed for certain."""
    for result in scored.results:
        if not result.passed or result.state == "undecided":
            console.note(f"threshold {_result(result)}: {result.words}")
    if not all(result.passed for result in scored.results):
        return console.EXIT_THRESHOLD
    return 0 if scored.run.finished else console.EXIT_DATA


def _result(result: ThresholdResult) -> str:
    """The result of a threshold: of its value, or with bounds of its state."""
    if result.confident:
        return result.state
    return "passed" if result.passed else "failed"


def _render(scored: _Scored, parsed: argparse.Namespace) -> str:
    """The report in the requested format, with thresholds and baseline."""
    kind, report = inputs.report_format(parsed), scored.report
    if kind == "nnunet":
        return nnunet_summary(scored.run)
    if kind == "json":
        return to_json(report, 2, _other_keys(scored, parsed))
    if kind == "csv":
        classes = report._sorted(parsed.sort, reverse=parsed.reverse)
        return to_csv(report, classes, _slice_rows(scored.slices, _IN_REPORT))
    shown = {"columns": parsed.columns, "outcomes": _result_texts(scored.results)}
    if kind == "html":
        slices = filter(None, [scored.slices])
        return report.to_html(baseline=scored.change, slices=slices, **shown)
    shown |= {"detail": parsed.detail, "change": scored.change, "means": kind == "latex"}
    parts = report._parts(sort=parsed.sort, reverse=parsed.reverse, **shown)
    return _render_parts([*parts, *slices_section(scored.slices)], kind, parsed)


def _other_keys(scored: _Scored, parsed: argparse.Namespace) -> dict[str, Any]:
    """The keys of the JSON output that are not in the report."""
    data: dict[str, Any] = {
        "problems": [{"file": encodable(p.where), "problem": p.text} for p in scored.run.skipped]
    }
    if scored.results:
        data["thresholds"] = [result.to_dict() for result in scored.results]
    if scored.change is not None:
        data["baseline"] = {"run": parsed.baseline, **scored.change.to_dict()}
    if scored.slices is not None:
        data["slices"] = scored.slices.to_dict()
    return data


def _result_texts(results: Sequence[ThresholdResult]) -> list[tuple[str, bool]]:
    """Thresholds in words, and whether they are passed."""
    return [(result.words, result.passed) for result in results]


def slices_of(
    runs: Sequence[Run],
    parsed: argparse.Namespace,
    metric: str = "iou",
    names: tuple[str, ...] = (),
) -> Slices:
    """Slices by ``--slices``, of runs with names if these are not their own."""
    from segiou.analysis.slices.search import slices

    options = inputs.slices_options(parsed, parsed.slices)
    sliced = slices(*runs, metric=metric, level=parsed.level or 0.95, **options)
    return replace(sliced, names=names) if names else sliced


def csv_of_comparison(comparison: Comparison, sliced: Slices | None) -> str:
    """A comparison, and slices of two of its models, as CSV."""
    pair = sliced.names if sliced else ()
    names = {f"score:{name}": key for name, key in zip(pair, "ab", strict=False)}
    below = _slice_rows(sliced, {**names, "score": "delta", **_OF_GAPS})
    models = dict(zip(("model_a", "model_b"), pair, strict=False))
    return csv_of([*comparison.rows(), *(models | row for row in below)])


def _slice_rows(sliced: Slices | None, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Slices as rows below others, whose columns have other names."""
    for part, row in zip(sliced or (), sliced.rows() if sliced else (), strict=True):
        yield {"name": part.name} | {names.get(key, key): value for key, value in row.items()}


def _page_slices(
    sliced: Slices | None, runs: Sequence[Run], parsed: argparse.Namespace
) -> list[Slices]:
    """Slices by several scores: those of pixels, and one of each measure."""
    if sliced is None:
        return []
    scores = [score for plan in runs[0].plans for score in [*plan.scores.values()][:1]]
    # Differences of medians have no slices.
    measured = [s.name for s in scores if len(runs) < 2 or s.median_of is None]
    names = ("iou", "dice", "pixel_accuracy", *measured)
    others = [name for name in names if name != sliced.metric]
    return [sliced, *(slices_of(runs, parsed, name, sliced.names) for name in others)]


def slices_section(sliced: Slices | None) -> list[Part]:
    """Slices below other findings."""
    return [] if sliced is None else [GAP, Section("Slices", [*sliced._parts()], shown=True)]


def _write_pages(scored: _Scored, parsed: argparse.Namespace) -> None:
    """Write the HTML page, the plots and the pictures of errors, if requested."""
    run, report = scored.run, scored.report
    if parsed.html:
        from segiou.report.pages.report_page import write_html

        options = {**_page_options(run, parsed), "columns": parsed.columns}
        options["outcomes"] = _result_texts(scored.results)
        options["slices"] = _page_slices(scored.slices, [run], parsed)
        write_html(parsed.html, report, run=run, baseline=scored.change, **options)
    if parsed.plots:
        from segiou.plots.kinds import save_plots

        save_plots(report, parsed.plots, intervals=report.intervals, overwrite=parsed.overwrite)
    write_panel([run], parsed)
    if parsed.errors:
        from segiou.report.pages.error_pictures import save_errors

        number, classes = parsed.worst or 10, parsed.errors_of or ""
        options = {"by": parsed.worst_by, "of": classes, "overwrite": parsed.overwrite}
        sources = {"images": parsed.images, "read": _page_reader(parsed)}
        save_errors(parsed.errors, run, number=number, **options, **sources)


def write_panel(
    runs: Sequence[Run], parsed: argparse.Namespace, names: Sequence[str] | None = None
) -> None:
    """Write the figure of images with the masks of all models, if requested."""
    if not parsed.panel:
        return
    from segiou.plots.kinds import saved
    from segiou.plots.mask_panel import panel
    from segiou.plots.style import no_pyplot

    options = {"of": parsed.errors_of or "", "images": parsed.images, "width": parsed.panel_width}
    with no_pyplot():
        ids = inputs.panel_ids(runs, parsed)
        figure = panel(runs, ids, names=names, read=_page_reader(parsed), **options)
        ending = Path(parsed.panel).suffix.lower().removeprefix(".")
        write_whole(parsed.panel, saved(figure, ending))


def write_comparison_pages(
    comparison: Comparison, runs: Sequence[Run], parsed: argparse.Namespace, sliced: Slices | None
) -> None:
    """Write the HTML page of the two best models and the plots, if requested."""
    if parsed.html:
        from segiou.report.pages.comparison_page import write_comparison_html

        pair = comparison.best_pair
        shown = [runs[comparison.names.index(name)] for name in (pair.a, pair.b)]
        options = _page_options(runs[0], parsed) | {"pair": comparison.pairs.index(pair)}
        options["slices"] = _page_slices(sliced, shown, parsed)
        write_comparison_html(parsed.html, comparison, *shown, **options)
    if parsed.plots:
        from segiou.plots.kinds import save_plots

        save_plots(comparison, parsed.plots, overwrite=parsed.overwrite)


def note_photos(
    run: Run, parsed: argparse.Namespace, matched: Callable[[str, Sequence[str]], ImageMatch]
) -> None:
    """Report which images have a file in ``--images``."""
    from segiou.inference.scored_runs import unit_of_pixels

    if parsed.images and not parsed.quiet:
        match = matched(parsed.images, run.ids)
        number = plural(len(run), nouns(unit_of_pixels(run)).image)
        all_found = f"found {len(match.files)} of {number} in {parsed.images}"
        console.note("--images: " + "\n".join(match.sentences() or [all_found]))


def _page_options(run: Run, parsed: argparse.Namespace) -> dict[str, Any]:
    """Options for images in pages; reports which images have a file in ``--images``."""
    from segiou.report.pages.photos import match_images

    note_photos(run, parsed, match_images)
    return {
        "overwrite": parsed.overwrite,
        "images": parsed.images,
        "examples": parsed.examples,
        "read": _page_reader(parsed),
        "command": inputs.command_of(parsed),
    }


def _page_reader(parsed: argparse.Namespace) -> Callable[[str], bytes | RawMask] | None:
    """The reader of the masks of pages; None if none of them is remote."""
    # Paths in runs have no passwords, so remote files are read from the places given.
    given = (getattr(parsed, name, None) or [] for name in ("truth", "pred", "model"))
    places = chain.from_iterable([each] if isinstance(each, str) else each for each in given)
    remote = [open_source(place) for place in places if "://" in place]
    return partial(_read, remote) if remote else None


def _read(remote: Sequence[Source], path: str) -> bytes | RawMask:
    """The content of a mask file, which may be in an archive or remote."""
    places = (place for place in remote if path.startswith(f"{place.root}/"))
    return (next(places, None) or open_source(path)).read(path)[0]


def write_finding(
    found: Finding,
    parsed: argparse.Namespace,
    *,
    parts: Iterable[Part] | None = None,
    data: dict[str, Any] | None = None,
    table: Callable[[], str] | None = None,
    page: Callable[[], str] | None = None,
) -> None:
    """Write a finding in the requested format.

    Parts, plain data (JSON) and a table (CSV) replace those of the finding, and findings with a
    page have HTML as another format, which ``--html`` writes beside it.
    """
    kind = inputs.report_format(parsed) if page else inputs.findings_format(parsed)
    html = page() if page and (parsed.html or kind == "html") else ""
    if html and parsed.html:
        write_whole(parsed.html, html)
    if kind == "json":
        data = found.to_dict() if data is None else data
        text = json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    elif kind == "csv":
        text = (table or found.to_csv)()
    elif html and kind == "html":
        text = html
    else:
        text = _render_parts(found._parts() if parts is None else parts, kind, parsed)
    write_text(parsed.output, text)


def _render_parts(parts: Iterable[Part], kind: str, parsed: argparse.Namespace) -> str:
    """Parts in a format of documents; text for a terminal has its width and colours."""
    options: dict[str, Any] = {"transposed": parsed.transposed}
    if not parsed.output:
        options |= {"width": console.stdout_width(), "color": console.wants_color()}
    return rendered(parts, kind, **options)


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
