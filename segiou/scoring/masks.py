"""One mask, opened for counting: an array, or a view of a file too large to be one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from segiou.labels import LabelSet
from segiou.readers import MaskError
from segiou.readers.masks import RawMask, from_bytes, to_labels
from segiou.readers.scratch import Scratch
from segiou.runs import Stamp
from segiou.sources import LocalFolder, Source
from segiou.sources.local import stable_stamp
from segiou.windows import BigMask, FileMask, ResizedMask, open_big

__all__ = ["Content", "OpenMask", "open_labels", "read_ahead"]

Content = tuple[bytes, Stamp]

#: A file of fewer bytes is small, unless it is packed.
_BIG_BYTES = 1 << 26
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class OpenMask:
    """A mask of labels.

    Attributes
    ----------
    values : ndarray or FileMask
    stamp : Stamp
    decoded : callable
        Makes labels of a window of ``values``.
    check : callable
        Raises MaskError if the file has changed since.
    """

    values: BigMask
    stamp: Stamp
    decoded: Callable[[Any], Any] = lambda window: window
    check: Callable[[], None] = lambda: None

    @property
    def is_big(self) -> bool:
        """Whether it must be counted window by window."""
        return isinstance(self.values, FileMask)

    def whole(self) -> Any:
        """All labels as one array, also of a big mask."""
        if not self.is_big and not isinstance(self.values, ResizedMask):
            return self.values
        return self.decoded(self.values[tuple(slice(0, n) for n in self.values.shape)])

    def resized(self, shape: tuple[int, ...]) -> OpenMask:
        """The same at another size, each pixel the nearest of it."""
        resized: BigMask = ResizedMask(self.values, shape)
        if not self.is_big:
            resized = resized[tuple(slice(0, length) for length in shape)]
        return replace(self, values=resized)


def open_labels(
    stack: ExitStack,
    path: str,
    source: Source,
    labels: LabelSet,
    *,
    allow_lossy: bool,
    content: Content | None = None,
    scratch: Scratch | None = None,
) -> OpenMask:
    """Open a mask file, until the stack closes it.

    Parameters
    ----------
    stack : ExitStack
    path : str
    source : Source
    labels : LabelSet
    allow_lossy : bool
        Whether JPEG masks are taken.
    content : tuple of bytes and Stamp, optional
        What was read of the file already.
    scratch : Scratch, optional
        Memory for the labels, which are then good until it is used again.

    Raises
    ------
    MaskError
        If it cannot be read as a mask.
    """
    if content is None and isinstance(source, LocalFolder) and _may_be_big(path):
        big = _open_windowed(stack, path, labels, allow_lossy)
        if big is not None:
            return big
    data, stamp = source.read(path) if content is None else content
    raw = from_bytes(data, path, scratch)
    return OpenMask(to_labels(raw, path, labels, allow_lossy=allow_lossy), stamp)


def _open_windowed(
    stack: ExitStack, path: str, labels: LabelSet, allow_lossy: bool
) -> OpenMask | None:
    version, stamp = stable_stamp(path)
    big = open_big(path)
    if big is None:
        return None
    stack.enter_context(big)

    def decoded(window: Any) -> Any:
        raw = RawMask(window, big.mode, big.kind, big.lossy)
        return to_labels(raw, path, labels, allow_lossy=allow_lossy)

    def check() -> None:
        if stable_stamp(path)[0] != version:
            problem = "is being changed while it is read; score when it is written"
            raise MaskError(path, problem)

    return OpenMask(big, stamp, decoded, check)


def read_ahead(source: Source, paths: Sequence[str]) -> list[Content | None]:
    """Small files all at once, where that pays; None for those to be read one by one."""
    if not isinstance(source, LocalFolder) or any(map(_is_packed, paths)):
        return [None] * len(paths)
    return source.read_small(paths)


def _may_be_big(path: str) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path would take longer than the question
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    packed = _is_packed(path)
    if found.st_size > _MOST_BYTES and not packed and not path.lower().endswith(".npy"):
        problem = f"has {found.st_size} bytes; store masks of this size as tiled TIFF or .npy"
        raise MaskError(path, problem)
    return packed or found.st_size >= _BIG_BYTES


def _is_packed(path: str) -> bool:
    return path.lower().endswith((".tif", ".tiff"))
