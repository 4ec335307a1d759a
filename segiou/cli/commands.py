"""Most commands; each imports what it needs when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou.cli import console, inputs
from segiou.cli.options import option_of
from segiou.runs.run import Run

if TYPE_CHECKING:
    from segiou.masks.sources.pairing import Pair
    from segiou.measures.plan import Plan
    from segiou.scoring.job import Job


def score(parsed: argparse.Namespace) -> int:
    """Score folders, write the outputs and check the thresholds."""
    from segiou._support.files import write_whole
    from segiou.cli.junit import junit_of_error
    from segiou.cli.output import show_run, write_problems
    from segiou.scoring.problems import DataError, ScoringInterrupted

    try:
        job = inputs.job_of(parsed.truth, parsed.pred, parsed)
        inputs.check_report(parsed, job.options, _plans(job))
        with console.interruptible(kept=bool(parsed.run), foreign=_foreign(job)) as stop:
            run = inputs.do(job, parsed, "scoring", check=partial(_check_pairs, parsed), stop=stop)
    except DataError as error:
        if parsed.problems:
            write_problems(parsed.problems, error.problems)
        if parsed.junit:
            write_whole(parsed.junit, junit_of_error(error))
        raise
    except ScoringInterrupted as stopped:
        hint = "nothing was saved; use --run FILE to make the command resumable"
        if parsed.run:
            hint = f"saved in {parsed.run}; run the same command to resume"
        console.note(f"{stopped}; {hint}")
        return console.EXIT_INTERRUPTED
    if parsed.problems:
        write_problems(parsed.problems, run.skipped)
    code = show_run(run, parsed)
    return code or (console.EXIT_DATA if run.skipped and parsed.on_error == "skip" else 0)


def _foreign(job: Job) -> str:
    """The measures of plug-ins, which may not react to Ctrl-C."""
    from segiou.measures.guard import is_own, package_of

    foreign = [measure for measure in job.measures if not is_own(type(measure))]
    return " or ".join(
        f"measure {measure.key!r} of {package_of(type(measure))}" for measure in foreign
    )


def _plans(job: Job) -> list[Plan]:
    """The plans of the measures that are known before reading masks; ValueError if none can be."""
    plans: list[Plan] = []
    errors: list[ValueError] = []
    for volumes in (False, True):
        try:
            plans += job.plans(volumes=volumes)
        except ValueError as error:  # reported during scoring if it depends on the masks
            errors.append(error)
    if len({*map(str, errors)}) == 1 < len(errors):
        raise errors[0]
    return plans


def _check_pairs(parsed: argparse.Namespace, pairs: Sequence[Pair]) -> None:
    inputs.check_images(lambda: [pair.id for pair in pairs], parsed)
    if not pairs and not parsed.quiet:
        part, parts = parsed.shard
        what = "an empty run is written, which segiou merge accepts"
        console.note(f"part {part} of {parts} has no pairs; {what}")


def compare(parsed: argparse.Namespace) -> int:
    """Compare two or more models on the same images."""
    from segiou.analysis.comparison.model_table import compare_scores
    from segiou.cli.output import write_finding, write_panel

    inputs.check_findings(parsed)
    recipes = _recipes(parsed) if parsed.recipes else None
    runs = [trained[0] for trained in recipes.values()] if recipes else _compared_runs(parsed)
    every = [run for trained in recipes.values() for run in trained] if recipes else runs
    metrics = inputs.compared_metrics(parsed, every)
    inputs.check_difference(parsed, "detect", every, metrics)
    if parsed.slices and (recipes or len(metrics) > 1):
        msg = "--slices compares two runs by one score; omit --recipes and pass one --metric"
        raise ValueError(msg)
    options = {
        "protocol": parsed.protocol,
        **inputs.resampling(parsed),
        "detect": parsed.detect,
        "names": parsed.names.split(",") if parsed.names else None,
    }
    is_document = inputs.findings_format(parsed) not in ("json", "csv")
    if parsed.parts and (
        parsed.table or parsed.sentence or parsed.slices or len(metrics) > 1 or not is_document
    ):
        msg = (
            "--parts chooses parts of the text, Markdown or LaTeX of a comparison by one --metric; "
            "omit --table and --slices"
        )
        raise ValueError(msg)
    if parsed.table or parsed.sentence:
        _tabulate(runs, recipes, metrics, parsed, options)
    elif len(metrics) > 1:
        several = compare_scores(*runs, metrics=metrics, **options)
        inputs.note_undrawn(parsed, several.comparisons)
        write_finding(several, parsed)
    else:
        _compare_score(runs, recipes, metrics[0], parsed, options)
    write_panel(runs, parsed, [*recipes] if recipes else options["names"])
    return 0


def _tabulate(
    runs: Sequence[Run],
    recipes: dict[str, list[Run]] | None,
    metrics: list[str],
    parsed: argparse.Namespace,
    options: dict[str, Any],
) -> None:
    """Print the table of models and classes, or the verdicts, alone."""
    from segiou.analysis.comparison.document import prose_parts
    from segiou.analysis.comparison.model_table import model_table
    from segiou.cli.output import write_finding
    from segiou.document.parts import GAP

    if recipes or parsed.html or parsed.plots or parsed.slices:
        other = next(n for n in ("recipes", "html", "plots", "slices") if getattr(parsed, n))
        what = "--table prints one table" if parsed.table else "--sentence prints the verdicts"
        msg = f"{what} of single runs; omit {option_of(other)}"
        raise ValueError(msg)
    if not parsed.table and inputs.findings_format(parsed) == "csv":
        msg = "CSV has no sentences; pass --table, or another format"
        raise ValueError(msg)
    with_intervals = parsed.table == "intervals"
    found = model_table(*runs, metrics=metrics, intervals=with_intervals, **options)
    data, parts = found.to_dict(), [*found._parts()] if parsed.table else []
    if parsed.sentence:
        lines = [line for comparison in found.comparisons for line in prose_parts(comparison)]
        parts, data["sentences"] = [*parts, GAP, *lines], [line.text for line in lines]
    write_finding(found, parsed, data=data, parts=parts)


def _compare_score(
    runs: Sequence[Run],
    recipes: dict[str, list[Run]] | None,
    metric: str,
    parsed: argparse.Namespace,
    options: dict[str, Any],
) -> None:
    """Compare by one score, with pages, plots and slices."""
    from segiou.analysis.comparison.compare_runs import compare
    from segiou.analysis.comparison.document import chosen_parts
    from segiou.cli.output import (
        csv_of_comparison,
        slices_of,
        slices_section,
        write_comparison_pages,
        write_finding,
    )

    comparison = compare(*((recipes,) if recipes else runs), metric=metric, **options)
    parts = [*chosen_parts(comparison, parsed.parts.split(","))] if parsed.parts else []
    inputs.note_undrawn(parsed, [comparison])
    data, sliced = comparison.to_dict(), None
    if parsed.slices:
        pair = comparison.best_pair
        best = [runs[comparison.names.index(name)] for name in (pair.a, pair.b)]
        sliced = slices_of(best, parsed, metric, (pair.a, pair.b))
        data["slices"] = sliced.to_dict()
    write_comparison_pages(comparison, runs, parsed, sliced)
    table = partial(csv_of_comparison, comparison, sliced)
    if not parsed.parts:
        parts = [*comparison._parts(), *slices_section(sliced)]
    write_finding(comparison, parsed, data=data, parts=parts, table=table)


def _recipes(parsed: argparse.Namespace) -> dict[str, list[Run]]:
    """The runs of each training recipe, given as NAME=RUN,RUN,…."""
    recipes: dict[str, list[Run]] = {}
    for model in parsed.model:
        name, _, paths = model.partition("=")
        if not name or not paths or name in recipes:
            msg = f"--recipes: expected NAME=RUN,RUN,… with distinct names, got {model!r}"
            raise ValueError(msg)
        usage = "segiou score TRUTH PRED --labels SET --run FILE"
        recipes[name] = [
            inputs.open_run(path, parsed, or_folders=usage) for path in paths.split(",")
        ]
    return recipes


def _compared_runs(parsed: argparse.Namespace) -> list[Run]:
    if len(parsed.model) < 2:
        msg = "compare needs at least two models"
        raise ValueError(msg)
    if parsed.truth is None:
        usage = "segiou compare PRED PRED --truth DIR --labels SET"
        return [inputs.open_run(path, parsed, or_folders=usage) for path in parsed.model]
    return [inputs.score_now(parsed.truth, path, parsed) for path in parsed.model]


def explain(parsed: argparse.Namespace) -> int:
    """Explain the gap between pixel accuracy and mean IoU, or that of two models."""
    from segiou.analysis.gap.imbalance import explain
    from segiou.cli.output import write_finding

    inputs.check_findings(parsed)
    if len(parsed.path) == 2 and all(map(inputs.is_run_file, parsed.path)):
        return _explain_two(parsed)
    run = _explained_run(parsed)
    imbalance = explain(run, protocol=parsed.protocol)
    steps = run.report(parsed.protocol).next_steps
    data = imbalance.to_dict() | {"next_steps": [step.to_dict() for step in steps]}
    write_finding(imbalance, parsed, data=data, parts=imbalance._parts(steps))
    return 0


def _explain_two(parsed: argparse.Namespace) -> int:
    """Explain why two models differ in pixel accuracy and mean IoU."""
    from segiou.analysis.gap.imbalance_difference import explain_runs
    from segiou.cli.output import write_finding
    from segiou.inference.paired_runs import names_of, same_images

    usage = "segiou explain RUN RUN"
    runs = [inputs.open_run(path, parsed, or_folders=usage) for path in parsed.path]
    same = same_images(runs, names_of(runs, None), parsed.protocol)
    write_finding(explain_runs(same, same.counts, (same.names[0], same.names[1])), parsed)
    return 0


def _explained_run(parsed: argparse.Namespace) -> Run:
    if len(parsed.path) > 2:
        msg = f"explain takes one or two run files or TRUTH PRED, got {len(parsed.path)} paths"
        raise ValueError(msg)
    if len(parsed.path) == 1:
        usage = "segiou explain TRUTH PRED --labels SET"
        return inputs.open_run(parsed.path[0], parsed, or_folders=usage)
    truth, pred = parsed.path
    return inputs.score_now(truth, pred, parsed)


def inspect(parsed: argparse.Namespace) -> int:
    """List the values in a folder of masks."""
    from segiou._support.files import write_whole
    from segiou.cli.output import write_finding
    from segiou.labels.loading import load_labels
    from segiou.scoring.inspection import inspect_folder

    inputs.check_findings(parsed)
    labels = None if parsed.labels is None else load_labels(parsed.labels)
    with console.progress_bar("reading", quiet=parsed.quiet, unit="files") as (progress, _):
        inspection = inspect_folder(
            parsed.dir, pred=parsed.pred, labels=labels, workers=parsed.workers, progress=progress
        )
    if parsed.propose:
        proposed = inspection.proposed_labels()
        write_whole(parsed.propose, proposed.to_toml())
        if proposed.notes and not parsed.quiet:
            console.note(proposed.notes)
    write_finding(inspection, parsed)
    return console.EXIT_DATA if inspection.problems or inspection.disagreements else 0


def labelsets(parsed: argparse.Namespace) -> int:
    """List the presets, or print one set as TOML."""
    from segiou._support.optional import plugin_names
    from segiou.document.parts import Column, Line, Part, Table
    from segiou.document.terminal import text_of
    from segiou.labels.loading import labelset_names, load_labels

    from_file = getattr(parsed, "from")
    if from_file and parsed.name:
        msg = "pass either a set name or --from FILE, not both"
        raise ValueError(msg)
    if from_file and not (path := Path(from_file).expanduser()).is_file():
        folder = "is a folder; to find matching label sets, use segiou inspect"
        msg = f"--from {from_file}: {folder if path.is_dir() else 'no such file'}"
        raise ValueError(msg)
    if wanted := from_file or parsed.name:
        console.write(load_labels(wanted).to_toml())
        return 0
    sets = [load_labels(name) for name in (*labelset_names(), *plugin_names("labelsets"))]
    columns = (
        Column("label set", [labels.name for labels in sets], 9, is_text=True),
        Column("classes", [str(labels.num_classes) for labels in sets], 1),
        Column("title", [labels.title for labels in sets], 2, is_text=True),
    )
    hint = "To customise a set: segiou labelsets NAME > FILE.toml, edit it, then --labels FILE.toml"
    parts: list[Part] = [Table(columns), Line(hint, "dim")]
    console.write(text_of(parts, console.stdout_width(), color=console.wants_color()))
    return 0


def measures(parsed: argparse.Namespace) -> int:
    """List the measures with their scores and options, or describe one."""
    from segiou.cli.output import write_finding
    from segiou.measures.listing import listed_measures

    inputs.check_findings(parsed)
    listing, problems = listed_measures(parsed.name)
    for problem in problems:
        console.note(problem)
    write_finding(listing, parsed)
    return 0


def merge(parsed: argparse.Namespace) -> int:
    """Merge run files into one."""
    from segiou._support.text import nouns, plural
    from segiou.inference.scored_runs import unit_of_pixels
    from segiou.runs.run import merge_files

    merged = Run.open(merge_files(parsed.run_file, parsed.output, partial=parsed.partial))
    if empty := [path for path in parsed.run_file if not len(Run.open(path))]:
        console.note(f"without images: {', '.join(empty)}")
    if not parsed.quiet:
        image = nouns(unit_of_pixels(merged)).image
        images, runs = plural(len(merged), image), plural(len(parsed.run_file), "run")
        console.note(f"merged {images} from {runs} into {parsed.output}")
        if not merged.finished:
            console.note("one input run is unfinished, so the merged run is also unfinished")
        if "partial" in merged.provenance:
            console.note(f"incomplete: {merged.provenance['partial']}")
        if "unread" in merged.provenance:
            console.note(str(merged.provenance["unread"]))
    return 0 if merged.finished else console.EXIT_DATA


def report(parsed: argparse.Namespace) -> int:
    """Report on a saved run."""
    from segiou.cli.output import show_run

    run = inputs.exclude_classes(inputs.saved_run(parsed.run_file), parsed)
    inputs.check_report(parsed, run.options, run.plans)
    inputs.check_images(lambda: run.ids, parsed)
    return show_run(run, parsed)


def slices(parsed: argparse.Namespace) -> int:
    """Compare the slices of one run, or of the change between two, with the rest."""
    from segiou.analysis.slices.search import slices as compared_slices
    from segiou.cli.output import write_finding

    inputs.findings_format(parsed)
    *paths, source = parsed.source
    usage = "segiou slices RUN [RUN] meta.csv:COLUMN"
    if not 1 <= len(paths) <= 2:
        got = f"got {len(paths)} run files" if paths else "got one argument"
        msg = f"expected one or two run files and then the metadata ({usage}), {got}"
        raise ValueError(msg)
    if inputs.is_run_file(source):
        msg = f"{source} is a run file, but the last argument is the metadata: {usage}"
        raise ValueError(msg)
    runs = [inputs.noted_run(path, parsed) for path in paths]
    options = inputs.slices_options(parsed, source)
    options |= {"against": parsed.against, "search": parsed.search, "by_class": parsed.by_class}
    sliced = compared_slices(*runs, metric=parsed.metric, level=parsed.level, **options)
    write_finding(sliced, parsed)
    return 0
