"""Parquet tables with a column of images, as in Hugging Face data sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from segiou._support.files import IS_A_POINTER, Stamp, is_pointer, no_file_problem
from segiou._support.optional import import_extra
from segiou.masks.raw_mask import MaskError, damage
from segiou.masks.sources.folders import MOST_MASKS, Source, stamp_of, version_of
from segiou.masks.sources.shards import Shards

#: Row groups are read whole; larger ones would need too much memory.
_MOST_GROUP_BYTES = 1 << 30
#: Columns that can identify images without a path, best first.
_NAMES = ("id", "image_id", "key", "__key__", "file_name", "filename", "image_path", "name")
#: Column of masks, row by name, and first row of each row group.
_Rows = tuple[str, dict[str, int], list[int]]


def open_parquet(path: Path, file: Path) -> Source:
    """The source for a Parquet file, a column of one, or a pattern of such files."""
    return Shards.at(path, file) or ParquetFile(str(path), str(file))


@dataclass(frozen=True)
class ParquetFile(Source):
    """A Parquet file with an image column, as in Hugging Face data sets."""

    #: The file's path, and the column if there are several: ``val.parquet/annotation``.
    root: str
    file: str

    def find(self) -> dict[str, str]:
        """Masks by the image path in the column, or by the id of the row."""
        if not Path(self.file).is_file():
            msg = f"{self.root}: {no_file_problem(self.file)}"
            raise ValueError(msg)
        column, rows, _ = self._rows(self.root[len(self.file) :].strip("/"))
        if not rows:
            msg = f"{self.root}: has no rows"
            raise ValueError(msg)
        return {name: f"{self.file}/{column}/{name}" for name in rows}

    def stamp(self, path: str) -> Stamp:
        """The stamp of the file."""
        return stamp_of(self.file)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of an image file in a row."""
        column, _, name = path[len(self.file) + 1 :].partition("/")
        stamp = self.stamp(path)
        with damage(path, "cannot be read from its file", ImportError, MemoryError):
            _, rows, starts = self._rows(column)
            group = bisect_right(starts, rows[name]) - 1
            cells = _group(self.file, version_of(self.file), column, group)
            value = cells[rows[name] - starts[group]].as_py()
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            problem = "has no bytes in its row; save the data set with embedded images"
            raise MaskError(path, problem)
        return data, stamp

    def _rows(self, column: str) -> _Rows:
        try:
            return _rows(self.file, version_of(self.file), column)
        except ImportError:
            raise
        except Exception as error:
            text = f"cannot be read as Parquet: {error}"
            msg = f"{self.root}: {IS_A_POINTER if is_pointer(self.file) else text}"
            raise ValueError(msg) from error


def _opened(file: str, **options: Any) -> Any:
    parquet: Any = import_extra("pyarrow.parquet", f"{file} needs pyarrow", "parquet")
    return parquet.ParquetFile(file, **options)


@lru_cache(maxsize=64)
def _rows(file: str, version: tuple[int, ...], column: str) -> _Rows:
    with _opened(file) as table:
        metadata = table.metadata
        kinds = {field.name: field.type for field in table.schema_arrow}
    if metadata.num_rows > MOST_MASKS:
        msg = f"has {metadata.num_rows} rows; at most {MOST_MASKS} are supported. Split the file"
        raise ValueError(msg)
    column = _image_column(file, kinds, column)
    row_counts = (metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    return column, _row_ids(file, kinds, column), [0, *accumulate(row_counts)][:-1]


def _image_column(file: str, kinds: Mapping[str, Any], column: str) -> str:
    """The column of images with this name; without a name, the only one."""
    binary = ("binary", "large_binary")
    images = [n for n, kind in kinds.items() if str(kind) in binary or "bytes" in _fields(kind)]
    if not column and len(images) == 1:
        return images[0]
    if column not in images:
        listed = ", ".join(images) or "none"
        problem = f"no image column {column!r}" if column else f"{len(images)} image columns"
        msg = f"{problem} (found: {listed}); append the column: {file}/COLUMN"
        raise ValueError(msg)
    return column


def _row_ids(file: str, kinds: Mapping[str, Any], column: str) -> dict[str, int]:
    """Rows by the first candidate column that identifies them."""
    candidates = [f"{column}.path"] if "path" in _fields(kinds[column]) else []
    candidates += [name for name in _NAMES if name in kinds]
    for name in candidates:
        cells = _stored(file, name).flatten().column(0)
        if len(cells.unique()) < len(cells):
            continue
        ids = cells.to_pylist()
        if None not in ids and len(set(map(str, ids))) == len(ids):
            return {str(id): row for row, id in enumerate(ids)}
    msg = (
        f"no column identifies the rows of {column!r} uniquely; pairs are matched by name, never "
        f"by order, so add an 'id' column (tried: {', '.join(candidates) or 'none'})"
    )
    raise ValueError(msg)


def _fields(kind: Any) -> list[str]:
    return [field.name for field in kind] if str(kind).startswith("struct") else []


def _stored(file: str, column: str, groups: list[int] | None = None) -> Any:
    """A column of some row groups; values that are stored once for many rows are held once."""
    with _opened(file) as table:
        leaves = [table.schema.column(i) for i in range(len(table.schema))]
    shared = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and f"{leaf.path}.".startswith(f"{column}.")
    ]

    def read(**options: Any) -> Any:
        with _opened(file, **options) as table:
            return table.read_row_groups(groups or range(table.num_row_groups), columns=[column])

    try:
        return read(read_dictionary=shared)
    except NotImplementedError:  # of structs in several parts
        return read()


@lru_cache(maxsize=8)
def _group(file: str, version: tuple[int, ...], column: str, group: int) -> Any:
    with _opened(file) as table:
        size = table.metadata.row_group(group).total_byte_size
    if size > _MOST_GROUP_BYTES:
        msg = f"has a row group of {size} bytes; write smaller row groups"
        raise ValueError(msg)
    return _stored(file, column, [group]).column(0)
