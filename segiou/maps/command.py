"""The command ``map-accuracy``: a reference sample and the areas of a map."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from segiou._support.arguments import check_level
from segiou._support.files import Problem
from segiou._support.numbers import number_in
from segiou._support.table_files import read_rows
from segiou.cli import inputs
from segiou.cli.output import write_finding
from segiou.labels.label_set import LabelSet
from segiou.labels.loading import load_labels
from segiou.maps.class_areas import class_areas, values_at
from segiou.maps.estimates import map_accuracy
from segiou.maps.page import map_html
from segiou.maps.result import MapAccuracy
from segiou.maps.samples import areas_by_name
from segiou.masks.raw_mask import MaskError
from segiou.scoring.problems import DataError

#: Square metres of the units.
_UNITS = {"ha": 1e4, "km2": 1e6}


def command(parsed: argparse.Namespace) -> int:
    """Estimate the accuracy and areas, and write the outputs."""
    inputs.report_format(parsed)
    check_level("--level", parsed.level)
    if parsed.coordinates and (parsed.strata or parsed.areas.lower().endswith(".csv")):
        msg = "--coordinates needs the map: --areas MAP, without --strata"
        raise ValueError(msg)
    labels = None if parsed.labels is None else load_labels(parsed.labels)
    with _named(parsed.sample):
        accuracy = _estimated(parsed, labels)
    accuracy = replace(accuracy, unit={"km2": "km²"}.get(parsed.unit, parsed.unit))
    facts = {
        "Sample": str(parsed.sample),
        "Areas": str(parsed.areas),
        "Strata": parsed.strata or "the classes of the map",
        "Standard errors": "Stehman (2014)" if parsed.strata else "Olofsson et al. (2014)",
    }
    files = {"sample_file": str(parsed.sample), "areas_file": str(parsed.areas)}
    data = {**files, "unit": parsed.unit, "strata": parsed.strata, **accuracy.to_dict()}
    write_finding(accuracy, parsed, data=data, page=lambda: map_html(accuracy, facts))
    return 0


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors in the sample name its file; errors in other files name theirs."""
    try:
        yield
    except MaskError:
        raise
    except ValueError as error:
        raise DataError([Problem(path, _problem(path, error))]) from error


def _problem(path: str, error: ValueError) -> str:
    """An error without the file that it begins with."""
    return str(error).removeprefix(path).lstrip(": ")


def _estimated(parsed: argparse.Namespace, labels: LabelSet | None) -> MapAccuracy:
    """The estimates from the files."""
    strata = parsed.strata
    rows = _rows(parsed)
    names = {} if labels is None else _names(labels)
    columns = {"reference": parsed.reference}
    if not parsed.coordinates:
        columns["map"] = parsed.map
    table = {key: [names.get(row[c], row[c]) for row in rows] for key, c in columns.items()}
    if parsed.coordinates:
        values = values_at(parsed.areas, _points(rows, parsed.coordinates), labels)
        table["map"] = [names.get(str(value), str(value)) for value in values]
    areas = _areas(parsed, labels, names, [*table["reference"], *table["map"]])
    if strata:
        strata = [names.get(row[strata], row[strata]) for row in rows]
    return map_accuracy(table, areas, strata=strata, level=parsed.level)


def _rows(parsed: argparse.Namespace) -> list[dict[str, str]]:
    """The rows of the sample; ValueError for empty cells."""
    places = parsed.coordinates.split(",") if parsed.coordinates else [parsed.map]
    columns = [parsed.reference, *places, *([parsed.strata] if parsed.strata else [])]
    rows = read_rows(Path(parsed.sample).expanduser(), columns)
    for number, row in enumerate(rows, 1):
        for column in columns:
            if not row.get(column):
                msg = f"row {number} has no value in column {column!r}"
                raise ValueError(msg)
    return rows


def _names(labels: LabelSet) -> dict[str, str]:
    """The class of each value, as text."""
    return {str(value): entry.name for entry in labels.classes for value in entry.values}


def _points(rows: list[dict[str, str]], columns: str) -> list[tuple[float, float]]:
    names = columns.split(",")
    if len(names) != 2:
        msg = f"--coordinates {columns}: expected two columns, X,Y"
        raise ValueError(msg)
    points = []
    for number, row in enumerate(rows, 1):
        try:
            x, y = (number_in(row[name]) for name in names)
        except ValueError:
            x = y = math.nan
        if not (math.isfinite(x) and math.isfinite(y)):
            shown = ", ".join(row[name] for name in names)
            msg = f"row {number}: coordinates ({shown}) are not numbers"
            raise ValueError(msg)
        points.append((x, y))
    return points


def _areas(
    parsed: argparse.Namespace,
    labels: LabelSet | None,
    names: dict[str, str],
    sampled: list[str],
) -> dict[str, float]:
    """The area of each class or stratum, in the unit that was asked for."""
    if Path(parsed.areas).is_dir():
        raise MaskError(parsed.areas, "is a folder; expected a raster or a CSV file")
    if Path(parsed.areas).suffix.lower() == ".csv":
        return _listed_areas(parsed.areas, names)
    counted = class_areas(parsed.areas, labels)
    sizes: dict[int, float] = dict(counted.pixels)
    if parsed.unit != "pixels":
        if counted.areas is None:
            problem = f"{counted.reason}; or count pixels: --unit pixels"
            raise MaskError(parsed.areas, problem)
        sizes = {value: area / _UNITS[parsed.unit] for value, area in counted.areas.items()}
    ignored = () if labels is None else labels.ignore
    areas = {} if parsed.strata else {n: 0.0 for n in dict.fromkeys(names.values()) if n in sampled}
    for value in sorted(sizes):
        if value not in ignored:
            name = names.get(str(value), str(value))
            areas[name] = areas.get(name, 0.0) + sizes[value]
    order = [name for name in dict.fromkeys(names.values()) if name in areas]
    return {name: areas[name] for name in (*order, *(n for n in areas if n not in order))}


def _listed_areas(path: str, names: dict[str, str]) -> dict[str, float]:
    try:
        rows = read_rows(Path(path).expanduser(), ["area"])
    except ValueError as error:
        raise MaskError(path, _problem(path, error)) from error
    areas: dict[str, float] = {}
    for number, row in enumerate(rows, 1):
        # A column without a head is the index of a data frame.
        name = next((cell for key, cell in row.items() if key not in ("", "area")), "")
        if not name:
            raise MaskError(path, f"row {number} has no class or stratum; name it beside its area")
        name = names.get(name, name)
        try:
            area = number_in(row["area"])
        except ValueError:
            area = -1.0
        if not 0 <= area < float("inf"):
            problem = f"row {number}: area of {name!r} is {row['area']!r}; expected a number ≥ 0"
            raise MaskError(path, problem)
        if name in areas:
            raise MaskError(path, f"row {number}: {name!r} occurs twice")
        areas[name] = area
    try:
        areas_by_name(areas)
    except ValueError as error:
        raise MaskError(path, str(error)) from error
    return areas
