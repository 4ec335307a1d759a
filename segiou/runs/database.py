"""The tables of a run file: SQLite that anyone can open and ask.

docs/runs.md describes them with examples. ``image`` holds one row an image,
in the order of the ids; the views ``cell`` and ``class_count`` take its counts
apart in plain SQL.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from segiou.runs.header import Header

__all__ = [
    "APPLICATION_ID",
    "FORMAT_VERSION",
    "RunFileError",
    "check_is_run",
    "explained",
    "from_text",
    "harden",
    "id_order",
    "is_empty",
    "objects_of",
    "open_reading",
    "read_entries",
    "read_header",
    "row_crc",
    "schema_of",
    "to_text",
    "write_entries",
]

#: "sIoU" in ASCII, so that `file` and others can tell a run from any SQLite file.
APPLICATION_ID = 0x73496F55
#: Of a run with boundary counts; one without is of version 1.
FORMAT_VERSION = 2

_IMAGE_COLUMNS = """(
  id PRIMARY KEY,        -- key of the pair; TEXT, or BLOB where a name is not UTF-8
  truth, pred,           -- files, within the folders that run names
  truth_size, truth_version, pred_size, pred_version,  -- bytes; mtime in ns, ETag or CRC
  pixels INTEGER NOT NULL,
  ignored INTEGER NOT NULL,
  cells BLOB NOT NULL,   -- filled cells of the confusion matrix: see the view cell
  crc INTEGER NOT NULL   -- CRC-32 of id, ignored and cells
) WITHOUT ROWID"""

_RUN = """CREATE TABLE run (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,   -- JSON
  crc INTEGER NOT NULL   -- CRC-32 of key and value
) WITHOUT ROWID"""

_SKIPPED = """CREATE TABLE skipped (
  id,                    -- key of the pair, where there is one
  path,                  -- the file that is the matter
  problem TEXT NOT NULL
)"""

_BOUNDARY = """CREATE TABLE boundary (
  id PRIMARY KEY,        -- as in image
  counts BLOB NOT NULL,  -- filled entries of its row of counts, written as cells are
  crc INTEGER NOT NULL   -- CRC-32 of id and counts
) WITHOUT ROWID"""

_CLASS = """CREATE VIEW class AS
SELECT CAST(key AS INTEGER) AS class, json_extract(value, '$.name') AS name
FROM json_each((SELECT value FROM run WHERE key = 'options'), '$.labels.classes')"""


def _byte(at: str) -> str:
    high, low = (f"instr('0123456789ABCDEF', substr(hex, 2 * ({at}) + {i}, 1)) - 1" for i in (1, 2))
    return f"({high}) * 16 + {low}"


# LEB128 by hand, one step a byte: `low` is what the bytes before it make of the
# number that it belongs to. Even numbers are steps to the next cell, odd ones
# its pixels.
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

_CLASS_COUNT = """CREATE VIEW class_count AS
SELECT id, class.class, name,
  sum(iif(truth = class.class AND pred = class.class, pixels, 0)) AS tp,
  sum(iif(truth != class.class AND pred = class.class, pixels, 0)) AS fp,
  sum(iif(truth = class.class AND pred IS NOT class.class, pixels, 0)) AS fn
FROM cell JOIN class ON class.class IN (truth, pred)
GROUP BY id, class.class"""

#: Every table and view by name, with what makes it.
_OBJECTS = {
    "run": _RUN,
    "image": "CREATE TABLE image " + _IMAGE_COLUMNS,
    "vanished": "CREATE TABLE vanished " + _IMAGE_COLUMNS,
    "skipped": _SKIPPED,
    "class": _CLASS,
    "cell": _CELL,
    "class_count": _CLASS_COUNT,
}


def objects_of(version: int) -> dict[str, str]:
    """Every table and view of a version by name, with what makes it."""
    return _OBJECTS if version < 2 else {**_OBJECTS, "boundary": _BOUNDARY}


def schema_of(version: int) -> tuple[str, ...]:
    """What makes an empty run file."""
    return (
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {version}",
        *objects_of(version).values(),
    )


_MAGIC = b"SQLite format 3\0"


class RunFileError(ValueError):
    """A run file that cannot be used; the message names it and the mend.

    Attributes
    ----------
    path : str
    problem : str
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path = str(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (RunFileError, (self.path, self.problem))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says into what it means."""
    try:
        yield
    except sqlite3.Error as error:
        raise RunFileError(path, _meaning(error)) from error
    except OverflowError as error:
        raise RunFileError(path, f"cannot hold a number this large: {error}") from error


def _meaning(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "is in use: another process is writing this run; wait until it is done"
    if code == sqlite3.SQLITE_FULL:
        return (
            "the disk is full; what was committed before is kept: make room, "
            "and the same command goes on from there"
        )
    if code == sqlite3.SQLITE_IOERR:
        return f"cannot be read or written ({error}); is the disk full, or gone?"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return "may not be written: the file or its folder is read-only"
    if code == sqlite3.SQLITE_CANTOPEN:
        return "cannot be opened: does its folder exist, and may it be written?"
    if code == sqlite3.SQLITE_NOTADB:
        return "is no run file: it is not SQLite"
    return f"is a damaged run file ({error}); score again into a new file"


@contextmanager
def open_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing run file to read it.

    Raises
    ------
    RunFileError
        If it is not there, no run, damaged, of a newer version, or being written.
    """
    if not path.is_file():
        problem = "is not a regular file" if path.exists() else "does not exist"
        raise RunFileError(path, problem)
    with explained(path):
        connection = _connected_for_reading(path)
        try:
            check_is_run(connection, path)
            yield connection
        finally:
            connection.close()


def _connected_for_reading(path: Path) -> sqlite3.Connection:
    address = path.absolute().as_uri()
    # "rw" lets SQLite finish or undo what a killed process left; it falls back
    # to reading by itself where it may not write.
    connection = _connect(f"{address}?mode=rw")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        unwritable = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if code not in unwritable or Path(f"{path}-wal").exists():
            raise
        return _connect(f"{address}?mode=ro&immutable=1")
    return connection


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=0.5)
    harden(connection)
    return connection


def harden(connection: sqlite3.Connection) -> None:
    """Trust nothing in the file."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def check_is_run(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is not a run file that this version reads.

    Raises
    ------
    RunFileError
    """
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise RunFileError(path, "is an SQLite file, but no run of segiou")
    version = _pragma(connection, "user_version")
    if version > FORMAT_VERSION:
        problem = (
            f"is a run of format {version}, and this segiou reads up to {FORMAT_VERSION}; "
            "update segiou"
        )
        raise RunFileError(path, problem)
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
    kinds = {kind for (kind,) in connection.execute("SELECT type FROM sqlite_master")}
    differing = [name for name, sql in objects_of(version).items() if found.get(name) != sql]
    if version < 1 or differing or "trigger" in kinds:
        what = ", ".join(differing) or "triggers"
        problem = f"is a damaged run file (its schema is not ours: {what}); score again into a new"
        raise RunFileError(path, f"{problem} file")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nothing was ever made in it, as when a process was killed at once."""
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return count == 0 and _pragma(connection, "application_id") in (0, APPLICATION_ID)


def to_text(name: str) -> str | bytes:
    """A name for SQLite: text, or its bytes where a file system gave no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape")
    return name


def from_text(stored: str | bytes) -> str:
    """What :func:`to_text` kept."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogateescape")


def id_order(id: str) -> tuple[bool, bytes]:
    """What ids are sorted by: the order of SQLite, names that are not UTF-8 last."""
    stored = to_text(id)
    return (True, stored) if isinstance(stored, bytes) else (False, stored.encode())


def row_crc(id: str, ignored: int, cells: bytes) -> int:
    """Check sum of what a row counts."""
    head = f"{id}\0{ignored}\0".encode("utf-8", "surrogateescape")
    return zlib.crc32(cells, zlib.crc32(head))


def write_entries(connection: sqlite3.Connection, entries: Mapping[str, Any]) -> None:
    """Set entries of the table ``run``."""
    rows = []
    for key, value in entries.items():
        text = json.dumps(value, ensure_ascii=True, allow_nan=False)
        rows.append((key, text, zlib.crc32(f"{key}\0{text}".encode())))
    connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?, ?)", rows)


def read_entries(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """All entries of the table ``run``.

    Raises
    ------
    RunFileError
        If one is damaged.
    """
    entries = {}
    for key, text, crc in connection.execute("SELECT key, value, crc FROM run"):
        if zlib.crc32(f"{key}\0{text}".encode()) != crc:
            problem = f"is damaged: the entry {key!r} of its table run does not match its checksum"
            raise RunFileError(path, problem)
        entries[key] = json.loads(text)
    return entries


def read_header(connection: sqlite3.Connection, path: Path) -> Header:
    """The header.

    Raises
    ------
    RunFileError
        If it is damaged or incomplete.
    """
    try:
        return Header.from_dict(read_entries(connection, path))
    except RunFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise RunFileError(path, f"is a damaged run file (its table run: {what})") from error
