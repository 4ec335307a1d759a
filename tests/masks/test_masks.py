from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from segiou.labels.label_files import load_labels
from segiou.masks.read import LossyMaskError, MaskError, open_mask, read_mask

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
    with pytest.raises(MaskError, match=r"rgb.png: holds colours .mode RGB., but no label set"):
        read_mask(HOSTILE / "rgb.png")
    with pytest.raises(MaskError, match="nothing in label set 'brats' says"):
        read_mask(HOSTILE / "rgb.png", load_labels("brats"))


REFUSALS = {
    "truncated.png": "is damaged: .*truncated",
    "bad_crc.png": "is damaged",
    "empty_idat.png": "is damaged",
    "zero_bytes.png": "is empty .0 bytes.",
    "text_named.png": "is no image: it begins with",
    "bomb.png": "declares a size that no mask has: .*900000000 pixels",
    "animated.png": "has 2 frames",
    "frames.gif": "has 2 frames",
    "frames.tif": "has 2 pages",
    "float32.tif": "holds float32; labels must be integers",
    "float64.npy": "holds float64; labels must be integers",
    "object.npy": "damaged or unsafe .npy",
    "two_arrays.npz": "holds 2 arrays .truth, weight.",
    "cmyk.tif": "samples of kind SEPARATED",
    "lossy.jpg": "is a JPEG, which does not keep .*--allow-lossy",
    "translucent_la.png": "1 pixels that are not opaque",
    "translucent_rgba.png": "1 pixels that are not opaque",
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


def test_grey_in_three_channels_is_told(tmp_path):
    Image.fromarray(np.full((2, 2, 3), 7, np.uint8)).save(tmp_path / "g.png")
    with pytest.raises(MaskError, match="three channels are equal: save one"):
        read_mask(tmp_path / "g.png")


def test_many_unknown_colours_are_called_interpolated(tmp_path):
    ramp = np.zeros((10, 20, 3), np.uint8)
    ramp[..., 0] = np.arange(200).reshape(10, 20)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    with pytest.raises(MaskError, match=r"and 19. more; many near colours .*interpolation"):
        read_mask(tmp_path / "ramp.png", labels())


def test_ignored_colours_become_an_ignored_value(tmp_path):
    voc = load_labels("voc2012")
    aeroplane, void = voc.classes[1].colors[0], voc.ignore_colors[0]
    Image.fromarray(np.uint8([[aeroplane, void]])).save(tmp_path / "m.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "m.png", voc), [[1, 255]])
