"""Two measures of other packages, installed beside segiou, and folders to score with them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

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
