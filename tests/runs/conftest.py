"""Small folders of masks, and runs of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import mask_files
import numpy as np
import pytest

LABELS = ["void", "road", "car", "tree"]
#: Long enough ago that no clock takes it for a change of just now.
LONG_AGO = 1_600_000_000_000_000_000


@pytest.fixture
def write_mask():
    """Write a mask as a file that nobody has changed for long."""
    return partial(mask_files.write_mask, when=LONG_AGO)


@pytest.fixture
def folders(tmp_path, write_mask):
    """Twelve pairs of masks of 6 × 8 pixels, in ``truth`` and ``pred``."""
    rng = np.random.default_rng(0)
    for i in range(12):
        truth = rng.integers(0, 4, (6, 8))
        noise = np.where(rng.random((6, 8)) < 0.3, rng.integers(0, 4, (6, 8)), truth)
        write_mask(tmp_path / "truth" / f"scene{i % 3}" / f"{i:02d}.png", truth)
        write_mask(tmp_path / "pred" / f"scene{i % 3}" / f"{i:02d}.png", noise)
    return tmp_path


@pytest.fixture
def score(folders):
    """Score the folders; keyword arguments go to ``score_folder``."""

    def do(**options):
        options = {"labels": LABELS, **options}
        return mask_files.score_pairs(folders, **options)

    return do


@pytest.fixture
def reads(monkeypatch):
    """The names of the files that were read, in order."""
    from segiou.masks import LocalFolder

    names: list[str] = []
    read, read_small = LocalFolder.read, LocalFolder.read_small

    def noting(self, path):
        names.append(Path(path).name)
        return read(self, path)

    def noting_small(self, path, scratch):
        found = read_small(self, path, scratch)
        if found:
            names.append(Path(path).name)
        return found

    monkeypatch.setattr(LocalFolder, "read", noting)
    monkeypatch.setattr(LocalFolder, "read_small", noting_small)
    return names


@pytest.fixture
def in_python(monkeypatch):
    """Files are read by Python's own calls, which a test can take hold of."""

    from segiou.masks.sources import folders as sources

    monkeypatch.setattr(sources, "read_small", lambda *_: None)
