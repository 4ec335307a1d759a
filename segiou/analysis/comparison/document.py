"""Comparisons and rankings as the parts of a document."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from segiou._support.numbers import change_range, p_text, shown, shown_change, unit_text
from segiou._support.text import plural, see
from segiou.analysis.comparison import text as comparison_text
from segiou.analysis.comparison.text import difference_head, influences, significant_text
from segiou.document.parts import GAP, TIE, Cell, Column, Line, Part, Section, Table

if TYPE_CHECKING:
    from segiou.analysis.comparison.result import Comparison, Difference, PairComparison

#: Most classes of a change against a baseline.
_CHANGES = 10


def comparison_parts(comparison: Comparison) -> Iterator[Part]:
    """Verdicts, evidence, classes, images (of volumes, cases) and the method of a comparison."""
    if comparison.stability is not None:
        yield from comparison.stability._parts()
    if len(comparison.names) > 2:
        yield from (_models(comparison), GAP)
    for pair in comparison.ordered_pairs:
        yield from pair_parts(comparison, pair)
        yield GAP
        if pair.images_differing:
            yield from _details(comparison, pair)
            yield from _influential(comparison, pair)
    yield from _method(comparison)


def chosen_parts(comparison: Comparison, names: Iterable[str]) -> Iterator[Part]:
    """Parts by name, in this order; ValueError for unknown names."""
    makers: dict[str, Callable[[], Iterable[Part]]] = {
        "classes": lambda: [_models(comparison)],
        "pairs": lambda: _pair_sections(comparison),
        "images": lambda: chain.from_iterable(
            _influential(comparison, pair) for pair in comparison.ordered_pairs
        ),
        "method": lambda: _method(comparison),
    }
    if comparison.stability is not None:
        makers["ranking"] = comparison.stability._parts
    for name in names:
        if name not in makers:
            why = "; ranking needs three or more models" if name == "ranking" else ""
            msg = f"unknown part {name!r}; choose from {', '.join(sorted(makers))}{why}"
            raise ValueError(msg)
        yield from makers[name]()


def _models(comparison: Comparison) -> Section:
    """The table of classes and models."""
    return Section("Models and classes", [*comparison.table()._parts()], shown=True)


def _pair_sections(comparison: Comparison) -> Iterator[Part]:
    """Verdicts and classes of each pair."""
    for pair in comparison.ordered_pairs:
        yield from pair_parts(comparison, pair)
        yield GAP
        yield from _details(comparison, pair)


def _method(comparison: Comparison) -> Iterator[Section]:
    """Tests and limitations of pairs that differ."""
    method: dict[str, None] = {}
    for pair in comparison.ordered_pairs:
        if pair.images_differing:
            method |= dict.fromkeys(comparison_text.method(comparison, pair))
    # The method of all pairs comes first, then the power of each pair.
    ordered = sorted(method, key=lambda line: line.startswith("Power ("))
    yield from [Section("Method", [Line(text, "dim") for text in ordered])] if method else []


def side_by_side_parts(comparisons: Sequence[Comparison]) -> Iterator[Part]:
    """The verdicts by several scores, and a table of the classes for each pair of models."""
    for first in comparisons[0].ordered_pairs:
        place = comparisons[0].pairs.index(first)
        each = [(comparison, comparison.pairs[place]) for comparison in comparisons]
        for comparison, pair in each:
            yield from pair_parts(comparison, pair)
        rows = dict.fromkeys(row.name for _, pair in each for row in pair.classes)
        columns = [column for both in each for column in _score_columns(*both, rows)]
        names = Column("class", ["all classes", *rows], 9, is_text=True)
        alpha = f"{1 - comparisons[0].level:.3g}"
        notes = [f"* p < {alpha}, adjusted over the classes of each score"]
        notes += dict.fromkeys(map(comparison_text.left_out, comparisons))
        yield from (GAP, Table([names, *columns], notes, first=1, split=True), GAP)


def _score_columns(
    comparison: Comparison, pair: PairComparison, classes: Iterable[str]
) -> Iterator[Column]:
    """Both models' values of a score, and the difference."""
    by_class = {row.name: row for row in pair.classes}
    unit = comparison.score_unit
    rows = [pair.overall, *(by_class.get(name) for name in classes)]
    title = comparison_text.score_title(comparison, pair)
    for name, values in ((pair.a, "a"), (pair.b, "b")):
        cells = ["" if row is None else shown(getattr(row, values), unit) for row in rows]
        yield Column(f"{title}, {name}", cells, 8, group=title)
    head = f"{title}, {difference_head(pair, unit)}{TIE * 2}"
    yield Column(head, [_marked(comparison, row) for row in rows], 8, group=title)


def pair_parts(comparison: Comparison, pair: PairComparison) -> Iterator[Line]:
    """Verdict, evidence and caution of a pair."""
    first, *others = comparison_text.claims(comparison, pair)
    yield from (Line(first, "bold"), *map(Line, others))
    yield from (Line(text, "yellow") for text in comparison_text.cautions(comparison, pair))


def prose_parts(comparison: Comparison) -> Iterator[Line]:
    """Verdict and evidence of each pair as a paragraph of a paper, and its caution as a comment."""
    for pair in comparison.ordered_pairs:
        yield Line(" ".join(comparison_text.claims(comparison, pair)), is_prose=True)
        yield from (Line(text, "yellow") for text in comparison_text.cautions(comparison, pair))


def _details(comparison: Comparison, pair: PairComparison) -> Iterator[Section]:
    """Classes, and why pixel accuracy disagrees."""
    if pair.classes:
        notes = [
            *comparison_text.marks(comparison, pair),
            comparison_text.contributions(comparison, pair),
            comparison_text.left_out(comparison),
        ]
        rows, unit = (pair.overall, *pair.classes), comparison.score_unit
        table = Table([*_differences(comparison, pair, rows, unit)], notes, first=1)
        title = f"Classes ({significant_text(comparison, pair)})"
        yield Section(title, [table], shown=len(comparison.pairs) == 1)
    if pair.imbalance.disagree:
        reasons = " ".join([*pair.imbalance.sentences(), see("imbalance")])
        yield Section(f"Why {pair.imbalance._pixel} accuracy disagrees", [Line(reasons), GAP])


def _influential(comparison: Comparison, pair: PairComparison) -> Iterator[Section]:
    """The most influential images."""
    if moved := influences(comparison, pair):
        unit = comparison.score_unit
        of_effect = f"effect ({text})" if (text := unit_text(unit or "points")) else "effect"
        columns = (
            Column(
                comparison._image, [image.id for image, _ in moved], 9, is_text=True, is_id=True
            ),
            Column("shifts toward", [name for _, name in moved], 6, is_text=True),
            Column(of_effect, [shown_change(i.effect, unit) for i, _ in moved], 8),
            Column(pair.a, [shown(image.a, unit) for image, _ in moved], 5, group="models"),
            Column(pair.b, [shown(image.b, unit) for image, _ in moved], 5, group="models"),
        )
        yield Section(f"Most influential {comparison._image}s", [Table(columns)])


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
    sign = 1 if comparison.better == "higher" else -1
    yield Column("class", [row.name for row in rows], 9, is_text=True)
    for model, values, way in ((pair.a, "a", -sign), (pair.b, "b", sign)):
        tones = ["bold" if way * row.delta > 0 else "" for row in rows]
        shown_values = [shown(getattr(row, values), unit) for row in rows]
        cells = [*map(Cell, shown_values, tones)]
        yield Column(model, cells, 5, group="models")
    marked = [_marked(comparison, row) for row in rows]
    yield Column(f"{difference_head(pair, unit)}{TIE * 2}", marked, 8)
    limits = ["–" if math.isnan(r.low) else change_range(r.low, r.high, unit) for r in rows]
    yield Column("interval", limits, 7)
    yield Column("p (Holm)", [p_text(row.p_holm) for row in rows], 3)
    yield Column(comparison._kind, [str(row.units) for row in rows], 1)


def change_table(change: Comparison) -> Iterator[Part]:
    """The change against a baseline: of the mean, and of the classes that changed most."""
    pair = change.pairs[0]
    yield from pair_parts(change, pair)
    moved = sorted((row for row in pair.classes if row.delta), key=lambda row: -abs(row.delta))
    rows = (pair.overall, *moved[:_CHANGES])
    note = "* significant by the Holm-adjusted test"
    if more := len(pair.classes) - len(rows) + 1:
        note += f"; {plural(more, 'class', 'classes')} with smaller or no change not shown"
    yield from (GAP, Table([*_differences(change, pair, rows, "")][:5], [note], first=1))
