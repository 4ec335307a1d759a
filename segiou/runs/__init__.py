"""What is kept of every image of an evaluation, in memory and on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.runs.database import RunFileError as RunFileError
    from segiou.runs.header import Header as Header
    from segiou.runs.image_counts import (
        Columns as Columns,
        ImageCount as ImageCount,
        ImageFiles as ImageFiles,
    )
    from segiou.runs.run import Run as Run
    from segiou.runs.run_reading import RunFile as RunFile
    from segiou.runs.run_writing import RunWriter as RunWriter, write_new as write_new
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "database": ("RunFileError",),
            "header": ("Header",),
            "image_counts": (
                "Columns",
                "ImageCount",
                "ImageFiles",
            ),
            "run": ("Run",),
            "run_reading": ("RunFile",),
            "run_writing": (
                "RunWriter",
                "write_new",
            ),
        },
    )
