"""One row of the table ``image``: an image as SQLite keeps it, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from segiou._support.files import Problem
from segiou.runs.cells import boundary_crc, decode_cells, encode_cells
from segiou.runs.database import (
    RunFileError,
    from_text,
    id_order,
    open_reading,
    read_entries,
    read_header,
    row_crc,
    to_text,
)
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount, ImageFiles, Stamp

__all__ = [
    "IMAGE_COLUMNS",
    "INSERT_BOUNDARY",
    "INSERT_IMAGE",
    "RunFile",
    "boundary_rows",
    "check_boundaries",
    "files_of_row",
    "image_rows",
    "images_of",
    "inside",
    "read_blocks",
    "within",
]

INSERT_IMAGE = "INSERT INTO image VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_BOUNDARY = "INSERT INTO boundary VALUES (?, ?, ?)"
_UNKNOWN = Stamp(None, None)


def within(root: str, name: str) -> str:
    """The path of a file in the folder that a run names."""
    if not root or name.startswith("/") or "://" in name or not name:
        return name or root
    return f"{root.rstrip('/')}/{name}"


def inside(root: str, path: str) -> str:
    """The name that :func:`within` makes the path of again."""
    start = f"{root.rstrip('/')}/"
    if not root or not path.startswith(start):
        return path
    name = path[len(start) :]
    return path if name.startswith("/") or "://" in name or not name else name


def image_rows(columns: Columns, header: Header) -> list[tuple[Any, ...]]:
    """What is kept of images."""
    blobs = encode_cells(columns.sizes, columns.cells, columns.values)
    ignored = columns.ignored.tolist()
    pixels = (columns.pixels() + columns.ignored).tolist()
    return [
        (
            to_text(id),
            to_text(inside(header.truth, files.truth)),
            to_text(inside(header.pred, files.pred)),
            *(files.truth_stamp or _UNKNOWN),
            *(files.pred_stamp or _UNKNOWN),
            seen,
            dropped,
            blob,
            row_crc(id, dropped, blob),
        )
        for id, files, seen, dropped, blob in zip(
            columns.ids, columns.files, pixels, ignored, blobs, strict=True
        )
    ]


def check_boundaries(columns: Columns) -> None:
    """Refuse images that lack boundary counts.

    Raises
    ------
    ValueError
    """
    if len(columns.boundary) != len(columns):
        msg = (
            f"{len(columns) - len(columns.boundary)} of {len(columns)} images have no boundary "
            "counts; score them with boundary=True (--boundary)"
        )
        raise ValueError(msg)


def boundary_rows(columns: Columns) -> list[tuple[Any, ...]]:
    """What is kept of the boundaries of images."""
    check_boundaries(columns)
    return [
        (to_text(id), packed, boundary_crc(id, packed))
        for id, packed in zip(columns.ids, columns.boundary, strict=True)
    ]


def files_of_row(truth: Any, pred: Any, stamps: tuple[Any, ...], header: Header) -> ImageFiles:
    """The files of an image."""
    return ImageFiles(
        within(header.truth, from_text(truth or "")),
        within(header.pred, from_text(pred or "")),
        _stamp(*stamps[:2]),
        _stamp(*stamps[2:]),
    )


def _stamp(size: Any, version: Any) -> Stamp | None:
    return None if size is None and version is None else Stamp(size, version)


IMAGE_COLUMNS = (
    "id, truth, pred, truth_size, truth_version, pred_size, pred_version, ignored, cells, crc"
)
_NO_FILES = "id, '', '', NULL, NULL, NULL, NULL, ignored, cells, crc"
_BOUNDARIES = "SELECT id, counts, crc FROM boundary WHERE id IN (SELECT id FROM image) ORDER BY id"
#: Images decoded at once.
_BLOCK = 1 << 15

Row = tuple[Any, ...]


def read_blocks(
    connection: sqlite3.Connection,
    path: Path,
    header: Header,
    *,
    files: bool = True,
    boundary: bool | None = None,
) -> Iterator[Columns]:
    """All images, in the order of their ids, many at a time.

    Boundary counts come with the files, unless it is said otherwise.

    Raises
    ------
    RunFileError
        If a row is damaged, or rows are missing.
    """
    num_cells = header.options.num_classes * (header.options.num_classes + 1)
    expected = int(read_entries(connection, path).get("images", -1))
    columns = IMAGE_COLUMNS if files else _NO_FILES
    cursor = connection.execute(f"SELECT {columns} FROM image ORDER BY id")
    wanted = header.boundary is not None and (files if boundary is None else boundary)
    at_boundaries = connection.execute(_BOUNDARIES) if wanted else None
    seen = 0
    previous: list[tuple[bool, bytes]] = []
    while rows := cursor.fetchmany(_BLOCK):
        block = _block(rows, path, header, num_cells, files=files)
        order = [*previous, *(id_order(id) for id in block.ids)]
        if any(a >= b for a, b in pairwise(order)):
            raise RunFileError(path, "is a damaged run file: its ids are out of order")
        if at_boundaries is not None:
            packed = _packed(at_boundaries.fetchmany(len(rows)), block.ids, path)
            block = replace(block, boundary=packed)
        previous = order[-1:]
        seen += len(rows)
        yield block
    if seen != expected:
        problem = f"is a damaged run file: it holds {seen} images and should hold {expected}"
        raise RunFileError(path, problem)


def _block(rows: list[Row], path: Path, header: Header, num_cells: int, *, files: bool) -> Columns:
    _check_rows(rows, path)
    try:
        sizes, cells, values = decode_cells([row[8] for row in rows], num_cells)
    except ValueError as error:
        raise RunFileError(path, f"is a damaged run file: {error}") from error
    return Columns(
        tuple(from_text(row[0]) for row in rows),
        sizes,
        cells,
        values,
        np.array([row[7] for row in rows], dtype=np.int64),
        tuple(files_of_row(row[1], row[2], row[3:7], header) for row in rows) if files else (),
    )


def _check_rows(rows: list[Row], path: Path) -> None:
    for row in rows:
        id, ignored, cells, crc = row[0], row[7], row[8], row[9]
        if type(ignored) is int and ignored >= 0 and type(cells) is bytes:
            # As row_crc, spelt out: this is most of what summing a run costs.
            head = b"%s\0%d\0" % (id if type(id) is bytes else str(id).encode(), ignored)
            if crc32(cells, crc32(head)) == crc:
                continue
        problem = f"is damaged: image {id!r} does not match its checksum"
        raise RunFileError(path, f"{problem}; score again into a new file")


def _packed(rows: list[Row], ids: tuple[str, ...], path: Path) -> tuple[bytes, ...]:
    if tuple(from_text(row[0]) for row in rows) != ids:
        raise RunFileError(path, "is a damaged run file: images have no boundary counts")
    for id, packed, crc in rows:
        if type(packed) is not bytes or boundary_crc(from_text(id), packed) != crc:
            problem = f"is damaged: the boundary counts of {id!r} do not match their checksum"
            raise RunFileError(path, f"{problem}; score again into a new file")
    return tuple(row[1] for row in rows)


def images_of(connection: sqlite3.Connection, path: Path, header: Header) -> Iterator[ImageCount]:
    """All images, one at a time."""
    for block in read_blocks(connection, path, header):
        yield from block


@dataclass(frozen=True)
class RunFile:
    """A run file as it was when it was opened.

    Attributes
    ----------
    path : Path
    header : Header
    skipped : tuple of Problem
        Pairs that were left out.
    revision : int
        Counts the commits; tells that the file has changed since.
    """

    path: Path
    header: Header
    skipped: tuple[Problem, ...]
    revision: int

    @classmethod
    def open(cls, path: str | Path) -> RunFile:
        """Open a run file.

        Raises
        ------
        RunFileError
            As :func:`segiou.runs.database.open_reading`.
        """
        path = Path(path).expanduser()
        with open_reading(path) as connection:
            header = read_header(connection, path)
            revision = int(read_entries(connection, path).get("revision", 0))
            return cls(path, header, tuple(_problems(connection, header)), revision)

    @cached_property
    def num_images(self) -> int:
        """Images in the file."""
        with open_reading(self.path) as connection:
            return int(read_entries(connection, self.path).get("images", 0))

    def blocks(self, *, files: bool = True, boundary: bool | None = None) -> Iterator[Columns]:
        """All images, many at a time; boundary counts come with the files, or if asked for.

        Raises
        ------
        RunFileError
            If the file is damaged, or has changed since it was opened.
        """
        with open_reading(self.path) as connection:
            if int(read_entries(connection, self.path).get("revision", 0)) != self.revision:
                problem = "has changed since it was opened; open it again: segiou.Run.open"
                raise RunFileError(self.path, problem)
            yield from read_blocks(
                connection, self.path, self.header, files=files, boundary=boundary
            )


def _problems(connection: sqlite3.Connection, header: Header) -> Iterator[Problem]:
    for where, text in connection.execute("SELECT path, problem FROM skipped ORDER BY path, rowid"):
        yield Problem(from_text(where or ""), str(text))
    gone = connection.execute("SELECT id, truth FROM vanished ORDER BY id")
    for id, truth in gone:
        where = within(header.truth, from_text(truth or "")) or from_text(id)
        yield Problem(where, "has vanished since it was scored; not in the totals")
