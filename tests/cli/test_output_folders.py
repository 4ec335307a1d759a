"""Every option that names a folder: nothing leaves it, and nothing foreign in it is lost."""

from __future__ import annotations

import contextlib
import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from segiou.cli.main import main

HOSTILE = ("../../evil", "/evil_abs", "..\\..\\evil", "ok", "C:\\evil", "a/../../../evil")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Two archives with hostile names, and their runs."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    for name in ("truth", "pred", "other"):
        with zipfile.ZipFile(folder / f"{name}.npz", "w") as archive:
            for id in HOSTILE:
                data = io.BytesIO()
                np.save(data, rng.integers(0, 2, (4, 6), dtype=np.uint8))
                archive.writestr(f"{id}.npy", data.getvalue())
    with contextlib.chdir(folder):
        for name in ("pred", "other"):
            scored = ["score", "truth.npz", f"{name}.npz", "--labels", "2"]
            assert main([*scored, "--run", f"{name}.sqlite", "-q"]) == 0
    return folder


@pytest.fixture
def place(inputs, tmp_path, monkeypatch):
    """A copy of the inputs as the working folder, deep in another."""
    deep = tmp_path / "a" / "b" / "c"
    shutil.copytree(inputs, deep)
    monkeypatch.chdir(deep)
    return tmp_path


SCORE = ["score", "truth.npz", "pred.npz", "--labels", "2"]
REPORT = ["report", "pred.sqlite"]
COMPARE = ["compare", "pred.sqlite", "other.sqlite"]
COMMANDS = [
    *([*SCORE, option] for option in ("--errors", "--html", "--plots")),
    [*REPORT, "--errors"],
    *([*COMPARE, option] for option in ("--html", "--plots")),
    ["raters", "truth.npz", "pred.npz", "--labels", "2", "--consensus"],
]


def named(command):
    return f"{command[0]} {command[-1]}"


@pytest.fixture(params=COMMANDS, ids=named)
def run(request):
    """Run one command with the output folder ``out``."""
    if "--plots" in request.param:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    end = "/" if "--html" in request.param else ""
    return lambda *more: main([*request.param, f"out{end}", "-q", *more])


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.few(2)
def test_nothing_is_written_outside(place, run, capsys):
    before = contents(place)
    assert run() == 0
    new = contents(place).keys() - before.keys()
    assert new
    assert all(path.startswith("a/b/c/out/") for path in new)
    assert {k: v for k, v in contents(place).items() if k in before} == before
    assert run() == 0  # the same command replaces its own files
    capsys.readouterr()


@pytest.mark.few(2)
def test_no_foreign_file_is_replaced(place, run, capsys):
    assert run() == 0
    (Path("out") / ".segiou").unlink()  # now they are anybody's
    kept = contents(Path("out"))
    assert run() == 3
    assert "was not written by segiou" in capsys.readouterr().err
    assert contents(Path("out")).items() >= kept.items()
    assert run("--overwrite") == 0


@pytest.mark.few(2)
def test_no_link_is_followed(place, run, capsys):
    assert run() == 0
    first = max(p for p in Path("out").rglob("*") if p.is_file() and p.name != ".segiou")
    first.unlink()
    target = place / "precious"
    target.write_text("mine")
    first.symlink_to(target)
    assert run("--overwrite") == 3
    assert "is a link, which is not followed" in capsys.readouterr().err
    assert target.read_text() == "mine"


def test_the_consensus_is_paired_by_its_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    masks = {f"town/{i}.npy": np.full((2, 3), i % 2, np.uint8) for i in range(3)}
    for name in ("a.zip", "b.zip"):
        with zipfile.ZipFile(name, "w") as archive:
            for path, mask in masks.items():
                data = io.BytesIO()
                np.save(data, mask)
                archive.writestr(f"set/{path}", data.getvalue())
    assert main(["raters", "a.zip", "b.zip", "--labels", "2", "--consensus", "out", "-q"]) == 0
    assert main(["score", "a.zip", "out", "--labels", "2", "-q"]) == 0
    assert "100.00 %" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--errors", "--html", "--plots"])
@pytest.mark.parametrize("folder", ["truth", "truth/out", "pred/a/b", "photo"])
def test_folders_in_inputs_are_refused(tmp_path, monkeypatch, capsys, option, folder):
    if option == "--plots":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    for side in ("truth", "pred", "photo"):
        Path(side).mkdir()
    end = "/" if option == "--html" else ""
    words = ["score", "truth", "pred", "--labels", "2", "--html", "x/", "--images", "photo"]
    assert main([*words, option, f"{folder}{end}"]) == 2
    assert f"is in the input {folder[:5].rstrip('/')}, so the next run" in capsys.readouterr().err


def test_folders_that_a_pattern_would_match_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["score", "*/*.png", "pred", "--labels", "2"]
    assert main([*words, "--errors", "errors"]) == 2
    assert "is in the input" in capsys.readouterr().err
    assert main(["raters", "a", "x=*/masks", "--labels", "2", "--consensus", "out/masks"]) == 2
    assert main(["raters", "a", "a/b", "--labels", "2", "--consensus", "out/masks"]) == 3
