"""Values that do not fit: the options that are printed fit, and give the mean IoU printed."""

from __future__ import annotations

import re
import shlex
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mask_files import score_pairs, write_pairs

from segiou import DataError, score_folder
from segiou.cli.main import main
from segiou.scoring.label_set_advice import label_set_question

RNG = np.random.default_rng(3)
#: Class indices of two images in blocks, and predictions of which a fifth of the pixels are wrong.
CLASSES = [np.kron(RNG.integers(0, 6, (6, 8)), np.ones((4, 4), int)) for _ in range(3)]
ERRORS = [RNG.random(one.shape) < 0.2 for one in CLASSES]
PREDICTED = [np.where(e, (c + 1) % 6, c) for c, e in zip(CLASSES, ERRORS, strict=True)]


def mean_iou(truth=CLASSES, pred=PREDICTED):
    t, p = np.concatenate(truth).ravel(), np.concatenate(pred).ravel()
    kept = [((t == c) & (p == c)).sum() / ((t == c) | (p == c)).sum() for c in np.unique(t)]
    return float(np.mean(kept))


def numbered(images, values):
    return [np.take(values, one) for one in images]


def printed(text):
    """The options that a text prints, with the mean IoU of each in per cent."""
    rows = re.findall(r"^  (--.*?)  # (\S+) %$", text, re.MULTILINE)
    return [(shlex.split(options), float(value.strip("<>"))) for options, value in rows]


def arguments(options):
    """Options of the command line as arguments of ``score_folder``."""
    found = {}
    while options:
        name, _, value = options.pop(0).partition("=")
        value = value or options.pop(0)
        found[name[2:].replace("-", "_")] = (
            [*map(int, value.split(","))] if name == "--ignore" else value
        )
    if str(found.get("labels")).isdigit():
        found["labels"] = int(found["labels"])
    return found


def text_of(tmp_path, **options):
    """The error or the warning of a score."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        try:
            score_pairs(tmp_path, **options)
        except DataError as error:
            return str(error)
    return "\n".join(str(one.message) for one in noted)


def follow(tmp_path, text, **options):
    """The mean IoU of all options that are printed; each gives what is printed."""
    found = printed(text)
    assert found, text
    for texts, value in found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = score_pairs(tmp_path, **options | arguments(list(texts)))
        assert abs(100 * run.report().mean_iou - value) <= 0.0051, (texts, value)
    return found


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("truth", "pred", "labels", "best"),
    [
        # Values of truth and predictions by class, the option given, and the first that fits.
        ([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], 6, "--pred-labels 1-6"),
        ([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], 6, "--labels 1-6 --pred-labels 0-5"),
        ([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], 7, "--pred-labels none,0-5"),
        ([0, 1, 2, 3, 4, 5], [5, 0, 3, 1, 2, 4], 6, "--pred-labels 5,0,3,1-2,4"),
        ([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], "isprs", "--pred-labels isprs-index"),
        ([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], "isprs-index", "--pred-labels isprs"),
        ([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], "loveda", "--pred-labels loveda-index"),
        ([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], "a,b,c,d,e,f",
         "--labels a=1,b=2,c=3,d=4,e=5,f=6 --pred-labels 0-5"),
        ([9, 8, 7, 6, 5, 4], [0, 1, 2, 3, 4, 5], {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5, "f": 4},
         "--pred-labels 0-5"),
        ([0, 1, 2, 3, 4, 255], [1, 2, 3, 4, 5, 5], 5, "--pred-labels 1-5 --ignore 255"),
        ([0, 40, 80, 120, 160, 200], [0, 1, 2, 3, 4, 5], 6,
         "--labels 0,40,80,120,160,200 --pred-labels 0-5"),
        ([0, 51, 102, 153, 204, 255], [0, 1, 2, 3, 4, 5], 6,
         "--labels 0,51,102,153,204,255 --pred-labels 0-5"),
        ([0, 7, 70, 90, 200, 201], [0, 1, 2, 3, 4, 5], 6,
         "--labels 0,7,70,90,200,201 --pred-labels 0-5"),
    ],
)  # fmt: skip
def test_the_numbering_that_fits_is_first(tmp_path, truth, pred, labels, best):
    write_pairs(tmp_path, numbered(CLASSES, truth), numbered(PREDICTED, pred))
    text = text_of(tmp_path, labels=labels)
    found = follow(tmp_path, text, labels=labels)
    assert found[0][0] == shlex.split(best)
    if 255 not in truth:
        assert found[0][1] == pytest.approx(100 * mean_iou(), abs=0.0051)
    assert text.count("none was applied") == 1


@pytest.mark.parametrize("step", [51, pytest.param(40, marks=pytest.mark.gate)])
def test_values_with_equal_steps_are_classes(tmp_path, step):
    """Masks stretched to be visible: the error proposed nothing, or to ignore 255."""
    values = np.arange(6) * step
    write_pairs(tmp_path, numbered(CLASSES, values), numbered(PREDICTED, values))
    wanted = "--labels " + ",".join(map(str, values))
    assert f"better match: {wanted}\n" in text_of(tmp_path, labels=6)
    assert f" {wanted}  #" in label_set_question(tmp_path / "truth", "segiou score")
    run = score_pairs(tmp_path, labels=wanted.split()[1])
    assert run.report().mean_iou == pytest.approx(mean_iou())


def test_rare_classes_overlap_others_by_chance(tmp_path):
    """Classes 4 and 5 are found by chance, more often as each other."""
    share = [RNG.random(one.shape) < 0.2 for one in CLASSES]
    pred = [
        np.where(c < 4, p, np.where(s, 9 - c, 0))
        for c, p, s in zip(CLASSES, PREDICTED, share, strict=True)
    ]
    write_pairs(tmp_path, numbered(CLASSES, range(1, 7)), pred)
    text = text_of(tmp_path, labels="isprs")
    assert [options for options, _ in printed(text)] == [
        ["--pred-labels", "isprs-index"],
        ["--labels", "1-6", "--pred-labels", "0-5"],
        ["--unassigned", "count"],
    ]


def test_a_border_that_the_network_lacks(tmp_path):
    # Potsdam with its border as class 0, of which a network without it predicts others.
    truth = [np.where(e, 0, c + 1) for c, e in zip(CLASSES, ERRORS, strict=True)]
    write_pairs(tmp_path, truth, CLASSES)
    names = "border,impervious surface,building,low vegetation,tree,car,clutter"
    text = text_of(tmp_path, labels=names)
    found = follow(tmp_path, text, labels=names)
    assert found[0][0] == ["--pred-labels", "none,0-5"]


@pytest.mark.gate
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.data())
def test_printed_options_give_the_printed_mean(tmp_path_factory, data):
    tmp_path = tmp_path_factory.mktemp("law")
    number = data.draw(st.integers(2, 6))
    values = st.lists(st.integers(0, 9), min_size=number, max_size=number, unique=True)
    truth, pred = data.draw(values), data.draw(values)
    kept = [np.minimum(one, number - 1) for one in CLASSES]
    guessed = [np.minimum(one, number - 1) for one in PREDICTED]
    write_pairs(tmp_path, numbered(kept, truth), numbered(guessed, pred))
    labels = data.draw(st.sampled_from([number, 10, {str(i): v for i, v in enumerate(truth)}]))
    text = text_of(tmp_path, labels=labels)
    if "Options that fit" in text:
        found = follow(tmp_path, text, labels=labels)
        best = follow(tmp_path, text, labels=labels)[0][1]
        assert best == max(value for _, value in found)
        # No numbering of the same classes is better.
        if not isinstance(labels, int):
            assert best == pytest.approx(100 * mean_iou(kept, guessed), abs=0.0051)


def test_stray_values_are_not_taken_for_another_numbering(tmp_path):
    truth = [np.where(e, 255, c) for c, e in zip(CLASSES, ERRORS, strict=True)]
    write_pairs(tmp_path, truth, PREDICTED)
    text = text_of(tmp_path, labels=6)
    assert "Options that fit" not in text
    assert "--ignore" in text
    write_pairs(tmp_path, CLASSES, [np.where(p == 5, 9, p) for p in PREDICTED[:1]] + PREDICTED[1:])
    assert "Options that fit" not in text_of(tmp_path, labels=6)


def test_poor_predictions_are_not_taken_for_another_numbering(tmp_path):
    noise = [RNG.integers(0, 6, one.shape) for one in CLASSES]
    for pred in (noise, [np.zeros_like(one) for one in CLASSES]):
        write_pairs(tmp_path, CLASSES, pred)
        assert text_of(tmp_path, labels=6) == ""


def test_colours_are_classes_that_predictions_number_from_0(tmp_path):
    colors = np.array(
        [[255, 255, 255], [0, 0, 255], [0, 255, 255], [0, 255, 0], [255, 255, 0], [255, 0, 0]]
    )
    write_pairs(tmp_path, [colors[one].astype(np.uint8) for one in CLASSES], PREDICTED)
    text = text_of(tmp_path, labels="isprs")
    found = follow(tmp_path, text, labels="isprs")
    assert found[0] == (["--pred-labels", "isprs-index"], round(100 * mean_iou(), 2))


def test_the_note_of_shifted_classes_reaches_the_command(tmp_path, capsys):
    write_pairs(tmp_path, numbered(CLASSES, range(1, 7)), PREDICTED)
    places = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels"]
    assert main([*places, "7"]) == 0
    note = capsys.readouterr().err
    assert note.startswith("segiou: classes overlap others more than themselves (mean IoU ")
    assert main([*places, "7", *printed(note)[0][0]]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert f"Mean IoU {100 * mean_iou():.2f} %" in output.out


def test_images_are_sampled_if_there_are_many(tmp_path):
    write_pairs(tmp_path, [c + 1 for c in CLASSES * 30], PREDICTED * 30)
    assert "(30 images of 90; none was applied" in text_of(tmp_path, labels="isprs")


@pytest.mark.needs("measures.surfaces")
def test_other_options_are_kept(tmp_path):
    write_pairs(tmp_path, [c + 1 for c in CLASSES], PREDICTED)
    options = {"labels": "isprs", "exclude": ["clutter"]}
    found = follow(tmp_path, text_of(tmp_path, **options), **options)
    assert found[0][0] == ["--pred-labels", "isprs-index"]
    # A class that other labels lack cannot be excluded from them.
    options = {"labels": "a,b,c,d,e,f", "exclude": ["f"], "measures": ["surfaces"]}
    follow(tmp_path, text_of(tmp_path, **options), **options)
    assert score_folder(tmp_path / "truth", tmp_path / "pred", labels="1-6", pred_labels="0-5")


def test_colors_of_a_preset_with_the_values_of_predictions(tmp_path):
    """Masks in UAVid's colours beside ids in another order; the classes have no colours."""
    colors = ["#800000", "#000000", "#008000", "#808000", "#804080", "#400080"]
    table = np.array([list(bytes.fromhex(color[1:])) for color in colors], np.uint8)
    write_pairs(tmp_path, [table[one] for one in CLASSES], PREDICTED)
    text = text_of(tmp_path, labels=6)
    best, given_values = printed(text)
    run = score_folder(tmp_path / "truth", tmp_path / "pred", **arguments(best[0]))
    assert run.report().mean_iou == pytest.approx(mean_iou())
    assert best[1] == pytest.approx(100 * mean_iou(), abs=0.006)
    assert given_values[0] == ["--labels", "uavid"]


def test_values_are_not_those_of_a_preset_of_colors(tmp_path):
    write_pairs(tmp_path, [one % 6 + 2 for one in CLASSES], PREDICTED)
    assert "uavid" not in text_of(tmp_path, labels="ade20k")


def test_one_of_four_classes_with_another_value(tmp_path):
    """BraTS: the enhancing tumour is 4 in the truth and 3 in the predictions of nnU-Net."""
    truth = [one % 4 for one in CLASSES]
    pred = [np.where(e, (c + 1) % 4, c) for e, c in zip(ERRORS, truth, strict=True)]
    write_pairs(tmp_path, numbered(truth, [0, 1, 2, 4]), pred)
    found = follow(tmp_path, text_of(tmp_path, labels="brats"), labels="brats")
    assert found[0][0] == ["--pred-labels", "brats2023"]
    assert found[0][1] == pytest.approx(100 * mean_iou(truth, pred), abs=0.006)
