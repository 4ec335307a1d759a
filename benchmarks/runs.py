"""Measure run files: size, writing, sums, and the overhead while scoring.

    python benchmarks/runs.py [IMAGES]

Counts are synthetic: 19 classes, about 40 non-zero cells per image, two megapixels.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import segiou
from segiou.labels.class_options import ClassOptions
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageFiles, Stamp
from segiou.runs.run import merge_files
from segiou.runs.run_writing import RunWriter

CLASSES = 19
BLOCK = 4096


def synthetic(count: int, *, seed: int = 0, first: int = 0) -> Iterator[Columns]:
    """Blocks of images with counts like those of street scenes."""
    rng = np.random.default_rng(seed)
    for start in range(first, first + count, BLOCK):
        n = min(BLOCK, first + count - start)
        filled = rng.random((n, CLASSES * (CLASSES + 1))) < 40 / (CLASSES * (CLASSES + 1))
        sizes = filled.sum(1)
        values = rng.geometric(1 / 50_000, size=int(sizes.sum()))
        stamp = Stamp(123_456, 1_700_000_000_123_456_789)
        yield Columns(
            tuple(f"city/sequence_{i // 1000:06d}/frame_{i:09d}" for i in range(start, start + n)),
            sizes,
            np.nonzero(filled)[1],
            values,
            np.zeros(n, dtype=np.int64),
            tuple(
                ImageFiles(
                    f"/gt/city/sequence_{i // 1000:06d}/frame_{i:09d}.png",
                    f"/pred/city/sequence_{i // 1000:06d}/frame_{i:09d}.png",
                    stamp,
                    stamp,
                )
                for i in range(start, start + n)
            ),
        )


def timed(what: str, do):
    start = time.perf_counter()
    result = do()
    print(f"{what:<44} {time.perf_counter() - start:8.2f} s", flush=True)
    return result


def write(path: Path, count: int, *, seed: int = 0, first: int = 0) -> None:
    header = Header(ClassOptions.of(CLASSES), truth="/gt", pred="/pred")
    with RunWriter(path, header) as writer:
        for block in synthetic(count, seed=seed, first=first):
            writer.add_block(block)
        writer.finish()


def large(folder: Path, count: int) -> None:
    blocks = list(synthetic(min(count, 100_000)))
    path = folder / "half.sqlite"
    timed(f"write {count // 2} images", lambda: write(path, count // 2))
    path = folder / "run.sqlite"
    timed(f"write {count} images", lambda: write(path, count))
    start = time.perf_counter()
    for _ in synthetic(count):
        pass
    print(f"{'  of which generating them':<44} {time.perf_counter() - start:8.2f} s")
    size = path.stat().st_size
    cells = sum(int(block.sizes.sum()) for block in blocks) / sum(len(block) for block in blocks)
    print(f"{'bytes per image':<44} {size / count:8.1f}   ({cells:.1f} filled cells)")
    run = timed("open", lambda: segiou.Run.open(path))
    timed("total()", run.total)
    timed("total() again", run.total)
    print(f"{'peak memory so far':<44} {peak():8.0f} MB")
    timed("report: per-image mean over all", lambda: run.report("monai").mean_iou)
    timed("worst(10)", lambda: segiou.Run.open(path).worst(10))
    print(f"{'peak memory':<44} {peak():8.0f} MB")
    write(folder / "a.sqlite", count // 10, seed=1)
    write(folder / "b.sqlite", count // 10, seed=2, first=count)
    pair = [folder / "a.sqlite", folder / "b.sqlite"]
    timed(f"merge 2 × {count // 10} images", lambda: merge_files(pair, folder / "m.sqlite"))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def overhead(folder: Path, pairs: int = 2000, repeats: int = 7) -> None:
    """The overhead of a run file: the ratio of scoring with and without it."""
    from PIL import Image

    streets = Path(__file__).parents[1] / "fixtures" / "streets"
    for side, model in (("truth", "truth"), ("pred", "model_a")):
        (folder / side).mkdir()
        for k, path in enumerate(sorted((streets / model).glob("*.png"))):
            large = np.kron(segiou.read_mask(path), np.ones((2, 2), dtype=np.uint8))
            for i in range(k, pairs, 6):
                Image.fromarray(large.astype(np.uint8)).save(folder / side / f"{i:06d}.png")
    ratios, work = [], []
    labels = streets / "labels.toml"
    for k in range(repeats):
        seconds, cpu = {}, {}
        for name in ("without", "with") if k % 2 else ("with", "without"):
            file = folder / f"overhead-{k}.sqlite" if name == "with" else None
            start, begin = time.perf_counter(), time.process_time()
            segiou.score_folder(folder / "truth", folder / "pred", labels=labels, run=file)
            seconds[name] = time.perf_counter() - start
            cpu[name] = time.process_time() - begin
        ratios.append(seconds["with"] / seconds["without"])
        work.append(cpu["with"] / cpu["without"])
    print(
        f"{'scoring with a run file / without':<44} {statistics.median(ratios):8.3f}   "
        f"({pairs} pairs of 640 × 384, {1000 * seconds['without'] / pairs:.2f} ms per pair)"
    )
    print(f"{'  the same for processor time':<44} {statistics.median(work):8.3f}")


if __name__ == "__main__":
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        overhead(Path(name))
        large(Path(name), images)
