"""Masks larger than memory are counted window by window, to the same integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, strategies as st
from PIL import Image

import segiou
from segiou import DataError, MaskError
from segiou.counting import Encoding, UndeclaredValuesError, count_pairs, count_windows
from segiou.labels import ClassOptions
from segiou.masks import ResizedMask, open_windowed, read as reading, window_slices
from segiou.scoring import open_mask, pair


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
    st.integers(1, 50),
    st.booleans(),
    st.data(),
)
def test_windows_cover_everything_once(shape, pixels, chunked, data):
    steps = tuple(data.draw(st.integers(1, 5)) for _ in shape) if chunked else None
    seen = np.zeros(shape, dtype=int)
    for window in window_slices(shape, steps, pixels):
        seen[window] += 1
        if steps is None:
            assert seen[window].size <= pixels
        else:
            # Whole chunks: begun at their edges.
            assert all(part.start % step == 0 for part, step in zip(window, steps, strict=True))
    assert (seen == 1).all()


def labels_of(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 5, shape, dtype=np.uint8)


@pytest.mark.parametrize("pixels", [1, 7, 64, 10_000])
def test_windows_count_as_the_whole(pixels):
    truth, pred = labels_of((37, 23)), labels_of((37, 23), 1)
    truth[0, 0] = 255
    encoding = Encoding.of_classes(ClassOptions.of(5, ignore=255))
    count = count_windows(encoding, truth, pred, pixels=pixels)
    assert count.table.tolist() == count_pairs(truth, pred, 5, ignore=255).tolist()
    assert count.ignored == 1


def test_undeclared_values_are_those_of_all_windows():
    truth, pred = labels_of((20, 10)), labels_of((20, 10), 1)
    pred[3, 3], pred[17, 2], pred[18, 2] = 77, 78, 77
    with pytest.raises(UndeclaredValuesError) as caught:
        count_windows(Encoding.of_classes(ClassOptions.of(5)), truth, pred, pixels=20)
    assert (caught.value.side, caught.value.values) == ("pred", {77: 2, 78: 1})
    truth[19, 9] = 99
    with pytest.raises(UndeclaredValuesError) as caught:
        count_windows(Encoding.of_classes(ClassOptions.of(5)), truth, pred, pixels=20)
    assert (caught.value.side, caught.value.values) == ("truth", {99: 1})
    with pytest.raises(ValueError, match=r"truth has shape \(20, 10\) but pred has \(5, 5\)"):
        count_windows(Encoding.of_classes(ClassOptions.of(5)), truth, labels_of((5, 5)))


@pytest.fixture
def all_big(monkeypatch):
    """Take every TIFF and .npy file for one that does not fit into memory."""

    monkeypatch.setattr(reading, "WHOLE_PIXELS", 1)
    monkeypatch.setattr(open_mask, "_BIG_BYTES", 1)
    # Else files that are not quite new are read ahead, all at once.
    for module in (open_mask, pair):
        monkeypatch.setattr(module, "is_packed", lambda path: True)


WRITERS = {
    "tiled.tif": {"tile": (16, 32), "compression": "zlib"},
    "predicted.tif": {"tile": (16, 16), "compression": "zlib", "predictor": 2},
    "striped.tif": {"rowsperstrip": 7, "compression": "zlib"},
    "open.tif": {"rowsperstrip": 7},
    "one-strip.tif": {"rowsperstrip": 1000},
    "big-endian.tif": {"tile": (32, 16), "byteorder": ">", "bigtiff": True},
}


def write(path: Path, values) -> Path:
    if path.suffix == ".npy":
        np.save(path, np.asfortranarray(values) if "fortran" in path.name else values)
    elif path.suffix == ".png":
        Image.fromarray(values).save(path)
    else:
        tifffile.imwrite(path, values, **WRITERS[path.name])
    return path


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("name", [*WRITERS, "c.npy", "fortran.npy"])
def test_files_are_read_by_windows(tmp_path, name, dtype, all_big):
    values = labels_of((61, 75)).astype(dtype)
    path = write(tmp_path / name, values)
    with open_windowed(path).values as mask:
        assert mask.shape == (61, 75)
        for window in [*window_slices((61, 75), mask.chunks, 500), np.s_[3:58, 20:21]]:
            np.testing.assert_array_equal(mask[window], values[window])


@pytest.mark.few(4)
@pytest.mark.parametrize("truth", ["tiled.tif", "open.tif", "fortran.npy"])
@pytest.mark.parametrize("pred", ["striped.tif", "c.npy", "small.png"])
def test_pairs_of_large_files_score_like_small_ones(tmp_path, truth, pred, all_big):
    a, b = labels_of((61, 75)), labels_of((61, 75), 1)
    (tmp_path / "t").mkdir()
    (tmp_path / "p").mkdir()
    write(tmp_path / "t" / truth, a).rename(tmp_path / "t" / f"x{Path(truth).suffix}")
    write(tmp_path / "p" / pred, b).rename(tmp_path / "p" / f"x{Path(pred).suffix}")
    run = segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=5)
    assert run.total() == segiou.ConfusionMatrix(5).update(a, b)


def test_colour_tiff_by_windows(tmp_path, all_big):
    values = labels_of((40, 48)) % 2
    colors = np.array([[0, 0, 0], [255, 0, 0]], dtype=np.uint8)[values]
    tifffile.imwrite(tmp_path / "t.tif", colors, tile=(16, 16), photometric="rgb")
    np.save(tmp_path / "p.npy", values)
    (tmp_path / "labels.toml").write_text(
        '[[classes]]\nname = "no"\nvalues = [0]\ncolors = ["#000000"]\n'
        '[[classes]]\nname = "yes"\nvalues = [1]\ncolors = ["#ff0000"]\n'
    )
    run = segiou.score_folder(
        tmp_path / "t.tif", tmp_path / "p.npy", labels=tmp_path / "labels.toml"
    )
    assert run.total().pixel_accuracy() == 1.0
    assert run.total().pixels == 40 * 48


@pytest.mark.parametrize("name", ["c.npy", "small.png"])
def test_large_predictions_are_resized_by_windows(tmp_path, all_big, name):
    truth, pred = labels_of((61, 75)), labels_of((30, 200), 1)
    of_truth = write(tmp_path / name, truth)
    write(tmp_path / "tiled.tif", pred)
    run = segiou.score_folder(of_truth, tmp_path / "tiled.tif", labels=5, resize_pred="nearest")
    rows, cols = (2 * np.arange(61) + 1) * 30 // 122, (2 * np.arange(75) + 1) * 200 // 150
    want = segiou.ConfusionMatrix(5).update(truth, pred[np.ix_(rows, cols)])
    assert run.total() == want
    with pytest.raises(DataError, match=r"is 200 × 30 pixels, but the truth is 75 × 61"):
        segiou.score_folder(of_truth, tmp_path / "tiled.tif", labels=5)


def test_resizing_to_nothing():
    assert ResizedMask(labels_of((3, 4)), (0, 2))[np.s_[0:0, 0:2]].shape == (0, 2)


def test_damaged_large_files_are_errors_that_name_them(tmp_path, all_big):
    values = labels_of((61, 75))
    for name in ("tiled.tif", "open.tif", "c.npy"):
        path = write(tmp_path / name, values)
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 2 // 3])
        (tmp_path / "t.npy").unlink(missing_ok=True)
        np.save(tmp_path / "t.npy", values)
        with pytest.raises(DataError, match=name):
            segiou.score_folder(tmp_path / "t.npy", path, labels=5)


def test_large_files_of_the_wrong_kind(tmp_path, all_big):
    np.save(tmp_path / "f.npy", np.zeros((9, 9), complex))
    with pytest.raises(MaskError, match=r"f.npy: contains complex128 values"):
        open_windowed(tmp_path / "f.npy")
    np.save(tmp_path / "f.npy", np.eye(9) / 2)
    with open_windowed(tmp_path / "f.npy").values as mask:
        assert mask[:1, 1:].tolist() == [[0] * 8]
        with pytest.raises(MaskError, match=r"f.npy: contains float64 values; .*\[such as 0\.5\]"):
            mask[:9, :9]
    tifffile.imwrite(tmp_path / "f.tif", np.zeros((9, 9), np.complex64))
    with pytest.raises(MaskError, match=r"f.tif: contains complex64"):
        open_windowed(tmp_path / "f.tif")
    tifffile.imwrite(tmp_path / "p.tif", np.zeros((3, 9, 9), np.uint8), photometric="minisblack")
    with pytest.raises(MaskError, match=r"p.tif: has 3 pages"):
        open_windowed(tmp_path / "p.tif")
    assert open_windowed(write(tmp_path / "c.npy", labels_of((3, 3))), least=10) is None
    (tmp_path / "text").write_text("hello")
    assert open_windowed(tmp_path / "text") is None


def test_a_large_file_that_changes_while_it_is_read_is_a_problem(tmp_path, all_big, monkeypatch):
    from segiou.masks.windows import ArrayFile

    for name in ("t", "p"):
        np.save(tmp_path / f"{name}.npy", labels_of((61, 75)))
    read = ArrayFile._window

    def changing(self, *rest):
        np.save(tmp_path / "p.npy", labels_of((61, 75), 9))
        return read(self, *rest)

    monkeypatch.setattr(ArrayFile, "_window", changing)
    with pytest.raises(DataError, match=r"p.npy: changed while being read"):
        segiou.score_folder(tmp_path / "t.npy", tmp_path / "p.npy", labels=5)


class Counted:
    """An array on disk, as far as anybody can tell, that notes what is read at once."""

    def __init__(self, values, chunks):
        self._values, self.chunks, self.largest = values, chunks, 0
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __len__(self):
        return len(self._values)

    def __getitem__(self, index):
        part = self._values[index]
        self.largest = max(self.largest, part.size)
        return part


def test_arrays_on_disk_are_never_read_whole():
    truth, pred = (Counted(labels_of((3000, 1000), i), (100, 100)) for i in (0, 1))
    run = segiou.score(truth, pred, labels=5)
    assert run.total() == segiou.ConfusionMatrix(5).update(truth._values, pred._values)
    assert 0 < truth.largest <= 1 << 20
    batch = Counted(labels_of((4, 50, 60)), (1, 50, 60))
    assert len(segiou.score(batch, batch, labels=5)) == 4
    assert batch.largest == 50 * 60


def test_zarr_and_dask_arrays(tmp_path, required):
    zarr = required("zarr")
    required("dask")
    import dask.array

    truth, pred = labels_of((300, 200)), labels_of((300, 200), 1)
    stored = zarr.create_array(
        store=str(tmp_path / "t.zarr"), shape=truth.shape, chunks=(64, 64), dtype="u1"
    )
    stored[:] = truth
    lazy = dask.array.from_array(pred, chunks=(50, 70))
    run = segiou.score(stored, lazy, labels=5)
    assert run.total() == segiou.ConfusionMatrix(5).update(truth, pred)
    many = zarr.create_array(
        store=str(tmp_path / "n.zarr"), shape=(3, 20, 20), chunks=(1, 20, 20), dtype="u1"
    )
    assert len(segiou.score(many, np.zeros((3, 20, 20), int), labels=5)) == 3
