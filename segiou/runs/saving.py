"""A whole run into a new file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from segiou.runs.columns import Columns
from segiou.runs.database import RunFileError
from segiou.runs.header import Header
from segiou.runs.problems import Problem
from segiou.runs.writing import RunWriter

__all__ = ["write_new"]


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
