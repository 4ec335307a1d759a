"""NIfTI volumes in two files: the values and geometry that nibabel reads."""

from __future__ import annotations

import gzip
import itertools
import shutil

import numpy as np
import pytest

import segiou
from segiou import DataError, read_mask
from segiou.cli.main import main
from segiou.masks import MaskError, read_volume
from segiou.masks.formats.nifti_pairs import as_header

nibabel = pytest.importorskip("nibabel")

RNG = np.random.default_rng(3)
AFFINE = np.array([[0, -0.5, 0, 9], [0.7, 0, 0, -4], [0, 0, 3, 2], [0, 0, 0, 1.0]])
TYPES = ["<u1", "<i2", ">i2", "<i4", ">u2"]


def labels(shape=(4, 5, 3), number=3):
    return RNG.integers(0, number, shape)


def write_pair(folder, name, values, dtype="<i2", kind=nibabel.Nifti1Pair, packed=(False, False)):
    """A pair as nibabel writes it; ``packed`` compresses header and data."""
    folder.mkdir(parents=True, exist_ok=True)
    header = kind.header_class(endianness=dtype[0])
    header.set_data_dtype(np.dtype(dtype))
    image = kind(values.astype(dtype), AFFINE, header)
    image.to_filename(folder / f"{name}.img")
    for ending, pack in zip(("hdr", "img"), packed, strict=True):
        if pack:
            plain = folder / f"{name}.{ending}"
            (folder / f"{name}.{ending}.gz").write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
    return folder / f"{name}.hdr{'.gz' if packed[0] else ''}"


@pytest.mark.parametrize("packed", [*itertools.product((False, True), repeat=2)])
@pytest.mark.parametrize("kind", [nibabel.Nifti1Pair, nibabel.Nifti2Pair])
@pytest.mark.parametrize("dtype", TYPES)
def test_values_and_affine_are_those_of_nibabel(tmp_path, dtype, kind, packed):
    values = labels()
    header = write_pair(tmp_path, "a", values, dtype, kind, packed)
    data = tmp_path / ("a.img.gz" if packed[1] else "a.img")
    read = read_volume(header)
    assert read.values.tolist() == values.tolist()
    if packed[0] == packed[1]:  # others are only read here
        image = nibabel.load(data)
        assert np.asarray(image.dataobj).tolist() == values.tolist()
        np.testing.assert_array_equal(read.affine, image.affine)
    np.testing.assert_allclose(read.affine, AFFINE, rtol=1e-6)
    assert read_volume(data).values.tolist() == values.tolist()
    for path in (header, data):
        assert read_mask(path).tolist() == values.tolist()


def test_an_offset_of_the_data_and_a_scale(tmp_path):
    values = labels()
    header = write_pair(tmp_path, "a", values)
    head = bytearray(header.read_bytes())
    head[108:112] = np.float32(32).tobytes()
    head[112:120] = np.array([2, 1], "<f4").tobytes()  # scl_slope, scl_inter
    header.write_bytes(head)
    image = header.with_suffix(".img")
    image.write_bytes(bytes(32) + image.read_bytes())
    assert read_volume(header).values.tolist() == (2 * values + 1).tolist()
    assert np.asarray(nibabel.load(image).dataobj).tolist() == (2 * values + 1).tolist()


@pytest.mark.parametrize("place", ["truth", "truth/*.hdr", "truth/*.img", "truth/a.img"])
def test_pairs_beside_single_files_of_the_same_names(tmp_path, place):
    truth, pred = labels(), labels()
    write_pair(tmp_path / "truth", "a", truth)
    (tmp_path / "pred").mkdir()
    single = tmp_path / "pred" / "a.nii.gz"
    nibabel.Nifti1Image(pred.astype(np.int16), AFFINE).to_filename(single)
    other = single if place.endswith("a.img") else tmp_path / "pred"
    run = segiou.score_folder(tmp_path / place, other, labels=3)
    both = [
        ((truth == c) & (pred == c)).sum() / ((truth == c) | (pred == c)).sum() for c in range(3)
    ]
    assert [row.iou for row in run.report().classes] == pytest.approx(both)
    assert run.provenance["masks"] == "volumes"


def test_a_folder_may_have_volumes_of_both_kinds(tmp_path):
    for side in ("truth", "pred"):
        write_pair(tmp_path / side, "a", labels())
        nibabel.Nifti1Image(labels().astype(np.int16), AFFINE).to_filename(
            tmp_path / side / "b.nii.gz"
        )
    assert len(segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)) == 2
    nibabel.Nifti1Image(labels().astype(np.int16), AFFINE).to_filename(
        tmp_path / "truth" / "a.nii.gz"
    )
    with pytest.raises(ValueError, match=r"a\.nii\.gz: has the same key.*a\.hdr"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)


def test_inspect_and_score_read_the_same(tmp_path, capsys):
    for side in ("truth", "pred"):
        for name in "ab":
            write_pair(tmp_path / side, name, labels(number=3), packed=(name == "a",) * 2)
    found = segiou.scoring.inspect_folder(tmp_path / "truth")
    assert set(found.values) == {0, 1, 2}
    places = [str(tmp_path / side) for side in ("truth", "pred")]
    assert main(["score", *places, "--labels", "3", "--surface", "segiou", "-q"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("changed", ["hdr", "img"])
def test_a_run_reads_a_pair_again_if_one_of_its_files_has_changed(tmp_path, changed):
    for side in ("truth", "pred"):
        write_pair(tmp_path / side, "a", np.ones((3, 4, 2)))
        write_pair(tmp_path / side, "b", np.ones((3, 4, 2)))
    where = {"labels": 3, "run": tmp_path / "r.sqlite", "geometry": "ignore"}
    score = lambda: segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **where)  # noqa: E731
    assert score().report().pixel_accuracy == 1
    path = tmp_path / "pred" / f"a.{changed}"
    old = path.stat().st_mtime_ns
    content = bytearray(path.read_bytes())
    if changed == "img":
        content[:2] = np.int16(2).tobytes()
    else:
        content[112:116] = np.float32(2).tobytes()  # twice the values
    path.write_bytes(content)
    assert path.stat().st_mtime_ns != old
    assert score().report().pixel_accuracy == (47 / 48 if changed == "img" else 0.5)


@pytest.mark.parametrize(
    ("missing", "message"),
    [("img", r"a\.hdr: has no data: a\.img is missing"), ("hdr", r"need a\.hdr, which is missing")],
)
def test_the_missing_file_of_a_pair_is_named(tmp_path, missing, message):
    header = write_pair(tmp_path, "a", labels())
    header.with_suffix(f".{missing}").unlink()
    left = header if missing == "img" else header.with_suffix(".img")
    with pytest.raises(MaskError, match=message):
        read_mask(left)
    with pytest.raises((DataError, MaskError), match=message):
        write_pair(tmp_path / "other", "a", labels())
        segiou.score_folder(tmp_path / "other" / "a.hdr", left, labels=3)


def test_analyze_states_no_orientation(tmp_path):
    header = write_pair(tmp_path, "a", labels(), kind=nibabel.AnalyzeImage)
    for path in (header, header.with_suffix(".img")):
        with pytest.raises(MaskError, match=r"is Analyze 7\.5, which has no orientation"):
            read_mask(path)


@pytest.mark.parametrize("place", ["img", "hdr"])
def test_damaged_pairs_are_refused(tmp_path, place):
    header = write_pair(tmp_path, "a", labels(), packed=(True, True))
    path = header if place == "hdr" else tmp_path / "a.img.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(MaskError, match=r"is truncated|is corrupt"):
        read_mask(header)


@pytest.mark.parametrize("damaged", [b"", b"XXXX" + bytes(344)])
def test_a_damaged_header_is_not_said_to_be_missing(tmp_path, damaged):
    header = write_pair(tmp_path / "truth", "a", labels())
    write_pair(tmp_path / "truth", "b", labels())
    for name in "ab":
        write_pair(tmp_path / "pred", name, labels())
    header.write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.hdr: is corrupt: .*; copy both files of the volume"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    with pytest.raises(DataError, match=r"a\.hdr, which is corrupt; copy both files again"):
        segiou.score_folder(header.with_suffix(".img"), tmp_path / "pred/a.hdr", labels=3)


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar"])
@pytest.mark.parametrize("packed", [(False, False), (True, True), (False, True)])
def test_pairs_in_archives(tmp_path, kind, packed):
    for side in ("truth", "pred"):
        for name in "ab":
            write_pair(tmp_path / side, name, labels(), packed=packed)
    folders = tmp_path / "truth", tmp_path / "pred"
    archives = [shutil.make_archive(str(side), kind, side) for side in folders]
    runs = [segiou.score_folder(*sides, labels=3) for sides in (folders, archives)]
    assert runs[0].total().matrix.tolist() == runs[1].total().matrix.tolist()
    assert runs[0].ids == runs[1].ids
    run = tmp_path / "r.segiou"
    first, second = (segiou.score_folder(*archives, labels=3, run=run) for _ in range(2))
    assert first.total().matrix.tolist() == second.total().matrix.tolist()


def test_headers_of_rasters_are_not_volumes(tmp_path):
    path = tmp_path / "a.hdr"
    path.write_text("ENVI\nsamples = 3\nlines = 2\n" + " " * 400)
    path.with_suffix(".img").write_bytes(bytes(6))
    assert as_header(path.with_suffix(".img")) == path.with_suffix(".img")
    with pytest.raises(MaskError, match="is the header of another file; pass that file"):
        read_mask(path)
