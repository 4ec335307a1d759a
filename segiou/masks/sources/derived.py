"""Sources whose masks come from the files of another source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import reduce
from typing import Any

from segiou._support.files import Stamp
from segiou._support.locks import Lockable
from segiou.masks.raw_mask import RawMask
from segiou.masks.sources.folders import Source

#: Mode of an image of several files: its values are their paths and contents.
SEVERAL = "files"
_FINDING = Lockable()


@dataclass(frozen=True)
class DerivedSource(Source):
    """A source with the files of another one, which subclasses read in their own way.

    Workers look up what they need, so fields that are not compared are not sent to them.

    Attributes
    ----------
    place : Source
        The files.
    """

    place: Source

    def __reduce__(self) -> tuple[Any, ...]:
        sent = (field.name for field in fields(self) if field.compare)
        return type(self), tuple(getattr(self, name) for name in sent)

    @property
    def root(self) -> str:
        """The path or URL of the files."""
        return self.place.root

    def find(self) -> dict[str, str]:
        """Mask files by relative path."""
        return self.place.find()

    def stamp(self, path: str) -> Stamp:
        """The stamp of a file."""
        return self.place.stamp(path)


@dataclass(frozen=True)
class ReadBy(DerivedSource):
    """A source whose files a function reads, such as one that knows a password.

    Attributes
    ----------
    content : callable
        Returns the content of the file at a path, or its mask.
    """

    content: Callable[[str], bytes | RawMask]

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The content of a file."""
        return self.content(path), self.stamp(path)


@dataclass(frozen=True)
class SeveralFiles(DerivedSource):
    """A source whose images have several files each, such as one per class."""

    #: Files of each image, by class or the like, by the path that stands for it.
    _images: dict[str, dict[Any, str]] = field(
        default_factory=dict, repr=False, compare=False, kw_only=True
    )

    def files_of(self, path: str) -> Mapping[Any, str]:
        """The files of the image that a path stands for."""
        with _FINDING.lock:
            if path not in self._images:
                self.find()
        return self._images[path]

    def stamp(self, path: str) -> Stamp:
        """The stamps of all files of an image as one."""
        return reduce(Stamp.joined, map(self.place.stamp, self.files_of(path).values()))

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The contents of the files of an image with their paths, and their stamp."""
        files = [(file, *self.place.read(file)) for file in self.files_of(path).values()]
        contents = [(file, data) for file, data, _ in files]
        return RawMask(contents, SEVERAL, SEVERAL), reduce(Stamp.joined, (s for *_, s in files))
