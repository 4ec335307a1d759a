"""What every form of a report says alike: numbers, phrases, the boundary table, short names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.files import printable
from segiou._support.text import called, listed, percent, plural, points, signed_points

if TYPE_CHECKING:
    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.comparison import Comparison, Difference, InfluentialImage, PairComparison
    from segiou.analysis.steps import NextStep
    from segiou.boundary.surfaces import State, SurfaceOptions
    from segiou.report.report import Report

#: More names than this are counted.
_NAMED = 8


def cell(value: float) -> str:
    """A ratio in a table."""
    return percent(value, "–")


def coefficient(value: float) -> str:
    """What is no ratio of pixels and may be negative, such as Cohen's kappa."""
    return "–" if math.isnan(value) else f"{value:.4f}"


def score_text(value: float) -> str:
    """A score or a difference of scores in a table: two digits at least where it is tiny.

    What is an integer is a number of objects.
    """
    if isinstance(value, int):
        return str(value)
    return f"{100 * value:.2g} %" if 0 < abs(value) < 0.0001 else cell(value)


def share_text(share: float) -> str:
    """A share in a cell of a confusion matrix, in whole per cent."""
    return "<1" if 0 < share < 0.005 else f"{100 * share:.0f}"


def ignored_text(report: Report) -> str:
    """Which part of the pixels is ignored."""
    return cell(report.ignored / report.pixels if report.pixels else math.nan)


def range_text(limits: tuple[float, float] | None) -> str:
    """Two limits of a ratio."""
    if limits is None or math.isnan(limits[0]):
        return "–"
    return f"{points(limits[0])} to {percent(limits[1])}"


def difference_cells(row: Difference) -> tuple[str, str, str, str, str]:
    """The score of two models, with its name, their difference in points, and its interval."""
    low, high = signed_points(row.low), signed_points(row.high)
    interval = "–" if math.isnan(row.low) else f"{low} to {high}"
    return printable(row.name), cell(row.a), cell(row.b), signed_points(row.delta), interval


def influences(pair: PairComparison) -> list[tuple[InfluentialImage, str]]:
    """Images that move the difference, and to which of the two models."""
    for_b = [(image, pair.b) for image in pair.for_b]
    return for_b + [(image, pair.a) for image in pair.for_a]


def interval_text(found: Intervals) -> str:
    """The interval of the mean in words, with what makes it unsafe."""
    if math.isnan(found.overall.low):
        return f"no interval over {found.resampled}"
    doubts = [f"few {found.unit}s"] if found.overall.few else []
    if found.unsafe and found.dependence is not None:
        doubts += found.dependence.doubts
    limits = range_text((found.overall.low, found.overall.high))
    unsafe = f" ({', '.join(doubts)}, so less sure)" if doubts else ""
    return f"{100 * found.level:g} % interval {limits} over {found.resampled}{unsafe}"


def verdict(report: Report, intervals: Intervals | None) -> str:
    """The verdict of a report: mean IoU with its interval, and what holds it back most."""
    absent = _absent(report)
    if math.isnan(report.mean_iou):
        if not absent or report.protocol.absent != "nan":
            return "There is no mean IoU: no class that takes part in it has a defined IoU."
        names, have = listed(absent, _NAMED), "has" if len(absent) == 1 else "have"
        return f"There is no mean IoU by protocol {report.protocol.name}: {names} {have} no IoU."
    total = plural(len(report.class_names), "class", "classes")
    mean = f"Mean IoU over {report.mean_iou_classes} of {total} is {percent(report.mean_iou)}"
    interval = "" if intervals is None else f", {interval_text(intervals)}"
    steps = [step for step in report.next_steps if step.kind != "few_images"]
    held_back = _held_back(steps, report.unit) if steps else ""
    if absent and report.protocol.absent == "zero" and not report.protocol.needs_images:
        # What the mean would be without them, less what it is.
        lost = report.mean_iou * len(absent) / max(report.mean_iou_classes - len(absent), 1)
        if lost > max((step.gain for step in steps), default=0.0):
            held_back = plural(len(absent), "class that does", "classes that do")
            held_back += f" not occur count{'s' if len(absent) == 1 else ''} as 0 by protocol "
            held_back += f"{report.protocol.name} ({points(lost)} points)"
    return f"{mean}{interval}{f'; what holds it back most: {held_back}' if held_back else ''}."


def _absent(report: Report) -> list[str]:
    """Classes in neither truth nor prediction that are not left out of the mean by name."""
    rows = zip(report.classes, report.include, strict=True)
    return [called(row.name) for row, kept in rows if kept and row.status == "absent"]


def _held_back(steps: Sequence[NextStep], unit: str) -> str:
    """What costs most; of classes that are never predicted all, where one of them comes first."""
    # One cell may hold all that a class misses; that the class is missed says more.
    first = max(steps, key=lambda step: (round(step.gain, 12), step.kind != "confusion"))
    missed = [str(step.truth) for step in steps if step.kind == "missed_class"]
    each = " each" if first.kind == "missed_class" and len(missed) > 1 else ""
    if first.kind == "missed_class":
        names = listed([called(name) for name in missed], _NAMED)
        what = f"{names} {'are' if each else 'is'} never predicted"
    elif first.kind == "false_class":
        pixels = plural(first.pixels, unit.removesuffix("s"))
        what = f"{called(str(first.pred))} is predicted on {pixels} and nowhere in the truth"
    elif first.kind == "swapped_classes":
        what = f"{called(str(first.truth))} and {called(str(first.pred))} are taken for each other"
    else:
        answer = "no class" if first.pred is None else called(first.pred)
        share = f"{percent(first.share)} of the {unit} of {called(str(first.truth))}"
        what = f"{share} are predicted as {answer}"
    gain = f"up to {points(first.gain)}" if each else points(first.gain)
    return f"{what} ({gain} points{each})"


def pairs_text(report: Report) -> str:
    """How many pairs were counted, and what is missing of them."""
    left_out = f" ({report.left_out} left out)" if report.left_out else ""
    lacks = (("unfinished", "not finished"), ("partial", "not complete"))
    found = [(said, report.provenance.get(name)) for name, said in lacks]
    rest = "".join(f", {said}: {text}" for said, text in found if text)
    return f"{plural(report.pairs, 'pair')}{left_out}{rest}"


def skipped_text(report: Report) -> str:
    """Which classes the mean leaves out, and why."""
    by_reason: dict[str, list[str]] = {}
    for index, why in report.iou_mean.skipped.items():
        by_reason.setdefault(why, []).append(printable(report.class_names[index]))
    return "; ".join(
        f"{f'{len(names)} classes' if len(names) > _NAMED else ', '.join(names)} ({why})"
        for why, names in by_reason.items()
    )


_TITLES = {
    "boundary_iou": "Boundary IoU",
    "boundary_f1": "boundary F1",
    "surface_dice": "surface Dice",
    "hausdorff_95": "HD95",
}


class MeasuredTable(NamedTuple):
    """What is measured beside the pixels, as a table of text."""

    name: str
    title: str
    about: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    summary: list[tuple[str, ...]]
    note: str

    @property
    def filled(self) -> list[tuple[str, ...]]:
        """The rows of the classes that have a value."""
        return [row for row in self.rows if any(value != "–" for value in row[1:])]


def measured_tables(report: Report) -> list[MeasuredTable]:
    """Boundaries, surfaces and objects, where they were measured."""
    tables = [_boundary_table(report)] if report.boundary else []
    tables += [_surface_table(report)] if report.surfaces else []
    return tables + ([_object_table(report, report.objects)] if report.objects else [])


def _object_table(report: Report, objects: Mapping[str, Any]) -> MeasuredTable:
    classes, options, intervals = objects["classes"], objects["options"], objects.get("intervals")
    numbers = ("found", "missed", "invented")

    def line(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
        some = any(row[key] for key in numbers)
        texts = [str(row[key]) if some else "–" for key in numbers]
        limits = (row["pq_low"], row["pq_high"]) if "pq_low" in row else None
        bounds = [range_text(limits)] if intervals else []
        return (name, cell(row["pq"]), *bounds, *texts, cell(row["sq"]), cell(row["rq"]))

    summary = []
    for part, name in (("all", "mean"), ("things", "mean of things"), ("stuff", "mean of stuff")):
        rows = [row for row in classes if part == "all" or row["thing"] == (part == "things")]
        if part == "all" or 0 < len(rows) < len(classes):
            sums = {key: sum(row[key] for row in rows) for key in numbers}
            summary.append(line(name, {**objects[part], **sums}))
    covered = plural(objects["all"]["classes"], "class", "classes")
    note = f"objects: {options['source']}, protocol {objects['protocol']}; mean over {covered}"
    note += ", with sums of found, missed and invented"
    if options["min_size"]:
        note += f"; components below {options['min_size']:g} {report.unit} are void"
    pixels = {row.name for row in report.classes if row.tp + row.fn}
    things = [row for row in classes if row["thing"] and row["name"] in pixels]
    if things and not any(row["found"] + row["missed"] for row in things):
        names = listed([row["name"] for row in things], _NAMED)
        note += f"; the truth has {names}, and no object of them: are its files class maps?"
    about = (
        "How many objects of the truth were found, how many were missed, and how many were "
        "invented. An object is found where a predicted one of its class has an IoU above one half "
        "with it. PQ is SQ, the mean IoU of the found ones, times RQ, the F1 score of the objects."
    )
    bounds = [f"{100 * intervals['level']:g} % interval"] if intervals else []
    heads = ("class", "PQ", *bounds, *numbers, "SQ", "RQ")
    lines = [line(printable(row["name"]), row) for row in classes]
    return MeasuredTable("objects", "Objects", about, heads, lines, summary, note)


def _boundary_table(report: Report) -> MeasuredTable:
    options: Mapping[str, Any] = report.boundary_options or {}
    # Boundary IoU at every width; of the other measures the first tolerance and contour.
    rows = [row for row in report.boundary if row["measure"] == "boundary_iou"]
    for measure in ("boundary_f1", "surface_dice", "hausdorff_95"):
        rows += [row for row in report.boundary if row["measure"] == measure][:1]
    about = (
        "How well the edges of each class fit: overlap within a band along the outlines (Boundary "
        "IoU), outlines that meet within a tolerance (F1, surface Dice), and the distance within "
        "which 95 % of them lie (HD95; ∞ where an outline has no counterpart in some image)."
    )
    return MeasuredTable(
        "boundaries",
        "Boundaries",
        about,
        ("class", *(_head(options, row) for row in rows)),
        [
            (printable(name), *(_value(row, row["classes"][name]) for row in rows))
            for name in report.class_names
        ],
        [
            ("mean", *(_value(row, row["mean"]) for row in rows)),
            ("classes", *(str(row["mean_classes"]) for row in rows)),
        ],
        _boundary_note(report, options),
    )


def _head(options: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    if row["tolerance"] is None:
        return _TITLES[row["measure"]]
    of_pixels = row["contour"] is None or tuple(options["spacing"]) == (1.0, 1.0)
    unit = " px" if of_pixels and not row["tolerance"].endswith("%") else ""
    return f"{_TITLES[row['measure']]} {row['tolerance']}{unit}"


def _value(row: Mapping[str, Any], value: float) -> str:
    return _distance(value, 1) if row["measure"] == "hausdorff_95" else cell(value)


def _boundary_note(report: Report, options: Mapping[str, Any]) -> str:
    """What was measured at boundaries, in a line."""
    parts = [f"boundaries: widths {_distances(options['widths'])}"]
    if options["contours"]:
        parts += [
            f"contours of {' and '.join(options['contours'])}",
            f"tolerances {_distances(options['tolerances'])}",
        ]
    height, width = options["spacing"]
    square = (height, width) == (1.0, 1.0)
    if not square:
        parts.append(f"pixels of {height:g} × {width:g}")
    if options["border"] != "reference":
        parts.append(f"image border: {options['border']}")
    if any(row["measure"] == "hausdorff_95" for row in report.boundary):
        parts.append(f"HD95 in {'pixels' if square else 'these units'}")
    return "; ".join(parts)


def _surface_table(report: Report) -> MeasuredTable:
    plan: Mapping[str, Any] = report.surface_plan or {}
    lines = [[*_surface_cells(row, plan)] for row in report.surfaces]
    about = (
        "In how many cases each structure was found, missed or only predicted, and how far its "
        "surface then lies from the true one."
    )
    return MeasuredTable(
        "surfaces",
        "Distances between surfaces",
        about,
        tuple(head for head, _ in lines[0]),
        [tuple(printable(text) for _, text in line) for line in lines],
        [],
        _surface_note(plan),
    )


def _surface_cells(row: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was found of a structure, and its distances: heads and texts of its line."""
    options, unit = plan["options"], f" {plan['unit']}".rstrip()
    states = ("found", "missed", "invented")
    yield "structure", str(row["label"])
    for state in states:
        yield state, str(row[state]) if any(row[other] for other in states) else "–"
    yield "Dice mean", cell(row["dice"]["mean"])
    for percentile in options["percentiles"][:1]:
        distance = row[f"hausdorff_{percentile:g}"]
        yield f"HD{percentile:g} median", _distance(distance["median"])
        yield f"HD{percentile:g} mean", _distance(distance["mean_of_found"])
    yield "ASSD mean", _distance(row["average_surface_distance"]["mean_of_found"])
    for measure, title, lengths in (
        ("surface_dice", "surface Dice", options["tolerances"]),
        ("boundary_iou", "Boundary IoU", options.get("widths", ())),
    ):
        parts = [part for name, part in row.items() if name.startswith(measure)]
        for length, part in zip(lengths, parts, strict=True):
            yield f"{title} {length:g}{unit}", cell(part["mean"])
            if "level" in part:
                limits = (part["low"], part["high"])
                yield f"{100 * part['level']:g} % interval", range_text(limits)


#: How a case may lack a structure, in words.
_EMPTY: dict[State, str] = {
    "missed": "a missed structure",
    "invented": "an invented one",
    "absent": "one in neither",
}


def _surface_note(plan: Mapping[str, Any]) -> str:
    """How surfaces were measured, and what missed structures count, in a line."""
    from segiou.boundary.surfaces import SurfaceOptions

    options = plan["options"]
    unit = {"px": "pixels", "": "units of the spacing"}.get(plan["unit"], plan["unit"])
    own = [
        f"{label} {', '.join(f'{limit:g}' for limit in limits)}"
        for label, limits in options["tolerances_of"]
    ]
    counted = _counted_empty(SurfaceOptions.from_dict(options))
    return (
        f"surfaces as {options['convention']} measures them, distances in {unit}. Medians "
        "are over the cases: a structure that is missed or invented (only predicted) is infinitely "
        "far. Means of distances are over found structures alone, so that missing more can improve "
        "them. Dice and surface Dice are means over the cases, where "
        f"{counted}{f'; own tolerances: {printable(listed(own))}' if own else ''}"
    )


def _counted_empty(options: SurfaceOptions) -> str:
    """What Dice and surface Dice count where a mask is empty."""
    rules = {
        name: {state: options.filling(measure, state, math.nan) for state in _EMPTY}
        for name, measure in (("Dice", "dice"), ("surface Dice", "surface_dice"))
    }
    words = {
        name: ", ".join(
            f"{_EMPTY[state]} counts {'nothing' if math.isnan(value) else f'{value:g}'}"
            for state, value in rule.items()
            if not (state == "absent" and math.isnan(value))
        )
        for name, rule in rules.items()
    }
    if words["Dice"] != words["surface Dice"]:
        return "; ".join(f"for {name} {text}" for name, text in words.items())
    if words["Dice"] == "a missed structure counts 0, an invented one counts 0":
        return "a missed or invented structure counts 0"
    return words["Dice"]


def _distance(value: float, digits: int = 2) -> str:
    if math.isnan(value):
        return cell(value)
    return "∞" if math.isinf(value) else f"{value:.{digits}f}"


def _distances(values: list[Mapping[str, Any]]) -> str:
    shown = (
        f"{100 * v['value']:g} %" if v["unit"] == "diagonal" else f"{v['value']:g}" for v in values
    )
    return ", ".join(shown) or "none"


def with_short_names(comparison: Comparison) -> Comparison:
    """Give the models short names, where they differ."""
    short = [short_name(name) for name in comparison.names]
    if len({*short}) < len(short) or not all(short):
        return comparison
    names = dict(zip(comparison.names, short, strict=True))
    return replace(
        comparison,
        names=tuple(short),
        ranking=tuple(replace(r, name=names[r.name]) for r in comparison.ranking),
        pairs=tuple(replace(p, a=names[p.a], b=names[p.b]) for p in comparison.pairs),
    )


def short_name(name: str) -> str:
    """A path's last part: a run is named by the folder of its predictions unless it was named.

    Examples
    --------
    >>> short_name("out/small"), short_name("base")
    ('small', 'base')
    """
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2]


def top_steps(steps: Sequence[NextStep], number: int = 3) -> list[NextStep]:
    """The steps that gain most, no two of the same class of the truth."""
    first: dict[str | None, NextStep] = {}
    for step in steps:
        first.setdefault(step.truth, step)
    return list(first.values())[:number]
