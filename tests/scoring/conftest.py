"""Small folders of masks."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou

PAIRS = 40


@pytest.fixture(scope="session")
def masks(tmp_path_factory) -> Path:
    """Forty pairs of masks of 6 × 8 pixels and 4 classes; not to be changed."""
    folder = tmp_path_factory.mktemp("masks")
    rng = np.random.default_rng(0)
    for side in ("truth", "pred"):
        (folder / side).mkdir()
    for i in range(PAIRS):
        truth = rng.integers(0, 4, (6, 8), dtype=np.uint8)
        Image.fromarray(truth).save(folder / "truth" / f"{i:02d}.png")
        Image.fromarray(np.roll(truth, 1, i % 2)).save(folder / "pred" / f"{i:02d}.png")
    return folder


@pytest.fixture(scope="session")
def expected(masks):
    """What they count to, in threads."""
    return segiou.score_folder(masks / "truth", masks / "pred", labels=4).total()


@pytest.fixture(scope="session")
def required():
    """Import an optional package, or skip; with SEGIOU_REQUIRE_EXTRAS=1, or fail."""

    def do(name: str):
        if os.environ.get("SEGIOU_REQUIRE_EXTRAS") == "1":
            return __import__(name)
        return pytest.importorskip(name, reason=f"{name} is not installed")

    return do


@pytest.fixture(scope="session")
def packed(masks, tmp_path_factory):
    """The folders of masks as archives of every kind, some with a folder around."""
    folder = tmp_path_factory.mktemp("packed")
    for side in ("truth", "pred"):
        for kind in ("zip", "tar", "gztar", "bztar", "xztar"):
            shutil.make_archive(str(folder / side), kind, masks / side)
        shutil.make_archive(str(folder / f"{side}-around"), "zip", masks, side)
    with zipfile.ZipFile(folder / "both.zip", "w") as both:
        for path in sorted(masks.glob("*/*.png")):
            both.write(path, f"data/{path.parent.name}/{path.name}")
    return folder
