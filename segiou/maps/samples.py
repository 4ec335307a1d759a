"""Sample units and mapped areas, as counts and sizes of strata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_number, read_several, refuse_kind
from segiou._support.table_files import cell_text, check_columns
from segiou._support.text import did_you_mean, listed
from segiou.counting.arrays import as_array
from segiou.metrics.ratio import Floats

#: Cells (strata, reference, map), and areas whose squares are finite and not 0.
_MOST_CELLS = 200**3
#: Sample units whose numbers are exact in float64.
_MOST_UNITS = 2.0**53
_LEAST, _MOST = 1e-100, 1e100
_TABLE = "a ConfusionMatrix, its matrix, or a table with the columns 'reference' and 'map'"


def read_sample(
    sample: Any, areas: Any, strata: Any
) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.int64], Floats]:
    """Names of classes and strata, counts (strata, reference, map), areas of the strata."""
    if isinstance(sample, Sequence) and sample and isinstance(sample[0], Mapping):
        sample = {key: [row.get(key) for row in sample] for key in sample[0]}
    if hasattr(sample, "columns") or isinstance(sample, Mapping):
        return _read_table(sample, areas, strata)
    if strata is not None:
        raise refuse_kind("sample", sample, "a table, because strata needs its rows")
    matrix = as_array(getattr(sample, "matrix", sample), "sample")
    if matrix.dtype.kind not in "iu":
        raise refuse_kind("sample", sample, _TABLE)
    if matrix.ndim != 2 or len(set(matrix.shape)) != 1:
        msg = f"sample has shape {matrix.shape}; expected (C, C)"
        raise ValueError(msg)
    if (matrix < 0).any():
        t, m = np.argwhere(matrix < 0)[0]
        msg = f"sample[{t}, {m}] is {matrix[t, m]}; expected a count ≥ 0"
        raise ValueError(msg)
    if (units := float(matrix.sum(dtype=float))) > _MOST_UNITS:
        msg = f"sample has {units:.3g} sample units; expected at most 2^53"
        raise ValueError(msg)
    count = len(matrix)
    unnamed = None if hasattr(areas, "items") else map(str, range(count))
    names, sizes = areas_by_name(areas, getattr(sample, "class_names", unnamed))
    if len(names) != count:
        msg = f"areas has {len(names)} classes; the sample has {count}"
        raise ValueError(msg)
    _check_size(count, count)
    counts = np.zeros((count, count, count), dtype=np.int64)
    counts[np.arange(count), :, np.arange(count)] = matrix.T
    return names, names, counts, sizes


def _read_table(
    sample: Any, areas: Any, strata: Any
) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.int64], Floats]:
    truth, pred = (_column(sample, key) for key in ("reference", "map"))
    stratum_names, sizes = areas_by_name(areas)
    names, what, column = stratum_names, "map class", pred
    if strata is not None:
        names = tuple(sorted({*truth, *pred}, key=_by_number_or_name))
        is_column = isinstance(strata, str)
        column = _column(sample, strata) if is_column else _checked(strata, "strata")
        what = "stratum"
        if len(column) != len(pred):
            msg = f"strata has {len(column)} entries for {len(pred)} rows of the sample"
            raise ValueError(msg)
    rows = (
        _codes(column, stratum_names, what),
        _codes(truth, names, "reference class"),
        _codes(pred, names, "map class"),
    )
    if (outside := sizes[rows[0]] == 0).any():
        row = int(outside.argmax())
        msg = f"row {row + 1} is outside the map: {what} {column[row]!r} has area 0"
        raise ValueError(msg)
    _check_size(len(stratum_names), len(names))
    counts = np.zeros((len(stratum_names), len(names), len(names)), dtype=np.int64)
    np.add.at(counts, rows, 1)
    return names, stratum_names, counts, sizes


def _by_number_or_name(name: str) -> tuple[str, str]:
    """Sorts values as numbers, and names by their letters."""
    return (name.zfill(20) if name.isdecimal() else name, name)


def _check_size(strata: int, classes: int) -> None:
    """Reject tables of more cells than can be estimated in seconds."""
    if strata * classes**2 > _MOST_CELLS:
        size = f"{classes} classes in {strata} strata"
        msg = f"{size} are too many (the limit is 200 in 200); merge similar classes"
        raise ValueError(msg)


def _column(sample: Any, key: str) -> list[str]:
    check_columns("sample", [key], [*map(str, getattr(sample, "columns", sample))])
    return _checked(sample[key], key)


def _checked(values: Iterable[Any], column: str) -> list[str]:
    """The names in a column, none of which may be missing."""
    names = [cell_text(value) for value in values]
    if "" in names:
        msg = f"row {names.index('') + 1} has no value in column {column!r}"
        raise ValueError(msg)
    return names


def _codes(column: Sequence[str], names: Sequence[str], what: str) -> NDArray[np.intp]:
    """The index of each name; an error shows the first row with an unknown name."""
    index = {name: i for i, name in enumerate(names)}
    for row, name in enumerate(column, 1):
        if name not in index:
            hint = did_you_mean(name, names)
            if what == "reference class":
                hint = f"{hint}; if it is not in the map, add it with area 0"
            known = listed(list(names), 12)
            msg = f"row {row}: {what} {name!r} is unknown; areas contains {known}{hint}"
            raise ValueError(msg)
    return np.array([index[name] for name in column], dtype=np.intp)


def areas_by_name(
    areas: Any, names: Iterable[str] | None = None, what: str = "areas"
) -> tuple[tuple[str, ...], Floats]:
    """Names and areas, in the order of the names if given."""
    if hasattr(areas, "items"):  # a mapping or a pandas Series
        by_name = {cell_text(key): value for key, value in areas.items()}
    else:
        values = read_several(what, areas, "a mapping of names to numbers, or a sequence")
        names = tuple(map(str, range(len(values))) if names is None else names)
        if len(names) != len(values):
            msg = f"{what} has {len(values)} entries; expected {len(names)}"
            raise ValueError(msg)
        by_name = dict(zip(names, values, strict=True))
    keys = tuple(by_name if names is None else names)
    if differing := [key for key in (*keys, *by_name) if (key in by_name) != (key in keys)]:
        state = "missing from" if differing[0] in keys else "unknown in"
        msg = f"class {differing[0]!r} is {state} {what}; expected {listed(list(keys), 12)}"
        raise ValueError(msg)
    sizes = np.array([check_number(f"{what}[{key!r}]", by_name[key], 0) for key in keys])
    if not sizes.any():
        msg = f"{what} must not be all 0"
        raise ValueError(msg)
    for key, size in zip(keys, sizes.tolist(), strict=True):
        if size and not _LEAST <= size <= _MOST:
            msg = f"{what}[{key!r}] is {size:g}; expected 0 or a number from 1e-100 to 1e+100"
            raise ValueError(msg)
    return keys, sizes


def check_sample(counts: NDArray[np.int64], sizes: Floats, names: Sequence[str]) -> None:
    """Every stratum needs a sample unit, and every sample unit a stratum with an area."""
    n = counts.sum((1, 2))
    for h in np.flatnonzero((n == 0) & (sizes > 0)).tolist():
        msg = (
            f"stratum {names[h]!r} has no sample unit; sample every stratum, or merge strata. If "
            "it is not a class (unclassified, for example), omit it from areas; for a raster, "
            "list its value under ignore in the label set (--labels)"
        )
        raise ValueError(msg)
    for h in np.flatnonzero((n > 0) & (sizes == 0)).tolist():
        msg = f"stratum {names[h]!r} has area 0, so its {n[h]} sample units are outside the map"
        raise ValueError(msg)


def checked_unit_area(unit_area: float | None) -> float | None:
    """The area of a sample unit, which is positive; None for None."""
    if unit_area is None:
        return None
    if not 0 < (number := check_number("unit_area", unit_area)) <= _MOST:
        msg = f"unit_area must be positive, at most {_MOST:g}, got {unit_area}"
        raise ValueError(msg)
    return number
