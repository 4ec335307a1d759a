"""Our presets against the programs themselves."""

import warnings

import numpy as np
import pytest

import segiou
from segiou import metrics
from segiou.counting import UndeclaredValuesError, count_pairs

IGNORED = 255
SINGLE = 1e-6  # what float32 holds of a number near 1


def test_scikit_learn(case, peer):
    sklearn = peer("sklearn.metrics")
    truth, pred = case.flat()
    every = list(range(case.num_classes))
    theirs = sklearn.jaccard_score(truth, pred, labels=every, average="macro", zero_division=0)
    assert case.mean_iou("sklearn") == pytest.approx(theirs, abs=1e-12)
    # Without labels= it takes the classes that occur: our default.
    theirs = sklearn.jaccard_score(truth, pred, average="macro", zero_division=0)
    assert case.mean_iou("segiou") == pytest.approx(theirs, abs=1e-12)
    for how in ("micro", "weighted"):
        theirs = sklearn.jaccard_score(truth, pred, average=how)
        assert metrics.average(metrics.iou, case.counts, how) == pytest.approx(theirs, abs=1e-12)
    theirs = sklearn.cohen_kappa_score(truth, pred)
    assert metrics.cohen_kappa(case.counts) == pytest.approx(theirs, abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "y_pred contains classes not in y_true"
        theirs = sklearn.balanced_accuracy_score(truth, pred)
    assert metrics.mean_accuracy(case.counts) == pytest.approx(theirs, abs=1e-12)


def test_scikit_learn_reads_two_dimensional_masks_of_0_and_1_as_multilabel(peer):
    sklearn = peer("sklearn.metrics")
    truth = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1]])
    pred = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]])
    ours = count_pairs(truth, pred, 2)
    flat = sklearn.confusion_matrix(truth.ravel(), pred.ravel())
    assert ours[:, :2].tolist() == flat.tolist() == [[3, 1], [1, 4]]


@pytest.mark.parametrize("how", ["macro", "micro"])
def test_torchmetrics_jaccard(case, peer, how):
    torch, classification = peer("torch"), peer("torchmetrics.classification")
    metric = classification.MulticlassJaccardIndex(
        case.num_classes, average=how, ignore_index=IGNORED, validate_args=False
    )
    for t, p in zip(case.truth, case.pred, strict=True):
        metric.update(torch.tensor(p), torch.tensor(t))
    theirs = float(metric.compute())
    if how == "macro":
        assert case.mean_iou("torchmetrics") == pytest.approx(theirs, abs=SINGLE)
    else:
        ours = metrics.average(metrics.iou, case.counts, "micro")
        assert ours == pytest.approx(theirs, abs=SINGLE)


@pytest.mark.parametrize("ignore", range(5))
def test_torchmetrics_leaves_an_ignored_class_out_of_the_mean(peer, ignore):
    torch, classification = peer("torch"), peer("torchmetrics.classification")
    rng = np.random.default_rng(ignore)
    for _ in range(20):
        masks = rng.integers(0, 5, (2, 2, 4))
        metric = classification.MulticlassJaccardIndex(5, ignore_index=ignore)
        theirs = float(metric(torch.tensor(masks[1]), torch.tensor(masks[0])))
        with pytest.warns(UserWarning, match="ignore includes values of the declared class"):
            run = segiou.score(masks[:1], masks[1:], labels=5, ignore=ignore)
        for ours in (
            run.total().mean_iou("torchmetrics"),
            run.report("torchmetrics").mean_iou,
            segiou.explain(run, protocol="torchmetrics").mean_iou,
        ):
            assert ours == pytest.approx(theirs, abs=SINGLE, nan_ok=True)


@pytest.mark.parametrize(("zero_division", "protocol"), [(0, "sklearn"), (1, "smp")])
def test_torchmetrics_jaccard_of_channels(peer, zero_division, protocol):
    torch, classification = peer("torch"), peer("torchmetrics.classification")
    truth, pred = np.random.default_rng(0).integers(0, 2, (2, 2, 3, 4, 5))
    truth[:, 2] = pred[:, 2] = 0  # an absent label is not skipped
    metric = classification.MultilabelJaccardIndex(3, zero_division=zero_division)
    theirs = float(metric(torch.tensor(pred), torch.tensor(truth)))
    ours = segiou.ChannelCounts(3).update(truth, pred, axis=1).report(protocol).mean_iou
    assert ours == pytest.approx(theirs, abs=SINGLE)


def test_torchmetrics_leaves_an_ignored_class_out_by_hand():
    truth, pred = [[3, 1], [0, 3]], [[0, 1], [1, 1]]
    with pytest.warns(UserWarning, match="ignore includes values of the declared class"):
        run = segiou.score([truth, [[4, 4], [4, 4]]], [pred, [[4, 1], [4, 4]]], labels=5, ignore=0)
    # IoU: class 1 is 1 / 3, class 3 is 0, class 4 is 3 / 4; class 0 is ignored, but predicted.
    assert run.report("torchmetrics").mean_iou == pytest.approx((1 / 3 + 0 + 3 / 4) / 3)
    assert run.report("torchmetrics").iou_mean.skipped == {0: "excluded", 2: "absent"}
    assert run.report("segiou").mean_iou == pytest.approx((1 / 3 + 0 + 3 / 4) / 4)
    for found in (
        run.intervals(protocol="torchmetrics", resamples=100).overall.value,
        segiou.bootstrap(run, protocol="torchmetrics", resamples=100).overall.value,
        segiou.compare(run, run, protocol="torchmetrics", resamples=100).pairs[0].overall.a,
    ):
        assert found == pytest.approx((1 / 3 + 0 + 3 / 4) / 3)


def test_torchmetrics_segmentation_mean_iou(case, peer):
    torch, segmentation = peer("torch"), peer("torchmetrics.segmentation")
    metric = segmentation.MeanIoU(num_classes=case.num_classes, input_format="one-hot")
    for truth, pred in case.one_hot():
        metric.update(torch.tensor(pred), torch.tensor(truth))
    theirs = float(metric.compute())
    assert case.mean_iou("torchmetrics-segmentation") == pytest.approx(theirs, abs=SINGLE)


def test_an_out_of_range_prediction_is_refused_and_not_counted_in_another_cell():
    # torchmetrics, which checks how many labels there are and not which, reads 3 of 3 classes
    # as class 0 of the next row.
    truth, pred = np.array([0, 1, 2]), np.array([0, 3, 2])
    with pytest.raises(UndeclaredValuesError, match="pred has undeclared values"):
        count_pairs(truth, pred, 3)
    counted = count_pairs(truth, pred, 3, unassigned="count")
    assert counted.tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]


def test_monai(case, peer):
    torch, monai = peer("torch"), peer("monai.metrics")
    metric = monai.MeanIoU(include_background=True, reduction="mean", ignore_empty=True)
    for truth, pred in case.one_hot():
        metric(torch.tensor(pred).float(), torch.tensor(truth).float())
    theirs = float(metric.aggregate())
    assert case.mean_iou("monai") == pytest.approx(theirs, abs=SINGLE)


@pytest.mark.parametrize("threshold", [0.25, 0.5])
def test_monai_takes_the_threshold_as_foreground(peer, threshold):
    torch, post = peer("torch"), peer("monai.transforms")
    scores = np.array([[0.25, 0.5, 0.75]], np.float32)
    theirs = post.AsDiscrete(threshold=threshold)(torch.tensor(scores)).numpy()
    least = segiou.metrics.load_protocol("monai").threshold(threshold)
    ours = segiou.ConfusionMatrix(2).update(theirs.astype(int), scores, threshold=least)
    assert ours.mean_iou() == 1


def test_keras(case, keras_mean_iou):
    theirs = keras_mean_iou(case.truth, case.pred, case.num_classes)
    assert case.mean_iou("keras") == pytest.approx(theirs["mean_iou"], abs=SINGLE)


def test_keras_drops_undeclared_predictions(keras_mean_iou):
    truth, pred = np.array([[0, 0, 1, 1, 1]]), np.array([[0, 7, -1, 1, 0]])
    theirs = keras_mean_iou([truth], [pred], 2)
    matrix = segiou.ConfusionMatrix(2, unassigned="count").update(truth, pred)
    assert theirs["matrix"] == matrix.report("keras").matrix.tolist() == [[1, 0], [1, 1]]
    assert matrix.mean_iou("keras") == pytest.approx(theirs["mean_iou"], abs=SINGLE)


def test_keras_with_nothing_valid(keras_mean_iou):
    void = np.full((1, 4), IGNORED)
    theirs = keras_mean_iou([void], [np.zeros((1, 4), int)], 3)["mean_iou"]
    matrix = segiou.ConfusionMatrix(3, ignore=IGNORED).update(void, np.zeros((1, 4), int))
    assert matrix.mean_iou("keras") == matrix.report("keras").mean_iou == theirs == 0
    assert np.isnan(matrix.mean_iou())


@pytest.mark.parametrize("ignore", range(3))
def test_keras_keeps_an_ignored_class_in_the_mean(keras_mean_iou, ignore):
    rng = np.random.default_rng(ignore)
    truth, pred = rng.integers(0, 3, (2, 1, 30))
    theirs = keras_mean_iou([np.where(truth == ignore, IGNORED, truth)], [pred], 3)["mean_iou"]
    with pytest.warns(UserWarning, match="ignore includes values of the declared class"):
        matrix = segiou.ConfusionMatrix(3, ignore=ignore).update(truth, pred)
    assert matrix.mean_iou("keras") == pytest.approx(theirs, abs=SINGLE)


def test_counts_do_not_wrap_where_those_of_keras_do(keras_mean_iou):
    # Its counters are int32: 2 147 483 600 + 100 becomes negative, and no word is said.
    from segiou import ConfusionMatrix
    from segiou.counting import ConfusionCounts

    zeros = np.zeros(100, np.uint8)
    matrix = ConfusionMatrix(2).add(
        ConfusionCounts(np.array([[2_147_483_600, 0, 0], [0, 1, 0]]), 0)
    )
    matrix.update(zeros, zeros)
    assert matrix.matrix.tolist() == [[2_147_483_700, 0], [0, 1]]
    theirs = keras_mean_iou([zeros], [zeros], 2, matrix=[[2_147_483_600, 0], [0, 1]])["matrix"]
    # Fixed, or wrapped.
    assert theirs[0][0] in (2_147_483_700, 2_147_483_700 - 2**32)


def test_ignite(case, peer):
    torch, ignite = peer("torch"), peer("ignite.metrics")
    matrix = ignite.ConfusionMatrix(num_classes=case.num_classes)
    mean = ignite.mIoU(matrix)  # made first: making it forgets what was counted
    for t, p in zip(case.truth, case.pred, strict=True):
        scores = np.arange(case.num_classes)[:, None, None] == p
        matrix.update((torch.tensor(scores[None]).float(), torch.tensor(t[None])))
    theirs = float(mean.compute())
    assert case.mean_iou("ignite") == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("protocol", "reduction"), [("smp", "macro"), ("smp-imagewise", "macro-imagewise")]
)
def test_segmentation_models_pytorch(case, peer, smp_metrics, protocol, reduction):
    torch = peer("torch")
    stats = [
        smp_metrics.get_stats(
            torch.tensor(p[None]),
            torch.tensor(t[None]),
            mode="multiclass",
            num_classes=case.num_classes,
            ignore_index=IGNORED,
        )
        for t, p in zip(case.truth, case.pred, strict=True)
    ]
    tp, fp, fn, tn = (torch.cat(parts) for parts in zip(*stats, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Zero division in metric calculation!"
        theirs = float(smp_metrics.iou_score(tp, fp, fn, tn, reduction=reduction))
    assert case.mean_iou(protocol) == pytest.approx(theirs, abs=SINGLE)


def test_more_pixels_than_float32_counts():
    # torch.histc, which mmsegmentation and segmentation_models.pytorch count with, stops at
    # 2^24 where it runs in one thread: float32 has no 16 777 217.
    zeros = np.broadcast_to(np.uint8(0), 2**24 + 1000)
    assert count_pairs(zeros, zeros, 2).tolist() == [[2**24 + 1000, 0, 0], [0, 0, 0]]


def test_many_images_of_many_pixels():
    # mmsegmentation adds images up in float32: 500 times 700 001 becomes 350 000 032.
    from segiou import ConfusionMatrix
    from segiou.counting import ConfusionCounts

    matrix = ConfusionMatrix(1)
    for _ in range(500):
        matrix.add(ConfusionCounts(np.array([[700_001, 0]]), 0))
    assert matrix.matrix.tolist() == [[350_000_500]]
