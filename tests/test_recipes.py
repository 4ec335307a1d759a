"""Shell and Python recipes of the guides run as printed, each page in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from deletable import deleted_in
from mask_files import write_masks
from PIL import Image

import segiou
from segiou.cli.main import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: docs/formats.md, docs/hooks.md and docs/howto/trackers.md have tests of their own.
PAGES = [*sorted(DOCS.glob("howto/*.md")), *sorted(DOCS.glob("start/*.md")), DOCS / "runs.md"]
PAGES += [DOCS / "volumes.md"]


def recipes(page: Path) -> list[tuple[str, str]]:
    """Blocks that call segiou from a shell, and Python blocks that name what they need."""
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    if page.name == "trackers.md":
        return []
    return [
        (language, text)
        for language, text in blocks
        if text.startswith("segiou " if language == "sh" else "# needs: ")
    ]


def write_data_sets(folder, rng):
    """Folders and metadata like those of BDD100K, and of BIDS with two scans per participant."""
    for names, truth, pred in (
        ([f"{i:04}" for i in range(12)], "labels/sem_seg/masks/val", "bdd-predictions"),
        (
            [f"sub-{i // 2}_run-{i % 2}" for i in range(12)],
            "derivatives/labels",
            "spine-predictions",
        ),
    ):
        masks = {name: rng.integers(0, 3, (30, 40), dtype=np.uint8) for name in names}
        write_masks(folder / truth, masks)
        write_masks(folder / pred, {k: np.roll(m, 1, 0) for k, m in masks.items()})
    frames = [
        {"name": f"{i:04}.jpg", "attributes": {"weather": ("clear", "rainy")[i % 2]}}
        for i in range(12)
    ]
    (folder / "bdd100k_labels_images_val.json").write_text(json.dumps(frames), encoding="utf-8")
    rows = [f"sub-{i}\t{'FM'[i % 2]}\t{30 + i}" for i in range(6)]
    table = "\n".join(["participant_id\tsex\tage", *rows])
    (folder / "participants.tsv").write_text(table, encoding="utf-8")


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Masks of CamVid's classes, a run of the main branch, the fixtures and the command."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = {f"{i:04}": rng.integers(0, 11, (30, 40), dtype=np.uint8) for i in range(12)}
    pred = {k: np.where(rng.random(m.shape) < 0.05, 0, m) for k, m in truth.items()}
    write_masks(tmp_path / "truth", truth)
    write_masks(tmp_path / "predictions", pred)
    for model in ("unet", "fcn", "segformer"):
        write_masks(tmp_path / model, {k: np.roll(m, len(model), 0) for k, m in pred.items()})
    (tmp_path / "images").mkdir()
    for id in truth:
        Image.new("RGB", (40, 30)).save(tmp_path / "images" / f"{id}.jpg")
    rows = [f"{id},{'day' if i % 2 else 'night'}" for i, id in enumerate(truth)]
    (tmp_path / "meta.csv").write_text("\n".join(["id,weather", *rows]), encoding="utf-8")
    write_data_sets(tmp_path, rng)
    scored = ["score", "truth", "predictions", "--labels", "camvid", "--quiet"]
    assert main([*scored, "--run", "main.sqlite", "--output", "main.txt"]) == 0
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    command = tmp_path / "bin" / "segiou"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m segiou "$@"\n')
    command.chmod(0o755)
    paths = {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    return os.environ | paths | {"PYTHONPATH": str(Path(segiou.__file__).parents[1])}


@pytest.mark.gate
@pytest.mark.parametrize("page", [page for page in PAGES if recipes(page)], ids=lambda p: p.stem)
def test_recipes_run_as_printed(page, workplace):
    for language, text in recipes(page):
        if deleted_in(text):
            continue
        first = text.splitlines()[0].removeprefix("# needs: ")
        needed = first.split(", ") if language == "python" else []
        needed += ["nibabel"] if "fixtures/volumes" in text else []
        if not all(find_spec(name) for name in needed):
            assert os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1"
            continue
        if language == "python":
            Path("recipe.py").write_text(text, encoding="utf-8")
            words = [sys.executable, "recipe.py"]
        else:
            words = ["bash", "-eo", "pipefail", "-c", text]
        done = subprocess.run(words, env=workplace, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, text + done.stderr


def test_there_are_recipes_to_run():
    assert sum(len(recipes(page)) for page in PAGES) >= 8
