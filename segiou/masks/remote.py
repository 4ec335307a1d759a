"""Masks at addresses, through fsspec: S3, HTTP and what else it can read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from segiou._support.files import Stamp
from segiou.masks.pairing import check_found, is_mask
from segiou.masks.read import MaskError

_TRIES = 3
_MOST_BYTES = 1 << 30
#: Keys under which file systems give a file's version, the best first.
_VERSIONS = ("ETag", "etag", "md5", "CRC", "mtime", "LastModified", "last_modified")
_DATES = ("Last-Modified", "updated", "modified")


@dataclass(frozen=True)
class RemoteFolder:
    """A folder at an address.

    Attributes
    ----------
    root : str
        The address.
    options : mapping
        Options for fsspec; never shown or kept.
    """

    root: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _infos: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # Workers ask for what they need, instead of getting the whole listing.
        return {"root": self.root, "options": dict(self.options), "_infos": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def find(self) -> dict[str, str]:
        """Mask files by their path within the folder.

        Raises
        ------
        ImportError
            If fsspec, or what it needs for the address, is not installed.
        ValueError
            If the folder cannot be listed or holds no masks.
        """
        files, base = self._system()
        try:
            listing = files.find(base, detail=True)
        except Exception as error:
            msg = f"{self.root}: cannot be listed: {_said(error)}"
            raise ValueError(msg) from error
        found = {}
        for name, info in sorted(listing.items()):
            relative = name[len(base) :].lstrip("/")
            path = f"{self.root}/{relative}"
            if is_mask(relative):
                found[relative] = path
                self._infos[path] = info
        check_found(found, self.root)
        return found

    def _system(self) -> tuple[Any, str]:
        try:
            core: Any = import_module("fsspec.core")
            files, base = core.url_to_fs(self.root, **self.options)
        except ImportError as error:
            msg = f"{self.root}: reading addresses needs pip install 'segiou[remote]' ({error})"
            raise ImportError(msg) from error
        except ValueError as error:
            msg = f"{self.root}: is no address that fsspec knows: {error}"
            raise ValueError(msg) from error
        return files, str(base).rstrip("/")

    def _file(self, path: str) -> tuple[Any, str]:
        files, base = self._system()
        relative = path[len(self.root) + 1 :]
        return files, f"{base}/{relative}" if base else relative

    def stamp(self, path: str) -> Stamp:
        """Size and ETag or date, as the server gives them."""
        known = _stamp(self._infos.get(path) or {})
        if known.known:
            return known
        try:
            files, name = self._file(path)
            return _stamp(files.info(name))
        except Exception:  # noqa: BLE001 - an unknown stamp only means to read again
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file.

        Raises
        ------
        MaskError
            If it cannot be read, tried three times, or is too large.
        """
        files, name = self._file(path)
        for left in reversed(range(_TRIES)):
            # Asked before reading: if the file is replaced in between, it looks
            # changed the next time and is read again.
            stamp = self.stamp(path)
            if stamp.size is not None and stamp.size > _MOST_BYTES:
                raise MaskError(path, f"has {stamp.size} bytes; copy it here to score it")
            try:
                return bytes(files.cat_file(name)), stamp
            except FileNotFoundError as error:
                raise MaskError(path, "does not exist") from error
            except PermissionError as error:
                raise MaskError(path, "may not be read: permission denied") from error
            except Exception as error:
                if not left:
                    raise MaskError(path, f"cannot be read: {_said(error)}") from error
                time.sleep(0.2)
        raise AssertionError


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _stamp(info: Mapping[str, Any]) -> Stamp:
    size = info.get("size")
    version = next((info[key] for key in (*_VERSIONS, *_DATES) if info.get(key) is not None), None)
    return Stamp(int(size) if size is not None else None, None if version is None else str(version))
