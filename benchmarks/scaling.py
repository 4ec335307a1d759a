"""Processor time per image and memory of commands on run files, by the number of images.

    python -m benchmarks.scaling                  # 10 000, 100 000 and 1 000 000 images
    python -m benchmarks.scaling 10000 100000

Counts are those of benchmarks/runs.py; the second model mistakes one in five images for another
class. Metadata have five columns: three of 2 to 5 values, one of 20, and one of numbers.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.runs import CLASSES, synthetic
from segiou.labels.class_options import ClassOptions
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns
from segiou.runs.run_writing import RunWriter

COMMANDS = {
    "report": ("report", "a.sqlite"),
    "report --intervals": ("report", "a.sqlite", "--intervals"),
    "compare of two": ("compare", "a.sqlite", "b.sqlite"),
    "slices, five columns": ("slices", "a.sqlite", "metadata.csv"),
}


def second_model(count: int) -> Iterator[Columns]:
    """The same truth; in a fifth of the images, every prediction is the next class."""
    rng = np.random.default_rng(9)
    for block in synthetic(count):
        shift = (rng.random(len(block)) < 0.2).astype(np.int64)
        image = np.repeat(np.arange(len(block)), block.sizes)
        truth, pred = np.divmod(block.cells, CLASSES + 1)
        cells = truth * (CLASSES + 1) + (pred + shift[image]) % (CLASSES + 1)
        order = np.lexsort((cells, image))
        yield replace(block, cells=cells[order], values=block.values[order])


def write(folder: Path, count: int) -> None:
    """Two run files and the metadata of their images."""
    header = Header(ClassOptions.of(CLASSES), truth="/gt", pred="/pred")
    for name, blocks in (("a", synthetic(count)), ("b", second_model(count))):
        with RunWriter(folder / f"{name}.sqlite", header) as writer:
            for block in blocks:
                writer.add_block(block)
            writer.finish()
    rng = np.random.default_rng(0)
    values = [rng.integers(0, number, count).tolist() for number in (4, 2, 5, 20, 100)]
    with (folder / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "site", "time", "weather", "city", "age"])
        ids = (id for block in synthetic(count) for id in block.ids)
        for id, site, time, weather, city, age in zip(ids, *values, strict=True):
            table.writerow([id, f"s{site}", f"t{time}", f"w{weather}", f"c{city}", age])


def measured(folder: Path, *arguments: str) -> tuple[float, float]:
    """Processor time in seconds and peak memory in MB of a command."""
    command = [sys.executable, "-m", "segiou", *arguments, "-q", "-o", "out.txt"]
    process = subprocess.Popen(command, cwd=folder)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        msg = f"{' '.join(arguments)} failed"
        raise SystemExit(msg)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    for count in map(int, sys.argv[1:] or ("10000", "100000", "1000000")):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), count)
            for title, arguments in COMMANDS.items():
                seconds, memory = measured(Path(name), *arguments)
                each = 1e6 * seconds / count
                shown = f"{seconds:6.1f} s {each:6.1f} µs per image {memory:6.0f} MB"
                print(f"{count:8} {title:22} {shown}", flush=True)


if __name__ == "__main__":
    main()
