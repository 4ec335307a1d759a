"""Several runs into one, image by image."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from segiou._support.files import Problem
from segiou.runs.database import id_order, open_reading
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount
from segiou.runs.run_reading import RunFile, images_of
from segiou.runs.run_writing import write_new

if TYPE_CHECKING:
    from segiou.runs.run import Images

__all__ = ["merge_files", "merged"]

_BLOCK = 4096


def merge_files(paths: Sequence[str | Path], output: str | Path) -> Path:
    """Join run files into a new one; memory does not grow with their size.

    An image that is in several files with equal counts is counted once.

    Parameters
    ----------
    paths : sequence of str or path
        Runs of the same classes and options.
    output : str or path
        A file that does not exist yet.

    Raises
    ------
    RunFileError
        If a file cannot be used.
    ValueError
        If classes or options differ, or an image has different counts in two
        files.
    """
    files = [RunFile.open(path) for path in paths]
    names = [str(file.path) for file in files]
    headers = [file.header for file in files]
    check_same_options(headers, names)
    with ExitStack() as stack:
        streams = []
        for file in files:
            connection = stack.enter_context(open_reading(file.path))
            streams.append(images_of(connection, file.path, file.header))
        images = without_duplicates(streams, names)
        skipped = list(dict.fromkeys(p for file in files for p in file.skipped))
        return write_new(output, merged_header(headers, names), _blocks(images), skipped)


def merged(
    runs: Sequence[Images], headers: Sequence[Header]
) -> tuple[Header, Columns, tuple[Problem, ...]]:
    """Header, images and left out pairs of several runs together, in memory.

    Raises
    ------
    ValueError
        As :func:`merge_files`.
    """
    names = [run.name or f"run {i}" for i, run in enumerate(runs)]
    check_same_options(headers, names)
    header = merged_header(headers, names) if len(runs) > 1 else headers[0]
    columns = Columns.of(list(without_duplicates(runs, names)))
    return header, columns, tuple(dict.fromkeys(p for run in runs for p in run.skipped))


def check_same_options(headers: Sequence[Header], names: Sequence[str]) -> None:
    """Refuse to merge runs that were counted differently.

    Raises
    ------
    ValueError
        Naming the two runs and the difference.
    """
    for header, name in zip(headers, names, strict=True):
        if difference := headers[0].counting_difference(header):
            msg = f"cannot merge runs: {difference} (here: {names[0]}, there: {name})"
            raise ValueError(msg)


def merged_header(headers: Sequence[Header], names: Sequence[str]) -> Header:
    """What is true of all of them; folders that differ are told by full paths."""
    first = headers[0]
    truths, preds = {h.truth for h in headers}, {h.pred for h in headers}
    same_reading = all(h.reading == first.reading for h in headers)
    return replace(
        first,
        name=first.name if len({h.name for h in headers}) == 1 else " + ".join(names),
        truth=first.truth if len(truths) == 1 else "",
        pred=first.pred if len(preds) == 1 else "",
        reading=first.reading if same_reading else {},
        provenance={"merged": [dict(h.provenance) for h in headers]},
        expected=None,
        finished=all(h.finished for h in headers),
        versions=tuple(v for h in headers for v in h.versions if v not in first.versions)
        + first.versions,
    )


def without_duplicates(
    streams: Sequence[Iterable[ImageCount]], names: Sequence[str]
) -> Iterator[ImageCount]:
    """Images of several runs in the order of their ids, each once.

    Raises
    ------
    ValueError
        If an image has different counts in two runs.
    """
    last: ImageCount | None = None
    origin = ""
    for image, name in _in_order(streams, names):
        if last is not None and image.id == last.id:
            if not image.same_counts(last):
                where = "" if origin == name else f" ({origin}, {name})"
                msg = f"cannot merge runs: image {image.id!r} has different counts in them{where}"
                raise ValueError(msg)
            continue
        last, origin = image, name
        yield image


def _in_order(
    streams: Sequence[Iterable[ImageCount]], names: Sequence[str]
) -> Iterator[tuple[ImageCount, str]]:
    def named(stream: Iterable[ImageCount], name: str) -> Iterator[tuple[ImageCount, str]]:
        return ((image, name) for image in stream)

    return heapq.merge(
        *(named(stream, name) for stream, name in zip(streams, names, strict=True)),
        key=lambda item: id_order(item[0].id),
    )


def _blocks(images: Iterator[ImageCount]) -> Iterator[Columns]:
    while block := list(islice(images, _BLOCK)):
        yield Columns.of(block)
