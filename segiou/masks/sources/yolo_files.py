"""YOLO segmentation labels: a text file of polygons per image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.files import Stamp, read_text
from segiou.masks.finding import check_found
from segiou.masks.formats.drawing import check_corners, filled
from segiou.masks.formats.drawn_image import image_size
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.sources.folders import first_files, stamp_of

#: A class and three corners or more; with a confidence at the end, one number more.
_POLYGON = re.compile(r"\d+(\s+-?[\d.]+(e-?\d+)?){6,}", re.IGNORECASE)
_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
#: Files that tools leave beside text files.
_BESIDE = (".txt", ".cache", ".yaml", ".yml")
_CLASSES = "classes.txt"
_EMPTY = Stamp(0, 0)


def is_yolo(folder: Path) -> bool:
    """Whether a folder has text files of polygons, and no other masks beside them."""
    files = [Path(name) for name in first_files(folder)]
    images = [path for path in files if path.suffix.lower() in _IMAGES]
    others = [path for path in files if path.suffix.lower() not in (*_IMAGES, *_BESIDE)]
    if others or not all(map(_is_photo, images[:1])):
        return False
    texts = [path for path in files if path.suffix.lower() == ".txt"]
    texts += [
        path for path in (image.with_suffix(".txt") for image in images[:1]) if path.is_file()
    ]
    try:
        return any(map(_POLYGON.fullmatch, chain.from_iterable(map(_lines, texts))))
    except ValueError:  # not text
        return False


def _is_photo(path: Path) -> bool:
    """Whether an image has colours in its pixels, which most masks do not have."""
    with suppress(OSError, SyntaxError, ValueError), Image.open(path) as image:
        return image.mode == "RGB"
    return False


@dataclass(frozen=True)
class YoloFolder:
    """Polygons of each image, drawn as Ultralytics draws them.

    Corners are truncated to pixels and filled by OpenCV's rule; smaller polygons cover
    larger ones. Sizes are those of the images, which are in ``images`` for ``labels``, one
    folder up, or next to the text files. An image without a text file has no objects.

    Attributes
    ----------
    root : str
        The folder of text files.
    """

    root: str

    #: Whether its masks may be drawn from polygons.
    draws: ClassVar[bool] = True

    def find(self) -> dict[str, str]:
        """Text files by relative path, also those that are missing because they are empty."""
        root = Path(self.root)
        texts = (path for path in root.rglob("*.txt") if path.name != _CLASSES)
        names = {path.relative_to(root).with_suffix("") for path in texts}
        names |= {path.relative_to(folder).with_suffix("") for folder, path in self._images()}
        files = {f"{name.as_posix()}.txt": f"{root / name}.txt" for name in sorted(names)}
        check_found(files, self.root)
        return files

    def _images(self) -> Iterator[tuple[Path, Path]]:
        """Folders of images, and the images in them."""
        for folder in self._folders()[:1]:
            for path in sorted(folder.rglob("*")):
                if path.suffix.lower() in _IMAGES:
                    yield folder, path

    def _folders(self) -> list[Path]:
        """Existing folders that may have the images, best first."""
        root = Path(self.root).absolute()
        parts = list(root.parts)
        places = [root.parent] if root.name == "labels" else []
        if "labels" in parts:
            at = len(parts) - 1 - parts[::-1].index("labels")
            places.insert(0, Path(*parts[:at], "images", *parts[at + 1 :]))
        return [folder for folder in places if folder.is_dir()] or [root]

    def _image_of(self, path: str) -> Path | None:
        relative = Path(path).relative_to(self.root).with_suffix("")
        tried = (
            folder / f"{relative}{ending}"
            for folder in (*self._folders(), Path(self.root))
            for ending in (*_IMAGES, *map(str.upper, _IMAGES))
        )
        return next((image for image in tried if image.is_file()), None)

    def stamp(self, path: str) -> Stamp:
        """The stamp of the text file, joined with that of its image."""
        stamp = stamp_of(path) if Path(path).is_file() else _EMPTY
        image = self._image_of(path)
        return stamp if image is None else stamp.joined(stamp_of(image))

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The mask of an image: indices of ``names``, 0 outside all polygons."""
        stamp = self.stamp(path)
        try:
            if (image := self._image_of(path)) is None:
                folder = self._folders()[0]
                msg = f"has no image to take its size from; put the images into {folder}"
                raise ValueError(msg)
            size = image_size(image)
            lines = _lines(Path(path)) if Path(path).is_file() else ()
            areas = [_polygon(line, size) for line in lines]
        except ValueError as error:
            raise MaskError(path, str(error).removeprefix(f"{path}: ")) from error
        # Larger ones first; those of one size in their order.
        areas.sort(key=lambda polygon: -np.count_nonzero(polygon[1]))
        names = {"": 0}
        mask = np.zeros(size, np.int32)
        for name, area in areas:
            mask[area] = names.setdefault(name, len(names))
        drawn = "OpenCV" if areas else ""
        return RawMask(mask, "yolo", "YOLO", names=tuple(names), drawn=drawn), stamp


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def _polygon(line: str, size: tuple[int, int]) -> tuple[str, NDArray[np.bool_]]:
    """Class number and area of a line of a file."""
    if not _POLYGON.fullmatch(line):
        is_box = len(line.split()) in (5, 6)
        what = "a box, which has no mask" if is_box else "no polygon"
        msg = f"has {what}: {line!r:.60}; expected a class and at least three corners"
        raise ValueError(msg)
    number, *corners = line.split()
    # An odd number of coordinates ends with the confidence of a prediction.
    pairs = np.array(corners[: len(corners) // 2 * 2], np.float32).reshape(-1, 2)
    # In float32 and truncated, as in Ultralytics.
    points = check_corners(pairs * np.array(size[::-1], np.float32), size, 3)
    return str(int(number)), filled(points.astype(np.int32).astype(np.int64), size)
