"""The memory that a pair of huge masks takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile

from segiou.counting import count_pairs

SLOW = os.environ.get("SEGIOU_SLOW") == "1"
SIDE = 32768 if SLOW else 4096
#: At full size one pair is 1 gigapixel a mask. Of the 300 MB most is Python and its libraries.
MOST_MEGABYTES = 300 if SLOW else 200


MEASURE = """
import json, sys, segiou
run = segiou.score_folder(sys.argv[1], sys.argv[2], labels=19, workers=1)
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([peak, run.total().pixels, run.total().matrix.tolist()]))
"""


def band(start: int, rows: int, side: int) -> np.ndarray:
    y, x = np.arange(start, start + rows)[:, None] // 97, np.arange(side)[None, :] // 83
    return ((7 * y + 3 * x) % 19).astype(np.uint8)


def tiles(side: int):
    for start in range(0, side, 256):
        rows = band(start, 256, side)
        for left in range(0, side, 256):
            yield rows[:, left : left + 256]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read in /proc")
@pytest.mark.gate
def test_a_pair_of_huge_masks_takes_little_memory(tmp_path):
    tifffile.imwrite(
        tmp_path / "t.tif",
        tiles(SIDE),
        shape=(SIDE, SIDE),
        dtype="u1",
        tile=(256, 256),
        compression="zlib",
        bigtiff=True,
    )
    with (tmp_path / "p.npy").open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (SIDE, SIDE)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, SIDE, 256):
            file.write(band(start + 11, 256, SIDE).tobytes())
    limit = SIDE * SIDE if SLOW else 1 << 20
    code = f"import segiou.masks.read; segiou.masks.read.WHOLE_PIXELS = {limit}\n"
    code += f"import segiou.scoring.open_mask as opened; opened._BIG_BYTES = {limit}\n" + MEASURE
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.tif"), str(tmp_path / "p.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    peak, pixels, matrix = json.loads(result.stdout)
    assert pixels == SIDE * SIDE
    want = sum(
        count_pairs(band(i, 256, SIDE), band(i + 11, 256, SIDE), 19)[:, :19]
        for i in range(0, SIDE, 256)
    )
    assert matrix == want.tolist()
    assert peak < MOST_MEGABYTES, f"{peak:.0f} MB"
