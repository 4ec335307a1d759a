"""Where a command is to write, looked at before any work is done."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from segiou._files import is_device
from segiou.cli.options import option_of

__all__ = ["check_paths"]

_FILES = ("output", "html", "per_image", "problems", "run")
_INPUTS = (
    "truth",
    "pred",
    "labels",
    "pred_labels",
    "run_file",
    "runs",
    "models",
    "paths",
)


def check_paths(parsed: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or would destroy something.

    Raises
    ------
    ImportError
        If plots are wanted and cannot be drawn.
    ValueError
        Naming the option and what is wrong with it.
    """
    taken = {os.path.realpath(path): path for path in _input_files(parsed)}
    for name in _FILES:
        text = getattr(parsed, name, None)
        if text is None:
            continue
        option = option_of(name)
        _check_file(option, text)
        full = os.path.realpath(Path(text).expanduser())
        if is_device(full):
            continue
        if full in taken:
            msg = f"{option} {text}: would be written over {taken[full]}; choose another name"
            raise ValueError(msg)
        taken[full] = f"what {option} writes"
    if getattr(parsed, "plots", None) is not None:
        _check_plots(parsed.plots)
    if (
        getattr(parsed, "images", None) is not None
        and not Path(parsed.images).expanduser().is_dir()
    ):
        msg = f"--images {parsed.images}: is no folder; name the folder that holds the photographs"
        raise ValueError(msg)


def _input_files(parsed: argparse.Namespace) -> Iterator[str]:
    for name in _INPUTS:
        given = getattr(parsed, name, None)
        for path in given if isinstance(given, list) else [given]:
            if path is not None and Path(path).expanduser().is_file():
                yield str(Path(path).expanduser())


def _check_file(option: str, text: str) -> None:
    path = Path(text).expanduser()
    if path.is_dir():
        msg = f"{option} {text}: is a folder; name a file to write"
        raise ValueError(msg)
    if not is_device(path):
        _check_folder(f"{option} {text}", Path(os.path.realpath(path)).parent)


def _check_folder(what: str, folder: Path) -> None:
    """Try whether a file can be made in a folder."""
    if not folder.is_dir():
        is_what = "is a file" if folder.exists() else "does not exist"
        msg = f"{what}: the folder {folder} {is_what}; make it, or choose another"
        raise ValueError(msg)
    try:
        # Not by asking for permissions: a read-only disk grants them, too.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"{what}: nothing can be written in {folder}: {error.strerror}"
        raise ValueError(msg) from error


def _check_plots(text: str) -> None:
    if find_spec("matplotlib") is None:
        msg = "--plots needs matplotlib: pip install 'segiou[plot]'"
        raise ImportError(msg)
    folder = Path(text).expanduser()
    if folder.exists() and not folder.is_dir():
        msg = f"--plots {text}: is a file; name a folder"
        raise ValueError(msg)
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    _check_folder(f"--plots {text}", existing)
