"""Masks in tables, and in several files at once: Parquet of Hugging Face, shards of WebDataset."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from glob import glob
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

from segiou._support.files import Stamp
from segiou.masks.pairing import check_found
from segiou.masks.read import MaskError, RawMask
from segiou.masks.sources import Source, open_source

#: A group of rows is read whole, so that a larger one would need too much memory.
_MOST_GROUP_BYTES = 1 << 30
#: Columns that name an image where the image itself has no path, the best first.
_NAMES = ("id", "image_id", "key", "__key__", "file_name", "filename", "image_path", "name")
#: What pyarrow's errors are.
_FAULTS = (OSError, ValueError, RuntimeError, KeyError, TypeError, IndexError)
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MOST_SHARDS = 1 << 16


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file with a column of images, as Hugging Face's data sets have.

    Attributes
    ----------
    root : str
        The file's path, and after it, if it has several columns of images, the
        name of the column: ``val.parquet/annotation``.
    file : str
        The file's path.
    """

    root: str
    file: str

    def find(self) -> dict[str, str]:
        """The masks by the path that their image has in the column, or else by the row's id.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        ValueError
            If the file is not there, damaged, or has no such column or names.
        """
        column, rows = self._rows(self.root[len(self.file) :].strip("/"))
        return {name: f"{self.file}/{column}/{name}" for name in rows}

    def stamp(self, path: str) -> Stamp:
        """The stamp of the file."""
        try:
            return Stamp(*_version(self.file))
        except OSError:
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of an image file in a row.

        Raises
        ------
        MaskError
            If the row holds none.
        """
        column, _, name = path[len(self.file) + 1 :].partition("/")
        stamp = self.stamp(path)
        try:
            rows = self._rows(column)[1]
            value = _cell(self.file, _version(self.file), column, rows[name])
        except _FAULTS as error:
            raise MaskError(path, f"cannot be read from its file: {error}") from error
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            problem = "has no bytes in its row; save the data set with its images embedded"
            raise MaskError(path, problem)
        return data, stamp

    def _rows(self, column: str) -> tuple[str, dict[str, int]]:
        try:
            return _rows(self.file, _version(self.file), column)
        except ImportError as error:
            msg = f"{self.file}: reading Parquet needs pip install 'segiou[parquet]' ({error})"
            raise ImportError(msg) from error
        except _FAULTS as error:
            msg = f"{self.root}: cannot be read as Parquet: {error}"
            raise ValueError(msg) from error


def _version(file: str) -> tuple[int, int]:
    found = Path(file).stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=64)
def _rows(file: str, version: tuple[int, int], column: str) -> tuple[str, dict[str, int]]:
    """The column of masks, and the row of each by its name."""
    parquet: Any = import_module("pyarrow.parquet")

    with parquet.ParquetFile(file) as table:
        schema = table.schema_arrow
        images = [field.name for field in schema if _is_image(field.type)]
        if not column and len(images) == 1:
            column = images[0]
        if column not in images:
            said = f"no column of images {column!r}" if column else f"{len(images)} of them"
            listed = ", ".join(images) or "none"
            msg = f"its columns of images are {listed}: {said}; name one: {file}/COLUMN"
            raise ValueError(msg)
        candidates = [f"{column}.path"] if "path" in _fields(schema.field(column).type) else []
        candidates += [name for name in _NAMES if name in schema.names]
        for name in candidates:
            found = table.read(columns=[name]).flatten().column(0).to_pylist()
            if None not in found and len(set(map(str, found))) == len(found):
                return column, {str(value): row for row, value in enumerate(found)}
    msg = (
        f"no column names the rows of {column!r}, each differently; pairs are made by name and "
        f"never by order: add a column 'id' ({', '.join(candidates) or 'none'} would not do)"
    )
    raise ValueError(msg)


def _fields(kind: Any) -> list[str]:
    return [field.name for field in kind] if str(kind).startswith("struct") else []


def _is_image(kind: Any) -> bool:
    return "bytes" in _fields(kind) or str(kind) in ("binary", "large_binary")


def _cell(file: str, version: tuple[int, int], column: str, row: int) -> Any:
    starts = _group_starts(file, version)
    group = bisect_right(starts, row) - 1
    return _group(file, version, column, group)[row - starts[group]].as_py()


@lru_cache(maxsize=64)
def _group_starts(file: str, version: tuple[int, int]) -> list[int]:
    parquet: Any = import_module("pyarrow.parquet")

    found = parquet.read_metadata(file)
    counts = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
    return [0, *accumulate(counts)][:-1]


@lru_cache(maxsize=8)
def _group(file: str, version: tuple[int, int], column: str, group: int) -> Any:
    parquet: Any = import_module("pyarrow.parquet")

    with parquet.ParquetFile(file) as table:
        size = table.metadata.row_group(group).total_byte_size
        if size > _MOST_GROUP_BYTES:
            msg = f"rows are stored in groups of {size} bytes; write it in smaller groups"
            raise ValueError(msg)
        return table.read_row_group(group, columns=[column]).column(0)


@dataclass(frozen=True)
class Shards:
    """Several archives or Parquet files as one place.

    Attributes
    ----------
    root : str
        Their paths as one pattern: ``val-*.tar``, ``val-{000..009}.tar``, or
        ``val-*.parquet/annotation``.
    """

    root: str

    def find(self) -> dict[str, str]:
        """Masks of all shards.

        Raises
        ------
        ValueError
            If there are no such files, one is damaged, or two hold the same name.
        """
        found: dict[str, str] = {}
        for shard in self._shards():
            for name, path in shard.find().items():
                if name in found:
                    msg = f"{self.root}: {name!r} is in two shards, {found[name]} and {path}"
                    raise ValueError(msg)
                found[name] = path
        check_found(found, self.root)
        return found

    def stamp(self, path: str) -> Stamp:
        """The stamp that the shard gives."""
        return open_source(path).stamp(path)

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The content of a file in its shard."""
        return open_source(path).read(path)

    def _shards(self) -> Iterator[Source]:
        pattern, ending, column = self.root.partition(".parquet/")
        pattern += ending.rstrip("/")
        if (numbers := _RANGE.search(pattern)) is None:
            paths = sorted(glob(pattern))  # noqa: PTH207 - a Path takes no absolute pattern
        else:
            first, last = int(numbers[1]), int(numbers[2])
            several = range(first, min(last, first + _MOST_SHARDS) + 1)
            width = len(numbers[1])
            paths = [_RANGE.sub(f"{number:0{width}}", pattern, count=1) for number in several]
        if not paths:
            msg = f"{self.root}: there are no such files"
            raise ValueError(msg)
        for path in paths:
            yield open_source(f"{path}/{column}" if column else path)
