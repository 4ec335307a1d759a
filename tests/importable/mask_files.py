"""Masks as files, and the run of two folders of them: what many tests begin with."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
from PIL import Image

import segiou


def png(values: Any) -> bytes:
    """A mask as the content of a PNG file."""
    out = io.BytesIO()
    Image.fromarray(np.asarray(values, dtype=np.uint8)).save(out, "PNG")
    return out.getvalue()


def write_mask(path: Path, values: Any, *, when: int | None = None) -> None:
    """Write a mask, and the folders above it; ``when`` is its time of change, in ns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(values))
    if when is not None:
        os.utime(path, ns=(when, when))


def write_pairs(root: Path, truths: Any, preds: Any) -> Path:
    """Write masks into ``truth`` and ``pred``: mappings by name, or sequences, named 0, 1, …"""
    write_masks(root / "truth", truths)
    write_masks(root / "pred", preds)
    return root


def write_masks(folder: Path, masks: Any) -> None:
    """Write masks, or images, into one folder."""
    named: Iterable[Any] = masks.items() if isinstance(masks, Mapping) else enumerate(masks)
    for name, values in named:
        write_mask(folder / f"{name}.png", values)


def score_pairs(root: Path, **options: Any) -> segiou.Run:
    """Score the folders that :func:`write_pairs` has written."""
    return segiou.score_folder(root / "truth", root / "pred", **options)


def required(name: str, variable: str = "SEGIOU_REQUIRE_PEERS") -> Any:
    """Import an optional package, or skip the test; with the variable at 1, or fail."""
    if os.environ.get(variable) == "1":
        return import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed")


def part_of(package: str, module: str, variable: str, *absent: str, **given: Any) -> Any:
    """One module of an installed package whose others need much more: these are stood in for.

    What the module imports of ``absent`` is there, and useless; ``given`` has what it needs of
    the package itself, by the name of the module with ``__`` for a dot.
    """
    if (spec := find_spec(package)) is None or spec.submodule_search_locations is None:
        assert os.environ.get(variable) != "1", f"{package} is not installed"
        pytest.skip(f"{package} is not installed")
    faces = {}
    for parent in (package, module.rpartition(".")[0]):
        faces[parent] = ModuleType(parent)
        folder = parent.removeprefix(package).replace(".", "/").strip("/")
        faces[parent].__path__ = [str(Path(spec.submodule_search_locations[0]) / folder)]
    faces[package].__getattr__ = lambda name: MagicMock()  # type: ignore[attr-defined]
    others = {name: MagicMock() for name in absent}
    needed = {name.replace("__", "."): value for name, value in given.items()}
    with patch.dict(sys.modules, {**faces, **others, **needed}):
        return import_module(module)
