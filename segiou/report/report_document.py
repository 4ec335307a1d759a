"""A report as the parts of a document, for terminals, Markdown, LaTeX and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from segiou._support import __version__
from segiou._support.numbers import (
    COEFFICIENT,
    cell,
    cell_range,
    count,
    interval_name,
    percent,
    points,
    shown_range,
    tone_of,
)
from segiou._support.text import called, capital, listed, plural
from segiou.analysis.gap.steps import top_steps
from segiou.document.notebook import NAME
from segiou.document.parts import GAP, TIE, Cell, Column, Facts, Html, Line, Part, Section, Table
from segiou.inference.scored_runs import clusters_of
from segiou.labels.label_set import background_of
from segiou.measures.score import overall_of
from segiou.metrics.overall import pixel_accuracy
from segiou.metrics.quantile import quantile
from segiou.metrics.ratio import ratio
from segiou.report.class_table import OF_PIXELS, ClassColumns, is_map, rank_of, rows_of, titled
from segiou.report.measured import score_part, shown as shown_cell
from segiou.report.wording import (
    counts_text,
    interval_text,
    lacks,
    other_methods,
    share_text,
    skipped_text,
    worst_score,
)

if TYPE_CHECKING:
    from segiou.analysis.comparison.result import Comparison
    from segiou.measures.score_table import ScoreTable
    from segiou.measures.score_values import ScoreValues
    from segiou.report.class_table import ClassRow
    from segiou.report.report import Report
    from segiou.report.report_numbers import WorstImages

_BAR_CELLS = 16
_ABSENT_SHOWN = 8
_MATRIX_SHOWN = 32
_IMAGES_SHOWN = 100
_NAMED = 5
#: Protocols of tools that exclude the background.
_FOREGROUND = ("nnunet", "totalsegmentator", "flare22")
#: Percentage of images in worst-case means.
_WORST = 10


def report_parts(
    report: Report,
    classes: ScoreTable,
    columns: ClassColumns,
    *,
    detail: bool = False,
    outcomes: Sequence[tuple[str, bool]] = (),
    change: Comparison | None = None,
    means: bool = False,
    python: bool = False,
) -> Iterator[Part]:
    """Verdict, scores, thresholds and change, classes, measures, images, and how it was counted."""
    yield from [Line(report.title, "title")] if report.title else []
    yield from (Line(report.verdict, "lead"), GAP)
    yield Facts([*_headline(report, detail=detail, of_map=is_map(columns), python=python)])
    intervals = report.intervals_or_default
    if intervals is not None and (caution := intervals.caution()) is not None:
        yield Line(f"Caution: {caution.in_python if python else caution}", "yellow")
    yield GAP
    if outcomes:
        yield _outcome_table(outcomes)
    if change is not None:
        from segiou.analysis.comparison.document import change_table

        yield from change_table(change)
    steps = [Line(str(step), lead="• ") for step in top_steps(report.next_steps)]
    yield Section("Costliest errors", steps, only_notebook=True)
    shown, total = change is None, plural(len(report.class_names), "class", "classes")
    tables = [*_class_tables(report, classes, columns, means=means)]
    yield Section(total if shown else "All class scores", tables, shown, headed=False)
    yield Section(f"{capital(report._nouns.image)}s", [*_images(report)], only_notebook=True)
    for table in report.tables:
        yield Section(table.title, [score_part(table)], shown, headed=False)
    if (worst := report.worst_images) is not None:
        yield Section(worst_title(report, worst), [worst_part(report, worst)], shown, headed=False)
    yield Section("Confusion matrix (row percentages)", [*_matrix(report)], only_notebook=True)
    yield from (Line(text, "dim") for text in _footer(report, detail=detail))
    if report.intervals is not None:
        lines = [*report.intervals.interval_method(), *other_methods(report)]
        lines += report.intervals.class_cautions()
        yield from (GAP, Section("Interval method", [Line(text) for text in lines]))


def _outcome_table(outcomes: Sequence[tuple[str, bool]]) -> Table:
    """Which thresholds were met."""
    texts, results = zip(*outcomes, strict=True)
    passed = ["passed" if good else Cell("failed", "bold") for good in results]
    threshold = Column("threshold", texts, 1, is_text=True)
    return Table((threshold, Column("outcome", passed, 0, is_text=True)))


def _headline(
    report: Report, *, detail: bool, of_map: bool, python: bool
) -> Iterator[tuple[str, str, str]]:
    """Scores of the data set, with explanations."""
    pixel = report._nouns.pixel
    intervals = report.intervals_or_default
    total = plural(len(report.class_names), "class", "classes")
    about = f"{report.mean_iou_classes} of {total}"
    mean = about if intervals is None else interval_text(intervals)
    yield "mean IoU", cell(report.mean_iou), mean
    if (share := report.background_share) is not None:
        option = (f"--exclude {share.name}", f"exclude={share.name!r}")[python]
        beside = f"{share.name} alone has {cell(share.iou)}; to average without it, pass {option}"
        yield f"  without {share.name}", cell(share.mean_without), beside
    if report.unit == "voxels":
        yield dice_title(report), cell(report.mean_dice), "mean over the same classes"
    accuracy_name = "overall accuracy" if of_map else f"{pixel} accuracy"
    beside = f"{_given_interval(report, 'pixel_accuracy')}{_gap_text(report)}"
    yield accuracy_name, cell(report.pixel_accuracy), beside
    if of_map:
        yield "kappa", cell(report.cohen_kappa, COEFFICIENT), ""
    if detail:
        beside = f"{_given_interval(report, 'recall')}mean per-class recall"
        yield "mean accuracy", cell(report.mean_accuracy), beside
    majority = report.majority
    always = f"always predicting {called(str(majority['class']))}"
    about = f"{always}; {pixel} accuracy {cell(majority['pixel_accuracy'])}"
    yield "majority baseline", cell(majority["mean_iou"]), about
    if detail:
        yield from _means_over_images(report)


def dice_title(report: Report) -> str:
    """The name of mean Dice; it differs for volumes, whose reports have other means as well."""
    if report.unit != "voxels" or report.protocol.needs_images:
        return "mean Dice"
    name = background_of(report.class_names)
    is_in = name is not None and report.include[report.class_names.index(name)]
    return f"pooled Dice with {name}" if is_in else "pooled Dice"


def _given_interval(report: Report, name: str) -> str:
    """The interval of a score of pixels before other text, if intervals were given."""
    interval = None if report.intervals is None else report.pixel_intervals.get(name)
    if interval is None or math.isnan(interval.overall.low):
        return ""
    limits = shown_range(interval.overall.low, interval.overall.high)
    return f"{interval_name(interval.level)} {limits}; "


def _gap_text(report: Report) -> str:
    """The gap between pixel accuracy and mean IoU, with its two parts."""
    gap = report.gap
    if gap != gap:
        return ""
    if not gap:
        return "equal to mean IoU"
    text = f"{points(abs(gap))} points {'above' if gap >= 0 else 'below'} mean IoU"
    if not report.has_matrix:
        return text
    imbalance = report.pixel_accuracy - report.mean_accuracy
    false_positives = report.mean_accuracy - report.mean_iou
    parts = f"{points(imbalance)} from class imbalance, {points(false_positives)} from"
    return f"{text}: {parts} false positives"


def worst_title(report: Report, worst: WorstImages) -> str:
    """Heading of the worst images."""
    return f"Worst {report._nouns.image}s by {_score_title(report, worst.by)}"


def _score_title(report: Report, by: str) -> str:
    """The title of a score by its name, such as ``mean_iou`` or ``dice:tumour``."""
    name, _, row = by.partition(":")
    score = report.scores_by_name.get(name.removeprefix("mean_"))
    title = name.replace("_", " ") if score is None else score.title
    title = f"mean {title}" if score is not None and name.startswith("mean_") else title
    return f"{title}, {row}" if row else title


def worst_part(report: Report, worst: WorstImages) -> Table:
    """The worst images and their scores."""
    names = [row["id"] for row in worst.rows] or ["none"]
    scores = [worst_score(report, row, worst.by) for row in worst.rows] or ["–"]
    columns = [
        Column(f"worst {report._nouns.image}s", names, 1, is_text=True, is_id=True),
        Column(_score_title(report, worst.by), scores, 0),
    ]
    notes = [str(row.get("note", "")) for row in worst.rows]
    if any(notes):
        columns.append(Column("note", notes, 2, is_text=True))
    return Table(columns)


def _means_over_images(report: Report) -> Iterator[tuple[str, str, str]]:
    means = report.image_level_means
    if means is None or means.images < 2:
        return
    image = report._nouns.image
    worst = f"  worst {_WORST} % of {image}s"
    about = f"per-{image} mean IoU (classes in the {image}'s truth), averaged over {image}s"
    yield f"{image}-wise mean IoU (I)", cell(means.image), about
    yield worst, cell(means.worst_image[_WORST]), _worst_interval(report)
    per_class = f"per-class mean IoU ({image}s that contain the class), averaged over classes"
    yield "class-wise mean IoU (C)", cell(means.class_mean), per_class
    yield worst, cell(means.worst_class[_WORST]), f"each class's lowest-scoring {image}s"


def _worst_interval(report: Report) -> str:
    ends, intervals = report.worst_image_intervals.get(_WORST), report.intervals_or_default
    if ends is None or intervals is None:
        return ""
    return f"{interval_name(intervals.level)} {shown_range(*ends)}"


def _class_tables(
    report: Report, table: ScoreTable, columns: ClassColumns, *, means: bool
) -> Iterator[Table]:
    kept = [i for i, row in enumerate(rows_of(table)) if row.status != "absent"]
    absent = len(table.rows) - len(kept)
    note = ""
    if absent > _ABSENT_SHOWN:
        table, note = table.with_rows(kept), f"{absent} absent classes not shown"
    yield Table([*_class_columns(report, table, columns, means)], [note], last=int(means))
    groups = report.group_table
    if groups is not None and titled(groups, columns):
        yield Table([*_class_columns(report, groups, columns, means=False)])


def _class_columns(
    report: Report, table: ScoreTable, columns: ClassColumns, means: bool
) -> Iterator[Column]:
    rows, last = rows_of(table), [""] * means
    chosen = titled(table, columns)
    whole = overall_of(column.overall for _, column in chosen)
    yield Column(table.of, [*table.rows, *[whole] * means], 9, is_text=True)
    for i, (title, column) in enumerate(chosen):
        cells = [shown_cell(table, column, at) for at in range(len(rows) + means)]
        if i == 0 and not column.unit:
            tones = [*map(tone_of, column.values), *last]
            yield Column(title, [*map(Cell, cells, tones)], 8, score=column.name)
        else:
            yield Column(title, cells, rank_of(column.name), score=column.name)
    yield from _interval_columns(chosen, len(rows) + means)
    bars = [Cell(_bar(row.iou), tone_of(row.iou), row.iou) for row in rows]
    yield Column("", [*bars, *last], 1, is_text=True)
    yield _notes(report, table.of, rows, last)


def _interval_columns(chosen: Sequence[tuple[str, ScoreValues]], number: int) -> Iterator[Column]:
    """The intervals of the first score of pixels, and of all others; JSON and CSV have all."""
    known = [(title, column) for title, column in chosen if column.limits]
    of_pixels = [column.name for _, column in known if column.name in OF_PIXELS]
    for title, column in known:
        if column.name not in of_pixels[1:]:
            limits = column.limits[:number]
            ranges = [cell_range(ends, column.unit, column.digits) for ends in limits]
            head = f"{title}, {interval_name(column.level)}"
            yield Column(head, ranges, 7, score=column.name)


def _notes(report: Report, kind: str, rows: Sequence[ClassRow], last: list[str]) -> Column:
    """Remarks on each class."""
    kept = dict(zip(report.class_names, report.include, strict=True)) if kind == "class" else {}
    excluded = {name for name, is_kept in kept.items() if not is_kept}
    notes = [row.status or ("excluded from mean" if row.name in excluded else "") for row in rows]
    never = [row.name for row in report.classes if row.status == "never predicted"]
    otherwise = f"never predicted: {', '.join(never)}" if never and kept else ""
    cells = [Cell(note.replace(" ", TIE), "dim") for note in notes]
    return Column("note", [*cells, *last], 2, is_text=True, otherwise=otherwise)


def _bar(value: float) -> str:
    if value != value:
        return ""
    full, rest = divmod(round(value * _BAR_CELLS * 8), 8)
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def _images(report: Report) -> Iterator[Part]:
    """The images with the lowest means; none without per-image counts."""
    scores = report._image_means
    if report.per_image is None or scores is None or not report.ids:
        return
    defined = scores[~np.isnan(scores)]
    if not defined.size:
        return
    lowest = np.argsort(scores, kind="stable")[:_IMAGES_SHOWN].tolist()
    accuracies = pixel_accuracy(report.per_image)
    median = float(quantile(np.sort(defined), 0.5))  # np.median would load numpy.ma
    number, (pixel, image) = len(scores), report._nouns
    yield Line(
        f"{plural(number, image)}: mean IoU from {cell(float(defined.min()))} to "
        f"{cell(float(defined.max()))}, median {cell(median)}"
    )
    columns = (
        Column(image, [report.ids[i] for i in lowest], 2, is_text=True, is_id=True),
        Column("mean IoU", [Cell(cell(scores[i]), "bold") for i in lowest], 1),
        Column(f"{pixel} accuracy", [cell(accuracies[i]) for i in lowest], 0),
    )
    cut = f"the {len(lowest)} lowest-scoring of {number} {image}s" if len(lowest) < number else ""
    yield Table(columns, [cut])


def _matrix(report: Report) -> Iterator[Html]:
    """The confusion matrix in row percentages, unless it is too large."""
    if len(report.class_names) > _MATRIX_SHOWN or not report.has_matrix:
        return
    truth = report.matrix.sum(1) + report.unassigned
    shares = np.nan_to_num(ratio(report.matrix, truth[:, None])).tolist()
    names = [escape(name) for name in report.class_names]
    upright = 'style="writing-mode:vertical-rl;transform:rotate(180deg);text-align:left"'
    heads = "".join(f"<th><span {upright}>{name}</span></th>" for name in names)
    rows = "".join(
        f'<tr><th style="{NAME}">{name}</th>{"".join(map(_share, row))}</tr>'
        for name, row in zip(names, shares, strict=True)
    )
    yield Html(
        '<div style="overflow:auto"><table style="border-collapse:collapse">'
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _share(share: float) -> str:
    text = escape(share_text(share)) if share else ""
    return (
        '<td style="text-align:right;padding:.1em .4em;min-width:2.2em;'
        f'background:rgba(66,133,200,{0.6 * math.sqrt(share):.2f})">{text}</td>'
    )


def _footer(report: Report, *, detail: bool) -> Iterable[str]:
    image = report._nouns.image
    yield f"protocol {report.protocol.name}: {report.protocol._description(report.unit)}"
    if report.protocol.needs_images:
        pooled = f"groups, shares and counts pool {report.unit} over all {image}s"
        yield f"class scores are averaged over {image}s, as the protocol averages them; {pooled}"
    if report.protocol.name in _FOREGROUND and report.include[0]:
        first = report.class_names[0]
        excludes = f"which this protocol excludes; use --exclude {first}"
        yield f"the mean includes {first}, {excludes}"
    if clusters := clusters_of(report.provenance):
        yield f"clusters: {clusters}"
    if report.unassigned.any():
        missed = f"{count(int(report.unassigned.sum()))} {report.unit}"
        yield f"predictions outside all classes, counted as missed: {missed}"
    if dropped := report.ignored_predictions:
        share = percent(dropped / max(1, dropped + int(report.tally.valid.sum())))
        missed = percent(report.mean_iou_if_missed)
        yield (
            f"predictions outside all classes, ignored under this protocol: {count(dropped)} "
            f"{report.unit} ({share}); counted as missed, mean IoU would be {missed}"
        )
    if report.iou_mean.skipped:
        yield f"excluded from the mean: {skipped_text(report)}"
    if detail:
        yield from _not_in_their_truth(report)
    yield from lacks(report)
    yield f"{counts_text(report)}; segiou {__version__} ({report.backend})"


def _not_in_their_truth(report: Report) -> list[str]:
    """False positives in images without the class, which means over images ignore."""
    means = report.image_level_means
    if means is None or means.images < 2 or not means.false_positive_images.any():
        return []
    numbers = zip(means.false_positive_images.tolist(), report.class_names, strict=True)
    most = sorted(((n, name) for n, name in numbers if n), key=lambda item: -item[0])
    first, *others = [f"{name} in {n}" for n, name in most]
    image = report._nouns.image
    classes = listed([f"{first} {image if most[0][0] == 1 else f'{image}s'}", *others], _NAMED)
    ignored = f"false positives that I and C ignore (class absent from the {image}'s truth)"
    return [f"{ignored}: {classes}"]
