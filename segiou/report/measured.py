"""What is measured beside the pixels: boundaries, surfaces, objects, of a run and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from segiou._support.files import printable
from segiou._support.text import called, did_you_mean, digits, listed, plural
from segiou.metrics.ratio import Floats
from segiou.report.wording import NAMED, cell, range_text

if TYPE_CHECKING:
    from segiou.analysis.bootstrapping import Intervals
    from segiou.boundary.surfaces import State, SurfaceOptions
    from segiou.report.report import Report
    from segiou.runs.run import Run


def measured_parts(run: Run, intervals: Mapping[str, Intervals]) -> dict[str, Any]:
    """What a report says of a run's boundaries, surfaces and objects; intervals by metric."""
    return {
        **_boundary_part(run),
        **_surface_part(run, intervals.get("surface_dice")),
        **_object_part(run, intervals.get("pq")),
    }


def _boundary_part(run: Run) -> dict[str, Any]:
    total = run._boundary_total
    if total is None:
        return {}
    from segiou.boundary.measures import boundary_rows

    rows = boundary_rows(total, run.class_names, include=run.include)
    return {"boundary": tuple(rows), "boundary_options": total.options.to_dict()}


def _surface_part(run: Run, intervals: Intervals | None) -> dict[str, Any]:
    plan = run.surface_plan
    if plan is None:
        return {}
    from segiou.boundary.surface_cases import flat_scores, summarize_surfaces

    surfaces, classes = run.surfaces, len(run.class_names)
    overlaps = [found for image in run for found in plan.overlaps(image, classes)]
    cases = [
        {
            **{"case": row.case, "label": row.label, "state": row.state},
            **overlap,
            **flat_scores(row.values(plan.options)),
        }
        for row, overlap in zip(surfaces, overlaps, strict=True)
    ]
    summary: Any = summarize_surfaces(surfaces, plan.options, overlaps)
    if intervals is not None:
        rows = {str(row["label"]): row for row in summary}
        for found in intervals.classes:
            if row := rows.get(found.name):
                first = next(part for name, part in row.items() if name.startswith("surface_dice"))
                first |= {"low": found.low, "high": found.high, "level": intervals.level}
    plain = plan.to_dict()
    return {"surfaces": tuple(summary), "surface_cases": tuple(cases), "surface_plan": plain}


def _object_part(run: Run, intervals: Intervals | None) -> dict[str, Any]:
    if run.objects is None or run.object_options is None:
        return {}
    summary: Any = run.objects.summary()
    if intervals is not None:
        rows = {row["name"]: row for row in summary["classes"]}
        bounded = [summary["all"], *(rows[found.name] for found in intervals.classes)]
        for row, found in zip(bounded, intervals, strict=True):
            row |= {"pq_low": found.low, "pq_high": found.high}
        summary["intervals"] = intervals.to_dict()
    return {"objects": {**summary, "options": run.object_options.to_dict()}}


def first_distance(names: Iterable[str]) -> str:
    """Of measures of surfaces the distance that is shown: the first percentile, if there is one."""
    return next((name for name in names if name.startswith("hausdorff_")), "hausdorff")


def values_of_cases(
    cases: Sequence[Mapping[str, Any]], measure: str
) -> dict[str, tuple[Floats, int]]:
    """See :meth:`segiou.Report.surface_values`."""
    names = dict.fromkeys(name for row in cases for name in row)
    known = [name for name in names if name not in ("case", "label", "state")]
    measure = measure or first_distance(known)
    if measure not in known:
        msg = f"{measure!r} was not measured{did_you_mean(measure, known)}"
        raise ValueError(msg)
    found: dict[str, list[float]] = {}
    for row in cases:
        if measure in row and row["state"] != "absent":
            found.setdefault(str(row["label"]), []).append(row[measure])
    by_label = {label: np.array(values) for label, values in found.items()}
    return {
        label: (np.sort(values[np.isfinite(values)]), int((~np.isfinite(values)).sum()))
        for label, values in by_label.items()
    }


def texts_of_cases(report: Report) -> dict[str, str]:
    """Dice and the first percentile of the distances of every structure of each case, in words."""
    if not report.surface_cases:
        return {}
    measure = first_distance(report.surfaces[0])
    texts: dict[str, list[str]] = {}
    for row in report.surface_cases:
        score = row["state"]
        if score == "found":
            score = f"{cell(row['dice'])}, {_distance(row[measure])}"
        if score != "absent":
            texts.setdefault(row["case"], []).append(f"{called(str(row['label']))} {score}")
    unit = (report.surface_plan or {}).get("unit")
    title = f"Dice and {measure.replace('hausdorff_', 'HD')} in {unit or 'units of the spacing'}"
    return {case: f"{title}: {'; '.join(parts)}" for case, parts in texts.items()}


def measured_cells(report: Report, class_name: str) -> dict[str, Any]:
    """Columns of a class; infinite distances are written so."""
    cells: dict[str, Any] = {}
    for row in report.boundary:
        if row["classes"]:
            parts = (row["measure"], row["tolerance"], row["contour"])
            value = row["classes"][class_name]
            cells[":".join(filter(None, parts))] = "inf" if math.isinf(value) else value
    for name, value in (report.surfaces[0] if report.surfaces else {}).items():
        found = next((row for row in report.surfaces if row["label"] == class_name), {})
        if isinstance(value, Mapping):
            for key in ("mean", "mean_of_found", "median"):
                score = found.get(name, {}).get(key, math.nan)
                cells[f"{name}:{key}"] = "inf" if math.isinf(score) else score
        elif name not in ("label", "cases"):
            cells[f"surfaces_{name}"] = found.get(name)
    rows = [] if report.objects is None else report.objects["classes"]
    of_class: Mapping[str, Any] = next((row for row in rows if row["name"] == class_name), {})
    cells |= {
        name if name.startswith(("pq", "sq", "rq")) else f"objects_{name}": value
        for name, value in of_class.items()
        if name not in ("name", "thing")
    }
    return cells


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
    from segiou.instances.panoptic import PROTOCOLS

    classes, options, intervals = objects["classes"], objects["options"], objects.get("intervals")
    numbers = ("found", "missed", "invented")

    def line(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
        some = any(row[key] for key in numbers)
        texts = [str(row[key]) if some else "–" for key in numbers]
        limits = (row["pq_low"], row["pq_high"]) if "pq_low" in row else None
        bounds = [range_text(limits)] if intervals else []
        return (name, cell(row["pq"]), *bounds, *texts, cell(row["sq"]), cell(row["rq"]))

    taken = dict(zip(report.class_names, report.include, strict=True))
    summary = []
    for part, name in (("all", "mean"), ("things", "mean of things"), ("stuff", "mean of stuff")):
        rows = [row for row in classes if part == "all" or row["thing"] == (part == "things")]
        if part == "all" or 0 < len(rows) < len(classes):
            sums = {key: sum(row[key] for row in rows if taken[row["name"]]) for key in numbers}
            summary.append(line(name, {**objects[part], **sums}))
    covered = plural(objects["all"]["classes"], "class", "classes")
    protocol = PROTOCOLS[objects["protocol"]]
    note = f"objects: {options['source']}, protocol {protocol.name} ({protocol.description})"
    note += f"; mean over {covered}, with sums of found, missed and invented"
    if size := options["min_size"]:
        least = size if isinstance(size, str) else f"{digits(size)} {report.unit}"
        least = least.replace("mm2", " mm²").replace("mm3", " mm³")
        note += f"; components below {least} are void"
    pixels = {row.name for row in report.classes if row.tp + row.fn}
    things = [row for row in classes if row["thing"] and row["name"] in pixels]
    if things and not any(row["found"] + row["missed"] for row in things):
        names = listed([row["name"] for row in things], NAMED)
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
            head = f"{title} {length:g}{unit}"
            yield head, cell(part["mean"])
            if "level" in part:
                limits = (part["low"], part["high"])
                yield f"{head}, {100 * part['level']:g} % interval", range_text(limits)


#: How a case may lack a structure, in words.
_EMPTY: dict[State, str] = {
    "missed": "a missed structure",
    "invented": "an invented one",
    "absent": "one in neither",
}


def _surface_note(plan: Mapping[str, Any]) -> str:
    """How surfaces were measured, and what missed structures count, in a line."""
    from segiou.boundary.surfaces import SurfaceOptions
    from segiou.masks.volumes import spacing_text

    options = plan["options"]
    unit = {"px": "pixels", "": "units of the spacing"}.get(plan["unit"], plan["unit"])
    if plan["spacing"]:
        unit += f", spacing {spacing_text(plan['spacing'])} whatever the files say"
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

    def words(measure: str) -> str:
        rules = {state: options.filling(measure, state, math.nan) for state in _EMPTY}
        texts = [
            f"{_EMPTY[state]} counts {'nothing' if math.isnan(value) else f'{value:g}'}"
            for state, value in rules.items()
            if state != "absent" or not math.isnan(value)
        ]
        return ", ".join(texts)

    dice, surface_dice = words("dice"), words("surface_dice")
    if dice != surface_dice:
        return f"for Dice {dice}; for surface Dice {surface_dice}"
    if dice == "a missed structure counts 0, an invented one counts 0":
        return "a missed or invented structure counts 0"
    return dice


def _distance(value: float, digits: int = 2) -> str:
    if math.isnan(value):
        return cell(value)
    return "∞" if math.isinf(value) else f"{value:.{digits}f}"


def _distances(values: list[Mapping[str, Any]]) -> str:
    shown = (
        f"{100 * v['value']:g} %" if v["unit"] == "diagonal" else f"{v['value']:g}" for v in values
    )
    return ", ".join(shown) or "none"
