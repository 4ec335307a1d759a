"""Every writer × type × byte order × compression gives its values, or an error with the fix."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
import tifffile
from PIL import Image

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float32")
SHAPE = (40, 50)
#: What needs a further package in the barest installation; all else is read by it.
FIX = "which needs pip install 'segiou[geo]' or imagecodecs"


def values(dtype, most=100):
    """Labels from −1 on, or 0 in unsigned types."""
    mask = np.random.default_rng(0).integers(0, most, SHAPE)
    return (mask - (dtype[0] in "if")).astype(dtype)


def of_tifffile(folder):
    packings = [None, "deflate", "packbits", "lzma", "lzw", "zstd"]
    packings = packings if find_spec("imagecodecs") else packings[:2]
    for packed, dtype, order, tile in product(packings, TYPES, "<>", (None, (16, 32))):
        for predictor in (False, True) if packed in ("deflate", "lzw", "zstd") else (False,):
            if predictor and (dtype == "int64" or (dtype, len(packings)) == ("float32", 2)):
                continue  # tifffile cannot write it
            name = f"tifffile-{packed}-{dtype}-{'le' if order == '<' else 'be'}-{tile}-{predictor}"
            mask = values(dtype)
            more = {"predictor": True} if predictor else {}
            tifffile.imwrite(
                folder / f"{name}.tif",
                mask,
                byteorder=order,
                compression=packed,
                tile=tile,
                photometric="minisblack",
                **more,
            )
            yield name, mask


def of_rasterio(folder):
    rasterio = pytest.importorskip("rasterio")
    packings = ("NONE", "LZW", "ZSTD", "DEFLATE", "PACKBITS", "LZMA", "LERC")
    for packed, dtype, order, tiled in product(packings, TYPES, ("LITTLE", "BIG"), (False, True)):
        if packed == "LERC" and dtype == "int64":
            continue
        for predictor in (1, 2) if packed in ("LZW", "ZSTD", "DEFLATE") else (1,):
            if predictor == 2 and dtype == "float32":
                continue
            name = f"rasterio-{packed}-{dtype}-{order}-{tiled}-{predictor}"
            mask = values(dtype)
            options = {"tiled": True, "blockxsize": 32, "blockysize": 16} if tiled else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # no georeference
                file = rasterio.open(
                    folder / f"{name}.tif",
                    "w",
                    driver="GTiff",
                    height=SHAPE[0],
                    width=SHAPE[1],
                    count=1,
                    dtype=dtype,
                    compress=packed,
                    ENDIANNESS=order,
                    predictor=predictor,
                    **options,
                )
            with file:
                file.write(mask, 1)
            yield name, mask


def of_pillow(folder):
    packings = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd", "lzma")
    for packed, mode in product(packings, ("L", "P", "I;16", "I", "F", "1")):
        name = f"pillow-{packed}-{mode.replace(';', '')}"
        dtype = {"I;16": "uint16", "I": "int32", "F": "float32"}.get(mode, "uint8")
        mask = values(dtype, 2 if mode == "1" else 100)
        image = Image.fromarray(mask == 1 if mode == "1" else mask)
        if mode == "P":
            image.putpalette(np.random.default_rng(1).integers(0, 256, 768).astype("u1").tobytes())
        image.save(folder / f"{name}.tif", compression=packed)
        yield name, mask
    image.save(folder / "pillow-group4.tif", compression="group4")
    yield "pillow-group4", mask


READ = """
import json, sys
from pathlib import Path

for module in sys.argv[2:]:
    sys.modules[module] = None  # as if it were not installed

import numpy as np
from segiou.masks.read import MaskError, open_mask
from segiou.masks.formats.tiff import open_tiff

def windowed(path):
    raw = open_tiff(path, 1)
    with raw.values as values:
        return values[:, :]

found = {}
for path in Path(sys.argv[1]).glob("*.tif"):
    expected = np.load(path.with_suffix(".npy"))
    for name, read in (("", lambda path: open_mask(path).values), (" windowed", windowed)):
        try:
            values = np.asarray(read(path))
        except MaskError as error:
            found[path.stem + name] = error.problem
        else:
            if not (values.shape == expected.shape and (values == expected).all()):
                found[path.stem + name] = f"WRONG: {values.dtype} {np.unique(values)[:3]}"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiffs")
    for write in (of_tifffile, of_rasterio, of_pillow):
        for name, mask in write(folder):
            np.save(folder / f"{name}.npy", mask)
    return folder


@pytest.mark.gate
@pytest.mark.parametrize(
    "absent", [(), ("imagecodecs",), ("rasterio",), ("imagecodecs", "rasterio")]
)
def test_every_tiff_gives_its_values_or_an_error_with_the_fix(files, absent):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, str(files), *absent],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    left = {"imagecodecs", "rasterio"} - {*absent}
    readers = [module for module in left if find_spec(module)]
    assert {name: problem for name, problem in found.items() if readers or FIX not in problem} == {}
