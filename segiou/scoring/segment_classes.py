"""The classes that the segments of 3D Slicer's files name, for scoring without a label set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from segiou.labels.class_options import Labels
from segiou.masks.formats.itk_headers import nrrd_parts
from segiou.masks.formats.slicer import joined, numbered
from segiou.masks.raw_mask import MaskError
from segiou.masks.sources.adjusted import is_one_file
from segiou.masks.sources.folders import Source
from segiou.masks.sources.opening import open_source


def classes_of_segments(places: Iterable[Any]) -> dict[Any, str] | None:
    """Class names by value of the first place with segments, and the background; None if none."""
    segments = next(filter(None, map(segments_in, places)), None)
    return None if segments is None else classes_by_value(segments)


def classes_by_value(segments: Mapping[str, int]) -> dict[Any, str]:
    """The names of segments by value, and the background."""
    names = {value: name for name, value in segments.items()}
    if "background" not in segments:
        names[next(value for value in count() if value not in names)] = "background"
    return dict(sorted(names.items()))


def labels_of(labels: Labels | None, places: Iterable[Any]) -> Labels:
    """The labels, or without any the classes that segments name; TypeError if there are none."""
    classes = classes_of_segments(places) if labels is None else labels
    if classes is None:
        msg = "labels is required, except for segmentations of 3D Slicer, which name their classes"
        raise TypeError(msg)
    return classes


def segments_in(masks: Any) -> dict[str, int]:
    """Names and values of the segments in the files of a place; unreadable files have none."""
    if isinstance(masks, Mapping):  # arrays
        return {}
    try:
        source = open_source(masks) if isinstance(masks, (str, Path)) else masks
        paths = [source.root] if is_one_file(source) else [*source.find().values()]
    except (ValueError, OSError):  # which scoring reports
        return {}
    return joined(_segments_of(source, path) for path in filter(has_segments, paths))


def has_segments(path: str) -> bool:
    """Whether a file may have named segments."""
    return path.lower().endswith((".nrrd", ".nhdr"))


def _segments_of(source: Source, path: str) -> tuple[tuple[str, int], ...]:
    try:
        data, _ = source.read(path)
        return numbered(nrrd_parts(data, path).segments) if isinstance(data, bytes) else ()
    except (MaskError, OSError):  # which scoring reports
        return ()
