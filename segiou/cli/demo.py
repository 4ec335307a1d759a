"""``segiou demo``: street scenes, the predictions of two models, and what to do with them."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from segiou._support.arguments import check_integer
from segiou._support.text import wrapped
from segiou.cli.console import harmless, stdout_width, wants_color, write
from segiou.cli.demo_scenes import (
    BICYCLE,
    BUILDING,
    CAR,
    COMMON,
    PAVEMENT,
    PERSON,
    POLE,
    RARE,
    ROAD,
    SIGN,
    SKY,
    TREE,
    VOID,
    box_sum,
    draw_scene,
    smooth_noise,
)
from segiou.labels.label_set import load_labels
from segiou.scoring.folder import score_folder

Mask = npt.NDArray[np.uint8]


def demo(parsed: argparse.Namespace) -> int:
    """Write the scenes, score both models, show the commands."""
    folders = write_demo(parsed.dir)
    truth, model_a, model_b = folders.truth, folders.model_a, folders.model_b
    labels = ("--labels", folders.labels)
    folder = harmless(parsed.dir, color=False)
    write(f"Drawn street scenes and two models' predictions are in {folder}/\n")
    for pred in (model_a, model_b):
        write("\n")
        _show_command("score", truth, pred, *labels)
        report = score_folder(truth, pred, labels=folders.labels).report()
        write(f"\n{report.to_text(width=stdout_width(), color=wants_color())}")
    lesson = (
        "Pixel accuracy prefers one model and mean IoU the other: the first never finds the "
        "rare thin classes, which are too few pixels for accuracy to notice. Continue with"
    )
    write(f"\n{wrapped(lesson, stdout_width())}\n\n")
    page = ("--html", "report.html", "--images", folders.images)
    _show_command("explain", truth, model_a, *labels)
    _show_command("compare", model_a, model_b, "--truth", truth, *labels)
    _show_command("score", truth, model_b, *labels, "--intervals", *page)
    return 0


def _show_command(*words: str | Path) -> None:
    write(harmless(f"$ {shlex.join(['segiou', *map(str, words)])}\n", color=False))


_DRIVES = ("north", "south")
#: The label set; an earlier demo is known by its first line.
_LABELS = resources.files("segiou.cli").joinpath("streets.toml").read_bytes()
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
        Folder of the images: JPEG files of the same stems.
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
    scenes, seed = check_integer("scenes", scenes, 1, 9999), check_integer("seed", seed, 0)
    folders = _prepare(Path(directory))
    palette = [part for c in load_labels(folders.labels).classes for part in c.colors[0]]
    for index, (drive, stem) in enumerate(_names(scenes)):
        rng = np.random.default_rng([seed, index])
        image, truth = draw_scene(rng, dusk=drive == 1, crowded=stem.endswith("0001"))
        _save_mask(folders.truth, stem, truth, palette)
        _save_mask(folders.model_a, stem, _predict_smooth(truth, rng), palette)
        _save_mask(folders.model_b, stem, _predict_detailed(truth, rng), palette)
        Image.fromarray(image).save(folders.images / f"{stem}.jpg", quality=88)
    return folders


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
    folders.labels.write_bytes(_LABELS)
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
        return file.readline().rstrip() == _LABELS.decode().partition("\n")[0]


def _save_mask(folder: Path, stem: str, labels: Mask, palette: list[int]) -> None:
    image = Image.fromarray(labels)
    # Black where there is no class.
    image.putpalette(bytes(palette).ljust(3 * 256, b"\0"))
    image.save(folder / f"{stem}.png", optimize=True)


def _predict_smooth(truth: Mask, rng: np.random.Generator) -> Mask:
    """Predict as a model that paints broad areas well and never a rare class."""
    pred = _absorb(truth, (*RARE, VOID))
    pred = _wander(pred, rng, cell=20, reach=1)
    for source, target, percent in ((TREE, BUILDING, 5), (PAVEMENT, ROAD, 3), (CAR, ROAD, 4)):
        pred = _confuse(pred, rng, source, target, percent, cell=20)
    return _majority(pred, radius=2)[0]


def _predict_detailed(truth: Mask, rng: np.random.Generator) -> Mask:
    """Predict as a model that finds the rare classes, too large, and frays at the borders."""
    pred = _absorb(truth, (*RARE, VOID))
    confusions = (
        (BUILDING, TREE, 5),
        (TREE, BUILDING, 8),
        (ROAD, PAVEMENT, 2),
        (PAVEMENT, ROAD, 8),
        (SKY, BUILDING, 1),
        (CAR, ROAD, 6),
    )
    for source, target, percent in confusions:
        pred = _confuse(pred, rng, source, target, percent, cell=16)
    pred = _wander(pred, rng, cell=8, reach=4)
    _invent(pred, rng)
    for value in (POLE, SIGN, BICYCLE, PERSON):
        found = (truth == value) & (smooth_noise(rng, truth.shape, 24) > -350)
        grown = box_sum(found, 1) > (smooth_noise(rng, truth.shape, 6) > 120)
        pred[grown] = value
    return _wander(pred, rng, cell=12, reach=1)


def _absorb(labels: Mask, values: Sequence[int]) -> Mask:
    """Give the pixels of `values` to whichever common class surrounds them most."""
    result = labels.copy()
    open_pixels = np.isin(labels, values)
    radius = 3
    while open_pixels.any():
        winners, found = _majority(result, radius)
        decided = open_pixels & found
        result[decided] = winners[decided]
        open_pixels &= ~decided
        radius *= 2
    return result


def _majority(labels: Mask, radius: int) -> tuple[Mask, npt.NDArray[np.bool_]]:
    """The most frequent common class around each pixel, and whether there is one."""
    votes = np.stack([box_sum(labels == value, radius) for value in COMMON])
    winners: Mask = np.array(COMMON, np.uint8)[votes.argmax(axis=0)]
    return winners, votes.max(axis=0) > 0


def _wander(labels: Mask, rng: np.random.Generator, cell: int, reach: int) -> Mask:
    """Shift every pixel by a smooth field of typically under `reach` pixels."""
    height, width = labels.shape
    down, across = ((smooth_noise(rng, labels.shape, cell) * reach + 256) // 512 for _ in range(2))
    rows = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    columns = np.clip(np.arange(width) + across, 0, width - 1)
    shifted: Mask = labels[rows, columns]
    return shifted


def _confuse(
    labels: Mask, rng: np.random.Generator, source: int, target: int, percent: int, cell: int
) -> Mask:
    """Turn blobs, about `percent` of the source class, into the target: most where it is near."""
    nearness = box_sum(labels == target, cell) * 1500 // (2 * cell + 1) ** 2
    field = smooth_noise(rng, labels.shape, cell) + nearness
    candidates = np.sort(field[labels == source])
    if not candidates.size:
        return labels
    cut = candidates[len(candidates) * (100 - percent) // 100]
    return np.where((labels == source) & (field >= cut), np.uint8(target), labels)


def _invent(labels: Mask, rng: np.random.Generator) -> None:
    """Add a few poles, signs, people and bicycles where there are none."""
    height, width = labels.shape
    middle = height // 2
    shapes = (
        (POLE, 3, 40, 1),
        (POLE, 3, 26, 2),
        (SIGN, 7, 7, 1),
        (PERSON, 5, 16, 2),
        (BICYCLE, 12, 8, 1),
    )
    for value, across, down, most in shapes:
        for _ in range(int(rng.integers(0, most + 1))):
            column = int(rng.integers(8, width - 8 - across))
            row = middle - down + int(rng.integers(-6, 18))
            labels[row : row + down, column : column + across] = value
