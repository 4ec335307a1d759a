"""``segiou demo``: synthetic street scenes, scored for two models."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from dataclasses import dataclass
from importlib import resources
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from segiou._support.arguments import check_integer
from segiou._support.files import write_whole
from segiou._support.text import wrapped
from segiou.cli.console import harmless, stdout_width, wants_color, write
from segiou.scoring.folder import score_folder


def command(parsed: argparse.Namespace) -> int:
    """Write the scenes, score both models, and show the commands."""
    folders = write_demo(parsed.dir)
    truth, model_a, model_b = folders.truth, folders.model_a, folders.model_b
    labels = ("--labels", folders.labels)
    about = "Wrote synthetic street scenes and two models' predictions to"
    write(f"{wrapped(f'{about} {harmless(parsed.dir)}/', stdout_width())}\n")
    for pred in (model_a, model_b):
        write("\n")
        _show_command("score", truth, pred, *labels)
        report = score_folder(truth, pred, labels=folders.labels).report()
        write(f"\n{report.to_text(width=stdout_width(), color=wants_color())}")
    lesson = (
        "Pixel accuracy favours model_a and mean IoU favours model_b: model_a never finds the "
        "rare, thin classes, whose pixels are too few to affect accuracy. Next, try:"
    )
    write(f"\n{wrapped(lesson, stdout_width())}\n\n")
    page = ("--html", "report.html", "--images", folders.images)
    _show_command("explain", truth, model_a, *labels)
    _show_command("compare", model_a, model_b, "--truth", truth, *labels)
    _show_command("score", truth, model_b, *labels, "--intervals", *page)
    return 0


def _show_command(*words: str | Path) -> None:
    write(harmless(f"$ {shlex.join(['segiou', *map(str, words)])}\n"))


_SCENES = resources.files("segiou.demo").joinpath("demo.zip").read_bytes()
#: The label set; its first line identifies an earlier demo.
_LABELS = resources.files("segiou.demo").joinpath("streets.toml").read_bytes()
_OUR_NAME = re.compile(r"(north|south)_\d{4}\.(png|jpg)")


@dataclass(frozen=True)
class DemoFolders:
    """Paths of a demo data set: PNG masks in palette mode, JPEG images, and a label set.

    Attributes
    ----------
    truth : Path
        Folder of the truth.
    model_a, model_b : Path
        Folders of the predictions. Those of the first are smooth and miss rare classes, which
        the second finds.
    images : Path
        Folder of the images.
    labels : Path
        File of the label set.
    """

    truth: Path
    model_a: Path
    model_b: Path
    images: Path
    labels: Path


def write_demo(directory: str | os.PathLike[str], *, scenes: int = 12) -> DemoFolders:
    """Write a small data set of street scenes, drawn by ``fixtures/demo_scenes.py``.

    Parameters
    ----------
    directory : path-like
        A new or empty folder, or one of an earlier demo, which is replaced.
    scenes : int
        Number of images, 1 to 12.

    Returns
    -------
    DemoFolders
        Paths of the folders and of the label set.

    Raises
    ------
    FileExistsError
        If ``directory`` is a file, or a folder with other content.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     folders = write_demo(directory, scenes=2)
    ...     sorted(path.name for path in folders.truth.iterdir())
    ['north_0001.png', 'south_0001.png']
    """
    each = (check_integer("scenes", scenes, 1, 12) + 1) // 2
    folders = _prepare(Path(directory))
    with ZipFile(BytesIO(_SCENES)) as archive:
        for name in archive.namelist():
            drive, number = re.findall("(north|south)_(\\d+)", name)[0]
            if int(number) <= (each if drive == "north" else scenes - each):
                write_whole(Path(directory) / name, archive.read(name))
    return folders


def _prepare(directory: Path) -> DemoFolders:
    """Create the folders and remove earlier scenes."""
    if directory.exists() and not directory.is_dir():
        msg = f"{directory} is a file; choose a new or empty folder"
        raise FileExistsError(msg)
    folders = DemoFolders(
        *(directory / name for name in ("truth", "model_a", "model_b", "images", "labels.toml"))
    )
    labels = folders.labels
    is_demo = labels.is_file() and labels.read_bytes().startswith(_LABELS.splitlines()[0])
    if not is_demo and directory.is_dir() and any(directory.iterdir()):
        msg = (
            f"{directory} is not empty and was not created by segiou demo; choose a new or empty "
            "folder"
        )
        raise FileExistsError(msg)
    directory.mkdir(parents=True, exist_ok=True)
    # Written first, so that an interrupted demo is recognised and can be rewritten.
    write_whole(labels, _LABELS)
    for folder in (folders.truth, folders.model_a, folders.model_b, folders.images):
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if _OUR_NAME.fullmatch(path.name):
                path.unlink()
    return folders
