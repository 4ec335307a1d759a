"""Writing files whole or not at all."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

__all__ = ["write_whole"]

_STREAMS = {"stdout": 1, "stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")


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
    path = Path(path).expanduser()
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if (descriptor := _descriptor(path)) is not None:
            sys.stdout.flush()
            _write_into(os.dup(descriptor), data)
        elif path.exists() and not path.is_file():
            _write_into(os.open(path, os.O_WRONLY), data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        # Name what was asked for and not the temporary file.
        raise type(error)(error.errno, error.strerror, str(path)) from error
    return path


def _descriptor(path: Path) -> int | None:
    """The open file that a name such as /dev/stdout stands for."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return _STREAMS[match[1]] if match[1] else int(match[2])


def _write_into(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:80]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp gives 0600; a report is as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
