"""Areas of classes from georeferenced masks, in every output."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
import tifffile

import segiou
from segiou import DataError

#: Pixels of 50 m: a quarter of a hectare.
TRUTH = np.array([[0, 0, 1, 1], [0, 1, 1, 9]], np.uint8)
PRED = np.array([[0, 1, 1, 1], [0, 1, 1, 0]], np.uint8)


def write(path, mask, *, key=3072, epsg=32632, corner=(500000.0, 4600000.0), size=50.0):
    path.parent.mkdir(exist_ok=True)
    keys = [1, 1, 0, 2, 1025, 0, 1, 1, key, 0, 1, epsg]
    tags = [
        (33550, "d", 3, (size, size, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, *corner, 0.0), True),
        (34735, "H", len(keys), keys, True),
    ]
    tifffile.imwrite(path, mask, extratags=tags, photometric="minisblack")


@pytest.fixture
def folders(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "truth" / f"{name}.tif", TRUTH)
        write(tmp_path / "pred" / f"{name}.tif", PRED)
    return tmp_path / "truth", tmp_path / "pred"


def test_areas_of_projected_masks(folders):
    run = segiou.score_folder(*folders, labels=["sea", "land"], ignore=9, measures=["area"])
    table = run.report().table("area")
    # Of 7 valid pixels per image, 3 and 4 in the truth, 2 and 5 in the prediction.
    columns = {column.name: column.values for column in table.columns}
    assert columns["area_truth"] == (1.5, 2.0)
    assert columns["area_pred"] == (1.0, 2.5)
    assert columns["area_difference"] == (-0.5, 0.5)
    assert columns["area_error"] == pytest.approx((1 / 3, 1 / 4))
    assert run.report().score("area_error", "land") == pytest.approx(1 / 4)


def test_areas_reach_every_output(folders, tmp_path, command):
    words = *folders, "--labels", "2", "--ignore", "9", "--area", "--quiet"
    code, text, _ = command("score", *words, "--run", tmp_path / "run.sqlite")
    assert code == 0
    assert "truth, ha" in text
    code, text, _ = command("report", tmp_path / "run.sqlite", "--format", "json")
    found = json.loads(text)
    assert found["area"]["scores"] == [
        *("area_truth", "area_pred", "area_difference", "area_error"),
    ]
    assert found["scores"]["area_truth"]["unit"] == "ha"
    assert found["scores"]["area_difference"]["rows"]["1"]["value"] == 0.5
    _, text, _ = command("report", tmp_path / "run.sqlite", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["area_truth"]) for row in rows] == [1.5, 2.0]
    page = tmp_path / "page.html"
    options = "--html", page, "--per-image", tmp_path / "images.csv"
    assert command("report", tmp_path / "run.sqlite", *options)[0] == 0
    assert "Difference, ha" in page.read_text(encoding="utf-8")
    images = list(csv.DictReader((tmp_path / "images.csv").read_text("utf-8").splitlines()))
    assert [float(row["area_pred:1"]) for row in images] == [1.25, 1.25]
    assert command("score", *words, "--fail-over", "area_error=1.5")[0] == 0
    code, _, noted = command("score", *words, "--fail-over", "area_error=0.2")
    assert code == 1
    assert "area_error" in noted


def test_areas_of_degrees_follow_the_latitude(tmp_path):
    place = {"key": 2048, "epsg": 4326, "corner": (10.0, 60.0), "size": 1.0}
    mask = np.array([[0, 0], [1, 1]], np.uint8)
    write(tmp_path / "truth" / "a.tif", mask, **place)
    write(tmp_path / "pred" / "a.tif", mask, **place)
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2, measures=["area"])
    north, south = run.report().table("area").columns[0].values
    # About cos 59.5° and cos 58.5° of 12 390 km² for a square degree, on an ellipsoid.
    assert north / south == pytest.approx(np.cos(np.radians(59.5)) / np.cos(np.radians(58.5)), 1e-3)
    assert 6.2e5 < north / 2 < 6.4e5


def test_masks_without_a_place_are_an_error_if_areas_are_required(tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        tifffile.imwrite(tmp_path / side / "a.tif", PRED, photometric="minisblack")
    given = tmp_path / "truth", tmp_path / "pred"
    with pytest.raises(DataError, match="not georeferenced"):
        segiou.score_folder(*given, labels=2, measures=["area"])
    measure = segiou.measures.area.AreaOptions(required=False)
    table = segiou.score_folder(*given, labels=2, measures=[measure]).report().table("area")
    assert np.isnan(table.columns[0].values).all()
    assert "pixel area of 1 mask is unknown" in table.note


def test_columns_of_maps_have_areas_if_masks_have_a_place(folders, tmp_path, command):
    from PIL import Image

    words = "--labels", "2", "--ignore", "9", "--quiet", "--columns", "map"
    code, text, _ = command("score", *folders, *words)
    assert code == 0
    assert "user's accuracy" in text
    assert re.search(r"^0 .*1\.50 +1\.00 +−0\.50", text, re.MULTILINE)
    for side, mask in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / "plain" / side).mkdir(parents=True)
        Image.fromarray(mask).save(tmp_path / "plain" / side / "a.png")
    code, text, _ = command("score", *sorted((tmp_path / "plain").iterdir())[::-1], *words)
    assert code == 0
    assert "pixel area of 1 mask is unknown" in text


def test_areas_of_millimetres_are_not_rounded(tmp_path):
    for side, mask in (("truth", TRUTH), ("pred", PRED)):
        write(tmp_path / side / "a.tif", mask, size=2.0**-10)
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels=["sea", "land"], ignore=9, measures=["area"])
    columns = {column.name: column.values for column in run.report().table("area").columns}
    assert columns["area_truth"] == (3 * 2.0**-20 / 10_000, 4 * 2.0**-20 / 10_000)
    assert columns["area_error"] == pytest.approx((1 / 3, 1 / 4))


@pytest.mark.parametrize("size", [1e8, 1e200])
def test_masks_larger_than_the_earth_are_named(tmp_path, size):
    for side in ("truth", "pred"):
        write(tmp_path / side / "a.tif", TRUTH, size=size)
    folders = tmp_path / "truth", tmp_path / "pred"
    with pytest.raises(DataError, match="more than the Earth; correct its georeference"):
        segiou.score_folder(*folders, labels=2, ignore=9, measures=["area"])
