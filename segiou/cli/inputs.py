"""Command input: validates options, and makes them a job or opens runs."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_integer
from segiou._support.numbers import fraction_in, is_digits, number_in
from segiou._support.table_files import table_place
from segiou._support.text import listed, nouns, plural, without_credentials
from segiou.cli.console import note, progress_bar
from segiou.cli.needs import THRESHOLDS
from segiou.cli.options import names_by_heading, option_of
from segiou.cli.paths import is_run_file as is_run_file
from segiou.cli.thresholds import (
    Threshold,
    check_percent,
    check_thresholds,
    check_where,
    read_threshold,
)
from segiou.document.renderers import RENDERERS
from segiou.labels.class_options import CLASS_ARGUMENTS, ClassOptions
from segiou.measures.registry import (
    implied_classes,
    measure_of,
    measure_of_score,
    measures_from_options,
)
from segiou.measures.score_names import read_name
from segiou.metrics.protocols import load_protocol
from segiou.report.class_table import check_columns
from segiou.report.formats import format_of
from segiou.runs.run import Run
from segiou.scoring.advice import unused_classes
from segiou.scoring.folder import Callbacks, score_job
from segiou.scoring.job import PAIR_ARGUMENTS, Job

if TYPE_CHECKING:
    from segiou.inference.intervals import OverUnits
    from segiou.masks.sources.pairing import Pair
    from segiou.measures.measure import Measure
    from segiou.measures.plan import Plan

_SHARE = re.compile(r"(.+?)=([0-9]*\.?[0-9]+%?)(?:,|$)")


def job_of(truth: str, pred: str, parsed: argparse.Namespace) -> Job:
    """The scoring job for the options."""
    _set_labels(truth, pred, parsed)
    options = ClassOptions.of(**{name: getattr(parsed, name) for name in CLASS_ARGUMENTS})
    options.warn_of_ignored_classes()
    arguments = vars(parsed) | {"truth": truth, "pred": pred, "command": command_of(parsed)}
    arguments["spacing"] = _spacing_of(arguments.get("spacing"))
    if parsed.name_of_command != "score":
        return Job.from_arguments(options, _needed_for(arguments.get("metric")), arguments)
    if arguments["columns"] == "map":
        arguments["area"] = arguments.get("area") or "where known"
    chosen = measures_from_options(arguments, options, names_by_heading("score"))
    return Job.from_arguments(options, chosen, arguments)


def _set_labels(truth: str, pred: str, parsed: argparse.Namespace) -> None:
    """Without --labels, set those of files or objects; ValueError if nothing determines them."""
    if parsed.labels is None and "{class}" in (parsed.class_files or ""):
        parsed.labels = _classes_of_files((truth, pred), parsed.class_files)
    if parsed.labels is None and parsed.name_of_command == "score":
        parsed.labels = implied_classes(vars(parsed), names_by_heading("score"))
    if parsed.labels is None:
        from segiou.scoring.segment_classes import classes_of_segments

        parsed.labels = classes_of_segments((truth, pred))
    if parsed.labels is None:
        from segiou.scoring.label_set_advice import label_set_question

        places = shlex.join([truth, pred]) if parsed.name_of_command == "score" else "…"
        msg = label_set_question(truth, f"segiou {parsed.name_of_command} {places}")
        raise ValueError(msg)


def command_of(parsed: argparse.Namespace) -> str:
    """The command line as a shell takes it, without passwords."""
    return shlex.join(map(without_credentials, parsed.command_line))


def _classes_of_files(places: Sequence[str], pattern: str) -> list[str] | None:
    """Background and the classes that have files; None if no file matches."""
    from segiou.masks.reading import check_pattern
    from segiou.masks.sources.class_files import BACKGROUND, classes_of
    from segiou.masks.sources.opening import open_source

    check_pattern("--class-files", pattern)
    names = {name for place in places for name in classes_of(open_source(place), pattern)}
    return [BACKGROUND, *sorted(names - {BACKGROUND})] if names else None


def _needed_for(metric: Any) -> tuple[Measure, ...]:
    """Measures that the metrics of a comparison need."""
    names = [] if metric is None else metrics_of(metric)
    scores = [read_name(name).score for name in names]
    keyed = {key: score for score in reversed(scores) if (key := measure_of_score(score))}
    return tuple(measure_of(key).for_score(score) for key, score in keyed.items())


def _spacing_of(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(number_in(part) for part in text.split(","))
    except ValueError:
        msg = f"--spacing {text}: expected one number per axis, e.g. 0.5,0.5"
        raise ValueError(msg) from None


def resampling(parsed: argparse.Namespace) -> dict[str, Any]:
    """Options of intervals as arguments of the library."""
    from segiou.inference.resampling import Resampling

    given = vars(parsed) | {"groups": parsed.group_by}
    return {name: given[name] for name in Resampling.names()}


def note_undrawn(parsed: argparse.Namespace, resampled: Sequence[OverUnits]) -> None:
    """Report options of resampling where nothing was resampled."""
    for name in ("resamples", "seed"):
        is_given = getattr(parsed, name) != parsed.command.get_default(name)
        is_drawn = any(getattr(finding, name) is not None for finding in resampled)
        if is_given and resampled and not is_drawn and not parsed.quiet:
            note(f"{option_of(name)} has no effect without --method percentile or bca")


def open_run(path: str, parsed: argparse.Namespace, *, or_folders: str) -> Run:
    """Open a run file; ``or_folders`` is the usage of the command with folders."""
    run = saved_run(path, f"for folders: {or_folders}")
    default = parsed.command.get_default
    shown = {"exclude"} | ({"ids"} if getattr(parsed, "panel", None) else set())
    without_effect = [n for n in (*CLASS_ARGUMENTS, *PAIR_ARGUMENTS) if n not in shown]
    chosen = [name for name in without_effect if getattr(parsed, name) != default(name)]
    if chosen:
        # These options would silently have no effect.
        options = ", ".join(map(option_of, chosen))
        them = "it" if len(chosen) == 1 else "them"
        msg = (
            f"{path} is already scored, so {options} would have no effect; omit {them}, or score "
            "the folders"
        )
        raise ValueError(msg)
    if not parsed.quiet:
        note_state(run, f"{path}: ")
    return exclude_classes(run, parsed)


def exclude_classes(run: Run, parsed: argparse.Namespace) -> Run:
    """The run without the classes of ``--exclude`` in means, and a note on absent ones."""
    chosen = run.excluding(parsed.exclude)
    if not parsed.quiet:
        excluded = {*chosen.options.exclude} - {*run.options.exclude}
        for text in unused_classes(run, excluded, protocol=getattr(parsed, "protocol", None)):
            note(text)
    return chosen


def open_baseline(parsed: argparse.Namespace) -> Run:
    """Open the run of ``--baseline``."""
    if Path(parsed.baseline).expanduser().is_dir():
        fix = "expected a run file written by segiou score --run"
        msg = f"--baseline {parsed.baseline}: is a folder; {fix}"
        raise ValueError(msg)
    return Run.open(parsed.baseline).excluding(parsed.exclude)


def baseline_and(run: Run, parsed: argparse.Namespace) -> tuple[Run, Run]:
    """The baseline and the run, with ``--common`` both on the images that both have."""
    from segiou.inference.paired_runs import DifferentImagesError
    from segiou.inference.scored_runs import unit_of_pixels

    baseline = open_baseline(parsed)
    common = sorted({*baseline.ids} & {*run.ids})
    lengths, image = (len(baseline), len(run)), nouns(unit_of_pixels(run)).image
    if lengths == (len(common), len(common)):
        return baseline, run
    if not common or not parsed.common:
        ids = ({*own.ids} - {*other.ids} for own, other in ((baseline, run), (run, baseline)))
        only = dict(zip(("baseline", "run"), map(sorted, ids), strict=True))
        fix = f"--common compares the {image}s of both" if common else ""
        raise DifferentImagesError(only, fix, image)
    if not parsed.quiet:
        note(
            f"--common: {plural(len(common), image)} compared, of {lengths[0]} in the baseline and "
            f"{lengths[1]} in the run"
        )
    return baseline.select(common), run.select(common)


def saved_run(path: str, fix: str = "to score it, use segiou score") -> Run:
    """Open a run file; ``fix`` ends the error message for folders."""
    if Path(path).expanduser().is_dir():
        msg = f"{path} is a folder, not a run file; {fix}"
        raise ValueError(msg)
    return Run.open(path)


def noted_run(path: str, parsed: argparse.Namespace) -> Run:
    """Open a run file, and report its state."""
    run = saved_run(path)
    if not parsed.quiet:
        note_state(run, f"{path}: ")
    return run


def note_state(
    run: Run, where: str = "", *, part: Sequence[int] | None = None, quiet: bool = False
) -> None:
    """Report that a run is unfinished or lacks parts of the data set, unless it is one part."""
    if not run.finished:
        note(f"{where}unfinished run: {run.provenance['unfinished']}")
    if part is not None and "partial" in run.provenance:
        if len(run) and not quiet:
            note(f"part {part[0]} of {part[1]}: {plural(len(run), 'pair')}; next: segiou merge")
    elif "partial" in run.provenance:
        note(f"{where}incomplete run: {run.provenance['partial']}")
    if "unread" in run.provenance:
        note(f"{where}{run.provenance['unread']}")


def score_now(truth: str, pred: str, parsed: argparse.Namespace) -> Run:
    """Score two folders with the options of the command line."""
    for path in (truth, pred):
        if is_run_file(path):
            msg = f"cannot mix run files and mask folders ({path} is a run file)"
            raise ValueError(msg)
    return do(job_of(truth, pred, parsed), parsed, f"scoring {pred}")


def do(
    job: Job,
    parsed: argparse.Namespace,
    what: str,
    *,
    check: Callable[[Sequence[Pair]], None] = lambda pairs: None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Run a job with a progress bar; ``check`` validates the pairs first."""
    with progress_bar(what, quiet=parsed.quiet) as (update, problem):

        def begin(pairs: Sequence[Pair]) -> None:
            check(pairs)
            update(0, len(pairs))

        calls = {"progress": update, "on_paired": begin, "on_problem": problem}
        return score_job(job, Callbacks.of(calls | ({"stop": stop} if stop else {})))


def check_report(parsed: argparse.Namespace, classes: ClassOptions, plans: Sequence[Plan]) -> None:
    """Validate the options of a report against its classes, measures and each other."""
    report_format(parsed)
    check_columns(parsed.columns, parsed.sort, plans)
    check_thresholds(thresholds_of(parsed, plans), classes, plans)
    if parsed.errors_of:
        from segiou.report.pages.error_pictures import classes_of

        classes_of(classes.labels, parsed.errors_of)
    load_protocol(parsed.protocol or "segiou")
    if parsed.worst:
        from segiou.runs.tables import check_score_name

        check_score_name(parsed.worst_by, classes, plans)
    if wants_intervals(parsed) or parsed.baseline:
        _check_resampling(parsed)
    if parsed.baseline:
        open_baseline(parsed)


def thresholds_of(parsed: argparse.Namespace, plans: Sequence[Plan]) -> list[Threshold]:
    """The thresholds of the command line."""
    return [
        read_threshold(text, plans, option_of(name), sliced=bool(parsed.slices))
        for name in THRESHOLDS
        for text in getattr(parsed, name)
    ]


def check_findings(parsed: argparse.Namespace) -> None:
    """Validate options of findings: format, protocol, metric, names, intervals."""
    findings_format(parsed)
    load_protocol(getattr(parsed, "protocol", None) or "segiou")
    if not hasattr(parsed, "metric"):
        return
    if parsed.truth is not None or not (parsed.recipes or all(map(is_run_file, parsed.model))):
        _check_metrics(parsed.metric)  # before masks are scored; run files may have more scores
    _check_resampling(parsed)
    names = parsed.names.split(",") if parsed.names else []
    if names and len(names) != len(parsed.model):
        number = plural(len(names), "name")
        msg = f"--names {parsed.names}: got {number} for {len(parsed.model)} models"
        raise ValueError(msg)
    if len(set(names)) < len(names):
        msg = f"--names {parsed.names}: names must be unique"
        raise ValueError(msg)


def check_images(ids_of: Callable[[], Sequence[str]], parsed: argparse.Namespace) -> None:
    """ValueError if images are too few for intervals, have no group, or no metadata."""
    if not (parsed.slices or wants_intervals(parsed)):
        return  # reading the ids of a large run takes seconds
    ids = ids_of()
    if parsed.slices and ids:
        check_slices(ids, parsed)
    if not wants_intervals(parsed):
        return
    from segiou.inference.units import groups_of, units_of

    groups = groups_of(ids, parsed.group_by)
    try:
        units_of(len(ids), None if parsed.blocks else groups)
    except ValueError as error:
        msg = f"{error}; omit --intervals, --group-by and --blocks, or score more images"
        raise ValueError(msg) from error


def check_slices(ids: Sequence[str], parsed: argparse.Namespace) -> None:
    """ValueError for metadata that cannot be matched, and thresholds of slices that it lacks."""
    from segiou.analysis.slices.search import check_mix
    from segiou.inference.metadata import metadata_of

    bins = _bins(parsed.bins)
    table = metadata_of(parsed.slices, ids, key=parsed.slices_key, bins=bins)
    check_mix(_mixes(parsed.mix), table)
    known = {
        column.name: [v for i, v in enumerate(column.values) if column.inside(i).any()]
        for column in table.columns
    }
    for name in THRESHOLDS:
        for text in getattr(parsed, name, ()):
            check_where(option_of(name), text, known)


def slices_options(parsed: argparse.Namespace, by: str) -> dict[str, Any]:
    """Options of slices by a table or pattern."""
    return {
        "by": by,
        "key": parsed.slices_key,
        "bins": _bins(parsed.bins),
        "mix": _mixes(parsed.mix),
        "groups": parsed.group_by,
        "protocol": parsed.protocol,
    }


def panel_ids(runs: Sequence[Run], parsed: argparse.Namespace) -> Sequence[str] | int:
    """The images of ``--panel``, or how many of the worst; ids of masks chose what was scored."""
    from segiou.scoring.pair_options import ids_of

    worst = getattr(parsed, "worst", None)
    if parsed.ids and not getattr(parsed, "truth", None):
        is_file = Path(parsed.ids).expanduser().is_file() or table_place(parsed.ids)
        return ids_of(parsed.ids if is_file else parsed.ids.split(","))
    if len(runs) == 1 and not parsed.errors_of:
        return [str(row["id"]) for row in runs[0].worst(worst or 3, by=parsed.worst_by)]
    return worst or 3


def _bins(texts: Sequence[str]) -> dict[str, int | list[str]]:
    """A number of quantiles, or edges, which may be dates, by column."""
    bins: dict[str, int | list[str]] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name or not value:
            msg = f"--bins {text}: expected COLUMN=NUMBER or COLUMN=EDGE,EDGE,…"
            raise ValueError(msg)
        is_number = is_digits(value) and int(value) > 1
        bins[name] = int(value) if is_number else value.split(",")
    return bins


def _mixes(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Shares of values by column; values may contain commas."""
    mixes: dict[str, dict[str, float]] = {}
    for text in texts:
        name, _, rest = text.partition(":")
        if not name or not re.fullmatch(f"(?:{_SHARE.pattern})+", rest):
            msg = f"--mix {text}: expected COLUMN:VALUE=SHARE,VALUE=SHARE, such as time:day=0.7,…"
            raise ValueError(msg)
        shares = (match.groups() for match in _SHARE.finditer(rest))
        mixes[name] = {value: fraction_in(share) for value, share in shares}
    return mixes


def wants_intervals(parsed: argparse.Namespace) -> bool:
    """Whether a report has intervals; groups and blocks imply them."""
    return bool(parsed.intervals or parsed.group_by or parsed.blocks)


def report_format(parsed: argparse.Namespace) -> str:
    """The format of a report, by option or file extension."""
    if parsed.format is None and parsed.output:
        return _checked_format(parsed, format_of(Path(parsed.output)))
    return _checked_format(parsed, str(parsed.format or "table"))


def findings_format(parsed: argparse.Namespace) -> str:
    """The format of findings, by option or file extension."""
    ending = Path(parsed.output or "").suffix.lower()
    known = {end: name for name, renderer in RENDERERS.items() for end in renderer.endings}
    known |= {".json": "json", ".csv": "csv"}
    if parsed.format is None and ending not in known:
        extensions = listed([end for end in known if end], last=" or ")
        fix = f"use {extensions}, or pass --format"
        if ending == ".html" and hasattr(parsed, "html"):
            fix = f"for a page, pass --html {shlex.quote(str(parsed.output))}; for text, {fix}"
        msg = f"{parsed.output}: unknown extension; {fix}"
        raise ValueError(msg)
    return _checked_format(parsed, str(parsed.format or known[ending]))


def _checked_format(parsed: argparse.Namespace, kind: str) -> str:
    if parsed.transposed and kind != "latex":
        msg = "--transposed needs LaTeX: --format latex or --output FILE.tex"
        raise ValueError(msg)
    return kind


def compared_metrics(parsed: argparse.Namespace, runs: Iterable[Run]) -> list[str]:
    """The scores to compare runs by, whose names may depend on the options of the runs."""
    metrics = metrics_of(parsed.metric, [name for run in runs for name in run.score_plans])
    if len(metrics) > 1:
        _check_alone(parsed)
    return metrics


def check_difference(
    parsed: argparse.Namespace, name: str, runs: Iterable[Run], metrics: Sequence[str]
) -> None:
    """Raise an error for a difference in per cent of a score that has a unit."""
    for plans, metric in product((run.score_plans for run in runs), metrics):
        score = read_name(metric, plans).score
        if score in plans:
            unit = plans[score].scores[score].unit
            check_percent(option_of(name), getattr(parsed, name), score, unit)


def _check_metrics(text: str) -> None:
    """Raise an error for a score of folders that is unknown."""
    try:
        metrics_of(text)
    except ValueError as error:
        fix = "segiou score --run with its options, then compare the run files"
        msg = f"{error}; for a score whose name depends on options, such as noc_60: {fix}"
        raise ValueError(msg) from error


def metrics_of(text: str, others: Collection[str] = ()) -> list[str]:
    """The scores of a list such as ``dice,hausdorff_95``; names of classes may contain commas."""
    metrics: list[str] = []
    for part in text.split(","):
        try:
            read_name(part, others)
            metrics.append(part)
        except ValueError:
            if not metrics:
                raise
            metrics[-1] += f",{part}"
            read_name(metrics[-1], others)
    return metrics


def _check_alone(parsed: argparse.Namespace) -> None:
    """Raise an error for options that take one score."""
    for name in ("html", "plots", "recipes", "detect"):
        if getattr(parsed, name, None):
            msg = f"--{name} takes one score; pass one to --metric instead of {parsed.metric}"
            raise ValueError(msg)


def _check_resampling(parsed: argparse.Namespace) -> None:
    from segiou.inference.dependence import check_blocks
    from segiou.inference.resampling import MOST_RESAMPLES, Resampling
    from segiou.inference.units import groups_of

    check_integer("--resamples", parsed.resamples, 2, MOST_RESAMPLES)
    how = Resampling.of(resampling(parsed))
    check_blocks(how.groups, how.blocks)
    groups_of((), how.groups)
