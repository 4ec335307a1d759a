"""Real faults: processes that are killed, Ctrl-C, a full disk."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou

ROOT = Path(__file__).resolve().parents[2]
PAIRS = 600


def test_runs_that_are_killed_go_on_to_the_same_bits():
    # benchmarks/faults.py does the same with fifty and more kills.
    kills, pairs = ("50", "1500") if os.environ.get("SEGIOU_SLOW") == "1" else ("4", "500")
    script = ROOT / "benchmarks" / "faults.py"
    command = [sys.executable, str(script), "--kills", kills, "--pairs", pairs]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    found = re.search(r"kills (\d+) .*mismatches (\d+)$", result.stdout.strip())
    assert int(found[1]) >= int(kills)
    assert int(found[2]) == 0


@pytest.fixture
def many(tmp_path):
    """Pairs enough to be interrupted in: these are links to a few.

    They are of sixteen bits, which no compiled module of ours makes fast to read.
    """
    rng = np.random.default_rng(0)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for i in range(4):
            mask = np.kron(rng.integers(0, 9, (20, 20), dtype="u2"), np.ones((25, 25), "u2"))
            Image.fromarray(mask).save(tmp_path / f"{side}-{i}.png")
        for i in range(PAIRS):
            os.link(tmp_path / f"{side}-{i % 4}.png", tmp_path / side / f"{i:04d}.png")
    return tmp_path


def command_of(folder: Path, *more: str) -> list[str]:
    score = [sys.executable, "-m", "segiou", "score", str(folder / "truth"), str(folder / "pred")]
    return [*score, "--labels", "9", "--workers", "1", *more]


def wait_for_images(path: Path, process: subprocess.Popen) -> None:
    # Images reach the log beside the file first; it grows by whole batches.
    log = path.with_name(f"{path.name}-wal")
    while process.poll() is None and not (log.exists() and log.stat().st_size > 60_000):
        time.sleep(0.005)


@pytest.mark.parametrize("engine", [[], ["--processes", "1"]], ids=["threads", "processes"])
def test_ctrl_c_finishes_what_is_under_way_and_tells_how_to_go_on(many, engine):
    run = many / "r.sqlite"
    command = command_of(many, "--run", str(run), *engine)
    with subprocess.Popen(
        command, stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as process:
        wait_for_images(run, process)
        # As a terminal does: to the whole group, workers too.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert out == ""
    stopped = re.search(
        rf"stopped after (\d+) of {PAIRS} pairs; they are kept in (\S+), and the", err
    )
    assert stopped, err
    assert "Traceback" not in err
    assert 0 < int(stopped[1]) < PAIRS
    assert len(segiou.Run.open(run)) == int(stopped[1])
    subprocess.run([*command, "--quiet"], check=True, stdout=-1)
    whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
    assert segiou.Run.open(run).total() == whole.total()


@pytest.mark.parametrize("seconds", [0.01, 0.1, 0.3, 0.45, 0.6, 0.8, 1.0])
def test_ctrl_c_at_any_moment_of_the_start_ends_with_130(many, seconds):
    code = "import sys; from segiou.cli.main import main; print('up', flush=True); sys.exit(main())"
    command = [sys.executable, "-c", code, *command_of(many, "--processes", "2")[3:]]
    command.remove("--workers")
    command.remove("1")
    with subprocess.Popen(
        command, stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as process:
        assert process.stdout.readline() == "up\n"
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode in (130, 0), err
    assert "Traceback" not in err


def test_ctrl_c_twice_stops_at_once_and_the_file_stays_sound(many):
    run = many / "r.sqlite"
    command = command_of(many, "--run", str(run))
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        wait_for_images(run, process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    whole = segiou.score_folder(many / "truth", many / "pred", labels=9)
    partial = segiou.Run.open(run)
    assert 0 < len(partial) < PAIRS
    assert partial.counts == whole.select(partial.ids).counts
    again = segiou.score_folder(many / "truth", many / "pred", labels=9, run=run)
    assert again.total() == whole.total()


def test_without_a_run_file_ctrl_c_says_that_nothing_is_kept(many):
    with subprocess.Popen(command_of(many), stdout=-1, stderr=-1, text=True) as process:
        # Before that, it is the interpreter that is interrupted and not the command.
        maps = Path(f"/proc/{process.pid}/maps")
        while process.poll() is None and "/_png." not in maps.read_text():
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    if process.returncode == 0:
        pytest.skip("it had finished already")
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_later(many):
    run = many / "r.sqlite"
    command = command_of(many, "--run", str(run), "--quiet")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

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


def test_a_disk_of_its_own_that_is_full(many):
    disk = many / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(disk)]
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
