"""The photos of images: files of a folder that belong to the images of a run, by name."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from segiou._support.arguments import check_kind, check_path, read_several
from segiou._support.text import listed
from segiou.masks.finding import split_ending
from segiou.masks.raw_mask import VOLUME_SUFFIXES

_Files = dict[str, list[Path]]
_IMAGE_ENDINGS = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".jp2", ".gif")
)
_PHOTO_ENDINGS = (".jpg", ".jpeg")
#: Ending of the first channel of a scan in folders of nnU-Net.
_FIRST_CHANNEL = "_0000"


@dataclass(frozen=True, slots=True)
class ImageMatch:
    """Files of a folder that belong to the images of a run.

    Attributes
    ----------
    folder : str
    files : mapping of str to Path
        By id of the image.
    missing : tuple of str
        Ids of images that have no file, or more than one.
    others : tuple of str
        Files that belong to no image, by their path in the folder.
    """

    folder: str
    files: Mapping[str, Path]
    missing: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def no_photo(self) -> str:
        """Note for an image without a file."""
        total = len(self.files) + len(self.missing)
        return f"No photo for this image ({len(self.files)} of {total} photos were found)."

    def sentences(self, image: str = "image") -> list[str]:
        """Found and missing files, with examples; empty if no file is missing.

        Parameters
        ----------
        image : str
            What an image of the run is called.
        """
        if not self.missing:
            return []
        total = len(self.files) + len(self.missing)
        photos = [f"Found photos for {len(self.files)} of {total} {image}s in {self.folder}"]
        if self.files:
            id, path = next(iter(self.files.items()))
            photos.append(f"e.g. {path.name} for {id}")
        missing = f"{len(self.missing)} missing, e.g. {self.missing[0]}"
        others = f"; other files there: {listed(self.others, 3)}" if self.others else ""
        return [
            f"{', '.join(photos)}; {missing}{others}.",
            f"Photos are matched by name: a_1.jpg and a_1_left.png both match {image} a_1.",
        ]


def match_images(folder: str | Path, ids: Iterable[str]) -> ImageMatch:
    """Find the files that belong to the images of a run, by name.

    A file matches an id if its path in the folder, without extension, is the id;
    or if it is the only file of that name in any folder; or the only one whose
    name is the id followed by a character that is not alphanumeric. Of several, the only JPEG
    matches, because the others may be masks.

    Parameters
    ----------
    folder : str or path
        Searched with its subfolders.
    ids : iterable of str
        Ids as in :attr:`segiou.Run.ids`.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    """
    return _match(folder, ids, _IMAGE_ENDINGS)


def match_photos(folder: str | Path, ids: Iterable[str]) -> ImageMatch:
    """As :func:`match_images`, with the scans of volumes."""
    return _match(folder, ids, _IMAGE_ENDINGS.union(VOLUME_SUFFIXES))


def _match(folder: str | Path, ids: Iterable[str], endings: frozenset[str]) -> ImageMatch:
    check_path("images", folder)
    root = Path(folder).expanduser()
    if not root.is_dir():
        msg = f"{root} is not a folder. Pass the folder of the images"
        raise FileNotFoundError(msg)
    files = sorted(p for p in root.rglob("*") if split_ending(p.name)[1].lower() in endings)
    by_key, by_name, by_beginning = _index_files(files, root)
    photos, missing = {}, []
    for id in read_several("ids", ids, "a sequence of ids"):
        check_kind("an id", id, str, "text")
        name = id.rpartition("/")[2]
        candidates = by_key.get(id) or by_name.get(name) or by_beginning.get(name) or []
        if len(candidates) > 1:  # a photo beside the mask of its name
            photos_of = [p for p in candidates if p.suffix.lower() in _PHOTO_ENDINGS]
            channels = [p for p in candidates if _stem(p) == f"{name}{_FIRST_CHANNEL}"]
            candidates = photos_of or channels or candidates
        if len(candidates) == 1:
            photos[id] = candidates[0]
        else:
            missing.append(id)
    used = set(photos.values())
    others = (path.relative_to(root).as_posix() for path in files if path not in used)
    return ImageMatch(str(folder), photos, tuple(missing), tuple(others))


def found_photos(folder: str | Path | None, ids: Sequence[str]) -> Mapping[str, Path]:
    """The photos of images, or scans, by id; a UserWarning if a folder has none of them."""
    if folder is None:
        return {}
    match = match_photos(folder, ids)
    if ids and not match.files:
        warnings.warn(" ".join(match.sentences()), UserWarning, stacklevel=3)
    return match.files


def _index_files(files: Iterable[Path], root: Path) -> tuple[_Files, _Files, _Files]:
    """Files by their path without extension, by their name, and by each beginning of the name."""
    by_key: _Files = defaultdict(list)
    by_name: _Files = defaultdict(list)
    by_beginning: _Files = defaultdict(list)
    for path in files:
        stem = _stem(path)
        by_key[path.relative_to(root).with_name(stem).as_posix()].append(path)
        by_name[stem].append(path)
        for end in (i for i, letter in enumerate(stem) if not letter.isalnum()):
            by_beginning[stem[:end]].append(path)
    return by_key, by_name, by_beginning


def _stem(path: Path) -> str:
    """The name without extension, of which ``.nii.gz`` is one."""
    return split_ending(path.name)[0]
