"""One row of the table ``image``: an image as SQLite keeps it, and back."""

from __future__ import annotations

from typing import Any

from segiou.runs.columns import Columns
from segiou.runs.database import from_text, row_crc, to_text
from segiou.runs.header import Header
from segiou.runs.image import ImageFiles, Stamp
from segiou.runs.sparse import encode_cells

__all__ = ["INSERT_IMAGE", "files_of_row", "image_rows", "inside", "within"]

INSERT_IMAGE = "INSERT INTO image VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UNKNOWN = Stamp(None, None)


def within(root: str, name: str) -> str:
    """The path of a file in the folder that a run names."""
    if not root or name.startswith("/") or "://" in name or not name:
        return name or root
    return f"{root.rstrip('/')}/{name}"


def inside(root: str, path: str) -> str:
    """The name that :func:`within` makes the path of again."""
    start = f"{root.rstrip('/')}/"
    if not root or not path.startswith(start):
        return path
    name = path[len(start) :]
    return path if name.startswith("/") or "://" in name or not name else name


def image_rows(columns: Columns, header: Header) -> list[tuple[Any, ...]]:
    """What is kept of images."""
    blobs = encode_cells(columns.sizes, columns.cells, columns.values)
    ignored = columns.ignored.tolist()
    pixels = (columns.pixels() + columns.ignored).tolist()
    return [
        (
            to_text(id),
            to_text(inside(header.truth, files.truth)),
            to_text(inside(header.pred, files.pred)),
            *(files.truth_stamp or _UNKNOWN),
            *(files.pred_stamp or _UNKNOWN),
            seen,
            dropped,
            blob,
            row_crc(id, dropped, blob),
        )
        for id, files, seen, dropped, blob in zip(
            columns.ids, columns.files, pixels, ignored, blobs, strict=True
        )
    ]


def files_of_row(truth: Any, pred: Any, stamps: tuple[Any, ...], header: Header) -> ImageFiles:
    """The files of an image."""
    return ImageFiles(
        within(header.truth, from_text(truth or "")),
        within(header.pred, from_text(pred or "")),
        _stamp(*stamps[:2]),
        _stamp(*stamps[2:]),
    )


def _stamp(size: Any, version: Any) -> Stamp | None:
    return None if size is None and version is None else Stamp(size, version)
