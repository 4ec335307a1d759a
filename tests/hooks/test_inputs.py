"""Batches as people pass them, and the words of errors."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest

from segiou import ChannelCounts, ConfusionMatrix, ScoreHistogram, score
from segiou.scoring import Evaluator


@pytest.fixture
def torch(need):
    need("torchmetrics")
    return need("torch")


def metric(*arguments, **options):
    from segiou.hooks.torchmetrics import SegmentationScores

    return SegmentationScores(*arguments, **options)


def test_unknown_options_name_the_nearest(torch):
    for options, name in (
        ({"ignor": 255}, "ignore"),
        ({"thresold": 0.0}, "threshold"),
        ({"metric_option": {}}, "metric_options"),
    ):
        with pytest.raises(
            TypeError, match=f"SegmentationScores has no option .*; did you mean {name}"
        ):
            metric(3, **options)
    with pytest.raises(TypeError, match="Evaluator has no option 'ignor'; did you mean ignore"):
        Evaluator(3, ignor=255)


@pytest.mark.parametrize("axis", [1, -1])
def test_an_empty_batch_is_upsampled(torch, axis):
    found = metric(3, upsample=True, axis=axis)
    scores = torch.zeros(0, 3, 2, 2).movedim(1, axis)
    found.update(scores, torch.zeros(0, 4, 4, dtype=torch.long))
    assert (found.counts.pixels, found.counts.pairs) == (0, 1)


def test_the_first_axis_of_a_batch_is_not_that_of_classes():
    with pytest.raises(ValueError, match="argmax=0 is the axis of the images; pass the class axis"):
        Evaluator(2).update(
            np.zeros((2, 2, 1), int), np.zeros((2, 2, 2, 1)), ids=["a", "b"], argmax=0
        )


@pytest.mark.parametrize("axis", [1, -1])
def test_argmax_is_the_axis_of_the_batch_everywhere(axis):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, (4, 3, 3))  # every axis of scores may be that of classes
    scores = np.moveaxis(rng.random((4, 3, 3, 3)), 1, axis)
    wanted = ConfusionMatrix(3).update(truth, scores.argmax(axis))
    names = [*"abcd"]

    def total(t, p):
        return score(t, p, labels=3, argmax=axis).total().matrix.tolist()

    counted = {
        "matrix": ConfusionMatrix(3).update(truth, scores, argmax=axis).matrix.tolist(),
        "matrix of lists": ConfusionMatrix(3)
        .update(
            [*truth, truth[0, :2]],
            [*scores, np.moveaxis(scores, axis, 1)[0, :, :2] if axis == 1 else scores[0, :2]],
            argmax=axis,
        )
        .matrix.tolist(),
        "evaluator": Evaluator(3).update(truth, scores, argmax=axis).total().matrix.tolist(),
        "evaluator of lists": Evaluator(3)
        .update([*truth], [*scores], argmax=axis)
        .total()
        .matrix.tolist(),
        "score": total(truth, scores),
        "lists": total([*truth], [*scores]),
        "iterators": total(iter(truth), iter(scores)),
        "mappings": total(
            dict(zip(names, truth, strict=True)), dict(zip(names, scores, strict=True))
        ),
    }
    more = ConfusionMatrix(3).update(truth[0, :2], scores.argmax(axis)[0, :2])
    assert counted.pop("matrix of lists") == (wanted + more).matrix.tolist()
    for name, found in counted.items():
        assert found == wanted.matrix.tolist(), name
    with pytest.raises(ValueError, match="argmax=0 is the axis of the images"):
        score([*truth], [*scores], labels=3, argmax=0)


def test_an_option_of_classes_does_not_apply_to_histograms(torch):
    with pytest.raises(ValueError, match="exclude does not apply to a ScoreHistogram"):
        metric(ScoreHistogram(2), exclude=0)


def test_logits_of_bce_and_float_truth(torch):
    # As binary_cross_entropy_with_logits takes them: both (N, 1, H, W) floats.
    logits = torch.tensor([[[[-1.0, 2.0, 0.0, 3.0]]]])
    truth = torch.tensor([[[[0.0, 1.0, 1.0, 0.0]]]])
    found = metric(2, threshold=0.0)
    found.update(logits, truth)
    assert found.counts.matrix.tolist() == [[1, 1], [1, 1]]
    without_axis = metric(2, threshold=0.0)
    without_axis.update(logits, truth[:, 0])
    assert without_axis.counts.matrix.tolist() == [[1, 1], [1, 1]]
    for wrong in (truth + 0.5, truth * float("nan")):
        with pytest.raises(ValueError, match=r"truth has dtype float32 and 4 values that are not"):
            metric(2, threshold=0.0).update(logits, wrong)
    with pytest.raises(
        ValueError, match="1 value that is not a whole number in int64; pass labels"
    ):
        metric(2, threshold=0.0).update(logits[..., :1], truth[..., :1] + 0.5)
    with pytest.raises(TypeError, match=r"threshold=T to the hook .*for labels pred\.long\(\)"):
        metric(2).update(logits, truth)


@pytest.mark.parametrize("name", ["mean iou", "mean-iou", "Mean IoU", "mIoU"])
def test_every_spelling_of_a_mean_is_a_scalar(torch, name):
    found = metric(["road", "car"], scores=name)
    found.update(torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]]))
    assert float(found.compute()) == pytest.approx((1 / 2 + 2 / 3) / 2)
    without = metric(["road", "car"], scores=f"{name} foreground")
    without.update(torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]]))
    assert float(without.compute()) == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["torchmetrics", "ignite", "ignite_by_image", "lightning"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_images_of_different_sizes_are_all_counted(torch, need, name, kind):
    """As loaders whose `collate_fn` is ``lambda rows: tuple(zip(*rows))`` give them."""
    need(name.split("_")[0])
    generator = torch.Generator().manual_seed(0)
    sizes = [(6, 7), (4, 9), (6, 7)]
    truth = kind(torch.randint(0, 3, size, generator=generator) for size in sizes)
    scores = kind(torch.randn((3, *size), generator=generator) for size in sizes)
    wanted = ConfusionMatrix(3).update([*truth], [*scores], argmax=1)
    assert wanted.pixels == 42 + 36 + 42
    forms = {
        "scores": (truth, scores),
        "labels": (truth, kind(one.argmax(0) for one in scores)),
        "channels": (kind(one[None].float() for one in truth), scores),
    }
    for form, (one, other) in forms.items():
        assert of_each(3, one, other)[name]().matrix.tolist() == wanted.matrix.tolist(), form
    with pytest.raises(ValueError, match="truth has 3 images, but pred has 2"):
        of_each(3, truth, scores[:2])[name]()


def test_images_of_different_sizes_are_counted_all_or_none(torch):
    found = metric(2)
    found.update(torch.tensor([[0, 1]]), torch.tensor([[0, 1]]))
    right, wrong = torch.zeros((3, 3)).long(), torch.full((4, 3), 7)
    for scores in ((right, wrong * 0), (torch.zeros(2, 3, 3), torch.zeros(2, 4, 3))):
        with pytest.raises(ValueError, match=r"neither a class nor ignored: 7 \(12 pixels\)"):
            found.update(scores, (right, wrong))
    assert found.counts.matrix.tolist() == [[1, 0], [0, 1]]


def test_channels_and_histograms_of_images_of_different_sizes(torch):
    truth = [torch.ones((1, 2, 3)).long(), torch.zeros((1, 4, 3)).long()]
    scores = [torch.full(one.shape, 0.7) for one in truth]
    found = metric(ChannelCounts(1), threshold=0.5)
    found.update(scores, truth)
    assert [x.tolist() for x in (found.counts.counts.tp, found.counts.counts.fp)] == [[6], [12]]
    histogram = metric(ScoreHistogram(2))
    both = [torch.cat([1 - one, one]) for one in scores]
    histogram.update(both, [one[0] for one in truth])
    wanted = ScoreHistogram(2)
    for one, other in zip(truth, both, strict=True):
        wanted.update(one[0], other, 0)
    assert histogram.counts == wanted


def test_ids_of_images_of_different_sizes(torch, need):
    need("ignite")
    from segiou.hooks.ignite import SegmentationScores

    images = [torch.zeros((3, 3)).long(), torch.ones((4, 3)).long()]
    found = SegmentationScores(2, ids=True)
    found.update((images, images, ["a", "b"]))
    found.update((images[::-1], images[::-1], ["b", "a"]))  # repeated
    assert found.counts.matrix.tolist() == [[9, 0], [0, 12]]
    with pytest.raises(ValueError, match="got 1 ids for 2 images; pass one per image"):
        found.update((images, images, ["c"]))
    with pytest.raises(ValueError, match=r"ids=True needs \(y_pred, y, ids\)"):
        found.update((images, images))


@pytest.mark.parametrize("name", ["jax", "flax"])
def test_compiled_code_names_images_of_different_sizes(need, name):
    need(name)
    from segiou.hooks import flax, jax

    truth = np.zeros((2, 3), int), np.zeros((4, 3), int)
    counter = jax.PixelCounter(2)
    update = {
        "flax": lambda: flax.SegmentationScores(2).update(logits=truth, labels=truth),
        "jax": lambda: counter.update(counter.init(), truth, truth),
    }[name]
    with pytest.raises(ValueError, match=r"different shapes: \(2, 3\), \(4, 3\); count each image"):
        update()


def test_one_hot_truth_counts_as_labels_as_with_keras(torch):
    truth = torch.tensor([[[0, 1, 2, 2]]])
    one_hot = torch.nn.functional.one_hot(truth, 3).movedim(-1, 1)
    logits = torch.nn.functional.one_hot(torch.tensor([[[0, 1, 2, 0]]]), 3).movedim(-1, 1) * 2.0
    for target in (one_hot, one_hot.float(), truth):
        found = metric(3)
        found.update(logits, target)
        assert found.counts.matrix.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    with pytest.raises(ValueError, match="not one-hot along axis 1; for channels that may overlap"):
        metric(3).update(logits, one_hot + one_hot.roll(1, 1))


def of_torchmetrics(classes, truth, pred):
    found = metric(classes)
    found.update(pred, truth)
    return found.counts


def of_ignite(classes, truth, pred, **options):
    from segiou.hooks.ignite import SegmentationScores

    found = SegmentationScores(classes, **options)
    found.update((pred, truth, range(len(truth))))
    return found.counts


def of_trainer(classes, truth, pred):
    from types import SimpleNamespace

    from segiou.hooks.huggingface import ComputeMetrics

    found = ComputeMetrics(classes)
    found(SimpleNamespace(predictions=pred.numpy(), label_ids=truth.numpy()))
    return found.counts


def of_flax(classes, truth, pred):
    from segiou.hooks.flax import SegmentationScores

    found = SegmentationScores(classes)
    found.update(logits=pred.numpy(), labels=truth.numpy())
    return found.counts


HOOKS = {
    "torchmetrics": of_torchmetrics,
    "ignite": of_ignite,
    "ignite by image": lambda *batch: of_ignite(*batch, ids=True),
    "transformers": of_trainer,
    "flax": of_flax,
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_batch_of_as_many_images_as_classes_is_not_one_hot(torch, need, name):
    need(name.split()[0])
    labels = torch.zeros((4, 2, 9), dtype=torch.int64)
    labels[0, 0] = 1
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 2, (4, 2, 9), generator=generator)
    assert HOOKS[name](4, labels, labels).matrix.diagonal().tolist() == [63, 9, 0, 0]
    ones = int(noise.sum())
    assert HOOKS[name](4, noise, noise).matrix.diagonal().tolist() == [72 - ones, ones, 0, 0]
    if name != "flax":  # JAX's values are not read before the end
        one_hot = torch.nn.functional.one_hot(noise[:3], 4).movedim(-1, 1)
        with pytest.raises(ValueError, match="is as long as the 4 classes"):
            HOOKS[name](4, one_hot, one_hot)


def of_jax(classes, truth, pred, **options):
    import jax

    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(classes)
    step = jax.jit(lambda state, *batch: counter.update(state, *batch, **options))
    state = step(counter.init(), truth.numpy(), pred.numpy())
    return counter.counts(state)


def of_each(classes, truth, pred, **options):
    """Each hook by name, with options of the class."""

    def torchmetrics():
        found = metric(classes, **options)
        found.update(pred, truth)
        return found.counts

    def flax():
        from segiou.hooks.flax import SegmentationScores

        found = SegmentationScores(classes, axis=1, **options)
        found.update(logits=pred.numpy(), labels=truth.numpy())
        return found.counts

    def transformers():
        from types import SimpleNamespace

        from segiou.hooks.huggingface import ComputeMetrics

        found = ComputeMetrics(classes, **options)
        found(SimpleNamespace(predictions=pred.numpy(), label_ids=truth.numpy()))
        return found.counts

    def mmengine():
        from segiou.hooks.mmengine import SegmentationScores

        found = SegmentationScores(classes, **options)
        data = [
            {"gt_sem_seg": {"data": t}, "pred_sem_seg": {"data": p}}
            for t, p in zip(truth, pred, strict=True)
        ]
        found.process(None, data)
        return found.scoring.summed(found.results)

    def ignite():
        return of_ignite(classes, truth, pred, **options)

    def ignite_by_image():
        return of_ignite(classes, truth, pred, ids=True, **options)

    def lightning():
        from types import SimpleNamespace

        from segiou.hooks.lightning import SegmentationScores

        found = SegmentationScores(classes, **options)
        trainer = SimpleNamespace(sanity_checking=False)
        outputs = {"truth": truth, "pred": pred}
        found.on_validation_batch_end(trainer, None, outputs, None, 0)
        return found.counts[0]

    def jax():
        return of_jax(classes, truth, pred, **options)

    return locals()


ADAPTERS = (
    "torchmetrics",
    "lightning",
    "transformers",
    "ignite",
    "ignite_by_image",
    "mmengine",
    "jax",
    "flax",
)


@pytest.mark.parametrize("name", ADAPTERS)
def test_two_overlapping_channels_are_not_two_classes(torch, need, name):
    need(name.split("_")[0])
    generator = torch.Generator().manual_seed(0)
    truth = torch.rand((3, 2, 8, 9), generator=generator) < 0.4
    scores = torch.where(truth, 0.8, 0.3)
    pred = scores > 0.5
    cases = [
        (truth.float(), scores, {"threshold": 0.5}),
        (truth.long(), scores, {"threshold": 0.5}),
        (truth, pred, {}),
        (truth.int(), pred.int(), {}),
    ]
    for one, other, options in cases:
        with pytest.raises(ValueError, match=r"2 channels along axis .*ChannelCounts\(2\)\.update"):
            of_each(2, one, other, **options)[name]()
    ones = int(truth.sum())
    flat = of_each(2, truth.ravel(), scores.ravel(), threshold=0.5)
    if name in ("torchmetrics", "jax", "flax"):  # the fix in the message
        assert flat[name]().matrix.tolist() == [[truth.numel() - ones, 0], [0, ones]]


@pytest.mark.parametrize("name", [one for one in ADAPTERS if one != "jax"])
def test_labels_with_a_class_axis_of_size_1(torch, need, name):
    """As of argmax(1, keepdim=True)."""
    need(name.split("_")[0])
    generator = torch.Generator().manual_seed(0)
    truth, pred = torch.randint(0, 3, (2, 2, 8, 9), generator=generator)
    wanted = ConfusionMatrix(3).update(truth, pred).matrix.tolist()
    for one in (truth, truth[:, None]):
        assert of_each(3, one, pred[:, None])[name]().matrix.tolist() == wanted


@pytest.mark.parametrize("name", ["jax", "flax"])
def test_compiled_code_does_not_count_more_channels_as_labels(torch, need, name):
    need(name)
    generator = torch.Generator().manual_seed(0)
    truth = torch.rand((2, 8, 9, 3), generator=generator) < 0.4
    from segiou.hooks import flax, jax

    counter = jax.PixelCounter(3)
    update = {
        "flax": lambda t, p: flax.SegmentationScores(3).update(logits=p, labels=t),
        "jax": lambda t, p: counter.update(counter.init(), t, p),
    }[name]
    with pytest.raises(ValueError, match=r"3 channels along axis -1, .*ChannelCounts\(3\)"):
        update(truth.numpy(), truth.numpy())


def plain_loops(truth, scores, **options):
    """Loops without an adapter, and compiled functions, by name."""
    classes, decided = {"ignore": 255}, {"threshold": options["threshold"]}
    valid = truth.numpy() != 255

    def matrix(counted, **mask):
        return counted.update(truth.numpy() * valid, scores, **decided, **mask).matrix

    def jit():
        import jax

        from segiou.hooks.jax import PixelCounter

        counter = PixelCounter(ConfusionMatrix(2, **classes))
        step = jax.jit(lambda state, *batch: counter.update(state, *batch, **decided))
        state = counter.init()
        for _ in range(2):
            state = step(state, truth.numpy(), scores.numpy())
        return counter.counts(state)

    return {
        "matrix": lambda: ConfusionMatrix(2, **classes).update(truth, scores, **decided),
        "mask": lambda: matrix(ConfusionMatrix(2), mask=valid),
        "count": lambda: ConfusionMatrix(2, **classes).count(truth, scores, **decided),
        "list": lambda: ConfusionMatrix(2, **classes).update(
            [*truth, truth[0, :2]], [*scores, scores[0, :2]], **decided
        ),
        "evaluator": lambda: Evaluator(2, **classes).update(truth, scores, **decided),
        "measures": lambda: Evaluator(2, measures=["objects"], **classes).update(
            truth, scores, **decided
        ),
        "score": lambda: score(truth, scores, labels=2, **classes, **decided),
        "channels": lambda: ChannelCounts(3).update(
            truth.numpy() * valid, scores, axis=0, mask=valid, **decided
        ),
        "jit": jit,
    }


PLAIN = ("matrix", "mask", "count", "list", "evaluator", "measures", "score", "channels", "jit")


def scale_warnings(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = [str(one.message) for one in caught]
    return [text.partition("so they ")[2] for text in texts if text.startswith("threshold is")]


OF_LOGITS = (
    "are probably logits; apply a sigmoid, or pass the logit of the threshold: "
    "log(p / (1 - p)), which is 0 for p = 0.5"
)
OF_PROBABILITIES = "are probably probabilities; pass threshold=0.5"


@pytest.mark.parametrize("name", [*(one for one in ADAPTERS if one != "jax"), *PLAIN])
def test_a_threshold_of_another_scale_warns_once(torch, need, name):
    for part in {"jit": ["jax"]}.get(name, [] if name in PLAIN else [name.split("_")[0]]):
        need(part)
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(0, 2, (3, 8, 9), generator=generator)
    truth[0, 0] = 255
    logits = 2 * torch.randn((3, 8, 9), generator=generator)

    def warned(scores, threshold):
        if name in PLAIN:
            return scale_warnings(plain_loops(truth, scores, threshold=threshold)[name])
        return scale_warnings(of_each(2, truth, scores, threshold=threshold, ignore=255)[name])

    assert warned(logits, 0.5) == [OF_LOGITS]
    assert warned(logits.bfloat16().float(), 0.0) == []
    assert warned(logits.sigmoid(), 0.0) == [OF_PROBABILITIES]
    assert warned(logits.sigmoid(), 0.5) == []
    assert warned((logits > 0).float(), 0.0) == warned((logits > 0).float(), 0.5) == []
    padded = torch.where(truth == 255, -100.0, logits.sigmoid())  # ignored pixels do not count
    assert warned(padded, 0.5) == []


def test_integers_have_no_scale():
    truth, grey = np.array([[0, 1]]), np.array([[0, 255]], np.uint8)
    assert scale_warnings(lambda: ConfusionMatrix(2).update(truth, grey, threshold=0.5)) == []


@pytest.mark.parametrize("kind", ["torchmetrics", "matrix", "evaluator", "channels"])
def test_the_scale_of_later_batches_is_not_checked(torch, kind):
    truth, logits = torch.zeros((1, 3, 4)).long(), torch.full((1, 3, 4), 3.0)
    found, axis = {
        "torchmetrics": lambda: (metric(2, threshold=0.5), None),
        "matrix": lambda: (ConfusionMatrix(2), {}),
        "evaluator": lambda: (Evaluator(2), {}),
        "channels": lambda: (ChannelCounts(3), {"axis": 1}),
    }[kind]()

    def update(scores):
        if axis is None:
            found.update(scores, truth)
        else:
            found.update(truth, scores, threshold=0.5, **axis)

    assert scale_warnings(lambda: update(logits)) == [OF_LOGITS]
    more = logits + 1
    assert scale_warnings(lambda: (update(more), found.reset(), update(more))) == []


def test_channels_with_a_threshold_in_plain_loops():
    truth = np.zeros((3, 2, 8, 9), bool)
    for counted in (ConfusionMatrix(2), Evaluator(2)):
        with pytest.raises(ValueError, match=r"2 channels along axis 1, .*ChannelCounts\(2\)"):
            counted.update(truth, truth * 0.7, threshold=0.5)
        with pytest.raises(ValueError, match=r"axis=-1, threshold=T\)"):
            counted.update(truth.transpose(0, 2, 3, 1), np.zeros((3, 8, 9, 2)), threshold=0.5)
    with pytest.raises(ValueError, match="2 channels along axis 1"):
        score(truth, truth * 0.7, labels=2, threshold=0.5)


def test_one_hot_pairs_show_in_the_counts():
    from segiou.counting.device_counts import read_counts
    from segiou.counting.encoding import Encoding
    from segiou.labels.class_options import ClassOptions

    def warned(matrix):
        table = np.zeros((6, 5), np.int64)
        table[:2, :2] = matrix
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sums = np.append(table.ravel(), 0)
            read_counts(Encoding.of_classes(ClassOptions.of(4)), sums, [0, 0, 0])
        return [str(one.message) for one in caught]

    # 1000 pixels of 4 classes as one-hot: 4000 values, of which 1000 are 1 on each side.
    (text,) = warned([[2900, 100], [100, 900]])
    assert "look like those of one-hot arrays: only 2 of 4 classes occur" in text
    assert warned([[2901, 99], [100, 900]]) == []
    assert warned([[29, 1], [1, 9]]) == []  # too few pixels to tell


def test_jax_takes_a_class_axis_of_size_1_and_masks_of_images(need):
    jax = need("jax")
    from segiou.hooks.jax import PixelCounter

    truth = np.array([[[0, 1]], [[1, 1]]])
    scores = np.eye(2, dtype=np.float32)[np.array([[[0, 0]], [[1, 0]]])]
    counter = PixelCounter(2)
    update = jax.jit(lambda *given: counter.update(*given[:3], mask=given[3], argmax=-1))
    state = update(counter.init(), truth[..., None], scores, np.array([True, False]))
    found = counter.counts(state)
    assert (found.matrix.tolist(), found.ignored) == ([[1, 0], [1, 0]], 2)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_ignored_pixels_of_one_hot_truth(torch, dtype):
    truth = torch.tensor([[[0, 1, 2, 2, 255, 255]]])
    scores = torch.nn.functional.one_hot(torch.tensor([[[0, 1, 2, 0, 0, 1]]]), 3).movedim(-1, 1)
    one_hot = torch.nn.functional.one_hot(truth % 255, 3).movedim(-1, 1)
    one_hot = torch.where((truth == 255)[:, None], 255, one_hot).to(getattr(torch, dtype))
    found = metric(3, ignore=255)
    found.update(scores.float(), one_hot)
    assert found.counts.matrix.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    assert found.counts.ignored == 2
    with pytest.raises(ValueError, match=r"neither a class nor ignored: 255 \(2 pixels\)"):
        metric(3).update(scores.float(), one_hot)
    one_hot[0, 0, 0, 4] = 7
    with pytest.raises((ValueError, TypeError)):
        metric(3, ignore=255).update(scores.float(), one_hot)


def test_options_of_other_tools(torch):
    with pytest.raises(TypeError, match="has no option 'ignore_index'; did you mean ignore"):
        metric(3, ignore_index=255)
    with pytest.raises(TypeError, match="has no option 'num_classes'; pass the number of classes"):
        metric(3, num_classes=3)
    with pytest.raises(TypeError, match="pass measures= to segiou"):
        metric(3, measures=["boundary"])


@pytest.mark.parametrize("kind", ["grad", "jvp", "vmap", "vmap of floats"])
@pytest.mark.parametrize("hook", ["torchmetrics", "ignite"])
def test_transforms_of_torch_are_named(torch, need, hook, kind):
    need(hook)
    found = import_module(f"segiou.hooks.{hook}").SegmentationScores(3)
    truth = torch.zeros((1, 2, 2), dtype=torch.float32 if kind == "vmap of floats" else torch.int64)
    scores = torch.rand(1, 3, 2, 2)

    def loss(scores, truth=truth):
        found.update((scores, truth)) if hook == "ignite" else found.update(scores, truth)
        return scores.sum()

    transforms = {
        "grad": lambda: torch.func.grad(loss)(scores),
        "jvp": lambda: torch.func.jvp(loss, (scores,), (scores,)),
        "vmap": lambda: torch.vmap(loss)(scores[None]),
        "vmap of floats": lambda: torch.vmap(loss)(scores[None], truth[None]),
    }
    with pytest.raises(TypeError, match=r"count after torch\.vmap, torch\.func"):
        transforms[kind]()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e30, -1e19, np.inf])
def test_float_labels_beyond_integers_are_named(torch, value):
    truth = np.array([[0.0, 1.0, value]])
    for side in (truth, torch.from_numpy(truth)):
        with pytest.raises(ValueError, match="1 value that is not a whole number"):
            metric(2).update(np.array([[0, 1, 1]]), side)
    half = metric(2)
    half.update(np.array([[0, 1]]), truth[:, :2].astype(np.float16))
    assert half.counts.matrix.tolist() == [[1, 0], [0, 1]]
