"""Where masks come from: folders, archives and addresses, all read the same way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from segiou.runs import Stamp
from segiou.sources.archives import ARCHIVE_SUFFIXES, ArchiveFolder
from segiou.sources.local import LocalFolder
from segiou.sources.remote import RemoteFolder

__all__ = ["ArchiveFolder", "LocalFolder", "RemoteFolder", "Source", "open_source"]


class Source(Protocol):
    """A place that holds masks; small, so that it can be sent to workers."""

    @property
    def root(self) -> str:
        """What it is called; paths of its files begin with it."""

    def find(self) -> dict[str, str]:
        """Mask files: path within the place (with ``/``) → whole path."""

    def stamp(self, path: str) -> Stamp:
        """What tells whether a file has changed; cheap after :meth:`find`."""

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file, and the stamp it had then."""


def open_source(where: str | Path, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Find out what a path or address is.

    Parameters
    ----------
    where : str or path
        A folder; a ``.zip``, ``.tar``, ``.tar.gz`` (``.tgz``, ``.tar.bz2``,
        ``.tar.xz``) archive or a folder in one (``masks.zip/truth``); or an
        address that fsspec knows, such as ``s3://bucket/truth``.
    storage_options : mapping, optional
        What fsspec is to know about the address: keys, end points.

    Raises
    ------
    ImportError
        If an address is given and fsspec is not installed.
    """
    text = str(where)
    if isinstance(where, str) and ("://" in text or "::" in text) and not Path(text).exists():
        return RemoteFolder(text.rstrip("/"), dict(storage_options or {}))
    path = Path(where).expanduser()
    for part in (path, *path.parents):
        if part.name.lower().endswith(ARCHIVE_SUFFIXES) and not part.is_dir():
            return ArchiveFolder(str(path), str(part))
    return LocalFolder(str(path))
