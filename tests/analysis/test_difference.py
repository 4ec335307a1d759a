import json

import numpy as np
import pytest

from segiou import ConfusionMatrix, Counts, compare
from segiou.analysis import explain_difference
from segiou.counting import ConfusionCounts
from segiou.runs import ImageCount, run_from_counts

# 1000 pixels, 50 of them person. "plain" answers road everywhere; "keen" finds 40 persons
# and takes 70 pixels of road for one.
PLAIN = Counts(tp=[950, 0], fp=[50, 0], fn=[0, 50], tn=[0, 950])
KEEN = Counts(tp=[880, 40], fp=[10, 70], fn=[70, 10], tn=[40, 880])
NAMES = ["road", "person"]


def explained(a, b, names=("plain", "keen")):
    return explain_difference(a, b, NAMES, names=names)


def test_the_silent_winner_is_told_unasked():
    found = explained(PLAIN, KEEN)
    assert found.disagree
    assert found.wins_by_omission
    assert (found.omitted_tp, found.omitted_fp) == (0.04, 0.07)
    assert " ".join(found.sentences()) == (
        "plain has higher pixel accuracy (95.00 % vs 92.00 %) but lower mean IoU (47.50 % vs "
        "62.50 %). plain never predicts 1 rare class: person. keen predicts it: 4.00 % of all "
        "pixels are true positives and 7.00 % are false positives. This costs keen at most 3.00 "
        "points of accuracy, less wherever plain is also wrong; the whole difference is 3.00."
    )


def test_order_of_the_models_only_turns_signs():
    a, b = explained(PLAIN, KEEN), explained(KEEN, PLAIN, ("keen", "plain"))
    assert a.sentences() == b.sentences()
    assert a.accuracy_difference == -b.accuracy_difference
    assert a.omitted == b.omitted == ("person",)


def test_parts_sum_to_the_differences():
    found = explained(PLAIN, KEEN)
    assert sum(found.accuracy_parts.values()) == pytest.approx(found.accuracy_difference)
    assert sum(found.mean_iou_parts.values()) == pytest.approx(found.mean_iou_difference)
    # person: 40 / 120 of IoU over two classes
    assert found.mean_iou_parts["person"] == pytest.approx(40 / 120 / 2)


def test_silence_that_does_not_explain_the_lead_is_said_more_softly():
    # keen is also worse on road by itself: 2 pixels of three are taken for nothing.
    worse = Counts(tp=[700, 40], fp=[10, 20], fn=[250, 10], tn=[40, 930])
    found = explained(PLAIN, worse)
    assert not found.wins_by_omission
    assert "plain never predicts 1 rare class (person)" in found.sentences()[1]


def test_hits_are_held_against_false_alarms():
    # keen pays 70 false alarms less 40 hits for trying, but is 50 pixels behind: 20 are trees.
    lazy = Counts([550, 400, 0], [50, 0, 0], [0, 0, 50], [400, 600, 950])
    keen = Counts([480, 380, 40], [30, 0, 70], [70, 20, 10], [420, 600, 880])
    found = explain_difference(lazy, keen, ["road", "tree", "person"])
    assert found.disagree
    assert found.omitted == ("person",)
    assert not found.wins_by_omission


def test_agreeing_scores():
    found = explained(KEEN, Counts(tp=[940, 45], fp=[5, 10], fn=[10, 5], tn=[45, 940]))
    assert not found.disagree
    assert found.sentences()[0].startswith("keen has higher pixel accuracy (98.50 %")
    assert found.omitted == ()


def test_equal_models():
    found = explained(KEEN, KEEN)
    assert found.omitted == ()
    assert found.sentences()[-1].startswith("plain vs keen: pixel accuracy (92.00 % vs 92.00 %)")


def test_different_truths_are_refused():
    other = Counts(tp=[940, 0], fp=[60, 0], fn=[0, 60], tn=[0, 940])
    with pytest.raises(ValueError, match="class road has 950 pixels with plain and 940"):
        explained(PLAIN, other)


def test_to_dict_is_json():
    found = json.loads(json.dumps(explained(PLAIN, KEEN).to_dict(), allow_nan=False))
    assert found["wins_by_omission"] is True
    assert found["omitted"] == ["person"]
    assert [m["never_predicted"] for m in found["models"]] == [["person"], []]


def test_camvid_small_wins_only_by_never_predicting_five_rare_classes(camvid_tables):
    small, base = (ConfusionCounts(camvid_tables[m]).counts for m in ("small", "base"))
    found = explain_difference(small, base, camvid_tables["class_names"], names=("small", "base"))
    assert found.models[0].pixel_accuracy == pytest.approx(0.8424, abs=5e-5)
    assert found.models[1].mean_iou == pytest.approx(0.4679, abs=5e-5)
    assert found.wins_by_omission
    assert found.omitted == ("pole", "sign", "fence", "pedestrian", "bicyclist")
    assert "small never predicts 5 rare classes" in found.sentences()[1]
    # Predicting them costs base 1.01 points, because small is wrong on most of the same pixels.
    assert "This costs base at most 2.36 points of accuracy" in found.sentences()[3]


def test_a_difference_of_rounding_is_none():
    # IoU 0.78, 0.41 and 0.33 in two orders; their means differ in the last digit.
    pixels = np.array([100, 200, 400])
    first, second = (
        Counts(pixels * iou // 100, [0] * 3, pixels - pixels * iou // 100, [0] * 3)
        for iou in ([78, 41, 33], [33, 78, 41])
    )
    found = explain_difference(first, second, ["x", "y", "z"])
    assert found.mean_iou_difference == 0
    assert found.accuracy_difference == pytest.approx((33 + 156 + 164 - 78 - 82 - 132) / 700)
    assert not found.disagree
    assert found.sentences() == [
        "B vs A: pixel accuracy (50.43 % vs 41.71 %), mean IoU (50.67 % vs 50.67 %)."
    ]
    runs = [
        run_from_counts(
            ConfusionMatrix(3).options, [ImageCount.of(id, tally_of(one)) for id in ("a", "b")]
        )
        for one in (first, second)
    ]
    compared = compare(*runs, names=("old", "new"))
    assert compared.outcome(compared.pairs[0]).kind == "equal"
    assert [model.rank for model in compared.ranking] == [1, 1]


def tally_of(counts):
    """Counts of classes whose pixels are predicted correctly or as nothing."""
    matrix = np.diag([*counts.tp, 0])[:3]
    matrix[:, 3] = counts.fn
    return ConfusionCounts(matrix)
