"""A mask with ids of objects, as measures read them from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou._support.text import listed
from segiou.counting.id_pairs import id_areas, sums
from segiou.masks.raw_mask import MaskError
from segiou.masks.windows import resized
from segiou.regions.components import Components

#: Per side: the number (from 1) of the object at each pixel; and for each object its outcome
#: (0 dropped, 1 found, 2 missed or false positive), class index and pixels.
Drawn = tuple[tuple[NDArray[np.int64], list[list[int]]], ...]


class Segments(NamedTuple):
    """The segments that an annotation lists for a mask.

    Parameters
    ----------
    classes : mapping of int to int
        Class value by id, also that of id 0, which is no segment.
    areas : mapping of int to object
        Area by id; None if the annotation has none.
    """

    classes: Mapping[int, int]
    areas: Mapping[int, Any]


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
    segments : Segments, optional
        Segments of COCO's annotation, until they are checked against the pixels.
    stamp : Stamp, optional
        That of the annotations, if they are next to the folder of the file.
    """

    classes: Any
    ids: NDArray[Any] | Components
    crowd: Sequence[int] = ()
    path: str = ""
    pixels: NDArray[np.int64] | None = None
    segments: Segments | None = None
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
        _check_segments(self.path, self.segments.areas, areas)
        return self._replace(segments=None)

    def classified(self) -> ObjectMask:
        """The same, checked, with the class value of each entry."""
        mask = self.checked()
        return mask._replace(classes=mask.classes(mask.id_map)) if callable(mask.classes) else mask


def classified(masks: Sequence[ObjectMask]) -> list[ObjectMask]:
    """Several masks, each as by ``classified``; those of annotations at once."""
    listed_segments = [mask.segments for mask in masks if mask.segments is not None]
    if len(listed_segments) == len(masks) > 1:
        classes = _classes_at_once(masks, listed_segments)
        if classes is not None:
            stops = np.cumsum([len(mask.id_map) for mask in masks]).tolist()
            parts = (classes[start:stop] for start, stop in pairwise([0, *stops]))
            return [
                mask._replace(classes=part, segments=None)
                for mask, part in zip(masks, parts, strict=True)
            ]
    return [mask.classified() for mask in masks]


def _classes_at_once(
    masks: Sequence[ObjectMask], several: Sequence[Segments]
) -> NDArray[np.int64] | None:
    """The class value of each entry of masks with pixels; None if any has other segments."""
    numbers = [*chain.from_iterable(each.classes for each in several)]
    counts = [len(each.classes) for each in several]
    if min(numbers) < 0 or max(numbers) >> 32 or any(0 in each.areas for each in several):
        return None
    images = np.arange(len(masks), dtype=np.int64) << 32
    keys = np.repeat(images, counts) | np.array(numbers, np.int64)
    wanted = np.repeat(images, [len(mask.id_map) for mask in masks])
    wanted |= np.concatenate([mask.id_map for mask in masks])
    order = np.argsort(keys)
    places = order[np.searchsorted(keys[order], wanted).clip(max=len(keys) - 1)]
    pixels: Any = np.concatenate([mask.pixels for mask in masks])
    found = sums(places, pixels, len(keys)).tolist()
    for stop in accumulate(counts):  # id 0 comes last, and may have any area
        found[stop - 1] = None
    areas = [*chain.from_iterable(map(each.areas.get, each.classes) for each in several)]
    are_areas = found == areas or all(
        area in (None, some) for area, some in zip(areas, found, strict=True)
    )
    if 0 in found or not (are_areas and (keys[places] == wanted).all()):
        return None
    values = [*chain.from_iterable(each.classes.values() for each in several)]
    return np.asarray(np.array(values, np.int64)[places])


def _check_segments(path: str, listed_areas: Mapping[int, Any], areas: Mapping[int, int]) -> None:
    """Reject segments of an annotation that are not those of its file."""
    for different, problem in (
        (areas.keys() - listed_areas, "contains segment ids missing from its annotation"),
        (listed_areas.keys() - areas, "does not contain segment ids of its annotation"),
    ):
        if different:
            raise MaskError(path, f"{problem}: {listed([*map(str, sorted(different))], 8)}")
    for number, area in listed_areas.items():
        if area not in (None, areas[number]):
            problem = f"has {areas[number]} pixels, but its annotation has area {area!r}"
            raise MaskError(path, f"segment {number} {problem}; regenerate the annotation")
