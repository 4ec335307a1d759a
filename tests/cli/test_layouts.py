"""Layouts of public data sets: the first error leads to the mean IoU in one correction."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_mask
from PIL import Image

from segiou.cli.main import main

RNG = np.random.default_rng(21)


def blocks(number):
    return np.kron(RNG.integers(0, number, (4, 5)), np.ones((4, 4), int))


def sides(images=4, number=3):
    """Truth masks and predictions, and their mean IoU."""
    truths = [blocks(number) for _ in range(images)]
    preds = [np.where(RNG.random(t.shape) < 0.2, (t + 1) % number, t) for t in truths]
    t, p = np.array(truths), np.array(preds)
    each = [((t == c) & (p == c)).sum() / ((t == c) | (p == c)).sum() for c in range(number)]
    return truths, preds, np.mean(each)


def photo(path):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 256, (16, 20, 3)).astype(np.uint8)).save(path)


def place_of(said):
    """The place of the masks that a message proposes."""
    return re.search(r"pass the place of the masks: '([^']+)'", said)[1]


def mean_iou(capsys, *words):
    assert main(["score", *words, "--format", "json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)["mean_iou"]


def said_of(capsys, *words):
    assert main(["score", *words]) == 3
    return capsys.readouterr().err


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


PLACES = [
    # Truth, other files beside it, predictions, and the place: Mapillary Vistas, BDD100K, Medical
    # Decathlon, OpenEarthMap, LIDC with the masks of several readers, DAVIS.
    ("v1.2/labels/k{i}.png", ["v1.2/instances/k{i}.png", "images/k{i}.jpg"], "k{i}.png",
     "truth/v1.2/labels"),
    ("masks/val/7d{i}.png", ["colormaps/val/7d{i}.png"], "7d{i}.png", "truth/masks"),
    ("labelsTr/h_00{i}.png", ["imagesTr/h_00{i}.png"], "h_00{i}.png", "truth/labelsTr"),
    ("r{i}/labels/r{i}_1.png", ["r{i}/images/r{i}_1.png"], "r{i}_1.png", "truth/*/labels"),
    ("P{i}/nodule-0/mask-0/slice-0.png",
     ["P{i}/nodule-0/mask-1/slice-0.png", "P{i}/nodule-0/images/slice-0.png"],
     "P{i}/nodule-0/slice-0.png", "truth/*/*/mask-0"),
    ("Annotations/480p/s{i}/0.png", ["JPEGImages/480p/s{i}/0.jpg"], "s{i}/0.png",
     "truth/Annotations/480p"),
]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize(("truth", "others", "pred", "place"), PLACES)
def test_folders_of_masks_beside_others(capsys, truth, others, pred, place):
    truths, preds, expected = sides()
    for i in range(4):
        write_mask(Path("truth", truth.format(i=i)), truths[i])
        write_mask(Path("pred", pred.format(i=i)), preds[i])
        for other in others:
            path = Path("truth", other.format(i=i))
            write_mask(path, 2 - truths[i]) if "mask-1" in other else photo(path)
    said = said_of(capsys, "truth", "pred", "--labels", "3")
    assert place_of(said) == place
    assert f"mean IoU {100 * expected:.2f} %" in said
    assert mean_iou(capsys, place, "pred", "--labels", "3") == pytest.approx(expected)


def test_scans_with_the_names_of_predictions(capsys):
    """SegTHOR: Patient_01/GT beside Patient_01/Patient_01, predictions Patient_01."""
    truths, preds, expected = sides()
    for i in range(4):
        write_mask(Path(f"truth/Patient_0{i}/GT.png"), truths[i])
        write_mask(Path(f"truth/Patient_0{i}/Patient_0{i}.png"), truths[i] * 80 + 40)
        write_mask(Path(f"pred/Patient_0{i}.png"), preds[i])
    said = said_of(capsys, "truth", "pred", "--labels", "3")
    options = shlex.split(re.search(r"\((--key .*?)\), mean IoU", said)[1])
    assert "same key" not in said
    assert mean_iou(capsys, "truth", "pred", "--labels", "3", *options) == pytest.approx(expected)


def test_masks_before_and_after(capsys):
    """xBD: as many names match without _pre_disaster and _post_disaster, but other masks."""
    truths, preds, expected = sides()
    for i in range(4):
        name = f"volcano_0{i}"
        for when, mask in (("pre", truths[i] > 0), ("post", truths[i])):
            write_mask(Path(f"truth/targets/{name}_{when}_disaster_target.png"), mask)
            photo(f"truth/images/{name}_{when}_disaster.png")
        write_mask(Path(f"pred/{name}_post_disaster.png"), preds[i])
    said = said_of(capsys, "truth", "pred", "--labels", "3")
    options = shlex.split(re.search(r"\((--truth-suffix [^)]*)\), mean IoU", said)[1])
    assert mean_iou(capsys, "truth", "pred", "--labels", "3", *options) == pytest.approx(expected)


def test_folders_of_classes_beside_other_folders(capsys):
    """Agriculture-Vision: labels/CLASS/ID beside masks/ID and boundaries/ID."""
    names = ["background", "water", "endrow", "storm"]
    truths, preds, _ = sides(number=4)
    for i in range(4):
        for value, name in enumerate(names[1:], 1):
            write_mask(Path(f"truth/labels/{name}/{i}.png"), (truths[i] == value) * 255)
        for other in ("masks", "boundaries"):
            write_mask(Path(f"truth/{other}/{i}.png"), np.full((16, 20), 255))
        write_mask(Path(f"pred/{i}.png"), preds[i])
    command = ["truth", "pred", "--labels", ",".join(names)]
    said = said_of(capsys, *command)
    options = shlex.split(re.search(r"\((--class-files '[^']*')\)", said)[1])
    assert options[1] == "labels/{class}/{id}"
    without_names = said_of(capsys, "truth", "pred", "--labels", "4")
    assert "(endrow, storm and water)" in without_names and "masks" not in without_names
    assert f"(--labels NAME,… {shlex.join(options)})" in without_names
    t, p = np.array(truths), np.array(preds)
    each = [((t == c) & (p == c)).sum() / ((t == c) | (p == c)).sum() for c in (1, 2, 3)]
    assert mean_iou(capsys, *command, *options) == pytest.approx(np.mean(each))


def test_annotations_beside_photographs(capsys):
    """TACO: annotations.json in the folder of the images."""
    images, annotations = [], []
    for i in range(3):
        photo(f"truth/batch/{i}.jpg")
        images.append({"id": i, "file_name": f"batch/{i}.jpg", "width": 20, "height": 16})
        about = {"id": i + 1, "image_id": i, "category_id": 1, "area": 64, "iscrowd": 0}
        corners = [4, 4, 12, 4, 12, 12, 4, 12]
        annotations.append({**about, "segmentation": [corners], "bbox": [4, 4, 8, 8]})
        mask = np.zeros((16, 20), int)
        mask[4:12, 6:14] = 1
        write_mask(Path(f"pred/batch/{i}.png"), mask)
    content = {"images": images, "annotations": annotations}
    content["categories"] = [{"id": 1, "name": "can"}]
    Path("truth/annotations.json").write_text(json.dumps(content))
    Path("truth/all_image_urls.csv").write_text("a,b\n1,2\n")
    said = said_of(capsys, "truth", "pred", "--labels", "2")
    assert "truth/annotations.json has the segments of 3 images; pass it in place of truth" in said
    found = mean_iou(capsys, "truth/annotations.json", "pred", "--labels", "2")
    inner, outer = 6 * 8, 320 - 64 - 2 * 8
    assert found == pytest.approx((inner / (64 + 16) + outer / (320 - inner)) / 2)


@pytest.mark.parametrize("options", ["--labels binary", "--objects labels"])
def test_ids_of_cellpose_beside_their_images(capsys, options):
    """001_masks beside 001_img, predictions 001_img_cp_masks: the images may not be scored."""
    inside = np.kron(np.ones((2, 2), int), np.pad(np.ones((6, 8), int), 1))
    sides = []
    for i in range(3):
        ids = [np.kron(RNG.permutation(9)[:4].reshape(2, 2), np.ones((8, 10), int)) for _ in "tp"]
        truth, pred = (one * inside for one in ids)
        sides.append((truth > 0, pred > 0))
        write_mask(Path(f"truth/00{i}_masks.png"), truth)
        write_mask(Path(f"truth/00{i}_img.png"), RNG.integers(0, 250, truth.shape))
        write_mask(Path(f"pred/00{i}_img_cp_masks.png"), pred)
    command = ["truth", "pred", *options.split()]
    said = said_of(capsys, *command)
    suffixes = "--truth-suffix _masks --pred-suffix _img_cp_masks"
    assert suffixes in said
    more = "--truth-threshold 1 --pred-threshold 1"
    assert (more in said) == ("binary" in options)
    t, p = (np.array(side) for side in zip(*sides, strict=True))
    expected = np.mean([(t & p).sum() / (t | p).sum(), (~t & ~p).sum() / (~t | ~p).sum()])
    words = f"{suffixes} {more if 'binary' in options else ''}".split()
    assert mean_iou(capsys, *command, *words) == pytest.approx(expected)


@pytest.mark.gate
def test_classes_and_objects_in_channels(capsys):
    """ADE20K's full release: the class is red // 10 * 256 + green, and blue is the object."""
    truths, preds, _ = sides()
    classes = np.array([0, 7, 2978])
    for i in range(4):
        truth, pred = classes[truths[i]], classes[preds[i]]
        channels = [truth // 256 * 10, truth % 256, RNG.integers(0, 4, truth.shape)]
        write_mask(Path(f"truth/street/ADE_val_0000000{i}_seg.png"), np.stack(channels, -1))
        photo(f"truth/street/ADE_val_0000000{i}.jpg")
        Path("pred").mkdir(exist_ok=True)
        Image.fromarray(pred.astype(np.uint16)).save(f"pred/ADE_val_0000000{i}.png")
    said = said_of(capsys, "truth", "pred", "--labels", "3689")
    (code,) = re.findall('python -c "(.*?)";', said)
    Path("classes").mkdir()
    subprocess.run([sys.executable, "-c", code.replace("FOLDER", "truth")], check=True)
    options = shlex.split(re.search("--labels 3689 .*", said)[0])
    t, p = classes[truths], classes[preds]
    seen = t > 0
    each = [((t == c) & (p == c)).sum() / (seen & ((t == c) | (p == c))).sum() for c in (7, 2978)]
    assert mean_iou(capsys, "classes", "pred", *options) == pytest.approx(np.mean(each))
