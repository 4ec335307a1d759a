"""Temporary files of unfinished writes, to be removed if the process ends at once."""

from __future__ import annotations

import os

#: Paths of temporary files that exist now.
drafts: set[str] = set()


def remove_drafts() -> None:
    """Remove all drafts, with the journals of those that are databases."""
    for path in tuple(drafts):
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                os.unlink(path + suffix)  # noqa: PTH108 - pathlib may not be imported yet
            except OSError:
                continue
