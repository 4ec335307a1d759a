"""Folders of masks, one per click, as one image each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from segiou.masks.finding import split_ending
from segiou.masks.sources.derived import SeveralFiles

#: Digits of a number of clicks, at most.
_CLICK = re.compile(r"(?P<stem>[^/]*?)(?P<number>\d{1,6})/(?P<id>.+)")


@dataclass(frozen=True)
class ClickFiles(SeveralFiles):
    """A source whose images are stored as one mask per click; later ones may be missing.

    Attributes
    ----------
    place : Source
        The files: ``click_01/a.png``, ``click_02/a.png``, …
    limit : int
        Largest number of clicks that is read.
    """

    limit: int

    def find(self) -> dict[str, str]:
        """One entry per image: the path of its last click. ValueError for other folders."""
        images: defaultdict[str, dict[int, str]] = defaultdict(dict)
        stems: dict[str, str] = {}
        for name, path in sorted(self.place.find().items()):
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
            last = paths[len(paths)]
            self._images[last] = paths
            last_paths[f"{image}{split_ending(last)[1]}"] = last
        return last_paths

    def _ordered(self, image: str, by_click: Mapping[int, str]) -> dict[int, str]:
        """The files of an image up to the limit."""
        missing = next((n for n in range(1, max(by_click)) if n not in by_click), 0)
        if missing:
            msg = (
                f"{self.root}: {image} has a mask after click {max(by_click)}, but none after "
                f"click {missing}; add it"
            )
            raise ValueError(msg)
        return {n: by_click[n] for n in range(1, min(len(by_click), self.limit) + 1)}
