from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from segiou import MaskError, read_mask
from segiou.labels import LabelClass, LabelSet, load_labels
from segiou.masks import ArchiveFolder, LocalFolder, LossyMaskError, open_mask, open_windowed
from segiou.masks.read import from_bytes

HOSTILE = Path(__file__).parents[2] / "fixtures" / "hostile"
EXPECTED = json.loads((HOSTILE / "expected.json").read_text())
FILES = {name: entry for name, entry in EXPECTED.items() if "." in name}


def labels():
    return load_labels(HOSTILE / "labels.toml")


@pytest.mark.parametrize("name", [n for n, e in FILES.items() if "pixels" in e])
def test_good_files_are_read(name):
    np.testing.assert_array_equal(read_mask(HOSTILE / name, labels()), FILES[name]["pixels"])


def test_colours_need_a_label_set():
    np.testing.assert_array_equal(
        read_mask(HOSTILE / "rgb.png", labels()), FILES["rgb.png"]["with_colors"]
    )
    with pytest.raises(MaskError, match=r"rgb.png: is a colour image .mode RGB., but no label set"):
        read_mask(HOSTILE / "rgb.png")
    with pytest.raises(MaskError, match="'brats' has no colours"):
        read_mask(HOSTILE / "rgb.png", load_labels("brats"))


REFUSALS = {
    "truncated.png": "is truncated",
    "bad_crc.png": "is corrupt",
    "empty_idat.png": "is corrupt",
    "zero_bytes.png": "is empty .0 bytes.",
    "text_named.png": "is not an image",
    "bomb.png": "declares an invalid size: .*900000000 pixels",
    "animated.png": "has 2 frames",
    "frames.gif": "has 2 frames",
    "frames.tif": "has 2 pages",
    "float32.tif": "contains 0.5 at row 0, column 0",
    "object.npy": "corrupt or unsafe .npy",
    "two_arrays.npz": "contains 2 arrays .truth uint8",
    "cmyk.tif": "channels .SEPARATED",
    "lossy.jpg": "is a lossy JPEG.*--allow-lossy",
    "translucent_la.png": "1 transparent pixel",
    "translucent_rgba.png": "1 transparent pixel",
    "unknown_color.png": "#00ff00 .2 pixels.",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_files_are_refused_with_name_and_reason(name):
    with pytest.raises(MaskError, match=REFUSALS[name]) as caught:
        read_mask(HOSTILE / name, labels())
    assert caught.value.path == str(HOSTILE / name)
    assert str(caught.value).startswith(f"{HOSTILE / name}: ")


def test_every_hostile_file_is_held_to_an_answer():
    judged = {n for n, e in FILES.items() if "pixels" in e} | set(REFUSALS)
    # These can be read: what is wrong with them shows when they are scored or inspected.
    doubtful = {"rgb.png", "binary_255.png", "interpolated.png", "undeclared.png"}
    assert judged | doubtful == set(FILES)
    for name in doubtful:
        assert open_mask(HOSTILE / name).values.size


def test_lossy_masks_are_taken_when_told():
    assert read_mask(HOSTILE / "lossy.jpg", allow_lossy=True).dtype == np.uint8
    with pytest.raises(LossyMaskError):
        read_mask(HOSTILE / "lossy.jpg")


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(MaskError, match="does not exist"):
        read_mask(tmp_path / "gone.png")
    with pytest.raises(MaskError, match="is not a regular file"):
        read_mask(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(MaskError, match="is not a regular file"):
        read_mask(tmp_path / "pipe.png")


def test_a_file_is_read_to_the_end_however_little_a_call_reads(tmp_path, monkeypatch):
    path = tmp_path / "a.npy"
    path.write_bytes(bytes(range(200)))
    read = os.read
    monkeypatch.setattr(os, "read", lambda handle, most: read(handle, min(most, 60)))
    assert LocalFolder("").read(str(path))[0] == bytes(range(200))


def test_huge_files_that_no_window_opens_are_refused_unread(tmp_path):
    path = tmp_path / "a.png"
    with path.open("wb") as file:
        file.truncate((1 << 31) + 1)  # takes no room
    with pytest.raises(MaskError, match=r"a.png: is too large \(2147483649 bytes\); store it as"):
        LocalFolder("").read(str(path))


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(MaskError("a.png", "is odd")))
    assert (error.path, error.problem) == ("a.png", "is odd")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "bool"])
@pytest.mark.parametrize("compression", [None, "zlib", "packbits"])
def test_tiff_of_any_integer_type(tmp_path, dtype, compression):
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    path = tmp_path / "mask.tif"
    if dtype == "bool":
        compression = None
    try:
        tifffile.imwrite(path, array, compression=compression)
    except (ValueError, KeyError):
        pytest.skip(f"tifffile cannot write {compression} without imagecodecs")
    np.testing.assert_array_equal(read_mask(path), array)


def test_tiff_palette_gives_indices_and_lzw_is_read(tmp_path):
    image = Image.fromarray(np.uint8([[0, 1], [2, 1]])).convert("P")
    image.putdata([0, 1, 2, 1])
    image.putpalette([9, 9, 9, 200, 0, 0, 0, 0, 200])
    for compression in (None, "tiff_lzw", "tiff_adobe_deflate"):
        path = tmp_path / f"{compression}.tif"
        image.save(path, compression=compression)
        np.testing.assert_array_equal(read_mask(path), [[0, 1], [2, 1]])


def test_numpy_files_are_mapped_not_loaded(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((3, 4), dtype=">i4"))
    values = read_mask(tmp_path / "m.npy")
    assert isinstance(values, np.memmap)
    assert values.shape == (3, 4)


def test_the_content_counts_not_the_ending(tmp_path):
    path = tmp_path / "really_a_png.tif"
    Image.fromarray(np.uint8([[3, 4]])).save(path, format="PNG")
    np.testing.assert_array_equal(read_mask(path), [[3, 4]])
    np.save(tmp_path / "x", np.uint8([[1]]))
    (tmp_path / "x.npy").rename(tmp_path / "x.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "x.png"), [[1]])


@pytest.mark.parametrize(
    ("colors", "values"),
    [
        (None, [[0, 7], [3, 3]]),
        (["#000000", "#800000"], [[0, 7], [3, 3]]),  # the grey of value 0 is its colour
        (["#010101", "#800000"], "#030303"),  # 1 is the colour of class 0
    ],
)
def test_equal_channels_are_values(tmp_path, colors, values):
    classes = [{"name": f"c{i}", "values": [i]} for i in range(8)]
    for one, color in zip(classes, colors or (), strict=False):
        one["colors"] = [color]
    label_set = LabelSet.from_dict({"classes": classes})
    Image.fromarray(np.dstack([np.uint8([[0, 7], [3, 3]])] * 3)).save(tmp_path / "g.png")
    if isinstance(values, str):
        with pytest.raises(MaskError, match=values):
            read_mask(tmp_path / "g.png", label_set)
    else:
        assert read_mask(tmp_path / "g.png", label_set).tolist() == values
        assert read_mask(tmp_path / "g.png").tolist() == values


def test_values_in_three_channels_are_told_where_the_set_has_colours(tmp_path):
    camvid = load_labels("camvid")
    Image.fromarray(np.full((2, 2, 3), 7, np.uint8)).save(tmp_path / "g.png")
    with pytest.raises(MaskError, match=r"#070707 \(4 pixels\); its channels are equal"):
        read_mask(tmp_path / "g.png", camvid)
    Image.fromarray(np.full((2, 2, 3), 77, np.uint8)).save(tmp_path / "g.png")
    with pytest.raises(MaskError, match="add them to a class"):
        read_mask(tmp_path / "g.png", camvid)


def test_many_unknown_colours_are_called_interpolated(tmp_path):
    ramp = np.zeros((10, 20, 3), np.uint8)
    ramp[..., 0] = np.arange(200).reshape(10, 20)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    with pytest.raises(MaskError, match=r"and 19. more; many similar colours.*interpolation"):
        read_mask(tmp_path / "ramp.png", labels())


def test_ignored_colours_become_an_ignored_value(tmp_path):
    voc = load_labels("voc2012")
    aeroplane, void = voc.classes[1].colors[0], voc.ignore_colors[0]
    Image.fromarray(np.uint8([[aeroplane, void]])).save(tmp_path / "m.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "m.png", voc), [[1, 255]])


def forged_zip(content, name, declared, *, kind=zipfile.ZIP_DEFLATED, checksum=None):
    """A zip whose only member says that it has another size, and perhaps another checksum."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr(name, content)
    data = bytearray(file.getvalue())
    for at in (data.index(b"PK\x03\x04") + 14, data.rindex(b"PK\x01\x02") + 16):
        if checksum is not None:
            struct.pack_into("<I", data, at, checksum)
        struct.pack_into("<I", data, at + 8, declared)
    return bytes(data)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.gate
def test_a_member_is_unpacked_no_further_than_it_declares(tmp_path, kind):
    bomb = npy(np.zeros((1 << 10, 1 << 15), np.uint8))
    forged = forged_zip(bomb, "a.npy", 100, kind=kind)
    for name in ("a.npz", "a.zip"):
        (tmp_path / name).write_bytes(forged)
    del bomb, forged
    zipped = ArchiveFolder(str(tmp_path / "a.zip"), str(tmp_path / "a.zip"))
    path = zipped.find()["a.npy"]
    tracemalloc.start()
    try:
        with pytest.raises(MaskError, match=r"a.npz: is a corrupt or unsafe .npz file: "):
            read_mask(tmp_path / "a.npz")
        with pytest.raises(MaskError, match=r"a.npy: cannot be read from the archive: "):
            zipped.read(path)
        # Of 32 MB; LZMA's dictionary alone takes 8.
        most = 12 << 20 if kind == zipfile.ZIP_LZMA else 1 << 20
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("declared", [-1, 1])
def test_a_member_has_the_size_that_it_declares_though_its_checksum_fits(tmp_path, declared):
    content = npy(np.uint8([[1, 2, 3]]))
    size = len(content) + declared
    for stop in (size, size + 1):
        checksum = zlib.crc32(content[:stop])
        (tmp_path / "a.npz").write_bytes(forged_zip(content, "a.npy", size, checksum=checksum))
        with pytest.raises(MaskError, match=r"a.npz: is a corrupt or unsafe .npz file: "):
            read_mask(tmp_path / "a.npz")
    whole = forged_zip(content, "a.npy", len(content))
    (tmp_path / "a.npz").write_bytes(whole)
    assert read_mask(tmp_path / "a.npz").tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_numpy_file_that_goes_on_behind_its_array_is_refused(tmp_path, order):
    content = npy(np.asarray(np.arange(6, dtype=np.uint8).reshape(2, 3), order=order))
    (tmp_path / "a.npy").write_bytes(content)
    assert read_mask(tmp_path / "a.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    (tmp_path / "a.npy").write_bytes(content + b"\0" * 7)
    (tmp_path / "a.npz").write_bytes(forged_zip(content + b"x", "a.npy", len(content) + 1))
    message = r"a.npy: is a corrupt .npy file: 7 bytes follow its array; save it again"
    with pytest.raises(MaskError, match=message):
        read_mask(tmp_path / "a.npy")
    with pytest.raises(MaskError, match=message):
        from_bytes((tmp_path / "a.npy").read_bytes(), tmp_path / "a.npy")
    with pytest.raises(MaskError, match=message):
        open_windowed(tmp_path / "a.npy", least=1)
    with pytest.raises(MaskError, match=r"a.npz: .* 1 bytes follow its array"):
        read_mask(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_unpacked_whatever_packed_them(tmp_path, kind):
    rng = np.random.default_rng(0)
    for array in (rng.integers(0, 256, (90, 80), np.uint8), np.zeros((3, 0), np.uint8)):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", kind) as archive:
            archive.writestr("a.npy", npy(array))
        np.testing.assert_array_equal(read_mask(tmp_path / "a.npz"), array)


def test_what_is_no_array_in_an_npz_is_refused(tmp_path):
    for content in (b"text", b"", forged_zip(b"x", "x.npy", 1), npy(np.uint8([[1]]))[:50]):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("a.npy", content)
        with pytest.raises(MaskError, match=r"a.npz: is a corrupt or unsafe .npz file: a.npy"):
            read_mask(tmp_path / "a.npz")


def test_an_ignored_value_of_a_colour_may_be_any_integer(tmp_path):
    Image.fromarray(np.uint8([[[1, 2, 3], [0, 0, 0]]])).save(tmp_path / "m.png")
    for value in (-1, 255, 300, 2**63, 2**64 - 1):
        classes = (LabelClass("a", (7,), ((1, 2, 3),)),)
        made = LabelSet("x", classes, ignore=(value,), ignore_colors=((0, 0, 0),))
        assert read_mask(tmp_path / "m.png", made).tolist() == [[7, value]]


def test_a_tiff_is_unpacked_no_further_than_it_declares(tmp_path):
    mask = np.zeros((200, 200), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", mask, compression="zlib", byteorder="<")
    data = bytearray((tmp_path / "a.tif").read_bytes())
    bomb = zlib.compress(bytes(24 << 20), 9)
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        tags = file.pages[0].tags
        entries = [(tags[273].valueoffset, len(data)), (tags[279].valueoffset, len(bomb))]
    for at, value in entries:
        struct.pack_into("<I", data, at, value)
    (tmp_path / "a.tif").write_bytes(data + bomb)
    for read in (read_mask, lambda path: open_windowed(path, least=1).values[:9, :9]):
        tracemalloc.start()
        try:
            with pytest.raises(MaskError, match=r"a.tif: .* strip 0 is too large"):
                read(tmp_path / "a.tif")
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (3, 5)])
def test_a_tiff_of_one_row_or_column_keeps_its_shape(tmp_path, shape):
    values = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    for array in (values, np.dstack([values] * 3)):
        options = {"photometric": "rgb"} if array.ndim == 3 else {}
        tifffile.imwrite(tmp_path / "a.tif", array, **options)
        np.testing.assert_array_equal(open_mask(tmp_path / "a.tif").values, array)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("has_alpha", [False, True])
@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_colours_of_a_tiff_in_every_layout(tmp_path, dtype, has_alpha, planar):
    colors = np.random.default_rng(0).integers(0, 256, (5, 3, 3)).astype(np.uint8)
    most = np.iinfo(dtype).max
    pixels = colors.astype(dtype) * (most // 255)
    if has_alpha:
        pixels = np.dstack([pixels, np.full((5, 3), most, dtype)])
    alpha = {"extrasamples": ["unassalpha"]} if has_alpha else {}

    def write(values):
        planes = np.moveaxis(values, 2, 0) if planar == "separate" else values
        options = {"photometric": "rgb", "planarconfig": planar, "compression": "zlib", **alpha}
        tifffile.imwrite(tmp_path / "a.tif", planes, **options)

    write(pixels)
    raw = open_mask(tmp_path / "a.tif")
    assert raw.mode == "RGB"
    assert raw.values.dtype == np.uint8
    np.testing.assert_array_equal(raw.values, colors)
    if has_alpha:
        pixels[2, 1, 3] = 0
        write(pixels)
        with pytest.raises(MaskError, match="has 1 transparent pixel; save the mask without"):
            open_mask(tmp_path / "a.tif")
        pixels[2, 1, 3] = most
    if dtype == np.uint16:
        pixels[0, 0, 0] ^= 1
        write(pixels)
        with pytest.raises(MaskError, match="has 16 bits per channel; save colours with 8 bits"):
            open_mask(tmp_path / "a.tif")


def test_large_colours_are_read_if_they_are_plain(tmp_path):
    planes = np.zeros((3, 40, 30), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", planes, photometric="rgb", planarconfig="separate")
    with pytest.raises(MaskError, match="is large and has an alpha channel, planes or 16 bits"):
        open_windowed(tmp_path / "a.tif", least=10)


def test_a_tiff_in_which_0_is_white_gives_what_is_stored(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.uint8([[0, 1, 2]]), photometric="miniswhite")
    assert read_mask(tmp_path / "a.tif").tolist() == [[0, 1, 2]]


def test_a_tiff_that_does_not_say_what_its_values_are_is_refused(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.uint8([[0, 1, 2]]), byteorder="<")
    data = bytearray((tmp_path / "a.tif").read_bytes())
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        at = file.pages[0].tags[262].valueoffset
    struct.pack_into("<H", data, at, 77)
    (tmp_path / "a.tif").write_bytes(data)
    with pytest.raises(MaskError, match=r"a.tif: is a corrupt TIFF: its Photometric.* is 77"):
        read_mask(tmp_path / "a.tif")


@pytest.mark.parametrize("orientation", [1, 3, 8])
def test_a_tiff_that_is_to_be_turned_is_refused(tmp_path, orientation):
    tags = [(274, 3, 1, orientation, True)]
    tifffile.imwrite(tmp_path / "a.tif", np.uint8([[0, 1, 2]]), extratags=tags)
    if orientation == 1:
        assert read_mask(tmp_path / "a.tif").tolist() == [[0, 1, 2]]
        return
    for read in (read_mask, lambda path: open_windowed(path, least=1)):
        with pytest.raises(
            MaskError, match=rf"a.tif: has the Orientation tag {orientation}, which"
        ):
            read(tmp_path / "a.tif")
