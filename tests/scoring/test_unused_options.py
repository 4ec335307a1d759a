"""An option of reading that none of the files uses is reported, in every format."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.raters import compare_raters

RNG = np.random.default_rng(4)
TRUTH, PRED = RNG.integers(0, 2, (2, 6, 7)).astype(np.uint8)
OPTIONS = {
    "array_key": ["a"],
    "array_axes": ["nyx", "zyx"],
    "read_palette": ["colors"],
    "geometry": ["ignore", "reorient"],
    "spacing": [(1.0, 2.0)],
}


def image(path, values):
    Image.fromarray(values).save(path)


def palette(path, values):
    picture = Image.fromarray(values)
    picture.putpalette([0, 0, 0, 128, 0, 0, *[9] * 762])
    picture.save(path)


def colors(path, values):
    image(path, np.stack([values * 128, values * 0, values * 0], axis=-1))


def npz(path, values):
    np.savez(path, a=values)


def points(path, values):
    values.astype("<u4").tofile(path)


def nifti(path, values):
    nibabel = pytest.importorskip("nibabel")
    nibabel.save(nibabel.Nifti1Image(values[..., None], np.eye(4)), path)


def matlab(path, values):
    pytest.importorskip("scipy.io").savemat(path, {"a": values})


ARRAYS = {"array_key", "array_axes"}
#: How a format is written, and the options that it uses.
FORMATS = {
    "a.png": (image, set()),
    "b.png": (palette, {"read_palette"}),
    "c.png": (colors, set()),
    "a.tif": (image, {"array_axes", "geometry"}),
    "a.npy": (np.save, {"array_axes"}),
    "a.npz": (npz, ARRAYS),
    "a.mat": (matlab, ARRAYS),
    "a.label": (points, set()),
    "a.nii.gz": (nifti, {"geometry"}),
}
LABELS = """classes = [
  { name = "n", values = [0], colors = ["#000000"] },
  { name = "y", values = [1], colors = ["#800000"] },
]"""


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.toml"
    path.write_text(LABELS)
    return path


def written(folder, name):
    for side, values in (("truth", TRUTH), ("pred", PRED)):
        (folder / side).mkdir()
        FORMATS[name][0](folder / side / name, values)
    return folder / "truth", folder / "pred"


def noted(do, *arguments, **options):
    """Names of the options that have no effect, and the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = do(*arguments, **options)
    texts = [str(one.message) for one in caught]
    assert all(" has no effect, because no" in text for text in texts)
    return [text.partition("=")[0] for text in texts], found


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FORMATS)
def test_options_that_no_file_uses_are_noted_and_no_others(tmp_path, labels, name):
    places, used = written(tmp_path, name), FORMATS[name][1]
    texts, plain = noted(segiou.score_folder, *places, labels=labels)
    assert texts == []
    for option, values in OPTIONS.items():
        for value in values:
            texts, run = noted(segiou.score_folder, *places, labels=labels, **{option: value})
            assert texts == ([] if option in used else [option]), (option, value)
            assert run.total() == plain.total()
    texts, run = noted(segiou.score_folder, *places, labels=labels, read_palette="indices")
    assert (texts, run.total()) == ([], plain.total())  # which is how palettes are read anyway


def test_a_file_of_either_side_uses_an_option(tmp_path, labels):
    truth, pred = written(tmp_path, "a.png")
    (pred / "a.png").unlink()
    npz(pred / "a.npz", PRED)
    options = {"labels": labels, "array_key": "a", "array_axes": "zyx"}
    assert noted(segiou.score_folder, truth, pred, **options)[0] == []


@pytest.mark.parametrize(
    ("key", "side"), [("a", ""), ("a,a", "truth"), (",a", ""), ("a,", "truth"), ("b,a", "truth")]
)
def test_a_name_of_arrays_for_a_side_without_them_is_noted(tmp_path, labels, key, side):
    truth, pred = written(tmp_path, "a.png")
    (pred / "a.png").unlink()
    npz(pred / "a.npz", PRED)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        segiou.score_folder(truth, pred, labels=labels, array_key=key)
    texts = [str(one.message) for one in caught]
    assert len(texts) == bool(side)
    for text in texts:
        assert text.startswith(f"'{key[0]}' in array_key='{key}' (--array-key {key}) has no effect")
        assert f"no file of the {side} is an .npz" in text


def test_folders_of_arrays_and_images_use_names_of_arrays(tmp_path, labels):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        image(tmp_path / side / "a.png", TRUTH)
        np.savez(tmp_path / side / "b.npz", a=TRUTH, b=1 - TRUTH)
    places = tmp_path / "truth", tmp_path / "pred"
    texts, run = noted(segiou.score_folder, *places, labels=labels, array_key="a,b")
    assert texts == []
    # The images are equal, and the arrays are different in each of the 42 pixels.
    assert np.trace(run.total().matrix) == 42


def test_a_score_of_distances_uses_the_spacing(tmp_path, labels):
    places = written(tmp_path, "a.png")
    options = {"labels": labels, "spacing": (1.0, 2.0), "measures": ["surfaces"]}
    pytest.importorskip("segiou.measures.surfaces")
    assert noted(segiou.score_folder, *places, **options)[0] == []


def test_the_command_line_notes_it(tmp_path, labels, capsys):
    command = ["score", *map(str, written(tmp_path, "a.png")), "--labels", str(labels)]
    assert main([*command, "--array-key", "mask"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("array_key='mask' (--array-key mask) has no effect") == 1


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"ignore": 255}, ["ignore"]),
        ({"ignore": [3, 255]}, ["ignore"]),
        ({"exclude": 0}, []),
        ({"exclude": ["a", "z"]}, ["exclude"]),
        ({"exclude": "z", "ignore": 200}, ["ignore", "exclude"]),
    ],
)
def test_values_and_classes_that_no_mask_has_are_noted(tmp_path, options, names):
    places = written(tmp_path, "a.png")
    caught = noted(segiou.score_folder, *places, labels=["a", "b", "z"], **options)
    assert [name for name in caught[0] if name in ("ignore", "exclude")] == names
    # Another part may have them; a label set may ignore what these masks happen not to have.
    part = {"labels": ["a", "b", "z"], **options, "shard": (1, 2), "missing": "skip"}
    assert "exclude" not in noted(segiou.score_folder, *places, **part)[0]
    assert noted(segiou.score_folder, *places, labels="voc2012", unassigned="count")[0] == []


@pytest.mark.filterwarnings("error:.*no effect")
@pytest.mark.filterwarnings("ignore:ignore includes values of the declared class")
@pytest.mark.parametrize(
    ("protocol", "option", "absent"),
    [
        ("sklearn", "exclude", 0),
        ("paddleseg", "exclude", 1),
        ("torchvision", "exclude", np.nan),
        ("semantickitti", "exclude", 0),
        ("semantickitti", "ignore", 0),
    ],
)
def test_absent_classes_that_protocols_average_are_not_noted(tmp_path, protocol, option, absent):
    places, options = written(tmp_path, "a.png"), {"labels": ["a", "b", "z"], "protocol": protocol}
    sides = [(c == TRUTH, c == PRED) for c in (0, 1)]
    ious = [(t & p).sum() / (t | p).sum() for t, p in sides]
    usual = segiou.score_folder(*places, **options).report()
    assert usual.mean_iou == pytest.approx((sum(ious) + absent) / 3, nan_ok=True)
    chosen = segiou.score_folder(*places, **options, **{option: 2}).report()
    assert chosen.mean_iou == pytest.approx(sum(ious) / 2)


@pytest.mark.filterwarnings("error:.*no effect")
@pytest.mark.filterwarnings("ignore:ignore includes values of the declared class")
def test_values_that_masks_have_are_not_noted(tmp_path):
    segiou.score_folder(*written(tmp_path, "a.png"), labels=2, ignore=1)


def test_the_command_line_notes_values_and_classes(tmp_path, capsys):
    command = ["score", *map(str, written(tmp_path, "a.png")), "--labels", "a,b,z"]
    run = str(tmp_path / "a.sqlite")
    assert main([*command, "--ignore", "255", "--exclude", "z", "--run", run]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "ignore=255 (--ignore 255) has no effect, because no truth mask has this value" in said
    excluded = "exclude='z' (--exclude z) has no effect, because no pixel of truth or prediction"
    assert excluded in said
    assert main(["report", run, "--quiet"]) == main(["report", run]) == 0
    assert capsys.readouterr().err == ""
    assert (
        main([*command, "--run", run + "2"]) == main(["report", run + "2", "--exclude", "z"]) == 0
    )
    assert excluded in " ".join(capsys.readouterr().err.split())
    assert main(["report", run + "2", "--exclude", "z", "--protocol", "sklearn"]) == 0
    assert capsys.readouterr().err == ""


def test_raters_note_ignored_values_that_no_mask_has(recwarn):
    raters = {name: {"1": TRUTH, "2": PRED} for name in "ab"}
    compare_raters(raters, labels=3, ignore=2)
    (one,) = recwarn
    said = "ignore=2 (--ignore 2) has no effect, because no mask has this value"
    assert str(one.message) == said
    compare_raters(raters, labels=1, ignore=1)
    assert len(recwarn) == 1


def test_raters_note_it_too(tmp_path, labels):
    for side in written(tmp_path, "a.png"):
        image(side / "b.png", PRED)
    raters = {"ann": tmp_path / "truth", "bob": tmp_path / "pred"}
    for option, value in (("array_axes", "nyx"), ("read_palette", "colors")):
        texts, _ = noted(compare_raters, raters, labels=labels, **{option: value})
        assert texts == [option]
