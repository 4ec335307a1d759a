"""The tables of a run file: SQLite that anyone can open and ask.

docs/runs.md describes them with examples. ``image`` holds one row an image,
in the order of the ids; the views ``cell`` and ``class_count`` take its counts
apart in plain SQL.
"""

from __future__ import annotations

__all__ = ["APPLICATION_ID", "FORMAT_VERSION", "objects_of", "schema_of"]

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
