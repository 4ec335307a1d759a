"""Writing of run files: in batches while scoring, whole, and merged."""

from __future__ import annotations

import heapq
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from itertools import islice, repeat
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from segiou._support.arguments import check_path
from segiou._support.files import Problem, Stamp, drafts
from segiou._support.text import encodable
from segiou.runs.database import (
    FILE_COLUMNS,
    FULL,
    SCHEMA,
    RunFile,
    RunFileError,
    Totals,
    check_is_run,
    checksum,
    explained,
    files_of_row,
    harden,
    is_empty,
    read_head,
    stored_name,
    write_entries,
)
from segiou.runs.header import Header, versions
from segiou.runs.image_counts import (
    Columns,
    ImageCount,
    ImageFiles,
    check_measured,
    encode_cells,
    from_text,
    id_order,
    reordered_images,
    to_text,
)

if TYPE_CHECKING:
    from segiou.runs.run_counts import RunCounts

#: A batch is committed after this many seconds or images.
_SECONDS = 0.25
_IMAGES = 4096
#: Number of images merged at a time.
_MERGED = 4096
_UNKNOWN = Stamp(None, None)


class RunWriter:
    """Writes a run file and locks it against other writers.

    The operating system releases the lock when the process ends. Use it as a
    context manager: leaving it commits pending images, also after an exception.

    Parameters
    ----------
    path : str or path
        The run file; created if it does not exist. Otherwise its options and
        folders must match the header.
    header : Header
        Options and origin of the run.

    Raises
    ------
    RunFileError
        If it is not a run file, is corrupt or locked, or cannot be written.
    ValueError
        If its options or folders differ; the message describes the difference.
    """

    def __init__(self, path: str | Path, header: Header) -> None:
        check_path("path", path)
        self.path: Path = Path(path).expanduser()
        self._pending: list[ImageCount] = []
        self._pending_skips: list[tuple[str | bytes | int, ...]] = []
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
        self._state = self._file_state()

    def _begin(self, header: Header) -> None:
        connection = self._connection
        harden(connection)
        # Keep the lock between batches, so that no other process writes in between; the write-ahead
        # log then needs no shared memory.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA page_size = 4096")
        self._is_new = is_empty(connection, self.path)
        self._totals = Totals()
        if not self._is_new:
            check_is_run(connection, self.path)
            stored, self._totals = read_head(connection, self.path)
            self._check_options(header, stored)
            header = replace(header, versions=stored.versions)
        connection.execute("PRAGMA journal_mode = WAL")
        # The initial entries can be lost without harm; batches are synced to disk.
        connection.execute("PRAGMA synchronous = NORMAL")
        known = _each_once((*header.versions, versions()))
        self.header: Header = replace(header, finished=False, versions=known)
        with self._transaction():
            for statement in SCHEMA if self._is_new else ():
                connection.execute(statement)
            self._write_entries(self.header.to_dict())
        connection.execute("PRAGMA synchronous = FULL")

    def _check_options(self, header: Header, stored: Header) -> None:
        """Raise ValueError if the file was written with options that count differently."""
        # A run without images, whose first try failed, takes other options.
        counted = self._totals.images + self._totals.missing
        if counted and (difference := header.difference(stored)):
            earlier = stored.provenance.get("command")
            written = f" [written by: {earlier}]" if earlier else ""
            msg = (
                f"{self.path}: was scored with different options (here: this command; there: "
                f"the file): {difference}; use the same options or a new file{written}"
            )
            raise ValueError(msg)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction: commit on success, roll back on error."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _write_entries(self, entries: Mapping[str, Any], *, changed: bool = False) -> None:
        # Readers compare the revision to detect changed images.
        self._totals.revision += changed
        write_entries(self._connection, {**entries, **asdict(self._totals)})

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

    def reconcile(self, files_of: Callable[[str], ImageFiles | None]) -> set[str]:
        """Compare the stored images with the current files.

        Images with changed files are removed. Images without files are moved to
        the table ``missing`` and restored if the files come back.

        Parameters
        ----------
        files_of : callable
            Returns the current files of a pair from its id; None if there are none.

        Returns
        -------
        set of str
            Ids of images that need not be scored again.
        """
        if self._is_new:
            return set()
        keep: dict[str, list[str]] = {"image": [], "missing": []}
        drop: dict[str, list[str]] = {"image": [], "missing": []}
        gone: list[str] = []
        with explained(self.path):
            for table in keep:
                for row in self._connection.execute(f"SELECT {FILE_COLUMNS} FROM {table}"):
                    known, id = files_of_row(row, self.header, self.path), from_text(row[0])
                    stamped = all(stamp is not None and stamp.known for stamp in known[2:])
                    current = files_of(id)
                    if current is not None:
                        (keep if stamped and known == current else drop)[table].append(id)
                    elif table == "image":
                        gone.append(id)
            with self._transaction():
                self._move(drop, gone, keep["missing"])
        return {*keep["image"], *keep["missing"]}

    def _move(
        self, drop: Mapping[str, Sequence[str]], gone: Sequence[str], back: Sequence[str]
    ) -> None:
        def each(statement: str, ids: Sequence[str]) -> None:
            self._connection.executemany(statement, [(to_text(id),) for id in ids])

        for table, ids in drop.items():
            each(f"DELETE FROM {table} WHERE id = ?", ids)
        for source, target, ids in (("image", "missing", gone), ("missing", "image", back)):
            each(f"INSERT INTO {target} SELECT * FROM {source} WHERE id = ?", ids)
            each(f"DELETE FROM {source} WHERE id = ?", ids)
        self._connection.execute("DELETE FROM skipped")
        self._totals.images += len(back) - len(gone) - len(drop["image"])
        self._totals.missing += len(gone) - len(back) - len(drop["missing"])
        self._totals.skipped = 0
        self._write_entries({}, changed=bool(back or gone or drop["image"]))

    def add(self, image: ImageCount) -> None:
        """Add an image; it is committed with its batch.

        Parameters
        ----------
        image : ImageCount
            The counts of the image.
        """
        self._pending.append(image)
        if len(self._pending) >= _IMAGES:
            self.flush()

    def skip(self, problem: Problem, id: str = "") -> None:
        """Record a skipped pair.

        Parameters
        ----------
        problem : Problem
            The file and the reason.
        id : str, default ""
            Id of the image; empty if it has none.
        """
        row = to_text(id), to_text(problem.where), encodable(problem.text)
        self._pending_skips.append((*row, checksum(*row)))

    def add_block(self, columns: Columns) -> None:
        """Add many images and commit them.

        Parameters
        ----------
        columns : Columns
            The images.
        """
        self.flush()
        self._write(columns)

    def flush_if_due(self) -> None:
        """Commit pending images if the last commit was a while ago."""
        if time.monotonic() - self._last >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Commit pending images.

        Raises
        ------
        RunFileError
            If the file cannot be written, for example because the disk is full.
            Earlier commits are kept.
        """
        if self._pending or self._pending_skips:
            self._write(Columns.of(self._pending))

    def finish(self) -> None:
        """Commit everything and mark the run as finished."""
        self.header = replace(self.header, finished=True)
        self._write(Columns.of(self._pending), finished=True)

    def _write(self, columns: Columns, **entries: Any) -> None:
        if self._file_state() != self._state:
            self._broken = True
            raise self._replaced()
        rows = _rows(columns, self.header)
        with explained(self.path):
            try:
                with self._transaction():
                    insert = self._connection.executemany
                    insert(f"INSERT INTO image VALUES ({', '.join('?' * 14)})", rows)
                    insert("INSERT INTO skipped VALUES (?, ?, ?, ?)", self._pending_skips)
                    self._totals.images += len(columns)
                    self._totals.skipped += len(self._pending_skips)
                    self._write_entries(entries, changed=len(columns) > 0)
            except sqlite3.Error:
                self._broken = True
                raise
        self._pending.clear()
        self._pending_skips.clear()
        self._last = time.monotonic()
        self._state = self._file_state()

    def _file_state(self) -> tuple[int, ...] | None:
        """Identity of the file, to detect that another program replaced or changed it."""
        try:
            state = self.path.stat()
        except OSError:
            return None
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns

    def _replaced(self) -> RunFileError:
        problem = (
            "was replaced, removed or modified by another program during writing; rescore into a "
            "new file"
        )
        return RunFileError(self.path, problem)

    def close(self) -> None:
        """Close the file and release the lock."""
        with suppress(sqlite3.Error):
            # Leaves a single file that can be read without write permission. If this fails, the
            # log file next to it has everything.
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def opened(self) -> RunFile:
        """Open the closed file for reading.

        Raises
        ------
        RunFileError
            If the file was replaced.
        """
        # No installed package may define the measures.
        file = RunFile.open(self.path, [plan.measure for plan in self.header.plans])
        # Compared as text, in which NaN equals NaN.
        headers = [json.dumps(header.to_dict()) for header in (file.header, self.header)]
        if headers[0] != headers[1] or file.totals != self._totals:
            raise self._replaced()
        return file


def _rows(columns: Columns, header: Header) -> list[tuple[Any, ...]]:
    """Rows of the table ``image``."""
    blobs = encode_cells(columns.sizes, columns.cells, columns.values)
    ignored = columns.ignored.tolist()
    pixels = (columns.pixels() + columns.ignored).tolist()
    check_measured(columns, header)
    nothing = (None,) * len(columns)
    measured = columns.measured if header.counts_more else nothing
    rows = []
    for name, files, packed, *counts in zip(
        columns.ids, columns.files, measured, pixels, ignored, blobs, strict=True
    ):
        id = to_text(name)
        about = (
            to_text(stored_name(header.truth, files.truth)),
            to_text(stored_name(header.pred, files.pred)),
            *(files.truth_stamp or _UNKNOWN),
            *(files.pred_stamp or _UNKNOWN),
        )
        checks = [checksum(id, *part) for part in (about, counts, (packed,))]
        rows.append((id, *about, checks[0], *counts, checks[1], packed, checks[2]))
    return rows


def write_run(
    path: str | Path,
    header: Header,
    blocks: Iterable[Columns],
    skipped: Iterable[Problem] = (),
) -> Path:
    """Write a run file atomically.

    Parameters
    ----------
    path : str or Path
        The run file to write.
    header : Header
        Options and origin of the run.
    blocks : iterable of Columns
        The images, in blocks.
    skipped : iterable of Problem, optional
        Skipped pairs.

    Raises
    ------
    RunFileError
        If the file already exists or cannot be written.
    """
    check_path("path", path)
    path = Path(path).expanduser()
    if path.exists():
        raise RunFileError(path, "already exists; remove it or choose a different path")
    draft = path.with_name(f".segiou-{os.getpid()}-{time.monotonic_ns()}.tmp")
    drafts.add(str(draft))
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
        if error.path != str(draft):
            raise
        why = error.problem.replace(FULL, "the disk is full; free some space and try again")
        raise RunFileError(path, why) from None
    finally:
        draft.unlink(missing_ok=True)
        drafts.discard(str(draft))
    return path


def merged(
    runs: Sequence[RunCounts], names: Sequence[str], *, partial: bool
) -> tuple[Header, Iterator[Columns], tuple[Problem, ...]]:
    """Merged header, images and skipped pairs of several runs; raises like merge_files."""
    header = _merged_header([run._header for run in runs], names, partial=partial)
    skipped = tuple(dict.fromkeys(problem for run in runs for problem in run.skipped))
    return header, _merged_blocks(runs, names), skipped


def _merged_header(headers: Sequence[Header], names: Sequence[str], *, partial: bool) -> Header:
    """The header of a merged run; ValueError if the runs cannot be merged."""
    first = headers[0]
    for other, name in zip(headers, names, strict=True):
        if difference := first.counting_difference(other):
            msg = f"cannot merge runs: {difference} (here: {names[0]}, there: {name})"
            raise ValueError(msg)
    header = _joined_header(headers, names)
    if not partial and (missing := header.missing_shards()):
        msg = (
            f"the merged run would be incomplete: {missing}; add the missing parts, or pass "
            "partial=True (--partial)"
        )
        raise ValueError(msg)
    return header


def _joined_header(headers: Sequence[Header], names: Sequence[str]) -> Header:
    first = headers[0]

    def shared(key: str, otherwise: Any) -> Any:
        value = getattr(first, key)
        return value if all(getattr(h, key) == value for h in headers) else otherwise

    return replace(
        first,
        name=shared("name", " + ".join(names)),
        truth=shared("truth", ""),
        pred=shared("pred", ""),
        reading=shared("reading", {}),
        provenance={"merged": [dict(h.provenance) for h in headers]},
        expected=None,
        finished=all(h.finished for h in headers),
        versions=_each_once(v for h in headers for v in h.versions),
        shards=tuple(sorted({shard for h in headers for shard in h.shards})),
    )


def _merged_blocks(runs: Sequence[RunCounts], names: Sequence[str]) -> Iterator[Columns]:
    """Images of several runs sorted by id; ValueError if duplicates differ."""
    images = _each_image(runs, names)
    while block := list(islice(images, _MERGED)):
        yield Columns.of(block)


def _each_image(runs: Sequence[RunCounts], names: Sequence[str]) -> Iterator[ImageCount]:
    last: ImageCount | None = None
    origin = ""
    streams = (
        zip(reordered_images(runs[0]._header, run, run._header), repeat(name), strict=False)
        for run, name in zip(runs, names, strict=True)
    )
    for image, name in heapq.merge(*streams, key=lambda item: id_order(item[0].id)):
        if last is not None and image.id == last.id:
            if not image.same_counts(last):
                where = "" if origin == name else f" ({origin}, {name})"
                msg = f"cannot merge runs: image {image.id!r} has different counts{where}"
                raise ValueError(msg)
            continue
        last, origin = image, name
        yield image


def _each_once(entries: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    return tuple({json.dumps([*entry.items()]): entry for entry in entries}.values())
