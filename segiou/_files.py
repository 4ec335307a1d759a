"""Writing files whole or not at all, and names of files as text."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["is_device", "printable", "replacing", "write_whole"]

_STREAMS = {"stdout": 1, "stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")


def printable(text: str) -> str:
    r"""Text that stays on its line: what no terminal shows is written as an escape.

    Examples
    --------
    >>> printable("a\nb\x1b[2J é.png")
    'a\\nb\\x1b[2J é.png'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an open stream, a pipe or a device: written into, never replaced."""
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
    # A name that is no Unicode is written as an escape, which JSON reads as the name again.
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    path = Path(path).expanduser()
    if not is_device(path):
        with replacing(path) as draft:
            draft.write_bytes(data)
        return path
    with _named(path):
        if (descriptor := _descriptor(path)) is not None:
            if sys.stdout is not None:
                sys.stdout.flush()
            _write_into(os.dup(descriptor), data)
        else:
            _write_into(os.open(path, os.O_WRONLY), data)
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file that takes the name in one step when it is written.

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
    """Name what was asked for in an error, and not the temporary file."""
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


def _write_into(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
