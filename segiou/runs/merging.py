"""Several runs merged into one."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from segiou._support.files import Problem
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount, id_order
from segiou.runs.run_reading import RunFile
from segiou.runs.run_writing import write_new

if TYPE_CHECKING:
    from segiou.runs.run import Run

__all__ = ["merge_files", "merged"]

_BLOCK = 4096


def merge_files(paths: Sequence[str | Path], output: str | Path, *, partial: bool = False) -> Path:
    """Join run files into a new one; memory does not grow with their size.

    An image that is in several files with equal counts is counted once.

    Parameters
    ----------
    paths : sequence of str or path
        Runs of the same classes and options.
    output : str or path
        A file that does not exist yet.
    partial : bool
        Whether parts (``shard``) of the data set may be missing; the run and its
        reports then say which.

    Raises
    ------
    RunFileError
        If a file cannot be used.
    ValueError
        If classes or options differ, an image has different counts in two
        files, or a part is missing.
    """
    files = [RunFile.open(path) for path in paths]
    names = [str(file.path) for file in files]
    header = _merged_header([file.header for file in files], names, partial=partial)
    streams = [_images(file) for file in files]
    images = _without_duplicates(streams, names)
    skipped = dict.fromkeys(p for file in files for p in file.skipped)
    return write_new(output, header, _blocks(images), skipped)


def merged(
    runs: Sequence[Run], headers: Sequence[Header], *, partial: bool
) -> tuple[Header, Columns, tuple[Problem, ...]]:
    """Header, images and left out pairs of several runs together, in memory.

    Raises
    ------
    ValueError
        As :func:`merge_files`.
    """
    names = [run.name or f"run {i}" for i, run in enumerate(runs)]
    header = _merged_header(headers, names, partial=partial) if len(runs) > 1 else headers[0]
    columns = Columns.of(list(_without_duplicates(runs, names)))
    return header, columns, tuple(dict.fromkeys(p for run in runs for p in run.skipped))


def _merged_header(headers: Sequence[Header], names: Sequence[str], *, partial: bool) -> Header:
    """What is true of all runs; refuses runs that do not belong together."""
    first = headers[0]
    for header, name in zip(headers, names, strict=True):
        if difference := first.counting_difference(header):
            msg = f"cannot merge runs: {difference} (here: {names[0]}, there: {name})"
            raise ValueError(msg)
    truths, preds = {h.truth for h in headers}, {h.pred for h in headers}
    same_reading = all(h.reading == first.reading for h in headers)
    header = replace(
        first,
        name=first.name if len({h.name for h in headers}) == 1 else " + ".join(names),
        truth=first.truth if len(truths) == 1 else "",
        pred=first.pred if len(preds) == 1 else "",
        reading=first.reading if same_reading else {},
        provenance={"merged": [dict(h.provenance) for h in headers]},
        expected=None,
        finished=all(h.finished for h in headers),
        versions=_each_once(v for h in headers for v in h.versions),
        shards=tuple(sorted({shard for h in headers for shard in h.shards})),
    )
    if not partial and (missing := header.missing_shards()):
        msg = (
            f"the merged run would not be complete: {missing}; merge the missing parts too, or "
            "accept it so: partial=True (--partial)"
        )
        raise ValueError(msg)
    return header


def _without_duplicates(
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
    named = (zip(s, repeat(name), strict=False) for s, name in zip(streams, names, strict=True))
    return heapq.merge(*named, key=lambda item: id_order(item[0].id))


def _images(file: RunFile) -> Iterator[ImageCount]:
    for block in file.blocks():
        yield from block


def _each_once(entries: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    found: list[Mapping[str, str]] = []
    for entry in entries:
        if entry not in found:
            found.append(entry)
    return tuple(found)


def _blocks(images: Iterator[ImageCount]) -> Iterator[Columns]:
    while block := list(islice(images, _BLOCK)):
        yield Columns.of(block)
