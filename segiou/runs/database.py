"""Run files: SQLite databases with documented tables, and how they are read.

docs/runs.md describes the tables with examples. ``image`` has one row per image,
sorted by id; the views ``cell`` and ``class_count`` decode its counts in plain SQL.
All data that affects a score has a checksum, which is verified on reading.
"""

from __future__ import annotations

import json
import operator
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import check_path
from segiou._support.files import FileError, Problem, Stamp, no_file_problem
from segiou._support.optional import PluginError
from segiou.measures.guard import MeasureError
from segiou.runs.header import Header, read_count
from segiou.runs.image_counts import (
    Columns,
    ImageCount,
    ImageFiles,
    check_packed,
    decode_cells,
    from_text,
    id_order,
)

if TYPE_CHECKING:
    from segiou.measures.measure import Measure

#: "sIoU" in ASCII, by which `file` and others recognise a run file.
APPLICATION_ID = 0x73496F55
FORMAT_VERSION = 5

_IMAGE_COLUMNS = """(
  id PRIMARY KEY,        -- key of the pair; TEXT, or BLOB where a name is not UTF-8
  truth, pred,           -- files, within the folders that run names
  truth_size, truth_version, pred_size, pred_version,  -- bytes; mtime in ns, ETag or CRC
  files_crc INTEGER NOT NULL,  -- CRC-32 of id and the six columns before
  pixels INTEGER NOT NULL,
  ignored INTEGER NOT NULL,
  cells BLOB NOT NULL,   -- filled cells of the confusion matrix: see the view cell
  crc INTEGER NOT NULL,  -- CRC-32 of id, pixels, ignored and cells
  measured BLOB,         -- what its measures counted, if they were asked for
  measured_crc INTEGER   -- CRC-32 of id and measured
) WITHOUT ROWID"""


def _byte(at: str) -> str:
    high, low = (f"instr('0123456789ABCDEF', substr(hex, 2 * ({at}) + {i}, 1)) - 1" for i in (1, 2))
    return f"({high}) * 16 + {low}"


# Decodes LEB128 one byte per step; `low` is the number decoded so far.
# Numbers at even positions are steps to the next cell, those at odd positions its pixels.
_CELL = f"""CREATE VIEW cell AS
WITH RECURSIVE
size(classes) AS (SELECT count(*) FROM class),
byte(id, hex, at, byte, nth, shift, low, cell) AS (
  SELECT id, hex, 0, {_byte("0")}, 0, 0, 0, -1
  FROM (SELECT id, hex(cells) AS hex FROM image) WHERE hex != ''
  UNION ALL
  SELECT id, hex, at + 1, {_byte("at + 1")},
    nth + (byte < 128),
    iif(byte < 128, 0, shift + 7),
    iif(byte < 128, 0, low + ((byte & 127) << shift)),
    cell + iif(byte < 128 AND nth % 2 = 0, low + ((byte & 127) << shift), 0)
  FROM byte WHERE 2 * at + 2 < length(hex)
)
SELECT id, cell / (classes + 1) AS truth,
  nullif(cell % (classes + 1), classes) AS pred,
  low + ((byte & 127) << shift) AS pixels
FROM byte, size WHERE byte < 128 AND nth % 2 = 1"""

#: The statement that creates each table and view, by name.
_OBJECTS = {
    "run": """CREATE TABLE run (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,   -- JSON
  crc INTEGER NOT NULL   -- CRC-32 of key and value
) WITHOUT ROWID""",
    "image": f"CREATE TABLE image {_IMAGE_COLUMNS}",
    "missing": f"CREATE TABLE missing {_IMAGE_COLUMNS}",
    "skipped": """CREATE TABLE skipped (
  id,                    -- key of the pair, where there is one
  path,                  -- the file that has the problem
  problem TEXT NOT NULL,
  crc INTEGER NOT NULL   -- CRC-32 of id, path and problem
)""",
    "class": """CREATE VIEW class AS
SELECT CAST(key AS INTEGER) AS class, json_extract(value, '$.name') AS name
FROM json_each((SELECT value FROM run WHERE key = 'options'), '$.labels.classes')""",
    "cell": _CELL,
    "class_count": """CREATE VIEW class_count AS
SELECT id, class.class, name,
  sum(iif(truth = class.class AND pred = class.class, pixels, 0)) AS tp,
  sum(iif(truth != class.class AND pred = class.class, pixels, 0)) AS fp,
  sum(iif(truth = class.class AND pred IS NOT class.class, pixels, 0)) AS fn
FROM cell JOIN class ON class.class IN (truth, pred)
GROUP BY id, class.class""",
}
#: Statements that create an empty run file.
SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT_VERSION}",
    *_OBJECTS.values(),
)


FULL = "the disk is full; committed pairs are kept. Free some space and rerun the command to resume"
_IN_USE = "is locked: another process or thread is writing to it; wait until it finishes"
_READ_ONLY = "is read-only (file or folder)"
_NO_SQLITE = "is not a run file (not SQLite)"
#: Problem and fix for SQLite error codes; any other code means that the file is corrupt.
_MEANINGS = {
    sqlite3.SQLITE_BUSY: _IN_USE,
    sqlite3.SQLITE_LOCKED: _IN_USE,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: "cannot be read or written ({}); check that the disk is not full",
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that the folder exists and is writable",
    sqlite3.SQLITE_NOTADB: _NO_SQLITE,
}


class RunFileError(FileError):
    """A run file cannot be used; the message names the file and the fix.

    Attributes
    ----------
    path : str
    problem : str
    """


def damaged(path: Path, what: object) -> RunFileError:
    """The error for a corrupt run file."""
    return RunFileError(path, f"is corrupt ({what}); rescore into a new file")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite errors into errors that explain the problem."""
    try:
        yield
    except sqlite3.Error as error:
        problem = _MEANINGS.get(_code(error), "").format(error)
        raise (RunFileError(path, problem) if problem else damaged(path, error)) from error
    except OverflowError as error:
        raise RunFileError(path, f"cannot store a number this large: {error}") from error
    except UnicodeDecodeError as error:
        # Python cannot decode SQLite's message about a corrupt schema.
        raise damaged(path, "its schema cannot be read") from error


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def check_local(path: str | Path) -> None:
    """ValueError for the URL of a run file, which SQLite cannot open."""
    if isinstance(path, str) and "://" in path:
        msg = f"{path}: run files are local; copy it to or from the remote folder as a whole file"
        raise ValueError(msg)


@contextmanager
def open_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing run file to read it."""
    if not path.is_file():
        raise RunFileError(path, no_file_problem(path))
    with explained(path), closing(_connected_for_reading(path)) as connection:
        check_is_run(connection, path)
        yield connection


def _connected_for_reading(path: Path) -> sqlite3.Connection:
    address = path.absolute().as_uri()
    try:
        # "rw" lets SQLite recover the journal of a killed process; without write permission it
        # falls back to reading.
        return _connect(f"{address}?mode=rw")
    except sqlite3.Error as error:
        unwritable = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if _code(error) not in unwritable or Path(f"{path}-wal").exists():
            raise
    return _connect(f"{address}?mode=ro&immutable=1")


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=0.5)
    try:
        harden(connection)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def harden(connection: sqlite3.Connection) -> None:
    """Treat the file as untrusted."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def check_is_run(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunFileError unless it is a run file of this version."""
    if path.stat().st_size == 1:  # SQLite treats such a file as empty
        raise RunFileError(path, _NO_SQLITE)
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise RunFileError(path, "is an SQLite database, but not a segiou run")
    version = _pragma(connection, "user_version")
    if version != FORMAT_VERSION:
        what_to_do = "update segiou" if version > FORMAT_VERSION else "rescore into a new file"
        problem = f"has run format {version}; this version of segiou reads format {FORMAT_VERSION}"
        raise RunFileError(path, f"{problem}; {what_to_do}")
    # As bytes, because corrupt names may not be valid text.
    query = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master"
    stored = dict(connection.execute(query))
    wanted = {name.encode(): sql.encode() for name, sql in _OBJECTS.items()}
    if stored != wanted:
        names = [n for n in {**wanted, **stored} if stored.get(n) != wanted.get(n)]
        text = ", ".join(ascii((name or b"").decode("utf-8", "replace"))[1:-1] for name in names)
        raise damaged(path, f"unexpected schema: {text:.200}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the database has no tables, as after a process was killed at once."""
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    is_no_other = _pragma(connection, "application_id") in (0, APPLICATION_ID)
    return count == 0 and is_no_other and path.stat().st_size != 1


def checksum(*values: str | bytes | int | None) -> int:
    """CRC-32 of values, each as text (None: empty), with a zero byte between them."""
    texts = ("" if value is None else value for value in values)
    parts = (
        v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogateescape") for v in texts
    )
    return zlib.crc32(b"\0".join(parts))


@dataclass
class Totals:
    """Expected numbers of rows, and a revision that counts changes to the images."""

    images: int = 0
    missing: int = 0
    skipped: int = 0
    revision: int = 0


def write_entries(connection: sqlite3.Connection, entries: Mapping[str, Any]) -> None:
    """Set entries of the table ``run``."""
    rows = []
    for key, value in entries.items():
        text = json.dumps(value, ensure_ascii=True, allow_nan=False)
        rows.append((key, text, checksum(key, text)))
    connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?, ?)", rows)


def read_head(
    connection: sqlite3.Connection, path: Path, measures: Sequence[Measure] = ()
) -> tuple[Header, Totals]:
    """The content of the table ``run``; RunFileError if it is corrupt or incomplete."""
    texts = _head_texts(connection, path)
    with _explained_head(path):
        entries = {key: json.loads(text) for key, text in texts.items()}
        header = Header.from_dict(entries, measures)
        return header, Totals(*(read_count(entries, f.name) for f in fields(Totals)))


def _read_revision(connection: sqlite3.Connection, path: Path) -> int:
    texts = _head_texts(connection, path)
    with _explained_head(path):
        return read_count({"revision": json.loads(texts["revision"])}, "revision")


def _head_texts(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    texts = {}
    for key, text, crc in connection.execute("SELECT key, value, crc FROM run"):
        if type(key) is not str or type(text) is not str or checksum(key, text) != crc:
            raise damaged(path, f"checksum mismatch in entry {key!r} of table run")
        texts[key] = text
    return texts


@contextmanager
def _explained_head(path: Path) -> Iterator[None]:
    """Report what is wrong with the table ``run`` as an error of the file."""
    try:
        yield
    except PluginError as error:
        raise RunFileError(path, str(error)) from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise damaged(path, f"table run: {what:.300}") from error


FILE_COLUMNS = "id, truth, pred, truth_size, truth_version, pred_size, pred_version, files_crc"
#: Types of these columns except the first and last; all may be NULL.
_FILE_KINDS: Any = ((str, bytes), (str, bytes), int, (int, str), int, (int, str))
_COUNTS = "id, pixels, ignored, cells, crc"
_NUM_COUNTS = 5
_MEASURED = "id, measured, measured_crc"
_NUM_MEASURED = 3
#: Images decoded at a time, and the maximum number of their class counts.
_BLOCK = 1 << 15
_MOST_COUNTS = 1 << 22
#: Larger sums of pixels could overflow int64.
_MOST_PIXELS = 1 << 62

Row = tuple[Any, ...]


def full_path(root: str, name: str) -> str:
    """The path of a file, from the folder and the name that a run stores."""
    if not root or name.startswith("/") or "://" in name or not name:
        return name or root
    return f"{root.rstrip('/')}/{name}"


def stored_name(root: str, path: str) -> str:
    """The inverse of :func:`full_path`: the name to store for a path."""
    start = f"{root.rstrip('/')}/"
    if not root or not path.startswith(start):
        return path
    name = path[len(start) :]
    return path if name.startswith("/") or "://" in name or not name else name


def files_of_row(row: Row, header: Header, path: Path) -> ImageFiles:
    """The files of an image, from ``FILE_COLUMNS``."""
    id, truth, pred, *stamps, crc = row
    kinds_are_right = isinstance(id, (str, bytes)) and all(
        value is None or isinstance(value, kinds)
        for value, kinds in zip(row[1:-1], _FILE_KINDS, strict=True)
    )
    if not kinds_are_right or checksum(*row[:-1]) != crc:
        raise damaged(path, f"checksum mismatch in the files of image {_shown(id)}")
    return ImageFiles(
        full_path(header.truth, from_text(truth or "")),
        full_path(header.pred, from_text(pred or "")),
        *(None if not any(s) else Stamp(*s) for s in (stamps[:2], stamps[2:])),
    )


@dataclass(frozen=True)
class RunFile:
    """A snapshot of a run file.

    Attributes
    ----------
    path : Path
    header : Header
    totals : Totals
        Row counts and the revision, which detects later changes.
    skipped : tuple of Problem
        Skipped pairs.
    """

    path: Path
    header: Header
    totals: Totals
    skipped: tuple[Problem, ...]

    @classmethod
    def open(cls, path: str | Path, measures: Sequence[Measure] = ()) -> RunFile:
        """Open a run file.

        Parameters
        ----------
        path : str or Path
            The run file.
        measures : sequence of Measure
            Measures that no installed package defines.

        Raises
        ------
        RunFileError
            If it does not exist, is not a run file, is corrupt, has a different
            version, or is locked by a writer.
        """
        check_path("path", path)
        path = Path(path).expanduser()
        with open_reading(path) as connection:
            header, totals = read_head(connection, path, measures)
            return cls(path, header, totals, tuple(_problems(connection, path, header, totals)))

    def __len__(self) -> int:
        return self.totals.images

    def __iter__(self) -> Iterator[ImageCount]:
        return chain.from_iterable(self.blocks())

    def blocks(self, *, files: bool = True, measured: bool | None = None) -> Iterator[Columns]:
        """Yield all images in blocks, sorted by id.

        Parameters
        ----------
        files : bool, default True
            Whether to read the names and stamps of files.
        measured : bool, optional
            Whether to read the counts of measures; by default the value of ``files``.

        Yields
        ------
        Columns

        Raises
        ------
        RunFileError
            If the file is corrupt or has changed since it was opened.
        """
        wanted = self.header.counts_more and (files if measured is None else measured)
        columns = [_COUNTS, *[_MEASURED] * wanted, *[FILE_COLUMNS] * files]
        query = f"SELECT {', '.join(columns)} FROM image ORDER BY id"
        with open_reading(self.path) as connection:
            if _read_revision(connection, self.path) != self.totals.revision:
                problem = "has changed since it was opened; reopen it with segiou.Run.open"
                raise RunFileError(self.path, problem)
            last, seen = list[Any](), 0
            cursor = connection.execute(query)
            size = max(1, min(_BLOCK, _MOST_COUNTS // self.header.options.num_classes))
            while rows := cursor.fetchmany(size):
                block = self._block(rows, files=files, measured=wanted)
                _check_order([*last, *(row[0] for row in rows)], self.path)
                last = [rows[-1][0]]
                seen += len(rows)
                yield block
            _check_number(self.path, "images", seen, self.totals.images)

    def _block(self, rows: list[Row], *, files: bool, measured: bool) -> Columns:
        """Images from the columns ``_COUNTS``, and those of measures and files if wanted."""
        stop = _NUM_COUNTS + _NUM_MEASURED * measured
        block = self._decoded([row[:_NUM_COUNTS] for row in rows])
        if files:
            about = (row[stop:] for row in rows)
            read = tuple(files_of_row(row, self.header, self.path) for row in about)
            block = replace(block, files=read)
        if measured:
            block = self._add_measured(block, [row[_NUM_COUNTS:stop] for row in rows])
        return block

    def _decoded(self, rows: list[Row]) -> Columns:
        """Ids and counts from the columns ``_COUNTS``."""
        _check_rows(rows, self.path)
        num_classes = self.header.options.num_classes
        try:
            cells = decode_cells([row[3] for row in rows], num_classes * (num_classes + 1))
        except ValueError as error:
            raise damaged(self.path, error) from error
        ids = tuple(from_text(row[0]) for row in rows)
        block = Columns(ids, *cells, np.array([row[2] for row in rows], dtype=np.int64), ())
        if sum(row[1] for row in rows) > _MOST_PIXELS:
            raise RunFileError(self.path, "has too many pixels to count (more than 2^62)")
        if [row[1] for row in rows] != (block.pixels() + block.ignored).tolist():
            raise damaged(self.path, "the cells of an image do not sum to its pixels")
        return block

    def _add_measured(self, block: Columns, rows: list[Row]) -> Columns:
        """The block with the counts of measures from ``_MEASURED``."""
        for id, packed, crc in rows:
            if type(packed) is not bytes or checksum(id, packed) != crc:
                raise damaged(self.path, f"checksum mismatch in the measures of image {_shown(id)}")
        counts = [row[1] for row in rows]
        try:
            check_packed(counts, self.header)
        except MeasureError:
            raise
        except ValueError as error:
            raise damaged(self.path, error) from error
        return replace(block, measured=tuple(counts))


def _check_order(ids: list[str | bytes], path: Path) -> None:
    order: list[Any] = ids
    if {*map(type, ids)} != {str}:  # texts are sorted as their bytes are
        order = [id_order(from_text(id)) for id in ids]
    if any(map(operator.ge, order, order[1:])):
        raise damaged(path, "ids are not sorted")


def _check_rows(rows: list[Row], path: Path) -> None:
    for id, pixels, ignored, cells, crc in rows:
        if (
            type(id) in (str, bytes)
            and type(pixels) is type(ignored) is int
            and 0 <= ignored <= pixels
            and type(cells) is bytes
        ):
            # checksum() inlined, because it dominates the time to sum a run.
            head = b"%s\0%d\0%d\0" % (id if type(id) is bytes else id.encode(), pixels, ignored)
            if zlib.crc32(cells, zlib.crc32(head)) == crc:
                continue
        raise damaged(path, f"checksum mismatch in image {_shown(id)}")


def _problems(
    connection: sqlite3.Connection, path: Path, header: Header, totals: Totals
) -> Iterator[Problem]:
    """Skipped pairs, and images whose files no longer exist."""
    query = "SELECT id, path, problem, crc FROM skipped ORDER BY path, rowid"
    rows = connection.execute(query).fetchall()
    _check_number(path, "problems", len(rows), totals.skipped)
    for id, where, text, crc in rows:
        if type(text) is not str or checksum(id, where, text) != crc:
            raise damaged(path, f"checksum mismatch in the problem of {_shown(where)}")
        yield Problem(from_text(where or ""), text)
    rows = connection.execute(f"SELECT {FILE_COLUMNS} FROM missing ORDER BY id").fetchall()
    _check_number(path, "missing images", len(rows), totals.missing)
    for row in rows:
        where = files_of_row(row, header, path).truth or from_text(row[0])
        yield Problem(where, "was scored earlier but is now missing; excluded from the totals")


def _check_number(path: Path, what: str, number: int, expected: int) -> None:
    if number != expected:
        raise damaged(path, f"expected {expected} {what}, found {number}")


def _shown(name: Any) -> str:
    return repr(from_text(name) if isinstance(name, (str, bytes)) else name)
