"""Add a row to the benchmark history: ``python -m benchmarks.history``.

Times segiou and other tools like `benchmarks.counting`, and scoring a folder compared with the
usual loop, each on one thread. The shortest processor times are written to docs/benchmarks.json
with the date, processor, load and versions. The documentation shows the last entry and the history.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import segiou
from benchmarks import counting as clock, inputs, peers
from benchmarks.counting import IDIOM, OURS, Times, race
from benchmarks.inputs import Task
from segiou.counting._kernel import BACKENDS

HISTORY = Path(__file__).parents[1] / "docs" / "benchmarks.json"
PACKAGES = ("numpy", "scikit-learn", "torch", "torchmetrics", "Pillow")
ROUNDS = 5


def main() -> None:
    # On a shared machine, only processor time is comparable.
    clock.perf_counter = time.process_time
    history = json.loads(HISTORY.read_text("utf-8")) if HISTORY.exists() else []
    camvid = inputs.camvid().first(12)
    tasks = [camvid, camvid.cast("int64"), inputs.noise(19)]
    entry = {
        "day": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "processor": processor(),
        "load": round(os.getloadavg()[0], 1),
        "versions": dict(versions()),
        "counting": [counting(task) for task in tasks],
        "folder": folder(camvid),
    }
    HISTORY.write_text(json.dumps([*history, entry], indent=1) + "\n", "utf-8")
    print(json.dumps(entry, indent=1))


def counting(task: Task) -> dict[str, Any]:
    """Nanoseconds per pixel."""
    contestants = {OURS: peers.segiou(task), IDIOM: peers.each(peers.bincount(task.num_classes))}
    contestants |= peers.peers(task.num_classes)
    # Code for processors with fewer instructions, which this one can run as well.
    contestants |= {f"{OURS}, {name}": peers.kernel(task, name) for name in BACKENDS[1:]}
    times = race(task, contestants, ROUNDS)
    rows = {name: best(times, name, task.pixels * 1e-9) for name in contestants}
    return {"input": task.name, "rows": rows}


def folder(task: Task) -> dict[str, Any]:
    """Milliseconds per pair of PNG files, read, counted and kept, in one thread."""
    with tempfile.TemporaryDirectory() as scratch:
        for side, masks in (("truth", task.truths), ("pred", task.preds)):
            (Path(scratch) / side).mkdir()
            for number, mask in enumerate(masks):
                Image.fromarray(mask).save(Path(scratch) / side / f"{number}.png")
        contestants = {
            OURS: lambda _: scored(Path(scratch), task),
            IDIOM: lambda _: looped(Path(scratch), task),
        }
        times = race(task, contestants, ROUNDS)
    rows = {name: best(times, name, len(task.truths) * 1e-3) for name in contestants}
    return {"input": task.name, "pairs": len(task.truths), "rows": rows}


def best(times: Times, name: str, unit: float) -> dict[str, float]:
    """The shortest time, in units, and its ratio to segiou's."""
    shortest = min(times[name])
    return {"time": round(shortest / unit, 4), "ratio": round(shortest / min(times[OURS]), 2)}


def scored(folder: Path, task: Task) -> Any:
    labels = segiou.LabelSet.numbered(task.num_classes, ignore=task.ignore)
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=labels, workers=1)
    return run.total().matrix


def looped(folder: Path, task: Task) -> Any:
    """The usual loop: Pillow, then np.bincount."""
    count = peers.bincount(task.num_classes)
    return np.sum(
        [
            count(inputs.read(path), inputs.read(folder / "pred" / path.name))
            for path in sorted((folder / "truth").iterdir())
        ],
        axis=0,
    )


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores, kernel {BACKENDS[0]}"


def versions() -> Any:
    yield "segiou", segiou.__version__
    for package in PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, "not installed"


if __name__ == "__main__":
    main()
