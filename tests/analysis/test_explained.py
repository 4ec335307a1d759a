import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import ChannelCounts, Counts, explain
from segiou.analysis import majority_counts, random_iou, skill_score
from segiou.analysis.gap.baselines import weighted_mean
from segiou.analysis.gap.imbalance_difference import explain_difference
from segiou.counting import ConfusionCounts
from segiou.metrics import iou, mean_accuracy, mean_iou, pixel_accuracy, recall
from segiou.metrics.protocols import PROTOCOLS

# 100 pixels, 95 of them background, and a model that answers nothing else.
BLIND = Counts(tp=[95, 0], fp=[5, 0], fn=[0, 5], tn=[0, 95])


def tallies(num_classes=3, images=4):
    return hnp.arrays(
        np.int64, (images, num_classes, num_classes + 1), elements=st.integers(0, 9)
    ).map(ConfusionCounts)


def test_all_background_by_hand():
    found = explain(BLIND, ["background", "cell"])
    assert (found.pixel_accuracy, found.mean_accuracy, found.mean_iou) == (0.95, 0.5, 0.475)
    assert found.gap_imbalance == pytest.approx(0.45)
    assert found.gap_false_positives == pytest.approx(0.025)
    background, cell = found.classes
    assert (cell.accuracy_cost, cell.mean_iou_cost) == (0.0, 0.0)
    assert (cell.accuracy_lost, cell.mean_iou_lost) == (0.05, 0.5)
    assert cell.gap_part == pytest.approx(0.45)
    assert cell.imbalance_part == pytest.approx(0.45)
    assert cell.false_positive_part == pytest.approx(0.0)
    assert background.gap_part == pytest.approx(0.025)
    assert found.never_predicted == ("cell",)
    assert found.majority.predicted_class == "background"
    assert (found.majority.pixel_accuracy, found.majority.mean_iou) == (0.95, 0.475)
    assert (found.majority.accuracy_skill, found.majority.mean_iou_skill) == (0.0, 0.0)


def test_random_baseline_is_what_random_predictions_score():
    rng = np.random.default_rng(0)
    shares = np.array([0.7, 0.25, 0.05])
    truth, pred = rng.choice(3, 400_000, p=shares), rng.choice(3, 400_000, p=shares)
    matrix = np.zeros((3, 3), np.int64)
    np.add.at(matrix, (truth, pred), 1)
    counts = ConfusionCounts.of_matrix(matrix, np.zeros(3, np.int64), np.int64(0)).counts
    assert random_iou(shares, shares) == pytest.approx(iou(counts), abs=0.003)
    found = explain(counts, list("abc")).random
    assert found.pixel_accuracy == pytest.approx(float(pixel_accuracy(counts)), abs=0.003)
    assert found.mean_iou_skill == pytest.approx(0, abs=0.004)


@given(tallies())
def test_parts_sum_to_the_gap(tally):
    found = explain(tally.counts, list("abc"))
    if not np.isfinite(found.gap):
        assert tally.valid.sum() == 0
        return
    total = tally.counts.summed()
    assert found.mean_iou == pytest.approx(float(mean_iou(total)))
    assert found.mean_accuracy == pytest.approx(float(mean_accuracy(total)))
    assert found.gap == pytest.approx(found.gap_imbalance + found.gap_false_positives, abs=1e-12)
    for whole, part in [
        ("gap", "gap_part"),
        ("gap_imbalance", "imbalance_part"),
        ("gap_false_positives", "false_positive_part"),
        ("pixel_accuracy", "accuracy_cost"),
        ("mean_iou", "mean_iou_cost"),
    ]:
        assert sum(getattr(c, part) for c in found.classes) == pytest.approx(
            getattr(found, whole), abs=1e-12
        )


@given(tallies(), st.sampled_from(sorted(PROTOCOLS)), st.sampled_from([None, [True, False, True]]))
def test_weighted_mean_gives_every_protocols_mean(tally, name, include):
    images, total, protocol = tally.counts, tally.counts.summed(), PROTOCOLS[name]
    for metric in (iou, recall):
        averaged = weighted_mean(images, metric, protocol, include)
        expected = protocol.mean(metric, total, include=include, per_image=images).value
        assert averaged.value == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("name", ["monai", "torchmetrics-segmentation", "ade20k", "detectron2"])
def test_parts_sum_under_other_protocols(name):
    table = np.array([[[5, 1, 0, 0], [2, 3, 0, 0], [0, 0, 0, 0]],
                      [[4, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]])  # fmt: skip
    found = explain(ConfusionCounts(table).counts, list("abc"), protocol=name)
    assert sum(c.gap_part for c in found.classes) == pytest.approx(found.gap)
    assert sum(c.mean_iou_cost for c in found.classes) == pytest.approx(found.mean_iou)


def test_class_only_predicted_widens_the_mean_of_iou_alone():
    counts = Counts(tp=[8, 0], fp=[0, 2], fn=[2, 0], tn=[0, 8])
    found = explain(counts, ["road", "cat"])
    assert (found.mean_accuracy_classes, found.mean_iou_classes) == (1, 2)
    assert found.predicted_only == ("cat",)
    assert np.isnan(found.classes[1].recall)
    assert found.gap == pytest.approx(0.8 - 0.4)
    assert found.gap_imbalance == pytest.approx(0.0)
    assert sum(c.gap_part for c in found.classes) == pytest.approx(found.gap)
    assert (
        "The model predicts cat, which never occurs in the truth: its IoU is 0 and its recall "
        "undefined, so mean IoU covers 2 classes and mean accuracy 1."
    ) in found.sentences()
    without = explain(counts, ["road", "cat"], include=[True, False])
    assert (without.mean_accuracy_classes, without.mean_iou_classes) == (1, 1)
    assert (
        "The model predicts cat, which never occurs in the truth: its IoU is 0 and its recall "
        "undefined."
    ) in without.sentences()


def test_excluded_class_stays_in_accuracy_only():
    found = explain(BLIND, ["background", "cell"], include=[False, True])
    assert (found.pixel_accuracy, found.mean_iou, found.mean_iou_classes) == (0.95, 0.0, 1)
    assert found.classes[0].mean_iou_cost == 0.0
    assert not found.classes[0].included
    assert sum(c.gap_part for c in found.classes) == pytest.approx(0.95)


def test_no_pixels_is_undefined_not_zero():
    nothing = Counts(*(np.zeros(2, np.int64) for _ in range(4)))
    found = explain(nothing, list("ab"))
    assert np.isnan(found.pixel_accuracy) and np.isnan(found.mean_iou)
    assert found.sentences() == ["No valid pixels; nothing to explain."]
    assert found.to_dict()["mean_iou"] is None
    two = explain_difference(nothing, nothing, list("ab"))
    assert "higher" not in two.to_text()


def test_dictionary_is_strict_json_unrounded():
    counts = Counts(tp=[2, 0], fp=[1, 0], fn=[1, 0], tn=[0, 4])
    text = json.dumps(explain(counts, list("ab")).to_dict(), allow_nan=False)
    assert json.loads(text)["classes"][1]["iou"] is None
    assert json.loads(text)["pixel_accuracy"] == 2 / 3


def test_sentence_about_a_rare_class():
    # pole: 12 of 1000 pixels, 1 found, nothing else called pole: IoU 1/12, K = 2.
    counts = Counts(tp=[988, 1], fp=[11, 0], fn=[0, 11], tn=[1, 988])
    assert explain(counts, ["road", "pole"]).sentences()[-1] == (
        "If the model stopped finding pole (1.20 % of pixels), pixel accuracy would fall by 0.10 "
        "points and mean IoU by 4.17."
    )


def test_sentence_about_two_rare_classes():
    # pole and sign: 10 of 1000 pixels each, half of them found, the rest called road.
    counts = Counts(tp=[980, 5, 5], fp=[10, 0, 0], fn=[0, 5, 5], tn=[10, 990, 990])
    assert explain(counts, ["road", "pole", "sign"]).sentences()[-1] == (
        "If the model stopped finding one class, pixel accuracy and mean IoU would fall by (in "
        "points): pole (1.00 % of pixels) 0.50 and 16.67; sign (1.00 %) 0.50 and 16.67."
    )


def test_gap_says_which_score_is_higher():
    # Half of 10 pixels called b; 1 of 1 found of the others: accuracy 8/13, recalls 1/2 and 1,
    # IoU 1/2, 1/6, 1, 1.
    counts = Counts(tp=[5, 1, 1, 1], fp=[0, 5, 0, 0], fn=[5, 0, 0, 0], tn=[3, 7, 12, 12])
    assert explain(counts, list("abcd")).sentences()[0] == (
        "Pixel accuracy is 61.54 %; mean IoU over 4 classes is 66.67 %, 5.13 points higher: 25.96 "
        "from class imbalance (common classes have the lower recall here, and rare ones weigh as "
        "much), −20.83 from false positives (which IoU penalises and accuracy does not)."
    )
    assert "47.50 points lower: 45.00 from" in explain(BLIND, list("ab")).sentences()[0]


def test_refusals():
    with pytest.raises(ValueError, match="3 class names"):
        explain(BLIND, list("abc"))
    with pytest.raises(ValueError, match="averages over images"):
        explain(BLIND, list("ab"), protocol="monai")
    with pytest.raises(ValueError, match="unknown protocol"):
        explain(BLIND, list("ab"), protocol="nobody")


def test_skill_of_a_perfect_baseline_is_undefined():
    assert np.isnan(skill_score(1.0, 1.0))
    assert skill_score([0.5, 0.0], 0.5).tolist() == [0.0, -1.0]


def test_majority_counts_keep_images():
    always = majority_counts(Counts([[1, 0]], [[0, 0]], [[0, 3]], [[3, 1]]), 1)
    assert always == Counts([[0, 3]], [[0, 1]], [[1, 0]], [[3, 0]])


def test_baselines_that_cannot_be_beaten_or_are_not():
    alone = explain(Counts(tp=[5], fp=[0], fn=[0], tn=[0]), ["a"]).sentences()[1]
    assert alone.endswith(
        "100.00 % mean IoU; the baseline is already perfect, so skill is undefined."
    )
    worse = explain(Counts(tp=[1, 0], fp=[4, 5], fn=[5, 4], tn=[0, 1]), ["a", "b"]).sentences()[1]
    assert "to perfect (100 %), the model reaches less than 0 % in accuracy" in worse


def test_overlapping_channels_have_no_such_gap():
    truth = [[[1, 1, 0]], [[0, 1, 0]]]
    channels = ChannelCounts(["edema", "tumour"]).update(truth, truth, axis=0)
    for scored in (channels, channels.report()):
        with pytest.raises(ValueError, match="cannot explain overlapping channels"):
            explain(scored)
