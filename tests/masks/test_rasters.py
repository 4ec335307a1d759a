"""Rasters that GDAL opens, floats with whole numbers, and nodata of predictions."""

from __future__ import annotations

import json
import math
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tifffile
from mask_files import required

import segiou
from segiou import DataError, MaskError, read_mask
from segiou.cli.main import main
from segiou.masks import open_mask, open_windowed, read as reading

TRUTH = np.array([[0, 0, 1, 1], [0, 1, 1, 9]], np.uint8)
PRED = np.array([[0, 1, 1, 1], [0, 1, 1, 0]], np.uint8)
DRIVERS = [("HFA", ".img", "uint8"), ("ENVI", ".dat", "int16"), ("AAIGrid", ".asc", "float32")]
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::DeprecationWarning"
)


@pytest.fixture
def write():
    rasterio = required("rasterio")
    from rasterio.transform import from_origin

    def write(path, mask, driver, dtype, nodata=9, bands=1, names=()):
        path.parent.mkdir(exist_ok=True)
        place = {"crs": "EPSG:32632", "transform": from_origin(500000, 4600000, 50, 50)}
        size = {"height": mask.shape[0], "width": mask.shape[1], "count": bands}
        kind = {"driver": driver, "dtype": dtype, "nodata": nodata}
        with rasterio.open(path, "w", **kind, **size, **place) as file:
            for band in range(1, bands + 1):
                file.write(mask.astype(dtype), band)
            for band, name in enumerate(names, 1):
                file.set_band_description(band, name)
        return path

    return write


@pytest.mark.parametrize(("driver", "ending", "dtype"), DRIVERS)
def test_rasters_are_read_with_their_place(tmp_path, write, driver, ending, dtype):
    path = write(tmp_path / f"a{ending}", TRUTH, driver, dtype)
    found = open_mask(path)
    np.testing.assert_array_equal(found.values, TRUTH)
    assert found.values.dtype.kind in "iu"
    assert (found.raster.nodata, found.raster.crs) == (9, "EPSG:32632")
    assert found.raster.pixel_areas(2).tolist() == [2500, 2500]
    big = open_windowed(path, least=1)
    with big.values as values:
        np.testing.assert_array_equal(values[1:2, 1:4], TRUTH[1:2, 1:4])
    assert open_windowed(path) is None


@pytest.mark.parametrize(("driver", "ending", "dtype"), DRIVERS)
@pytest.mark.parametrize("least", [reading.WHOLE_PIXELS, 1])
def test_folders_of_rasters_are_scored(tmp_path, write, driver, ending, dtype, least, monkeypatch):
    monkeypatch.setattr(reading, "WHOLE_PIXELS", least)
    write(tmp_path / "truth" / f"a{ending}", TRUTH, driver, dtype)
    write(tmp_path / "pred" / "a.tif", PRED, "GTiff", "uint8", nodata=None)
    with pytest.warns(UserWarning, match="nodata value 9"):
        run = segiou.score_folder(
            tmp_path / "truth", tmp_path / "pred", labels=2, measures=["area"]
        )
    # Class 1: 4 pixels in both, 1 in the prediction only.
    assert run.report().classes[1].iou == 4 / 5
    # Of the truth, 4 pixels of a quarter of a hectare.
    assert run.report().table("area").columns[0].values == (0.75, 1.0)


def test_a_virtual_raster(tmp_path, write):
    write(tmp_path / "tile.tif", TRUTH, "GTiff", "uint8")
    path = tmp_path / "map.vrt"
    path.write_text(
        '<VRTDataset rasterXSize="4" rasterYSize="2"><VRTRasterBand dataType="Byte" band="1">'
        '<SimpleSource><SourceFilename relativeToVRT="1">tile.tif</SourceFilename>'
        "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    np.testing.assert_array_equal(read_mask(path), TRUTH)


def test_bands_are_named(tmp_path, write):
    path = write(tmp_path / "a.img", TRUTH, "HFA", "uint8", bands=2, names=("forest", "water"))
    with pytest.raises(MaskError, match="2 bands") as caught:
        read_mask(path)
    assert "forest" in str(caught.value)
    assert "water" in str(caught.value)


def test_what_gdal_cannot_open_is_an_error(tmp_path):
    required("rasterio")
    path = tmp_path / "a.img"
    path.write_bytes(b"nothing of this kind" * 20)
    with pytest.raises(MaskError, match=r"a\.img: cannot be opened by GDAL"):
        read_mask(path)


@pytest.mark.parametrize("least", [1 << 20, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_with_whole_numbers_are_labels(tmp_path, dtype, least):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, TRUTH.astype(dtype), photometric="minisblack")
    np.testing.assert_array_equal(read_mask(path), TRUTH)
    big = open_windowed(path, least=1)
    with big.values as values:
        assert values.dtype.kind == "i"
        np.testing.assert_array_equal(values[0:2, 0:4], TRUTH)


@pytest.mark.parametrize("value", [1.5, math.nan, math.inf, 1e300])
def test_other_floats_are_named_with_their_pixel(tmp_path, value):
    path = tmp_path / "a.tif"
    mask = TRUTH.astype(np.float64)
    mask[1, 2] = value
    tifffile.imwrite(path, mask, photometric="minisblack")
    with pytest.raises(MaskError, match="row 1, column 2") as caught:
        read_mask(path)
    assert f"{value:g}" in str(caught.value)
    big = open_windowed(path, least=1)
    with big.values as values, pytest.raises(MaskError, match="row 1, column 2"):
        values[1:2, 1:4]


@pytest.mark.parametrize("nodata", ["nan", "-3.4028234663852886e+38", "-9999"])
def test_nodata_of_floats_is_ignored(tmp_path, nodata):
    mask = TRUTH.astype(np.float32)
    mask[1, 3] = np.float32(nodata)
    tags = [(42113, "s", 0, nodata, True)]
    for side, values in (("truth", mask), ("pred", PRED)):
        (tmp_path / side).mkdir()
        own = tags if side == "truth" else []
        path = tmp_path / side / "a.tif"
        tifffile.imwrite(path, values, photometric="minisblack", extratags=own)
    with pytest.warns(UserWarning, match="nodata value"):
        run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2)
    assert run.report().classes[1].iou == 4 / 5
    assert run.report().ignored == 1


@pytest.mark.parametrize("measures", [[], ["boundary", "objects"]])
def test_nodata_of_a_prediction_is_missed(tmp_path, measures):
    truth = np.where(TRUTH == 9, 1, TRUTH)
    pred = PRED.copy()
    pred[0, 2] = 255
    for side, values, nodata in (("truth", truth, None), ("pred", pred, 255)):
        (tmp_path / side).mkdir()
        tags = [] if nodata is None else [(42113, "s", 0, str(nodata), True)]
        path = tmp_path / side / "a.tif"
        tifffile.imwrite(path, values, photometric="minisblack", extratags=tags)
    given = tmp_path / "truth", tmp_path / "pred"
    report = segiou.score_folder(*given, labels=2, measures=measures).report()
    # Of 5 pixels of class 1, 3 are found, 1 is nodata and 1 is class 0.
    assert report.classes[1].recall == 3 / 5
    assert report.unassigned.tolist() == [0, 1]
    pred[0, 0] = 7
    tifffile.imwrite(path, pred, photometric="minisblack", extratags=tags)
    with pytest.raises(DataError, match="7"):
        segiou.score_folder(*given, labels=2)


@pytest.mark.needs("maps")
def test_map_accuracy_reads_rasters(tmp_path, write, capsys):
    path = write(tmp_path / "map.img", TRUTH, "HFA", "uint8")
    sample = tmp_path / "sample.csv"
    sample.write_text("map,reference\n0,0\n0,0\n1,1\n1,0\n")
    assert main(["map-accuracy", str(sample), "--areas", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["mapped_area"] for row in found["classes"]] == [0.75, 1.0]


@pytest.fixture
def many_switches():
    """Threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_keep_the_filters_of_warnings(tmp_path, many_switches):
    """A raster without a place warns of it, which is an error by ``python -W error``."""
    rasterio = required("rasterio")
    size = {"height": 2, "width": 4, "count": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(tmp_path / "a.img", "w", driver="HFA", dtype="uint8", **size) as file:
            file.write(TRUTH, 1)
    before = [*warnings.filters]
    with ThreadPoolExecutor(8) as pool:
        masks = [*pool.map(read_mask, [tmp_path / "a.img"] * 400)]
    assert all((mask == TRUTH).all() for mask in masks)
    assert warnings.filters == before
