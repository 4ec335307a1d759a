"""Masks with one file per class: ``s0001/segmentations/liver.nii.gz``, ``img1_class_chair.png``.

Or one per object, ``id/masks/7.png``, which become a mask of ids.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou._support.text import listed, plural
from segiou.labels.label_set import LabelSet, background_of
from segiou.masks.colors import packed
from segiou.masks.finding import split_ending
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import check_lossy, from_bytes
from segiou.masks.reading import OBJECT, ONE_IMAGE
from segiou.masks.sources.derived import SeveralFiles
from segiou.masks.sources.folders import Source
from segiou.masks.sources.mask_places import NOT_MASKS, OF_MASKS, PHOTOS

#: Name of the pixels outside all classes.
BACKGROUND = "background"
_MARKED = re.compile(r"(?P<id>.+)_class_(?P<name>[^/]+)")
#: Pattern of one folder per class.
IN_FOLDERS = "{class}/{id}"


def match_class(pattern: str, root: str, path: str) -> re.Match[str] | None:
    """The groups ``id`` and ``name`` of a file below a root; None if it does not match."""
    expression = re.escape(pattern).replace(r"\{id\}", "(?P<id>.+)")
    if pattern in (ONE_IMAGE, OBJECT):
        expression = f"(?P<id>){expression}"
    for name in (r"\{class\}", re.escape(OBJECT)):
        expression = expression.replace(name, "(?P<name>[^/]+)")
    compiled = re.compile(expression)
    start = len(root) + path[len(root) :].startswith("/")
    return compiled.fullmatch(path, start, len(split_ending(path)[0]))


def classes_of(source: Source, pattern: str) -> list[str]:
    """Names of the classes that have files, in alphabetical order."""
    matches = (match_class(pattern, source.root, path) for path in source.find().values())
    return sorted({match["name"] for match in matches if match})


def undeclared_files(source: Source, pattern: str, labels: LabelSet) -> dict[str, list[str]]:
    """Files of classes that the labels lack, by class; none if no class of the labels is near."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    if OBJECT in pattern:
        return files
    for path in sorted(source.find().values()):
        if match := match_class(pattern, source.root, path):
            files[match["name"]].append(path)
    declared = {*labels.class_names}
    folded = {name.casefold() for name in declared}
    # Files of none of the classes may be masks of all classes.
    if not any(name.casefold() in folded for name in files):
        return {}
    return {name: paths for name, paths in files.items() if name not in declared}


def unmatched_files(source: ClassMasks) -> list[str]:
    """Masks that are in no image, because they do not match the pattern; without photos."""
    return [
        path
        for name, path in sorted(source.place.find().items())
        if not match_class(source.pattern, source.root, path)
        and not (name.lower().endswith(PHOTOS) or NOT_MASKS.search(name))
    ]


@dataclass(frozen=True)
class ClassMasks(SeveralFiles):
    """A source whose masks are stored as one file per class, which may overlap, or per object.

    Attributes
    ----------
    pattern : str
        Relative path of a file without extension, such as ``"{id}/{class}"``.
    values : mapping of str to int
        Value of each class by name; empty for files of objects.
    outside : int
        Value of pixels outside all classes.
    """

    pattern: str
    values: Mapping[str, int]
    outside: int
    #: Whether lossy formats are accepted.
    allow_lossy: bool = False

    @classmethod
    def of(
        cls, files: Source, pattern: str, labels: LabelSet, *, allow_lossy: bool = False
    ) -> Source:
        """The source for a label set; the files themselves if none matches the pattern.

        Parameters
        ----------
        files : Source
            The files.
        pattern : str
            Their relative paths.
        labels : LabelSet
            The classes.
        allow_lossy : bool
            Whether lossy formats are accepted.

        Raises
        ------
        ValueError
            If no class is left for pixels outside all files.
        """
        present = set(classes_of(files, pattern))
        if OBJECT in pattern:
            return cls(files, pattern, {}, 0, allow_lossy) if present else files
        if not present & set(labels.class_names):
            return files
        values = {entry.name: entry.values[0] for entry in labels.classes}
        free = [name for name in values if name not in present]
        if not free:
            msg = "every class has files; add a class for the pixels outside all of them"
            raise ValueError(msg)
        outside = values.pop(background_of(free) or free[0])
        return cls(files, pattern, values, outside, allow_lossy)

    def find(self) -> dict[str, str]:
        """One entry per image: the path of its first class."""
        images: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for path in sorted(self.place.find().values()):
            match = match_class(self.pattern, self.root, path)
            if match and (match["name"] in self.values or not self.values):
                of_image = images[match["id"] or "image"]
                if (other := of_image.setdefault(match["name"], path)) != path:
                    msg = f"{path}: is of the same image and class as {other}; keep one"
                    raise ValueError(msg)
        firsts = {image: min(paths.values()) for image, paths in images.items()}
        self._images.update({firsts[image]: paths for image, paths in images.items()})
        return {f"{image}{split_ending(path)[1]}": path for image, path in firsts.items()}

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The sets of classes of each pixel of an image."""
        stamps: list[Stamp] = []
        combined: dict[tuple[int, ...], int] = {(): 0}
        numbers: NDArray[Any] | None = None
        first: Any = None
        for name, file in self.files_of(path).items():  # one by one, because volumes are large
            data, stamp = self.place.read(file)
            stamps.append(stamp)
            raw = from_bytes(data, file)
            area = binary_area(raw, file, allow_lossy=self.allow_lossy)
            if numbers is None:
                first, numbers = raw, np.zeros(area.shape, np.uint16)
            if area.shape != numbers.shape:
                problem = f"has shape {area.shape}, but {path} has {numbers.shape}"
                raise MaskError(file, problem)
            if self.values:
                numbers[area] = _add_class(numbers[area], self.values[name], combined)
            else:
                _add_object(numbers, area, len(stamps), file)
        volume = first.volume and replace(first.volume, values=numbers)
        sets = tuple(values or (self.outside,) for values in combined) if self.values else ()
        raw = RawMask(numbers, "L", first.kind, volume=volume, sets=sets)
        return raw, reduce(Stamp.joined, stamps)


def _add_object(numbers: NDArray[Any], area: NDArray[np.bool_], number: int, path: str) -> None:
    """Write the number of an object into its pixels; MaskError if another object has them."""
    if number > np.iinfo(numbers.dtype).max:
        raise MaskError(path, f"is object {number} of its image; expected at most 65535")
    if shared := int(np.count_nonzero(numbers[area])):
        problem = f"shares {plural(shared, 'pixel')} with a different object of its image"
        raise MaskError(path, f"{problem}; remove the overlap from one of the files")
    numbers[area] = number


def _add_class(
    numbers: NDArray[Any], value: int, combined: dict[tuple[int, ...], int]
) -> NDArray[Any]:
    """Numbers of sets of classes after adding a class; new sets get the next numbers."""
    sets = [*combined]
    present, places = np.unique(numbers, return_inverse=True)
    more = [(*sets[number], value) for number in present.tolist()]
    new = [combined.setdefault(classes, len(combined)) for classes in more]
    return np.array(new, np.uint16)[places.reshape(-1)]


def binary_area(
    raw: RawMask, path: str, what: str = "a file of one class", *, allow_lossy: bool
) -> NDArray[np.bool_]:
    """Pixels that are not 0 in a mask of two values."""
    check_lossy(raw, path, None, allow_lossy=allow_lossy)
    values = packed(raw.values) if raw.is_color else np.asarray(raw.values)
    different = np.unique(values)
    if len(different) > 2 or (len(different) == 2 and different[0] != 0):
        shown = listed([str(value) for value in different.tolist()], 6)
        problem = f"has the values {shown}; {what} has 0 outside and one value inside"
        raise MaskError(path, problem)
    return np.asarray(values != 0)


def class_layout(
    relative: Iterable[str], known: Iterable[str] = ()
) -> tuple[str, tuple[str, ...]] | None:
    """The pattern of files that have class names as stems, and these names; None for others.

    Words are names of classes if they repeat in several folders, or if they are all known.
    """
    stems = [split_ending(path)[0] for path in relative]
    marked = [_MARKED.fullmatch(stem) for stem in stems]
    if stems and all(marked):
        names = tuple(sorted({match["name"] for match in marked if match}))
        return ("{id}_class_{class}", names) if len(names) > 1 else None
    if (in_folders := _class_folders(stems, {*known})) is not None:
        return in_folders
    names = tuple(sorted({stem.rpartition("/")[2] for stem in stems}))
    sizes = Counter(stem.rpartition("/")[0] for stem in stems)
    if len(sizes) > 1 and (of_folders := folder_names(stems)) and {*of_folders} <= {*known}:
        return IN_FOLDERS, of_folders
    # A Path for each of a million files takes seconds.
    folders = [PurePosixPath(folder) for folder in sizes]
    below = {folder.name for folder in folders}
    is_grid = 2 * len(stems) > len(names) * len(folders) and min(sizes.values(), default=0) > 1
    is_several = len(folders) > 1 or below == {"segmentations"}
    # Names that differ only in their numbers are not those of classes.
    differ = len({re.sub(r"\d+", "", name) for name in names}) > 1
    if not {*names} <= {*known} and not (is_grid and is_several and differ):
        return None
    # Frames of several videos have equal names as well, but numbers.
    if not all(re.search(r"[^\W\d]{2}", name) for name in names):
        return None
    if below <= {""}:
        return (ONE_IMAGE, names) if names else None
    middle = f"{below.pop()}/" if len(below) == 1 and all(f.parent.name for f in folders) else ""
    return f"{{id}}/{middle}{{class}}", names


def _class_folders(stems: Iterable[str], known: Set[str]) -> tuple[str, tuple[str, ...]] | None:
    """The layout of folders of known classes with the same files, beside other folders."""
    inside: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for stem in stems:
        folder, _, name = stem.rpartition("/")
        above, _, last = folder.rpartition("/")
        if above and last in known:
            inside[above][last].add(name)
    for above, classes in inside.items():
        if len(inside) == 1 and len(classes) > 1 and set.intersection(*classes.values()):
            return f"{above}/{IN_FOLDERS}", tuple(sorted(classes))
    return None


def folders_of_masks(
    relative: Iterable[str], others: Iterable[str]
) -> tuple[str, tuple[str, ...]] | None:
    """A folder of masks whose folders, with words as names, have the same files as another side."""
    sides = [[split_ending(path)[0] for path in side] for side in (relative, others)]
    if any("/" in stem for stem in sides[1]):
        return None
    words = {
        last
        for stem in sides[0]
        if (last := stem.rpartition("/")[0].rpartition("/")[2])
        if re.fullmatch(r"[^\W\d]{2}.*", last)
        if not (OF_MASKS.search(last) or NOT_MASKS.search(last))
    }
    layout = _class_folders(sides[0], words)
    if layout is None or len(layout[1]) < 3:
        return None
    above = layout[0].removesuffix(f"/{IN_FOLDERS}")
    names = {stem.rpartition("/")[2] for stem in sides[0] if stem.startswith(f"{above}/")}
    is_of_masks = OF_MASKS.search(above.rpartition("/")[2])
    return layout if is_of_masks and names & {*sides[1]} else None


def object_layout(relative: Iterable[str], others: Iterable[str]) -> str | None:
    """The pattern of files of one object, in folders named after other files; None for others."""
    known = {split_ending(path)[0].rpartition("/")[2] for path in others}
    folders: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in relative:
        id, _, folder = path.rpartition("/")[0].rpartition("/")
        folders[folder][id.rpartition("/")[2]] += 1
    for folder, number in folders.items():
        several = max(number.values()) > 1 and not NOT_MASKS.search(folder)
        if several and 2 * len(known & number.keys()) >= len(number):
            return f"{{id}}/{folder}/{OBJECT}"
    return None


def folder_names(relative: Iterable[str]) -> tuple[str, ...]:
    """Names of several folders with the same files, which may be those of classes or of videos."""
    inside: defaultdict[str, set[str]] = defaultdict(set)
    for path in relative:
        top, _, rest = path.rpartition("/")
        inside[top].add(split_ending(rest)[0])
    are_words = all(re.fullmatch(r"[^\W\d]{2}[^/]*", name) for name in inside)
    are_same = len({*map(frozenset, inside.values())}) == 1
    return tuple(sorted(inside)) if len(inside) > 1 and are_words and are_same else ()
