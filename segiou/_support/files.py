"""Files: written whole or not at all, recognised by their stamps, and problems with them."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

_MOST_JSON_BYTES = 1 << 29
_STREAMS = {"stdout": 1, "stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")


def printable(text: str) -> str:
    r"""Text on one line: a character that a terminal does not show is written as an escape.

    Examples
    --------
    >>> printable("a\nb\x1b[2J é.png")
    'a\\nb\\x1b[2J é.png'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an open stream, a pipe or a device, which are never replaced by a file."""
    path = Path(path)
    if _descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file so that nobody ever sees half of it.

    The content goes to a temporary file in the same folder, which then takes
    the name in one step. A link is followed. A pipe or a device is written
    into and never replaced.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written; nothing is left behind.
    """
    # A name that is not Unicode is written as an escape, from which JSON reads the name.
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    path = Path(path).expanduser()
    if not is_device(path):
        with replacing(path) as draft:
            draft.write_bytes(data)
        return path
    if sys.stdout is not None:
        sys.stdout.flush()
    with _named(path):
        stream = _descriptor(path)
        target = os.open(path, os.O_WRONLY) if stream is None else os.dup(stream)
        with os.fdopen(target, "wb") as file:
            file.write(data)
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file that takes the name in one step once it is written.

    A file of that name is replaced; a link is followed.

    Raises
    ------
    OSError
        As :func:`write_whole`.
    """
    path = Path(path).expanduser()
    with _named(path):
        target = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:80]}.", dir=target.parent)
        os.close(handle)
        try:
            yield Path(name)
            # mkstemp gives 0600; a report is as readable as any new file.
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file that was asked for in an error, and not the temporary one."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _descriptor(path: Path) -> int | None:
    """The open file that a name such as /dev/stdout stands for."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return _STREAMS[match[1]] if match[1] else int(match[2])


#: Up to this many files with the same problem have a line each; of more, the first few are named.
_EACH = 5
_NAMED = 3
#: Kinds of problems that are listed at most.
_KINDS = 40


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a file: where, and what to do about it.

    Attributes
    ----------
    where : str
        The file.
    text : str
        What it is. What is particular to this file stands last, in square
        brackets: ``"is no class: 7 [7: 20 px]"``.
    """

    where: str
    text: str

    def __str__(self) -> str:
        return printable(f"{self.where}: {self.text}")

    @property
    def parts(self) -> tuple[str, str]:
        """What files with the same problem share, and the rest of the text."""
        kind, bracket, rest = self.text.rpartition(" [")
        return (kind, f"{bracket}{rest}") if bracket and rest.endswith("]") else (self.text, "")


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    r"""Lines that list problems; files with the same problem are grouped.

    Examples
    --------
    >>> found = [Problem(f"{i}.png", f"is no class: 7 [7: {i} px]") for i in range(1, 9)]
    >>> print("\n".join(problem_lines(found)))
    8 files: is no class: 7
      1.png [7: 1 px]
      2.png [7: 2 px]
      3.png [7: 3 px]
      and 5 more
    """
    kinds: dict[str, list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.parts[0], []).append(problem)
    shown = list(kinds.items())[:_KINDS]
    lines = [line for kind, found in shown for line in _lines_of(kind, found)]
    if len(kinds) > len(shown):
        left = len(problems) - sum(len(found) for _, found in shown)
        lines.append(f"and {left} more problems of {len(kinds) - len(shown)} other kinds")
    return lines


def _lines_of(kind: str, found: Sequence[Problem]) -> list[str]:
    if len(found) <= _EACH:
        return [str(problem) for problem in found]
    return [
        f"{len(found)} files: {printable(kind)}",
        *(printable(f"  {p.where}{p.parts[1]}") for p in found[:_NAMED]),
        f"  and {len(found) - _NAMED} more",
    ]


class Stamp(NamedTuple):
    """Size and version of a file, from which a change is seen.

    The version is the modification time in nanoseconds of a local file, the
    ETag or date that a server gives, the checksum of an archive's member; None
    where nothing is known, and then the file is read again.
    """

    size: int | None
    version: int | str | None

    @property
    def known(self) -> bool:
        """Whether both are known."""
        return self.size is not None and self.version is not None

    def joined(self, other: Stamp) -> Stamp:
        """The stamp of two files that are read as one."""
        if self.size is None or other.size is None or not self.known or not other.known:
            return Stamp(None, None)
        return Stamp(self.size + other.size, f"{self.version} {other.version}")


def os_problem(error: OSError) -> str:
    """Why a file cannot be read."""
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, PermissionError):
        return "may not be read: permission denied"
    return f"cannot be read: {error.strerror or error}"


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8.

    Raises
    ------
    ValueError
        If it cannot be read, or is no such text.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        msg = f"{path}: {os_problem(error)}"
    except UnicodeDecodeError as error:
        msg = f"{path}: is no text in UTF-8: {error}"
    raise ValueError(msg)


def read_rows(path: str | Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file with these columns.

    Raises
    ------
    ValueError
        If it cannot be read, is no CSV in UTF-8, or lacks a column.
    """
    try:
        reader = csv.DictReader(StringIO(read_text(path)), strict=True)
        rows, known = list(reader), reader.fieldnames or ()
    except csv.Error as error:
        msg = f"{path}: is no CSV: {error}"
        raise ValueError(msg) from error
    for column in columns:
        if column not in known:
            known_text = ", ".join(known) or "none"
            msg = f"{path}: has no column {column!r}; its columns are {known_text}"
            raise ValueError(msg)
    return rows


def read_json(path: str | Path) -> Any:
    """What a JSON file holds; a very large one would take ten times as much memory.

    Raises
    ------
    ValueError
        If it cannot be read, is no JSON, or is too large.
    """
    try:
        size = Path(path).stat().st_size
        if size <= _MOST_JSON_BYTES:
            return json.loads(Path(path).read_bytes())
        msg = f"{path}: has {size} bytes; of JSON at most {_MOST_JSON_BYTES} are read: split it"
    except OSError as error:
        msg = f"{path}: {os_problem(error)}"
    except RecursionError:
        msg = f"{path}: is no JSON: it is nested too deep"
    except ValueError as error:
        msg = f"{path}: is no JSON: {error}"
    raise ValueError(msg)
