"""No pair is one file, on any route, however the two sides name it."""

from __future__ import annotations

import os
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.cli.main import main


def masks_in(folder):
    folder.mkdir(parents=True)
    for i in range(3):
        values = (np.arange(12).reshape(3, 4) + i).astype(np.uint8) % 3
        Image.fromarray(values).save(folder / f"{i}.png")
    return folder


def nested(root):
    masks_in(root / "set" / "predictions")
    (root / "set" / "annotations.xml").write_text("<annotations/>")
    return root / "set", root / "set" / "predictions"


def pattern(root):
    masks_in(root / "set" / "predictions")
    return root / "set" / "*" / "*.png", root / "set"


def linked_folder(root):
    (root / "link").symlink_to(masks_in(root / "pred"))
    return root, root / "link"


def linked_files(root):
    masks_in(root / "pred")
    (root / "truth").mkdir()
    for path in (root / "pred").iterdir():
        (root / "truth" / path.name).symlink_to(path)
    return root / "truth", root / "pred"


def hard_links(root):
    masks_in(root / "pred")
    (root / "truth").mkdir()
    for path in (root / "pred").iterdir():
        os.link(path, root / "truth" / path.name)
    return root / "truth", root / "pred"


def one_hard_link(root):
    """Only one of the pairs is a single file."""
    masks_in(root / "truth"), masks_in(root / "pred")
    (root / "truth" / "1.png").unlink()
    os.link(root / "pred" / "1.png", root / "truth" / "1.png")
    return root / "truth", root / "pred"


def zip_member(root):
    masks_in(root / "pred")
    with zipfile.ZipFile(root / "a.zip", "w") as archive:
        for path in sorted((root / "pred").iterdir()):
            archive.write(path, f"set/pred/{path.name}")
    return root / "a.zip", root / "a.zip" / "set"


def linked_tar(root):
    with tarfile.open(root / "a.tar", "w") as archive:
        archive.add(masks_in(root / "pred"), "pred")
    os.link(root / "a.tar", root / "b.tar")
    return root / "a.tar", root / "b.tar"


def npz_members(root):
    arrays = {name: np.zeros((3, 4), np.uint8) for name in "ab"}
    np.savez(root / "a.npz", **arrays)
    (root / "b.npz").symlink_to(root / "a.npz")
    return root / "a.npz", root / "b.npz"


LAYOUTS = (
    *(nested, pattern, linked_folder, linked_files, hard_links, one_hard_link),
    *(zip_member, linked_tar, npz_members),
)


def by_score_folder(a, b):
    segiou.score_folder(a, b, labels=3)


def by_compare_raters(a, b):
    segiou.compare_raters({"a": str(a), "b": str(b)}, labels=3)


def by_model_of_raters(a, b):
    arrays = {str(i): np.zeros((3, 4), np.uint8) for i in range(3)}
    segiou.compare_raters({"a": str(a), "c": arrays}, model=str(b), labels=3)


PYTHON = (by_score_folder, by_compare_raters, by_model_of_raters)
COMMANDS = (
    ["score", "TRUTH", "PRED"],
    ["score", "TRUTH", "PRED", "--extra", "skip", "--missing", "skip", "--on-error", "skip"],
    ["score", "TRUTH", "PRED", "--key", r"(\d|[ab])(?:\.|$)"],
    ["compare", "PRED", "PRED", "--names", "a,b", "--truth", "TRUTH"],
    ["explain", "TRUTH", "PRED"],
    ["raters", "a=TRUTH", "b=PRED"],
)


@pytest.mark.few(5)
@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_pair_is_one_file_on_any_route(tmp_path, capsys, layout, exchanged):
    truth, pred = layout(tmp_path)[:: -1 if exchanged else 1]
    for route in PYTHON:
        with pytest.raises(segiou.DataError, match="one file compared with itself") as raised:
            route(truth, pred)
        assert str(truth) in str(raised.value)
        assert str(pred) in str(raised.value)
    for command in COMMANDS:
        names = {"TRUTH": str(truth), "PRED": str(pred)}
        words = [word.replace("TRUTH", names["TRUTH"]) for word in command]
        words = [word.replace("PRED", names["PRED"]) for word in words]
        assert main([*words, "--labels", "3"]) == 3, words
        assert "one file compared with itself" in capsys.readouterr().err, words


def test_the_error_names_the_contents_of_the_truth(tmp_path):
    truth, pred = nested(tmp_path)
    with pytest.raises(segiou.DataError) as raised:
        segiou.score_folder(truth, pred, labels=3)
    assert str(raised.value) == (
        f"pairing: {truth} and {pred} contain the same files, so 3 of 3 pairs would be one file "
        f"compared with itself, such as {pred}/0.png; pass two different places "
        f"[{truth} has 3 masks in predictions and no masks: annotations.xml; "
        f"{pred} has 3 masks in it]"
    )


def test_copies_and_two_arrays_of_one_file_are_different(tmp_path):
    masks_in(tmp_path / "truth"), masks_in(tmp_path / "pred")
    assert (
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3).report().mean_iou == 1
    )
    np.savez(tmp_path / "a.npz", gts=[[0, 1]], segs=[[1, 1]])
    both = tmp_path / "a.npz"
    for truth, pred in ((both / "gts", both / "segs"), (f"{both}/gts", f"{both}/segs")):
        assert segiou.score_folder(str(truth), str(pred), labels=2).total().pixels == 2
