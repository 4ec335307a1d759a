"""Reading mask files: segiou's PNG reader compared with Pillow and OpenCV in one run.

Every figure includes opening and reading the file. ``bytes`` is the lower bound: the same files
read without decoding. The large masks are the small ones enlarged by nearest neighbour and saved
with Pillow's defaults.

    python -m pytest benchmarks/test_reading.py --benchmark-columns=median,iqr,rounds
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segiou.masks import read as reader

pytest.importorskip("pytest_benchmark")

SHARED = Path(__file__).parents[1].parent / "shared" / "data"
SETS = ["camvid 480 x 360", "camvid as 2048 x 1024", "davis 854 x 480"]


def read_bytes(path):
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib's detour would be measured too)
        return file.read()


def read_segiou(path):
    return reader.read_png(read_bytes(path)).values


def read_pillow(path):
    with Image.open(path) as image:
        return np.asarray(image)


def read_opencv(path):
    import cv2

    return cv2.imread(path, cv2.IMREAD_UNCHANGED)


READERS = {"segiou": read_segiou, "pillow": read_pillow, "opencv": read_opencv}


@pytest.fixture(scope="module")
def masks(tmp_path_factory):
    """Paths of the files of each set."""
    if not SHARED.is_dir():
        pytest.skip("the shared data are not here")
    small = sorted(SHARED.glob("camvid/truth/*.png"))
    small += sorted(SHARED.glob("camvid/small/*.png")) + sorted(SHARED.glob("camvid/base/*.png"))
    folder = tmp_path_factory.mktemp("large")
    large = [folder / f"{path.parent.name}_{path.name}" for path in small[::9]]
    for path, enlarged in zip(small[::9], large, strict=True):
        with Image.open(path) as image:
            image.resize((2048, 1024), Image.Resampling.NEAREST).save(enlarged)
    sets = (small, large, sorted(SHARED.glob("davis/*/*.png")))
    return {name: [str(path) for path in paths] for name, paths in zip(SETS, sets, strict=True)}


def read_all(read, paths):
    for path in paths:
        read(path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", SETS)
def test_reading(benchmark, masks, name, reader):
    paths = masks[name]
    benchmark.group = f"read {name}"
    if reader == "opencv":
        pytest.importorskip("cv2").setNumThreads(1)
    if reader == "segiou" and not reader.EXTENSION_BUILT:
        pytest.skip("the C extension of the PNG reader is not built")
    # OpenCV converts palette indices to colours, so its result is not compared.
    if not (reader == "opencv" and "davis" in name):
        for path in paths:
            np.testing.assert_array_equal(READERS[reader](path), read_pillow(path))
    benchmark.extra_info["files"] = len(paths)
    benchmark.pedantic(read_all, (READERS[reader], paths), rounds=9, warmup_rounds=1)


@pytest.mark.parametrize("name", SETS)
def test_the_floor(benchmark, masks, name):
    benchmark.group = f"read {name}"
    assert all(read_bytes(path).startswith(b"\x89PNG") for path in masks[name])
    benchmark.extra_info["files"] = len(masks[name])
    benchmark.pedantic(read_all, (read_bytes, masks[name]), rounds=9, warmup_rounds=1)
