"""Kill scoring at random moments, resume, and compare with an uninterrupted run, bit for bit.

    python benchmarks/faults.py [--kills 60] [--pairs 400] [--processes 2] [--scores] [--seed 0]

Every process is killed with SIGKILL, including its workers. After each kill, the run file must
contain only correct counts. The last line shows kills, resumes, finished runs and mismatches; the
exit code is 1 if there are mismatches.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

import segiou
from segiou.runs.database import RunFileError

CLASSES = 19


def make_masks(folder: Path, pairs: int, *, scores: bool) -> None:
    rng = np.random.default_rng(0)
    for side in ("truth", "pred"):
        (folder / side).mkdir()
    for i in range(pairs):
        coarse = rng.integers(0, CLASSES, (8, 10), dtype=np.uint8)
        size = 2 if scores else 80
        truth = np.kron(coarse, np.ones((size, size), dtype=np.uint8))
        Image.fromarray(truth).save(folder / "truth" / f"{i:04d}.png")
        pred = np.roll(truth, i % 13, 1)
        if scores:
            logits = rng.normal(size=(*truth.shape, CLASSES)) + 3 * np.eye(CLASSES)[pred]
            np.save(folder / "pred" / f"{i:04d}.npy", logits.astype(np.float16))
        else:
            Image.fromarray(pred).save(folder / "pred" / f"{i:04d}.png")


@dataclass
class Score:
    """Numbers of kills, resumes and finished runs."""

    kills: int = 0
    resumes: int = 0
    finished: int = 0
    partial: int = 0
    mismatches: list[str] = field(default_factory=list)

    def summary(self) -> str:
        return (
            f"kills {self.kills} (of which {self.partial} left a partial run), "
            f"resumes {self.resumes}, finished runs {self.finished}, "
            f"mismatches {len(self.mismatches)}"
        )


def start(folder: Path, run: Path, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "segiou", "score", str(folder / "truth"), str(folder / "pred")]
    command += ["--labels", str(CLASSES), "--run", str(run), "--quiet", "--format", "json"]
    if options.processes:
        command += ["--processes", str(options.processes)]
    if options.scores:
        command += ["--scores=softmax", "--scores-regions"]
    root = str(Path(segiou.__file__).parents[1])
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": root},
    )


def images_of(path: Path) -> dict[str, tuple[object, ...]]:
    run = segiou.Run.open(path)
    packed = [run.parts(key).pack() for key in run.measured]
    return {
        image.id: (
            image.cells.tobytes(),
            image.values.tobytes(),
            image.ignored,
            *(of_images[i] for of_images in packed),
        )
        for i, image in enumerate(run)
    }


def totals_of(path: Path) -> tuple[object, object]:
    run = segiou.Run.open(path)
    return run.total(), run.measured


def check(
    path: Path, expected: dict[str, tuple[object, ...]], score: Score, *, whole: bool
) -> None:
    """Check that the file is correct and, if the run is finished, complete."""
    if not path.exists() or path.stat().st_size == 0:
        return
    try:
        found = images_of(path)
    except RunFileError as error:
        # A process killed before creating the tables leaves none.
        if whole or "no run of segiou" not in str(error):
            score.mismatches.append(str(error))
        return
    score.partial += 0 < len(found) < len(expected)
    wrong = [id for id, counts in found.items() if expected.get(id) != counts]
    if wrong or (whole and found.keys() != expected.keys()):
        score.mismatches.append(f"{len(wrong)} images differ, {len(found)} of {len(expected)}")


def until_finished(
    folder: Path,
    expected: dict[str, tuple[object, ...]],
    score: Score,
    options: argparse.Namespace,
    chance: random.Random,
    seconds: tuple[float, float],
) -> None:
    """Kill and resume until the run is finished."""
    run = folder / f"run-{score.finished}.sqlite"
    kills_here = 0
    while True:
        process = start(folder, run, options)
        # After some kills the run may finish, so that finished runs are compared as well.
        limit = None if kills_here >= 8 else chance.uniform(*seconds)
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills_here += 1
            score.kills += 1
            check(run, expected, score, whole=False)
        else:
            if process.returncode != 0:
                score.mismatches.append(process.stderr.read().decode())
            check(run, expected, score, whole=True)
            if totals_of(run) != options.totals:
                score.mismatches.append(f"{run}: the total differs")
            score.finished += 1
            score.resumes += kills_here
            return
        finally:
            process.stderr.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--processes", type=int)
    about = "count score histograms with regions as well"
    parser.add_argument("--scores", action="store_true", help=about)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    score = Score()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_masks(folder, options.pairs, scores=options.scores)
        begin = time.perf_counter()
        process = start(folder, folder / "undisturbed.sqlite", options)
        _, errors = process.communicate()
        whole = time.perf_counter() - begin
        if process.returncode:
            print(errors.decode())
            return 2
        expected = images_of(folder / "undisturbed.sqlite")
        options.totals = totals_of(folder / "undisturbed.sqlite")
        while score.kills < options.kills:
            # Between the start of Python and the report of an uninterrupted run.
            until_finished(folder, expected, score, options, chance, (0.15 * whole, 0.8 * whole))
        for text in score.mismatches:
            print(f"mismatch: {text}")
        engine = f"{options.processes} processes" if options.processes else "threads"
        kind = ", --scores" if options.scores else ""
        print(f"{options.pairs} pairs, {engine}, seed {options.seed}{kind}: {score.summary()}")
    return 1 if score.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
