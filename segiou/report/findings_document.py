"""Comparisons, rankings, explanations, inspections and lists as the parts of a document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from segiou._support.document import (
    GAP,
    TIE,
    Cell,
    Column,
    Facts,
    Line,
    Part,
    Section,
    Table,
    worded,
)
from segiou._support.files import problem_lines
from segiou._support.text import (
    count,
    p_text,
    percent,
    plural,
    points,
    see,
    shown,
    shown_change,
    shown_range,
    signed_points,
    unit_text,
)
from segiou.analysis import comparison_text
from segiou.analysis.units import plural_of
from segiou.measures.registry import flag_of
from segiou.report.wording import (
    cell,
    difference_cells,
    difference_head,
    influences,
    significant_text,
    tone_of,
    top_steps,
)

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, Difference, PairComparison
    from segiou.analysis.imbalance import Imbalance, ImbalanceDifference
    from segiou.analysis.ranking import Ranking
    from segiou.analysis.steps import NextStep
    from segiou.labels.label_set import LabelSet
    from segiou.measures.listing import ListedMeasure
    from segiou.scoring.inspection import Inspection
    from segiou.scoring.label_set_match import LabelSetMatch

#: Most classes of a change against a baseline.
_CHANGES = 10


def imbalance_parts(imbalance: Imbalance, steps: Sequence[NextStep] = ()) -> Iterator[Part]:
    """Next steps, findings, the split of the gap and the classes."""
    yield from (Line(str(s), lead=f"{n}. ") for n, s in enumerate(top_steps(steps), 1))
    yield from [GAP] if steps else []
    yield from map(Line, imbalance.sentences())
    yield from (GAP, Facts([*_split(imbalance)]), GAP)
    rows = sorted(imbalance.classes, key=lambda row: (math.isnan(row.gap_part), -row.gap_part))
    columns = (
        Column("class", [row.name for row in rows], 9, is_text=True),
        Column("share", [cell(row.share) for row in rows], 7),
        Column("recall", [cell(row.recall) for row in rows], 4),
        Column("IoU", [Cell(cell(row.iou), tone_of(row.iou)) for row in rows], 8),
        Column("accuracy loss", [_points(row.accuracy_cost) for row in rows], 2),
        Column("mean IoU loss", [_points(row.mean_iou_cost) for row in rows], 3),
        Column("gap points", [_points(row.gap_part) for row in rows], 5),
    )
    note = "loss: points that each score would drop if the model stopped finding the class"
    yield Table(columns, [note])


def imbalance_difference_parts(difference: ImbalanceDifference) -> Iterator[Part]:
    """Findings, both scores and each class's part of the two differences."""
    yield from map(Line, difference.sentences())
    a, b = difference.models
    names = [*difference.accuracy_parts]
    order = sorted(names, key=lambda name: -abs(difference.mean_iou_parts.get(name) or 0.0))
    heads = [f"{name} recall" for name in difference.names]
    recalls = [{row.name: row.recall for row in model.classes} for model in (a, b)]
    shares = {row.name: row.share for row in a.classes}
    columns = (
        Column("class", ["all classes", *order], 9, is_text=True),
        Column("share", ["", *(cell(shares[name]) for name in order)], 7),
        Column(heads[0], [cell(a.mean_accuracy), *(cell(recalls[0][n]) for n in order)], 4),
        Column(heads[1], [cell(b.mean_accuracy), *(cell(recalls[1][n]) for n in order)], 5),
        _parts_of("accuracy", difference.accuracy_difference, difference.accuracy_parts, order, 6),
        _parts_of("mean IoU", difference.mean_iou_difference, difference.mean_iou_parts, order, 8),
    )
    note = f"accuracy, mean IoU: {difference.names[1]} minus {difference.names[0]}, in points"
    yield from (GAP, Table(columns, [note], first=1))


def _parts_of(
    head: str, whole: float, parts: Mapping[str, float], order: Sequence[str], rank: int
) -> Column:
    values = [whole, *(parts.get(name, math.nan) for name in order)]
    return Column(head, ["–" if math.isnan(x) else signed_points(x) for x in values], rank)


def _split(imbalance: Imbalance) -> Iterator[tuple[str, str, str]]:
    yield "pixel accuracy", cell(imbalance.pixel_accuracy), ""
    for name, score, lost, why in (
        ("mean accuracy", imbalance.mean_accuracy, imbalance.gap_imbalance, "imbalance"),
        ("mean IoU", imbalance.mean_iou, imbalance.gap_false_positives, "false positives"),
    ):
        yield name, cell(score), f"{signed_points(-lost)} points: {why}"
    for name, base in (
        ("majority baseline", imbalance.majority),
        ("random baseline", imbalance.random),
    ):
        yield name, cell(base.mean_iou), f"mean IoU; pixel accuracy {cell(base.pixel_accuracy)}"


def _points(value: float) -> str:
    return "–" if math.isnan(value) else points(value)


def comparison_parts(comparison: Comparison) -> Iterator[Part]:
    """Verdicts, evidence, classes, images (of volumes, cases) and the method of a comparison."""
    return worded(_comparison_parts(comparison), comparison._pixel_unit)


def _comparison_parts(comparison: Comparison) -> Iterator[Part]:
    if comparison.stability is not None:
        yield from ranking_parts(comparison.stability)
    method: dict[str, None] = {}
    for pair in comparison.ordered_pairs:
        yield from pair_parts(comparison, pair)
        yield GAP
        if pair.images_differing:
            yield from _details(comparison, pair)
            method |= dict.fromkeys(comparison_text.method(comparison, pair))
    # The method of all pairs comes first, then the power of each pair.
    ordered = sorted(method, key=lambda line: line.startswith("Power ("))
    yield from [Section("Method", [Line(text, "dim") for text in ordered])] if method else []


def side_by_side_parts(comparisons: Sequence[Comparison]) -> Iterator[Part]:
    """The verdicts by several scores, and a table of the classes for each pair of models."""
    return worded(_side_by_side_parts(comparisons), comparisons[0]._pixel_unit)


def _side_by_side_parts(comparisons: Sequence[Comparison]) -> Iterator[Part]:
    for first in comparisons[0].ordered_pairs:
        each = [(one, _same_pair(one, first)) for one in comparisons]
        for one, pair in each:
            yield from pair_parts(one, pair)
        rows = dict.fromkeys(row.name for _, pair in each for row in pair.classes)
        columns = [column for one, pair in each for column in _of_score(one, pair, rows)]
        names = Column("class", ["all classes", *rows], 9, is_text=True)
        alpha = f"{1 - comparisons[0].level:.3g}"
        notes = [f"* interval excludes 0 and p < {alpha}, adjusted over the classes of each score"]
        yield from (GAP, Table([names, *columns], notes, first=1, split=True), GAP)


def _same_pair(comparison: Comparison, pair: PairComparison) -> PairComparison:
    return next(one for one in comparison.pairs if (one.a, one.b) == (pair.a, pair.b))


def _of_score(
    comparison: Comparison, pair: PairComparison, classes: Iterable[str]
) -> Iterator[Column]:
    """Both models' values of a score, and the difference."""
    by_class = {row.name: row for row in pair.classes}
    unit = comparison.score_unit
    rows = [pair.overall, *(by_class.get(name) for name in classes)]
    title = comparison_text.score_title(pair)
    for name, values in ((pair.a, "a"), (pair.b, "b")):
        cells = ["" if row is None else shown(getattr(row, values), unit) for row in rows]
        yield Column(f"{title}, {name}", cells, 8)
    yield Column(
        f"{difference_head(pair, unit)}{TIE * 2}", [_marked(comparison, row) for row in rows], 8
    )


def pair_parts(comparison: Comparison, pair: PairComparison) -> Iterator[Line]:
    """Verdict, evidence and caution of a pair."""
    first, *others = comparison.pair_sentences(pair)
    yield Line(first, "bold")
    yield from (Line(text, "yellow" if text.startswith("Caution:") else "") for text in others)


def _details(comparison: Comparison, pair: PairComparison) -> Iterator[Section]:
    """Classes, why pixel accuracy disagrees, and the most influential images."""
    if pair.classes:
        notes = [comparison_text.contributions(comparison, pair)]
        if any(row.differs(comparison.level) for row in (pair.overall, *pair.classes)):
            alpha = f"{1 - comparison.level:.3g}"
            notes.insert(0, f"* interval excludes 0 and Holm-adjusted p < {alpha}")
        rows, unit = (pair.overall, *pair.classes), comparison.score_unit
        table = Table([*_differences(comparison, pair, rows, unit)], notes, first=1)
        title = f"Classes ({significant_text(comparison, pair)})"
        yield Section(title, [table], shown=len(comparison.pairs) == 1)
    if pair.imbalance.disagree:
        reasons = " ".join([*pair.imbalance.sentences(), see("imbalance")])
        yield Section("Why pixel accuracy disagrees", [Line(reasons), GAP])
    if moved := influences(pair):
        unit = comparison.score_unit
        of_effect = f"effect ({text})" if (text := unit_text(unit or "points")) else "effect"
        columns = (
            Column("image", [image.id for image, _ in moved], 9, is_text=True),
            Column("shifts toward", [name for _, name in moved], 6, is_text=True),
            Column(of_effect, [shown_change(i.effect, unit) for i, _ in moved], 8),
            Column(pair.a, [shown(image.a, unit) for image, _ in moved], 5),
            Column(pair.b, [shown(image.b, unit) for image, _ in moved], 4),
        )
        yield Section("Most influential images", [Table(columns)])


def _best(text: str, ahead: float) -> Cell:
    """A score, in bold if it is ahead of the other model's."""
    return Cell(text, "bold" if ahead > 0 else "")


def _marked(comparison: Comparison, row: Difference | None) -> Cell:
    """A difference, with a star if it is significant."""
    delta = "" if row is None else shown_change(row.delta, comparison.score_unit)
    if row is None or not row.differs(comparison.level):
        return Cell(f"{delta}{TIE * 2}")
    return Cell(
        f"{delta}{TIE}*", "green" if (row.delta > 0) == (comparison.better == "higher") else "red"
    )


def _differences(
    comparison: Comparison, pair: PairComparison, rows: Sequence[Difference], unit: str
) -> Iterator[Column]:
    names, first, second, _, intervals = zip(
        *(difference_cells(row, unit) for row in rows), strict=True
    )
    marked = [_marked(comparison, row) for row in rows]
    sign = 1 if comparison.better == "higher" else -1
    ahead = [sign * row.delta for row in rows]
    yield Column("class", names, 9, is_text=True)
    yield Column(pair.a, [_best(text, -by) for text, by in zip(first, ahead, strict=True)], 6)
    yield Column(pair.b, [_best(text, by) for text, by in zip(second, ahead, strict=True)], 5)
    yield Column(f"{difference_head(pair, unit)}{TIE * 2}", marked, 8)
    yield Column("interval", intervals, 7)
    yield Column("p (Holm)", [p_text(row.p_holm) for row in rows], 3)
    yield Column(plural_of(comparison.unit), [str(row.units) for row in rows], 1)


def change_table(change: Comparison) -> Iterator[Part]:
    """The change against a baseline: of the mean, and of the classes that changed most."""
    pair = change.pairs[0]
    yield from pair_parts(change, pair)
    moved = sorted((row for row in pair.classes if row.delta), key=lambda row: -abs(row.delta))
    rows = (pair.overall, *moved[:_CHANGES])
    note = "* significant by both the interval and the Holm-adjusted test"
    if more := len(pair.classes) - len(rows) + 1:
        note += f"; {plural(more, 'class', 'classes')} with smaller or no change not shown"
    yield from (GAP, Table([*_differences(change, pair, rows, "")][:5], [note], first=1))


def ranking_parts(ranking: Ranking) -> Iterator[Part]:
    """A ranking and its stability."""
    rows, unit = ranking.models, ranking.score_unit
    columns = (
        Column("rank", [f"{row.rank:g}" for row in rows], 7),
        Column("model", [row.name for row in rows], 9, is_text=True),
        Column(ranking.value_name, [_best(shown(r.value, unit), r.rank == 1) for r in rows], 8),
        Column("interval", [shown_range(row.low, row.high, unit) for row in rows], 4),
        Column("P(best)", [cell(row.best) if ranking.is_resampled else "–" for row in rows], 6),
        Column(ranking.sets_name, [row.possible_ranks for row in rows], 5),
    )
    section = Section("Ranking", [Table(columns, ranking.sentences())], shown=True)
    yield from worded([section], ranking._pixel_unit)


_SHOWN = 40
_OF_VOLUMES = "nnU-Net's dataset.json also works: --labels dataset.json"
_OWN_PROPOSAL = "To write a label set with these names, use --propose FILE."
_OWN_SET = "To start your own, edit a preset: segiou labelsets NAME > mine.toml"


def inspection_parts(inspection: Inspection) -> Iterator[Part]:
    """Values, sizes and problems of the masks of a folder."""
    facts = _file_facts(inspection)
    width = max(8, *(len(name) + 1 for name, _ in facts), 0)
    yield from (Line(text, lead=f"{name:<{width}}") for name, text in facts)
    yield from [GAP] if inspection.files else []
    yield from _pixel_tables(inspection)
    yield from _fits(inspection)
    if inspection.pred is not None and inspection.pred.files:
        yield from (GAP, Line("Values in the predictions:"), GAP)
        yield from _pixel_tables(replace(inspection.pred, fits=inspection.fits))
    for side, lead in ((inspection, ""), (inspection.pred, " in the predictions")):
        for text in () if side is None else side.suspicions:
            yield Line(f"suspicious{lead}: {text}", "yellow")
    yield from (Line(f"unreadable: {line}", "red") for line in inspection.problem_lines)
    yield from (
        Line(f"mismatch: {line}", "red") for line in problem_lines(inspection.disagreements)
    )


def _pixel_tables(inspection: Inspection) -> Iterator[Table]:
    tables: Any = {
        "value": inspection.values,
        "colour": inspection.colors,
        "name": inspection.names,
    }
    yield from (Table(_pixel_columns(inspection, *item)) for item in tables.items() if item[1])


def _file_facts(inspection: Inspection) -> list[tuple[str, str]]:
    counted = {
        "format": inspection.kinds,
        "mode": inspection.modes,
        "dtype": inspection.dtypes,
        "size": {size.replace("x", " × "): n for size, n in inspection.sizes.items()},
        "spacing": inspection.spacings,
        "orientation": inspection.orientations,
    }
    facts = [(name, _listed(numbers)) for name, numbers in counted.items() if numbers]
    if inspection.pairs:
        compared = "size, spacing, affine and orientation" if inspection.spacings else "size"
        same = f", all with the same {compared}"
        if inspection.disagreements or inspection.problems:
            same = ""
        facts.append(("pairs", f"{inspection.pairs}{same}"))
    return [("files", str(inspection.files)), *facts] if inspection.files else []


def _listed(counted: Mapping[str, int]) -> str:
    shown = [f"{name} ({n})" if len(counted) > 1 else name for name, n in list(counted.items())[:6]]
    return ", ".join(shown) + (f" and {len(counted) - 6} more" if len(counted) > 6 else "")


def _pixel_columns(inspection: Inspection, head: str, pixels: Mapping[Any, int]) -> list[Column]:
    """The most frequent values, colours or names, with shares and class names."""
    kept, total = list(pixels)[:_SHOWN], sum(pixels.values())
    more = len(pixels) - len(kept)

    def column(
        head: str, cells: Iterable[str | Cell], rank: int, rest: str = "", **options: Any
    ) -> Column:
        return Column(head, [*cells, *([rest] if more else [])], rank, **options)

    names = [Cell(f"■ {name}", name) if head == "colour" else str(name) for name in kept]
    unit = _unit(inspection) if head == "value" else "pixels"
    columns = [
        column(head, names, 9, "…"),
        column("share", [percent(pixels[name] / total) for name in kept], 7),
        column(unit, [count(pixels[name]) for name in kept], 4, f"{count(more)} more"),
    ]
    if head == "value":
        columns.append(column("files", [str(inspection.value_files[value]) for value in kept], 5))
    # Class names of the best match, or of the only label set that was asked for.
    fit = next(
        iter(inspection.fitting or (inspection.fits if len(inspection.fits) == 1 else ())), None
    )
    if fit is not None and head != "name":
        title = f"{'in' if fit.undeclared else 'fits'} {fit.name}" if fit.is_named else "class"
        meanings = [Cell(fit.meanings.get(name, "–"), "dim") for name in kept]
        columns.append(column(title, meanings, 8, is_text=True))
    return columns


def _unit(inspection: Inspection) -> str:
    return "voxels" if inspection.spacings else "pixels"


def _subject(fit: LabelSetMatch) -> str:
    return f"Label set {fit.name}" if fit.is_named else "The label set"


def _fits(inspection: Inspection) -> Iterator[Line]:
    from segiou.scoring.label_set_match import LISTED

    if inspection.proposal:
        yield from (Line("The values match:"), Line(inspection.proposal, lead="  "))
    if inspection.fitting and len(inspection.fits) == 1:
        yield Line(f"{_subject(inspection.fits[0])} matches: {inspection.fits[0].occurring}.")
    elif inspection.fitting:
        yield Line("Label sets that cover every value, best match first:")
        yield from (Line(str(fit), lead="  ") for fit in inspection.fitting[:LISTED])
        if others := len(inspection.fitting[LISTED:]):
            yield Line(f"and {others} more with few matching classes.")
        if len(inspection.fitting) > 1:
            means = "The same value means a different class in each set"
            yield from (Line(f"{means}: pick the one your masks use."), Line(_OWN_SET))
    elif inspection.fits:
        closest = inspection.fits[0]
        pixels = plural(closest.undeclared, _unit(inspection).removesuffix("s"))
        if len(inspection.fits) == 1:
            have = "has" if closest.undeclared == 1 else "have"
            lacks = f"{pixels} {have} undeclared values"
            yield Line(f"{_subject(closest)} does not match: {lacks}.")
        else:
            leaves = f"which leaves {pixels} undefined"
            yield Line(f"No label set matches. Closest: {closest.name}, {leaves}.")
        yield Line(_OWN_SET)
    elif inspection.files and not inspection.has_ids:
        yield Line("No preset defines any of these values.")
        yield Line(_OWN_PROPOSAL if inspection.names else _OWN_SET)
    if inspection.spacings:
        yield Line(_OF_VOLUMES)


def labelsets_parts(sets: Sequence[LabelSet]) -> list[Part]:
    """A list of label sets."""
    columns = (
        Column("label set", [labels.name for labels in sets], 9, is_text=True),
        Column("classes", [str(labels.num_classes) for labels in sets], 1),
        Column("title", [labels.title for labels in sets], 2, is_text=True),
    )
    hint = "To customise a set: segiou labelsets NAME > FILE.toml, edit it, then --labels FILE.toml"
    return [Table(columns), Line(hint, "dim")]


def measures_parts(listed: Sequence[ListedMeasure], *, detail: bool = False) -> Iterator[Part]:
    """A list of measures: about each, its scores and its options; in detail, its documentation."""
    for one in listed:
        columns = (
            Column("score", [score.name for score in one.scores], 9, is_text=True),
            Column("title", [score.title for score in one.scores], 4, is_text=True),
            Column("unit", [score.unit or "ratio" for score in one.scores], 5, is_text=True),
            Column("better", [score.better for score in one.scores], 7, is_text=True),
        )
        options = ", ".join(f"{name}={value}" for name, value in one.options.items())
        chosen = Line(f"options: {options}" if options else "no options", "dim")
        parts: list[Part] = [Line(one.about), Table(columns), chosen, GAP]
        if detail:
            texts = one.details.split("\n")[1:]
            parts += [*map(Line, texts), GAP, Line(f"defined by {one.source} ({one.package})")]
        yield Section(f"{one.key} ({flag_of(one.key)})", parts, shown=True)
    yield Line("To measure one: segiou score … OPTION, or measures=[KEY] in Python", "dim")
