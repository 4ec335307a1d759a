"""Tensors of other frameworks, counted where they are.

The machines that run these tests need no accelerator: the operations of each
framework are the same on its CPU, where the host's answer stands beside them.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import tracemalloc
from contextlib import AbstractContextManager
from importlib.util import find_spec

import numpy as np
import pytest

import segiou
from segiou import ConfusionMatrix
from segiou.counting import Encoding, device_counts, device_operations
from segiou.counting.arrays import framework_of
from segiou.counting.device_counts import DeviceValuesError, count_on_device, read, read_counts

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def required(name: str):
    """The framework; skips where it is absent, unless SEGIOU_REQUIRE_FRAMEWORKS=1."""
    if os.environ.get("SEGIOU_REQUIRE_FRAMEWORKS") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name)


def torch_maker():
    torch = required("torch")
    return lambda array: torch.from_numpy(np.array(array))


def jax_maker():
    jnp = required("jax.numpy")
    return jnp.asarray


def tensorflow_maker():
    return importlib.import_module("tensorflow").constant


class Device(AbstractContextManager):
    """As CuPy's: the current one within a ``with``, compared, and no key of a dict."""

    current = None
    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, Device)

    def __repr__(self):
        return "<CUDA Device 0>"

    def __enter__(self):
        Device.current = self

    def __exit__(self, *_):
        Device.current = None


class NumPyAsCuPy:
    """CuPy's names are NumPy's, so what is said in them can be tried on NumPy; with its limits."""

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, array):
        assert Device.current, "made on whatever device is the current one"
        return np.asarray(array)

    def max(self, a, axis=None, out=None, keepdims=False):
        return np.max(a, axis=axis, out=out, keepdims=keepdims)

    def bincount(self, x, weights=None, minlength=None):
        assert x.size, "cupy.max of nothing"
        return np.bincount(x, weights, minlength)


def cupy_maker():
    sys.modules.setdefault("cupy", NumPyAsCuPy())

    class Array(np.ndarray):
        device = property(lambda self: Device())

        def get(self):
            return np.array(self)

    Array.__module__ = "cupy"
    return lambda array: np.asarray(array).view(Array)


MAKERS = {"torch": torch_maker, "jax": jax_maker, "cupy": cupy_maker}
# No hook needs TensorFlow: where it is there, its tensors are tried like the others.
if find_spec("tensorflow"):
    MAKERS["tensorflow"] = tensorflow_maker


@pytest.fixture(params=list(MAKERS))
def tensor(request, monkeypatch):
    """A function that makes tensors which count as being on a device."""
    if request.param == "cupy":
        monkeypatch.setitem(sys.modules, "cupy", NumPyAsCuPy())
    make = MAKERS[request.param]()
    for module in (segiou.accumulators.confusion, device_counts, device_operations):
        monkeypatch.setattr(module, "is_on_device", lambda x: framework_of(x) is not None)
    return make


def labels_and_scores(seed: int, classes: int = 5, shape=(2, 7, 9)):
    rng = np.random.default_rng(seed)
    truth = rng.choice([*range(classes), 255], shape)
    pred = rng.integers(0, classes, shape)
    return truth, pred, rng.normal(size=(shape[0], classes, *shape[1:])).astype(np.float32)


def pair(**options):
    return ConfusionMatrix(5, ignore=255, **options), ConfusionMatrix(5, ignore=255, **options)


def test_labels_count_as_on_the_host(tensor):
    host, device = pair()
    for seed in range(3):
        truth, pred, _ = labels_and_scores(seed)
        host.update(truth, pred)
        device.update(tensor(truth.astype(np.uint8)), tensor(pred))
    assert device == host
    assert device.pixels == 3 * 2 * 7 * 9


def test_scores_count_as_on_the_host(tensor):
    host, device = pair()
    truth, _, scores = labels_and_scores(1)
    scores[0, 3] = scores[0, 1]  # ties: the first class wins
    host.update(truth, scores, argmax=1)
    device.update(tensor(truth), tensor(scores), argmax=1)
    assert device == host
    two, two_on_device = ConfusionMatrix(2), ConfusionMatrix(2)
    two.update(truth[0] > 2, scores[0, 0], threshold=0.5)
    two_on_device.update(tensor(truth[0] > 2), tensor(scores[0, 0]), threshold=0.5)
    assert two_on_device == two


def test_masks_and_numpy_truth_are_brought_along(tensor):
    host, device = pair(unassigned="count")
    truth, pred, _ = labels_and_scores(2)
    pred[0, 0] = 77
    mask = np.arange(truth.size).reshape(truth.shape) % 3 > 0
    truth[~mask] = 99  # undeclared, but masked out
    host.update(truth, pred, mask=mask)
    device.update(truth[..., ::-1], tensor(pred[..., ::-1].copy()), mask=mask[..., ::-1])
    assert device == host
    assert device.unassigned.sum() > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_integer_dtype(tensor, dtype):
    truth = np.array([0, 1, 1, 0]).astype(dtype)
    pred = np.array([0, 1, 0, 0]).astype(dtype)
    cm = ConfusionMatrix(2).update(tensor(truth), tensor(pred))
    np.testing.assert_array_equal(cm.matrix, [[2, 0], [1, 1]])


def test_values_far_outside_do_not_wrap(tensor):
    far = np.array([0, 2**31 - 1, -(2**31), 256, -1], dtype=np.int32)
    cm = ConfusionMatrix(2, unassigned="count")
    cm.update(tensor(np.zeros(5, dtype=np.int32)), tensor(far))
    np.testing.assert_array_equal(cm.unassigned, [4, 0])


def test_torch_uint64_beyond_int64_does_not_wrap(monkeypatch):
    torch = required("torch")
    pred = torch.from_numpy(np.array([0, 2**64 - 1, 2**63], dtype=np.uint64))
    encoding = Encoding.of_classes(ConfusionMatrix(2, unassigned="count").options)
    count = read(encoding, count_on_device(encoding, torch.zeros(3, dtype=torch.uint8), pred))
    np.testing.assert_array_equal(count.table, [[1, 0, 2], [0, 0, 0]])


def test_label_sets_with_gaps_and_negative_values(tensor):
    labels = segiou.LabelSet(
        "odd",
        (segiou.labels.LabelClass("a", (-1, 7)), segiou.labels.LabelClass("b", (33,))),
        ignore=(3,),
    )
    truth, pred = np.array([-1, 7, 33, 3, 33], dtype=np.int16), np.array([7, 33, 33, 9, -1])
    host = ConfusionMatrix(labels).update(truth, pred)
    device = ConfusionMatrix(labels).update(tensor(truth), tensor(pred))
    assert device == host
    assert device.ignored == 1


def test_undeclared_values_are_found_at_reading_until_reset(tensor):
    cm = ConfusionMatrix(3, ignore=255)
    cm.update(tensor(np.array([0, 1, 2])), tensor(np.array([0, 1, 2])))
    cm.update(tensor(np.array([0, 19, 7, 255])), tensor(np.array([0, 0, 0, 99])))
    for _ in range(2):
        with pytest.raises(DeviceValuesError, match=r"truth .*2 pixels, the largest value 19"):
            cm.mean_iou()
    assert cm.reset().pixels == 0
    cm.update(tensor(np.array([0, 1, 255])), tensor(np.array([0, 4, 88])))
    with pytest.raises(segiou.counting.UndeclaredValuesError, match=r"pred .*1 pixel,.* value 4"):
        _ = cm.matrix


def test_errors_that_need_no_values_come_at_once(tensor):
    cm = ConfusionMatrix(3)
    zeros = tensor(np.zeros((2, 3), dtype=np.int32))
    with pytest.raises(ValueError, match=r"\(2, 3\) but pred has \(3,\)"):
        cm.update(zeros, tensor(np.zeros(3, dtype=np.int32)))
    with pytest.raises(TypeError, match=r"pred has dtype float32.*argmax"):
        cm.update(zeros, tensor(np.zeros((2, 3), dtype=np.float32)))
    with pytest.raises(ValueError, match="5 channels along axis 0, expected 3"):
        cm.update(zeros, tensor(np.zeros((5, 2, 3), dtype=np.float32)), argmax=0)
    with pytest.raises(ValueError, match="argmax=7 is out of range"):
        cm.update(zeros, tensor(np.zeros((3, 2, 3), dtype=np.float32)), argmax=7)
    with pytest.raises(TypeError, match="mask must be bool"):
        cm.update(zeros, zeros, mask=zeros)
    with pytest.raises(ValueError, match=r"mask has shape \(1,\)"):
        cm.update(zeros, zeros, mask=np.ones(1, dtype=bool))
    assert cm.pairs == 0
    assert cm.pixels == 0


def test_nan_scores_are_refused_at_reading(tensor):
    scores = np.zeros((1, 2, 3), dtype=np.float32)
    scores[0, 1, 2] = np.nan
    cm = ConfusionMatrix(2).update(tensor(np.zeros((1, 3), np.int32)), tensor(scores), argmax=1)
    with pytest.raises(ValueError, match="found NaN scores on 1 pixel"):
        cm.compute()


def test_count_is_checked_at_once(tensor):
    cm = ConfusionMatrix(2)
    with pytest.raises(DeviceValuesError):
        cm.count(tensor(np.array([5])), tensor(np.array([0])))
    count = cm.count(tensor(np.array([1])), tensor(np.array([0])))
    np.testing.assert_array_equal(count.table, [[0, 0, 0], [1, 0, 0]])


def test_pending_counts_travel_with_copies_merges_and_pickles(tensor):
    host, device = pair()
    truth, pred, _ = labels_and_scores(5)
    host.update(truth, pred)
    for make in (
        ConfusionMatrix.copy,
        lambda cm: pickle.loads(pickle.dumps(cm)),
        lambda cm: cm + 0,
    ):
        device.reset().update(tensor(truth), tensor(pred))
        assert make(device) == host
    device.reset().update(tensor(truth), tensor(pred))
    assert ConfusionMatrix(5, ignore=255).merge(device) == host
    assert device.state_dict() == host.state_dict()


def test_empty_batches_count_nothing(tensor):
    cm = ConfusionMatrix(2).update(
        tensor(np.zeros((0, 4), np.int32)), tensor(np.zeros((0, 4), np.int32))
    )
    assert (cm.pixels, cm.pairs) == (0, 1)


@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1, 2**32 - 1, -(2**63), 2**63, 2**64 - 1])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "uint64"])
def test_any_integer_can_be_ignored_on_a_device(tensor, value, dtype):
    info = np.iinfo(dtype)
    held = value if info.min <= value <= info.max else 1
    truth = np.array([0, held, 1, 2, 2], dtype=dtype)
    labels = tensor(truth)
    if not np.array_equal(device_counts.to_host(labels), truth):
        pytest.skip("this framework narrows the type")
    encoding = Encoding.of([(0,), (1,)], ignore=[2, value, 10**12])
    pred = np.array([0, 1, 1, 9, 1])
    counted = read(encoding, count_on_device(encoding, labels, tensor(pred)))
    host = encoding.count(truth, pred)
    np.testing.assert_array_equal(counted.table, host.table)
    assert counted.ignored == host.ignored == (3 if held == value else 2)


def test_counters_of_32_bits_are_emptied_in_time(monkeypatch):
    jnp = required("jax.numpy")
    monkeypatch.setattr(segiou.accumulators.confusion, "is_on_device", lambda x: True)
    monkeypatch.setattr(device_operations.Jax, "limit", 10)
    cm = ConfusionMatrix(2)
    for _ in range(7):
        cm.update(jnp.array([0, 1, 1, 1]), jnp.array([0, 1, 0, 1]))
    assert (
        sum(part.cells.sum() for part in cm._parts.values()) == 24
    )  # three times two batches; the last one is pending
    np.testing.assert_array_equal(cm.matrix, [[7, 0], [7, 14]])


def test_a_histogram_by_sorting_is_the_same():
    torch = required("torch")
    ops = device_operations.operations_for(torch.zeros(1))
    index = torch.randint(0, 400, (50, 41), dtype=torch.int32)
    for length in (400, 401, 40_000):
        assert torch.equal(ops.sorted_histogram(index, length), ops.histogram(index, length))


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(DeviceValuesError("truth", 4, 19)))
    assert (error.side, error.pixels, error.largest, error.values) == ("truth", 4, 19, {})
    assert "ignore=19" in str(error)


def test_sums_of_a_table_read_back():
    cm = ConfusionMatrix(3, ignore=255, unassigned="count")
    count = cm.count([0, 1, 2, 255], [0, 1, 9, 9])
    encoding = Encoding.of_classes(cm.options)
    sums = np.append(encoding.table_of(count).ravel(), 0)
    back = read_counts(encoding, sums, np.array([0, 0, 0]))
    np.testing.assert_array_equal(back.table, count.table)
    assert back.ignored == 1


@pytest.mark.gate
def test_two_thousand_updates_leave_memory_as_it_was(tensor):
    truth, pred, scores = labels_and_scores(6)
    labels, logits = (tensor(truth), tensor(pred)), (tensor(truth), tensor(scores))
    cm = ConfusionMatrix(5, ignore=255)
    updates = 2000

    def update(times):
        for _ in range(times // 2):
            cm.update(*labels).update(*logits, argmax=1)

    update(500)
    tracemalloc.start()
    try:
        update(500)  # caches that only grow while memory is traced
        before = tracemalloc.get_traced_memory()[0]
        update(updates - 1000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # One vector of counts kept an update would be 43 numbers of 8 bytes.
    assert grown < 43 * 8 * (updates - 1000) / 2
    assert cm.pairs == updates
    assert cm.pixels == updates * truth.size


COMMITTED = """
import json
import jax, jax.numpy as jnp, numpy as np
from segiou import ConfusionMatrix
from segiou.counting.device_counts import count_on_device, read
from segiou.counting.encoding import Encoding

a, b = jax.devices()
truth = jax.device_put(jnp.array([0, 1, 1, 0]), b)
pred = jax.device_put(jnp.array([0, 1, 0, 0]), a)
mask = jax.device_put(jnp.array([True, True, True, False]), b)
encoding = Encoding.of_classes(ConfusionMatrix(2).options)
count = count_on_device(encoding, truth, pred, mask=mask)
over = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array([a, b]), "x"),
                                  jax.sharding.PartitionSpec("x"))
shared = count_on_device(encoding, *(jax.device_put(np.asarray(x), over) for x in (truth, pred)))
print(json.dumps([read(encoding, x).table.tolist() for x in (count, shared)]))
"""


def test_jax_arrays_of_two_devices_and_over_two(run_python):
    required("jax")
    flags = "--xla_force_host_platform_device_count=2"
    one, over = run_python(COMMITTED, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    assert one == [[1, 0, 0], [1, 1, 0]]
    assert over == [[2, 0, 0], [1, 1, 0]]


def test_float8_is_refused(need):
    torch = need("torch")
    scores = torch.zeros(1, 2, 2, 2).to(torch.float8_e4m3fn)
    with pytest.raises(TypeError, match="float8_e4m3fn"):
        ConfusionMatrix(2).update(torch.zeros(1, 2, 2).long(), scores, argmax=1)


def test_tensors_without_values_are_named(need):
    torch = need("torch")
    truth = torch.tensor([[0, 1], [1, 1]])
    scores = torch.zeros(2, 2)

    def counted(row):
        return torch.tensor(ConfusionMatrix(2).update(row, row).pixels)

    def loss(values):
        ConfusionMatrix(2).update(truth[0], values, argmax=0)
        return values.sum()

    with pytest.raises(TypeError, match=r"no values that NumPy can read; count after torch\.vmap"):
        torch.vmap(counted)(truth)
    with pytest.raises(TypeError, match=r"no values that NumPy can read; count after torch\.vmap"):
        torch.func.grad(loss)(scores)
