"""Masks as files, and the run of two folders of them: what many tests begin with."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

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
