"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file so that nobody ever sees half of it.

    The content goes to a temporary file in the same folder, which then takes
    the name in one step.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written; nothing is left behind.
    """
    path = Path(path).expanduser()
    data = content.encode("utf-8") if isinstance(content, str) else content
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
    return path
