"""Our presets against figures that the programs printed, with their formulas written out.

For programs that no package index has. Each function below is the program's mean in our words,
over a confusion matrix with rows truth; each figure was printed by the program's own code.
"""

from pathlib import Path

import numpy as np
import pytest

from segiou import ConfusionMatrix, Counts, metrics, metrics as fg
from segiou.counting import ConfusionCounts, Encoding, count_pairs
from segiou.metrics import load_protocol
from segiou.metrics.protocols import PROTOCOLS

MATRIX = np.array(
    [[63, 4, 0, 3, 0], [2, 44, 7, 0, 0], [7, 0, 58, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
)

# Ten digits of each program on frames_with_void.
GOLDEN = {
    "segiou": 0.5937384336,
    "cityscapes": 0.5937384336,
    "mmsegmentation": 0.5937384336,
    "huggingface": 0.5937384336,
    "keras": 0.5937384336,
    "torchmetrics": 0.5937384336,
    "detectron2": 0.7916512448,
    "coco-stuff": 0.7916512448,
    "ade20k": 0.4749907469,
    "ignite": 0.4749907469,
    "sklearn": 0.4749907469,
    "paddleseg": 0.6749907469,
    "smp": 0.6749907469,
    "smp-imagewise": 0.8033825159,
    "torchvision": float("nan"),
}


@pytest.mark.parametrize(("protocol", "figure"), GOLDEN.items())
def test_printed_figures(void_case, protocol, figure):
    assert void_case.counts == ConfusionCounts.of_matrix(MATRIX, np.zeros(5, int), 4).counts
    ours = void_case.mean_iou(protocol)
    # segmentation_models.pytorch averages the images in float32, and printed that.
    tolerance = 2e-8 if protocol == "smp-imagewise" else 5e-11
    assert ours == pytest.approx(figure, abs=tolerance, nan_ok=True)


def test_every_preset_is_held_against_something():
    # test_libraries.py, test_points.py; the formula of nnU-Net in tests/metrics/test_protocols.py
    elsewhere = {"torchmetrics-segmentation", "monai", "nnunet", "semantickitti", "nuscenes"}
    elsewhere |= {"ultralytics"}  # tests/metrics/test_ultralytics.py
    # test_volumes.py
    elsewhere |= {"totalsegmentator", "kits23", "flare22", "metricsreloaded"}
    assert set(GOLDEN) | elsewhere == set(PROTOCOLS)


def test_mean_dice_of_paddleseg(void_case):
    # Its mean_iou() counts class 4, which is absent, as 1, its dice() as 0.
    mean = load_protocol("paddleseg").mean(metrics.dice, void_case.counts)
    assert mean.value == pytest.approx(0.5301837529, abs=5e-11)


def test_per_image_figure(void_case):
    # JDTLosses' mIoU^I, to the four digits it prints.
    assert fg.image_level_means(void_case.per_image).image == pytest.approx(0.7834, abs=5e-5)
    assert void_case.mean_iou("monai") == fg.image_level_means(void_case.per_image).image


def test_other_figures_of_the_case(void_case):
    counts = void_case.counts
    assert metrics.average(metrics.iou, counts, "micro") == pytest.approx(0.7819905213, abs=5e-11)
    assert metrics.frequency_weighted_iou(counts) == pytest.approx(0.7930647693, abs=5e-11)
    assert metrics.cohen_kappa(counts) == pytest.approx(0.816273635, abs=5e-10)
    assert metrics.mean_accuracy(counts) == pytest.approx(0.8741654572, abs=5e-11)


def test_figures_of_the_case_without_void():
    counts = ConfusionCounts.of_matrix([[70, 4, 0], [2, 44, 7], [7, 0, 58]], [0, 0, 0], 0).counts
    np.testing.assert_array_equal(metrics.iou(counts), [70 / 83, 44 / 57, 58 / 72])
    for name, protocol in PROTOCOLS.items():
        if not protocol.needs_images:
            value = protocol.mean(metrics.iou, counts).value
            assert value == pytest.approx(0.8069529580309542, abs=1e-15), name
    assert metrics.pixel_accuracy(counts) == 172 / 192
    assert metrics.mean_accuracy(counts) == pytest.approx(0.8894807725, abs=5e-11)
    assert metrics.cohen_kappa(counts) == pytest.approx(0.8416429543, abs=5e-11)
    assert metrics.average(metrics.iou, counts, "micro") == pytest.approx(0.8113207547, abs=5e-11)
    assert metrics.frequency_weighted_iou(counts) == pytest.approx(0.8108491165, abs=5e-11)


# -- the means, written out ------------------------------------------------------------------


def mmsegmentation(matrix):
    """intersect / union per class, NaN where union is 0; numpy.nanmean."""
    with np.errstate(invalid="ignore"):
        iou = np.diag(matrix) / (matrix.sum(0) + matrix.sum(1) - np.diag(matrix))
    return np.nanmean(iou)


def detectron2(matrix):
    """A class is valid if it has truth pixels and its union is not empty."""
    in_truth = matrix.sum(1) > 0
    union = matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    valid = in_truth & (union > 0)
    return (np.diag(matrix)[valid] / union[valid]).sum() / valid.sum()


def csail(matrix):
    """intersection / (union + 1e-10), averaged over all classes."""
    union = matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    return (np.diag(matrix) / (union + 1e-10)).mean()


def paddleseg(matrix):
    """1 where intersection and union are both 0, averaged over all classes."""
    union = matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    return np.mean([1.0 if u == 0 else i / u for i, u in zip(np.diag(matrix), union, strict=True)])


def torchvision(matrix):
    """diag / (row sum + column sum − diag), averaged as it is."""
    with np.errstate(invalid="ignore"):
        return (np.diag(matrix) / (matrix.sum(1) + matrix.sum(0) - np.diag(matrix))).mean()


MEANS = {
    "mmsegmentation": (mmsegmentation, 1e-12),
    "huggingface": (mmsegmentation, 1e-12),
    "detectron2": (detectron2, 1e-12),
    "coco-stuff": (detectron2, 1e-12),
    "ade20k": (csail, 1e-10),
    "paddleseg": (paddleseg, 1e-12),
    "torchvision": (torchvision, 1e-12),
}


@pytest.mark.parametrize("protocol", MEANS)
def test_the_written_means(case, protocol):
    truth, pred = case.flat()
    matrix = np.zeros((case.num_classes, case.num_classes), int)
    np.add.at(matrix, (truth, pred), 1)
    mean, tolerance = MEANS[protocol]
    theirs = mean(matrix)
    assert case.mean_iou(protocol) == pytest.approx(theirs, abs=tolerance, nan_ok=True)


# -- figures from the programs' own documentation --------------------------------------------


def test_hugging_face_docstring():
    truth = [[0, 3, 5, 4, 6, 255], [1, 7, 9, 2, 3, 6], [1, 2, 2, 8, 2, 1, 3, 255, 1]]
    pred = [[1, 2, 3, 4, 5, 255], [2, 7, 9, 2, 3, 6], [2, 2, 3, 8, 2, 4, 3, 255, 2]]
    matrix = ConfusionMatrix(10, ignore=255)
    for t, p in zip(truth, pred, strict=True):
        matrix.update(t, p)
    assert matrix.iou().tolist() == [0, 0, 0.375, 0.4, 0.5, 0, 0.5, 1, 1, 1]
    assert matrix.mean_iou("huggingface") == 0.47750000000000004
    assert matrix.mean_accuracy() == pytest.approx(0.5916666666666666, abs=1e-15)
    assert matrix.pixel_accuracy() == 0.5263157894736842


def test_mmeval_docstring():
    matrix = ConfusionMatrix(4).update([[0, 1, 1], [2, 3, 2]], [[0, 2, 1], [1, 3, 2]])
    assert matrix.pixel_accuracy() == pytest.approx(0.6667, abs=5e-5)
    assert matrix.mean_iou("mmsegmentation") == pytest.approx(0.6667, abs=5e-5)
    assert matrix.mean_accuracy() == 0.75
    assert metrics.mean_dice(matrix.counts) == 0.75
    assert metrics.cohen_kappa(matrix.counts) == pytest.approx(0.5384615384615384, abs=1e-15)


def test_keras_test():
    matrix = ConfusionMatrix(3, ignore=255).update([0, 1, 2, 255], [0, 1, 1, 1])
    assert matrix.mean_iou("keras") == 0.5


def test_ignite_docstring():
    matrix = ConfusionMatrix(3).update([0, 1, 0, 1, 2], [1, 1, 0, 1, 1])
    assert matrix.matrix.tolist() == [[1, 1, 0], [0, 2, 0], [0, 1, 0]]
    assert matrix.iou().tolist() == [0.5, 0.5, 0]


def test_scikit_learn_docstring():
    assert ConfusionMatrix(3).update([0, 1, 2, 2], [0, 2, 1, 2]).iou().tolist() == [1, 0, 1 / 3]


ADE20K = Path(__file__).parents[2].parent / "shared" / "data" / "ade20k_sample"


@pytest.mark.skipif(not ADE20K.is_dir(), reason="the ADE20K sample is not there")
def test_a_perfect_prediction_scores_a_tenth_by_the_ade20k_rule():
    from PIL import Image

    matrix = ConfusionMatrix("ade20k")
    for path in sorted((ADE20K / "annotations").glob("*.png")):
        truth = np.asarray(Image.open(path))
        matrix.update(truth, np.asarray(Image.open(ADE20K / "predictions" / path.name)))
    assert matrix.mean_iou("ade20k") == pytest.approx(0.1000, abs=5e-5)
    assert matrix.pixel_accuracy() == 1.0
    assert matrix.mean_iou() == 1.0
    assert matrix.report().mean_iou_classes == 15


# -- where a program is wrong ----------------------------------------------------------------


def test_mean_dice_and_mean_f_score_are_one_number():
    # mmsegmentation prints mDice 0.6627 and mFscore 0.8836 here: precision and recall of class 3
    # are 0, its F-score divides 0 by 0, and the NaN is dropped from the mean.
    counts = ConfusionCounts.of_matrix(MATRIX, np.zeros(5, int), 4).counts
    dice = metrics.mean_dice(counts)
    assert dice == pytest.approx(0.6627, abs=5e-5)
    assert metrics.mean(metrics.f_beta(counts, 1.0)) == dice
    defined = metrics.dice(counts)[:3]
    assert defined.mean() == pytest.approx(0.8836, abs=5e-5)


def test_label_maps_are_applied_at_once():
    # Hugging Face applies {0: 1, 1: 2} one after the other, in place: 0 becomes 1 becomes 2.
    values = np.array([0, 1, 1], np.uint8)
    encoding = Encoding.of([(9,), (0,), (1,)])
    assert np.diag(encoding.count(values, values).table).tolist() == [0, 1, 2]
    assert values.tolist() == [0, 1, 1]


def test_pixel_accuracy_of_valid_pixels():
    # cityscapesScripts' evalPixelAccuracy inverts its mask: of 100 pixels, 70 of them valid and
    # 50 of those right, it reports 30 valid and 1 right.
    truth = np.repeat([7, 8, 0], [40, 30, 30])
    pred = np.repeat([7, 8, 7, 8, 0], [30, 10, 10, 20, 30])
    pred[-1] = 7
    matrix = ConfusionMatrix("cityscapes").update(truth, pred)
    assert int(matrix.tally.valid) == 70
    assert matrix.pixel_accuracy() == 50 / 70


def test_a_class_that_never_occurs_does_not_spoil_worst_cases():
    # JDTLosses' C_q prints 400000.44 per cent on frames_with_void: its sentinel of 1e6 leaks.
    per_image = Counts([[1, 0]], [[1, 0]], [[0, 0]], [[0, 2]])
    assert fg.image_level_means(per_image).worst_class_mean == 0.5


def test_dice_is_not_pixel_accuracy():
    # fiftyone counts every wrong pixel as FN and as FP of one class: its Dice is pixel accuracy.
    counts = ConfusionCounts.of_matrix([[5, 2], [1, 2]], [0, 0], 0).counts
    assert metrics.pixel_accuracy(counts) == 0.7
    np.testing.assert_allclose(metrics.dice(counts), [10 / 13, 4 / 7])


def test_small_dtypes_do_not_overflow():
    # mmeval computes 19 · truth + pred in the labels' own uint8: 360 becomes 104.
    truth, pred = np.array([18], np.uint8), np.array([18], np.uint8)
    table = count_pairs(truth, pred, 19)
    assert table[18, 18] == 1
    assert table.sum() == 1


def test_the_mean_of_batch_means_is_another_number():
    # metrax averages batches: its result depends on their size. Counts do not.
    rng = np.random.default_rng(4)
    truth, pred = rng.integers(0, 3, (2, 90))
    whole = ConfusionMatrix(3).update(truth, pred)
    for size in (1, 7, 45):
        parts = ConfusionMatrix(3)
        for start in range(0, 90, size):
            parts.add(
                ConfusionCounts(
                    count_pairs(truth[start : start + size], pred[start : start + size], 3), 0
                )
            )
        assert parts.mean_iou() == whole.mean_iou()


def test_custom_rules_and_their_words():
    from segiou import Protocol

    protocol = Protocol("custom", "us", unit="image", absent="zero", over="truth")
    assert protocol.description == (
        "scored per image, averaged over classes, then over images; classes absent from an image "
        "count as 0; only classes present in the truth count"
    )
    assert load_protocol(protocol) is protocol
