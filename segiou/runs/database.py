"""The tables of a run file: SQLite that anyone can open and query.

docs/runs.md describes them with examples. ``image`` holds one row an image,
in the order of the ids; the views ``cell`` and ``class_count`` decode its
counts in plain SQL. Everything that a number depends on has a checksum.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from segiou.runs.header import Header, read_count

__all__ = [
    "APPLICATION_ID",
    "FORMAT_VERSION",
    "SCHEMA",
    "RunFileError",
    "Totals",
    "check_is_run",
    "checksum",
    "explained",
    "harden",
    "is_empty",
    "open_reading",
    "read_head",
    "write_entries",
]

#: "sIoU" in ASCII, so that `file` and others can tell a run from any SQLite file.
APPLICATION_ID = 0x73496F55
FORMAT_VERSION = 3

_IMAGE_COLUMNS = """(
  id PRIMARY KEY,        -- key of the pair; TEXT, or BLOB where a name is not UTF-8
  truth, pred,           -- files, within the folders that run names
  truth_size, truth_version, pred_size, pred_version,  -- bytes; mtime in ns, ETag or CRC
  files_crc INTEGER NOT NULL,  -- CRC-32 of id and the six columns before
  pixels INTEGER NOT NULL,
  ignored INTEGER NOT NULL,
  cells BLOB NOT NULL,   -- filled cells of the confusion matrix: see the view cell
  crc INTEGER NOT NULL   -- CRC-32 of id, pixels, ignored and cells
) WITHOUT ROWID"""

_RUN = """CREATE TABLE run (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,   -- JSON
  crc INTEGER NOT NULL   -- CRC-32 of key and value
) WITHOUT ROWID"""

_SKIPPED = """CREATE TABLE skipped (
  id,                    -- key of the pair, where there is one
  path,                  -- the file that has the problem
  problem TEXT NOT NULL,
  crc INTEGER NOT NULL   -- CRC-32 of id, path and problem
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


# LEB128 decoded one byte a step: `low` is the number so far, made of the bytes before.
# Numbers at even places are steps to the next cell, those at odd places its pixels.
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

#: Every table and view by name, with the statement that makes it.
_OBJECTS = {
    "run": _RUN,
    "image": f"CREATE TABLE image {_IMAGE_COLUMNS}",
    "missing": f"CREATE TABLE missing {_IMAGE_COLUMNS}",
    "boundary": _BOUNDARY,
    "skipped": _SKIPPED,
    "class": _CLASS,
    "cell": _CELL,
    "class_count": _CLASS_COUNT,
}
#: What makes an empty run file.
SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT_VERSION}",
    *_OBJECTS.values(),
)


class RunFileError(ValueError):
    """A run file that cannot be used; the message names it and what to do.

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
    """Turn errors of SQLite into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise RunFileError(path, _meaning(error)) from error
    except OverflowError as error:
        raise RunFileError(path, f"cannot hold a number this large: {error}") from error
    except UnicodeDecodeError as error:
        # Python fails at what SQLite says about a damaged schema.
        raise RunFileError(path, _damaged("its schema cannot be read")) from error


def _damaged(what: object) -> str:
    return f"is a damaged run file ({what}); score again into a new file"


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
    return _damaged(error)


@contextmanager
def open_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing run file to read it."""
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
    """Refuse what is not a run file that this version reads."""
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise RunFileError(path, "is an SQLite file, but no run of segiou")
    version = _pragma(connection, "user_version")
    if version != FORMAT_VERSION:
        what_to_do = "update segiou" if version > FORMAT_VERSION else "score again into a new file"
        problem = f"is a run of format {version}, and this segiou reads {FORMAT_VERSION}"
        raise RunFileError(path, f"{problem}; {what_to_do}")
    # As bytes: what is damaged need not be text.
    query = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master"
    found = dict(connection.execute(query))
    wanted = {name.encode(): sql.encode() for name, sql in _OBJECTS.items()}
    if found != wanted:
        names = [n for n in {**wanted, **found} if found.get(n) != wanted.get(n)]
        text = ", ".join(ascii((name or b"").decode("utf-8", "replace"))[1:-1] for name in names)
        raise RunFileError(path, _damaged(f"its schema is not ours: {text:.200}"))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nothing was ever made in it, as when a process was killed at once."""
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return count == 0 and _pragma(connection, "application_id") in (0, APPLICATION_ID)


def checksum(*values: str | bytes | int | None) -> int:
    """CRC-32 of values, each as text (None: empty), with a zero byte between them."""
    texts = ("" if value is None else value for value in values)
    parts = (
        v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogateescape") for v in texts
    )
    return zlib.crc32(b"\0".join(parts))


@dataclass
class Totals:
    """How many rows the tables should hold, and how often the images have changed."""

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


def read_head(connection: sqlite3.Connection, path: Path) -> tuple[Header, Totals]:
    """Everything in the table ``run``.

    Raises
    ------
    RunFileError
        If it is damaged or incomplete.
    """
    texts = {}
    for key, text, crc in connection.execute("SELECT key, value, crc FROM run"):
        if type(key) is not str or type(text) is not str or checksum(key, text) != crc:
            problem = f"is damaged: the entry {key!r} of its table run does not match its checksum"
            raise RunFileError(path, f"{problem}; score again into a new file")
        texts[key] = text
    try:
        entries = {key: json.loads(text) for key, text in texts.items()}
        header = Header.from_dict(entries)
        header.options.check_memory()
        return header, Totals(*(read_count(entries, f.name) for f in fields(Totals)))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        what = f"{type(error).__name__}: {error}"
        raise RunFileError(path, _damaged(f"its table run: {what:.300}")) from error
