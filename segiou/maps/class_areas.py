"""Areas of the classes of a map, and its class at points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from segiou.labels.label_set import LabelSet
from segiou.masks.formats.georeference import Raster
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import open_mask, open_windowed, to_labels
from segiou.masks.windows import FileMask, window_slices


class ClassAreas(NamedTuple):
    """Pixels and area in m² of each value of a map, without nodata; areas are None if unknown."""

    pixels: dict[int, int]
    areas: dict[int, float] | None
    reason: str = ""


def class_areas(path: str | Path, labels: LabelSet | None = None) -> ClassAreas:
    """Count the values of a map, which may be larger than memory."""
    with _opened(path) as raw:
        height, width = raw.values.shape[:2]
        reason, row_areas = "", None
        try:
            row_areas = (raw.raster or Raster()).pixel_areas(height)
        except ValueError as error:
            reason = str(error)
        pixels: Counter[int] = Counter()
        areas: Counter[int] = Counter()
        for rows, columns in window_slices((height, width), getattr(raw.values, "chunks", None)):
            window = _labels(raw, path, labels, rows, columns)
            values, codes = np.unique(window, return_inverse=True)
            for value, count in zip(values.tolist(), np.bincount(codes.ravel()), strict=True):
                pixels[value] += int(count)
            if row_areas is not None:
                weights = np.repeat(row_areas[rows], window.shape[1])
                sums = np.bincount(codes.ravel(), weights=weights)
                areas.update(dict(zip(values.tolist(), sums.tolist(), strict=True)))
        if raw.raster is not None and raw.raster.nodata is not None:
            pixels.pop(raw.raster.nodata, None)
            areas.pop(raw.raster.nodata, None)
        return ClassAreas(dict(pixels), None if row_areas is None else dict(areas), reason)


def values_at(
    path: str | Path, points: list[tuple[float, float]], labels: LabelSet | None = None
) -> list[int]:
    """The value of a map at points in its coordinates; ValueError names the row of one outside."""
    with _opened(path) as raw:
        if raw.raster is None or raw.raster.affine is None:
            raise MaskError(path, "is not georeferenced, so coordinates cannot be located in it")
        a, b, c, d, e, f = raw.raster.affine
        inverse = np.linalg.inv([[a, b], [d, e]])
        values = []
        for number, point in enumerate(points, 1):
            column, row = np.floor(inverse @ (np.array(point) - (c, f))).tolist()
            if not (0 <= row < raw.values.shape[0] and 0 <= column < raw.values.shape[1]):
                msg = f"row {number}: ({point[0]:g}, {point[1]:g}) is outside the map {path}"
                raise ValueError(msg)
            column, row = int(column), int(row)
            cell = slice(row, row + 1), slice(column, column + 1)
            value = int(_labels(raw, path, labels, *cell)[0, 0])
            if value == raw.raster.nodata:
                msg = f"row {number}: ({point[0]:g}, {point[1]:g}) is on nodata of the map {path}"
                raise ValueError(msg)
            values.append(value)
        return values


@contextmanager
def _opened(path: str | Path) -> Iterator[RawMask]:
    raw = open_windowed(Path(path).expanduser()) or open_mask(path)
    if len(raw.values.shape) != 2 + raw.is_color:
        raise MaskError(path, f"has shape {raw.values.shape}; expected an image")
    with raw.values if isinstance(raw.values, FileMask) else nullcontext():
        yield raw


def _labels(raw: RawMask, path: str | Path, labels: LabelSet | None, *cell: slice) -> Any:
    return to_labels(raw._replace(values=raw.values[cell]), path, labels)
