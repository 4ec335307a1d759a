"""Protocols of averaging: what each word does, by hand."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import Counts, Protocol, metrics
from segiou.analysis.gap.baselines import weighted_mean
from segiou.counting import ConfusionCounts
from segiou.inference import statistic, units_of
from segiou.metrics import load_protocol
from segiou.metrics.protocols import PROTOCOLS

NAN = float("nan")
# Two images. Class 0 in both, class 1 in the first, class 2 only predicted, class 3 nowhere.
TABLES = np.array(
    [
        [[6, 2, 0, 0], [1, 3, 0, 0], [0] * 4, [0] * 4],
        [[5, 0, 5, 0], [0] * 4, [0] * 4, [0] * 4],
    ]
)
PER_IMAGE = ConfusionCounts.of_matrix(TABLES, np.zeros((2, 4), int), np.zeros(2, int)).counts
COUNTS = PER_IMAGE.summed()
# IoU: image 0 [6/9, 3/6, -, -], image 1 [5/10, -, 0, -], together [11/19, 3/6, 0, -].
DATA = (11 / 19, 1 / 2, 0.0)
FIRST, SECOND = (6 / 9, 1 / 2), (1 / 2, 0.0)


def mean(metric=metrics.iou, include=None, **words):
    protocol = Protocol("custom", "test", **words)
    return protocol.mean(metric, COUNTS, include=include, per_image=PER_IMAGE)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, sum(DATA) / 3),
        ({"over": "truth"}, sum(DATA[:2]) / 2),
        ({"absent": "zero"}, sum(DATA) / 4),
        ({"absent": "one"}, (sum(DATA) + 1) / 4),
        ({"absent": "nan"}, NAN),
        ({"absent": "nan", "over": "truth"}, sum(DATA[:2]) / 2),
        ({"unit": "image"}, (sum(FIRST) / 2 + sum(SECOND) / 2) / 2),
        ({"unit": "image", "over": "truth"}, (sum(FIRST) / 2 + 1 / 2) / 2),
        ({"unit": "image", "absent": "zero"}, (sum(FIRST) / 4 + sum(SECOND) / 4) / 2),
        ({"unit": "image", "absent": "one"}, ((sum(FIRST) + 2) / 4 + (sum(SECOND) + 2) / 4) / 2),
        ({"unit": "image", "absent": "nan"}, NAN),
        ({"unit": "image-class"}, (sum(FIRST) + sum(SECOND)) / 4),
        ({"unit": "image-class", "over": "truth"}, (sum(FIRST) + 1 / 2) / 3),
        ({"unit": "image-class", "absent": "one"}, (sum(FIRST) + sum(SECOND) + 4) / 8),
        ({"unit": "image-class", "absent": "nan"}, NAN),
        ({"unit": "class"}, ((FIRST[0] + SECOND[0]) / 2 + FIRST[1] + SECOND[1]) / 3),
        ({"unit": "class", "over": "truth"}, ((FIRST[0] + SECOND[0]) / 2 + FIRST[1]) / 2),
        ({"unit": "class", "absent": "zero"}, ((FIRST[0] + SECOND[0]) / 2 + FIRST[1]) / 4),
        ({"unit": "class", "absent": "one"}, ((FIRST[0] + SECOND[0]) / 2 + FIRST[1] + 1) / 4),
        ({"unit": "class", "absent": "nan"}, NAN),
    ],
)
def test_every_word_by_hand(words, expected):
    assert mean(**words).value == pytest.approx(expected, abs=1e-15, nan_ok=True)


def test_what_takes_no_part_and_why():
    assert mean().skipped == {3: "absent"}
    assert mean().classes == 3
    assert mean(over="truth").skipped == {2: "not in truth", 3: "absent"}
    assert mean(absent="zero").skipped == {}
    assert mean(absent="zero").classes == 4
    assert mean(unit="class", absent="zero").classes == 4
    assert mean(unit="class", absent="one").skipped == {}
    assert mean(include=[True, False, True, True]).skipped == {1: "excluded", 3: "absent"}
    assert mean(unit="image", over="truth").skipped == {2: "not in truth", 3: "absent"}
    assert mean(metric=metrics.recall).skipped == {2: "not in truth", 3: "absent"}


def test_a_class_that_is_never_predicted_is_not_called_absent():
    counts = Counts(tp=[4, 0], fp=[6, 0], fn=[0, 6], tn=[0, 4])
    protocol = load_protocol("segiou")
    assert protocol.mean(metrics.precision, counts).skipped == {1: "never predicted"}
    everywhere = Counts(tp=[4, 0], fp=[0, 6], fn=[6, 0], tn=[0, 4])
    assert protocol.mean(metrics.specificity, everywhere).skipped == {0: "undefined"}


def test_absent_classes_do_not_raise_a_mean_that_is_defined_for_them():
    counts = Counts(tp=[4, 2, 0], fp=[1, 3, 0], fn=[3, 1, 0], tn=[2, 4, 10])
    found = load_protocol("segiou").mean(metrics.specificity, counts)
    assert found.value == pytest.approx((2 / 3 + 4 / 7) / 2)
    assert found.skipped == {2: "absent"}
    assert metrics.specificity(counts)[2] == 1


def test_zero_and_one_stand_for_every_undefined_ratio():
    # Class 2 is only predicted and class 3 nowhere: both lack a recall.
    recall = 11 / 18 + 3 / 4
    assert mean(metric=metrics.recall, absent="zero").value == pytest.approx(recall / 4)
    assert mean(metric=metrics.recall, absent="one").value == pytest.approx((recall + 2) / 4)
    assert mean(metric=metrics.recall, absent="skip").value == pytest.approx(recall / 2)
    assert np.isnan(mean(metric=metrics.recall, absent="nan").value)


def test_excluded_classes_still_count():
    # Class 1's pixels are false positives of class 0 whether or not class 1 is in the mean.
    assert mean(include=[True, False, False, False]).value == DATA[0]
    assert mean(include=[False] * 4).classes == 0
    assert np.isnan(mean(include=[False] * 4).value)
    assert np.isnan(mean(include=[False] * 4, absent="nan").value)


def test_a_mean_over_nothing_is_what_the_protocol_says():
    nothing = Counts([0, 0], [0, 0], [0, 0], [0, 0])
    for unit in ("dataset", "image", "image-class", "class"):
        for empty, expected in (("nan", NAN), ("zero", 0.0)):
            protocol = Protocol("custom", "test", unit=unit, empty=empty)
            value = protocol.mean(metrics.iou, nothing, per_image=nothing[None]).value
            np.testing.assert_equal(value, expected)
    # What is undefined is not nothing.
    protocol = Protocol("custom", "test", absent="nan", empty="zero")
    assert np.isnan(protocol.mean(metrics.iou, nothing).value)


@given(hnp.arrays(np.int64, (4, 3, 4), elements=st.integers(0, 2)))
def test_nnunet_is_its_formula(table):
    per_image = ConfusionCounts(table, np.zeros(4, int)).counts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of a label that occurs in no case
        # compute_metrics_on_folder: nanmean over cases, then a plain mean over labels.
        expected = np.mean(np.nanmean(metrics.iou(per_image), axis=0))
    protocol = load_protocol("nnunet")
    value = protocol.mean(metrics.iou, per_image.summed(), per_image=per_image).value
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    averaged = weighted_mean(per_image, metrics.iou, protocol)
    np.testing.assert_allclose(averaged.value, expected, rtol=1e-14)
    resampled = statistic(per_image, units=units_of(4), protocol="nnunet").values[0]
    np.testing.assert_allclose(resampled, expected, rtol=1e-14)


def test_many_absent_classes_are_each_told():
    counts = Counts(*np.zeros((4, 30_000), int))
    counts.tp[7] = 1
    found = load_protocol("segiou").mean(metrics.iou, counts)
    assert (found.value, found.classes, len(found.skipped)) == (1.0, 1, 29_999)
    assert set(found.skipped.values()) == {"absent"}


tables = hnp.arrays(np.int64, (3, 4, 5), elements=st.integers(0, 3))


@given(tables)
def test_where_everything_occurs_the_protocols_of_one_unit_agree(table):
    table = table + np.eye(4, 5, dtype=np.int64)
    per_image = ConfusionCounts(table, np.zeros(3, int)).counts
    for unit in ("dataset", "image", "image-class", "class"):
        values = {
            Protocol("custom", "", unit=unit, absent=absent, over=over)
            .mean(metrics.iou, per_image.summed(), per_image=per_image)
            .value
            for absent, over in itertools.product(
                ("skip", "zero", "one", "nan"), ("occurring", "truth")
            )
        }
        assert max(values) - min(values) < 1e-15


@given(tables)
def test_the_protocols_are_ordered(table):
    counts = ConfusionCounts(table[0]).counts
    zero, skip, one = (
        Protocol("custom", "", absent=absent).mean(metrics.iou, counts).value
        for absent in ("zero", "skip", "one")
    )
    if not np.isnan(skip):
        assert zero <= skip + 1e-15
        assert skip <= one + 1e-15


@pytest.mark.parametrize(("over", "value"), [("occurring", 0.5), ("truth", 1.0)])
def test_a_class_in_no_truth_has_a_fixed_value_only_over_occurring_classes(over, value):
    # Two images; the IoU of class 0 is 1, and class 1 occurs in neither truth nor prediction.
    tp = np.array([[4, 0], [4, 0]])
    per_image = Counts(tp, tp * 0, tp * 0, np.array([[0, 4], [0, 4]]))
    protocol = Protocol("custom", "", unit="class", absent="zero", over=over)
    found = protocol.mean(metrics.iou, per_image.summed(), per_image=per_image)
    assert found.value == value


def test_protocols_over_images_need_their_counts():
    protocol = load_protocol("monai")
    assert protocol.needs_images
    with pytest.raises(ValueError, match="protocol 'monai' averages over images and needs"):
        protocol.mean(metrics.iou, COUNTS)
    with pytest.raises(ValueError, match=r"must have shape \(N, 4\), got \(4,\)"):
        protocol.mean(metrics.iou, COUNTS, per_image=COUNTS)
    with pytest.raises(ValueError, match=r"must have shape \(N, 4\), got \(2, 3\)"):
        protocol.mean(metrics.iou, COUNTS, per_image=PER_IMAGE[:, :3])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"unit": "pixel"}, "unit must be 'dataset', 'image', .*, got 'pixel'"),
        ({"absent": "0"}, "absent must be 'skip', 'zero', .*, got '0'"),
        ({"over": "pred"}, "over must be 'occurring'.*'truth'.*, got 'pred'"),
    ],
)
def test_unknown_words_are_refused(words, text):
    with pytest.raises(ValueError, match=text):
        Protocol("custom", "test", **words)


def test_presets_are_found_by_name_and_listed_when_not():
    for name, protocol in PROTOCOLS.items():
        assert load_protocol(name) is protocol
        assert protocol.name == name
        assert protocol.whose
    with pytest.raises(ValueError, match="unknown protocol 'tf'; choose from segiou, cityscapes, "):
        load_protocol("tf")


def test_every_protocol_says_what_it_does():
    words = ("unit", "absent", "absent_dice", "over", "empty", "ignored", "groups")
    found = {tuple(getattr(p, w) for w in words): p.description for p in PROTOCOLS.values()}
    assert len(set(found.values())) == len(found)
    assert load_protocol("detectron2").description == (
        "all pixels are pooled over the images, then scored; classes that never occur "
        "are skipped; only classes present in the truth count"
    )


def test_reports_name_the_protocol_and_what_it_covers():
    from segiou import ConfusionMatrix

    matrix = ConfusionMatrix(["a", "b", "c", "d"], exclude="b").update([0, 0, 1, 0], [0, 2, 1, 0])
    report = matrix.report("detectron2")
    assert report.to_dict()["protocol"] == "detectron2"
    assert report.to_dict()["mean_iou_classes"] == 1
    assert report.to_dict()["skipped"] == {"b": "excluded", "c": "not in truth", "d": "absent"}
    missed = ConfusionMatrix(2).update([0, 1], [0, 0]).report()
    assert missed.to_dict()["never_predicted"] == ["1"]
