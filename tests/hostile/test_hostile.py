"""Hostile files and names: nothing crashes, hangs, eats memory or yields a silent number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_mask

import segiou
from segiou import DataError

SLOW = os.environ.get("SEGIOU_SLOW") == "1"


@pytest.mark.gate
def test_mutated_files_are_refused_or_scored_as_what_they_hold():
    script = Path(__file__).parent / "campaign.py"
    command = [sys.executable, str(script), "--cases", "12000" if SLOW else "600", "--seed", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.stdout, result.stderr
    summary = json.loads(result.stdout.splitlines()[-1])
    assert summary["wrong"] == []
    assert result.returncode == 0
    # Neither all harmless nor all hopeless, or the corpus would show nothing.
    assert summary["scored"] > summary["cases"] / 10
    assert summary["refused"] > summary["cases"] / 3
    # The library says what it has to say in its errors.
    assert result.stderr == ""
    assert not Path("/tmp/segiou-was-here").exists()


def test_mutated_volumes_are_refused_or_read_as_their_library_reads_them():
    if os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1":
        pytest.importorskip("nibabel")
        pytest.importorskip("SimpleITK")
    script = Path(__file__).parent / "volume_campaign.py"
    command = [sys.executable, str(script), "--cases", "6000" if SLOW else "500", "--seed", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    summary = json.loads(result.stdout.splitlines()[-1])
    assert summary["wrong"] == []
    assert result.returncode == 0
    assert min(summary["read"], summary["refused"]) > summary["cases"] / 4
    assert summary["peak_mb"] < 600


def test_a_second_opinion_that_cannot_fail_would_be_none():
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        from campaign import dishonest
        from corpus import Case, labels, sound_files
    finally:
        sys.path.pop(0)
    from segiou.counting import ConfusionCounts
    from segiou.runs import ImageCount

    sound = sound_files()[0]
    table = np.zeros((256, 257), dtype=np.int64)
    np.add.at(table, (labels(), sound.labels), 1)
    case = Case("x.png", sound.data, sound, "not at all", checked=True)
    assert dishonest(case, ImageCount.of("x", ConfusionCounts(table, 0))) == ""
    table[0, 0] -= 1
    table[0, 1] += 1
    assert dishonest(case, ImageCount.of("x", ConfusionCounts(table, 0))) != ""


def save(path: Path, value: int = 1) -> None:
    write_mask(path, np.full((3, 4), value))


ODD_NAMES = [
    "new\nline.png",
    "tab\t and \x1b[31mred.png",
    "🦆🦆.png",
    "a" * 251 + ".png",
    "'; DROP TABLE image; --.png",
    "%s%n{0}.png",
    "\u00e9.png",
    "e\u0301.png",
    "\udcff\udcfe.png",
]


@pytest.fixture
def odd_names(tmp_path_factory):
    """Those that can be files here: an emulated system may refuse the longest."""
    folder, found = tmp_path_factory.mktemp("names"), []
    for name in ODD_NAMES:
        with suppress(OSError):
            (folder / name).touch()
            found.append(name)
    assert len(found) >= len(ODD_NAMES) - 1
    return found


def test_odd_names_score_and_are_kept(tmp_path, odd_names):
    for name in odd_names:
        save(tmp_path / "t" / name)
        save(tmp_path / "p" / name, len(name) % 2)
    run = segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=2, run=tmp_path / "r.sqlite")
    assert {f"{id}.png" for id in run.ids} == set(odd_names)
    again = segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=2, run=run.path)
    assert again.total() == run.total()
    run.to_csv().encode()
    run.report().to_json().encode()


@pytest.mark.gate
def test_odd_names_on_the_command_line(tmp_path, odd_names):
    for name in odd_names:
        save(tmp_path / "\udcfd t" / name)
        save(tmp_path / "p\n" / name)
    command = [sys.executable, "-m", "segiou", "score", tmp_path / "\udcfd t", tmp_path / "p\n"]
    more = ["--labels", "2", "--run", tmp_path / "r\n.sqlite", "--format", "json"]
    result = subprocess.run(
        [*command, *more, "--per-image", tmp_path / "i.csv"], capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["pairs"] == len(odd_names)


def test_a_pipe_is_never_opened(tmp_path):
    for side in ("t", "p"):
        save(tmp_path / side / "a.png")
    save(tmp_path / "t" / "pipe.png")
    os.mkfifo(tmp_path / "p" / "pipe.png")
    os.mkfifo(tmp_path / "p" / "b.tif")
    save(tmp_path / "t" / "b.png")
    with pytest.raises(DataError) as caught:
        segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=2, run=tmp_path / "r.sqlite")
    assert [str(p) for p in caught.value.problems] == [
        f"{tmp_path}/p/b.tif: is not a regular file",
        f"{tmp_path}/p/pipe.png: is not a regular file",
    ]


def test_loops_of_links_end(tmp_path):
    for side in ("t", "p"):
        save(tmp_path / side / "a.png")
        (tmp_path / side / "again").symlink_to(tmp_path / side)
        (tmp_path / side / "loop.png").symlink_to(tmp_path / side / "loop.png")
    with pytest.raises(DataError, match="cannot be read: Too many levels of symbolic"):
        segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=2)
    run = segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=2, on_error="skip")
    assert run.ids == ("a",)


def test_links_to_devices_are_no_masks(tmp_path):
    save(tmp_path / "t" / "a.png")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.png").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"a\.png: is not a regular file"):
        segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=2)
