"""A mask with ids of objects, as measures read them from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou._support.text import listed
from segiou.counting.id_pairs import id_areas
from segiou.masks.raw_mask import MaskError
from segiou.masks.windows import resized
from segiou.regions.components import Components

#: Per side: the number (from 1) of the object at each pixel; and for each object its outcome
#: (0 dropped, 1 found, 2 missed or false positive), class index and pixels.
Drawn = tuple[tuple[NDArray[np.int64], list[list[int]]], ...]


class ObjectMask(NamedTuple):
    """Class value and object id of each pixel, the ids of crowds, and the file.

    Parameters
    ----------
    classes : ndarray or callable
        Class values, or a function from an array of ids to them.
    ids : ndarray or Components
        Object ids; those of connected components are stored as runs.
    crowd : sequence of int
        Ids of crowds.
    path : str
        The file.
    pixels : ndarray of int64, optional
        Number of pixels that each entry of the arrays represents.
    segments : mapping of int to mapping, optional
        Entries of COCO's annotations by id, until they are checked against the pixels.
    stamp : Stamp, optional
        That of the annotations, if they are next to the folder of the file.
    """

    classes: Any
    ids: NDArray[Any] | Components
    crowd: Sequence[int] = ()
    path: str = ""
    pixels: NDArray[np.int64] | None = None
    segments: Mapping[int, Mapping[str, Any]] | None = None
    stamp: Stamp | None = None

    @property
    def id_map(self) -> NDArray[Any]:
        """The ids as an array."""
        return self.ids.id_map if isinstance(self.ids, Components) else self.ids

    def resized(self, shape: tuple[int, ...]) -> ObjectMask:
        """The same at a different size, by nearest-neighbour sampling.

        Parameters
        ----------
        shape : tuple of int
            The size.
        """
        mask = self.checked()
        classes = mask.classes if callable(mask.classes) else resized(mask.classes, shape)
        return mask._replace(classes=classes, ids=resized(mask.id_map, shape))

    def whole(self) -> ObjectMask:
        """The same with the class value of each pixel."""
        if not callable(self.classes):
            return self
        return self.checked()._replace(classes=self.classes(self.id_map), ids=self.id_map)

    def checked(self) -> ObjectMask:
        """The same; MaskError if its segments are not those of the annotation."""
        if self.segments is None:
            return self
        areas = {i: n for i, n in id_areas(self.id_map, self.pixels).items() if i}
        _check_segments(self.path, self.segments, areas)
        return self._replace(segments=None)


def _check_segments(
    path: str, segments: Mapping[int, Mapping[str, Any]], areas: Mapping[int, int]
) -> None:
    """Reject segments of an annotation that are not those of its file."""
    for different, problem in (
        (areas.keys() - segments, "contains segment ids missing from its annotation"),
        (segments.keys() - areas, "does not contain segment ids of its annotation"),
    ):
        if different:
            raise MaskError(path, f"{problem}: {listed([*map(str, sorted(different))], 8)}")
    for number, part in segments.items():
        if part.get("area") not in (None, areas[number]):
            problem = f"has {areas[number]} pixels, but its annotation has area {part['area']!r}"
            raise MaskError(path, f"segment {number} {problem}; regenerate the annotation")
