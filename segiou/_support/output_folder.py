"""Folders that a command fills: no file leaves them, follows a link or replaces a foreign file."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from segiou._support.arguments import check_flag, check_path
from segiou._support.files import write_whole

#: Lists the files that were written, in the format of sha256sum; masks are never hidden files.
_LIST = ".segiou"
#: Characters that no file name has on every system, and halves of characters, as in JSON.
_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"|?*\ud800-\udc7f\udd00-\udfff]')
#: Longest part of a path in bytes, below the limit of file systems of 255.
_LONGEST = 200


class OutputFolder:
    """A folder for files that are named after ids, which may be any text.

    Parameters
    ----------
    folder : str or path
        Created with its first file.
    overwrite : bool
        Whether files may be replaced that were not written here by segiou, or were changed since.
    """

    def __init__(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        check_path("folder", folder)
        check_flag("overwrite", overwrite)
        self.root: Path = Path(folder).expanduser()
        self._overwrite = overwrite
        self._names: dict[str, str | None] = {}
        self._known: set[bytes] | None = None

    def write(self, name: str, content: bytes | str) -> Path:
        """Write a file.

        Parameters
        ----------
        name : str
            Its path in the folder, with ``/``. Parts that would leave it, and characters that
            not every file system accepts, are replaced; names that are then equal are numbered.
        content : bytes or str
            Its content.

        Raises
        ------
        FileExistsError
            If the path has a link, or a file that segiou did not write.
        """
        data = (
            content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        )
        inside = self._unique_path(name)
        path = self.checked(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self.root / _LIST, flags, 0o666)
        with os.fdopen(handle, "ab") as file:
            file.write(os.fsencode(f"{_line(data, inside)}\n"))
        if self._known is not None:
            self._known.add(os.fsencode(_line(data, inside)))
        return path

    def checked(self, inside: str) -> Path:
        """The path of a file in the folder; FileExistsError if it must not be written."""
        path = self.root
        *folders, last = inside.split("/")
        for part in folders:
            path /= part
            if not _mode(path, stat.S_ISDIR, "is not a folder"):
                return self.root / inside
        path /= last
        is_file = _mode(path, stat.S_ISREG, "is not a file")
        if is_file and not self._overwrite and not self._is_ours(path, inside):
            what = "exists, and was not written by segiou or has changed since"
            raise _exists(path, f"{what}; pass --overwrite (overwrite=True), or another folder")
        return path

    def _unique_path(self, name: str) -> str:
        """A path for a name that stays in the folder, different for each name."""
        *folders, last = [_part(part) for part in re.split(r"[/\\]+", name) if part] or ["_"]
        path = ""
        for part in folders:
            path = f"{self._unique(f'{path}{part}', '', None)}/"
        stem, dot, ending = last.rpartition(".")
        return self._unique(f"{path}{stem}", f"{dot}{ending}", name)

    def _unique(self, start: str, ending: str, name: str | None) -> str:
        """A path that no other name has, numbered if needed; folders have no name."""
        number = 1
        while True:
            inside = f"{start}{ending}" if number == 1 else f"{start}_{number}{ending}"
            if self._names.setdefault(inside.casefold(), name) == name:
                return inside
            number += 1

    def _is_ours(self, path: Path, inside: str) -> bool:
        """Whether the file has the content that was last written here."""
        if self._known is None:
            listing = self.root / _LIST
            is_list = _mode(listing, stat.S_ISREG, "is not a file")
            self._known = set(listing.read_bytes().split(b"\n") if is_list else ())
        return os.fsencode(_line(path.read_bytes(), inside)) in self._known


def _line(data: bytes, inside: str) -> str:
    """The line of a file in the list."""
    return f"{hashlib.sha256(data).hexdigest()}  {inside}"


def _part(part: str) -> str:
    """One part of a path: not hidden, which ``..`` would be, and not too long."""
    plain = re.sub(r"^\.+", "_", _UNFIT.sub("_", part))
    if len(data := os.fsencode(plain)) <= _LONGEST:
        return plain
    ending = os.fsencode(os.path.splitext(plain)[1])[:20]  # noqa: PTH122
    short = hashlib.sha256(data).hexdigest()[:8]
    return f"{data[:150].decode(errors='ignore')}_{short}{ending.decode(errors='ignore')}"


def _mode(path: Path, is_kind: Callable[[int], bool], otherwise: str) -> bool:
    """Whether there is a file or folder; FileExistsError for links and other kinds."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISLNK(mode):
        raise _exists(path, "is a link, which is not followed; remove it, or pass another folder")
    if not is_kind(mode):
        raise _exists(path, f"{otherwise}; remove it, or pass another folder")
    return True


def _exists(path: Path, problem: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, problem, str(path))
