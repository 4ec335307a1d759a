"""Skeletons and Betti numbers by hand, and the measure in every place that a score reaches."""

from __future__ import annotations

import numpy as np
import pytest

import segiou
from segiou.labels import ClassOptions
from segiou.measures import Masks
from segiou.measures.topology import TopologyOptions, betti_numbers, skeleton_counts
from segiou.scoring import Evaluator

# One line of seven pixels, in the prediction broken in the middle.
LINE = np.zeros((5, 9), np.uint8)
LINE[2, 1:8] = 1
BROKEN = LINE.copy()
BROKEN[2, 4] = 0
RING = np.zeros((5, 9), np.uint8)
RING[1:4, 1:4] = 1
RING[2, 2] = 0


def test_counts_of_a_broken_line():
    # The two pieces lie on the line; six of its seven pixels are predicted.
    assert skeleton_counts(LINE == 1, BROKEN == 1).tolist() == [6, 6, 6, 7, 6, 7]


def test_the_window_of_the_structures_does_not_matter():
    far = np.zeros((40, 50), bool)
    far[20:25, 30:39] = LINE == 1
    assert skeleton_counts(far, far).tolist() == [7, 7, 7, 7, 7, 7]
    assert betti_numbers(far) == (1, 0)


@pytest.mark.parametrize(
    ("mask", "connectivity", "expected"),
    [
        (RING == 1, "full", (1, 1)),
        (np.eye(2, dtype=bool), "full", (1, 0)),
        (np.eye(2, dtype=bool), "cross", (2, 0)),
        (np.zeros((3, 3), bool), "full", (0, 0)),
        (np.zeros((0, 3), bool), "full", (0, 0)),
        (np.ones((3, 3), bool), "cross", (1, 0)),
        (np.ones((3, 3, 3), bool), "full", (1, 0, 0)),
    ],
)
def test_betti_numbers(mask, connectivity, expected):
    assert betti_numbers(mask, connectivity=connectivity) == expected


def test_a_shell_has_a_cavity_and_a_torus_a_tunnel():
    shell = np.ones((3, 3, 3), bool)
    shell[1, 1, 1] = False
    torus = np.ones((1, 3, 3), bool)
    torus[0, 1, 1] = False
    assert betti_numbers(shell) == (1, 0, 1)
    assert betti_numbers(torus) == (1, 1, 0)


def evaluated(*pairs, **options):
    evaluator = Evaluator(2, measures=[TopologyOptions(**options)])
    for truth, pred in pairs:
        evaluator.update(truth, pred)
    return evaluator.report()


def test_scores_are_pooled_and_averaged_over_images():
    report = evaluated((LINE, BROKEN), (RING, RING), (0 * LINE, 0 * LINE))
    # The skeleton of the ring has s pixels, all found: sensitivity (6 + s) / (7 + s).
    size = int(skeleton_counts(RING == 1, RING == 1)[1])
    sensitivity = (6 + size) / (7 + size)
    assert report.score("skeleton_precision") == 1
    assert report.score("skeleton_sensitivity") == sensitivity
    assert report.score("cldice") == pytest.approx(2 * sensitivity / (1 + sensitivity))
    assert report.score("cldice_cases") == pytest.approx((12 / 13 + 1) / 2)
    assert report.score("skeleton_recall") == (6 + 8) / (7 + 8)
    assert report.score("betti_0_error") == pytest.approx(1 / 3)
    assert report.score("betti_1_error") == 0


def test_no_overlap_scores_zero_and_absence_is_undefined():
    shifted = np.roll(LINE, 2, axis=0)
    assert evaluated((LINE, shifted)).score("cldice") == 0
    assert np.isnan(evaluated((0 * LINE, 0 * LINE)).score("cldice"))
    assert np.isnan(evaluated((LINE, 0 * LINE)).score("skeleton_precision"))


def test_the_background_of_two_classes_is_not_scored():
    report = evaluated((LINE, BROKEN))
    assert np.isnan(report.score("cldice", "0"))
    assert report.score("cldice") == report.score("cldice", "1") == pytest.approx(12 / 13)
    chosen = evaluated((LINE, BROKEN), classes=(0,))
    assert np.isnan(chosen.score("cldice", "1")) and chosen.score("cldice") > 0


def test_ignored_pixels_belong_to_no_structure():
    pred = BROKEN.copy()
    void = LINE.copy()
    void[2, 4] = 255
    evaluator = Evaluator(2, ignore=255, measures=[TopologyOptions()])
    evaluator.update(void, pred)
    assert evaluator.report().score("cldice") == 1
    assert evaluator.report().score("betti_0_error") == 0


def test_invalid_masks():
    with pytest.raises(TypeError, match="truth must be boolean, got uint8"):
        skeleton_counts(LINE, LINE == 1)
    with pytest.raises(ValueError, match="two or three axes"):
        betti_numbers(np.ones(3, bool))
    with pytest.raises(ValueError, match="one shape"):
        skeleton_counts(LINE == 1, LINE[:3] == 1)
    with pytest.raises(ValueError, match="connectivity"):
        TopologyOptions(connectivity="8")
    with pytest.raises(ValueError, match="nope"):
        Evaluator(2, measures=[TopologyOptions(classes=("nope",))]).update(LINE, LINE)


def test_intervals_and_comparisons_follow(streets_runs):
    first, second = streets_runs
    assert first.intervals(metric="cldice").overall.value == first.report().score("cldice")
    pair = segiou.compare(first, second, metric="cldice")
    assert "clDice" in str(pair)


@pytest.fixture(scope="module")
def streets_runs():
    from pathlib import Path

    streets = Path(__file__).parents[3] / "fixtures" / "streets"
    chosen = [TopologyOptions(classes=("road", "sky"))]
    labels = streets / "labels.toml"
    return [
        segiou.score_folder(streets / "truth", streets / model, labels=labels, measures=chosen)
        for model in ("model_a", "model_b")
    ]


def test_masks_of_masked_arrays_are_not_lost():
    masked = np.ma.array(np.eye(3, dtype=bool), mask=np.tri(3, dtype=bool))
    for call in (lambda: betti_numbers(masked), lambda: skeleton_counts(masked, masked)):
        with pytest.raises(TypeError, match="is a masked array"):
            call()


def test_an_unknown_class_is_found_by_the_plan():
    classes = ClassOptions.of(["line", "rest"])
    for chosen in (("lien",), (7,)):
        with pytest.raises(ValueError, match=r"unknown class 'lien'|no class 7"):
            TopologyOptions(classes=chosen).plan(classes, Masks())
