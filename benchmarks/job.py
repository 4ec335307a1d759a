"""Measure whole jobs, including reading and start-up: ``python -m benchmarks.job [--rounds N]``.

Scoring a folder is compared with the usual loop (Pillow or OpenCV, bincount, the same number of
threads). All tools alternate within a round; medians and ratios of medians are shown. Peak memory
is measured in a separate process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

import segiou
from segiou.counting.encoding import BACKEND
from segiou.masks.read import read_mask

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
CLASSES = 11
SIDES = ("truth", "base")
Pairs = list[tuple[str, str]]


def idiom(truth: np.ndarray, pred: np.ndarray) -> np.ndarray:
    valid = truth < CLASSES
    index = CLASSES * truth[valid].astype(int) + pred[valid]
    return np.bincount(index, minlength=CLASSES * CLASSES)


def with_pillow(pair: tuple[str, str]) -> np.ndarray:
    return idiom(*(np.asarray(Image.open(path)) for path in pair))


def with_opencv(pair: tuple[str, str]) -> np.ndarray:
    import cv2

    return idiom(*(cv2.imread(path, cv2.IMREAD_UNCHANGED) for path in pair))


def loop(one: Callable, pairs: Pairs, threads: int) -> np.ndarray:
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(one, pairs)).reshape(CLASSES, CLASSES)


def ours(pairs: Pairs, threads: int) -> np.ndarray:
    truth, pred = (Path(path).parent for path in pairs[0])
    run = segiou.score_folder(truth, pred, labels="camvid", workers=threads)
    return run.total().matrix


def folder_pairs(folder: Path) -> Pairs:
    return [(str(p), str(folder / "base" / p.name)) for p in sorted((folder / "truth").iterdir())]


def enlarged(folder: Path, size: tuple[int, int], number: int) -> Path:
    for side in SIDES:
        (folder / side).mkdir(parents=True)
        for path in sorted((SHARED / side).iterdir())[:number]:
            with Image.open(path) as image:
                image.resize(size, Image.Resampling.NEAREST).save(folder / side / path.name)
    return folder


def copied(folder: Path, into: Path, copies: int) -> Path:
    """A folder of realistic size: each pair several times."""
    for side in SIDES:
        (into / side).mkdir(parents=True)
        for path in (folder / side).iterdir():
            for copy in range(copies):
                shutil.copyfile(path, into / side / f"{copy}_{path.name}")
    return into


def race(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: median(taken) for name, taken in times.items()}


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n| {' | '.join('---' for _ in head)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def whole_job(name: str, pairs: Pairs, threads: int, rounds: int) -> list[str]:
    contestants = {
        "segiou": lambda: ours(pairs, threads),
        "Pillow": lambda: loop(with_pillow, pairs, threads),
        "OpenCV": lambda: loop(with_opencv, pairs, threads),
    }
    answers = {key: np.asarray(run()) for key, run in contestants.items()}
    for key, answer in answers.items():
        if not np.array_equal(answer, answers["segiou"]):
            msg = f"{key} counts {name} differently"
            raise AssertionError(msg)
    times = race(contestants, rounds)
    best = min(times["Pillow"], times["OpenCV"])
    each = [f"{1000 * times[key] / len(pairs):.2f}" for key in contestants]
    return [name, str(threads), *each, f"{best / times['segiou']:.1f} ×"]


def counting_beside_reading(name: str, pairs: Pairs, rounds: int) -> list[str]:
    options = segiou.ConfusionMatrix("camvid")
    masks = [tuple(read_mask(path) for path in pair) for pair in pairs]
    times = race(
        {
            "read": lambda: [[read_mask(path) for path in pair] for pair in pairs],
            "count": lambda: [options.count(*pair) for pair in masks],
        },
        rounds,
    )
    share = times["count"] / times["read"]
    each = [f"{1000 * times[key] / len(pairs):.3f}" for key in ("read", "count")]
    return [name, *each, f"{100 * share:.0f} %"]


def starting(rounds: int) -> list[list[str]]:
    commands = {
        "python -c pass": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "import segiou": ["-c", "import segiou"],
        "from segiou import ConfusionMatrix": ["-c", "from segiou import ConfusionMatrix"],
        "segiou --help": ["-m", "segiou", "--help"],
    }

    def start(arguments: list[str]) -> Callable[[], object]:
        command = [sys.executable, *arguments]
        return lambda: subprocess.run(command, check=True, capture_output=True)

    times = race({name: start(arguments) for name, arguments in commands.items()}, rounds)
    return [[name, f"{1000 * taken:.0f}"] for name, taken in times.items()]


def peak_of(folder: Path, copies: int) -> float:
    """Peak memory in MiB of scoring a folder with several copies of each mask."""
    with tempfile.TemporaryDirectory() as scratch:
        many = copied(folder, Path(scratch) / "many", copies)
        folders = f"{str(many / 'truth')!r}, {str(many / 'base')!r}"
        # Not getrusage: its peak includes that of the parent process.
        code = (
            f"import segiou\nsegiou.score_folder({folders}, labels='camvid')\n"
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return int(done.stdout) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    if not SHARED.is_dir():
        sys.exit("the real masks are not here")
    import cv2

    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as scratch:
        large = enlarged(Path(scratch) / "large", (2048, 1024), 24)
        sets = {
            "camvid 480 x 360": folder_pairs(copied(SHARED, Path(scratch) / "small", 8)),
            "camvid as 2048 x 1024": folder_pairs(copied(large, Path(scratch) / "more", 4)),
        }
        print(f"{BACKEND}, {os.cpu_count()} processors, medians of {rounds} rounds")
        rows = [
            whole_job(name, pairs, threads, rounds)
            for name, pairs in sets.items()
            for threads in (1, 2)
        ]
        head = ("masks", "threads", "segiou, ms a pair", "Pillow loop", "OpenCV loop", "faster")
        show("Scoring a folder", head, rows)
        print(f"{' and '.join(str(len(pairs)) for pairs in sets.values())} pairs")
        rows = [counting_beside_reading(name, pairs, rounds) for name, pairs in sets.items()]
        head = ("masks", "reading, ms a pair", "counting", "counting / reading")
        show("Counting beside reading, one thread", head, rows)
        show("Starting", ("command", "ms"), starting(rounds))
        rows = [[str(24 * n), f"{peak_of(large, n):.0f}"] for n in (1, 4, 16)]
        show("Peak memory, 2048 x 1024", ("pairs", "MiB"), rows)


if __name__ == "__main__":
    main()
