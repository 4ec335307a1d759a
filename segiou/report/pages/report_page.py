"""The HTML page of a report, and the parts shared with that of a comparison."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import (
    check_flag,
    check_integer,
    check_kind,
    check_path,
    read_several,
)
from segiou._support.files import write_whole
from segiou._support.output_folder import OutputFolder
from segiou._support.text import capital, nouns
from segiou.analysis.gap.steps import top_steps
from segiou.inference.paired_runs import check_runs
from segiou.labels.label_set import LabelSet, hex_color
from segiou.metrics.per_image import worst_mean
from segiou.metrics.ratio import Floats
from segiou.report.class_table import COUNTS, class_columns, column_of, terms_of, titled
from segiou.report.measured import score_part, shown
from segiou.report.pages.confusion_part import confusions
from segiou.report.pages.distance_pictures import distance_boxes, texts_of_cases
from segiou.report.pages.image_table import EXAMPLES, ImageScores, ImageTable, choose, image_table
from segiou.report.pages.page import assemble, class_colors, sentence
from segiou.report.pages.parts import (
    CaseTable,
    Section,
    case_tables,
    making,
    sections_of,
    sliced_part,
)
from segiou.report.pages.picture_masks import Reader
from segiou.report.report import Report
from segiou.report.report_document import dice_title, worst_part, worst_title
from segiou.report.wording import ignored_text, other_methods, skipped_text

if TYPE_CHECKING:
    from segiou.analysis.comparison.result import Comparison
    from segiou.analysis.gap.imbalance import Imbalance
    from segiou.analysis.slices.result import Slices
    from segiou.inference.intervals import Interval, Intervals
    from segiou.measures.score_table import ScoreTable
    from segiou.runs.run import Run

_BINS = 20
_DUMBBELLS = 40
#: Number of images up to which the histogram draws each.
_DRAWN = 400
#: The report's names of the scores over all classes, by the metric that is averaged.
_OVERALL = {"iou": "mean_iou", "dice": "mean_dice", "recall": "mean_accuracy"}


def render_report(
    report: Report,
    *,
    run: Run | None = None,
    intervals: Iterable[Intervals] | None = None,
    imbalance: Imbalance | None = None,
    baseline: Comparison | None = None,
    outcomes: Sequence[tuple[str, bool]] = (),
    slices: Iterable[Slices] = (),
    images: str | Path | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
    read: Reader | None = None,
    folder: str | Path | None = None,
    columns: str | Sequence[str] | None = None,
    command: str = "",
) -> str:
    """Render a report as one self-contained HTML page, or as the index of a folder.

    Parameters
    ----------
    report : Report
        The report to show.
    run : Run, optional
        The run of the report; needed for the images and the commands that
        make the page again.
    intervals : iterable of Intervals, optional
        Intervals to draw, one entry per metric; by default those of the
        report, else those over images if their counts were kept. Pass an empty
        list to draw none.
    imbalance : Imbalance, optional
        Explains pixel accuracy vs mean IoU; computed from the report by
        default.
    baseline : Comparison, optional
        Comparison of an earlier run (the first) with this one, shown below the verdict.
    outcomes : sequence of (str, bool)
        Thresholds in words, and whether each is passed.
    slices : iterable of Slices, optional
        Slices of the run, one entry per score; see :func:`segiou.slices`.
    images : str or path, optional
        Folder of photos to show under the masks, matched by name as in
        :func:`segiou.report.match_images`.
    examples : int
        Maximum number of images with pictures; the others are listed without.
    seed : int
        Seed for the images that are chosen at random.
    read : callable, optional
        Returns the content of a mask file by its path, for masks in an
        archive or at a remote path.
    folder : str or path, optional
        Folder of the page. The pictures of all images are written there, as
        files that the page loads when they become visible.
    columns : str or sequence of str, optional
        First columns of the class table, as in :meth:`segiou.Report.to_text`.
    command : str
        Command that writes this page, shown in it beside that of the run.

    Returns
    -------
    str
        The page. Masks are read from the paths that the run holds; the page
        reports missing ones.

    Raises
    ------
    FileNotFoundError
        If ``images`` is not a folder.
    ValueError
        If ``examples`` is negative.
    OSError
        If ``folder`` cannot be written.

    Examples
    --------
    >>> import segiou
    >>> run = segiou.score([[[0, 1], [1, 1]]], [[[0, 1], [1, 0]]], labels=["road", "car"])
    >>> page = render_report(run.report(), run=run)
    >>> page[:15], "Mean IoU" in page
    ('<!doctype html>', True)
    """
    from segiou.analysis.comparison.result import Comparison
    from segiou.analysis.gap.imbalance import Imbalance
    from segiou.inference.intervals import Intervals

    check_kind("report", report, Report, "a Report, as from run.report()")
    if run is not None:
        check_runs("render_report", (run,))
    if imbalance is not None:
        check_kind("imbalance", imbalance, Imbalance, "an Imbalance, as from segiou.explain")
    if baseline is not None:
        check_kind("baseline", baseline, Comparison, "a Comparison, as from segiou.compare")
    drawn = list(report.pixel_intervals.values())
    if intervals is not None:
        drawn = read_results("intervals", intervals, Intervals)
    steps = top_steps(report.next_steps)
    context = {
        **_verdict_context(report, imbalance, baseline),
        **_interval_context(report, drawn),
        **_class_context(report, columns),
        **_measure_context(report, run, sections_of(run, images=images, read=read)),
        **_dumbbells(report),
        **confusions(report),
        "steps": steps,
        "outcomes": read_several("outcomes", outcomes, "pairs of a sentence and whether it passed"),
        "sliced": read_slices(slices),
        "spread": distribution(report),
        **_worst_context(report),
    }
    return render_page(
        "report.html",
        context,
        (report,),
        () if run is None else (run,),
        ("prediction",),
        first=[*context["worst_ids"], *(id for step in steps for id in step.images)],
        seed=seed,
        command=command,
        images=images,
        examples=examples,
        read=read,
        folder=folder,
    )


def read_results(name: str, several: Any, kind: type) -> list[Any]:
    """Several results of a class as a list."""
    results = read_several(name, several, f"several results of the class {kind.__name__}")
    for result in results:
        check_kind(f"each of {name}", result, kind, f"of the class {kind.__name__}")
    return results


def read_slices(several: Any) -> list[Slices]:
    """Slices of a page as a list."""
    from segiou.analysis.slices.result import Slices

    return read_results("slices", several, Slices)


def _verdict_context(
    report: Report, imbalance: Imbalance | None, baseline: Comparison | None
) -> dict[str, Any]:
    """The title, the verdict, the change, and what pixel accuracy hides."""
    if imbalance is None and report.has_matrix:
        imbalance = report.imbalance
    # The first repeats the chart at the top, from pixel accuracy to mean IoU.
    sentences = [] if imbalance is None else imbalance.sentences()[1:]
    return {
        "dice_title": capital(dice_title(report)),
        "heading": report.title or "Segmentation",
        "verdict": report.verdict,
        "change": [] if baseline is None else baseline.pair_sentences(baseline.pairs[0])[:2],
        "protocol": report.protocol._description(report.unit),
        "skipped": skipped_text(report),
        "ignored": ignored_text(report),
        "sentences": sentences,
    }


def _interval_context(report: Report, drawn: Sequence[Intervals]) -> dict[str, Any]:
    """The ends of the intervals that are drawn, their method and cautions.

    Readers of a page have no options, which are advice for its author.
    """
    of_iou = next((intervals for intervals in drawn if intervals.metric == "iou"), None)
    cautions = [] if of_iou is None else of_iou.cautions()
    methods = [] if of_iou is None else other_methods(report)
    if of_iou is not None and not math.isnan(of_iou.overall.low):
        methods.insert(0, sentence(drawn[0].method_text()))
    return {
        "bounds": _bounds(report, drawn, of_iou),
        "advice": [*_background_advice(report), *(text for text in cautions if "--" in text)],
        "cautions": [] if of_iou is None else of_iou.cautions(options=False),
        "methods": methods,
    }


def _background_advice(report: Report) -> list[str]:
    """The option that leaves the background out, if it raises the mean."""
    share = report.background_share
    if share is None:
        return []
    return [f"To report the mean without {share.name}: --exclude {share.name}."]


def _class_context(report: Report, columns: str | Sequence[str] | None) -> dict[str, Any]:
    """The tables of classes and of groups: the chosen columns, then the usual ones."""
    usual, chosen = class_columns(), class_columns(columns, report.scores_by_name)
    every = chosen | {k: t for k, t in usual.items() if k not in chosen} | COUNTS
    table = report.class_table
    for name in chosen:
        column_of(table, name)
    terms = [*terms_of(every, report.scores_by_name, report.unit)]
    return {
        "columns": titled(table, every),
        "class_cell": partial(shown, table),
        "terms": terms,
        "explained": [name for name, *_ in terms],
        "groups": report.group_table,
        "group_columns": titled(report.group_table, usual) if report.group_table else (),
        "members": [[report.class_names[i] for i in members] for _, members in report.groups],
    }


def _worst_context(report: Report) -> dict[str, Any]:
    """The worst images, if they were asked for, and their ids."""
    worst = report.worst_images
    return {
        "worst": None if worst is None else worst_part(report, worst),
        "worst_title": "" if worst is None else worst_title(report, worst),
        "worst_ids": [] if worst is None else [row["id"] for row in worst.rows],
    }


def _measure_context(
    report: Report, run: Run | None, sections: Mapping[str, Section]
) -> dict[str, Any]:
    """The tables of the measures and of cases."""
    measured = [_measured(table, sections.get(table.key)) for table in report.tables]
    of_cases = report.unit == "voxels"
    return {
        "measured": measured,
        # Radiologists read Dice and distances first, and users of scores their curves.
        "first_measured": [part for part in measured if of_cases or part["curves"]],
        "of_cases": of_cases,
        "cases": _cases(report, run),
        **distance_boxes(report),
    }


def render_page(
    template: str,
    context: Mapping[str, Any],
    reports: Sequence[Report],
    runs: tuple[Run, ...],
    models: tuple[str, ...],
    *,
    examples: int,
    scores: ImageScores | None = None,
    first: Sequence[str] = (),
    seed: int = 0,
    command: str = "",
    **pictures: Any,
) -> str:
    """Render a page with the parts of all: images, ``first`` those to show, and commands.

    ``pictures`` are ``images``, ``read`` and ``folder``.
    """
    check_integer("examples", examples, 0)
    check_integer("seed", seed, 0)
    check_kind("command", command, str, "text")
    names = reports[0].class_names
    colors = class_colors(runs[0].labels if runs else LabelSet.from_names(names))
    texts = texts_of_cases(reports[0]) if len(reports) == 1 else {}
    scores = scores or ImageScores.of_iou(runs)
    table = image_table(runs, models, scores, texts, **pictures) if runs else None
    chosen = [] if table is None else choose(table, examples, first, seed)
    sliced, (pixel, image) = context.get("sliced", ()), nouns(reports[0].unit)
    context = {
        **context,
        **_makings(reports, runs, models, command),
        "slices": [sliced_part(slices) for slices in sliced],
        "report": reports[0],
        "class_names": names,
        "colors": [hex_color(color) for color in colors],
        "pixel": pixel,
        "image": image,
        "table": table,
        "shown": len(chosen),
        "advice": [*context.get("advice", ()), *_advice(table, len(chosen), image)],
    }
    data = _script_data(context, sliced, table) | {
        "images": None if table is None else table.payload(colors, chosen)
    }
    sections = [part["section"] for part in context.get("measured", ()) if part["section"]]
    return assemble(
        template, context, data, ([s for section in sections for s in section.styles], ())
    )


def _makings(
    reports: Sequence[Report], runs: tuple[Run, ...], models: tuple[str, ...], command: str
) -> dict[str, Any]:
    """How each report was made, the facts that all share, and every command once."""
    makings = [
        (model, making(report, run))
        for model, report, run in zip(models, reports, runs or (None,), strict=True)
    ]
    first_facts, *others = (details["facts"] for _, details in makings)
    commands = [("This page", command)]
    commands += [(model if others else "The run", details["command"]) for model, details in makings]
    titles: dict[str, str] = {}
    for title, text in commands:
        if text:
            titles.setdefault(text, title)
    return {
        "makings": makings,
        "commands": [(title, text) for text, title in titles.items()],
        "shared": [
            fact for fact in first_facts if others and all(fact in facts for facts in others)
        ],
    }


def _listed_groups(
    report: Report, sliced: Sequence[Slices], table: ImageTable | None
) -> dict[str, list[int]]:
    """The places of the listed images of each slice and of each caution, by its name."""
    place = {} if table is None else {id: i for i, id in enumerate(table.ids)}
    groups = {caution.title: caution.images for caution in report.image_cautions}
    if sliced and table is not None:
        groups = {row.name: sliced[0].images_in(row.name) for row in sliced[0]} | groups
    return {name: [place[id] for id in ids if id in place] for name, ids in groups.items()}


def _script_data(
    context: Mapping[str, Any], sliced: Sequence[Slices], table: ImageTable | None
) -> dict[str, Any]:
    """What the script of a page reads, without the images."""
    report = context["report"]
    return {
        "names": list(report.class_names),
        "unit": report.unit,
        "slices": _listed_groups(report, sliced, table),
        "confusion": context.get("matrix"),
        "curves": {
            part["name"]: [curve.to_dict() for curve in part["curves"]]
            for part in context.get("measured", ())
            if part["curves"]
        },
    }


def _advice(table: ImageTable | None, shown: int, image: str) -> list[str]:
    """Options for the pictures, for the author of a page."""
    if table is None:
        return []
    advice = [] if table.match is None else table.match.sentences(image)
    if table.folder is None and shown < len(table.ids):
        advice.append(
            f"To include the pictures of all {image}s, write to a folder: --html DIR/ or "
            "write_html('DIR/', …)."
        )
    return advice


def write_html(
    path: str | Path, report: Report, *, overwrite: bool = False, **options: Any
) -> Path:
    """Write the page of a report atomically.

    Parameters
    ----------
    path : str or path
        A file, or a folder (existing, or with a trailing slash) for a page
        ``index.html``, written last, with the pictures of all images in files
        next to it.
    report : Report
        The report to show.
    overwrite : bool
        Whether to replace files of the folder that segiou did not write there.
    **options
        As for :func:`render_report`.

    Raises
    ------
    FileExistsError
        If the folder has such a file, or a link in its place.
    """
    return write_page(path, partial(render_report, report, **options), overwrite=overwrite)


def write_page(path: str | Path, render: Callable[..., str], *, overwrite: bool) -> Path:
    """Write the result of ``render(folder=…)``: one file, or a folder with its index last."""
    check_flag("overwrite", overwrite)
    check_path("path", path)
    folder = Path(path).expanduser()
    if not str(path).endswith(("/", os.sep)) and not folder.is_dir():
        return write_whole(path, render(folder=None))
    out = OutputFolder(folder, overwrite=overwrite)
    out.checked("index.html")
    return out.write("index.html", render(folder=out))


def _bounds(report: Report, drawn: Sequence[Intervals], of_iou: Intervals | None) -> dict[str, Any]:
    """Lower and upper ends of scores and of the IoU of classes and groups, and notes on them."""
    classes = () if of_iou is None else of_iou.classes
    of_groups = report.group_table and column_of(report.group_table, "iou").limits
    groups = zip([name for name, _ in report.groups], of_groups or (), strict=False)
    overall = _ends((_OVERALL.get(i.metric, i.metric), i.overall) for i in drawn)
    return {
        "level": f"{100 * drawn[0].level:g}\N{NO-BREAK SPACE}%" if drawn else "",
        "units": "" if of_iou is None else of_iou.units_text,
        "overall": overall,
        "classes": _ends((c.name, c) for c in classes),
        "groups": {name: ends for name, ends in groups if ends is not None},
    }


def _measured(table: ScoreTable, section: Section | None) -> dict[str, Any]:
    """The section of a measure; if it has curves, the worst class comes first."""
    curves = table.curves()
    if curves:
        first = next(column for column in table.columns if not column.unit)
        order = np.argsort(first.values, kind="stable").tolist()
        places = {table.rows[row]: place for place, row in enumerate(order)}
        table = table.with_rows(order)
        curves = tuple(sorted(curves, key=lambda curve: places[curve.row]))
    about = {"name": table.key, "title": table.title, "about": table.about}
    return {**about, "scores": score_part(table), "curves": curves, "section": section}


def _ends(intervals: Iterable[tuple[str, Interval]]) -> dict[str, tuple[float, float]]:
    return {name: (i.low, i.high) for name, i in intervals if not np.isnan(i.low)}


def _dumbbells(report: Report) -> dict[str, Any]:
    """Classes whose recall and IoU are drawn, and the number left out because both are close."""
    drawn = [row for row in report.classes if not np.isnan(row.iou)]
    kept = sorted(drawn, key=lambda row: -abs(np.nan_to_num(row.recall - row.iou)))[:_DUMBBELLS]
    left = len(drawn) - len(kept)
    return {"dumbbells": sorted(kept, key=lambda row: -row.share), "dumbbells_left": left}


def distribution(report: Report) -> dict[str, Any] | None:
    """The distribution of mean IoU over images; None if their counts were not kept."""
    if (scores := report._image_means) is None:
        return None
    defined = np.sort(scores[~np.isnan(scores)])
    if not defined.size:
        return None
    mean = float(defined.mean())
    marks = [(f"mean over {report._nouns.image}s", "mean", mean)]
    if not np.isnan(report.mean_iou):
        marks.append(("data set", "dataset", report.mean_iou))
    return {
        **histogram(defined, _BINS, 0.0, 1.0),
        "mean": mean,
        "marks": marks,
        "lowest": min(value for _, _, value in marks),
        "median": float(np.median(defined)),
        "worst": float(worst_mean(defined, 10)),
        "best": float(defined[-1]),
        "below": int((defined < 0.5).sum()),
        "number": defined.size,
        "undefined": len(scores) - len(defined),
        "scores": defined.tolist() if defined.size <= _DRAWN else [],
    }


def histogram(values: Floats, number: int, low: float, high: float) -> dict[str, Any]:
    """Bins as (start, end, number), the last including its end; and the largest number of a bin."""
    counts, edges = np.histogram(values, number, (low, high))
    edges[-1] = np.nextafter(edges[-1], np.inf)
    bins = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return {"bins": tuple(bins), "most": int(counts.max())}


def _cases(report: Report, run: Run | None) -> dict[str, list[CaseTable]]:
    """Tables of images by structure for each table of a measure."""
    if run is None:
        return {}
    # Tables of measures come last, in the order of their plans.
    tables = report.tables[len(report.tables) - len(run.plans) :]
    pairs = zip(tables, run.plans, strict=True)
    return {table.key: case_tables(run, plan) for table, plan in pairs}
