"""Folders of masks, one per click, as one image each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from threading import Lock
from typing import Any

from segiou._support.files import Stamp
from segiou.masks.finding import split_ending
from segiou.masks.raw_mask import RawMask
from segiou.masks.sources.folders import Source

#: Mode of the content of an image: its masks in the order of the clicks.
MODE = "clicks"
#: Digits of a number of clicks, at most.
_CLICK = re.compile(r"(?P<stem>[^/]*?)(?P<number>\d{1,6})/(?P<id>.+)")
_FINDING = Lock()


@dataclass(frozen=True)
class ClickFiles:
    """A source whose images are stored as one mask per click; later ones may be missing.

    Attributes
    ----------
    files : Source
        The files: ``click_01/a.png``, ``click_02/a.png``, …
    limit : int
        Largest number of clicks that is read.
    """

    files: Source
    limit: int
    #: Files by click, of each image, by the path of the last one.
    _images: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers look up the files they need instead of receiving the whole listing.
        return type(self), (self.files, self.limit)

    @property
    def root(self) -> str:
        """The path or URL of the files."""
        return self.files.root

    def find(self) -> dict[str, str]:
        """One entry per image: the path of its last click. ValueError for other folders."""
        images: defaultdict[str, dict[int, str]] = defaultdict(dict)
        stems: dict[str, str] = {}
        for name, path in sorted(self.files.find().items()):
            match = _CLICK.fullmatch(name)
            if match is None or not (number := int(match["number"])):
                msg = (
                    f"{self.root}: {name} is not in the folder of a click; put the masks after "
                    "each click into one folder, numbered from 1, such as click_01/"
                )
                raise ValueError(msg)
            stems.setdefault(match["stem"], name)
            image = split_ending(match["id"])[0]
            if images[image].setdefault(number, path) != path:
                msg = f"{self.root}: {image} has two masks after click {number}; keep one"
                raise ValueError(msg)
        if len(stems) > 1:
            some = " and ".join([*stems.values()][:2])
            msg = f"{self.root}: folders of clicks have different names: {some}; use one name"
            raise ValueError(msg)
        last_paths = {}
        for image, by_click in images.items():
            paths = self._ordered(image, by_click)
            self._images[paths[-1]] = paths
            last_paths[f"{image}{split_ending(paths[-1])[1]}"] = paths[-1]
        return last_paths

    def _ordered(self, image: str, by_click: Mapping[int, str]) -> tuple[str, ...]:
        """The files of an image up to the limit."""
        missing = next((n for n in range(1, max(by_click)) if n not in by_click), 0)
        if missing:
            msg = (
                f"{self.root}: {image} has a mask after click {max(by_click)}, but none after "
                f"click {missing}; add it"
            )
            raise ValueError(msg)
        return tuple(by_click[n] for n in range(1, min(len(by_click), self.limit) + 1))

    def _paths(self, path: str) -> tuple[str, ...]:
        """Files of the image whose last file is at this path."""
        with _FINDING:
            if path not in self._images:
                self.find()
        return self._images[path]

    def stamp(self, path: str) -> Stamp:
        """Stamp of all files of an image.

        Parameters
        ----------
        path : str
            Its last file.
        """
        return reduce(Stamp.joined, map(self.files.stamp, self._paths(path)))

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The content of the files of an image with their paths, and their stamp.

        Parameters
        ----------
        path : str
            Its last file.
        """
        files = [(file, *self.files.read(file)) for file in self._paths(path)]
        contents: Any = [(file, data) for file, data, _ in files]
        return RawMask(contents, MODE, MODE), reduce(Stamp.joined, (stamp for *_, stamp in files))
