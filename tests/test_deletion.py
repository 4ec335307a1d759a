"""Kinds of scores and features whose folders were deleted: their options name what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import segiou

ROOT = Path(segiou.__file__).parent
STREETS = ROOT.parent / "fixtures" / "streets"
KINDS = ("lesions", "surfaces", "topology")

if not (ROOT.parent / "pyproject.toml").is_file():
    pytest.skip("entry points are those of the sources", allow_module_level=True)


def link(source: Path, target: Path, without: tuple[str, ...]) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name not in (*without, "__pycache__"):
            (target / path.name).symlink_to(path)


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    """Run Python on segiou without three kinds of scores and without maps."""
    folder = tmp_path_factory.mktemp("rest")
    link(ROOT, folder / "segiou", ("maps", "measures"))
    link(ROOT / "measures", folder / "segiou" / "measures", KINDS)
    project = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8").splitlines(True)
    entries = tuple(f'{kind} = "segiou.measures.' for kind in KINDS)
    lines = [line for line in project if not line.startswith(entries)]
    assert len(project) - len(lines) == len(KINDS)
    (folder / "pyproject.toml").write_text("".join(lines), encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(folder)}
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    return run


SCORE = ["score", f"{STREETS}/truth", f"{STREETS}/model_a", "--labels", f"{STREETS}/labels.toml"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([*SCORE, "--topology"], "--topology; no installed measure has this option"),
        ([*SCORE, "--lesions=brats2023-gli"], "--lesions needs the measure 'lesions', which is"),
        ([*SCORE, "--surface", "segiou"], "--surface needs the measure 'surfaces', which is not"),
        (["map-accuracy", "a.csv", "--areas", "b.csv"], "map-accuracy needs segiou.maps, which is"),
    ],
    ids=["topology", "lesions", "surface", "map-accuracy"],
)
def test_options_name_what_is_missing(rest, command, message):
    done = rest("-m", "segiou", *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_keywords_name_what_is_missing(rest):
    code = "import segiou; segiou.score([[[0]]], [[[0]]], labels=2, {}=True)"
    for keyword, key in (("surfaces", "surfaces"), ("measures=['topology'], boundary", "topology")):
        done = rest("-c", code.format(keyword))
        assert f"ValueError: unknown measure {key!r}" in done.stderr


def test_everything_else_works(rest):
    assert rest("-m", "segiou", *SCORE, "--boundary", "--objects").returncode == 0
    assert rest("-c", "import segiou; segiou.ConfusionMatrix(2).report()").returncode == 0
