"""Semantic change detection: hand-computed values, SCanNet's, and folders of two dates."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.labels import ClassOptions
from segiou.measures import MaskPair, Masks
from segiou.measures.change import ChangeOptions, change_scores

GOLDEN = Path(__file__).parents[4] / "shared" / "kinds" / "change.json"
MATRIX = [[6, 1, 0], [1, 2, 0], [0, 1, 1]]


def test_hand_computed_scores():
    found = change_scores(MATRIX)
    # Unchanged: 6 of 6 + 1 + 1. Changed: 12 - 7 - 7 + 6 = 4 of 12 - 6.
    assert found["scd_miou"] == pytest.approx((6 / 8 + 4 / 6) / 2)
    # 3 changed pixels have their class, of 12 - 7 predicted as changed and 12 - 7 changed.
    assert found["f_scd"] == pytest.approx(3 / 5)
    # Without the 6: 3 of 6 agree, rows 1, 3, 2 and columns 1, 4, 1 agree by chance in 15/36.
    kappa = (3 / 6 - 15 / 36) / (1 - 15 / 36)
    assert found["sek"] == pytest.approx(kappa * math.exp(4 / 6 - 1))
    assert found["scd_score"] == pytest.approx(0.3 * found["scd_miou"] + 0.7 * found["sek"])


def test_nothing_changed_and_nothing_there():
    same = change_scores([[5, 0], [0, 0]])
    assert (same["scd_miou"], same["sek"]) == (1, 0)
    assert math.isnan(same["f_scd"])
    assert np.isnan([*change_scores(np.zeros((3, 3), int)).values()]).all()


@pytest.mark.skipif(not GOLDEN.exists(), reason="needs the shared values")
def test_values_of_scannet():
    golden = json.loads(GOLDEN.read_text())
    found = change_scores(golden["hist"])
    names = {"sek": "SeK", "f_scd": "F_scd", "scd_miou": "mIoU", "scd_score": "score"}
    for ours, theirs in names.items():
        assert found[ours] == pytest.approx(golden[theirs], abs=1e-12)


@pytest.fixture
def folders(tmp_path):
    """Maps of two dates of three places."""
    rng = np.random.default_rng(4)
    for side in ("truth", "pred"):
        for date in ("before", "after"):
            (tmp_path / side / date).mkdir(parents=True)
    for date in ("before", "after"):
        for place in "abc":
            truth = rng.integers(0, 3, (8, 9)).astype(np.uint8)
            pred = np.where(rng.random(truth.shape) < 0.3, 0, truth).astype(np.uint8)
            Image.fromarray(truth).save(tmp_path / "truth" / date / f"{place}.png")
            Image.fromarray(pred).save(tmp_path / "pred" / date / f"{place}.png")
    return [str(tmp_path / side) for side in ("truth", "pred")]


def test_both_dates_of_a_place_are_a_unit(folders, command):
    run = segiou.score_folder(
        *folders, labels=["no change", "water", "forest"], measures=["change"]
    )
    report = run.report()
    expected = change_scores(run.total().matrix)
    for name, value in expected.items():
        assert report.score(name) == pytest.approx(value)
    assert run.intervals("sek", groups="[^/]+$").units == 3
    code, out, _ = command(
        *("score", *folders, "--labels", "no change,water,forest", "--change"),
        *("--group-by", "[^/]+$", "--fail-under", "sek=0.99"),
    )
    assert code == 1
    assert "SeK" in out


def test_changes_that_agree_less_than_by_chance_are_negative(folders, command):
    # Of changed pixels, none agrees and 1/2 would by chance: kappa −1; no change has IoU 1.
    truth, pred = np.array([[[1, 2, 0]]] * 3), np.array([[[2, 1, 0]]] * 3)
    run = segiou.score(truth, pred, labels=3, measures=["change"])
    assert run.report().score("sek") == pytest.approx(-1.0)
    assert run.report().score("scd_score") == pytest.approx(0.3 * 1 - 0.7)
    words = "score", *folders, "--labels", "no change,water,forest", "--change", "--quiet"
    for limit, code in (("sek=-0.5", 0), ("scd_score=-0.9", 0), ("f_scd=-0.1", 2), ("sek=-2", 2)):
        assert command(*words, "--fail-under", limit)[0] == code


def test_ignored_pixels_and_predictions_of_no_class_are_left_out():
    options = ClassOptions.of(2, ignore=255, unassigned="count")
    plan = ChangeOptions().plan(options, Masks())
    truth, pred = np.array([[0, 1, 1, 255]]), np.array([[0, 1, 9, 1]])
    counted = plan.count(MaskPair(truth, pred, options))
    assert counted.dense("table")[0].tolist() == [[1, 0, 0], [0, 1, 1]]
    assert plan.scores["f_scd"].values(counted)[0] == 1
    matrix = segiou.ConfusionMatrix(2, ignore=255, unassigned="count").update(truth, pred)
    with_tally = plan.count(MaskPair(truth, pred, options, tally=matrix.tally))
    assert with_tally == counted


def test_refused():
    with pytest.raises(ValueError, match=r"must have shape \(C, C\)"):
        change_scores([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(TypeError):
        change_scores([[0.5, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="a class of no change and one or more of change"):
        ChangeOptions().plan(ClassOptions.of(1), Masks())
