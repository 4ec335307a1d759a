"""A small data set of drawn street scenes: truth, two models' predictions, photographs.

Everything is drawn from a seed by this package alone, and the masks come out the same on every
machine. The scenes are made to show one thing: the model with the better pixel accuracy has the
worse mean IoU, since it never finds the thin and rare classes.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from segiou.demo.classes import MARK, labels_toml, palette
from segiou.demo.models import predict_detailed, predict_smooth
from segiou.demo.scenes import draw_scene

__all__ = ["DemoFolders", "write_demo"]

_DRIVES = ("north", "south")
_OUR_NAME = re.compile(r"(north|south)_\d{4}\.(png|jpg)")


@dataclass(frozen=True)
class DemoFolders:
    """Where the parts of a demo lie.

    Attributes
    ----------
    truth, model_a, model_b : pathlib.Path
        Folders of masks: PNG files in palette mode, whose indices are the class values.
        ``model_a`` is the tidy model that misses the rare classes, ``model_b`` the other.
    images : pathlib.Path
        Folder of the photographs: JPEG files of the same stems.
    labels : pathlib.Path
        The label set, a TOML file.
    """

    truth: Path
    model_a: Path
    model_b: Path
    images: Path
    labels: Path


def write_demo(
    directory: str | os.PathLike[str], *, scenes: int = 12, seed: int = 0
) -> DemoFolders:
    """Write a small data set of drawn street scenes.

    Parameters
    ----------
    directory : path
        Folder to write into: new, empty, or an earlier demo, whose scenes are replaced. Files that
        are not of the demo stay where they are.
    scenes : int, default 12
        How many scenes, 320 × 192 pixels each. The first half is ``north_0001`` and so on, by day;
        the second ``south_0001`` and so on, in the evening: two drives, for grouping.
    seed : int, default 0
        Seed of the drawing, at least 0. Equal seeds give equal masks on every machine.

    Returns
    -------
    DemoFolders
        The folders and the label file written.

    Raises
    ------
    TypeError
        If `scenes` or `seed` is not an integer.
    ValueError
        If `scenes` is not in 1 to 9999, or `seed` is negative.
    FileExistsError
        If `directory` is a file, or holds anything but an earlier demo.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     folders = write_demo(directory, scenes=2)
    ...     sorted(path.name for path in folders.truth.iterdir())
    ['north_0001.png', 'south_0001.png']
    """
    scenes, seed = _integer("scenes", scenes), _integer("seed", seed)
    if not 1 <= scenes <= 9999:
        msg = f"scenes must be 1 to 9999, not {scenes}"
        raise ValueError(msg)
    if seed < 0:
        msg = f"seed must be at least 0, not {seed}"
        raise ValueError(msg)
    folders = _prepare(Path(directory))
    for index, (drive, stem) in enumerate(_names(scenes)):
        rng = np.random.default_rng([seed, index])
        scene = draw_scene(rng, dusk=drive == 1, crowded=stem.endswith("0001"))
        _save_mask(folders.truth, stem, scene.truth)
        _save_mask(folders.model_a, stem, predict_smooth(scene.truth, rng))
        _save_mask(folders.model_b, stem, predict_detailed(scene.truth, rng))
        Image.fromarray(scene.photograph).save(folders.images / f"{stem}.jpg", quality=88)
    return folders


def _integer(name: str, value: int) -> int:
    try:
        return operator.index(value)
    except TypeError:
        msg = f"{name} must be an integer, not {value!r}"
        raise TypeError(msg) from None


def _names(scenes: int) -> Iterator[tuple[int, str]]:
    """Yield the drive and the file stem of each scene."""
    for drive, count in enumerate(((scenes + 1) // 2, scenes // 2)):
        for number in range(1, count + 1):
            yield drive, f"{_DRIVES[drive]}_{number:04d}"


def _prepare(directory: Path) -> DemoFolders:
    """Make the folders, empty of earlier scenes, or refuse."""
    if directory.exists() and not directory.is_dir():
        msg = f"{directory} is a file; name a new or empty folder for the demo"
        raise FileExistsError(msg)
    folders = DemoFolders(
        *(directory / name for name in ("truth", "model_a", "model_b", "images", "labels.toml"))
    )
    if directory.is_dir() and any(directory.iterdir()) and not _is_demo(folders.labels):
        msg = (
            f"{directory} is not empty and holds no earlier demo; "
            "name a new or empty folder for the demo"
        )
        raise FileExistsError(msg)
    directory.mkdir(parents=True, exist_ok=True)
    # First of all, so that a demo that was interrupted is known as one and can be written again.
    folders.labels.write_text(labels_toml(), encoding="utf-8", newline="\n")
    for folder in (folders.truth, folders.model_a, folders.model_b, folders.images):
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if _OUR_NAME.fullmatch(path.name):
                path.unlink()
    return folders


def _is_demo(labels: Path) -> bool:
    if not labels.is_file():
        return False
    with labels.open(encoding="utf-8", errors="replace") as file:
        return file.readline().rstrip() == MARK


def _save_mask(folder: Path, stem: str, labels: npt.NDArray[np.uint8]) -> None:
    image = Image.fromarray(labels)
    image.putpalette(palette())
    image.save(folder / f"{stem}.png", optimize=True)
