"""Paths of inputs and outputs: what can be written, and would overwrite nothing."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from segiou._support.files import is_device
from segiou._support.optional import import_extra
from segiou._support.table_files import table_place
from segiou._support.text import listed
from segiou.cli.console import note
from segiou.cli.options import option_of

_FOLDERS = ("plots", "errors", "consensus")
_OUTPUTS = (
    *("output", "propose", "html", "panel", "per_image", "per_case", "junit", "problems", "run"),
    *_FOLDERS,
)
_SQLITE = b"SQLite format 3\0"
_FIGURES = [".pdf", ".png", ".svg"]
_MASKS = ("truth", "pred", "roi", "images", "dir", "rater", "model", "path")
_INPUTS = (
    *_MASKS,
    *("ids", "pairs", "labels", "pred_labels", "group_by", "slices", "source"),
    *("run_file", "baseline", "sample", "areas"),
)


def check_paths(parsed: argparse.Namespace) -> None:
    """ValueError for outputs that cannot be written or would overwrite an input."""
    if getattr(parsed, "run", None):
        from segiou.runs.database import check_local

        check_local(parsed.run)
    taken = {os.path.realpath(path): str(path) for path in _input_paths(parsed)}
    for name in _OUTPUTS:
        if (text := getattr(parsed, name, None)) is not None:
            _check_overwriting(name, text, taken, parsed)
    images = getattr(parsed, "images", None)
    if images is not None and not Path(images).expanduser().is_dir():
        msg = f"--images {images}: not a folder"
        raise ValueError(msg)


def _check_overwriting(
    name: str, text: str, taken: dict[str, str], parsed: argparse.Namespace
) -> None:
    """ValueError for an output that cannot be written, or has the place of another file."""
    what = f"{option_of(name)} {text}"
    _check_output(name, what, text)
    full, is_folder = os.path.realpath(Path(text).expanduser()), _is_folder(name, text)
    lost = taken.get(full, "") if is_folder else _overwritten(full, taken)
    is_free = is_device(full) or (is_folder and Path(full).is_dir())
    if not (lost or is_free or name == "run" or parsed.name_of_command == "merge"):
        lost = "a run file" if is_run_file(full) else ""
    if lost and not is_free:
        msg = f"{what}: would overwrite {lost}; choose a different path"
        raise ValueError(msg)
    if not is_folder:
        taken[full] = f"what {option_of(name)} writes"
        return
    _check_output_folder(what, full, parsed)
    if name == "html":
        from segiou._support.output_folder import OutputFolder

        OutputFolder(text, overwrite=parsed.overwrite).checked("index.html")


def is_run_file(path: str | Path) -> bool:
    """Whether a path is an SQLite file, which may be a run file."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _is_folder(name: str, text: str) -> bool:
    """Whether an output is a folder, which outputs may share."""
    return name in _FOLDERS or (name == "html" and text.endswith("/"))


def _check_output_folder(what: str, full: str, parsed: argparse.Namespace) -> None:
    """ValueError for a folder among the inputs: the next run would read what is written there."""
    inputs = {os.path.realpath(path): str(path) for path in _input_paths(parsed) if path.is_dir()}
    around = [inputs[str(p)] for p in (Path(full), *Path(full).parents) if str(p) in inputs]
    for text in (text for name in _MASKS for text in _texts(parsed, name)):
        for pattern in (text, text.partition("=")[2]):
            places = (full, f"{full}/1.png")
            if "*" in pattern and any(fnmatch(p, os.path.realpath(pattern)) for p in places):
                around.append(pattern)
    if around:
        msg = (
            f"{what}: is in the input {around[0]}, so the next run would read its files as masks; "
            "choose a folder outside"
        )
        raise ValueError(msg)


def note_written(parsed: argparse.Namespace) -> None:
    """Report on stderr which files were written."""
    paths = (getattr(parsed, name, None) for name in _OUTPUTS)
    written = [
        f"{path}index.html" if path.endswith("/") else str(path)
        for path in paths
        if path and not is_device(path)
    ]
    if written and not parsed.quiet:
        note(f"wrote {listed(written, len(written))}")


def _overwritten(full: str, taken: Mapping[str, str]) -> str:
    """The input, output or mask of an input folder that writing to a path would overwrite."""
    from segiou.masks.finding import is_mask

    path = Path(full)
    if full in taken:
        return f"files of {taken[full]}" if path.is_dir() else taken[full]
    inside = next((taken[str(parent)] for parent in path.parents if str(parent) in taken), None)
    return f"a mask of {inside}" if inside and path.is_file() and is_mask(path.name) else ""


def _input_paths(parsed: argparse.Namespace) -> Iterator[Path]:
    """Files and folders that the command reads, also as FILE:COLUMN and NAME=PATH,PATH."""
    for name in _INPUTS:
        for text in _texts(parsed, name):
            table = table_place(text)
            several = (text, *text.partition("=")[2].split(","), str(table[0]) if table else "")
            paths = (Path(place).expanduser() for place in several if place)
            yield from (path for path in paths if path.exists())


def _texts(parsed: argparse.Namespace, name: str) -> list[str]:
    """The texts of an argument, which may be a list."""
    argument = getattr(parsed, name, None)
    every = argument if isinstance(argument, list) else [argument]
    return [text for text in every if isinstance(text, str)]


def _check_output(name: str, what: str, text: str) -> None:
    path = Path(text).expanduser()
    if name in ("plots", "panel"):
        import_extra("matplotlib", f"{option_of(name)} needs matplotlib", "plot")
    if name == "panel" and path.suffix.lower() not in _FIGURES:
        msg = f"{what}: unknown extension; use {listed(_FIGURES, last=' or ')}"
        raise ValueError(msg)
    if _is_folder(name, text):
        if path.exists() and not path.is_dir():
            msg = f"{what}: expected a folder, got a file"
            raise ValueError(msg)
        _check_folder(what, next(p for p in (path, *path.absolute().parents) if p.exists()))
    elif path.is_dir():
        msg = f"{what}: expected a file, got a folder"
        raise ValueError(msg)
    elif not is_device(path):
        _check_folder(what, Path(os.path.realpath(path)).parent)


def _check_folder(what: str, folder: Path) -> None:
    """ValueError unless a file can be created in a folder."""
    if not folder.is_dir():
        is_what = "is a file" if folder.exists() else "does not exist"
        msg = f"{what}: {folder} {is_what}; create it or choose another folder"
        raise ValueError(msg)
    try:
        # Permission bits are not enough: read-only disks may have them set.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"{what}: cannot write to {folder}: {error.strerror}; choose another folder"
        raise ValueError(msg) from error
