"""Masks for several kinds of scores; and two measures of other packages, with folders for them."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from segiou._support import optional
from segiou.cli.main import main

PLUGINS = {"midline": "segiou_midline:CentrelineDice", "offsets": "segiou_offsets:Offsets"}


def write_entry_points(folder):
    """What an installer writes for packages whose modules can be imported already."""
    for key, target in PLUGINS.items():
        name = target.partition(":")[0]
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[segiou.measures]\n{key} = {target}\n")


@pytest.fixture
def plugins(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("site")
    write_entry_points(folder)
    monkeypatch.syspath_prepend(str(folder))
    optional._entries.cache_clear()
    yield folder
    optional._entries.cache_clear()
    for key in PLUGINS.values():
        sys.modules.pop(key.partition(":")[0], None)


def scene(shift, bar=True):
    """A road below a bar; the prediction of the bar is shifted down."""
    found = np.zeros((12, 16), np.uint8)
    found[8:] = 1
    if bar:
        found[2 + shift : 4 + shift, 2:14] = 2
    return found


@pytest.fixture
def folders(tmp_path):
    """Four images: the bar is 1 and 2 pixels off, exact, and missed."""
    for side in ("truth", "good", "bad"):
        (tmp_path / side).mkdir()
    for name, shift, bar in (("a", 1, True), ("b", 2, True), ("c", 0, True), ("d", 0, False)):
        Image.fromarray(scene(0)).save(tmp_path / "truth" / f"{name}.png")
        Image.fromarray(scene(shift, bar)).save(tmp_path / "good" / f"{name}.png")
        Image.fromarray(scene(shift + 2, bar)).save(tmp_path / "bad" / f"{name}.png")
    (tmp_path / "set.toml").write_text(
        'name = "set"\n[[classes]]\nname = "sky"\nvalues = [0]\n[[classes]]\nname = "road"\n'
        'values = [1]\n[[classes]]\nname = "bar"\nvalues = [2]\n'
    )
    return tmp_path


@pytest.fixture
def command(folders, capsys):
    """Run the command on the folders; gives the exit code, what it wrote and what it noted."""

    def run(*arguments):
        code = main([str(a) for a in arguments])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


CAMVID = Path(__file__).parents[3] / "shared" / "data" / "camvid"


def blobs(seed, shape=(40, 50), num_classes=3, smooth=3.0):
    """A random label map of a few smooth regions."""
    return _blobs(seed, shape, num_classes, smooth).copy()


@cache
def _blobs(seed, shape, num_classes, smooth):
    rng = np.random.default_rng(seed)
    fields = [ndimage.gaussian_filter(rng.normal(size=shape), smooth) for _ in range(num_classes)]
    return np.argmax(fields, axis=0).astype(np.uint8)


def pair_of_blobs(seed, **kwargs):
    """A label map, and one much like it."""
    truth = blobs(seed, **kwargs)
    pred = np.roll(truth, (1, -2), (0, 1))
    noise = np.random.default_rng(seed + 1000).random(truth.shape) < 0.02
    return truth, np.where(noise, blobs(seed + 1, **kwargs), pred).astype(np.uint8)


def square(shape=(20, 20), top=5, left=5, size=8):
    """A square of class 1 in class 0."""
    mask = np.zeros(shape, dtype=np.uint8)
    mask[top : top + size, left : left + size] = 1
    return mask


def camvid_pairs(every):
    """Real truth and predictions, void among them."""
    if not CAMVID.is_dir():
        pytest.skip(f"no CamVid masks at {CAMVID}")
    paths = sorted((CAMVID / "truth").glob("*.png"))[::every]
    return [
        (np.array(Image.open(p)), np.array(Image.open(CAMVID / "base" / p.name))) for p in paths
    ]


@pytest.fixture(scope="session")
def masks():
    """The functions above, for test modules, which do not import each other."""
    return SimpleNamespace(
        blobs=blobs, pair_of_blobs=pair_of_blobs, square=square, camvid_pairs=camvid_pairs
    )
