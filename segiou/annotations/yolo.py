"""YOLO segmentation labels: a text file of polygons per image."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.files import Stamp, is_file, read_text
from segiou.masks.finding import check_found, files_below
from segiou.masks.formats.drawing import check_corners, filled_part
from segiou.masks.formats.drawn_image import image_size
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.sources.folders import Source, first_files, stamp_of

_NUMBER = r"[+-]?(?:\d+\.?|\d*\.\d+)(?:e[+-]?\d+)?"
#: A class and three corners or more; with a confidence at the end, one number more.
_POLYGON = re.compile(rf"\d+(?:\s+{_NUMBER}){{6,}}", re.IGNORECASE)
#: Coordinates are from 0 to 1; Ultralytics accepts those that are rounded beyond by less.
_BEYOND = 0.01
_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
#: Files that tools leave beside text files.
_BESIDE = (".txt", ".cache", ".yaml", ".yml")
_CLASSES = "classes.txt"
_EMPTY = Stamp(0, 0)


def open_folder(path: Path, _part: Path) -> Source | None:
    """The source for a folder of polygons, or of ``images`` and ``labels``; None for others."""
    root = path / "labels" if (path / "images").is_dir() else path
    return YoloFolder(str(root)) if root.is_dir() and _is_yolo(root) else None


def _is_yolo(folder: Path) -> bool:
    """Whether a folder has text files of polygons, and no other masks beside them."""
    files = [Path(name) for name in first_files(folder)]
    images = [path for path in files if path.suffix.lower() in _IMAGES]
    others = [path for path in files if path.suffix.lower() not in (*_IMAGES, *_BESIDE)]
    if others or not all(map(_is_photo, images[:1])):
        return False
    texts = [path for path in files if path.suffix.lower() == ".txt" and path.name != _CLASSES]
    texts += [
        path for path in (image.with_suffix(".txt") for image in images[:1]) if path.is_file()
    ]
    lines: list[str] = []
    for path in texts:
        with suppress(ValueError):  # those that are not text are reported when they are read
            lines += _lines(path)
    # Files of images without objects are empty.
    are_of_images = not lines and all(YoloFolder(str(folder)).image_of(path) for path in texts)
    return are_of_images or any(map(_POLYGON.fullmatch, lines))


def _is_photo(path: Path) -> bool:
    """Whether an image has colours in its pixels, which most masks do not have."""
    with suppress(OSError, SyntaxError, ValueError), Image.open(path) as image:
        return image.mode == "RGB"
    return False


@dataclass(frozen=True)
class YoloFolder(Source):
    """Polygons of each image, drawn as Ultralytics draws them.

    Corners are truncated to pixels and filled by OpenCV's rule; smaller polygons cover
    larger ones. Sizes are those of the images, which are in ``images`` for ``labels``, one
    folder up, or next to the text files, or those of the other masks of the pairs. An image
    without a text file has no objects.

    Attributes
    ----------
    root : str
        The folder of text files.
    """

    root: str

    @property
    def draws(self) -> bool:
        """Its masks are drawn from polygons."""
        return True

    @property
    def for_empty(self) -> str:
        """What stores an image without objects."""
        return "an empty text file"

    def find(self) -> dict[str, str]:
        """Text files by relative path, also those that are missing because they are empty."""
        root, folder = Path(self.root), self._folders()[0]
        images = _by_name(folder, _IMAGES)
        for first, *others in images.values():
            if other := next((path for path in others if _size(path) != _size(first)), None):
                msg = f"{first}: differs in size from {other}; keep one of the images"
                raise ValueError(msg)
        texts = _by_name(root, (".txt",))
        if doubled := [paths for paths in texts.values() if len(paths) > 1]:
            msg = f"{doubled[0][0]}: has the name of {doubled[0][1]}; keep one"
            raise ValueError(msg)
        paths = {name: f"{root / name}.txt" for name in images}
        paths |= {name: str(text) for name, (text, *_) in texts.items() if text.name != _CLASSES}
        files = {f"{name}.txt": paths[name] for name in sorted(paths)}
        check_found(files, self.root)
        return files

    def _folders(self) -> list[Path]:
        """Existing folders that may have the images, best first."""
        root = Path(self.root).absolute()
        parts = list(root.parts)
        places = [root.parent] if root.name == "labels" else []
        if "labels" in parts:
            at = len(parts) - 1 - parts[::-1].index("labels")
            places.insert(0, Path(*parts[:at], "images", *parts[at + 1 :]))
        return [folder for folder in places if folder.is_dir()] or [root]

    def image_of(self, path: str | Path) -> Path | None:
        """The image of a text file.

        Parameters
        ----------
        path : str or path
            The text file.
        """
        relative = Path(path).relative_to(self.root).with_suffix("")
        tried = (
            folder / f"{relative}{ending}"
            for folder in (*self._folders(), Path(self.root))
            for ending in (*_IMAGES, *map(str.upper, _IMAGES))
        )
        return next((image for image in tried if is_file(image)), None)

    def lacks_size(self, path: str) -> bool:
        """Whether there is no image to take the size of a mask from."""
        return self.image_of(path) is None

    def stamp(self, path: str) -> Stamp:
        """The stamp of the text file, joined with that of its image."""
        stamp = stamp_of(path) if Path(path).is_file() else _EMPTY
        image = self.image_of(path)
        return stamp if image is None else stamp.joined(stamp_of(image))

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The mask of an image: indices of ``names``, 0 outside all polygons."""
        return self.read_sized(path, ())

    def read_sized(self, path: str, shape: tuple[int, ...]) -> tuple[RawMask, Stamp]:
        """The mask of an image; without the image, it has this shape."""
        stamp = self.stamp(path)
        try:
            image = self.image_of(path)
            if image is None and len(shape) != 2:
                folder = self._folders()[0]
                msg = f"has no image to take its size from; put {Path(path).stem}.jpg into "
                msg += f"{folder}, or pair it with a mask that has a size"
                raise ValueError(msg)
            size = (shape[0], shape[1]) if image is None else image_size(image)
            # A broken link and a folder are not text; a file that is missing is empty.
            lines = read_text(Path(path)).splitlines() if os.path.lexists(path) else ()
            numbered = ((number, line.strip()) for number, line in enumerate(lines, 1))
            areas = [_polygon(line, size, number) for number, line in numbered if line]
        except ValueError as error:
            raise MaskError(path, str(error).removeprefix(f"{path}: ")) from error
        # Larger ones first; those of one size in their order.
        areas.sort(key=lambda polygon: -np.count_nonzero(polygon[2]))
        names = {"": 0}
        mask = np.zeros(size, np.int32)
        for name, window, part in areas:
            mask[window][part] = names.setdefault(name, len(names))
        drawn = "OpenCV" if areas else ""
        return RawMask(mask, "yolo", "YOLO", names=tuple(names), drawn=drawn), stamp


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def _by_name(folder: Path, endings: Collection[str]) -> dict[str, list[Path]]:
    """Files below a folder by their relative paths without extension."""
    files: dict[str, list[Path]] = {}
    for relative, path in files_below(folder, endings).items():
        files.setdefault(Path(relative).with_suffix("").as_posix(), []).append(Path(path))
    return files


def _size(image: Path) -> tuple[int, int] | None:
    """The size of an image; None if it cannot be read, which is reported when it is needed."""
    with suppress(ValueError):
        return image_size(image)
    return None


def _polygon(
    line: str, size: tuple[int, int], place: int
) -> tuple[str, tuple[slice, slice], NDArray[np.bool_]]:
    """Class number of a line of a file, and the area of its polygon in a window."""
    if not _POLYGON.fullmatch(line):
        is_box = len(line.split()) in (5, 6)
        what = "a box, which has no mask" if is_box else "no polygon"
        msg = f"has {what} in line {place}: {line!r:.60}; expected a class and at least three "
        msg += "corners"
        raise ValueError(msg)
    number, *corners = line.split()
    # An odd number of coordinates ends with the confidence of a prediction.
    pairs = np.array(corners[: len(corners) // 2 * 2], np.float32).reshape(-1, 2)
    if (outside := pairs[(pairs < -_BEYOND) | (pairs > 1 + _BEYOND)]).size:
        msg = f"has the coordinate {outside[0]:g} in line {place}; expected numbers from 0 to 1, "
        msg += "divided by the width and height of the image"
        raise ValueError(msg)
    # In float32 and truncated, as in Ultralytics.
    points = check_corners(pairs * np.array(size[::-1], np.float32), size, 3)
    window, part = filled_part(points.astype(np.int32).astype(np.int64), size)
    return str(int(number)), window, part
