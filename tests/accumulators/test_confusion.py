from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import segiou
from segiou import ChannelCounts, ConfusionMatrix
from segiou.metrics import load_protocol

CLASSES = ["a", "b", "c"]


def random_pairs(seed: int, number: int = 5) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(number):
        shape = tuple(rng.integers(1, 6, 2))
        truth = rng.choice([0, 1, 2, 255], shape)
        pairs.append((truth, rng.integers(0, 4, shape)))
    return pairs


def counted(pairs) -> ConfusionMatrix:
    cm = ConfusionMatrix(CLASSES, ignore=255, unassigned="count")
    for truth, pred in pairs:
        cm.update(truth, pred)
    return cm


seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_pixels_counted_one_by_one_are_the_image(seed):
    pairs = random_pairs(seed)
    whole = counted(pairs)
    flat = counted([])
    for truth, pred in pairs:
        for t, p in zip(truth.ravel(), pred.ravel(), strict=True):
            flat.update(t, p)
    assert np.array_equal(flat.matrix, whole.matrix)
    assert (flat.ignored, flat.pixels) == (whole.ignored, whole.pixels)


@given(seeds)
def test_every_pixel_is_somewhere(seed):
    pairs = random_pairs(seed)
    cm = counted(pairs)
    seen = sum(truth.size for truth, _ in pairs)
    assert cm.matrix.sum() + cm.unassigned.sum() + cm.ignored == seen == cm.pixels


def test_a_state_of_other_options_is_refused():
    state = ConfusionMatrix(2).state_dict()
    with pytest.raises(ValueError, match="3 classes here and 2 there"):
        ConfusionMatrix(3).load_state_dict(state)
    state["state_version"] = 99
    with pytest.raises(ValueError, match="got 99"):
        ConfusionMatrix(2).load_state_dict(state)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (ConfusionMatrix(["a", "b"]), "3 classes here and 2 there"),
        (ConfusionMatrix(["a", "b", "x"]), "class .*'c'.*here and .*'x'.*there"),
        (ConfusionMatrix(CLASSES), r"ignore is \[255\] here and \[\] there"),
        (ConfusionMatrix("camvid"), "'custom' here and 'camvid' there"),
    ],
)
def test_only_the_same_classes_merge(other, message):
    cm = ConfusionMatrix(CLASSES, ignore=255)
    before = cm.copy()
    with pytest.raises(ValueError, match=message):
        cm.merge(other)
    assert cm == before


def test_only_confusion_matrices_merge():
    with pytest.raises(TypeError, match="not ndarray"):
        ConfusionMatrix(2).merge(np.zeros((2, 2)))
    with pytest.raises(TypeError):
        ConfusionMatrix(2) + 1
    assert ConfusionMatrix(2) != "x"


def test_a_refused_update_changes_nothing():
    cm = counted(random_pairs(4))
    before = cm.copy()
    with pytest.raises(segiou.counting.UndeclaredValuesError):
        cm.update([0, 17], [0, 0])
    assert cm == before


def test_matrix_is_a_copy():
    cm = ConfusionMatrix(2)
    cm.matrix[:] = 7
    cm.unassigned[:] = 7
    assert cm.pixels == 0


def test_ignoring_a_declared_class_warns_and_drops_its_pixels():
    with pytest.warns(UserWarning, match="'a'.*exclude"):
        cm = ConfusionMatrix(CLASSES, ignore="a")
    cm.update([0, 1, 1], [1, 0, 1])
    np.testing.assert_array_equal(cm.matrix, [[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    assert cm.ignored == 1


def test_ignore_and_exclude_are_two_things():
    truth, pred = [0, 0, 0, 1, 1], [0, 0, 1, 1, 0]
    excluded = ConfusionMatrix(2, exclude=[0]).update(truth, pred)
    assert excluded.mean_iou() == pytest.approx(1 / 3)
    with pytest.warns(UserWarning):
        ignoring = ConfusionMatrix(2, ignore=0).update(truth, pred)
    # The false positive lies on an ignored pixel: what is left is recall.
    assert ignoring.iou()[1] == pytest.approx(1 / 2) == excluded.recall()[1]


def test_truth_and_prediction_in_two_encodings():
    cm = ConfusionMatrix("cityscapes", pred_labels="cityscapes-train", unassigned="count")
    # label ids 7 road, 11 building, 26 car, 0 unlabelled; train ids 0, 2, 13
    cm.update([7, 11, 26, 0], [0, 2, 0, 255])
    names = cm.class_names
    assert cm.matrix[names.index("road"), names.index("road")] == 1
    assert cm.matrix[names.index("car"), names.index("road")] == 1
    assert cm.ignored == 1
    with pytest.raises(ValueError, match="must have the same class names"):
        ConfusionMatrix("cityscapes", pred_labels="camvid")


def test_scores_are_class_indices_whatever_the_file_values():
    cm = ConfusionMatrix("cityscapes")
    scores = np.zeros((19, 2))
    scores[0, 0] = scores[13, 1] = 1
    cm.update([7, 26], scores, argmax=0)
    assert cm.pixel_accuracy() == 1.0
    with pytest.raises(ValueError, match=r"21 channels along axis 0, expected 19"):
        cm.update([7, 26], np.zeros((21, 2)), argmax=0)
    with pytest.raises(ValueError, match="argmax=3 is out of range"):
        cm.update([7, 26], scores, argmax=3)


def test_threshold_decides_between_two_classes():
    cm = ConfusionMatrix(["no", "yes"]).update([0, 1, 1], [0.5, 0.51, 0.2], threshold=0.5)
    np.testing.assert_array_equal(cm.matrix, [[1, 0], [1, 1]])
    with pytest.raises(ValueError, match="requires two classes, got 3"):
        ConfusionMatrix(3).update([0], [0.2], threshold=0.5)


def test_odd_options_are_refused():
    with pytest.raises(ValueError, match="unknown class 'x'"):
        ConfusionMatrix(CLASSES, ignore="x")
    with pytest.raises(ValueError, match="no class 5, expected an index from 0 to 2"):
        ConfusionMatrix(CLASSES, exclude=5)
    with pytest.raises(ValueError, match="'error' or 'count'"):
        ConfusionMatrix(CLASSES, unassigned="maybe")


def test_counts_stay_exact_past_every_smaller_counter():
    cm = ConfusionMatrix(2).update([0, 1, 1], [0, 0, 1])
    for _ in range(55):
        cm = cm + cm
    assert cm.matrix.tolist() == [[2**55, 0], [2**55, 2**55]]
    assert cm.pairs == 2**55
    assert cm.iou().tolist() == [0.5, 0.5]
    one_more = cm.update([0], [0])
    assert one_more.matrix[0, 0] == 2**55 + 1


def test_what_a_person_sees():
    cm = counted(random_pairs(5))
    assert repr(cm).startswith("<ConfusionMatrix: 3 classes, 5 pairs,")
    assert "<table" in cm._repr_html_()
    assert cm.compute().mean_iou == cm.mean_iou() == cm.report().mean_iou


def test_as_an_array_it_is_its_matrix():
    matrix = ConfusionMatrix(2).update([0, 1, 1], [0, 0, 1])
    assert np.asarray(matrix).tolist() == [[1, 0], [1, 1]]
    assert np.asarray(matrix, float).dtype == float


@pytest.mark.parametrize(("threshold", "label"), [(0.5, 0), (0.25, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("protocol", ["smp", "keras", "monai"])
def test_a_score_at_the_threshold_is_predicted_by_some_protocols_only(
    threshold, label, dtype, protocol
):
    score = np.full(1, 0.5, dtype)
    counted = ConfusionMatrix(2).update([1], score, threshold=threshold)
    assert counted.matrix[1].tolist() == [1 - label, label]
    least = load_protocol(protocol).threshold(threshold)
    assert ConfusionMatrix(2).update([1], score, threshold=least).matrix[1].tolist() == [0, 1]
    channels = ChannelCounts(1).update([[1]], [score], axis=0, threshold=least)
    assert channels.counts.tp.tolist() == [1]
