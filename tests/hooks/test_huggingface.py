from __future__ import annotations

import numpy as np
import pytest

from segiou import ConfusionMatrix
from segiou.hooks.evaluate import mean_iou


@pytest.fixture
def trainer(need, network, streets, tmp_path):
    """``trainer(...)``: a real Trainer around the network at a quarter of the labels' size."""
    torch = need("torch")
    transformers = need("transformers")
    from segiou.hooks import huggingface

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.fail_at = network(stride=4), -1
            self.calls = 0

        def forward(self, pixel_values, labels=None):
            self.calls += 1
            if self.calls == self.fail_at:
                raise InterruptedError
            logits = self.net(pixel_values)
            return {"loss": logits.sum() * 0, "logits": logits}

    class Scenes(torch.utils.data.Dataset):
        def __len__(self):
            return len(streets.ids)

        def __getitem__(self, i):
            truth = torch.from_numpy(streets.truth[i]).long()
            return {"pixel_values": torch.from_numpy(streets.images[i]), "labels": truth}

    def build(preprocess=True, **options):
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            per_device_eval_batch_size=4,
            use_cpu=True,
            report_to=[],
            remove_unused_columns=False,
            label_names=["labels"],
            disable_tqdm=True,
            **options,
        )
        metrics = huggingface.ComputeMetrics(streets.names, ignore=255)
        how = huggingface.preprocess_logits_for_metrics if preprocess else None
        made = transformers.Trainer(
            model=Model(),
            args=arguments,
            eval_dataset=Scenes(),
            compute_metrics=metrics,
            preprocess_logits_for_metrics=how,
        )
        return made, metrics

    return build


@pytest.fixture
def upsampled(need, network, streets):
    torch = need("torch")
    with torch.no_grad():
        logits = network(stride=4)(torch.from_numpy(streets.images))
        full = torch.nn.functional.interpolate(
            logits, size=streets.truth.shape[1:], mode="bilinear", align_corners=False
        )
    return ConfusionMatrix(streets.names, ignore=255).update(streets.truth, full, argmax=1)


@pytest.mark.parametrize("preprocess", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_eval_metrics": True}, {"eval_do_concat_batches": False}],
    ids=["whole", "by batch", "list of batches"],
)
def test_two_evaluations_are_equal_and_right(trainer, upsampled, streets, preprocess, options):
    made, metrics = trainer(preprocess, **options)
    for _ in range(2):
        scores = made.evaluate()
        np.testing.assert_array_equal(metrics.counts.matrix, upsampled.matrix)
        assert scores["eval_mean_iou"] == upsampled.mean_iou()
        assert scores["eval_iou_road"] == upsampled.iou()[2]
        assert type(scores["eval_pixel_accuracy"]) is float


def test_an_interrupted_evaluation_leaves_nothing_behind(trainer, upsampled):
    made, metrics = trainer(batch_eval_metrics=True)
    made.model.fail_at = 2
    with pytest.raises(InterruptedError):
        made.evaluate()
    assert 0 < metrics.counts.pixels < upsampled.pixels
    made.evaluate()
    np.testing.assert_array_equal(metrics.counts.matrix, upsampled.matrix)


def test_an_evaluation_is_new_though_its_loader_is_not(trainer, upsampled):
    """Persistent workers keep the loader; the user presses stop in the notebook."""
    made, metrics = trainer(
        batch_eval_metrics=True, dataloader_num_workers=1, dataloader_persistent_workers=True
    )
    made.model.fail_at = 2
    with pytest.raises(InterruptedError):
        made.evaluate()
    assert 0 < metrics.counts.pixels < upsampled.pixels
    for _ in range(2):
        made.evaluate()
        np.testing.assert_array_equal(metrics.counts.matrix, upsampled.matrix)


@pytest.fixture
def evaluate(need, tmp_path):
    """``evaluate(metrics, images, labels)``: scores of a model whose logits are its images."""
    torch, transformers = need("torch"), need("transformers")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.zero = torch.nn.Parameter(torch.zeros(1))

        def forward(self, pixel_values, labels=None):
            return {"loss": self.zero.sum(), "logits": pixel_values + self.zero}

    def run(metrics, images, labels, preprocess=None, **options):
        pairs = zip(images, labels, strict=True)
        trainer = transformers.Trainer(
            model=Model(),
            args=transformers.TrainingArguments(
                output_dir=str(tmp_path),
                per_device_eval_batch_size=1,
                use_cpu=True,
                report_to=[],
                remove_unused_columns=False,
                label_names=["labels"],
                disable_tqdm=True,
                **options,
            ),
            eval_dataset=[{"pixel_values": image, "labels": label} for image, label in pairs],
            compute_metrics=metrics,
            preprocess_logits_for_metrics=preprocess,
        )
        return trainer.evaluate()

    return run


@pytest.mark.parametrize("options", [{}, {"batch_eval_metrics": True}])
def test_one_channel_needs_a_threshold(need, evaluate, options):
    torch = need("torch")
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics, preprocess_logits_for_metrics

    generator = torch.Generator().manual_seed(0)
    logits = torch.randn((3, 1, 4, 6), generator=generator)
    labels = torch.randint(0, 2, (3, 16, 24), generator=generator)
    labels[0, :3] = 255
    large = torch.nn.functional.interpolate(logits, size=(16, 24), mode="bilinear")[:, 0] > 0
    right = ConfusionMatrix(2, ignore=255).update(labels, large.long())
    metrics = ComputeMetrics(2, ignore=255, threshold=0.0)
    for preprocess in (None, metrics.preprocess_logits_for_metrics):
        scores = evaluate(metrics, logits, labels, preprocess, **options)
        assert scores["eval_mean_iou"] == right.mean_iou()
        assert (metrics.counts.matrix == right.matrix).all()
    with pytest.raises(ValueError, match=r"single channel, .*ComputeMetrics\(.*threshold=0\.0"):
        evaluate(metrics, logits, labels, preprocess_logits_for_metrics, **options)
    without = ComputeMetrics(2, ignore=255)
    for preprocess in (None, without.preprocess_logits_for_metrics):
        with pytest.raises(ValueError, match=r"single channel.*threshold="):
            evaluate(without, logits, labels, preprocess, **options)


def counted(metrics, logits, labels, preprocess):
    """The counts of an evaluation of one batch, with logits reduced as the Trainer does."""
    pred = preprocess(logits, labels)
    metrics(type("P", (), {"predictions": pred.numpy(), "label_ids": labels.numpy()}))
    return metrics.counts.matrix.tolist()


@pytest.mark.parametrize("is_method", [True, False])
def test_nan_logits_have_no_class(need, is_method):
    torch = need("torch")
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics, preprocess_logits_for_metrics

    logits = torch.tensor([[0.0, 9, 9, 9], [9, 0, 0, float("nan")]])[None, :, None]
    labels = torch.tensor([[[1, 0, 255, 1]]])
    metrics = ComputeMetrics(2, ignore=255, unassigned="count")
    usual = preprocess_logits_for_metrics
    preprocess = metrics.preprocess_logits_for_metrics if is_method else usual
    with pytest.raises(ValueError, match="found NaN scores on 1 pixel; fix the model"):
        counted(metrics, logits, labels, preprocess)
    labels[0, 0, 3] = 255  # the pixel is ignored
    assert counted(metrics, logits, labels, preprocess) == [[1, 0], [0, 1]]
    of_bytes = torch.tensor([[[1, 0, 0, 0]]], dtype=torch.uint8)
    assert counted(metrics, of_bytes, labels, lambda pred, _: pred) == [[1, 0], [0, 1]]


def test_channels_that_do_not_fit_the_classes(need):
    torch = need("torch")
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics

    labels = torch.zeros((1, 4, 6), dtype=torch.int64)
    for classes, channels in ((3, 2), (2, 3)):
        metrics = ComputeMetrics(classes)
        text = rf"\(1, {channels}, 4, 6\) have {channels} channels along axis 1, expected {classes}"
        with pytest.raises(ValueError, match=text):
            counted(
                metrics,
                torch.zeros((1, channels, 4, 6)),
                labels,
                metrics.preprocess_logits_for_metrics,
            )
    binary = ComputeMetrics(2, threshold=0.0)
    for channels in (2, 3):  # instead of one logit per pixel
        text = rf"\(1, {channels}, 2, 3\) have {channels} channels, expected one"
        with pytest.raises(ValueError, match=text):
            binary.preprocess_logits_for_metrics(torch.zeros((1, channels, 2, 3)), labels)


def test_labels_with_a_channel_and_small_binary_logits(need):
    torch = need("torch")
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics

    metrics = ComputeMetrics(2, threshold=0.0)
    labels = torch.tensor([[[[0, 0, 1, 1]] * 3]])
    logits = torch.tensor([[[[-1.0, 1.0]]]])
    found = counted(metrics, logits, labels, metrics.preprocess_logits_for_metrics)
    assert found == [[6, 0], [0, 6]]


def test_logits_of_classes_with_values_of_their_own(need):
    torch = need("torch")
    need("transformers")
    from segiou import LabelSet
    from segiou.hooks.huggingface import ComputeMetrics
    from segiou.labels import LabelClass

    labels = LabelSet("odd", (LabelClass("road", (2, 7)), LabelClass("car", (1,))), ignore=(0,))
    metrics = ComputeMetrics(labels)
    logits = torch.eye(2)[torch.tensor([0, 1, 1, 0])].T[None, :, None]
    truth = torch.tensor([[[7, 1, 2, 0]]])
    found = counted(metrics, logits, truth, metrics.preprocess_logits_for_metrics)
    assert found == [[1, 1], [0, 1]]


@pytest.mark.parametrize("size", [32, 48])  # another height than the largest label, or its own
@pytest.mark.parametrize("kind", ["labels", "threshold", "histogram"])
def test_labels_of_several_heights_with_logits_of_one_size(need, evaluate, size, kind):
    torch = need("torch")
    need("transformers")
    from segiou import ScoreHistogram
    from segiou.hooks.huggingface import ComputeMetrics

    channels = 1 if kind == "threshold" else 2
    labels = [torch.zeros((height, 32), dtype=torch.int64) for height in (48, 32, 16)]
    images = torch.full((3, channels, size, 32), -9.0)
    for image, label in zip(images, labels, strict=True):
        label[len(label) // 2 :] = 1
        image[-1, size // 2 :] = 9  # right at every pixel
    images[:, 0] -= images[:, -1] * (kind != "threshold")
    build = {
        "labels": lambda: ComputeMetrics(2),
        "threshold": lambda: ComputeMetrics(2, threshold=0.0),
        "histogram": lambda: ComputeMetrics(ScoreHistogram(2), activation="softmax"),
    }[kind]
    key = "eval_average_precision" if kind == "histogram" else "eval_mean_iou"
    scores = evaluate(build(), images, labels, batch_eval_metrics=True)
    assert scores[key] == pytest.approx(1, abs=1e-3)
    text = r"2 of 3 label images end in rows of -100, .* pass batch_eval_metrics=True"
    with pytest.raises(ValueError, match=text):
        evaluate(build(), images, labels)
    if kind != "histogram":
        metrics = build()
        preprocess = metrics.preprocess_logits_for_metrics
        assert evaluate(metrics, images, labels, preprocess)[key] == 1
        assert metrics.counts.pixels - metrics.counts.ignored == (48 + 32 + 16) * 32


def test_predict_after_evaluate(trainer, upsampled):
    made, _ = trainer(batch_eval_metrics=True)
    made.evaluate()
    output = made.predict(made.eval_dataset)
    assert output.metrics["test_mean_iou"] == upsampled.mean_iou()


def test_what_the_trainer_pads_is_never_counted(need):
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics

    metrics = ComputeMetrics(2)
    padded = np.array([[0, 1, -100, -100]])
    pair = type("P", (), {"predictions": padded.astype(np.int32), "label_ids": padded})
    assert metrics(pair)["pixel_accuracy"] == 1.0
    assert metrics.counts.ignored == 2


def test_evaluations_of_no_or_flat_or_several_labels(need):
    need("transformers")
    from transformers import EvalPrediction

    from segiou.hooks.huggingface import ComputeMetrics

    metrics, logits, truth = ComputeMetrics(2), np.eye(2)[[[0, 1]]], np.array([[0, 1]])
    assert np.isnan(metrics(EvalPrediction(logits[:0], truth[:0]))["mean_iou"])
    assert metrics(EvalPrediction(logits[0], truth[0]))["mean_iou"] == 1
    with pytest.raises(TypeError, match="label_ids has 2 arrays; pass label_names"):
        metrics(EvalPrediction(logits, (truth, truth)))


def test_arrays_of_a_batch_are_counted_all_or_none(need):
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics

    metrics = ComputeMetrics(2)
    pred, truths = [np.array([[[0, 1]]])] * 2, [np.array([[[0, 1]]]), np.array([[[0, 7]]])]
    with pytest.raises(ValueError, match="7"):
        metrics(type("P", (), {"predictions": pred, "label_ids": truths}), compute_result=False)
    assert metrics.counts.pairs == 0
    metrics(type("P", (), {"predictions": pred, "label_ids": truths[:1] * 2}))
    assert metrics.counts.matrix.tolist() == [[2, 0], [0, 2]]


# The example in the documentation of Hugging Face's mean_iou, with the result printed there.
PREDS = [
    [[1, 2], [3, 4], [5, 255]],
    [[2, 7], [9, 2], [3, 6]],
    [[2, 2, 3], [8, 2, 4], [3, 255, 2]],
]
TRUTHS = [
    [[0, 3], [5, 4], [6, 255]],
    [[1, 7], [9, 2], [3, 6]],
    [[1, 2, 2], [8, 2, 1], [3, 255, 1]],
]


def test_mean_iou_gives_what_evaluate_documents():
    scores = mean_iou(
        predictions=PREDS, references=TRUTHS, num_labels=10, ignore_index=255, reduce_labels=False
    )
    assert scores["mean_iou"] == pytest.approx(0.47750000000000004, abs=1e-15)
    assert scores["mean_accuracy"] == pytest.approx(0.5916666666666666, abs=1e-15)
    assert scores["overall_accuracy"] == pytest.approx(0.5263157894736842, abs=1e-15)
    assert scores["per_category_iou"] == [0, 0, 0.375, 0.4, 0.5, 0, 0.5, 1, 1, 1]
    expected = [0, 0, 0.75, 2 / 3, 1, 0, 0.5, 1, 1, 1]
    np.testing.assert_allclose(scores["per_category_accuracy"], expected, rtol=1e-15)


def histograms(preds, truths, num_labels, ignore_index, label_map, reduce_labels):
    """IoU per class by its definition, one mask and one class at a time."""
    inter, union = np.zeros(num_labels), np.zeros(num_labels)
    for pred, truth in zip(preds, truths, strict=True):
        truth = np.vectorize(lambda v: label_map.get(v, v))(truth)
        if reduce_labels:
            truth = np.where((truth == 0) | (truth == 255), 255, truth - 1)
        valid = truth != ignore_index
        for c in range(num_labels):
            inter[c] += ((pred == c) & (truth == c) & valid).sum()
            union[c] += (((pred == c) | (truth == c)) & valid).sum()
    with np.errstate(invalid="ignore"):
        return inter / union


@pytest.mark.parametrize("label_map", [None, {1: 2, 2: 1}, {3: 255, 0: 3}])
@pytest.mark.parametrize("reduce_labels", [False, True])
def test_mean_iou_maps_all_labels_at_once(label_map, reduce_labels):
    rng = np.random.default_rng(0)
    truths = [rng.choice([0, 1, 2, 3, 255], (5, 6)) for _ in range(3)]
    preds = [rng.integers(0, 4, (5, 6)) for _ in range(3)]
    options = {"num_labels": 4, "ignore_index": 255, "reduce_labels": reduce_labels}
    scores = mean_iou(preds, truths, label_map=label_map, **options)
    expected = histograms(preds, truths, 4, 255, label_map or {}, reduce_labels)
    np.testing.assert_allclose(scores["per_category_iou"], expected, rtol=1e-15)
    filled = mean_iou(preds, truths, label_map=label_map, nan_to_num=0, **options)
    np.testing.assert_allclose(filled["per_category_iou"], np.nan_to_num(expected), rtol=1e-15)


def test_mean_iou_of_classes_that_no_reference_value_maps_to():
    # 0 becomes 255, and so does 1, by way of 0.
    options = {"num_labels": 1, "label_map": {1: 0}, "reduce_labels": True}
    scores = mean_iou([[0, 0]], [[0, 1]], ignore_index=255, **options)
    np.testing.assert_equal([scores["mean_iou"], *scores["per_category_iou"]], [np.nan, np.nan])
    with pytest.raises(ValueError, match="truth has values that are neither"):
        mean_iou([[0, 0]], [[0, 1]], num_labels=1, label_map={0: 9, 1: 9})


def test_mean_iou_refuses_what_evaluate_drops_in_silence():
    with pytest.raises(ValueError, match=r"truth has values .* 7"):
        mean_iou([[0, 0]], [[0, 7]], num_labels=2)
    with pytest.raises(ValueError, match="predictions has more masks"):
        mean_iou([[0], [0]], [[0]], num_labels=2)


@pytest.mark.parametrize(
    ("option", "value", "error", "message"),
    [
        ("num_labels", 0, ValueError, "num_labels must be at least 1"),
        ("num_labels", 2**63, ValueError, "num_labels must be at most 65534"),
        ("num_labels", "3", TypeError, "num_labels must be an integer"),
        ("ignore_index", 1.5, TypeError, "ignore_index must be an integer"),
        ("nan_to_num", "0", TypeError, "nan_to_num must be a number"),
        ("label_map", [1], TypeError, "label_map must be a mapping"),
        ("label_map", {0: "1"}, TypeError, "a new value of label_map must be an integer"),
        ("reduce_labels", "no", TypeError, "reduce_labels must be True or False"),
        ("predictions", 1, TypeError, "predictions must be a sequence of masks"),
        ("predictions", [], ValueError, "references has more masks"),
        ("references", [], ValueError, "predictions has more masks"),
    ],
)
def test_wrong_arguments_of_evaluate_are_named(option, value, error, message):
    masks = {"predictions": [[[0, 1]]], "references": [[[0, 1]]], "num_labels": 2}
    with pytest.raises(error, match=message):
        mean_iou(**masks | {option: value})
