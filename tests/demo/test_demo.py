from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage.color import rgb2lab

import segiou
from segiou.cli.main import main
from segiou.demo import DemoFolders, write_demo
from segiou.labels import load_labels

RARE = [6, 7, 8, 9]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    return write_demo(tmp_path_factory.mktemp("demo") / "streets", scenes=2)


def confusion(truth: Path, pred: Path) -> np.ndarray:
    pairs = np.zeros(256 * 256, np.int64)
    for path in truth.iterdir():
        a, b = np.array(Image.open(path), np.intp), np.array(Image.open(pred / path.name))
        pairs += np.bincount((256 * a + b).ravel(), minlength=256 * 256)
    return pairs.reshape(256, 256)[:10]


def scores(matrix: np.ndarray) -> tuple[float, float]:
    square = matrix[:, :10]
    hits = square.diagonal()
    return hits.sum() / matrix.sum(), (hits / (matrix.sum(1) + square.sum(0) - hits)).mean()


@pytest.mark.gate
def test_better_pixel_accuracy_goes_with_clearly_worse_mean_iou(demo):
    accuracy_a, mean_a = scores(confusion(demo.truth, demo.model_a))
    accuracy_b, mean_b = scores(confusion(demo.truth, demo.model_b))
    assert accuracy_a > accuracy_b + 0.01
    assert mean_b > mean_a + 0.1


@pytest.mark.usefixtures("one_scene")
def test_no_sentence_is_wider_than_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["demo", "d"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("$ ")) <= 60


def test_first_model_never_predicts_a_rare_class_and_neither_predicts_void(demo):
    a, b = confusion(demo.truth, demo.model_a), confusion(demo.truth, demo.model_b)
    assert a[:, RARE].sum() == 0
    assert (b[RARE, RARE] > 0).all()
    assert a[:, 10:].sum() == b[:, 10:].sum() == 0
    for folder in (demo.model_a, demo.model_b):
        assert max(np.array(Image.open(path)).max() for path in folder.iterdir()) < 10


def test_every_class_and_void_occur_and_nothing_else(demo):
    values = {v for p in demo.truth.iterdir() for v in np.unique(np.array(Image.open(p))).tolist()}
    assert values == {*range(10), 255}


def test_rare_classes_are_rare(demo):
    shares = confusion(demo.truth, demo.truth).sum(1)
    assert shares[RARE].sum() < 0.06 * shares.sum()


def test_names_sizes_and_partners(demo):
    names = [f"{drive}_{i:04d}" for drive in ("north", "south") for i in (1,)]
    for folder in (demo.truth, demo.model_a, demo.model_b):
        assert sorted(path.name for path in folder.iterdir()) == [f"{n}.png" for n in names]
    assert sorted(path.name for path in demo.images.iterdir()) == [f"{n}.jpg" for n in names]
    with Image.open(demo.images / "south_0001.jpg") as image:
        assert (image.mode, image.size) == ("RGB", (320, 192))
    root = demo.labels.parent
    assert [demo.truth, demo.model_a, demo.model_b, demo.images, demo.labels] == [
        root / name for name in ("truth", "model_a", "model_b", "images", "labels.toml")
    ]


def test_masks_are_palette_files_that_show_the_label_sets_colors(demo):
    described = tomllib.loads(demo.labels.read_text(encoding="utf-8"))
    for path in (*demo.truth.iterdir(), *demo.model_a.iterdir(), *demo.model_b.iterdir()):
        with Image.open(path) as mask:
            assert (mask.mode, mask.size) == ("P", (320, 192))
            palette = np.array(mask.getpalette()).reshape(-1, 3)
        for entry in described["classes"]:
            (value,), (color,) = entry["values"], entry["colors"]
            assert bytes(palette[value].astype(np.uint8)).hex() == color[1:]
        assert palette[255].tolist() == [0, 0, 0]


def test_label_file(demo):
    described = tomllib.loads(demo.labels.read_text(encoding="utf-8"))
    assert described["name"] == "streets"
    assert described["title"] == "Drawn street scenes of segiou demo"
    assert described["ignore"] == [255]
    assert described["ignore_colors"] == ["#000000"]
    assert [c["values"] for c in described["classes"]] == [[v] for v in range(10)]
    names = [c["name"] for c in described["classes"]]
    assert names[:3] == ["sky", "building", "road"]
    assert len({c["colors"][0] for c in described["classes"]}) == 10
    assert described["groups"]["flat"] == ["road", "pavement"]
    assert sorted(n for group in described["groups"].values() for n in group) == sorted(names)


def test_more_scenes_of_a_seed_begin_with_the_same_scene(tmp_path, demo):
    alone = write_demo(tmp_path, scenes=1)
    assert [p.name for p in alone.truth.iterdir()] == ["north_0001.png"]
    ours, theirs = (np.array(Image.open(d.truth / "north_0001.png")) for d in (alone, demo))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.gate
def test_replaces_an_earlier_demo_and_leaves_other_files(tmp_path):
    write_demo(tmp_path, scenes=2)
    report = tmp_path / "report.html"
    note = tmp_path / "truth" / "note.txt"
    for path in (report, note):
        path.write_text("mine")
    demo = write_demo(str(tmp_path), scenes=1)
    assert [p.name for p in demo.truth.glob("*.png")] == ["north_0001.png"]
    assert [p.name for p in demo.images.iterdir()] == ["north_0001.jpg"]
    assert report.read_text() == note.read_text() == "mine"


@pytest.mark.parametrize("name", ["thesis.docx", "labels.toml"])
def test_refuses_a_folder_with_other_things(tmp_path, name):
    (tmp_path / name).write_text('name = "mine"\n')
    with pytest.raises(FileExistsError, match=r"not empty.*choose a new or empty folder"):
        write_demo(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_refuses_a_file(tmp_path):
    (tmp_path / "demo").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        write_demo(tmp_path / "demo")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scenes": 0}, ValueError, "scenes must be at least 1, got 0"),
        ({"scenes": 10000}, ValueError, "scenes must be at most 12, got 10000"),
        ({"scenes": 2.5}, TypeError, "scenes must be an integer, not float"),
    ],
)
def test_bad_numbers(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        write_demo(tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_prints_nothing(tmp_path, capfd):
    write_demo(tmp_path, scenes=1)
    assert capfd.readouterr() == ("", "")


# Linear RGB as seen without the middle or the long cones: Machado, Oliveira and Fernandes,
# IEEE Trans. Visualization and Computer Graphics 15(6), 2009, severity 1.
SIGHTS = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


@pytest.mark.parametrize("sight", SIGHTS)
def test_colors_can_be_told_apart(sight):
    # At least 20 in CIELAB (Delta E 1976), as seen with normal sight and, by simulation, others.
    labels = load_labels(Path(segiou.__file__).parent / "demo" / "streets.toml")
    rgb = np.array([c.colors[0] for c in labels.classes]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(SIGHTS[sight]), 0, 1)
    lab = rgb2lab(np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055))
    distances = np.linalg.norm(lab[:, None] - lab, axis=-1)[np.triu_indices(len(lab), 1)]
    assert distances.min() >= 20
