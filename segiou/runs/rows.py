"""One row of the table ``image``: an image as SQLite keeps it, and back."""

from __future__ import annotations

from typing import Any

from segiou.runs.database import from_text, row_crc, to_text
from segiou.runs.header import Header
from segiou.runs.image import ImageCount, ImageFiles, Stamp

__all__ = ["INSERT_IMAGE", "files_of_row", "image_row", "inside", "within"]

INSERT_IMAGE = "INSERT INTO image VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def within(root: str, name: str) -> str:
    """The path of a file in the folder that a run names."""
    if not root or name.startswith("/") or "://" in name or not name:
        return name or root
    return f"{root.rstrip('/')}/{name}"


def inside(root: str, path: str) -> str:
    """The name that :func:`within` makes the path of again."""
    start = f"{root.rstrip('/')}/"
    name = path.removeprefix(start) if root and path.startswith(start) else path
    return name if within(root, name) == path else path


def image_row(image: ImageCount, cells: bytes, header: Header) -> tuple[Any, ...]:
    """What is kept of an image whose counts are encoded already."""
    truth_stamp, pred_stamp = (
        stamp or Stamp(None, None) for stamp in (image.truth_stamp, image.pred_stamp)
    )
    return (
        to_text(image.id),
        to_text(inside(header.truth, image.truth)),
        to_text(inside(header.pred, image.pred)),
        *truth_stamp,
        *pred_stamp,
        image.pixels,
        image.ignored,
        cells,
        row_crc(image.id, image.ignored, cells),
    )


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
