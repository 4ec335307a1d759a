"""Kinds of scores and features whose folders were deleted: their options name what is missing."""

from __future__ import annotations

import json
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


#: Commands and keywords whose folders are missing, and the message of each.
MISSING = {
    "topology": "--topology; no installed measure has this option",
    "lesions=brats2023-gli": "--lesions needs the measure 'lesions', which is",
    "surface=segiou": "--surface needs the measure 'surfaces', which is not",
}
CODE = """
import contextlib, io, json, sys
# That of an editable installation finds the deleted folders in the checkout.
sys.meta_path = [one for one in sys.meta_path if "editable" not in str(one).lower()]
import segiou
from segiou.cli.main import main

def run(arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()

def raised(**options):
    try:
        segiou.score([[[0]]], [[[0]]], labels=2, **options)
    except ValueError as error:
        return str(error)

print(json.dumps({
    "commands": [run(one) for one in json.loads(sys.argv[1])],
    "keywords": [raised(surfaces=True), raised(measures=["topology"], boundary=True)],
    "matrix": segiou.ConfusionMatrix(2).report().verdict,
}))
"""


def test_what_is_missing_is_named_and_everything_else_works(rest):
    """All in one process, because each start takes as long as the commands."""
    commands = [[*SCORE, f"--{option}"] for option in MISSING]
    commands.append(["map-accuracy", "a.csv", "--areas", "b.csv"])
    commands.append([*SCORE, "--boundary", "--objects"])
    done = rest("-c", CODE, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    *refused, scored = found["commands"]
    messages = [*MISSING.values(), "map-accuracy needs segiou.maps, which is"]
    for (code, out, err), message in zip(refused, messages, strict=True):
        assert (code, out) == (2, "")
        assert message in err
    assert scored[0] == 0
    for text, key in zip(found["keywords"], ("surfaces", "topology"), strict=True):
        assert f"unknown measure {key!r}" in text
    assert "undefined" in found["matrix"]
