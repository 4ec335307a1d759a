"""Places and files that are not masks: each is named, with what to do."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import tarfile
import zipfile

import numpy as np
import pytest
import tifffile
from mask_files import required
from PIL import Image

import segiou
from segiou.masks import LossyMaskError, MaskError, open_mask, open_source, read_mask, read_volume
from segiou.masks.read import from_bytes
from segiou.scoring import inspect_folder

#: Files of JSON, and what the message names.
JSON = [
    ({"images": [], "annotations": [], "categories": 5}, "'categories' must be list, got 5"),
    (
        {"annotations": [{"image_id": 1, "file_name": "x.png", "segments_info": [{"id": 3}]}]},
        "segment 3 of x.png: 'category_id' is missing",
    ),
    ([{"image_id": "", "category_id": 1, "segmentation": {}}], "entry 0: 'image_id' is missing"),
]


@pytest.mark.parametrize(("content", "message"), JSON)
def test_faults_of_annotation_files_are_named(tmp_path, content, message):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        open_source(tmp_path / "a.json").find()


def test_a_shape_that_is_text_is_named(tmp_path):
    content = {"imageHeight": 8, "imageWidth": 8, "shapes": ["x"]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(MaskError, match="shape 1 of 1: expected an object, got 'x'"):
        open_source(tmp_path / "a.json").read(f"{tmp_path}/a.json/a")


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_chains_of_truncated_archives_are_named(tmp_path, kind):
    required("fsspec", "SEGIOU_REQUIRE_EXTRAS")
    path = tmp_path / f"cut.{kind}"
    (tmp_path / "a.png").write_bytes(bytes(5000))
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(tmp_path / "a.png")
    else:
        with tarfile.open(path, "w") as archive:
            archive.add(tmp_path / "a.png")
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=f"{kind}://::file://.*cut.{kind}: cannot be opened: "):
        open_source(f"{kind}://::file://{path}").find()


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_a_server_that_is_not_there_is_named(scheme):
    for name in ("fsspec", "aiohttp"):
        required(name, "SEGIOU_REQUIRE_EXTRAS")
    with pytest.raises(ValueError, match=f"{scheme}://127.0.0.1:9/x: cannot be (listed|opened): "):
        open_source(f"{scheme}://127.0.0.1:9/x").find()


@pytest.mark.parametrize(
    ("name", "fix"), [("a.zip", ", or pass zip://::file://.*zip"), ("a.json", ""), ("a.png", "")]
)
def test_a_file_at_a_url_is_not_an_empty_folder(tmp_path, name, fix):
    required("fsspec", "SEGIOU_REQUIRE_EXTRAS")
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ValueError, match=f"is a file, not a folder; copy it to this machine{fix}$"):
        open_source(f"file://{tmp_path}/{name}").find()


@pytest.mark.parametrize(
    ("name", "message"),
    [(".zgroup", "zarr store"), ("state.json", r"data set of save_to_disk .*to_parquet")],
)
def test_folders_of_other_tools_are_named(tmp_path, name, message):
    (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=message):
        open_source(tmp_path).find()


def test_tensors_are_not_called_a_folder(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(bytes(9))
    with pytest.raises(ValueError, match="safetensors"):
        open_source(path).find()
    with pytest.raises(MaskError, match="has arrays by name; pass the file in place of a folder"):
        open_mask(path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), r"no mask files found \(supported: \.avif, "),
        (
            ("a.pkl", "b/c.PKL", "read.me"),
            "no mask files found, but 2 .pkl files and 1 .me file; each is a pickle",
        ),
        (("a.mgz", "b"), "but 1 .mgz file and 1 other file; each is a volume of FreeSurfer"),
        (("a.xyz", ".b.png"), r"but 1 .xyz file \(supported: \.avif, "),
        (("a.txt", "b.txt"), "but 2 .txt files; each is read only in a folder of YOLO's polygons"),
        (("sub/a.json", "README"), r"pass a pattern: '.*sub/\*\.json'"),
    ],
)
def test_folders_without_masks_say_what_is_in_them(tmp_path, names, message):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in names:
            (tmp_path / "a" / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / "a" / name).write_text("{}")
            archive.writestr(f"x/{name}", "{}")
    (tmp_path / "a").mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=message):
        open_source(tmp_path / "a").find()
    if "pattern" not in message:
        with pytest.raises(ValueError, match=message):
            open_source(tmp_path / "a.zip").find()


@pytest.mark.parametrize("name", ["a.pkl", "a.pt", "a.pth"])
def test_pickles_of_every_tool_are_called_pickles(tmp_path, name):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:  # as torch.save writes them
        archive.writestr("a/data.pkl", pickle.dumps({}))
    for content in ((tmp_path / name).read_bytes(), pickle.dumps({})):
        with pytest.raises(MaskError, match="is a pickle, and unpickling can run"):
            from_bytes(content, tmp_path / name)


def test_lossless_webp_keeps_colours(tmp_path):
    labels = segiou.LabelSet.from_dict({"classes": [{"name": "a", "colors": ["#010203"]}]})
    image = Image.fromarray(np.full((4, 4, 3), (1, 2, 3), np.uint8))
    image.save(tmp_path / "a.webp", lossless=True)
    image.save(tmp_path / "b.webp")
    assert read_mask(tmp_path / "a.webp", labels).tolist() == np.zeros((4, 4)).tolist()
    with pytest.raises(LossyMaskError, match="is a lossy WEBP"):
        read_mask(tmp_path / "b.webp", labels)


def test_toml_with_a_byte_order_mark(tmp_path):
    text = segiou.LabelSet.from_names(["a", "b"]).to_toml()
    (tmp_path / "a.toml").write_text(f"\ufeff{text}", encoding="utf-8")
    assert segiou.load_labels(tmp_path / "a.toml").class_names == ("a", "b")


@pytest.mark.parametrize("packed", [False, True])
def test_nrrd_headers_with_detached_data_are_read(tmp_path, packed):
    required("SimpleITK", "SEGIOU_REQUIRE_EXTRAS")
    itk = importlib.import_module("SimpleITK")
    values = np.arange(60, dtype=np.uint8).reshape(5, 4, 3)
    image = itk.GetImageFromArray(values)
    image.SetSpacing((1, 2, 3))
    itk.WriteImage(image, str(tmp_path / "a.nhdr"), useCompression=packed)
    volume = read_volume(tmp_path / "a.nhdr")
    np.testing.assert_array_equal(volume.values, values.T)
    assert volume.spacing == (1, 2, 3)
    assert list(open_source(tmp_path).find()) == ["a.nhdr"]
    header = (tmp_path / "a.nhdr").read_text(errors="replace").replace("a.raw", "../a.raw")
    (tmp_path / "a.nhdr").write_text(header)
    with pytest.raises(MaskError, match="expected one file in the same folder"):
        read_volume(tmp_path / "a.nhdr")


@pytest.mark.parametrize(
    "name", [*("a.png", "a.hdr", "a.npz", "a.zip"), *("a.parquet", "a.tif", "a.json")]
)
def test_a_pipe_is_refused_and_never_waited_for(name, tmp_path):
    (folder := tmp_path / "masks").mkdir()
    os.mkfifo(pipe := folder / name)
    with pytest.raises(ValueError, match="is not a regular file"):
        open_source(pipe).find()
    if name.endswith((".hdr", ".zip", ".parquet", ".json")):
        with pytest.raises(segiou.DataError, match="no mask files"):
            inspect_folder(folder)
    else:
        (problem,) = inspect_folder(folder).problems
        assert problem.text == "is not a regular file"


def test_a_broken_link_is_said_to_be_one(tmp_path):
    (tmp_path / "a.png").symlink_to("gone.png")
    (problem,) = inspect_folder(tmp_path).problems
    assert problem.text == "is a broken link"
    with pytest.raises(ValueError, match="is a broken link"):
        open_source(tmp_path / "a.png").find()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("volume.tif", "stores a volume in one page"),
        ("thumbnail.tif", "begins with a reduced image"),
        ("eps.png", r"is a vector image \(EPS\)"),
        ("near.npy", r"such as 3\.0000001"),
        ("single.npy", r"such as 0\.1\]"),
    ],
)
def test_the_reason_is_the_real_one(name, problem, tmp_path):
    path, page = tmp_path / name, np.ones((20, 16), np.uint8)
    if name == "volume.tif":
        tifffile.imwrite(path, np.stack([page] * 2), volumetric=True, tile=(16, 16, 16))
    elif name == "thumbnail.tif":
        with tifffile.TiffWriter(path) as file:
            file.write(page[::2, ::2], subfiletype=1)
            file.write(page)
    elif name == "eps.png":
        Image.fromarray(page).save(path, "EPS")
    else:
        np.save(path, page + 2.0000001 if name == "near.npy" else page * np.float32(0.1))
    with pytest.raises(MaskError, match=problem):
        open_mask(path)


def test_two_unicode_forms_of_a_name_are_told_apart(tmp_path):
    mask = Image.new("L", (2, 2))
    for folder, names in (("t", ["\u00e9.png", "e\u0301.png"]), ("p", ["\u00e9.png"])):
        (tmp_path / folder).mkdir()
        for name in names:
            mask.save(tmp_path / folder / name)
    with pytest.raises(segiou.DataError, match="another Unicode form"):
        segiou.score_folder(tmp_path / "t", tmp_path / "p", labels="0-1")


def test_errors_of_libraries_are_cut_off(tmp_path):
    np.save(path := tmp_path / "a.npy", np.zeros((30, 40), np.uint8))
    path.write_bytes(path.read_bytes().replace(b"v\0{", b"\xff\3[", 1))
    with pytest.raises(MaskError, match="Cannot parse header") as raised:
        open_mask(path)
    assert len(raised.value.problem) < 300
