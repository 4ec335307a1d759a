from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
SETS = ("hostile", "imbalance", "pooled_vs_mean", "streets", "tiny", "unassigned", "volumes")
COUNTED = ("imbalance", "pooled_vs_mean", "tiny", "unassigned")


def files(root: Path) -> list[str]:
    found = (path for name in SETS for path in (root / name).rglob("*") if path.is_file())
    return sorted(path.relative_to(root).as_posix() for path in found)


def answers_of(name: str) -> dict:
    return json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    command = [sys.executable, str(FIXTURES / "make.py"), str(folder)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    # The script imports its neighbours, as `python fixtures/make.py` lets it.
    environment.pop("PYTHONSAFEPATH")
    subprocess.run(command, check=True, env=environment, timeout=600)
    return folder


def decoded(path: Path) -> object:
    """What a file holds, whatever its compression; of one that cannot be read, the error."""
    if path.suffix == ".npy":
        try:
            array = np.load(path)
        except ValueError as error:  # objects, which each NumPy pickles in its own way
            return str(error)
        return array.dtype, array.tolist()
    if path.suffix in {".toml", ".json"} or path.name == "text_named.png":
        return path.read_text(encoding="utf-8")
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: (arrays[name].dtype, arrays[name].tolist()) for name in arrays.files}
    try:
        with Image.open(path) as image:
            count = getattr(image, "n_frames", 1)
            frames = []
            for frame in range(count):
                image.seek(frame)
                frames.append((image.mode, image.getpalette(), np.array(image).tolist()))
            return frames
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        return type(error)


@pytest.mark.gate
@pytest.mark.needs("demo")
def test_committed_files_are_what_the_script_makes(remade):
    assert files(FIXTURES) == files(remade)
    masks = [name for name in files(remade) if not name.endswith(".jpg")]
    different = [name for name in masks if decoded(FIXTURES / name) != decoded(remade / name)]
    assert different == []


@pytest.mark.gate
@pytest.mark.needs("demo")
def test_committed_photographs_look_like_those_that_the_script_makes(remade):
    # JPEG decoders may round differently.
    photographs = [name for name in files(remade) if name.endswith(".jpg")]
    assert len(photographs) == 7
    for name in photographs:
        ours, theirs = (np.array(Image.open(d / name)).astype(int) for d in (FIXTURES, remade))
        assert np.abs(ours - theirs).mean() < 2


def test_fixtures_stay_small():
    assert sum((FIXTURES / name).stat().st_size for name in files(FIXTURES)) < 400_000


def count(truth: np.ndarray, pred: np.ndarray, classes: int) -> dict:
    matrix = [[0] * classes for _ in range(classes)]
    unassigned, ignored = [0] * classes, 0
    for t, p in zip(truth.ravel().tolist(), pred.ravel().tolist(), strict=True):
        if t == 255:
            ignored += 1
        elif p < classes:
            matrix[t][p] += 1
        else:
            unassigned[t] += 1
    return {"matrix": matrix, "unassigned": unassigned, "ignored": ignored}


def derive(counts: dict) -> dict:
    matrix, unassigned = counts["matrix"], counts["unassigned"]
    classes = range(len(matrix))
    tp = [matrix[c][c] for c in classes]
    fp = [sum(row[c] for row in matrix) - tp[c] for c in classes]
    fn = [sum(matrix[c]) + unassigned[c] - tp[c] for c in classes]
    iou = [Fraction(tp[c], u) if (u := tp[c] + fp[c] + fn[c]) else None for c in classes]
    defined = [value for value in iou if value is not None]
    valid = sum(tp) + sum(fn)
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "iou": iou,
        "mean_iou": sum(defined) / len(defined) if defined else None,
        "mean_iou_classes": len(defined),
        "pixel_accuracy": Fraction(sum(tp), valid) if valid else None,
    }


def fractions(numbers: dict) -> dict:
    def exact(value):
        if isinstance(value, list):
            return [exact(v) for v in value]
        return Fraction(value) if isinstance(value, str) else value

    return {key: exact(value) for key, value in numbers.items()}


@pytest.mark.parametrize("name", COUNTED)
def test_expected_numbers_of_counted_sets(name):
    folder = FIXTURES / name
    classes = len(tomllib.loads((folder / "labels.toml").read_text())["classes"])
    for pred, numbers in answers_of(name)["preds"].items():
        total = count(np.array([]), np.array([]), classes)
        assert sorted(numbers["images"]) == sorted(p.stem for p in (folder / pred).iterdir())
        for path in (folder / "truth").iterdir():
            pair = (np.array(Image.open(folder / side / path.name)) for side in ("truth", pred))
            counts = count(*pair, classes)
            assert {**counts, **derive(counts)} == fractions(numbers["images"][path.stem])
            total = {key: (np.array(total[key]) + counts[key]).tolist() for key in total}
        assert {**total, **derive(total)} == fractions(numbers["total"])


def test_pooled_and_averaged_differ():
    numbers = answers_of("pooled_vs_mean")["preds"]["pred"]
    images = [fractions(image)["iou"] for image in numbers["images"].values()]
    averaged = [sum(column) / 2 for column in zip(*images, strict=True)]
    assert averaged == fractions(numbers["averaged"])["iou"]
    assert sum(averaged) / 2 == Fraction(numbers["averaged"]["mean_iou"])
    assert averaged[1] == Fraction(1, 2)
    assert Fraction(numbers["total"]["iou"][1]) == Fraction(1, 101)


@pytest.mark.parametrize(
    ("name", "accurate", "better"),
    [("imbalance", "lazy", "trying"), ("streets", "model_a", "model_b")],
)
def test_the_more_accurate_prediction_has_the_worse_mean_iou(name, accurate, better):
    preds = answers_of(name)["preds"]
    for numbers in preds.values():
        numbers["total"].setdefault("unassigned", [0] * len(numbers["total"]["matrix"]))
    first, second = (derive(preds[pred]["total"]) for pred in (accurate, better))
    assert first["pixel_accuracy"] > second["pixel_accuracy"]
    assert first["mean_iou"] + Fraction(1, 10) < second["mean_iou"]


def test_every_hostile_file_has_an_answer_and_a_line_in_the_readme():
    answers = answers_of("hostile")
    present = {path.name for path in (FIXTURES / "hostile").iterdir()}
    assert set(answers) == present - {"labels.toml", "expected.json"}
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    missing = [name for name in answers if f"`{name}`" not in readme and f"`{name}/`" not in readme]
    assert missing == []
    assert {answer["answer"] for answer in answers.values()} == {"read", "doubt", "refuse"}


def hostile(name: str) -> Image.Image:
    return Image.open(FIXTURES / "hostile" / name)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("grey.png", "L"),
        ("palette.png", "P"),
        ("sixteen_bit.png", "I"),
        ("one_bit.png", "1"),
        ("opaque_la.png", "LA"),
    ],
)
def test_readable_images_hold_the_expected_pixels(name, mode):
    with hostile(name) as image:
        # Sixteen bits are "I" or "I;16", depending on the version of Pillow.
        assert image.mode.split(";")[0] == mode
        pixels = np.array(image)
    if mode == "LA":
        assert (pixels[..., 1] == 255).all()
        pixels = pixels[..., 0]
    assert pixels.astype(int).tolist() == answers_of("hostile")[name]["pixels"]


@pytest.mark.parametrize(
    ("name", "key"), [("opaque_rgba.png", "pixels"), ("rgb.png", "with_colors")]
)
def test_readable_colors_are_those_of_the_label_set(name, key):
    described = tomllib.loads((FIXTURES / "hostile" / "labels.toml").read_text())
    values = {entry["colors"][0]: entry["values"][0] for entry in described["classes"]}
    with hostile(name) as image:
        pixels = np.array(image)
    found = [[values[f"#{bytes(p[:3]).hex()}"] for p in row] for row in pixels]
    assert found == answers_of("hostile")[name][key]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("translucent_la.png", "LA"),
        ("translucent_rgba.png", "RGBA"),
        ("float32.tif", "F"),
        ("cmyk.tif", "CMYK"),
        ("lossy.jpg", "L"),
    ],
)
def test_refused_images_are_whole_and_of_the_wrong_kind(name, mode):
    with hostile(name) as image:
        assert image.mode == mode
        pixels = np.array(image)
    if name.startswith("translucent"):
        assert np.sum(pixels[..., -1] != 255) == 1


@pytest.mark.parametrize("name", ["animated.png", "frames.gif", "frames.tif"])
def test_animations_have_two_frames(name):
    with hostile(name) as image:
        assert image.n_frames == 2


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bomb.png", Image.DecompressionBombError),
        ("truncated.png", OSError),
        ("bad_crc.png", (OSError, SyntaxError)),
        ("empty_idat.png", (OSError, SyntaxError)),
        ("zero_bytes.png", UnidentifiedImageError),
        ("text_named.png", UnidentifiedImageError),
    ],
)
def test_broken_files_are_broken(name, error):
    with pytest.raises(error), hostile(name) as image:
        image.load()


def test_doubtful_files_show_why():
    with hostile("binary_255.png") as image:
        assert set(np.unique(np.array(image)).tolist()) == {0, 255}
    with hostile("interpolated.png") as image:
        assert len(np.unique(np.array(image))) > 10


def test_arrays():
    folder = FIXTURES / "hostile"
    assert np.load(folder / "float64.npy").dtype == np.float64
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(folder / "object.npy")
    with np.load(folder / "two_arrays.npz") as arrays:
        assert sorted(arrays.files) == ["truth", "weight"]
    with np.load(folder / "one_array.npz") as arrays:
        assert arrays["truth"].tolist() == answers_of("hostile")["one_array.npz"]["pixels"]
