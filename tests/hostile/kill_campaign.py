"""Kill scoring at random moments, resume it, and compare with an uninterrupted run.

    python tests/hostile/kill_campaign.py [--kills 300] [--images 60] [--seed 0]

Threads and processes take turns. Each attempt is killed with SIGKILL after a random time and
resumed; a run that has ended begins a new round with new masks. The last line is JSON: kills,
rounds, and every round whose report differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 3
ENGINES = (("--workers", "2"), ("--processes", "2"))
#: Attempts are killed within this share of the time of an uninterrupted run.
LATEST = 1.1


def command(folder: Path, engine: tuple[str, str], run: str) -> list[str]:
    names = ["score", str(folder / "truth"), str(folder / "pred"), "--labels", str(CLASSES)]
    saved = ["--run", str(folder / run), "--format", "json"]
    return [sys.executable, "-m", "segiou", *names, *engine, *saved]


def make_masks(folder: Path, images: int, rng: np.random.Generator) -> None:
    for kind in ("truth", "pred"):
        (folder / kind).mkdir()
        for number in range(images):
            mask = rng.integers(0, CLASSES, (96, 96), dtype=np.uint8)
            Image.fromarray(mask).save(folder / kind / f"{number}.png")


def report(output: bytes, run: str) -> object:
    """What a report says, without the name of its run file and the time."""
    text = output.decode().replace(run, "RUN")
    return json.loads(text)


def killed(arguments: list[str], seconds: float) -> tuple[bool, bytes, str]:
    """Run for some seconds at most: whether it was killed, its report, and what went wrong."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True, b"", ""
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return False, output, said if process.returncode else ""


def play(
    folder: Path, engine: tuple[str, str], images: int, left: int, rng: np.random.Generator
) -> tuple[int, str]:
    """One round: its kills, and how its report differs."""
    make_masks(folder, images, rng)
    begin = time.perf_counter()
    whole = subprocess.run(command(folder, engine, "whole.run"), capture_output=True, check=True)
    usual = time.perf_counter() - begin
    kills = 0
    while True:
        seconds = rng.uniform(0.2, LATEST) * usual if kills < left else 120.0
        was_killed, output, error = killed(command(folder, engine, "run.run"), seconds)
        if not was_killed:
            break
        kills += 1
    if error:
        return kills, error[-300:]
    same = report(output, "run.run") == report(whole.stdout, "whole.run")
    return kills, "" if same else "the report differs"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    kills = rounds = 0
    wrong: list[str] = []
    while kills < options.kills:
        engine = ENGINES[rounds % len(ENGINES)]
        with tempfile.TemporaryDirectory() as name:
            found, why = play(Path(name), engine, options.images, options.kills - kills, rng)
        if why:
            wrong.append(f"round {rounds} ({engine[0]}): {why}")
        kills, rounds = kills + found, rounds + 1
        print(kills, rounds, engine[0], why, file=sys.stderr, flush=True)
    print(json.dumps({"kills": kills, "rounds": rounds, "differences": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
