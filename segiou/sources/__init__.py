"""Where masks come from: folders, archives and addresses, all read the same way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from segiou.runs import Stamp
from segiou.sources.local import LocalFolder

__all__ = ["LocalFolder", "Source", "open_source"]


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
    return LocalFolder(os.fspath(Path(where).expanduser()))
