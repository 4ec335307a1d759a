"""Arrays (N, H, W) in files: N images or a volume, as the options say, never by chance."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import tifffile

import segiou
from segiou.cli.main import main
from segiou.labels import LabelClass, LabelSet
from segiou.raters import compare_raters

THREAD = Path(__file__).parents[2].parent / "shared" / "data" / "threads" / "05-pannuke"
# Per image: IoU of class 1 is 1/4, 1 and 0; pooled (1 + 4 + 0) / (4 + 4 + 2).
TRUTH = np.uint8([[[1, 1], [1, 1]], [[1, 1], [1, 1]], [[1, 0], [0, 0]]])
PRED = np.uint8([[[1, 0], [0, 0]], [[1, 1], [1, 1]], [[0, 1], [0, 0]]])
EITHER = r"(has|have) shape \(3, 2, 2\), which may be 3 images or one volume.*--array-axes nyx.*zyx"


def npy(values):
    content = BytesIO()
    np.save(content, values)
    return content.getvalue()


def as_npy(root, values):
    np.save(root.with_suffix(".npy"), values)
    return root.with_suffix(".npy")


def as_npz(root, values):
    np.savez_compressed(root.with_suffix(".npz"), values)
    return root.with_suffix(".npz")


def as_folder(root, values):
    root.mkdir()
    np.save(root / "a.npy", values)
    return root


def as_pages(root, values):
    tifffile.imwrite(root.with_suffix(".tif"), values, photometric="minisblack")
    return root.with_suffix(".tif")


def as_zip(root, values):
    with zipfile.ZipFile(root.with_suffix(".zip"), "w") as archive:
        archive.writestr("a.npy", npy(values))
        archive.writestr("b.npy", npy(values))
    return root.with_suffix(".zip")


def as_arrays(root, values):
    np.savez(root.with_suffix(".npz"), masks=values, other=values)
    return root.with_suffix(".npz")


def as_member(root, values):
    return as_arrays(root, values) / "masks"


FILES = [as_npy, as_npz, as_folder, as_pages, as_zip, as_arrays, as_member]


@pytest.mark.few(3)
@pytest.mark.parametrize("save", FILES)
def test_images_and_volumes_in_every_file(save, tmp_path):
    places = save(tmp_path / "truth", TRUTH), save(tmp_path / "pred", PRED)
    with pytest.raises(segiou.DataError, match=EITHER):
        segiou.score_folder(*places, labels=2)
    files = 2 if save in (as_zip, as_arrays) else 1
    images = segiou.score_folder(*places, labels=2, array_axes="nyx")
    in_python = segiou.score(TRUTH, PRED, labels=2)
    assert len(images) == 3 * files
    assert [row["iou:1"] for row in images.rows()] == [1 / 4, 1.0, 0.0] * files
    assert [row["iou:1"] for row in in_python.rows()] == [1 / 4, 1.0, 0.0]
    for axes in ("zyx", "xyz"):
        volumes = segiou.score_folder(*places, labels=2, array_axes=axes)
        assert len(volumes) == files
        np.testing.assert_array_equal(volumes.total().matrix, images.total().matrix)
        assert volumes.total().iou()[1] == 5 / 10


@pytest.mark.skipif(not THREAD.is_dir(), reason="the threads are not beside this checkout")
def test_a_protocol_per_image_has_the_value_of_python(monkeypatch, capsys):
    monkeypatch.chdir(THREAD)
    command = ["score", "sem.npy", "pred_types.npy", "--labels", "6", "-q"]
    assert main([*command, "--protocol", "monai"]) == 3
    assert "--array-axes nyx" in capsys.readouterr().err
    assert main([*command, "--protocol", "monai", "--array-axes", "nyx"]) == 0
    assert "Mean IoU 57.22 %" in capsys.readouterr().out
    truth, pred = np.load("sem.npy"), np.load("pred_types.npy")
    expected = json.loads(Path("expected.json").read_text())["mean_iou"]
    for how, wanted in (({}, expected), ({"protocol": "monai"}, None)):
        in_python = segiou.score(truth, pred, labels=6, **how).report().mean_iou
        files = segiou.score_folder("sem.npy", "pred_types.npy", labels=6, array_axes="nyx", **how)
        assert files.report().mean_iou == in_python
        assert wanted is None or in_python == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("npz", {}),
        pytest.param(
            "npy",
            {"spacing": (2, 1, 1), "surfaces": True},
            marks=pytest.mark.needs("measures.surfaces"),
        ),
    ],
)
def test_a_spacing_of_three_values_tells_volumes(kind, how, tmp_path):
    places = [tmp_path / "truth", tmp_path / "pred"]
    for place in places:
        place.mkdir()
        if kind == "npz":
            np.savez(place / "a.npz", gts=TRUTH, spacing=np.array([2.0, 1.0, 1.0]))
        else:
            np.save(place / "a.npy", TRUTH)
    assert len(segiou.score_folder(*places, labels=2, **how)) == 1


@pytest.mark.parametrize("save", [as_npy, as_npz])
@pytest.mark.parametrize("index", [0, slice(1)])
def test_a_stack_of_one_image(save, index, tmp_path):
    """The files did not match, because each image was named by its file."""
    places = save(tmp_path / "t", TRUTH[index]), save(tmp_path / "p", PRED[index])
    run = segiou.score_folder(*places, labels=2, array_axes="nyx")
    assert run.report().classes[1].iou == 1 / 4


@pytest.mark.gate
def test_masks_beside_stacks_stay_single(tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "one.npy", TRUTH[0])
        np.save(tmp_path / side / "two.npy", np.repeat(TRUTH, 4, axis=0))
    how = {"labels": 2, "array_axes": "nyx"}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **how)
    assert [*run.ids] == ["one", *(f"two/{i:02}" for i in range(12))]
    kept = tmp_path / "r.sqlite"
    for _ in range(2):
        again = segiou.score_folder(
            tmp_path / "truth", tmp_path / "pred", run=kept, processes=2, **how
        )
        assert again.total() == run.total()
        assert [*again.ids] == [*run.ids]


def test_colours_beside_stacks_are_one_mask(tmp_path):
    """The kind that tifffile chooses for three frames of uint8; each row was an IndexError."""
    colors = np.uint8([[[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [9, 8, 7]]])  # (H, W, 3)
    for name, planes in (("truth", colors), ("pred", colors[::-1])):
        tifffile.imwrite(tmp_path / f"{name}.tif", np.moveaxis(planes, -1, 0), photometric="rgb")
    places = tmp_path / "truth.tif", tmp_path / "pred.tif"
    with pytest.raises(segiou.DataError, match="each is a colour image"):
        segiou.score_folder(*places, labels=2, array_axes="nyx")
    classes = [
        LabelClass("a", (0,), colors=((1, 2, 3),)),
        LabelClass("b", (1,), colors=((9, 8, 7),)),
    ]
    labels = LabelSet("two", tuple(classes))
    run = segiou.score_folder(*places, labels=labels, array_axes="nyx")
    np.testing.assert_array_equal(run.total().matrix, [[2, 1], [1, 0]])


def test_regions_and_thresholds_of_stacks(tmp_path):
    region = np.uint8([[[1, 0], [0, 0]], [[0, 0], [0, 1]], [[1, 1], [1, 1]]])
    values = {"truth": TRUTH * 255, "pred": PRED * 200, "roi": region}
    places = {name: as_npy(tmp_path / name, one) for name, one in values.items()}
    cut = {"truth_threshold": 128, "pred_threshold": 128}
    run = segiou.score_folder(**places, labels="binary", array_axes="nyx", **cut)
    mask = region.astype(bool)
    wanted = segiou.score(TRUTH, PRED, mask=mask, labels=2).total().matrix
    np.testing.assert_array_equal(run.total().matrix, wanted)


def test_a_link_to_a_stack_is_the_same_file(tmp_path):
    truth, pred = as_folder(tmp_path / "truth", TRUTH), tmp_path / "pred"
    pred.mkdir()
    (pred / "a.npy").symlink_to(truth / "a.npy")
    with pytest.raises(segiou.DataError, match="contain the same files"):
        segiou.score_folder(truth, pred, labels=2, array_axes="nyx")


def test_arrays_of_three_axes_in_stores_are_images(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    places = [tmp_path / f"{side}.safetensors" for side in ("truth", "pred")]
    for path, values in zip(places, (TRUTH, PRED), strict=True):
        numpy.save_file({"masks": values}, path)
    for how in ({}, {"array_axes": "nyx"}):
        assert len(segiou.score_folder(*places, labels=2, **how)) == 3
    with pytest.raises(segiou.DataError, match=r"is a store.*is N images.*--array-axes"):
        segiou.score_folder(*places, labels=2, array_axes="zyx")


def test_raters_ask_as_well(tmp_path):
    sides = {"anna": TRUTH, "ben": PRED}
    raters = {name: as_folder(tmp_path / name, values) for name, values in sides.items()}
    with pytest.raises(segiou.DataError, match=EITHER):
        compare_raters(raters, labels=2)
    found = compare_raters(raters, labels=2, array_axes="nyx").matrix("dice", "1")
    by_case = {name: dict(enumerate(values)) for name, values in sides.items()}
    assert found.tolist() == compare_raters(by_case, labels=2).matrix("dice", "1").tolist()
    assert main(["raters", *map(str, raters.values()), "--labels", "2", "-q"]) == 3
    command = ["raters", *map(str, raters.values()), "--labels", "2", "-q", "--array-axes", "nyx"]
    assert main(command) == 0


@pytest.mark.parametrize("axis", [1, 3])
def test_a_channel_axis_of_one_is_dropped(axis, tmp_path):
    np.save(tmp_path / "t.npy", np.expand_dims(TRUTH, axis))
    np.save(tmp_path / "p.npy", PRED)
    run = segiou.score_folder(tmp_path / "t.npy", tmp_path / "p.npy", labels=2, array_axes="nyx")
    assert run.total().iou()[1] == 5 / 10
    assert len(run) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(np.zeros((3, 2, 2, 3), int)), r"t.npy: has shape \(3, 2, 2, 3\); expected images"),
        (b"\x93NUMPY", r"t.npy: is a corrupt"),
    ],
)
def test_a_stack_that_cannot_be_read_is_named(content, words, tmp_path):
    (tmp_path / "t.npy").write_bytes(content)
    np.save(tmp_path / "p.npy", PRED)
    with pytest.raises(segiou.DataError, match=words):
        segiou.score_folder(tmp_path / "t.npy", tmp_path / "p.npy", labels=2, array_axes="nyx")


def test_arrays_named_after_files(tmp_path):
    """``savez(**{path.name: mask})`` names an array ``a.png``, which is a member ``a.png.npy``."""
    np.savez(tmp_path / "t.npz", **{"a.png": TRUTH[0], "x/b": TRUTH[1]})
    np.savez(tmp_path / "p.npz", **{"a": PRED[0], "x/b.tif": PRED[1]})
    run = segiou.score_folder(tmp_path / "t.npz", tmp_path / "p.npz", labels=2)
    assert run.ids == ("a", "x/b")
    assert run.total().iou()[1] == 5 / 8
