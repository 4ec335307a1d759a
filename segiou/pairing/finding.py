"""Mask files of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from posixpath import splitext

__all__ = ["IS_A_FILE", "MASK_SUFFIXES", "find_masks"]

#: Endings of files that are taken for masks.
MASK_SUFFIXES = frozenset(
    {".png", ".tif", ".tiff", ".npy", ".npz", ".bmp", ".gif", ".pgm", ".ppm", ".pbm", ".pnm"}
    | {".jpg", ".jpeg", ".jp2", ".webp", ".avif"}
)
#: What is wrong with a file in the place of a folder.
IS_A_FILE = "is a file, not a folder"


def find_masks(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Mask files below a folder: path within it (with ``/``) → path.

    Hidden files and folders are passed over; links to folders are not followed,
    so a loop of links cannot trap the search.

    Raises
    ------
    ValueError
        If there is no such folder, it is a file, may not be read, or holds no masks.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        what = IS_A_FILE if root.exists() else "does not exist"
        msg = f"{root}: {what}"
        raise ValueError(msg)
    found = {}
    for base, folders, files in os.walk(root, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        # As text, because a path object for each of a million files takes a minute.
        inside = (Path(base).relative_to(root) / "x").as_posix()[:-1]
        outside = str(Path(base) / "x")[:-1]
        for name in sorted(files):
            if splitext(name)[1].lower() in MASK_SUFFIXES and not name.startswith("."):
                found[f"{inside}{name}"] = f"{outside}{name}"
    if not found:
        msg = f"{root}: holds no mask files ({', '.join(sorted(MASK_SUFFIXES))})"
        raise ValueError(msg)
    return found


def _raise_unreadable(error: OSError) -> None:
    msg = f"{error.filename}: may not be read: {error.strerror}"
    raise ValueError(msg) from error
