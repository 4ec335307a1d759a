"""Score every case of the corpus, and report scores that are wrong, slow or too large.

    python tests/hostile/campaign.py [--cases 12000] [--seed 0]

Memory is limited (exceeding it is an error like any other), each case is timed,
and a score is only accepted if a second reader agrees. The last line is JSON:
cases, scored, refused, and everything that went wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from corpus import Case, cases, labels
from strict_images import has_all_rows, strict_pgm
from strict_tiff import strict_tiff

from segiou.labels import ClassOptions
from segiou.masks import Pair
from segiou.runs import Header, ImageCount
from segiou.scoring import PairScorer

MEGABYTES = 3000
SECONDS = 5.0
#: As many classes as there are values, so that no value is refused for itself.
CLASSES = 256


def independent(data: bytes) -> np.ndarray | None:
    """What somebody else reads in the file; None if nothing."""
    try:
        if data[:6] == b"\x93NUMPY":
            return np.load(io.BytesIO(data), allow_pickle=False)
        if data[:2] in (b"II", b"MM"):
            return strict_tiff(data)
        if data[:2] in (b"P2", b"P5"):
            return strict_pgm(data)
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            if image.format == "PNG" and not has_all_rows(data):
                return None
            return np.asarray(image)
    except Exception:  # noqa: BLE001 - whatever else reads it may raise what it likes
        return None


def dishonest(case: Case, result: ImageCount) -> str:
    """Why a score cannot be right; empty if it can."""
    truth = labels()
    pred = case.sound.labels
    if case.checked:
        known = pred
    else:
        read = independent(case.data)
        if read is None and case.name.endswith((".png", ".pgm")):
            return "a score of a file that nobody else can read"
        known = pred if read is None else read
        if known.shape != truth.shape:
            return "a score of a file that nobody else can read"
    table = np.zeros((CLASSES, CLASSES + 1), dtype=np.int64)
    table.ravel()[result.cells] = result.values
    want = np.zeros_like(table)
    inside = (known >= 0) & (known < CLASSES)
    np.add.at(want, (truth[inside], known[inside].astype(int)), 1)
    np.add.at(want, (truth[~inside], CLASSES), 1)
    if result.pixels != truth.size or not np.array_equal(table, want):
        return "a number that is not of what the file holds"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faulthandler.enable()
    # Room for the threads that libraries start; what a file makes us take comes on top.
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", ".* compiled modules are missing")
    with suppress(ImportError):
        import_module("rasterio")  # here, or the first TIFF for GDAL would be slow
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Image.fromarray(labels()).save(folder / "truth.png")
        scorer = PairScorer(Header(ClassOptions.of(CLASSES, unassigned="count")))
        for case in cases(options.cases, options.seed):
            path = folder / case.name
            path.write_bytes(case.data)
            # Long ago, or reading waits for the clock to move on.
            os.utime(path, (1e9, 1e9))
            faulthandler.dump_traceback_later(60, exit=True)
            begin = time.perf_counter()
            [result] = scorer([Pair("x", str(folder / "truth.png"), str(path))])
            seconds = time.perf_counter() - begin
            slowest = max(slowest, seconds)
            if isinstance(result, ImageCount):
                outcomes["scored"] += 1
                if why := dishonest(case, result):
                    wrong.append(f"{case.name} ({case.how}): {why}")
            else:
                outcomes["refused"] += 1
                if [problem.where for problem in result] != [str(path)]:
                    wrong.append(f"{case.name} ({case.how}): names {result}")
                if any("Error:" in p.text and "cannot be read:" in p.text for p in result):
                    outcomes["refused for a reason that no reader foresaw"] += 1
            if seconds > SECONDS:
                wrong.append(f"{case.name} ({case.how}): {seconds:.1f} s")
            path.unlink()
        faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    summary = {"cases": options.cases, **outcomes, "wrong": wrong[:40], "num_wrong": len(wrong)}
    print(json.dumps({**summary, "slowest": round(slowest, 3), "peak_mb": round(peak)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
