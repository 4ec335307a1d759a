"""A run file as it is read: rows to images, with every checksum verified."""

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
from segiou.runs.cells import decode_cells
from segiou.runs.database import RunFileError, Totals, checksum, open_reading, read_head
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageFiles, Stamp, from_text, id_order

__all__ = ["FILE_COLUMNS", "RunFile", "files_of_row", "inside", "within"]

FILE_COLUMNS = "id, truth, pred, truth_size, truth_version, pred_size, pred_version, files_crc"
#: Kinds of these columns but the first and the last, which may also be NULL.
_FILE_KINDS: tuple[type | tuple[type, ...], ...] = (
    (str, bytes),
    (str, bytes),
    int,
    (int, str),
    int,
    (int, str),
)
_COUNTS = "id, pixels, ignored, cells, crc"
_NUM_COUNTS = 5
_BOUNDARIES = "SELECT id, counts, crc FROM boundary WHERE id IN (SELECT id FROM image) ORDER BY id"
#: Images decoded at once, and how many counts of classes they have together at most.
_BLOCK = 1 << 15
_MOST_COUNTS = 1 << 22
#: Sums of more pixels than this could leave int64.
_MOST_PIXELS = 1 << 62

Row = tuple[Any, ...]


def within(root: str, name: str) -> str:
    """The path of a file in the folder that a run names."""
    if not root or name.startswith("/") or "://" in name or not name:
        return name or root
    return f"{root.rstrip('/')}/{name}"


def inside(root: str, path: str) -> str:
    """The name from which :func:`within` makes the path."""
    start = f"{root.rstrip('/')}/"
    if not root or not path.startswith(start):
        return path
    name = path[len(start) :]
    return path if name.startswith("/") or "://" in name or not name else name


def files_of_row(row: Row, header: Header, path: Path) -> ImageFiles:
    """The files of an image, from the columns ``FILE_COLUMNS``."""
    id, truth, pred, *stamps, crc = row
    kinds_are_right = all(
        value is None or isinstance(value, kinds)
        for value, kinds in zip(row[1:-1], _FILE_KINDS, strict=True)
    )
    names_are_right = kinds_are_right and isinstance(id, (str, bytes))
    if not names_are_right or checksum(id, truth, pred, *stamps) != crc:
        problem = f"is damaged: the files of image {_shown(id)} do not match their checksum"
        raise RunFileError(path, f"{problem}; score again into a new file")
    return ImageFiles(
        within(header.truth, from_text(truth or "")),
        within(header.pred, from_text(pred or "")),
        *(None if not any(s) else Stamp(*s) for s in (stamps[:2], stamps[2:])),
    )


@dataclass(frozen=True)
class RunFile:
    """A run file as it was when it was opened.

    Attributes
    ----------
    path : Path
    header : Header
    totals : Totals
        Its revision tells whether the file has changed since.
    skipped : tuple of Problem
        Pairs that were left out.
    """

    path: Path
    header: Header
    totals: Totals
    skipped: tuple[Problem, ...]

    @classmethod
    def open(cls, path: str | Path) -> RunFile:
        """Open a run file.

        Raises
        ------
        RunFileError
            If it is not there, no run, damaged, of another version, or being written.
        """
        path = Path(path).expanduser()
        with open_reading(path) as connection:
            header, totals = read_head(connection, path)
            problems = (
                *_skipped(connection, path, totals),
                *_missing(connection, path, header, totals),
            )
            return cls(path, header, totals, problems)

    def __len__(self) -> int:
        return self.totals.images

    @cached_property
    def _block_size(self) -> int:
        return max(1, min(_BLOCK, _MOST_COUNTS // self.header.options.num_classes))

    def blocks(self, *, files: bool = True, boundary: bool | None = None) -> Iterator[Columns]:
        """All images, in the order of their ids, many at a time.

        Boundary counts come with the files, unless it is said otherwise.

        Raises
        ------
        RunFileError
            If the file is damaged, or has changed since it was opened.
        """
        wanted = self.header.boundary is not None and (files if boundary is None else boundary)
        with open_reading(self.path) as connection:
            if read_head(connection, self.path)[1].revision != self.totals.revision:
                problem = "has changed since it was opened; open it again: segiou.Run.open"
                raise RunFileError(self.path, problem)
            last: list[tuple[bool, bytes]] = []
            seen = 0
            at_boundaries = connection.execute(_BOUNDARIES) if wanted else None
            columns = f"{_COUNTS}, {FILE_COLUMNS}" if files else _COUNTS
            cursor = connection.execute(f"SELECT {columns} FROM image ORDER BY id")
            while rows := cursor.fetchmany(self._block_size):
                block = self._decoded(rows, files=files)
                order = [*last, *map(id_order, block.ids)]
                if any(a >= b for a, b in pairwise(order)):
                    raise RunFileError(self.path, "is a damaged run file: its ids are out of order")
                if at_boundaries is not None:
                    found = at_boundaries.fetchmany(len(rows))
                    block = replace(block, boundary=self._checked_boundaries(found, block.ids))
                last = order[-1:]
                seen += len(rows)
                yield block
            _check_number(self.path, "images", seen, self.totals.images)

    def _decoded(self, whole_rows: list[Row], *, files: bool) -> Columns:
        rows = [row[:_NUM_COUNTS] for row in whole_rows] if files else whole_rows
        _check_rows(rows, self.path)
        file_rows = [row[_NUM_COUNTS:] for row in whole_rows] if files else []
        try:
            num_cells = self.header.options.num_classes * (self.header.options.num_classes + 1)
            cells = decode_cells([row[3] for row in rows], num_cells)
        except ValueError as error:
            raise RunFileError(self.path, f"is a damaged run file: {error}") from error
        block = Columns(
            tuple(from_text(row[0]) for row in rows),
            *cells,
            np.array([row[2] for row in rows], dtype=np.int64),
            tuple(files_of_row(row, self.header, self.path) for row in file_rows),
        )
        if sum(row[1] for row in rows) > _MOST_PIXELS:
            raise RunFileError(self.path, "holds more pixels than can be counted")
        if [row[1] for row in rows] != (block.pixels() + block.ignored).tolist():
            problem = "is a damaged run file: the cells of an image do not sum to its pixels"
            raise RunFileError(self.path, problem)
        return block

    def _checked_boundaries(self, rows: list[Row], ids: tuple[str, ...]) -> tuple[bytes, ...]:
        from segiou.runs.cells import boundary_length

        if tuple(from_text(row[0]) for row in rows) != ids:
            raise RunFileError(self.path, "is a damaged run file: images have no boundary counts")
        for id, packed, crc in rows:
            if type(packed) is not bytes or checksum(id, packed) != crc:
                what = f"the boundary counts of {_shown(id)} do not match their checksum"
                raise RunFileError(self.path, f"is damaged: {what}; score again into a new file")
        assert self.header.boundary is not None
        try:
            length = boundary_length(self.header.options.num_classes, self.header.boundary)
            decode_cells([row[1] for row in rows], length)
        except ValueError as error:
            raise RunFileError(self.path, f"is a damaged run file: {error}") from error
        return tuple(row[1] for row in rows)


def _check_rows(rows: list[Row], path: Path) -> None:
    for id, pixels, ignored, cells, crc in rows:
        if (
            type(id) in (str, bytes)
            and type(pixels) is type(ignored) is int
            and 0 <= ignored <= pixels
            and type(cells) is bytes
        ):
            # As checksum, written out: this is most of what summing a run costs.
            head = b"%s\0%d\0%d\0" % (id if type(id) is bytes else id.encode(), pixels, ignored)
            if crc32(cells, crc32(head)) == crc:
                continue
        problem = f"is damaged: image {_shown(id)} does not match its checksum"
        raise RunFileError(path, f"{problem}; score again into a new file")


def _skipped(connection: sqlite3.Connection, path: Path, totals: Totals) -> Iterator[Problem]:
    query = "SELECT id, path, problem, crc FROM skipped ORDER BY path, rowid"
    rows = connection.execute(query).fetchall()
    _check_number(path, "problems", len(rows), totals.skipped)
    for id, where, text, crc in rows:
        if type(text) is not str or checksum(id, where, text) != crc:
            problem = f"is damaged: the problem of {_shown(where)} does not match its checksum"
            raise RunFileError(path, f"{problem}; score again into a new file")
        yield Problem(from_text(where or ""), text)


def _missing(
    connection: sqlite3.Connection, path: Path, header: Header, totals: Totals
) -> Iterator[Problem]:
    rows = connection.execute(f"SELECT {FILE_COLUMNS} FROM missing ORDER BY id").fetchall()
    _check_number(path, "missing images", len(rows), totals.missing)
    for row in rows:
        where = files_of_row(row, header, path).truth or from_text(row[0])
        yield Problem(where, "was scored before and is missing now; it is not in the totals")


def _check_number(path: Path, what: str, found: int, expected: int) -> None:
    if found != expected:
        problem = f"is a damaged run file: it holds {found} {what} and should hold {expected}"
        raise RunFileError(path, problem)


def _shown(name: Any) -> str:
    return repr(from_text(name) if isinstance(name, (str, bytes)) else name)
