"""Real faults: processes that are killed, Ctrl-C, a full disk."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = ROOT / "tests" / "importable" / "interrupted.py"
PAIRS = 600


@pytest.mark.gate
@pytest.mark.parametrize("more", [[], ["--scores"]], ids=["masks", "scores"])
def test_runs_that_are_killed_go_on_to_the_same_bits(more):
    # benchmarks/faults.py does the same with fifty and more kills.
    kills, pairs = ("50", "1500") if os.environ.get("SEGIOU_SLOW") == "1" else ("3", "500")
    script = ROOT / "benchmarks" / "faults.py"
    command = [sys.executable, str(script), "--kills", kills, "--pairs", pairs, *more]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    found = re.search(r"kills (\d+) .*mismatches (\d+)$", result.stdout.strip())
    assert int(found[1]) >= int(kills)
    assert int(found[2]) == 0


@pytest.fixture
def many(tmp_path):
    """Pairs enough to be interrupted in: these are links to a few."""
    rng = np.random.default_rng(0)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for i in range(4):
            mask = rng.integers(0, 9, (20, 20), dtype=np.uint8)
            Image.fromarray(mask).save(tmp_path / f"{side}-{i}.png")
        for i in range(PAIRS):
            os.link(tmp_path / f"{side}-{i % 4}.png", tmp_path / side / f"{i:04d}.png")
    return tmp_path


def arguments_of(folder: Path, *more: str) -> list[str]:
    folders = [str(folder / "truth"), str(folder / "pred")]
    engine = [] if "--processes" in more else ["--workers", "1"]
    return ["score", *folders, "--labels", "9", *engine, *more]


def command_of(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "segiou", *arguments_of(folder, *more)]


def interrupted(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(INTERRUPTED), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, start_new_session=True
    )


@pytest.mark.gate
def test_a_killed_run_goes_on_to_the_same_total(many):
    run = many / "r.sqlite"
    folders = many / "truth", many / "pred"
    segiou.score_folder(*folders, labels=9, run=run, ids=ids_file(many, 200))
    # In the middle of the transaction that adds the others.
    arguments = arguments_of(many, "--run", str(run))
    done = interrupted("at", "RunWriter._write_entries:3", "SIGKILL", *arguments)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert 200 <= len(segiou.Run.open(run)) < PAIRS
    whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
    again = segiou.score_folder(many / "truth", many / "pred", labels=9, run=run)
    assert again.total() == whole.total()


@pytest.mark.gate
def test_an_ignored_interrupt_stays_ignored(many):
    """As in the background of a shell, which starts commands so."""
    run = many / "r.sqlite"
    arguments = arguments_of(many, "--run", str(run))
    done = interrupted("ignored", "RunWriter.add:9", "SIGINT", *arguments)
    assert done.returncode == 0, done.stderr
    assert "interrupted" not in done.stderr
    assert len(segiou.Run.open(run)) == PAIRS


ENGINES = [[], pytest.param(["--processes", "1"], marks=pytest.mark.gate)]


@pytest.mark.parametrize("engine", ENGINES, ids=["threads", "processes"])
@pytest.mark.gate
def test_ctrl_c_finishes_what_is_under_way_and_tells_how_to_resume(many, engine):
    run = many / "r.sqlite"
    arguments = arguments_of(many, "--run", str(run), *engine)
    done = interrupted("at", "RunWriter.add:9", "SIGINT", *arguments)
    assert done.returncode == 130, done.stderr
    assert done.stdout == ""
    stopped = re.search(rf"stopped after (\d+) of {PAIRS} pairs; saved in (\S+); run", done.stderr)
    assert stopped, done.stderr
    assert "Traceback" not in done.stderr
    assert 0 < int(stopped[1]) < PAIRS
    assert len(segiou.Run.open(run)) == int(stopped[1])
    whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
    again = segiou.score_folder(many / "truth", many / "pred", labels=9, run=run)
    assert again.total() == whole.total()


@pytest.mark.gate
def test_ctrl_c_twice_stops_at_once_and_the_file_stays_sound(many):
    run = many / "r.sqlite"
    done = interrupted("at", "RunWriter.add:9,10", "SIGINT", *arguments_of(many, "--run", str(run)))
    assert done.returncode == 130, done.stderr
    assert "stopped after" not in done.stderr
    whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
    partial = segiou.Run.open(run)
    assert len(partial) < PAIRS
    assert partial.counts == whole.select(partial.ids).counts
    again = segiou.score_folder(many / "truth", many / "pred", labels=9, run=run)
    assert again.total() == whole.total()


@pytest.mark.gate
def test_without_a_run_file_ctrl_c_says_that_nothing_was_saved(many):
    done = interrupted("at", "_InMemory.add:9", "SIGINT", *arguments_of(many))
    assert done.returncode == 130, done.stderr
    assert "Press Ctrl-C again to stop immediately" in done.stderr
    assert f" of {PAIRS} pairs; nothing was saved; use --run FILE" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.gate
def test_ctrl_c_at_any_call_of_the_command_ends_with_130_and_no_traceback(many):
    number = 150 if os.environ.get("SEGIOU_SLOW") == "1" else 40
    done = interrupted("sweep", str(number), *arguments_of(many, "--ids", str(ids_file(many, 6))))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["found"]
    assert len(found) > number // 2
    for site, code, error in found:
        # All pairs may be done when the signal comes; the command then ends as usual.
        assert code in (130, 0), (site, code, error)
        assert "Traceback" not in error
        assert "Exception ignored" not in error
    assert sum(code == 130 for _, code, _ in found) > len(found) // 2


def ids_file(folder: Path, number: int) -> Path:
    path = folder / "ids.txt"
    path.write_text("".join(f"{i:04d}\n" for i in range(number)))
    return path


@pytest.mark.gate
def test_ctrl_c_leaves_no_draft_of_a_file_behind(many):
    page = many / "out" / "report.csv"
    page.parent.mkdir()
    arguments = [*arguments_of(many, "--ids", str(ids_file(many, 6))), "--output", str(page)]
    done = interrupted("at", "Path.write_bytes:1", "SIGINT", *arguments)
    assert done.returncode == 130, done.stderr
    assert list(page.parent.iterdir()) == []


@pytest.mark.gate
def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_later(many):
    run = many / "r.sqlite"
    command = command_of(many, "--run", str(run), "--quiet")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    result = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=limited
    )
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith(f"segiou: {run}: ")
    assert "full" in result.stderr
    assert "Traceback" not in result.stderr
    kept = len(segiou.Run.open(run)) if run.exists() else 0
    assert kept < PAIRS
    subprocess.run(command, check=True, stdout=-1)
    whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
    assert segiou.Run.open(run).total() == whole.total()


@pytest.mark.gate
def test_a_disk_of_its_own_that_is_full(many):
    disk = many / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        command = command_of(many, "--run", str(disk / "r.sqlite"), "--quiet")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 3, result.stderr
        assert "the disk is full" in result.stderr
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        subprocess.run(command, check=True, stdout=-1)
        whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
        assert segiou.Run.open(disk / "r.sqlite").total() == whole.total()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
