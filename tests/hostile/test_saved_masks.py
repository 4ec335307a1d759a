"""Damaged files of segments, tables and rasters are refused, and give no other error."""

from __future__ import annotations

import json
import os
import random
import re
import zlib
from base64 import b64encode

import numpy as np
import pytest
import tifffile
from mask_files import png, required

import segiou
from segiou.masks import open_mask, open_source, open_windowed
from segiou.masks.read import from_bytes, to_labels

LABELS = segiou.LabelSet.from_names(["background", "car", "tree"], ignore=255)
BRUSH = [0, 0, 0, 16, 57, 35, 127, 192, 0]
SIZE = {"original_width": 2, "original_height": 2}
RESULTS = [
    {"type": "brushlabels", **SIZE, "value": {"rle": BRUSH, "brushlabels": ["car"]}},
    {
        "type": "polygonlabels",
        **SIZE,
        "value": {"points": [[0, 0], [50, 0], [50, 50]], "polygonlabels": ["tree"]},
    },
]
SEEDS = {
    "results": [
        {"image_id": 1, "category_id": 3, "segmentation": {"size": [4, 5], "counts": "0d"}}
    ],
    "annotations": {
        "images": [{"id": 1, "height": 4, "width": 5, "file_name": "a.jpg"}],
        "annotations": [
            {"image_id": 1, "category_id": 3, "segmentation": [[0, 0, 3, 0, 3, 3]]},
        ],
        "categories": [{"id": 3, "name": "x"}],
    },
    "labelme": {
        "imageHeight": 8,
        "imageWidth": 9,
        "shapes": [
            {"label": "car", "points": [[1, 1], [4, 4], [2, 5]], "shape_type": "polygon"},
            {"label": "tree", "points": [[1, 1], [4, 4]], "shape_type": "circle"},
        ],
    },
    "supervisely": {
        "size": {"height": 8, "width": 9},
        "objects": [
            {
                "classTitle": "car",
                "geometryType": "polygon",
                "points": {
                    "exterior": [[0, 0], [5, 0], [5, 6]],
                    "interior": [[[1, 1], [2, 1], [2, 2]]],
                },
            },
            {
                "classTitle": "tree",
                "geometryType": "bitmap",
                "bitmap": {
                    "data": b64encode(zlib.compress(png(np.eye(3)))).decode(),
                    "origin": [1, 2],
                },
            },
        ],
    },
    "project of supervisely": {"classes": [{"title": "car", "color": "#0A141E"}], "tags": []},
    "via": {
        "a.png9": {
            "filename": "a.png",
            "size": 9,
            "regions": [
                {
                    "shape_attributes": {"name": "rect", "x": 1, "y": 1, "width": 2, "height": 3},
                    "region_attributes": {"class": "car"},
                },
                {
                    "shape_attributes": {
                        "name": "ellipse",
                        "cx": 4,
                        "cy": 4,
                        "rx": 3,
                        "ry": 2,
                        "theta": 1.5,
                    },
                    "region_attributes": {"class": {"tree": True}},
                },
                {
                    "shape_attributes": {
                        "name": "polygon",
                        "all_points_x": [1, 4, 4],
                        "all_points_y": [1, 2, 5],
                    },
                    "region_attributes": {"class": "car"},
                },
            ],
            "file_attributes": {},
        }
    },
    "label studio": [{"data": {"image": "a.jpg"}, "annotations": [{"result": RESULTS}]}],
}
OTHERS = ["null", "-1", "1e999", "[]", "{}", '"x"', "NaN", "99999999999999999999", "true", ""]
VALUES = re.compile(r'-?\d+(?:\.\d+)?|"[^"]*"(?!:)')
TOKENS = re.compile(r'-?\d+(?:\.\d+)?|"[^"]*"|[][{}:,]')


def read_all(place):
    source = open_source(place)
    for path in source.find().values():
        to_labels(from_bytes(source.read(path)[0], path), path, LABELS)


def refused_or_read(read, *arguments):
    try:
        read(*arguments)
    except ValueError as error:
        return bool(str(error))
    return False


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.gate
def test_json_with_another_value_somewhere(tmp_path, seed):
    draw, whole, path = random.Random(0), json.dumps(SEEDS[seed]), tmp_path / "a.json"
    (tmp_path / "a.png").write_bytes(png(np.zeros((8, 9))))
    refused = 0
    for case in range(300):
        # Half of the cases stay JSON.
        tokens = draw.choice((TOKENS, VALUES))
        start, end = draw.choice([match.span() for match in tokens.finditer(whole)])
        path.write_text(whole[:start] + draw.choice(OTHERS) + whole[end:])
        os.utime(path, ns=(case, case))
        refused += refused_or_read(read_all, path)
        refused_or_read(segiou.load_labels, path)
    assert refused > 100


def damaged(draw, whole, last):
    data = bytearray(whole)
    for _ in range(draw.choice((1, 2, 4))):
        data[draw.randrange(last)] = draw.randrange(256)
    return bytes(data)


def test_tables_with_damaged_bytes(tmp_path):
    arrow = required("pyarrow", "SEGIOU_REQUIRE_EXTRAS")
    parquet = required("pyarrow.parquet", "SEGIOU_REQUIRE_EXTRAS")
    path = tmp_path / "a.parquet"
    rows = [{"bytes": png(np.eye(9)), "path": f"{name}.png"} for name in "ab"]
    parquet.write_table(arrow.table({"mask": rows}), path)
    draw, whole = random.Random(0), path.read_bytes()
    refused = 0
    for case in range(300):
        path.write_bytes(damaged(draw, whole, len(whole)))
        os.utime(path, ns=(case, case))
        refused += refused_or_read(read_all, path)
    assert refused > 50


# rasterio cannot log what GDAL says of damaged text, and says that it ignores this.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("packed", ["LZW", "ZSTD", "LERC", "LZMA"])
@pytest.mark.parametrize("blocks", [{}, {"tiled": True, "blockxsize": 16, "blockysize": 16}])
def test_rasters_of_gdal_with_damaged_bytes(tmp_path, monkeypatch, packed, blocks):
    rasterio = required("rasterio", "SEGIOU_REQUIRE_EXTRAS")
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    path = tmp_path / "a.tif"
    mask = np.random.default_rng(0).integers(0, 4, (40, 50)).astype(np.uint8)
    options = {"height": 40, "width": 50, "count": 1, "dtype": "uint8", "compress": packed}
    options["transform"] = rasterio.Affine(10, 0, 500000, 0, -10, 4600000)
    with rasterio.open(path, "w", driver="GTiff", **options, **blocks) as file:
        file.write(mask, 1)
        file.write_colormap(1, {value: (value, 9, 9) for value in range(4)})
    draw, whole = random.Random(0), path.read_bytes()

    def window():
        if (big := open_windowed(path, least=1)) is not None:
            with big.values as pixels:
                pixels[0 : min(pixels.shape[0], 99), 0 : min(pixels.shape[1], 99)]

    refused = 0
    for case in range(60):
        path.write_bytes(damaged(draw, whole, 300 if case % 2 else len(whole)))
        refused += refused_or_read(open_mask, path)
        refused_or_read(window)
        refused_or_read(segiou.load_labels, path)
    assert refused > 5


@pytest.mark.parametrize("options", [{"rowsperstrip": 20}, {"tile": (16, 16)}])
@pytest.mark.gate
def test_rasters_with_damaged_tags(tmp_path, monkeypatch, options):
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    path = tmp_path / "a.tif"
    tags = [
        (33550, "d", 3, (10.0, 10.0, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, 5e5, 4e6, 0.0), True),
        (34735, "H", 8, (1, 1, 0, 1, 3072, 0, 1, 32632), True),
        (42113, "s", 0, "9", True),
    ]
    mask = np.random.default_rng(0).integers(0, 4, (20, 30)).astype(np.uint8)
    tifffile.imwrite(path, mask, compression="zlib", extratags=tags, **options)
    draw, whole = random.Random(0), path.read_bytes()

    def window():
        if (big := open_windowed(path, least=1)) is not None:
            with big.values as pixels:
                pixels[0 : min(pixels.shape[0], 99), 0 : min(pixels.shape[1], 99)]

    refused = 0
    for _ in range(300):
        path.write_bytes(damaged(draw, whole, 400))
        refused += refused_or_read(open_mask, path)
        refused_or_read(window)
    assert refused > 50
