"""File helpers: atomic writes, change stamps, and file problems for error messages."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from segiou._support.locks import Lockable

_MOST_JSON_BYTES = 1 << 29
_MOST_TEXT = 1 << 27
_KEPT_JSON_BYTES = 1 << 16
_PARSING = Lockable()
_STREAMS = {"stdout": 1, "stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
#: Temporary files of unfinished writes, to be removed if the process ends at once.
drafts: set[str] = set()
#: Beginning of files that Git LFS leaves in place of others, and their problem.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
IS_A_POINTER = "is a pointer of Git LFS in place of the file; download the file: git lfs pull"
#: Characters of pages and tables that no terminal needs: line ends and blanks.
_BLANKS = "\n\r\t\N{NO-BREAK SPACE}\N{THIN SPACE}"


def remove_drafts() -> None:
    """Remove all drafts, with the journals of those that are databases."""
    for path in tuple(drafts):
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                os.unlink(path + suffix)  # noqa: PTH108 - runs within a signal handler
            except OSError:
                continue


def printable(text: str, *, blanks: bool = False) -> str:
    r"""Text whose control characters, also those of direction, are written as escapes.

    Text for terminals is on one line; ``blanks`` keeps line ends and blanks of every width.

    >>> printable("a\nb\x1b[2J é.png"), printable("a\nb\u202e", blanks=True)
    ('a\\nb\\x1b[2J é.png', 'a\nb\\u202e')
    """
    if text.isprintable():
        return text
    # The narrow no-break space groups the digits of our own numbers.
    kept = "\N{NARROW NO-BREAK SPACE}" + (_BLANKS if blanks else "")
    return "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text
    )


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file of this name; a text may also be too long for a name."""
    # Path.is_file raises an error for such text.
    return os.path.isfile(path)  # noqa: PTH113


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an open stream, pipe or device, which a file never replaces."""
    path = Path(path)
    if _descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file atomically; links are followed, pipes and devices are written into."""
    # A name that is not valid Unicode is escaped, so that JSON can restore it.
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
    """A temporary file that replaces ``path`` in one step once it is written."""
    path = Path(path).expanduser()
    with _named(path):
        target = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:80]}.", dir=target.parent)
        os.close(handle)
        drafts.add(name)
        try:
            yield Path(name)
            # mkstemp creates files with mode 0600; a report is as readable as any new file.
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        finally:
            drafts.discard(name)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the requested file in errors instead of the temporary one."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _descriptor(path: Path) -> int | None:
    """The file descriptor behind a name such as /dev/stdout."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return _STREAMS[match[1]] if match[1] else int(match[2])


#: Maximum number of files with the same problem that are listed one per line.
_EACH = 5
_NAMED = 3
#: Kinds of problems that are listed at most.
_KINDS = 40
#: Values that are shown at most; an option names all of them.
_VALUES = 12
_VERBS = {
    "has": "have",
    "is": "are",
    "was": "were",
    "does": "do",
    "needs": "need",
    "contains": "contain",
    "declares": "declare",
    "uses": "use",
}


class FileError(ValueError):
    """A file that cannot be used; the message names it and the fix.

    Attributes
    ----------
    path : str
        The file.
    problem : str
        The problem and its fix, without the path.
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path: str = str(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.path, self.problem))


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with a file, and how to fix it.

    Attributes
    ----------
    where : str
        The file.
    text : str
        The problem. Details of this file come last, in square brackets:
        ``"has undeclared values: 7; ignore them: --ignore 7 [7: 20 px]"``.
    pattern : str
        The text with ``{values}`` and ``{option}`` in place of the values.
    values : tuple of int
        The values that :attr:`pattern` omits; files with the same pattern are
        reported together, with the values of all of them.
    """

    where: str
    text: str
    pattern: str = field(default="", compare=False, repr=False)
    values: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of_values(
        cls, where: str, pattern: str, values: Iterable[int], detail: str = ""
    ) -> Problem:
        """A problem that depends on some values of the file."""
        ordered = tuple(sorted(values))
        text = _filled_pattern(pattern, ordered) + (f" [{detail}]" if detail else "")
        return cls(where, text, pattern, ordered)

    def __str__(self) -> str:
        return printable(f"{self.where}: {self.text}")

    @property
    def parts(self) -> tuple[str, str]:
        """The text that files with the same problem share, and the details of this file."""
        kind, bracket, rest = self.text.rpartition(" [")
        return (kind, f"{bracket}{rest}") if bracket and rest.endswith("]") else (self.text, "")


def _filled_pattern(pattern: str, values: Sequence[int]) -> str:
    more = f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    shown = ", ".join(map(str, values[:_VALUES])) + more
    return pattern.replace("{values}", shown).replace("{option}", ",".join(map(str, values)))


def problem_lines(problems: Sequence[Problem], *, advice: bool = True) -> list[str]:
    r"""Lines that list problems by cause; without ``advice`` values are not explained.

    >>> pattern = "has undeclared values: {values}; ignore them: --ignore {option}"
    >>> found = [Problem.of_values(f"{i}.png", pattern, [7, i]) for i in range(8)]
    >>> print("\n".join(problem_lines(found)))
    8 files have undeclared values: 0, 1, 2, 3, 4, 5, 6, 7; ignore them: --ignore 0,1,2,3,4,5,6,7
      0.png, 1.png, 2.png and 5 more
    """
    causes = problems_by_cause(problems, advice=advice)
    shown = causes[:_KINDS]
    lines = [line for alike in shown for line in _lines_of(alike, advice)]
    if len(causes) > len(shown):
        left = len(problems) - sum(map(len, shown))
        lines.append(f"and {left} more files with {len(causes) - len(shown)} other problems")
    return lines


def problems_by_cause(problems: Iterable[Problem], *, advice: bool = True) -> list[list[Problem]]:
    """Problems that have the same cause together; without ``advice``, whatever the fix."""
    causes: dict[str, list[Problem]] = {}
    for problem in problems:
        pattern = problem.pattern if advice else _cause(problem.pattern)
        causes.setdefault(pattern or problem.parts[0], []).append(problem)
    return list(causes.values())


def all_listed(causes: Sequence[Sequence[Problem]]) -> bool:
    """Whether :func:`problem_lines` names every file."""
    return len(causes) <= _KINDS and max(map(len, causes), default=0) <= _EACH


def _lines_of(problems: Sequence[Problem], advice: bool) -> list[str]:
    first = problems[0]
    advice = advice or not first.pattern
    if len(problems) == 1:
        return [str(first) if advice else printable(f"{first.where}: {_cause(first.text)}")]
    values = sorted({value for problem in problems for value in problem.values})
    text = _filled_pattern(first.pattern, values) if first.pattern else first.parts[0]
    text = text if advice else _cause(text)
    folder, names = _common_folder([problem.where for problem in problems])
    verb, _, rest = text.partition(" ")
    has_plural = verb in (*_VERBS, "cannot") and not rest.startswith(("a ", "an ", "not a "))
    told = f" {_VERBS.get(verb, verb)} {rest}" if has_plural else f": each {text}"
    told = f": {text}" if text.startswith(("no ", "measure ")) else told
    if len(problems) <= _EACH:
        listed = [f"{name}{p.parts[1]}" for name, p in zip(names, problems, strict=True)]
        if listed == names:
            listed = [", ".join(names)]
    else:
        listed = [f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"]
    kind = "folders" if text.startswith("no mask files") else "files"
    head = f"{len(problems)} {kind}{f' in {folder}' if folder else ''}{told}"
    return [printable(head), *(f"  {printable(line)}" for line in listed)]


def _cause(text: str) -> str:
    return text.partition("; ")[0]


def _common_folder(paths: Sequence[str]) -> tuple[str, list[str]]:
    """The folder that all paths are in, and their names there; empty if they share none."""
    folders = {path.rpartition("/")[0] for path in paths}
    if len(folders) > 1:
        return "", list(paths)
    (folder,) = folders
    return folder, [path.rpartition("/")[2] for path in paths]


class Stamp(NamedTuple):
    """Size and version of a file, used to detect changes.

    The version is the modification time in nanoseconds of a local file, the
    ETag or date of a remote one, or the checksum of an archive member. None
    means unknown; the file is then read again.
    """

    size: int | None
    version: int | str | None

    @property
    def known(self) -> bool:
        """Whether size and version are both known."""
        return self.size is not None and self.version is not None

    def joined(self, other: Stamp) -> Stamp:
        """The stamp of two files that are read as one."""
        if self.size is None or other.size is None or not self.known or not other.known:
            return Stamp(None, None)
        return Stamp(self.size + other.size, f"{self.version} {other.version}")


def no_file_problem(path: str | Path) -> str:
    """Why a path is not that of a file."""
    return "is not a regular file" if Path(path).exists() else _absence(path)


def _absence(path: str | Path | None) -> str:
    return "is a broken link" if path and Path(path).is_symlink() else "does not exist"


def os_problem(error: Exception) -> str:
    """Why a file cannot be read."""
    if isinstance(error, FileNotFoundError):
        return _absence(error.filename)
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    if isinstance(error, IsADirectoryError):
        return "is a folder; expected a file"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def is_pointer(path: str | Path) -> bool:
    """Whether a file is a pointer that Git LFS has left in place of it."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(LFS_POINTER)) == LFS_POINTER
    except OSError:
        return False


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark, as Excel writes "Unicode text".

    ValueError if it cannot be read or decoded.
    """
    try:
        with Path(path).open("rb") as content:  # which may be an endless stream
            is_wide = content.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            file = io.TextIOWrapper(content, "utf-16" if is_wide else "utf-8-sig")
            text = file.read(_MOST_TEXT + 1)
        if len(text) <= _MOST_TEXT:
            return text
        msg = f"{path}: is too large; the limit for text is {_MOST_TEXT >> 20} million characters"
    except OSError as error:
        msg = f"{path}: {os_problem(error)}"
    except UnicodeDecodeError as error:
        msg = f"{path}: is neither UTF-8 nor UTF-16 text: {error}"
    raise ValueError(msg)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON with these pairs; ValueError if a key occurs twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in content if keys.count(key) > 1)
        msg = f"key {twice!r} occurs {keys.count(twice)} times in one object"
        raise ValueError(msg)
    return content


def check_exists(path: Path) -> None:
    """ValueError if a file cannot be found."""
    try:
        path.stat()
    except OSError as error:
        msg = f"{path}: {os_problem(error)}"
        raise ValueError(msg) from None


def read_json(path: str | Path) -> Any:
    """The content of a JSON file; ValueError if it cannot be read, parsed, or is too large.

    Also if a key occurs twice in an object, which would lose a value. Large files are kept, because
    several parts of a run read them: treat the content as read-only.
    """
    try:
        status = Path(path).stat()
        size = status.st_size
        if size < _KEPT_JSON_BYTES:
            return json.loads(Path(path).read_bytes(), object_pairs_hook=unique_keys)
        if size <= _MOST_JSON_BYTES:
            with _PARSING.lock:  # threads that wait find it parsed
                return _parsed(Path(path).absolute(), size, status.st_mtime_ns)
        # Parsing takes about ten times the memory of the file.
        limit = f"the limit for JSON is {_MOST_JSON_BYTES >> 20} MB"
        msg = f"{path}: is too large ({size >> 20} MB; {limit}); split it"
    except OSError as error:
        msg = f"{path}: {os_problem(error)}"
    except RecursionError:
        msg = f"{path}: is not valid JSON: nested too deeply"
    except ValueError as error:
        problem = IS_A_POINTER if is_pointer(path) else f"is not valid JSON: {error}"
        msg = f"{path}: {problem}"
    raise ValueError(msg)


@lru_cache(maxsize=2)
def _parsed(path: Path, _size: int, _modified: int) -> Any:
    return json.loads(path.read_bytes(), object_pairs_hook=unique_keys)
