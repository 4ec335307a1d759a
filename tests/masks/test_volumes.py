"""Volumes as nibabel and SimpleITK read them, and what is refused."""

from __future__ import annotations

import gzip
import importlib
import os
import re
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou import MaskError, read_mask
from segiou.masks import (
    find_masks,
    geometry_difference,
    open_mask,
    open_windowed,
    pair_folders,
    read_volume,
    reorient,
    window_slices,
)

if os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1":
    pytest.importorskip("nibabel")
    pytest.importorskip("SimpleITK")
nibabel = importlib.import_module("nibabel")
itk = importlib.import_module("SimpleITK")

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "volumes"
AFFINE = np.array([[0, 0, 2.0, 5], [-0.5, 0, 0, 7], [0, -0.75, 0, -3], [0, 0, 0, 1]])


def labels(shape=(5, 4, 3), dtype=np.uint8, seed=0):
    return np.random.default_rng(seed).integers(0, 7, shape).astype(dtype)


def nifti(path, values, affine=AFFINE, kind=nibabel.Nifti1Image, **options):
    image = kind(values, affine, dtype=options.pop("dtype", values.dtype))
    for name, value in options.items():
        image.header[name] = value
    image.header.set_xyzt_units("mm")
    image.to_filename(path)
    return path


@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32", "float64"])
def test_nifti_is_read_as_nibabel_reads_it(tmp_path, ending, kind, dtype):
    values = labels()
    path = nifti(tmp_path / f"a{ending}", values.astype(dtype), kind=kind)
    volume = read_volume(path)
    np.testing.assert_array_equal(volume.values, values)
    np.testing.assert_allclose(volume.affine, nibabel.load(path).affine)
    assert volume.spacing == (0.5, 0.75, 2.0)
    assert volume.orientation == "PIR"
    assert volume.unit == "mm"
    assert volume.values.dtype.kind in "iu"


def test_values_lie_as_they_lie_in_the_file(tmp_path):
    assert read_volume(nifti(tmp_path / "a.nii.gz", labels())).values.flags.f_contiguous


@pytest.mark.parametrize("largest", [255, 256, -1, 1 << 23, 1 << 40])
def test_whole_floats_are_read_however_large(tmp_path, largest):
    values = np.zeros((40, 40, 40))  # converted in several pieces
    values[-1, -1, -1] = largest
    read = read_volume(nifti(tmp_path / "a.nii.gz", values)).values
    assert read.dtype.kind in "iu"
    np.testing.assert_array_equal(read, values)


def test_scale_and_offset_are_honoured(tmp_path):
    path = nifti(tmp_path / "a.nii", labels(dtype=np.int16), dtype="int16")
    data = bytearray(path.read_bytes())
    data[112:120] = np.array([2, 1], "<f4").tobytes()
    path.write_bytes(data)
    np.testing.assert_array_equal(read_volume(path).values, 2 * labels().astype(int) + 1)
    np.testing.assert_array_equal(read_volume(path).values, nibabel.load(path).get_fdata())


@pytest.mark.parametrize("unit, scale", [("meter", 1000), ("micron", 0.001), ("unknown", 1)])
def test_lengths_are_millimetres(tmp_path, unit, scale):
    image = nibabel.Nifti1Image(labels(), np.diag([2.0, 3, 4, 1]))
    image.header.set_xyzt_units(unit)
    image.to_filename(tmp_path / "a.nii")
    volume = read_volume(tmp_path / "a.nii")
    assert volume.spacing == pytest.approx((2 * scale, 3 * scale, 4 * scale))
    assert volume.unit == ("unknown" if unit == "unknown" else "mm")


def rotated(seed, spacing):
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    affine = np.diag([*np.ones(3), 1.0])
    affine[:3, :3] = axes * spacing
    return affine


@pytest.mark.parametrize("codes", [(0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("spacing", [(1, 1, 1), (0.7, 0.7, 3)])
def test_the_spacing_of_an_oblique_scan_is_that_of_its_header(tmp_path, codes, spacing):
    for seed in range(30):
        image = nibabel.Nifti1Image(labels(), None)
        image.header.set_qform(rotated(seed, spacing), codes[0])
        image.header.set_sform(rotated(seed, spacing), codes[1])
        image.to_filename(tmp_path / "a.nii")
        found = read_volume(tmp_path / "a.nii")
        assert found.spacing == itk.ReadImage(str(tmp_path / "a.nii")).GetSpacing()
        assert found.spacing == tuple(np.float32(spacing).astype(float))
        turned = reorient(found, read_volume(nifti(tmp_path / "b.nii", labels())))
        assert sorted(turned.spacing) == sorted(found.spacing)
        assert turned.spacing == pytest.approx(np.linalg.norm(turned.affine[:3, :3], axis=0))


def test_a_pixdim_that_contradicts_the_affine_is_refused(tmp_path):
    path = nifti(tmp_path / "a.nii", labels(), np.eye(4))
    (tmp_path / "a.nii").write_bytes(changed(path, 80, np.array([5, 5, 5], "<f4").tobytes()))
    for read in (read_volume, open_mask, lambda path: open_windowed(path, least=1)):
        with pytest.raises(MaskError, match=r"5 × 5 × 5 in pixdim but 1 × 1 × 1 in its affine"):
            read(path)


def test_a_pixdim_that_is_not_set_leaves_the_spacing_to_the_affine(tmp_path, caplog):
    path = nifti(tmp_path / "a.nii", labels(), np.diag([0.5, 2, 3, 1]))
    path.write_bytes(changed(path, 80, bytes(12)))
    assert read_volume(path).spacing == (0.5, 2, 3)
    path.write_bytes(changed(path, 252, bytes(4)))  # neither qform nor sform
    with pytest.raises(MaskError, match="pixdim is 0 and it has no sform"):
        read_volume(path)
    # nibabel would write that it has set pixdim to 1.
    assert not caplog.records


@pytest.mark.parametrize("scale", [(np.nan, 0), (np.inf, 0), (2, np.nan)])
def test_a_scale_that_is_not_finite_is_refused(tmp_path, scale):
    path = nifti(tmp_path / "a.nii", labels())
    path.write_bytes(changed(path, 112, np.array(scale, "<f4").tobytes()))
    with pytest.raises(MaskError, match="scl_slope"):
        read_volume(path)


@pytest.mark.parametrize(
    "unknown", [b"spacings: nan 2 3", b"space directions: none (0,2,0) (0,0,3)"]
)
def test_an_nrrd_axis_without_a_spacing_is_refused(tmp_path, unknown):
    itk.WriteImage(itk.GetImageFromArray(labels()), str(tmp_path / "a.nrrd"))
    data = (tmp_path / "a.nrrd").read_bytes()
    line = next(line for line in data.split(b"\n") if line.startswith(b"space directions"))
    (tmp_path / "a.nrrd").write_bytes(data.replace(line, unknown))
    with pytest.raises(MaskError, match="has an axis without a spacing"):
        read_volume(tmp_path / "a.nrrd")


@pytest.mark.parametrize("size", [12, 60])
def test_the_first_bytes_of_a_volume_are_called_truncated(tmp_path, size):
    path = nifti(tmp_path / "a.nii.gz", labels())
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(MaskError, match=r"a\.nii\.gz: is truncated: .* copy it again"):
        read_volume(path)


@pytest.mark.parametrize("ending", [".nrrd", ".mha", ".mhd"])
def test_other_formats_give_what_nifti_gives(tmp_path, ending):
    reference = nifti(tmp_path / "a.nii.gz", labels(dtype=np.int16))
    image = itk.ReadImage(str(reference))
    itk.WriteImage(image, str(tmp_path / f"b{ending}"), useCompression=ending != ".mhd")
    expected, found = read_volume(reference), read_volume(tmp_path / f"b{ending}")
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_allclose(found.affine, expected.affine, atol=1e-6)
    assert found.orientation == expected.orientation
    assert geometry_difference(expected, found) is None


def test_two_axes_are_a_volume_too(tmp_path):
    volume = read_volume(nifti(tmp_path / "a.nii.gz", labels((6, 5)), np.diag([2.0, 3, 1, 1])))
    assert (volume.values.shape, volume.spacing, volume.orientation) == ((6, 5), (2, 3), "RA")


def test_axes_of_one_element_beyond_the_third_go(tmp_path):
    assert read_volume(nifti(tmp_path / "a.nii", labels((3, 4, 5, 1)))).values.shape == (3, 4, 5)


def test_gzip_of_several_members_is_read_whole(tmp_path):
    data = nifti(tmp_path / "a.nii", labels()).read_bytes()
    (tmp_path / "b.nii.gz").write_bytes(gzip.compress(data[:360]) + gzip.compress(data[360:]))
    np.testing.assert_array_equal(read_volume(tmp_path / "b.nii.gz").values, labels())


def changed(path, at, value):
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    return bytes(data)


def huge(path):
    return changed(path, 42, np.full(3, 32767, "<i2").tobytes())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "make, message",
    [
        (huge, "declares an invalid size"),
        (lambda p: changed(p, 42, np.array([2000, 2000, 90], "<i2").tobytes()), "360000352 bytes"),
        (lambda p: changed(p, 42, np.array([-4], "<i2").tobytes()), "invalid size|corrupt"),
        (lambda p: changed(p, 280, np.array([np.nan], "<f4").tobytes()), "impossible affine"),
        (lambda p: changed(p, 280, bytes(48)), "impossible affine"),
        (lambda p: changed(p, 123, b"\5"), "unknown NIfTI unit code: 5"),
        (lambda p: p.read_bytes()[:-1], "is truncated"),
        (lambda p: p.read_bytes() + b"\1", "contains more than the 412 bytes"),
        (lambda p: p.read_bytes()[:200], "is truncated"),
        (lambda p: changed(p, 40, np.array([4, 5, 2, 3, 2], "<i2").tobytes()), "two or three axes"),
        (lambda p: changed(p, 344, b"ni1\0"), "data in another file"),
        (lambda p: changed(p, 70, np.array([32], "<i2").tobytes()), "complex|truncated"),
    ],
)
def test_hostile_nifti_is_refused(tmp_path, packed, make, message):
    data = make(nifti(tmp_path / "a.nii", labels()))
    path = tmp_path / ("b.nii.gz" if packed else "b.nii")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(MaskError, match=message):
        read_volume(path)


def test_damaged_gzip_is_refused(tmp_path):
    data = nifti(tmp_path / "a.nii.gz", labels((20, 20, 20))).read_bytes()
    for found, message in [
        (data[:-1], "truncated"),
        (data[: len(data) // 2], "truncated"),
        (data + b"more", "after its data"),
        (data[:-6] + bytes([data[-6] ^ 1]) + data[-5:], "damaged"),
    ]:
        (tmp_path / "b.nii.gz").write_bytes(found)
        with pytest.raises(MaskError, match=message):
            read_volume(tmp_path / "b.nii.gz")


@pytest.mark.parametrize("kind", [[("R", "u1"), ("G", "u1"), ("B", "u1")], np.complex64])
def test_scaled_values_that_are_no_numbers_are_refused(tmp_path, kind):
    path = nifti(tmp_path / "a.nii", np.zeros((3, 4, 5), kind))
    path.write_bytes(changed(path, 112, np.array([2, 1], "<f4").tobytes()))
    with pytest.raises(MaskError, match="expected integer labels"):
        read_volume(path)


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 1e300])
def test_what_is_no_label_is_refused(tmp_path, value):
    values = labels().astype(np.float64)
    values[1, 2, 0] = value
    with pytest.raises(MaskError, match=r"contains non-integer values, e.g. .* \(1 of"):
        read_volume(nifti(tmp_path / "a.nii", values))


@pytest.mark.parametrize("ending", [".nrrd", ".mha"])
def test_hostile_headers_of_other_formats_are_refused(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    data = path.read_bytes()
    old = b"sizes: 3 4 5" if ending == ".nrrd" else b"DimSize = 3 4 5"
    assert old in data
    for new, message in [
        (old.replace(b"3 4 5", b"2000 2000 90"), "more than its|truncated"),
        (old.replace(b"3 4 5", b"32767 32767 32767"), "declares an invalid size"),
        (old.replace(b"3 4 5", b"3 4 6"), "corrupt|truncated"),
        (b"data file: b.raw\n" + old, "which does not exist|without '='"),
        (b"NDims = -1\n" + old, "has 'NDims' twice|without ':'"),
    ]:
        path.write_bytes(data.replace(old, new))
        with pytest.raises(MaskError, match=message):
            read_volume(path)


def test_nrrd_that_is_not_packed_by_gzip_is_refused(tmp_path):
    itk.WriteImage(itk.GetImageFromArray(labels()), str(tmp_path / "a.nrrd"))
    data = (tmp_path / "a.nrrd").read_bytes()
    (tmp_path / "a.nrrd").write_bytes(data.replace(b"encoding: raw", b"encoding: ascii"))
    with pytest.raises(MaskError, match="the encoding 'ascii'; save it with raw or gzip"):
        read_volume(tmp_path / "a.nrrd")


def test_geometries_are_compared(tmp_path):
    def volume(name, affine, shape=(5, 4, 3)):
        return read_volume(nifti(tmp_path / f"{name}.nii", labels(shape), affine))

    truth = volume("truth", AFFINE)
    near = AFFINE.copy()
    near[0, 2] += 1e-4
    assert geometry_difference(truth, volume("near", near)) is None
    wide = AFFINE.copy()
    wide[0, 2] = 2.5
    assert geometry_difference(truth, volume("wide", wide)) == (
        "spacing 0.5 × 0.75 × 2.5 mm, but its truth has 0.5 × 0.75 × 2 mm"
    )
    moved = AFFINE.copy()
    moved[1, 3] += 1
    assert "affine [0 0 2 5; -0.5 0 0 8; " in geometry_difference(truth, volume("moved", moved))
    assert geometry_difference(truth, volume("ras", np.diag([0.5, 0.75, 2, 1]))) == (
        "orientation RAS, but its truth has PIR"
    )
    assert geometry_difference(truth, volume("small", AFFINE, (5, 4, 2))) == (
        "shape (5, 4, 2), but its truth has (5, 4, 3)"
    )


def test_axes_are_put_into_the_order_of_the_truth(tmp_path):
    truth = read_volume(nifti(tmp_path / "a.nii", labels()))
    image = nibabel.as_closest_canonical(nibabel.load(tmp_path / "a.nii"))
    image.to_filename(tmp_path / "ras.nii")
    other = read_volume(tmp_path / "ras.nii")
    assert other.orientation == "RAS"
    back = reorient(other, truth)
    np.testing.assert_array_equal(back.values, truth.values)
    np.testing.assert_allclose(back.affine, truth.affine)
    assert geometry_difference(truth, back) is None


@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize("dtype", ["uint8", "<i2", ">i2", ">f8"])
@pytest.mark.parametrize("scale", [None, (2, 1)])
def test_large_files_are_read_by_windows(tmp_path, kind, dtype, scale):
    header = kind.header_class(endianness=dtype[0] if dtype[0] in "<>" else "<")
    header.set_data_dtype(dtype)
    if scale is not None:
        header.set_slope_inter(*scale)
    image = kind(labels((9, 8, 7)).astype(dtype), AFFINE, header)
    image.to_filename(tmp_path / "a.nii")
    whole = read_volume(tmp_path / "a.nii")
    np.testing.assert_array_equal(whole.values, nibabel.load(tmp_path / "a.nii").get_fdata())
    opened = open_windowed(tmp_path / "a.nii", least=504)
    with opened.values as mask:
        assert (mask.shape, opened.volume.spacing) == ((9, 8, 7), whole.spacing)
        assert geometry_difference(whole, opened.volume) is None
        for window in [*window_slices(mask.shape, mask.chunks, 100), np.s_[2:5, 3:4, 1:7]]:
            np.testing.assert_array_equal(mask[window], whole.values[window])
            assert mask[window].dtype.kind in "iu"
    assert open_windowed(tmp_path / "a.nii", least=505) is None


def test_files_that_are_not_packed_are_mapped(tmp_path):
    assert isinstance(read_volume(nifti(tmp_path / "a.nii", labels())).values, np.memmap)


def test_large_files_are_checked_before_they_are_read(tmp_path):
    path = nifti(tmp_path / "a.nii", labels())
    path.write_bytes(path.read_bytes()[:-1])
    for read in (read_volume, lambda path: open_windowed(path, least=1)):
        with pytest.raises(MaskError, match="is truncated: the header declares 412 bytes"):
            read(path)
    halves = nifti(tmp_path / "b.nii", labels() + 0.5)
    with (
        open_windowed(halves, least=1).values as mask,
        pytest.raises(MaskError, match="non-integer values"),
    ):
        mask[0:5, 0:4, 0:1]
    (tmp_path / "c.nii").write_bytes(b"text")
    assert open_windowed(tmp_path / "c.nii") is None


def test_real_volumes():
    if not SHARED.is_dir():
        pytest.skip(f"no volumes at {SHARED}")
    volume = read_volume(SHARED / "spine" / "ref.nii.gz")
    assert volume.values.shape == (512, 512, 17)
    assert volume.orientation == "PIR"
    assert volume.spacing == pytest.approx((0.58594, 0.58594, 3.3))
    image = nibabel.load(SHARED / "spine" / "ref.nii.gz")
    np.testing.assert_array_equal(volume.values, np.asanyarray(image.dataobj))


def test_damaged_data_of_a_metaimage_are_refused(tmp_path):
    path = tmp_path / "a.mha"
    itk.WriteImage(itk.GetImageFromArray(labels((9, 9, 9))), str(path), useCompression=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(MaskError, match=r"declares [0-9]+ compressed bytes, found"):
        read_volume(path)
    path.write_bytes(whole.replace(b"NDims = 3", b"NDims   3"))
    with pytest.raises(MaskError, match="its header has a line without '=': 'NDims   3'"):
        read_volume(path)
    for name in (b"ElementSpacing\0", b"ElementSpacing:x "):
        path.write_bytes(whole.replace(b"ElementSpacing ", name))
        with pytest.raises(MaskError, match="its header has the field "):
            read_volume(path)
    data = re.sub(rb"CompressedDataSize = [0-9]+\n", b"", whole)  # an older writer's
    for found, message in [
        (data[:-20], "truncated"),
        (data[:-20] + bytes([data[-20] ^ 255]) + data[-19:], "damaged"),
        (data + b"more", "after its data"),
    ]:
        path.write_bytes(found)
        with pytest.raises(MaskError, match=message):
            read_volume(path)


@pytest.mark.parametrize("yes", ["True", "true", "T", "t", "1"])
@pytest.mark.parametrize("field", ["BinaryData", "BinaryDataByteOrderMSB", "ElementByteOrderMSB"])
def test_fields_of_a_metaimage_are_true_as_simpleitk_has_it(tmp_path, field, yes):
    path = tmp_path / "a.mha"
    image = itk.GetImageFromArray(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    itk.WriteImage(image, str(path))
    whole = path.read_bytes().replace(b"BinaryDataByteOrderMSB = False\n", b"")
    fields = re.sub(rb"BinaryData = True\n", b"", whole) if field == "BinaryData" else whole
    path.write_bytes(fields.replace(b"DimSize", f"{field} = {yes}\nDimSize".encode()))
    found = itk.GetArrayFromImage(itk.ReadImage(str(path)))
    np.testing.assert_array_equal(read_volume(path).values, found.T)
    assert found[0, 0, 1] == (256 if "MSB" in field else 1)


@pytest.mark.parametrize(
    "field",
    [
        "NDims = -1",
        "NDims = 215",
        "NDims = ",
        "DimSize = 3 4",
        "Offset = 0",
        "Origin = " + "1" * 501,
    ],
)
def test_a_header_that_simpleitk_does_not_survive_is_refused(tmp_path, field):
    path = tmp_path / "a.mha"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    name = field.partition(" =")[0]
    whole = re.sub(rf"{name} = .*\n".encode(), b"", path.read_bytes())
    path.write_bytes(whole.replace(b"BinaryData =", f"{field}\nBinaryData =".encode()))
    with pytest.raises(MaskError, match=f"is corrupt: its header has {name} = "):
        read_volume(path)


@pytest.mark.parametrize("name", ["NDims", "DimSize", "ElementType"])
def test_a_metaimage_without_a_field_is_refused(tmp_path, name):
    path = tmp_path / "a.mha"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    path.write_bytes(re.sub(rf"{name} = .*\n".encode(), b"", path.read_bytes()))
    with pytest.raises(MaskError, match="is corrupt"):
        read_volume(path)


def test_a_long_comment_of_a_metaimage_is_passed_over(tmp_path):
    path = tmp_path / "a.mha"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    comment = b"Comment = " + b": 1 " * 900 + b"\nBinaryData ="
    path.write_bytes(path.read_bytes().replace(b"BinaryData =", comment))
    np.testing.assert_array_equal(read_volume(path).values, labels().T)


def test_a_long_field_of_nrrd_is_refused(tmp_path):
    # SimpleITK writes it over its own memory, and the process ends.
    path = tmp_path / "a.nrrd"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    head, end, rest = path.read_bytes().partition(b"\n\n")
    path.write_bytes(head + b"\nkinds: " + b"1 " * 700 + end + rest)
    with pytest.raises(MaskError, match="has a line of 1407 bytes"):
        read_volume(path)
    path.write_bytes(head + b"\n# " + b"1 " * 700 + b"\nkey:=" + b"1 " * 700 + end + rest)
    np.testing.assert_array_equal(read_volume(path).values, labels().T)


def test_a_metaimage_that_leaves_out_bytes_is_refused(tmp_path):
    path = tmp_path / "a.mha"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    path.write_bytes(path.read_bytes().replace(b"DimSize", b"HeaderSize = 4\nDimSize"))
    with pytest.raises(MaskError, match="skips 4 bytes before its data"):
        read_volume(path)


def test_data_beside_a_metaimage(tmp_path):
    path = tmp_path / "a.mhd"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    (tmp_path / "a.raw").write_bytes(b"short")
    with pytest.raises(MaskError, match="declares 60 bytes, found 5"):
        read_volume(path)
    (tmp_path / "a.raw").unlink()
    with pytest.raises(MaskError, match=r"has its data in 'a\.raw', which does not exist"):
        read_volume(path)
    whole = path.read_bytes()
    for name in (b"../../a.raw", b"\0"):
        path.write_bytes(whole.replace(b"a.raw", name))
        with pytest.raises(MaskError, match="one file in the same folder"):
            read_volume(path)


def test_masks_are_read_from_volumes(tmp_path):
    path = nifti(tmp_path / "a.nii.gz", labels())
    np.testing.assert_array_equal(read_mask(path), labels())
    assert find_masks(tmp_path) == {"a.nii.gz": str(path)}
    assert [pair.id for pair in pair_folders(*[find_masks(tmp_path)] * 2).pairs] == ["a"]


@pytest.mark.parametrize("kind", ["Nifti1Image", "Nifti2Image"])
@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
@pytest.mark.parametrize("sizes", [[1], [150], [170], [190], [5000, 20000]])
def test_extensions_of_any_size_are_skipped(tmp_path, kind, ending, sizes):
    values = np.random.default_rng(0).integers(0, 3, (5, 6, 7), dtype=np.uint8)
    image = getattr(nibabel, kind)(values, np.diag([1.5, 2, 3, 1]))
    for size in sizes:  # TotalSegmentator and AFNI write names of labels there
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension(0, b"x" * size))
    nibabel.save(image, tmp_path / f"a{ending}")
    volume = read_volume(tmp_path / f"a{ending}")
    np.testing.assert_array_equal(volume.values, values)
    assert volume.spacing == (1.5, 2, 3)


def write_slicer(path, values, names):
    """A segmentation as 3D Slicer writes it."""
    path.parent.mkdir(exist_ok=True)
    lines = [
        "NRRD0004",
        "type: unsigned char",
        "dimension: 3",
        "space: left-posterior-superior",
        f"sizes: {' '.join(map(str, values.shape))}",
        "space directions: (1,0,0) (0,1,0) (0,0,1)",
        "kinds: domain domain domain",
        "encoding: raw",
        "space origin: (0,0,0)",
    ]
    for i, (name, value) in enumerate(names.items()):
        lines += [f"Segment{i}_LabelValue:={value}", f"Segment{i}_Name:={name}"]
    path.write_bytes("\n".join([*lines, "", ""]).encode() + values.tobytes(order="F"))


SLICER = np.random.default_rng(0).integers(0, 3, (5, 6, 7)).astype(np.uint8)
SWAPPED = np.uint8([0, 2, 1])[SLICER]
NAMED = {0: "background", 1: "liver", 2: "tumour"}


@pytest.mark.parametrize("labels", [3, NAMED, {0: "background", 2: "liver", 1: "tumour"}])
@pytest.mark.parametrize("geometry", ["check", "reorient", "ignore"])
def test_segments_of_slicer_match_by_name(tmp_path, labels, geometry):
    write_slicer(tmp_path / "truth" / "a.seg.nrrd", SLICER, {"liver": 1, "tumour": 2})
    write_slicer(tmp_path / "pred" / "a.seg.nrrd", SWAPPED, {"tumour": 1, "liver": 2})
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels=labels, geometry=geometry)
    assert run.report().mean_iou == 1
    names = [row.name for row in run.report().classes]
    liver = names.index("liver") if labels != 3 else 1
    assert run.total().matrix[liver].sum() == (SLICER == 1).sum()


def test_segments_that_cannot_match_by_name_are_an_error(tmp_path):
    write_slicer(tmp_path / "truth" / "a.seg.nrrd", SLICER, {"liver": 1, "tumour": 2})
    write_slicer(tmp_path / "pred" / "a.seg.nrrd", SWAPPED, {"cyst": 1, "liver": 2})
    with pytest.raises(ValueError, match="whose values cannot all be those of their names"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)


@pytest.mark.parametrize("side", ["truth", "pred"])
@pytest.mark.parametrize("geometry", ["check", "reorient"])
def test_files_without_an_orientation_are_compared_by_shape(tmp_path, side, geometry):
    """ITK reads them as another orientation than nibabel, and writes this one; no axis turns."""
    values = labels()
    for name in ("truth", "pred"):
        (tmp_path / name).mkdir()
    image = nibabel.Nifti1Image(values, None)
    image.header.set_zooms((0.5, 0.5, 3))
    bare = tmp_path / side / "a.nii.gz"
    image.to_filename(bare)
    assert not read_volume(bare).is_placed
    other = tmp_path / ("pred" if side == "truth" else "truth") / "a.nii.gz"
    itk.WriteImage(itk.ReadImage(str(bare)), str(other))
    assert read_volume(other).is_placed
    n = int(values.max()) + 1
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=n, geometry=geometry)
    assert run.report().pixel_accuracy == 1
    image.header.set_zooms((0.5, 0.5, 2))
    image.to_filename(bare)
    with pytest.raises(segiou.DataError, match=r"spacing 0\.5 ×"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=n, geometry=geometry)


@pytest.mark.parametrize("ending", [".nrrd", ".mha"])
def test_errors_of_itk_name_the_file_only(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    itk.WriteImage(itk.GetImageFromArray(labels()), str(path))
    data = path.read_bytes()
    for old, new in ((b"NRRD", b"NRRX"), (b"type:", b"type: x"), (b"3\n", b"9\n"), (b"MET_", b"X")):
        path.write_bytes(data.replace(old, new, 1))
        try:
            read_volume(path)
        except MaskError as error:
            assert not re.search(r"segiou-\w+/|0x[0-9a-f]", error.problem), error.problem
