"""GeoTIFF: where pixels lie, which value is no data, overviews, and strips of any size."""

from __future__ import annotations

import json
import shutil
import struct
import sys
import zlib
from functools import partial

import numpy as np
import pytest
import tifffile
from mask_files import required

import segiou
from segiou import DataError, MaskError, read_mask
from segiou.cli.main import main
from segiou.masks import open_mask, open_windowed
from segiou.masks.formats.georeference import Raster

TRUTH = np.array([[0, 0, 1, 1], [0, 1, 1, 9]], np.uint8)
PRED = np.array([[0, 1, 1, 1], [0, 1, 1, 0]], np.uint8)
#: Without the last pixel, 4 of class 1 are in both, and 1 in the prediction only.
IOU = 4 / 5


def tags(*, corner=(500000.0, 4600000.0), size=10.0, epsg=32632, nodata=None, points=False):
    keys = [1, 1, 0, 2, 1025, 0, 1, 1 + points, 3072, 0, 1, epsg]
    found = [
        (33550, "d", 3, (size, size, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, *corner, 0.0), True),
        (34735, "H", len(keys), keys, True),
    ]
    return found if nodata is None else [*found, (42113, "s", 0, str(nodata), True)]


def write(path, mask, extratags=(), **options):
    path.parent.mkdir(exist_ok=True)
    options = {"photometric": "minisblack", **options}
    tifffile.imwrite(path, mask, extratags=extratags, **options)
    return path


@pytest.fixture
def pair(tmp_path):
    def make(truth, pred, masks=(TRUTH, PRED)):
        return (
            write(tmp_path / "truth" / "a.tif", masks[0], truth).parent,
            write(tmp_path / "pred" / "a.tif", masks[1], pred).parent,
        )

    return make


def iou(folders, **options):
    return segiou.score_folder(*folders, labels=2, **options).report().classes[1].iou


def test_no_data_of_the_truth_is_ignored_and_said(pair, capsys):
    folders = pair(tags(nodata=9), tags())
    with pytest.warns(UserWarning, match="a.tif: nodata value 9; truth pixels"):
        assert iou(folders) == IOU
    assert iou(folders, ignore=9) == IOU, "said by the user, it is no news"
    options = "--labels", "2", "--format", "json"
    assert main(["score", *map(str, folders), *options]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ignored"] == 1
    assert "nodata value 9" in err


def test_no_data_of_an_archive(pair, tmp_path):
    folders = pair(tags(nodata=9), tags())
    archive = shutil.make_archive(str(tmp_path / "truth"), "zip", folders[0])
    with pytest.warns(UserWarning, match="nodata value 9"):
        assert iou((archive, folders[1])) == IOU


def test_no_data_that_is_a_class_is_counted_and_said(pair):
    folders = pair(tags(nodata="0.0"), tags(), (np.minimum(TRUTH, 1), PRED))
    with pytest.warns(UserWarning, match="counted as class .0. because"):
        assert iou(folders) == 4 / 6


@pytest.mark.parametrize("nodata", ["nan", "-1.5", "none", "1e400", "-3.4e38"])
def test_no_data_that_is_no_integer_says_nothing_of_labels(pair, nodata):
    assert iou(pair(tags(nodata=nodata), tags()), ignore=9) == IOU


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"epsg": 32633}, "has coordinate system EPSG:32633, but its truth has EPSG:32632"),
        (
            {"corner": (500010.0, 4600000.0)},
            r"has pixels of 10 × -10 from \(500010, 4600000\), but its truth has pixels of 10",
        ),
        ({"size": 20.0}, "has pixels of 20 × -20 from"),
        ({"points": True}, r"from \(499995, 4600005\)"),
    ],
)
def test_rasters_that_lie_elsewhere_are_refused(pair, other, words):
    folders = pair(tags(), tags(**other))
    with pytest.raises(DataError, match=words):
        iou(folders, ignore=9)
    assert iou(folders, ignore=9, geometry="ignore") == IOU


def test_rasters_that_say_the_same_differently(pair):
    centers = tags(corner=(500005.0, 4599995.0), points=True)
    assert iou(pair(tags(), centers), ignore=9) == IOU
    matrix = (10.0, 0, 0, 500000.0, 0, -10.0, 0, 4600000.0, 0, 0, 0, 0, 0, 0, 0, 1)
    transform = [(34264, "d", 16, matrix, True)]
    assert iou(pair(tags(), transform), ignore=9) == IOU
    assert iou(pair(tags(), ()), ignore=9) == IOU, "a prediction that says nothing"


def test_a_smaller_prediction_of_the_same_place_may_be_resized(pair):
    truth = np.repeat(np.repeat(PRED, 2, axis=0), 2, axis=1)
    folders = pair(tags(size=5.0), tags(), (truth, PRED))
    assert iou(folders, resize_pred="nearest") == 1


@pytest.mark.parametrize("value", [(0.0,) * 6, (float("nan"),) * 6])
def test_places_that_make_no_sense_are_none(tmp_path, value):
    extra = [(33550, "d", 3, value[:3], True), (33922, "d", 6, value, True)]
    assert open_mask(write(tmp_path / "a.tif", PRED, extra)).raster == Raster()


def test_only_the_first_image_of_a_cog_is_the_mask(tmp_path):
    path = tmp_path / "cog.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(PRED, photometric="minisblack")
        file.write(PRED[::2, ::2], photometric="minisblack", subfiletype=1)
    assert read_mask(path).tolist() == PRED.tolist()
    with open_windowed(path, least=1).values as big:
        assert big[0:2, 0:4].tolist() == PRED.tolist()


@pytest.mark.parametrize(("kind", "words"), [(2, "contains 2 images"), (4, "validity mask")])
def test_other_pages_are_refused(tmp_path, kind, words):
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(PRED, photometric="minisblack")
        file.write(PRED, photometric="minisblack", subfiletype=2)
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages[1].tags[254].overwrite(kind)
    with pytest.raises(MaskError, match=words):
        read_mask(path)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_rasters_of_rasterio(tmp_path):
    rasterio = required("rasterio")
    from rasterio.transform import from_origin

    path = tmp_path / "a.tif"
    place = {"crs": "EPSG:32632", "transform": from_origin(500000, 4600000, 10, 10), "nodata": 9}
    profile = {"driver": "GTiff", "height": 2, "width": 4, "count": 1, "dtype": "uint8", **place}
    with rasterio.open(path, "w", **profile) as file:
        file.write(TRUTH, 1)
    found = open_mask(path)
    with rasterio.open(path) as file:
        np.testing.assert_array_equal(found.values, file.read(1))
        affine = tuple(file.transform)[:6]
    assert found.raster == Raster(9, affine, "EPSG:32632", metres=1.0)


@pytest.mark.parametrize("dtype", ["u1", ">u2", "<i4"])
@pytest.mark.parametrize("predictor", [False, True])
@pytest.mark.parametrize("rows", [40, 17])
def test_huge_deflated_strips_are_read_row_by_row(tmp_path, monkeypatch, dtype, predictor, rows):
    rng = np.random.default_rng(0)
    mask = rng.integers(0, 200, (40, 30)).astype(dtype)
    order = dtype[0] if dtype[0] in "<>" else "<"
    path = tmp_path / "a.tif"
    options = {"compression": "zlib", "rowsperstrip": rows, "byteorder": order}
    tifffile.imwrite(path, mask, predictor=predictor, **options)
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    monkeypatch.setattr("segiou.masks.formats.tiff._PART_BYTES", 7)
    with open_windowed(path, least=1).values as big:
        assert big.chunks == (1, 30)
        for top, bottom in ((0, 5), (5, 23), (22, 40), (3, 4)):
            np.testing.assert_array_equal(big[top:bottom, 2:29], mask[top:bottom, 2:29])


def test_a_huge_strip_that_is_cut_off_or_damaged_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    mask = np.random.default_rng(0).integers(0, 200, (40, 30)).astype("u1")
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, mask, compression="zlib", rowsperstrip=40)
    with tifffile.TiffFile(path) as file:
        start, count = file.pages[0].dataoffsets[0], file.pages[0].databytecounts[0]
    data = bytearray(path.read_bytes())
    data[start + count // 2 : start + count] = bytes(count - count // 2)
    path.write_bytes(data)
    with (
        open_windowed(path, least=1).values as big,
        pytest.raises(MaskError, match=r"is (a )?corrupt"),
    ):
        big[0:40, 0:30]


def test_a_huge_strip_that_holds_more_than_its_pixels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    path = tmp_path / "a.tif"
    options = {"compression": "zlib", "rowsperstrip": 40, "byteorder": "<"}
    tifffile.imwrite(path, np.zeros((40, 30), "u1"), **options)
    data = path.read_bytes()
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        start, tag = page.dataoffsets[0], page.tags[279]
    longer = zlib.compress(bytes(40 * 30 + 1))
    size = struct.pack("<H" if tag.dtype == 3 else "<I", len(longer))
    data = data[: tag.valueoffset] + size + data[tag.valueoffset + len(size) :]
    path.write_bytes(data[:start] + longer)
    with (
        open_windowed(path, least=1).values as big,
        pytest.raises(MaskError, match="more than its pixels"),
    ):
        big[0:40, 0:30]


@pytest.mark.parametrize("kept", [-1, -4, 9])
def test_a_huge_strip_that_is_cut_off_is_refused(tmp_path, monkeypatch, kept):
    """Also where only its checksum is missing."""
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    path = tmp_path / "a.tif"
    options = {"compression": "zlib", "rowsperstrip": 40, "byteorder": "<"}
    tifffile.imwrite(path, np.zeros((40, 30), "u1"), **options)
    with tifffile.TiffFile(path) as file:
        tag, count = file.pages[0].tags[279], file.pages[0].databytecounts[0]
    data = bytearray(path.read_bytes())
    shorter = count + kept if kept < 0 else kept
    struct.pack_into("<H" if tag.dtype == 3 else "<I", data, tag.valueoffset, shorter)
    path.write_bytes(data)
    with open_windowed(path, least=1).values as big, pytest.raises(MaskError, match="is too short"):
        big[0:40, 0:30]


def test_only_windows_of_a_large_remote_cog_are_fetched(tmp_path, monkeypatch):
    fsspec = required("fsspec", "SEGIOU_REQUIRE_EXTRAS")
    rng = np.random.default_rng(0)
    masks = {"truth": rng.integers(0, 3, (300, 200)), "pred": rng.integers(0, 3, (300, 200))}
    files = fsspec.filesystem("memory")
    for side, mask in masks.items():
        options = {"tile": (64, 64), "compression": "zlib"}
        path = write(tmp_path / side / "a.tif", mask.astype(np.uint8), tags(), **options)
        files.makedirs(f"/{side}", exist_ok=True)
        files.pipe_file(f"/{side}/a.tif", path.read_bytes())
    fetched = []
    whole = type(files).cat_file

    def cat_file(self, path, start=None, end=None, **more):
        fetched.append(end - start)
        return whole(self, path, start=start, end=end, **more)

    monkeypatch.setattr(type(files), "cat_file", cat_file)
    monkeypatch.setattr("segiou.scoring.open_mask._BIG_BYTES", 1)
    monkeypatch.setattr("segiou.masks.read.WHOLE_PIXELS", 1)
    run = segiou.score_folder("memory://truth", "memory://pred", labels=3)
    assert max(fetched) < 64 * 64, "one tile, packed"
    expected = segiou.score([masks["truth"]], [masks["pred"]], labels=3)
    assert run.total().matrix.tolist() == expected.total().matrix.tolist()


def gdal_tiff(path, mask, *, packed, dtype="uint8", **options):
    """A GeoTIFF as GDAL writes it."""
    rasterio = required("rasterio", "SEGIOU_REQUIRE_EXTRAS")
    place = rasterio.Affine(10, 0, 500000, 0, -10, 4600000)
    size = {"height": mask.shape[0], "width": mask.shape[1], "count": 1, "dtype": dtype}
    options = {"crs": "EPSG:32632", "transform": place, "compress": packed, **options}
    path.parent.mkdir(exist_ok=True)
    with rasterio.open(path, "w", driver="GTiff", **size, **options) as file:
        file.write(mask.astype(dtype), 1)
    return path


PACKED = ("LZW", "ZSTD", "LERC", "PACKBITS", "DEFLATE", "LZMA")
BLOCKS = {"tiled": True, "blockxsize": 16, "blockysize": 32}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64"])
@pytest.mark.parametrize("blocks", [{}, BLOCKS, {"blockysize": 70}])
def test_every_packing_of_gdal_is_read(tmp_path, monkeypatch, packed, dtype, blocks):
    if (packed, dtype) == ("LERC", "int64"):
        pytest.skip("LERC has no integers of 64 bits")
    mask = np.random.default_rng(0).integers(0, 100, (70, 90))
    predictor = 2 if packed in ("LZW", "ZSTD", "DEFLATE") else 1
    options = {"dtype": dtype, "predictor": predictor, **blocks}
    path = gdal_tiff(tmp_path / "a.tif", mask, packed=packed, **options)
    raw = open_mask(path)
    np.testing.assert_array_equal(raw.values, mask)
    assert raw.raster.crs == "EPSG:32632"
    # A piece counts as large, so that none is unpacked at once.
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    opened = open_windowed(path, least=1)
    assert opened.raster == raw.raster
    with opened.values as big:
        np.testing.assert_array_equal(big[3:70, 5:90], mask[3:70, 5:90])
        assert big[0:2, 0:3].dtype == dtype


def test_large_strips_are_scored_like_small_ones(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    masks = {"truth": rng.integers(0, 3, (300, 200)), "pred": rng.integers(0, 3, (300, 200))}
    for side, mask in masks.items():
        gdal_tiff(tmp_path / side / "a.tif", mask, packed="LZW", blockysize=300)
    expected = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_SEGMENT_BYTES", 100)
    monkeypatch.setattr("segiou.masks.read.WHOLE_PIXELS", 1)
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    assert run.total().matrix.tolist() == expected.total().matrix.tolist()


def hide(monkeypatch, *modules):
    """Make modules look uninstalled."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def test_several_huge_strips_are_refused(tmp_path, monkeypatch):
    hide(monkeypatch, "imagecodecs")
    path = gdal_tiff(tmp_path / "a.tif", np.ones((70, 90)), packed="LERC", blockysize=35)
    monkeypatch.setattr("segiou.masks.formats.tiff._MOST_BLOCK_BYTES", 35 * 90 - 1)
    with pytest.raises(MaskError, match="strips of 3150 bytes; save it in tiles"):
        open_windowed(path, least=1)


def test_packings_without_rasterio_name_the_extra(tmp_path, monkeypatch):
    path = gdal_tiff(tmp_path / "a.tif", TRUTH, packed="LERC")
    hide(monkeypatch, "rasterio", "imagecodecs")
    words = r"uses LERC compression, which needs pip install 'segiou\[geo\]'"
    for read in (open_mask, partial(open_windowed, least=1)):
        with pytest.raises(MaskError, match=words):
            read(path)


@pytest.mark.parametrize(("dtype", "order"), [("int8", "LITTLE"), ("int16", "BIG")])
def test_signed_values_keep_their_sign_or_name_the_extra(tmp_path, monkeypatch, dtype, order):
    mask = np.array([[-1, 0, 1], [2, 1, -1]])
    path = gdal_tiff(tmp_path / "a.tif", mask, packed="LZW", dtype=dtype, ENDIANNESS=order)
    np.testing.assert_array_equal(open_mask(path).values, mask)
    hide(monkeypatch, "rasterio", "imagecodecs")
    with pytest.raises(MaskError, match=r"needs pip install 'segiou\[geo\]' or imagecodecs"):
        open_mask(path)


@pytest.mark.parametrize("packed", ["LZW", "ZSTD"])
def test_packed_rasters_that_lie_elsewhere_are_refused(tmp_path, packed):
    gdal_tiff(tmp_path / "truth" / "a.tif", PRED, packed=packed)
    gdal_tiff(tmp_path / "pred" / "a.tif", PRED, packed=packed, crs="EPSG:32633")
    with pytest.raises(DataError, match="EPSG:32633, but its truth has EPSG:32632"):
        iou((tmp_path / "truth", tmp_path / "pred"))


@pytest.mark.parametrize("packed", ["LZW", "ZSTD", "LERC"])
def test_damaged_tiffs_of_gdal_are_refused(tmp_path, packed):
    mask = np.random.default_rng(0).integers(0, 100, (70, 90))
    path = gdal_tiff(tmp_path / "a.tif", mask, packed=packed)
    with tifffile.TiffFile(path) as file:
        start, count = file.pages[0].dataoffsets[0], file.pages[0].databytecounts[0]
    data = bytearray(path.read_bytes())
    data[start : start + count // 2] = bytes(count // 2)
    path.write_bytes(data)
    with pytest.raises(MaskError, match=r"damaged|is packed"):
        open_mask(path)
    with (
        open_windowed(path, least=1).values as big,
        pytest.raises(MaskError, match="is a corrupt TIFF"),
    ):
        big[0:70, 0:90]


@pytest.mark.parametrize("packed", ["LZW", "ZSTD"])
def test_windows_of_a_remote_cog_through_gdal(tmp_path, monkeypatch, packed):
    fsspec = required("fsspec", "SEGIOU_REQUIRE_EXTRAS")
    rng = np.random.default_rng(0)
    masks = {"truth": rng.integers(0, 3, (300, 200)), "pred": rng.integers(0, 3, (300, 200))}
    files = fsspec.filesystem("memory")
    for side, mask in masks.items():
        path = gdal_tiff(tmp_path / side / "a.tif", mask, packed=packed, **BLOCKS)
        files.makedirs(f"/{packed}/{side}", exist_ok=True)
        files.pipe_file(f"/{packed}/{side}/a.tif", path.read_bytes())
    monkeypatch.setattr("segiou.scoring.open_mask._BIG_BYTES", 1)
    monkeypatch.setattr("segiou.masks.read.WHOLE_PIXELS", 1)
    places = f"memory://{packed}/truth", f"memory://{packed}/pred"
    run = segiou.score_folder(*places, labels=3)
    expected = segiou.score([masks["truth"]], [masks["pred"]], labels=3)
    assert run.total().matrix.tolist() == expected.total().matrix.tolist()


@pytest.mark.parametrize("packed", ["NONE", *PACKED])
@pytest.mark.parametrize("bits", [1, 2, 4, 7, 8, 12])
@pytest.mark.parametrize("kind", ["MINISBLACK", "MINISWHITE"])
def test_values_are_those_of_gdal_however_they_are_stored(tmp_path, packed, bits, kind):
    rasterio = required("rasterio", "SEGIOU_REQUIRE_EXTRAS")
    if packed == "LERC" and bits not in (8,):
        pytest.skip("GDAL cannot write it")
    mask = np.random.default_rng(bits).integers(0, 1 << bits, (20, 30))
    dtype = "uint16" if bits > 8 else "uint8"
    options = {"NBITS": bits} if bits != 8 else {}
    path = gdal_tiff(
        tmp_path / "a.tif", mask, packed=packed, dtype=dtype, photometric=kind, **options
    )
    with rasterio.open(path) as file:
        expected = file.read(1)
    np.testing.assert_array_equal(expected, mask)
    np.testing.assert_array_equal(open_mask(path).values, expected)
    with open_windowed(path, least=1).values as big:
        np.testing.assert_array_equal(big[0:20, 0:30], expected)


def test_values_of_7_bits_without_rasterio_name_the_extra(tmp_path, monkeypatch):
    path = gdal_tiff(tmp_path / "a.tif", TRUTH, packed="DEFLATE", NBITS=7)
    hide(monkeypatch, "rasterio", "imagecodecs")
    for read in (open_mask, partial(open_windowed, least=1)):
        with pytest.raises(MaskError, match=r"uses 7-bit values and .*segiou\[geo\]"):
            read(path)


def test_a_sparse_tiff_is_refused_as_such(tmp_path):
    mask = np.kron([[0, 1], [0, 0]], np.ones((16, 16)))
    blocks = {"tiled": True, "blockxsize": 16, "blockysize": 16, "SPARSE_OK": True}
    path = gdal_tiff(tmp_path / "a.tif", mask, packed="DEFLATE", **blocks)
    with pytest.raises(MaskError, match=r"does not contain tile or strip 0 \(SPARSE_OK\)"):
        open_mask(path)


def test_floats_with_predictor_3_are_labels(tmp_path):
    mask = np.arange(600).reshape(20, 30) % 7
    path = gdal_tiff(tmp_path / "a.tif", mask, packed="DEFLATE", dtype="float32", PREDICTOR=3)
    np.testing.assert_array_equal(open_mask(path).values, mask)


def test_an_external_mask_is_refused_like_an_internal_one(tmp_path):
    path = gdal_tiff(tmp_path / "a.tif", TRUTH, packed="DEFLATE")
    (tmp_path / "a.tif.msk").write_bytes(path.read_bytes())
    for read in (open_mask, partial(open_windowed, least=1)):
        with pytest.raises(MaskError, match=r"external mask file \(\.msk\)"):
            read(path)


LAEA = "+proj=laea +lat_0={} +lon_0=10 +x_0=4321000 +y_0=3210000 +ellps=GRS80 +units=m"
#: Coordinate systems, and whether both place pixels alike.
SYSTEMS = [
    (LAEA.format(50), LAEA.format(50), True),
    (LAEA.format(50), LAEA.format(10), False),
    (LAEA.format(52), "EPSG:3035", True),
    (LAEA.format(50), "EPSG:3035", False),
    ("ESRI:102003", "ESRI:102008", False),
    ("EPSG:32632", "EPSG:32633", False),
]


@pytest.mark.parametrize(("first", "second", "is_same"), SYSTEMS)
def test_custom_coordinate_systems_are_compared(tmp_path, first, second, is_same):
    truth, pred = (
        open_mask(gdal_tiff(tmp_path / f"{i}.tif", TRUTH, packed="DEFLATE", crs=crs)).raster
        for i, crs in enumerate((first, second))
    )
    difference = truth.difference(pred, TRUTH.shape, TRUTH.shape)
    assert (difference is None) == is_same, difference


def test_custom_coordinate_systems_without_rasterio_name_the_extra(tmp_path, monkeypatch):
    truth, pred = (
        open_mask(gdal_tiff(tmp_path / f"{i}.tif", TRUTH, packed="DEFLATE", crs=crs)).raster
        for i, crs in enumerate((LAEA.format(50), LAEA.format(10)))
    )
    monkeypatch.setitem(sys.modules, "rasterio.warp", None)
    assert "segiou[geo]" in truth.difference(pred, TRUTH.shape, TRUTH.shape)
    assert truth.difference(truth, TRUTH.shape, TRUTH.shape) is None


def test_a_flipped_axis_shows_in_the_difference():
    truth = Raster(affine=(10.0, 0.0, 500.0, 0.0, -10.0, 900.0))
    pred = Raster(affine=(10.0, 0.0, 500.0, 0.0, 10.0, 900.0))
    text = truth.difference(pred, (4, 4), (4, 4))
    assert "10 × 10 from" in text
    assert "10 × -10 from" in text


def test_a_class_that_is_nodata_in_another_truth_file_is_an_error(tmp_path):
    for name, nodata in (("a", 9), ("b", 0)):
        write(tmp_path / "truth" / f"{name}.tif", TRUTH, tags(nodata=nodata))
        write(tmp_path / "pred" / f"{name}.tif", PRED, tags())
    folders = tmp_path / "truth", tmp_path / "pred"
    words = r"b\.tif: has nodata value 0, which is class '0', but the first truth file has 9"
    with pytest.warns(UserWarning, match="nodata value 9"), pytest.raises(DataError, match=words):
        segiou.score_folder(*folders, labels=2)


def test_nodata_of_a_prediction_is_missed_and_named_beside_other_values(pair):
    folders = pair(tags(), tags(nodata=9), (np.minimum(TRUTH, 1), TRUTH))
    assert segiou.score_folder(*folders, labels=2).report().unassigned.tolist() == [0, 1]
    other = np.where(PRED, 5, TRUTH).astype(np.uint8)
    folders = pair(tags(), tags(nodata=9), (np.minimum(TRUTH, 1), other))
    with pytest.raises(DataError, match="9 is the file's nodata value"):
        segiou.score_folder(*folders, labels=2)
