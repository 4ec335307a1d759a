from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from segiou import ChannelCounts, ConfusionMatrix


@pytest.fixture
def hook(need):
    need("torchmetrics")
    from segiou.hooks import torchmetrics

    return torchmetrics


@pytest.fixture
def batches(streets, need):
    torch = need("torch")
    truth, pred = torch.from_numpy(streets.truth), torch.from_numpy(streets.pred)
    return [(pred[:4], truth[:4]), (pred[4:], truth[4:])]


def test_counts_are_the_fixture_s(hook, streets, batches):
    metric = hook.SegmentationScores(streets.names, ignore=255)
    for pred, truth in batches:
        metric.update(pred, truth)
    cm = metric.counts
    np.testing.assert_array_equal(cm.matrix, streets.matrix)
    assert (cm.ignored, cm.pairs) == (streets.ignored, 2)
    assert float(metric.compute()) == cm.mean_iou()
    metric.reset()
    assert metric.counts.pixels == 0


def test_agrees_with_torchmetrics_own_where_both_define_it(hook, streets, batches, need):
    from torchmetrics import MetricCollection
    from torchmetrics.classification import MulticlassJaccardIndex

    both = MetricCollection(
        {
            "theirs": MulticlassJaccardIndex(10, ignore_index=255),
            "ours": hook.SegmentationScores(streets.names, ignore=255),
        }
    )
    for pred, truth in batches:
        both.update(pred, truth)
    scores = both.compute()
    assert float(scores["ours"]) == pytest.approx(float(scores["theirs"]), abs=1e-6)


def test_forward_gives_the_batch_and_keeps_the_whole(hook, streets, batches):
    metric = hook.SegmentationScores(streets.names, ignore=255)
    own = []
    for pred, truth in batches:
        own.append(float(metric(pred, truth)))
        alone = ConfusionMatrix(streets.names, ignore=255).update(truth, pred)
        assert own[-1] == alone.mean_iou()
    np.testing.assert_array_equal(metric.counts.matrix, streets.matrix)


def test_several_scores_are_a_dict_that_a_collection_flattens(hook, streets, batches):
    from torchmetrics import MetricCollection

    scores = ("mean_iou", "pixel_accuracy", "iou")
    metric = hook.SegmentationScores(streets.names, ignore=255, scores=scores)
    collection = MetricCollection([metric], prefix="val_")
    for pred, truth in batches:
        collection.update(pred, truth)
    values = collection.compute()
    assert len(values) == 12
    assert {"val_mean_iou", "val_pixel_accuracy", "val_iou/road"} <= set(values)
    assert all(value.ndim == 0 for value in values.values())


def test_clones_copies_pickles_and_checkpoints(hook, streets, batches, need):
    torch = need("torch")
    metric = hook.SegmentationScores(streets.names, ignore=255)
    metric.persistent(True)
    metric.update(*batches[0])
    again = hook.SegmentationScores(streets.names, ignore=255)
    again.persistent(True)
    again.load_state_dict(metric.state_dict())
    for other in (metric.clone(), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), again):
        other.update(*batches[1])
        np.testing.assert_array_equal(other.counts.matrix, streets.matrix)
    assert metric.counts.pixels < streets.matrix.sum()
    merged = hook.SegmentationScores(streets.names, ignore=255)
    merged.update(*batches[1])
    merged.merge_state(metric)
    np.testing.assert_array_equal(merged.counts.matrix, streets.matrix)
    assert merged.sums.dtype == torch.int64


def test_scores_and_thresholds(hook, need):
    torch = need("torch")
    truth = torch.tensor([[[0, 1, 1, 1]]])
    logits = torch.tensor([[[[2.0, 0, 0, 3]], [[1.0, 1, 1, 1]]]], dtype=torch.bfloat16)
    metric = hook.SegmentationScores(2, scores="pixel_accuracy")
    assert float(metric(logits, truth)) == 0.75
    binary = hook.SegmentationScores(2, scores="pixel_accuracy", threshold=0.5)
    assert float(binary(logits[:, 1], truth)) == 0.75


def test_counts_beyond_what_float32_holds(hook, need):
    torch = need("torch")
    metric = hook.SegmentationScores(2)
    metric.sums += torch.tensor([2**40, 1, 0, 0, 2**40, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    assert metric.counts.matrix.tolist() == [[2**40, 1], [0, 2**40]]


def test_a_device_s_undeclared_values_raise_at_compute(hook, monkeypatch, need):
    torch = need("torch")
    from segiou.counting.device_counts import DeviceValuesError
    from segiou.hooks import _torch_counts

    monkeypatch.setattr(_torch_counts, "is_on_device", lambda x: True)
    metric = hook.SegmentationScores(2)
    metric.update(torch.tensor([0, 1]), torch.tensor([0, 9]))
    with pytest.raises(DeviceValuesError, match="largest value 9"):
        metric.compute()


def test_unknown_scores_are_refused(hook):
    with pytest.raises(ValueError, match="'miuo'; choose from iou"):
        hook.SegmentationScores(2, scores="miuo")


@pytest.mark.parametrize("protocol", ["ultralytics", "keras"])
def test_the_protocol_ignores_undeclared_predictions(hook, need, protocol):
    torch = need("torch")
    metric = hook.SegmentationScores(
        2, protocol=protocol, unassigned="count", scores=["mean_iou", "pixel_accuracy", "iou"]
    )
    metric.update(torch.tensor([0, 7, 7, 1, 0]), torch.tensor([0, 0, 1, 1, 1]))
    # Valid are the pixels 0/0, 1/1 and 1/0.
    found = {name: float(value) for name, value in metric.compute().items()}
    half = {"mean_iou": 0.5, "iou/0": 0.5, "iou/1": 0.5}
    assert found == pytest.approx({**half, "pixel_accuracy": 2 / 3})


def test_the_protocol_is_used(hook, need):
    torch = need("torch")
    values = {}
    for protocol in ("segiou", "ade20k"):
        metric = hook.SegmentationScores(4, protocol=protocol)
        values[protocol] = float(metric(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 1])))
    assert values == {"segiou": 1.0, "ade20k": 0.5}


def variants(hook, **made):
    return {name: hook.SegmentationScores(3, **options) for name, options in made.items()}


SAME_COUNTS = {"iou": {}, "dice": {"scores": "mean_dice"}, "truth": {"protocol": "detectron2"}}
OTHER_COUNTS = {
    "ignored": {"ignore": 0},
    "more ignored": {"ignore": [0, 9]},
    "unassigned": {"unassigned": "count"},
}


@pytest.mark.filterwarnings("ignore:ignored values belong")
def test_a_collection_shares_counts_only_between_equal_options(hook, need):
    torch = need("torch")
    from torchmetrics import MetricCollection

    both = SAME_COUNTS | OTHER_COUNTS
    collection, alone = MetricCollection(variants(hook, **both)), variants(hook, **both)
    # In the first batch all of them count the same.
    for pred, truth in (([1, 2], [1, 1]), ([0, 1, 2], [0, 0, 2])):
        collection.update(torch.tensor(pred), torch.tensor(truth))
        for metric in alone.values():
            metric.update(torch.tensor(pred), torch.tensor(truth))
    scores = collection.compute()
    assert {name: float(score) for name, score in scores.items()} == {
        name: float(metric.compute()) for name, metric in alone.items()
    }
    assert scores["iou"] != scores["ignored"]
    groups = sorted(map(sorted, collection.compute_groups.values()))
    assert sorted(SAME_COUNTS) in groups
    assert len(groups) == 4


def test_a_collection_does_not_merge_other_thresholds(hook, need):
    torch = need("torch")
    from torchmetrics import MetricCollection

    made = {"low": {"threshold": 0.5}, "high": {"threshold": 0.7}}
    metrics = {name: hook.SegmentationScores(2, **how) for name, how in made.items()}
    collection = MetricCollection(metrics)
    for scores, truth in (([0.1, 0.9], [0, 1]), ([0.6, 0.6], [0, 1])):
        collection.update(torch.tensor(scores), torch.tensor(truth))
    assert collection["low"].counts.matrix.tolist() == [[1, 1], [0, 2]]
    assert collection["high"].counts.matrix.tolist() == [[2, 0], [1, 1]]


def test_groups_that_a_user_forces_are_refused(hook, need):
    torch = need("torch")
    from torchmetrics import MetricCollection

    metrics = variants(hook, a={}, b={"ignore": 9})
    collection = MetricCollection(metrics, compute_groups=[["a", "b"]])
    collection.update(torch.tensor([0, 1]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"metric with different classes or options"):
        collection.compute()


def test_a_state_of_other_classes_is_refused(hook, need):
    torch = need("torch")
    saved = hook.SegmentationScores(["a", "b"])
    saved.persistent(True)
    saved.update(torch.tensor([0, 1]), torch.tensor([0, 1]))
    for other in (["a", "c"], ["b", "a"], ["a", "b", "c"]):
        metric = hook.SegmentationScores(other)
        with pytest.raises(ValueError, match="metric with different classes or options"):
            metric.load_state_dict(saved.state_dict())
        assert metric.counts.pixels == 0


def test_the_counts_keep_their_type(hook, need):
    torch = need("torch")
    metric = hook.SegmentationScores(2)
    metric.sums += 2**40 + 1
    metric.set_dtype(torch.float16)
    torch.nn.ModuleList([metric]).half()
    assert metric.sums.dtype == torch.int64
    assert int(metric.sums[0]) == 2**40 + 1


def test_lists_are_taken(hook, need):
    torch = need("torch")
    metric = hook.SegmentationScores(2, scores="pixel_accuracy")
    metric.update([[0, 1]], [[0, 0]])
    metric.update([torch.tensor([0, 1])], [torch.tensor([0, 1])])
    metric.update([[[0.1, 0.8], [0.9, 0.2]]], [[1, 0]])
    assert metric.counts.matrix.tolist() == [[3, 1], [0, 2]]


def test_a_channel_of_its_own_is_dropped(hook, need):
    torch = need("torch")
    truth, scores = torch.tensor([[[0, 1, 1]]]), torch.tensor([[[[0.2, 0.9, 0.1]]]])
    expected = [[1, 0], [1, 1]]
    for preds, target in ((scores, truth), (scores[:, 0], truth), (scores, truth[:, None])):
        metric = hook.SegmentationScores(2, threshold=0.5)
        metric.update(preds, target)
        assert metric.counts.matrix.tolist() == expected
    both = torch.cat([1 - scores, scores], 1)
    metric = hook.SegmentationScores(2)
    metric.update(both, truth[:, None])
    assert metric.counts.matrix.tolist() == expected
    with pytest.raises(ValueError, match="single channel along axis 1 for two classes"):
        metric.update(scores, truth)


def test_one_per_class_score_is_a_tensor_that_wrappers_name(hook, streets, batches):
    from torchmetrics import ClasswiseWrapper

    metric = hook.SegmentationScores(streets.names, ignore=255, scores="iou")
    named = ClasswiseWrapper(metric.clone(), labels=list(streets.names), prefix="iou_")
    for pred, truth in batches:
        metric.update(pred, truth)
        named.update(pred, truth)
    iou = metric.counts.iou()
    np.testing.assert_array_equal(metric.compute().numpy(), iou)
    assert float(named.compute()["iou_road"]) == iou[2]


def test_wrappers_that_cannot_read_a_dict_are_refused(hook, need):
    torch = need("torch")
    from torchmetrics import ClasswiseWrapper, MetricCollection, MetricTracker
    from torchmetrics.wrappers import MinMaxMetric

    truth, pred = torch.tensor([0, 1]), torch.tensor([0, 1])
    several = hook.SegmentationScores(2, scores=["mean_iou", "iou"])
    wrapped = ClasswiseWrapper(several.clone(), labels=["a", "b"])
    with pytest.raises(TypeError, match=r"wrap a metric .* scores='iou'"):
        wrapped(pred, truth)
    wrapped.update(pred, truth)
    for wrapper in (wrapped, MetricCollection([wrapped])):
        with pytest.raises(TypeError, match="metric with several scores"):
            wrapper.compute()
    ranged = MinMaxMetric(several.clone())
    ranged.update(pred, truth)
    with pytest.raises(TypeError, match="MinMaxMetric cannot wrap a metric with several scores"):
        ranged.compute()
    with pytest.raises(TypeError, match="MetricTracker cannot pick"):
        MetricTracker(several)
    tracker = MetricTracker(several, maximize=True)
    tracker.increment()
    tracker.update(pred, truth)
    assert tracker.compute()["iou/1"] == tracker.compute_all()["iou/1"][0] == 1
    with pytest.raises(TypeError, match=r"MetricTracker\(MetricCollection\(\[metric\]\), maximize"):
        tracker.best_metric()


def test_a_tracker_of_one_number_a_class_does_as_with_torchmetrics_own(hook, need):
    torch = need("torch")
    from torchmetrics import ClasswiseWrapper, MetricTracker
    from torchmetrics.classification import MulticlassJaccardIndex

    found = []
    for metric in (
        MulticlassJaccardIndex(2, average=None),
        hook.SegmentationScores(2, scores="iou"),
    ):
        named = ClasswiseWrapper(metric.clone(), labels=["a", "b"], prefix="iou/")
        trackers = MetricTracker(metric), MetricTracker(named)
        for pred in ([0, 0, 1], [1, 1, 1]):
            for tracker in trackers:
                tracker.increment()
                tracker.update(torch.tensor(pred), torch.tensor([0, 1, 1]))
        with pytest.warns(UserWarning, match="best"):
            best = trackers[0].best_metric(return_step=True)
        best_named, steps = trackers[1].best_metric(return_step=True)
        best_named = {name: pytest.approx(value) for name, value in best_named.items()}
        found.append((trackers[0].compute_all().tolist(), best, best_named, steps))
    assert found[1][0] == [pytest.approx(row) for row in found[0][0]]
    assert found[1][1:] == found[0][1:]


def test_a_tracker_finds_the_best_step(hook, need):
    torch = need("torch")
    from torchmetrics import MetricCollection, MetricTracker

    truth = torch.tensor([0, 1])
    one = MetricTracker(hook.SegmentationScores(2, scores="pixel_accuracy"))
    several = MetricTracker(
        MetricCollection([hook.SegmentationScores(2, scores=["pixel_accuracy", "recall"])]),
        maximize=True,
    )
    collected = MetricTracker(MetricCollection({"accuracy": one._base_metric.clone()}))
    for pred in ([1, 0], [0, 1], [0, 0]):
        for tracker in (one, several, collected):
            tracker.increment()
            tracker.update(torch.tensor(pred), truth)
    assert one.best_metric(return_step=True) == (1.0, 1)
    assert collected.best_metric(return_step=True) == ({"accuracy": 1.0}, {"accuracy": 1})
    best, step = several.best_metric(return_step=True)
    assert best == {"pixel_accuracy": 1.0, "recall/0": 1.0, "recall/1": 1.0}
    assert step["pixel_accuracy"] == 1


def test_a_tracker_finds_the_best_step_of_each_class(hook, need):
    torch = need("torch")
    from torchmetrics import ClasswiseWrapper, MetricCollection, MetricTracker

    wrapped = {
        score: ClasswiseWrapper(
            hook.SegmentationScores(2, scores=score), labels=["a", "b"], prefix=f"{score}/"
        )
        for score in ("iou", "recall")
    }
    tracker = MetricTracker(MetricCollection(wrapped))
    truth = torch.tensor([0, 1, 1])
    for pred in ([0, 0, 1], [1, 1, 1]):
        tracker.increment()
        tracker.update(torch.tensor(pred), truth)
    best, step = tracker.best_metric(return_step=True)
    assert best == {"iou/a": 0.5, "iou/b": pytest.approx(2 / 3), "recall/a": 1.0, "recall/b": 1.0}
    assert step == {"iou/a": 0, "iou/b": 1, "recall/a": 0, "recall/b": 1}


def test_an_undefined_epoch_and_the_best_one(hook, need):
    torch = need("torch")
    from torchmetrics import MetricTracker
    from torchmetrics.wrappers import MinMaxMetric

    metric = hook.SegmentationScores(2, ignore=255)
    tracker, ranged = MetricTracker(metric), MinMaxMetric(metric.clone())
    for truth in ([0, 0], [255, 255], [0, 1]):  # mean IoU 1/4, NaN, 1
        tracker.increment()
        ranged._base_metric.reset()
        for wrapper in (tracker, ranged):
            wrapper.update(torch.tensor([0, 1]), torch.tensor(truth))
        found = ranged.compute()
    values = tracker.compute_all()
    assert values.tolist() == [0.25, pytest.approx(float("nan"), nan_ok=True), 1.0]
    assert np.isnan(tracker.best_metric())  # torch.max
    assert int(np.nanargmax(values)) == 2  # as documented
    assert (float(found["min"]), float(found["max"])) == (0.25, 1.0)


@pytest.mark.parametrize("scores", ["mean_iou", "iou", ["mean_iou", "iou"]])
def test_plot_draws(hook, need, scores):
    torch = need("torch")
    need("matplotlib").use("Agg")
    metric = hook.SegmentationScores(["road", "car"], scores=scores)
    values = [metric(torch.tensor([0, i]), torch.tensor([0, 1])) for i in (0, 1)]
    for drawn in (None, values[0], values):
        figure, axes = metric.plot(drawn)
        assert axes.has_data()
        assert axes.get_ylim()[1] >= 1
        figure.clear()


def test_a_collection_plots_several_scores_together(hook, need):
    need("matplotlib").use("Agg")
    torch, torchmetrics = need("torch"), need("torchmetrics")
    metric = hook.SegmentationScores(2, scores=["mean_iou", "pixel_accuracy"])
    metrics = torchmetrics.MetricCollection({"a": metric, "b": hook.SegmentationScores(2)})
    metrics.update(torch.tensor([[0, 1]]), torch.tensor([[0, 0]]))
    metrics.plot(together=True)
    with pytest.raises(TypeError, match="together=True"):
        metrics.plot()


@pytest.mark.parametrize("scores", ["mean_iou", ["mean_iou", "iou"], "panoptic"])
def test_a_scripted_module_may_hold_it(hook, need, scores):
    torch = need("torch")
    if scores == "panoptic":
        from segiou.measures.objects.torchmetrics import PanopticScores

        metric = PanopticScores(2)
    else:
        metric = hook.SegmentationScores(2, scores=scores)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.metric = torch.nn.Conv2d(1, 2, 1), metric

        def forward(self, image):
            return self.net(image)

    scripted = torch.jit.script(Module())
    assert scripted(torch.zeros(1, 1, 3, 3)).shape == (1, 2, 3, 3)


def test_compiled_code_calls_it(hook, need):
    torch = need("torch")
    net = torch.nn.Conv2d(3, 4, 1)
    images, truth = torch.randn(2, 3, 8, 8), torch.randint(0, 4, (2, 8, 8))
    metric, direct = hook.SegmentationScores(4), ConfusionMatrix(4)
    forward = torch.compile(hook.SegmentationScores(4), backend="eager")

    @torch.compile(backend="eager")
    def step():
        scores = net(images)
        metric.update(scores, truth)
        direct.update(truth, scores, argmax=1)
        return scores.sum() + metric.compute()

    for _ in range(2):
        assert step().isfinite()
    expected = ConfusionMatrix(4).update(truth, net(images), argmax=1)
    for counted in (metric.counts, direct):
        np.testing.assert_array_equal(counted.matrix, 2 * expected.matrix)
    assert float(forward(net(images), truth)) == expected.mean_iou()


def test_options_of_numpy_are_those_of_python(hook, need):
    torch = need("torch")
    options = {"scores": "mean_iou", "threshold": np.float32(0.25), "axis": np.int8(1)}
    metric = hook.SegmentationScores(["rest", "road"], **options, upsample=np.True_)
    metric.update(torch.tensor([[[0.5, 0.125]]]), torch.tensor([[[1, 0]]]))
    assert float(metric.compute()) == 1


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("axis", "1", "axis must be an integer"),
        ("threshold", "0.5", "threshold must be a number"),
        ("upsample", "no", "upsample must be True or False"),
        ("scores", 1, "scores must be the name of a score"),
        ("scores", [1], "the name of a score must be text"),
    ],
)
def test_options_of_another_kind_are_named(hook, option, value, message):
    with pytest.raises(TypeError, match=message):
        hook.SegmentationScores(["rest", "road"], **{option: value})


def test_thresholds_of_channels_may_be_numbers_of_numpy(hook):
    channels = ChannelCounts(["a", "b"])
    for threshold in (np.float32(0.5), [np.float32(0.5), 0.25]):
        assert hook.SegmentationScores(channels, threshold=threshold).counts.pairs == 0
    with pytest.raises(TypeError, match="threshold must be a number"):
        hook.SegmentationScores(channels, threshold=["0.5", "0.5"])
