"""Zarr stores, safetensors and Parquet files that declare or unpack to more than they need."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from mask_files import required

from segiou import DataError, MaskError
from segiou.masks import open_source
from segiou.scoring import inspect_folder

LABELS = np.random.default_rng(0).integers(0, 3, (9, 12)).astype(np.uint8)


def array_of(path, shape=(9, 12), chunks=None, kind="|u1", codec=None):
    """A zarr array of format 2 without any chunk."""
    about = {"zarr_format": 2, "shape": shape, "chunks": chunks or shape, "dtype": kind}
    about |= {"compressor": codec and {"id": codec}, "fill_value": 0, "order": "C", "filters": None}
    path.mkdir(parents=True, exist_ok=True)
    (path / ".zarray").write_text(json.dumps(about), encoding="utf-8")
    return path


def safetensors(path, shape):
    header = json.dumps({"a": {"dtype": "U8", "shape": shape, "data_offsets": [0, 0]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    return path


def read_all(root):
    source = open_source(root)
    return [np.asarray(source.read(path)[0].values[:, :]) for path in source.find().values()]


@pytest.mark.parametrize("number", [10**7, 10**9, 10**12])
def test_more_items_than_can_be_listed(tmp_path, number):
    required("zarr")
    store = array_of(tmp_path / "a.zarr", (number, 9, 12), (1, 9, 12))
    with pytest.raises(ValueError, match=f"declares {number} masks; at most 1048576"):
        open_source(store).find()
    with pytest.raises(DataError, match=f"declares {number} masks"):
        inspect_folder(store)


@pytest.mark.parametrize("shape", [(10**12, 0, 5), (0, 4), (0, 4, 4)])
def test_items_without_pixels(tmp_path, shape):
    required("zarr")
    required("safetensors")
    stores = [array_of(tmp_path / "a.zarr", shape, [max(1, n) for n in shape])]
    for store in (*stores, safetensors(tmp_path / "a.safetensors", shape)):
        with pytest.raises(ValueError, match="at least one pixel"):
            open_source(store).find()


def test_more_pixels_or_chunks_than_can_be_counted(tmp_path):
    required("zarr")
    store = array_of(tmp_path / "a.zarr", (10**6, 10**6), (10**4, 10**4))
    with pytest.raises(ValueError, match="at most 68719476736 pixels"):
        open_source(store).find()
    store = array_of(tmp_path / "b.zarr", (10**5, 10**5), (1, 1))
    with pytest.raises(MaskError, match="has 10000000000 chunks"):
        read_all(store)
    (problem,) = inspect_folder(store).problems
    assert "chunks" in problem.text


@pytest.mark.parametrize("chunks", [(1 << 20, 1 << 20), (1 << 14, 1 << 14)])
def test_chunks_much_larger_than_their_array(tmp_path, chunks):
    required("zarr")
    store = array_of(tmp_path / "a.zarr", chunks=chunks)
    with pytest.raises(MaskError, match="has chunks of"):
        read_all(store)


PACKERS = {
    "gzip": lambda data: gzip.compress(data, 1),
    "zlib": lambda data: zlib.compress(data, 1),
    "bz2": bz2.compress,
    "lzma": lambda data: lzma.compress(data, preset=0),
}


@pytest.mark.parametrize("codec", [*PACKERS, "zstd", "blosc"])
def test_chunks_that_unpack_to_more_than_they_hold(tmp_path, codec):
    required("zarr")
    codecs = required("numcodecs")
    packers = PACKERS | {"zstd": codecs.Zstd(1).encode, "blosc": codecs.Blosc().encode}
    store = array_of(tmp_path / "a.zarr", codec=codec)
    (store / "0.0").write_bytes(packers[codec](LABELS.tobytes()))
    assert np.array_equal(read_all(store)[0], LABELS)
    (store / "0.0").write_bytes(packers[codec](bytes(1 << 24)))
    with pytest.raises(MaskError, match="decompresses to"):
        read_all(store)


@pytest.mark.parametrize("place", ["start", "end"])
def test_chunks_of_shards_that_unpack_to_more_than_they_hold(tmp_path, place):
    zarr, crc32c = required("zarr"), required("google_crc32c")
    if not hasattr(zarr, "create_array"):
        pytest.skip("shards need zarr 3")
    shards = {"shape": (64, 64), "index_location": place}
    packed = zarr.codecs.GzipCodec()
    store = zarr.create_array(
        tmp_path / "a.zarr",
        shape=(64, 64),
        shards=shards,
        chunks=(32, 32),
        dtype="u1",
        compressors=packed,
    )
    store[:] = 7
    assert np.array_equal(read_all(tmp_path / "a.zarr")[0], np.full((64, 64), 7))
    good, bomb = gzip.compress(bytes(1024)), gzip.compress(bytes(1 << 26))
    at = 68 if place == "start" else 0
    places = [(at, len(good)), *[(at + len(good), len(bomb))] * 3]
    index = struct.pack("<8Q", *np.ravel(places))
    index += struct.pack("<I", crc32c.value(index))
    parts = [index, good, bomb] if place == "start" else [good, bomb, index]
    (tmp_path / "a.zarr" / "c" / "0" / "0").write_bytes(b"".join(parts))
    with pytest.raises(MaskError, match="decompresses to"):
        read_all(tmp_path / "a.zarr")


def test_chunks_of_zstd_without_their_size(tmp_path):
    """As written in a stream: the blocks tell at most how much they hold."""
    required("zarr")
    store = array_of(tmp_path / "a.zarr", codec="zstd")
    content = LABELS.tobytes()
    frame = b"\x28\xb5\x2f\xfd\0\x58"
    raw = (len(content) << 3 | 1).to_bytes(3, "little") + content
    (store / "0.0").write_bytes(frame + raw)
    with suppress(MaskError):  # old versions of its library need the size
        assert np.array_equal(read_all(store)[0], LABELS)
    repeated = (100000 << 3 | 2).to_bytes(3, "little") + b"\0"
    (store / "0.0").write_bytes(frame + repeated * 1000 + raw)
    with pytest.raises(MaskError, match="decompresses to"):
        read_all(store)


@pytest.mark.parametrize("what", ["pipe", "device", "large"])
@pytest.mark.parametrize("name", ["0.0", ".zattrs"])
def test_only_regular_files_are_opened(tmp_path, what, name):
    required("zarr")
    store = array_of(tmp_path / "a.zarr")
    file = store / name
    if what == "pipe":
        os.mkfifo(file)
    elif what == "device":
        file.symlink_to("/dev/zero")
    else:
        with file.open("wb") as opened:
            opened.truncate(1 << 40)
    with pytest.raises(ValueError, match=r"is not a regular file|more than"):
        read_all(store)


def test_groups_that_contain_themselves(tmp_path):
    zarr = required("zarr")
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    for name in ("again", "twice"):
        (tmp_path / "a.zarr" / name).symlink_to(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="links to a group that contains it"):
        open_source(tmp_path / "a.zarr").find()


def test_windows_of_stores_with_damaged_files(tmp_path):
    zarr = required("zarr")
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("m", shape=(9, 12), chunks=(4, 5), dtype="u1")[...] = LABELS
    files = [f for f in (tmp_path / "a.zarr").rglob("*") if f.is_file()]
    draw, refused = random.Random(0), 0
    for _ in range(50):
        file = draw.choice(files)
        whole = file.read_bytes()
        data = bytearray(whole)
        data[draw.randrange(len(data))] = draw.randrange(256)
        file.write_bytes(data)
        try:
            read_all(tmp_path / "a.zarr")
        except ValueError:
            refused += 1
        file.write_bytes(whole)
    assert refused > 5


@pytest.mark.parametrize("is_struct", [False, True])
@pytest.mark.gate
def test_tables_that_repeat_a_large_value(tmp_path, is_struct):
    """A file of a few kilobytes, whose rows would take 2 GB."""
    arrow = required("pyarrow", "SEGIOU_REQUIRE_EXTRAS")
    parquet = required("pyarrow.parquet", "SEGIOU_REQUIRE_EXTRAS")
    value = bytes(1 << 20)
    cells = arrow.DictionaryArray.from_arrays([0] * 2000, [value]).cast(arrow.binary())
    if is_struct:
        names = [f"{i}.png" for i in range(2000)]
        cells = arrow.StructArray.from_arrays([cells, arrow.array(names)], ["bytes", "path"])
    table = arrow.table({"id": arrow.array(range(2000)), "mask": cells})
    parquet.write_table(table, tmp_path / "a.parquet", dictionary_pagesize_limit=1 << 24)
    del table, cells
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    arrow.default_memory_pool().release_unused()
    source = open_source(tmp_path / "a.parquet")
    data, _ = source.read([*source.find().values()][-1])
    assert data == value
    assert arrow.total_allocated_bytes() < 1 << 26
