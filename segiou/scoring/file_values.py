"""Values of mask files, with their numbers of pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from segiou._support.files import Problem, os_problem
from segiou.counting.id_pairs import count_ids
from segiou.labels.label_set import LabelSet
from segiou.masks.colors import count_colors
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import class_values, from_bytes, open_mask, open_windowed
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.windows import chunks_of, window_slices
from segiou.scoring.problems import or_problem

#: Masks with at least this many pixels are read and counted window by window.
_BIG_PIXELS = 1 << 22
#: Name of pixels outside all shapes of an annotation tool.
IN_NO_SHAPE = "background"


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file: pixels with each value, colour or name, and its metadata."""

    path: str
    what: Literal["values", "colors", "names"]
    pixels: Counter[Any]
    mask: RawMask

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the mask."""
        return tuple(self.mask.values.shape)


def segments_of(read: Iterable[FileContent | Problem]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Names and values of the segments of each file."""
    for content in read:
        if isinstance(content, FileContent) and content.mask.volume is not None:
            yield content.mask.volume.segments


def assign_segment_values(
    content: FileContent | Problem, wanted: Mapping[str, int]
) -> FileContent | Problem:
    """The content with the wanted values for its named segments, as it is scored."""
    if (
        isinstance(content, Problem)
        or content.mask.volume is None
        or not content.mask.volume.segments
    ):
        return content
    new = {value: wanted[name] for name, value in content.mask.volume.segments}
    pixels: Counter[Any] = Counter()
    for value, number in content.pixels.items():
        pixels[new.get(value, value)] += number
    segments = tuple((name, wanted[name]) for name, _ in content.mask.volume.segments)
    volume = replace(content.mask.volume, segments=segments)
    return replace(content, pixels=pixels, mask=content.mask._replace(volume=volume))


def greys_to_values(
    read: Sequence[FileContent | Problem], labels: LabelSet | None
) -> list[FileContent | Problem]:
    """The files with colours that are all grey as values, as they are scored without colours."""
    of_colors = [
        content for content in read if isinstance(content, FileContent) and content.what == "colors"
    ]
    has_colors = labels is not None and labels.has_colors
    greys = {f"#{value:02x}{value:02x}{value:02x}": value for value in range(256)}
    if (
        not of_colors
        or has_colors
        or any(content.pixels.keys() - greys.keys() for content in of_colors)
    ):
        return [*read]

    def converted(content: FileContent | Problem) -> FileContent | Problem:
        if not isinstance(content, FileContent) or content.what != "colors":
            return content
        pixels = Counter({greys[color]: number for color, number in content.pixels.items()})
        return replace(content, what="values", pixels=pixels)

    return [converted(content) for content in read]


def read_values(source: Source, path: str) -> FileContent | Problem:
    """Count the values of a file, or return its problem."""
    return or_problem(path, _count_values, source, path)


def _count_values(source: Source, path: str) -> FileContent:
    # Local files are read window by window if they are large.
    if not isinstance(source, LocalFolder):
        return _content(path, from_bytes(source.read(path)[0], path))
    try:
        if (big := open_windowed(path, least=_BIG_PIXELS)) is None:
            return _content(path, open_mask(path))
        with big.values:
            return _content(path, big)
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error


def _content(path: str, mask: RawMask) -> FileContent:
    """Count the values of a mask window by window."""
    shape = mask.values.shape[:2] if mask.is_color else mask.values.shape
    pixels: Counter[Any] = Counter()
    for window in window_slices(shape, chunks_of(mask.values), _BIG_PIXELS):
        part = class_values(mask, mask.values[window])
        pixels.update(count_colors(part) if mask.is_color else count_ids(part))
    # A broadcast scalar keeps shape and dtype without memory per pixel.
    nothing = np.broadcast_to(np.zeros((), mask.values.dtype), shape)
    volume = None if mask.volume is None else replace(mask.volume, values=nothing)
    about = mask._replace(values=nothing, volume=volume)
    if not mask.names:
        return FileContent(path, "colors" if mask.is_color else "values", pixels, about)
    names: Counter[Any] = Counter()
    for value, number in pixels.items():
        names[mask.names[value] or IN_NO_SHAPE] += number
    return FileContent(path, "names", names, about)
