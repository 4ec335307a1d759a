"""Masks in MATLAB and HDF5 files: as their own libraries write them, and what is refused."""

from __future__ import annotations

import io
import struct
import sys
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, given, settings, strategies as st
from mask_files import required, write_masks

import segiou
from segiou import MaskError
from segiou.masks import open_mask, open_source, read_mask
from segiou.masks.read import from_bytes

TRUTH = np.random.default_rng(5).integers(0, 3, (4, 6)).astype(np.uint8)
PRED = np.where(TRUTH == 2, 1, TRUTH).astype(np.uint8)
EXPECTED = segiou.score(TRUTH, PRED, labels=3).total()


def matlab(arrays, **options):
    file = io.BytesIO()
    scipy.io.savemat(file, arrays, **options)
    return file.getvalue()


def hdf(arrays, **options):
    h5py = required("h5py")
    file = io.BytesIO()
    with h5py.File(file, "w") as stored:
        for name, values in arrays.items():
            stored.create_dataset(name, data=values, **options)
    return file.getvalue()


def matlab73(arrays, tmp_path):
    """As MATLAB 7.3 writes them: behind a block of its own, with reversed axes."""
    h5py = required("h5py")
    path = tmp_path / "x.mat"
    with h5py.File(path, "w", userblock_size=512) as stored:
        for name, values in arrays.items():
            stored.create_dataset(name, data=np.asarray(values).T)
    data = path.read_bytes()
    path.unlink()
    return b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + data[512:]


def write(folder, name, data):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "uint16", "int32", "int64", "f8", "f4", "bool"]
)
@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
def test_matlab_files(tmp_path, dtype, options):
    if options == {"format": "4"} and dtype in ("int64", "bool", "uint8"):
        pytest.skip("version 4 has other types")
    values = (TRUTH > 0) if dtype == "bool" else TRUTH.astype(dtype)
    found = read_mask(write(tmp_path, "a.mat", matlab({"seg": values}, **options)))
    np.testing.assert_array_equal(found, values)
    assert found.dtype.kind in "biu"


@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "chunks": (2, 3)}])
@pytest.mark.parametrize("name", ["a.h5", "a.hdf5", "a.mat"])
def test_hdf5_files(tmp_path, options, name):
    found = read_mask(write(tmp_path, name, hdf({"deep/seg": TRUTH}, **options)))
    np.testing.assert_array_equal(found, TRUTH)


def test_matlab_73_has_reversed_axes(tmp_path):
    square = np.arange(9, dtype=np.uint8).reshape(3, 3)
    for values in (TRUTH, square):
        data = matlab73({"seg": values}, tmp_path)
        np.testing.assert_array_equal(read_mask(write(tmp_path, "a.mat", data)), values)


@pytest.mark.parametrize("ending", ["mat", "h5"])
def test_folders_are_scored(tmp_path, ending):
    save = matlab if ending == "mat" else hdf
    arrays = {"image": np.zeros((4, 6, 3)), "seg": TRUTH, "spacing": np.ones(3)}
    write(tmp_path / "truth", f"a.{ending}", save(arrays))
    write_masks(tmp_path / "pred", {"a": PRED})
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    assert run.total() == EXPECTED
    write(tmp_path / "truth", f"a.{ending}", save({**arrays, "ids": TRUTH.astype(int)}))
    with pytest.raises(segiou.DataError, match=r"contains 4 arrays .*--array-key TRUTH,PRED"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    how = {"labels": 3, "array_key": "seg", "run": tmp_path / "r.sqlite"}
    assert segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **how).total() == EXPECTED
    with pytest.raises(segiou.DataError, match="has no array 'gts'"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3, array_key="gts")


def test_other_masks_in_a_folder_come_first(tmp_path):
    write_masks(tmp_path, {"a": TRUTH})
    write(tmp_path, "a.mat", matlab({"seg": PRED}))
    assert [*open_source(tmp_path).find()] == ["a.png"]


@pytest.mark.parametrize("key", ["GTcls.Segmentation", "GTcls.inner.Segmentation"])
def test_fields_of_structs(tmp_path, key):
    """As in SBD, the extended annotations of Pascal VOC."""
    fields = {"Boundaries": 3.0, "Segmentation": TRUTH}
    content = {"GTcls": {"inner": fields} if "inner" in key else fields}
    path = write(tmp_path, "a.mat", matlab(content))
    with pytest.raises(MaskError, match=r"no array of numbers \(GTcls struct .*STRUCT\.FIELD"):
        open_mask(path)
    found = from_bytes(path.read_bytes(), path, key=key)
    np.testing.assert_array_equal(found.values, TRUTH)
    for wrong in ("GTcls.Segmentations", "GTcl.Segmentation", "GTcls.Segmentation.x"):
        with pytest.raises(MaskError, match=f"has no array '{wrong}'"):
            from_bytes(path.read_bytes(), path, key=wrong)


@pytest.mark.parametrize("ending", ["mat", "h5"])
def test_scores_and_volumes(tmp_path, ending):
    save = matlab if ending == "mat" else hdf
    write_masks(tmp_path / "truth", {"a": TRUTH > 0})
    path = write(tmp_path / "pred", f"a.{ending}", save({"p": (TRUTH > 0) * 0.9}))
    with pytest.raises(MaskError, match=r"contains float64 values; .*--scores"):
        open_mask(path)
    how = {"labels": 2, "pred_threshold": 0.5}
    assert segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **how).report().mean_iou == 1
    for side in ("t", "p"):
        write(tmp_path / side, f"a.{ending}", save({"v": np.stack([TRUTH] * 5)}))
    with pytest.raises(segiou.DataError, match="--array-axes nyx"):
        segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=3)
    for axes, images in (("nyx", 5), ("zyx", 1)):
        run = segiou.score_folder(tmp_path / "t", tmp_path / "p", labels=3, array_axes=axes)
        assert len(run) == images


def test_without_h5py_its_extra_is_named(tmp_path, monkeypatch):
    data = hdf({"seg": TRUTH})
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MaskError, match=r"a.h5: HDF5 .*pip install 'segiou\[hdf5\]'"):
        open_mask(write(tmp_path, "a.h5", data))


def test_arrays_that_take_too_much_memory(tmp_path):
    h5py = required("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:  # nothing is stored
        file.create_dataset("seg", (1 << 20, 1 << 20), "u1", chunks=(1 << 10, 1 << 10))
    with pytest.raises(MaskError, match="declares 1099511627776 bytes"):
        open_mask(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("seg", (4, 6), "u1", chunks=(1 << 16, 1 << 15), maxshape=(None, None))
    with pytest.raises(MaskError, match="has chunks of 2147483648 bytes"):
        open_mask(path)
    data = bytearray(matlab({"seg": TRUTH.astype(np.uint8)}))
    data[176:184] = np.array([1 << 30, 1 << 20], "<i4").tobytes()  # its dimensions
    with pytest.raises(MaskError, match=r"declares|corrupt"):
        from_bytes(bytes(data), "a.mat")


def test_arrays_in_other_files_are_refused(tmp_path):
    h5py = required("h5py")
    (tmp_path / "secret").write_bytes(bytes(24))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        place = [(str(tmp_path / "secret"), 0, 24)]
        file.create_dataset("seg", (4, 6), "u1", external=place)
    with pytest.raises(MaskError, match="in other files; save it in one file"):
        open_mask(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["seg"] = h5py.ExternalLink("a.h5", "/seg")
    with pytest.raises(MaskError, match="has no array"):
        open_mask(tmp_path / "b.h5")


FILES = {
    "mat": matlab({"seg": TRUTH}),
    "packed.mat": matlab({"seg": TRUTH, "image": np.ones((4, 6, 3))}, do_compression=True),
    "struct.mat": matlab({"seg": {"a": TRUTH}}),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [*FILES, "h5"])
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_files_never_give_wrong_types_or_tracebacks(name, data):
    if name == "h5":
        required("h5py")
    whole = FILES.get(name) or hdf({"seg": TRUTH}, compression="gzip", fletcher32=True)
    damaged = bytearray(whole[: data.draw(st.integers(1, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = "a.h5" if name == "h5" else "a.mat"
    try:
        raw = from_bytes(bytes(damaged), path, key="seg")
    except MaskError as error:
        assert error.path == path
        assert "\n" not in error.problem
    else:
        assert raw.values.dtype.kind in "biu"


@given(st.binary(max_size=600), st.sampled_from(["a.mat", "a.h5"]))
def test_random_files_are_refused(data, path):
    with pytest.raises(MaskError):
        from_bytes(data, path)


def test_elements_of_cells(tmp_path):
    """BSDS500: a cell of structs, one per annotator."""
    cell = np.empty((1, 3), object)
    for i in range(3):
        cell[0, i] = {"Segmentation": TRUTH + i, "Boundaries": TRUTH > 0}
    write(tmp_path, "a.mat", matlab({"groundTruth": cell}))
    for number in (1, 3):
        key = f"groundTruth{{{number}}}.Segmentation"
        root = open_source(tmp_path / "a.mat").read(str(tmp_path / "a.mat"))[0]
        read = from_bytes(root, tmp_path / "a.mat", key=key).values
        assert np.array_equal(read, TRUTH + number - 1)
    with pytest.raises(MaskError, match=r"groundTruth cell .*'CELL\{1\}'"):
        open_mask(tmp_path / "a.mat")
    for key in ("groundTruth{4}.Segmentation", "groundTruth{0}", "groundTruth{1}", "x{1}"):
        with pytest.raises(MaskError, match="has no array"):
            from_bytes(root, tmp_path / "a.mat", key=key)


def test_complex_values_and_files_without_arrays_are_named(tmp_path):
    path = write(tmp_path / "t", "a.mat", matlab({"m": TRUTH * 1j}))
    with pytest.raises(MaskError, match="contains complex values in 'm'; expected integer labels"):
        read_mask(path)
    np.savez(tmp_path / "b.npz")
    with pytest.raises(MaskError, match="contains no arrays"):
        read_mask(tmp_path / "b.npz")


@pytest.mark.parametrize("values", [np.zeros((0, 2), int), np.zeros((2, 0, 3), int), np.int64(1)])
def test_arrays_without_pixels_are_an_error(tmp_path, values):
    """They counted as images in which every pixel is ignored."""
    for side in "tp":
        np.save(write(tmp_path / side, "a.npy", b""), values)
    how = {"labels": 2, "array_axes": "zyx"}
    with pytest.raises(segiou.DataError, match=r"(has|have) shape \(.*\), which has no pixels"):
        segiou.score_folder(tmp_path / "t", tmp_path / "p", **how)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (176, 14, "unknown type 14 of an element"),  # of the values: SciPy ended with a crash
        (176, 255, "unknown type 255 of an element"),
        (177, 1, "unknown type 258 of an element"),
        (145, 8, "an array has 4 elements; expected 5"),  # complex, without the other part
        (128, 99, "unknown type 99 of an element"),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_types_that_are_not_those_of_matlab(at, value, words, is_packed):
    """SciPy takes the address of a type from a table, whatever its number."""
    data = bytearray(matlab({"m": TRUTH}))
    data[at] = value
    if is_packed:
        packed = zlib.compress(data[128:])
        data[128:] = struct.pack("<II", 15, len(packed)) + packed
    with pytest.raises(MaskError, match=f"is a corrupt MATLAB file: {words}"):
        from_bytes(bytes(data), "a.mat")


def test_cells_that_declare_more_than_they_contain():
    """SciPy made place for as many, which took all memory."""
    data = bytearray(matlab({"c": np.array([TRUTH, PRED[:2]], object)}))
    axes = data.index(struct.pack("<II", 1, 2))
    data[axes : axes + 8] = struct.pack("<II", 1 << 14, 1 << 14)
    with pytest.raises(MaskError, match=r"declares 268435456 arrays that it does not contain"):
        from_bytes(bytes(data), "a.mat", key="c{1}")


def test_files_of_matlab_in_each_form_are_not_refused():
    arrays = {
        "sparse": scipy.sparse.csc_matrix(TRUTH.astype(float)),
        "complex": TRUTH * 1j,
        "text": "hut",
        "struct": {"a": {"b": TRUTH}, "c": np.array([TRUTH, "x", 1], object)},
        "none": np.zeros((0, 0)),
        "m": TRUTH,
    }
    for options in ({}, {"do_compression": True}):
        found = from_bytes(matlab(arrays, **options), "a.mat", key="struct.a.b").values
        np.testing.assert_array_equal(found, TRUTH)


def element(kind, content):
    """An element of a MATLAB file, padded to 8 bytes."""
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def array_element(name, values):
    """An array of bytes: flags, axes, name and values."""
    parts = struct.pack("<II", 9, 0), struct.pack("<II", *values.shape), name, values.T.tobytes()
    return element(14, b"".join(map(element, (6, 5, 1, 2), parts)))


def packed_element(content):
    packed = zlib.compress(content)
    return struct.pack("<II", 15, len(packed)) + packed


@pytest.mark.parametrize("packed", [bytes, packed_element])
def test_strings_and_tables_of_matlab_beside_a_mask_are_skipped(packed):
    names = b"made", b"MCOS", b"datetime"
    flags = element(6, struct.pack("<II", 17, 0))
    parts = (
        flags,
        *(element(1, name) for name in names),
        array_element(b"", np.zeros((1, 6), np.uint8)),
    )
    made = element(14, b"".join(parts))
    mask = np.arange(12, dtype=np.uint8).reshape(3, 4)
    # MATLAB appends the data of such objects as an array without a name.
    arrays = made, array_element(b"mask", mask), array_element(b"", np.zeros((1, 99), np.uint8))
    head = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 256) + b"IM"
    data = head + b"".join(map(packed, arrays))
    assert from_bytes(data, "a.mat").values.tolist() == mask.tolist()
