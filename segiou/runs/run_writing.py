"""Images into a run file: each finished one is durable at once, in batches."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from segiou._support.files import Problem
from segiou.runs.database import (
    RunFileError,
    check_is_run,
    explained,
    from_text,
    harden,
    is_empty,
    read_entries,
    read_header,
    schema_of,
    to_text,
    write_entries,
)
from segiou.runs.header import Header, versions
from segiou.runs.image_counts import Columns, ImageCount, ImageFiles
from segiou.runs.run_reading import (
    INSERT_BOUNDARY,
    INSERT_IMAGE,
    boundary_rows,
    files_of_row,
    image_rows,
)

__all__ = ["RunWriter", "write_new"]

#: A batch is committed after this many seconds, or at this many images.
_SECONDS = 0.25
_IMAGES = 4096


class RunWriter:
    """The one process that writes a run file.

    The file is locked while it is open; the operating system frees the lock
    however the process ends. Use it as a context manager: leaving it commits
    what is pending, also when an exception passes.

    Parameters
    ----------
    path : str or path
        Made if it does not exist; otherwise it must be a run of the same
        options and folders.
    header : Header

    Raises
    ------
    RunFileError
        If it is no run, damaged, in use, or cannot be written.
    ValueError
        If it is a run of other options or folders; the message says in what.
    """

    def __init__(self, path: str | Path, header: Header) -> None:
        self.path = Path(path).expanduser()
        self._pending: list[ImageCount] = []
        self._pending_skips: list[tuple[str | bytes, ...]] = []
        self._last = time.monotonic()
        self._broken = False
        if self.path.exists() and not self.path.is_file():
            raise RunFileError(self.path, "is not a regular file")
        with explained(self.path):
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=0)
            try:
                self._begin(header)
            except BaseException:
                self._connection.close()
                raise

    def _begin(self, header: Header) -> None:
        connection = self._connection
        harden(connection)
        # The lock stays from the first access on, so that nobody else writes
        # between two batches; and the write-ahead log then needs no shared memory.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA page_size = 8192")
        empty = is_empty(connection)
        if not empty:
            check_is_run(connection, self.path)
            header = self._continued(header)
        connection.execute("PRAGMA journal_mode = WAL")
        # Nothing is lost with what is written first: the batches wait for the disk.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        entries = {"images": 0, "revision": 0} if empty else read_entries(connection, self.path)
        for statement in schema_of(1 if header.boundary is None else 2) if empty else ():
            connection.execute(statement)
        self.header = replace(header, finished=False, versions=_with_ours(header.versions))
        self._is_new = empty
        self._images = int(entries["images"])
        self._revision = int(entries["revision"])
        self._write_entries(self.header.to_dict())
        connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = FULL")

    def _continued(self, header: Header) -> Header:
        found = read_header(self._connection, self.path)
        if difference := header.difference(found):
            msg = (
                f"{self.path}: is a run of other options, here meaning this command and there the "
                f"file: {difference}; use the same options, or another file"
            )
            raise ValueError(msg)
        return replace(header, versions=found.versions)

    def _write_entries(self, entries: Mapping[str, Any], *, changed: bool = False) -> None:
        # Whoever has the file open asks the revision whether its images are the same.
        self._revision += changed
        counted = {"images": self._images, "revision": self._revision}
        write_entries(self._connection, {**entries, **counted})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not self._broken:
                self.flush()
        finally:
            self.close()

    def settle(self, files_of: Callable[[str], ImageFiles | None]) -> set[str]:
        """Compare the file with what there is to score now.

        Images whose files have changed are forgotten, those that have vanished
        are set aside in the table ``vanished``, and come back if they do.

        Parameters
        ----------
        files_of : callable
            The files of a pair as they are now, by its id; None if there is no
            such pair.

        Returns
        -------
        set of str
            Ids that are counted already.
        """
        if self._is_new:
            return set()
        keep: dict[str, list[str]] = {"image": [], "vanished": []}
        drop: dict[str, list[str]] = {"image": [], "vanished": []}
        gone: list[str] = []
        with explained(self.path):
            for table in keep:
                for id, files in self._known(table):
                    found = files_of(id)
                    if found is not None:
                        (keep if _unchanged(files, found) else drop)[table].append(id)
                    elif table == "image":
                        gone.append(id)
            self._resettle(drop, gone, keep["vanished"])
        return {*keep["image"], *keep["vanished"]}

    def _known(self, table: str) -> Iterable[tuple[str, ImageFiles]]:
        columns = "id, truth, pred, truth_size, truth_version, pred_size, pred_version"
        for row in self._connection.execute(f"SELECT {columns} FROM {table}"):
            yield from_text(row[0]), files_of_row(row[1], row[2], row[3:7], self.header)

    def _resettle(
        self, drop: Mapping[str, Sequence[str]], gone: Sequence[str], back: Sequence[str]
    ) -> None:
        def each(statement: str, ids: Sequence[str]) -> None:
            self._connection.executemany(statement, [(to_text(id),) for id in ids])

        self._connection.execute("BEGIN IMMEDIATE")
        for table, ids in drop.items():
            each(f"DELETE FROM {table} WHERE id = ?", ids)
            if self.header.boundary is not None:
                each("DELETE FROM boundary WHERE id = ?", ids)
        for source, target, ids in (("image", "vanished", gone), ("vanished", "image", back)):
            each(f"INSERT OR REPLACE INTO {target} SELECT * FROM {source} WHERE id = ?", ids)
            each(f"DELETE FROM {source} WHERE id = ?", ids)
        self._connection.execute("DELETE FROM skipped")
        self._images += len(back) - len(gone) - len(drop["image"])
        self._write_entries({}, changed=bool(back or gone or drop["image"]))
        self._connection.execute("COMMIT")

    def add(self, image: ImageCount) -> None:
        """Add an image; it is committed with its batch, soon."""
        self._pending.append(image)
        if len(self._pending) >= _IMAGES:
            self.flush()

    def skip(self, problem: Problem, id: str = "") -> None:
        """Note a pair that is left out."""
        self._pending_skips.append((to_text(id), to_text(problem.where), _plain(problem.text)))

    def add_block(self, columns: Columns) -> None:
        """Add many images and commit them.

        Raises
        ------
        RunFileError
            As :meth:`flush`.
        """
        self.flush()
        self._write(columns, {})

    def flush_if_due(self) -> None:
        """Commit what is pending if the last commit is a while ago."""
        if (self._pending or self._pending_skips) and time.monotonic() - self._last >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Commit what is pending.

        Raises
        ------
        RunFileError
            If it cannot be written, as when the disk is full. What was
            committed before is kept.
        """
        if not self._pending and not self._pending_skips:
            return
        self._write(Columns.of(self._pending), {})
        self._pending, self._pending_skips = [], []
        self._last = time.monotonic()

    def _write(self, columns: Columns, entries: Mapping[str, Any]) -> None:
        with explained(self.path):
            try:
                self._commit(columns, entries)
            except sqlite3.Error:
                self._broken = True
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _commit(self, columns: Columns, entries: Mapping[str, Any]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(columns)
        self._connection.executemany("INSERT INTO skipped VALUES (?, ?, ?)", self._pending_skips)
        self._write_entries(entries, changed=len(columns) > 0)
        self._connection.execute("COMMIT")

    def _insert(self, columns: Columns) -> None:
        rows = image_rows(columns, self.header)
        self._connection.executemany(INSERT_IMAGE, rows)
        if self.header.boundary is not None:
            self._connection.executemany(INSERT_BOUNDARY, boundary_rows(columns))
        self._images += len(rows)

    def finish(self) -> None:
        """Commit everything, and that every pair was tried."""
        self.header = replace(self.header, finished=True)
        self._write(Columns.of(self._pending), {"finished": True})
        self._pending, self._pending_skips = [], []

    def close(self) -> None:
        """Close the file and free the lock."""
        with suppress(sqlite3.Error):
            # Leaves one plain file, readable where nothing may be written. If
            # that fails, the log beside it holds everything.
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


def _with_ours(known: tuple[Mapping[str, str], ...]) -> tuple[Mapping[str, str], ...]:
    ours = versions()
    return known if ours in known else (*known, ours)


def _unchanged(known: ImageFiles, found: ImageFiles) -> bool:
    stamps = (known.truth_stamp, known.pred_stamp)
    return known == found and all(stamp is not None and stamp.known for stamp in stamps)


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def write_new(
    path: str | Path,
    header: Header,
    blocks: Iterable[Columns],
    skipped: Iterable[Problem] = (),
) -> Path:
    """Write a run file whole or not at all.

    Raises
    ------
    RunFileError
        If there is such a file already, or it cannot be written.
    """
    path = Path(path).expanduser()
    if path.exists():
        raise RunFileError(path, "exists already; remove it, or choose another name")
    draft = path.with_name(f".segiou-{os.getpid()}-{time.monotonic_ns()}.tmp")
    try:
        with RunWriter(draft, header) as writer:
            for block in blocks:
                writer.add_block(block)
            for problem in skipped:
                writer.skip(problem)
            if header.finished:
                writer.finish()
        draft.replace(path)
    except RunFileError as error:
        raise RunFileError(path, error.problem) if error.path == str(draft) else error from None
    finally:
        draft.unlink(missing_ok=True)
    return path
