"""An inspection of a folder as the parts of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from segiou._support.files import problem_lines
from segiou._support.text import (
    count,
    percent,
    plural,
)
from segiou.document.parts import (
    GAP,
    Cell,
    Column,
    Line,
    Part,
    Table,
)
from segiou.scoring.label_set_match import LISTED

if TYPE_CHECKING:
    from segiou.scoring.inspection import Inspection
    from segiou.scoring.label_set_match import LabelSetMatch

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
    if head == "value" and inspection.segments:
        by_value = {value: name for name, value in inspection.segments.items()}
        names_of = [by_value.get(value, "–") for value in kept]
        columns.append(column("segment", names_of, 8, is_text=True))
    # Class names of the best match, or of the only label set that was asked for.
    fit = next(
        iter(inspection.fitting or (inspection.fits if len(inspection.fits) == 1 else ())), None
    )
    if fit is not None and head != "name" and not inspection.segments:
        title = f"{'in' if fit.undeclared else 'fits'} {fit.name}" if fit.is_named else "class"
        meanings = [Cell(fit.meanings.get(name, "–"), "dim") for name in kept]
        columns.append(column(title, meanings, 8, is_text=True))
    return columns


def _unit(inspection: Inspection) -> str:
    return "voxels" if inspection.spacings else "pixels"


def _subject(fit: LabelSetMatch) -> str:
    return f"Label set {fit.name}" if fit.is_named else "The label set"


def _fits(inspection: Inspection) -> Iterator[Line]:
    if inspection.segments:
        yield Line("The segments name the classes, so scoring needs no --labels.")
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
    elif inspection.files and not inspection.has_ids and not inspection.segments:
        yield Line("No preset defines any of these values.")
        yield Line(_OWN_PROPOSAL if inspection.names else _OWN_SET)
    if inspection.spacings and not inspection.segments:
        yield Line(_OF_VOLUMES)
