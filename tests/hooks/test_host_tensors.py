"""Tensors that lie in the host's memory, read where they lie."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from segiou import ChannelCounts, ConfusionMatrix, ScoreHistogram
from segiou.counting.arrays import framework_of, is_on_device, to_host
from segiou.measures.saliency import saliency_scores
from segiou.metrics import soft_iou
from segiou.scoring import Evaluator


def labels_and_scores(seed: int):
    rng = np.random.default_rng(seed)
    truth = rng.choice([*range(5), 255], (2, 7, 9))
    return truth, rng.normal(size=(2, 5, 7, 9)).astype(np.float32)


def test_tensors_on_the_cpu_are_viewed_not_copied(need):
    torch = need("torch")
    tensor = torch.arange(24).reshape(4, 6)
    assert not is_on_device(tensor)
    assert np.shares_memory(to_host(tensor.T), tensor.numpy())
    weights = torch.ones(3, requires_grad=True)
    assert np.shares_memory(to_host(weights), weights.detach().numpy())


def test_torch_on_the_cpu_gradients_bfloat16_and_strides(need):
    torch = need("torch")
    truth, scores = labels_and_scores(3)
    weights = torch.from_numpy(scores).requires_grad_()
    host = ConfusionMatrix(5, ignore=255).update(truth, scores, argmax=1)
    assert ConfusionMatrix(5, ignore=255).update(torch.from_numpy(truth), weights, argmax=1) == host
    last = weights.permute(0, 2, 3, 1)
    assert ConfusionMatrix(5, ignore=255).update(torch.from_numpy(truth), last, argmax=-1) == host
    half = weights.bfloat16()
    rounded = ConfusionMatrix(5, ignore=255).update(truth, half.float().detach(), argmax=1)
    assert ConfusionMatrix(5, ignore=255).update(torch.from_numpy(truth), half, argmax=1) == rounded
    two = ConfusionMatrix(2).update(truth > 2, half[:, 0], threshold=0.25)
    assert two == ConfusionMatrix(2).update(truth > 2, half[:, 0].float(), threshold=0.25)
    with pytest.raises(TypeError, match=r"bfloat16.*labels must be integers"):
        ConfusionMatrix(2).update(truth, half[:, 0])


def test_jax_on_the_cpu_and_its_bfloat16(need):
    jnp = need("jax.numpy")
    truth, scores = labels_and_scores(4)
    host = ConfusionMatrix(5, ignore=255).update(truth, scores, argmax=1)
    scores = jnp.asarray(scores)
    assert ConfusionMatrix(5, ignore=255).update(jnp.asarray(truth), scores, argmax=1) == host
    half = scores.astype(jnp.bfloat16)
    rounded = np.asarray(half.astype(jnp.float32))
    a = ConfusionMatrix(5, ignore=255).update(truth, half, argmax=1)
    assert a == ConfusionMatrix(5, ignore=255).update(truth, rounded, argmax=1)


class OnlyDLPack:
    """A tensor that NumPy reads by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", ["bfloat16", "gradients", "jax bfloat16", "DLPack"])
@pytest.mark.parametrize("nested", [False, True])
def test_lists_of_tensors_count_as_their_stack(need, kind, nested):
    truth, scores = labels_and_scores(6)
    truth, scores = truth % 5, (scores - scores.min()) / np.ptp(scores)
    if kind == "jax bfloat16":
        jnp = need("jax.numpy")
        whole = jnp.asarray(scores).astype(jnp.bfloat16)
    elif kind == "DLPack":
        whole = scores
    else:
        whole = need("torch").from_numpy(scores)
        whole = whole.bfloat16() if kind == "bfloat16" else whole.requires_grad_()
    tensor = OnlyDLPack if kind == "DLPack" else lambda tensor: tensor
    images: list | tuple = tuple(map(tensor, whole))
    if nested:
        images = [[*map(tensor, image)] for image in whole]
    assert ConfusionMatrix(5).update(truth, images, argmax=1) == (
        ConfusionMatrix(5).update(truth, whole, argmax=1)
    )
    assert np.array_equal(
        ConfusionMatrix(5).count(truth, images, argmax=1).table,
        ConfusionMatrix(5).count(truth, whole, argmax=1).table,
    )
    found, expected = (Evaluator(5, measures=["boundary"]) for _ in range(2))
    found.update([*truth], images, argmax=1)
    assert found.scores() == expected.update([*truth], [*whole], argmax=1).scores()
    channels = np.stack([truth == c for c in range(5)], 1)
    assert ChannelCounts(5).update([*channels], images, axis=1, threshold=0.25) == (
        ChannelCounts(5).update(channels, whole, axis=1, threshold=0.25)
    )
    assert ScoreHistogram(5).update([*truth], images) == ScoreHistogram(5).update(truth, whole)


def test_functions_of_score_maps_read_bfloat16(need):
    scores = need("torch").tensor([[1.0, 0.5]]).bfloat16()
    assert soft_iou([[1.0, 1.0]], scores) == 1.5 / 2
    assert saliency_scores([[1, 0]], scores)["mae"] == 0  # stretched to 1 and 0


def test_lists_of_what_is_no_image_name_the_argument(need):
    torch = need("torch")
    truth = np.zeros((2, 3), int)
    wrong = {
        "sparse": [torch.zeros(2, 3).to_sparse()] * 2,
        "meta": [torch.zeros(2, 3, device="meta")] * 2,
        "float8": [torch.zeros(2, 3).to(torch.float8_e5m2)] * 2,
        "truth is a masked array": [np.ma.masked_array(truth, truth == 0)] * 2,
        "truth must be an array, or a list of arrays, not generator": (truth for _ in range(2)),
    }
    for text, images in wrong.items():
        with pytest.raises(TypeError, match=text):
            ConfusionMatrix(2).update(images, [truth] * 2)


class PaddleTensor:
    """A CPU tensor as Paddle documents it: bfloat16 becomes an array of uint16, its bits."""

    def __init__(self, scores):
        import torch

        self.bits = torch.from_numpy(scores).bfloat16().view(torch.int16).numpy().view(np.uint16)
        self.dtype = "paddle.bfloat16"
        self.shape = list(scores.shape)
        self.ndim = len(self.shape)

    def __array__(self, dtype=None, copy=None):
        return self.bits


def test_the_bits_of_a_paddle_bfloat16(need):
    torch = need("torch")
    truth, scores = labels_and_scores(5)
    rounded = torch.from_numpy(scores).bfloat16().float()
    expected = ConfusionMatrix(5, ignore=255).update(truth, rounded, argmax=1)
    given = PaddleTensor(scores)
    assert ConfusionMatrix(5, ignore=255).update(truth, given, argmax=1) == expected
    with pytest.raises(TypeError, match=r"pred has dtype bfloat16"):
        ConfusionMatrix(5, ignore=255).update(truth, PaddleTensor(scores[:, 0]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_tensors_of_paddle(dtype):
    paddle = pytest.importorskip("paddle", reason="Paddle is not installed here")
    truth, scores = labels_and_scores(5)
    tensor = paddle.to_tensor(scores).astype(dtype)
    exact = np.asarray(tensor.astype("float32"))
    expected = ConfusionMatrix(5, ignore=255).update(truth, exact, argmax=1)
    counted = ConfusionMatrix(5, ignore=255).update(paddle.to_tensor(truth), tensor, argmax=1)
    assert counted == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("device", ["cpu", "as on a device"])
def test_nan_on_ignored_pixels_is_fine(need, dtype, device, monkeypatch):
    torch = need("torch")
    from segiou.accumulators import confusion

    if device != "cpu":
        monkeypatch.setattr(confusion, "is_on_device", lambda x: True)
    truth = torch.tensor([[0, 1, 255, 1]])
    scores = torch.tensor([[[0.9, 0.1, 0.5, 0.4], [0.1, 0.9, 0.5, 0.6]]])
    expected = ConfusionMatrix(2, ignore=255).update(truth, scores, argmax=1)
    scores[0, 1, 2] = float("nan")
    scores = scores.to(getattr(torch, dtype))
    counted = ConfusionMatrix(2, ignore=255).update(truth, scores, argmax=1)
    assert counted.matrix.tolist() == expected.matrix.tolist() == [[1, 0], [0, 2]]
    above = ConfusionMatrix(2, ignore=255).update(truth, scores[:, 1], threshold=0.5)
    assert above.matrix.tolist() == [[1, 0], [0, 2]]
    masked = ConfusionMatrix(2).update(truth, scores, argmax=1, mask=truth != 255)
    assert masked.matrix.tolist() == [[1, 0], [0, 2]]
    scores[0, 1, 3] = float("nan")
    for how in ({"argmax": 1, "pred": scores}, {"threshold": 0.5, "pred": scores[:, 1]}):
        cm = ConfusionMatrix(2, ignore=255)
        with pytest.raises(ValueError, match=r"^found NaN scores on 1 pixel"):
            _ = cm.update(truth, **how).matrix
        assert device != "cpu" or cm.pixels == 0


def test_a_traced_tensor_is_refused(need):
    jax = need("jax")
    with pytest.raises(TypeError, match=r"inside jax.jit.*segiou\.hooks\.jax"):
        jax.jit(lambda x: ConfusionMatrix(2).update(x, x).pixels)(np.zeros(3, dtype=np.int32))


def test_subclasses_and_parameters_are_their_framework_s(need):
    torch = need("torch")

    class Mask(torch.Tensor):
        pass

    mask = torch.tensor([0, 1]).as_subclass(Mask)
    assert framework_of(mask) == framework_of(torch.nn.Parameter(torch.ones(1))) == "torch"
    assert ConfusionMatrix(2).update(mask, mask).pixel_accuracy() == 1.0
    assert framework_of(np.zeros(1)) is None


def test_tensors_without_a_rectangle_of_values_are_refused(need):
    torch = need("torch")
    dense = torch.tensor([[0, 1], [1, 1]])
    nested = torch.nested.nested_tensor([dense[0], dense[1, :1]], layout=torch.jagged)
    for tensor in (dense.to_sparse(), dense.to_sparse_csr(), nested):
        with pytest.raises(TypeError, match="sparse and nested tensors are not supported"):
            ConfusionMatrix(2).update(dense, tensor)
    with pytest.raises(TypeError, match="on the meta device have no values"):
        ConfusionMatrix(2).update(dense.to("meta"), dense)


SPREAD = """
import json, sys
import torch
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
from segiou import ChannelCounts, ConfusionMatrix, ScoreHistogram

torch.distributed.init_process_group("gloo", init_method=sys.argv[1], rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
labels = distribute_tensor(torch.tensor([[0, 1], [1, 1]]), mesh, [Shard(0)])
local = ConfusionMatrix(2).update(labels.to_local(), labels.full_tensor()).matrix.tolist()
try:
    ConfusionMatrix(2).update(labels, labels)
except TypeError as error:
    print(json.dumps([local, str(error)]))
"""


def test_a_tensor_spread_over_processes_is_refused(need, run_torch, tmp_path):
    need("torch")
    local, message = run_torch(SPREAD, f"file://{tmp_path / 'store'}")
    assert local == [[1, 0], [0, 3]]
    assert "DTensors are not supported; count to_local()" in message


def test_ids_are_the_same_whatever_they_came_in(need):
    torch, jnp = need("torch"), need("jax.numpy")
    truth = np.array([[[0]], [[1]]])
    given = [[3, 4], torch.tensor([3, 4]), list(torch.tensor([3, 4])), jnp.array([3, 4])]
    for ids in (*given, np.array([3, 4]), list(np.int64([3, 4])), ["3", "4"], [b"3", b"4"]):
        assert Evaluator(2).update(truth, truth, ids=ids).run().ids == ("3", "4")


def test_many_updates_leave_memory_as_it_was(need):
    torch = need("torch")
    truth, scores = (torch.from_numpy(array) for array in labels_and_scores(6))
    cm = ConfusionMatrix(5, ignore=255)
    for _ in range(1000):
        cm.update(truth, scores, argmax=1)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            cm.update(truth, scores, argmax=1)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # A KiB an update would be a hundred times as much.
    assert grown < 10_000
    assert cm.pixels == 2000 * truth.numel()
