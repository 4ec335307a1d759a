"""Folders at URLs, read through fsspec (S3, HTTP and others)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from segiou._support.files import Stamp, os_problem
from segiou._support.text import without_credentials
from segiou.masks.finding import IS_A_FILE, check_found, masks_among
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.sources.folders import MOST_MEMBER_BYTES, Source

_TRIES = 3
#: Keys of a file's version in fsspec listings, best first.
_VERSIONS = ("ETag", "etag", "md5", "CRC", "mtime", "LastModified", "last_modified")
_DATES = ("Last-Modified", "updated", "modified")


@dataclass(frozen=True)
class RemoteFolder(Source):
    """A remote folder.

    Attributes
    ----------
    root : str
        The URL, without passwords.
    options : mapping
        Options for fsspec; never shown or saved.
    """

    root: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _infos: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _url: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        # Paths of files begin with the root, so that no message, run or page has a password.
        object.__setattr__(self, "_url", self.root)
        object.__setattr__(self, "root", without_credentials(self.root))

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers look up the files they need instead of receiving the whole listing.
        return type(self), (self._url, dict(self.options))

    def find(self) -> dict[str, str]:
        """Mask files by relative path.

        Raises
        ------
        ImportError
            If fsspec, or its package for this protocol, is not installed.
        ValueError
            If the folder cannot be listed or contains no masks.
        """
        files, base = self._system()
        try:
            listing = files.find(base, detail=True)
        except Exception as error:
            msg = f"{self.root}: cannot be listed: {_said(error)}"
            raise ValueError(msg) from error
        if not listing:
            self._check_reachable(files, base)
        infos = {name[len(base) :].lstrip("/"): info for name, info in sorted(listing.items())}
        if [*infos] == [""]:
            as_zip = f", or pass zip://::{self.root}" * self.root.lower().endswith(".zip")
            msg = f"{self.root}: {IS_A_FILE}; copy it to this machine{as_zip}"
            raise ValueError(msg)
        masks = {relative: f"{self.root}/{relative}" for relative in masks_among(infos)}
        self._infos.update((path, infos[relative]) for relative, path in masks.items())
        check_found(masks, self.root, infos)
        return masks

    def _check_reachable(self, files: Any, base: str) -> None:
        """Raise the error of a folder without files; fsspec's ``find`` hides it."""
        try:
            files.ls(base, detail=False)
        except Exception as error:
            is_absent = isinstance(error, FileNotFoundError)
            problem = "does not exist" if is_absent else f"cannot be listed: {_said(error)}"
            msg = f"{self.root}: {problem}"
            raise ValueError(msg) from error

    def _system(self) -> tuple[Any, str]:
        try:
            core: Any = import_module("fsspec.core")
        except ImportError as error:
            msg = f"{self.root}: remote paths need pip install 'segiou[remote]' ({error})"
            raise ImportError(msg) from error
        try:
            files, base = core.url_to_fs(self._url, **self.options)
        except ImportError as error:  # the package for this protocol
            msg = f"{self.root}: {error}; pip install 'segiou[remote]' for s3:// and https://"
            raise ImportError(msg) from error
        except ValueError as error:
            msg = f"{self.root}: is not a URL supported by fsspec: {_said(error)}"
            raise ValueError(msg) from error
        except Exception as error:
            msg = f"{self.root}: cannot be opened: {_said(error)}"
            raise ValueError(msg) from error
        return files, str(base).rstrip("/")

    def _file(self, path: str) -> tuple[Any, str]:
        files, base = self._system()
        relative = path[len(self.root) + 1 :]
        return files, f"{base}/{relative}" if base else relative

    def stamp(self, path: str) -> Stamp:
        """Size and ETag or date, as reported by the server.

        Parameters
        ----------
        path : str
            The file.
        """
        known = _remote_stamp(self._infos.get(path) or {})
        if known.known:
            return known
        try:
            files, name = self._file(path)
            return _remote_stamp(files.info(name))
        except Exception:  # noqa: BLE001 - an unknown stamp only means to read again
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file.

        Parameters
        ----------
        path : str
            The file.

        Raises
        ------
        MaskError
            If it cannot be read after three tries, or is too large.
        """
        # Taken before reading: if the file is replaced in between, the next run reads it again.
        stamp = self.stamp(path)
        if stamp.size is not None and stamp.size > MOST_MEMBER_BYTES:
            raise MaskError(path, f"has {stamp.size} bytes; copy it to this machine to score it")
        return self._fetched(path), stamp

    def open_tiff(self, path: str) -> RawMask | None:
        """Open a large TIFF of which only windows are fetched; None for a small one.

        Parameters
        ----------
        path : str
            The file.

        Raises
        ------
        MaskError
            If it cannot be read, or is corrupt.
        """
        from segiou.masks.formats.tiff import open_tiff
        from segiou.masks.read import WHOLE_PIXELS
        from segiou.masks.windows import RemoteFile

        files, name = self._file(path)
        with files.open(name, "rb") as file:
            size, read = int(files.info(name)["size"]), partial(self._fetched, path)
            return open_tiff(path, WHOLE_PIXELS, RemoteFile(file, size, read, files, name))

    def _fetched(self, path: str, *span: int) -> bytes:
        """The content of a file, or a range of its bytes."""
        files, name = self._file(path)
        for left in reversed(range(_TRIES)):
            try:
                return bytes(files.cat_file(name, *span))
            except (FileNotFoundError, PermissionError) as error:
                raise MaskError(path, os_problem(error)) from error
            except Exception as error:
                if not left:
                    raise MaskError(path, f"cannot be read: {_said(error)}") from error
                time.sleep(0.2)
        raise AssertionError


def _said(error: Exception) -> str:
    return without_credentials(str(error)) or type(error).__name__


def _remote_stamp(info: Mapping[str, Any]) -> Stamp:
    size = info.get("size")
    version = next((info[key] for key in (*_VERSIONS, *_DATES) if info.get(key) is not None), None)
    return Stamp(int(size) if size is not None else None, None if version is None else str(version))
