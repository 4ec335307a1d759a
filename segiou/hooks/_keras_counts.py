"""Reads and counts batches with the operations of Keras."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from segiou.counting.arrays import dtype_name, framework_of, is_on_device, to_host
from segiou.counting.device_counts import NUM_MAXIMA, CodeTables, DeviceCount
from segiou.counting.device_operations import (
    LARGEST_FLOAT,
    LARGEST_INTEGER,
    NONE_MET,
    Operations,
    clipped,
    native,
    three_dimensions,
)
from segiou.counting.encoding import UndeclaredValuesError
from segiou.counting.scores import NanScoresError, warn_of_scale
from segiou.hooks._compiled import CompiledCounts, as_floats
from segiou.hooks._scoring import ChannelScoring, Scoring


class _Operations(Operations):
    """Operations of the Keras backend, which follow NumPy's API."""

    def __init__(self) -> None:
        super().__init__("keras", ops, None)
        self.is_compiled = keras.backend.backend() == "jax"

    def array(self, data: Any) -> Any:
        """To a tensor of the backend; a TypeError for tensors of torch without (dense) values."""
        if isinstance(data, np.ndarray):
            data = clipped(native(data), self.widest)
            if data.dtype == np.uint64 and keras.backend.backend() == "torch":  # unknown to Keras
                data = sys.modules["torch"].from_numpy(data)
        elif framework_of(data) == "torch" and not _is_compiling():
            # Keras itself passes tensors without values to find the shapes of results.
            is_spec = data.is_meta and getattr(ops.zeros(()), "is_meta", False)
            _ = is_spec or is_on_device(data)
        return ops.convert_to_tensor(data)

    @property
    def widest(self) -> int:
        """32 on JAX, which has no 64-bit integers by default."""
        return 32 if self.is_compiled else 64

    def wide(self, labels: Any, bits: int) -> Any:
        """A cast."""
        return ops.cast(labels, f"int{bits}")

    def take(self, table: Any, index: Any) -> Any:
        """Entries of a table by index."""
        return ops.take(table, ops.cast(index, "int32"))

    def largest(self, values: Any) -> Any:
        """The largest value, limited to 32 bits."""
        largest = ops.clip(ops.max(values), NONE_MET, LARGEST_INTEGER)
        return ops.reshape(ops.cast(largest, "int32"), (1,))

    def flat(self, values: Any) -> Any:
        """All values in one dimension."""
        return ops.reshape(values, (-1,))

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """The backend's own argmax; ``keras.ops.argmax`` ranks -0 below 0, and is slow."""
        backend = keras.backend.backend()
        if backend == "jax":
            scores, axis = ops.reshape(scores, three_dimensions(scores.shape, axis)), 1
            xp: Any = sys.modules["jax.numpy"]
            return xp.argmax(scores, axis), xp.max(scores, axis)
        if backend == "torch":
            best, labels = scores.max(axis)
            return labels, best
        tensorflow: Any = sys.modules["tensorflow"]
        return tensorflow.argmax(scores, axis, output_type="int32"), ops.max(scores, axis)

    def total(self, condition: Any) -> Any:
        """A sum of ones."""
        return ops.reshape(number_of(condition), (1,))

    def histogram(self, index: Any, length: int) -> Any:
        """A sum of ones per segment; every backend accepts a fixed length for it."""
        flat = ops.cast(ops.reshape(index, (-1,)), "int32")
        return ops.segment_sum(ops.ones_like(flat), flat, num_segments=length)

    def sums(self, index: Any, weights: Any, length: int) -> Any:
        """A sum of the weights per segment."""
        return ops.segment_sum(weights, index, num_segments=length)

    def real(self, values: Any) -> Any:
        """A cast."""
        return ops.cast(values, "float32")


class KerasCounts(CompiledCounts):
    """Counts batches in compiled steps, and eager tensors by compiled routines."""

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(_Operations(), scoring.empty())
        self.scoring: Any = scoring
        self._has_warned = False

    def count(self, truth: Any, pred: Any, mask: Any, decision: dict[str, Any]) -> DeviceCount:
        """Count a batch; values that raise on the host are counted, to be reported later."""
        if 0 in tuple(truth.shape):  # keras.ops has no maximum of it
            return self._uploaded(np.zeros(self.cells, np.int32))
        if isinstance(self.tables, CodeTables) and _is_eager(truth) and _is_eager(pred):
            table = self.tables.encoding.empty_table()
            try:
                self.like._count_into(table, truth, pred, mask=mask, **decision)
            except (UndeclaredValuesError, NanScoresError):
                pass
            else:
                return self._uploaded(np.append(table.ravel(), 0).astype(np.int32))
        counted: DeviceCount = self.tables.count(truth, pred, mask=mask, **decision)
        return counted

    def _uploaded(self, sums: NDArray[np.int32]) -> DeviceCount:
        """Sums from the host, of a batch without undeclared values."""
        maxima = np.full(NUM_MAXIMA, NONE_MET, np.int32)
        return DeviceCount(self.ops, *map(ops.convert_to_tensor, (sums, maxima)))

    def scores(self, low: Any, high: Any, refused: Any) -> dict[str, Any]:
        """Scores of all batches by name, in float32; NaN if bad values were counted."""
        is_exact = isinstance(self.tables, CodeTables)
        if is_exact:
            drops = self.scoring.drops_undeclared
            counts, bad = self.tables.counts_of(low, high, ops, drops_undeclared=drops)
        else:
            counts, bad = self.tables.counts_of(as_floats(low, high, xp=ops), ops)
        is_bad = ops.sum(ops.cast(refused, "float32")) + bad > 0
        nan_if_bad = ops.where(is_bad, float("nan"), 0.0)
        values = self.scoring.values_of(counts, xp=ops)
        return {name: value + nan_if_bad for name, value in values.items()}

    def labels(self, truth: Any, pred: Any) -> tuple[Any, Any]:
        """Labels as integers, and whether the truth is neither a whole number nor one-hot."""
        scoring = self.scoring
        is_other = isinstance(scoring, ChannelScoring)
        has_scores = scoring.threshold is None and not is_other and "float" in dtype_name(pred)
        has_axis = has_scores and scoring.axis is not None
        has_axis = has_axis and len(truth.shape) == len(pred.shape) > 1
        if has_axis and truth.shape[scoring.axis] == scoring.options.num_classes:
            return self._labels_of_one_hot(ops.cast(truth, "float32"))
        if "float" not in dtype_name(truth):
            return truth, None
        values = ops.cast(truth, "float32")
        wrong = values != ops.round(values)
        limit = LARGEST_FLOAT if self.ops.widest == 32 else 1 << 62
        whole = ops.where(wrong, ops.zeros_like(values), ops.clip(values, -limit, limit))
        return ops.cast(whole, f"int{self.ops.widest}"), wrong

    def warn_of_scale(self, largest: Any, met: Any) -> None:
        """Warn once of scores of another scale, as sums over devices; not inside compiled code."""
        if self.scoring.threshold is None or self._has_warned or not _has_values(largest):
            return
        sums, devices = int(to_host(largest)[2]), int(to_host(met)[2])
        if devices and sums % devices == 0:
            self._has_warned = warn_of_scale(sums // devices)

    def _labels_of_one_hot(self, truth: Any) -> tuple[Any, Any]:
        axis = self.scoring.axis
        values = [label.values[0] for label in self.scoring.options.labels.classes]
        largest = ops.max(truth, axis=axis)
        is_one = (largest == 1) & (ops.sum(truth, axis=axis) == 1)
        # Pixels with the same value in all channels have this label, which is usually ignored.
        is_same = (ops.min(truth, axis=axis) == largest) & (largest != 0) & (largest != 1)
        labels = ops.take(ops.convert_to_tensor(values), ops.argmax(truth, axis=axis))
        labels = ops.where(is_same, ops.cast(largest, labels.dtype), labels)
        return labels, ~(is_one | is_same)


def _is_eager(tensor: Any) -> bool:
    """Whether a tensor has values in the host's memory."""
    return _has_values(tensor) and not is_on_device(tensor)


def _is_compiling() -> bool:
    """Whether torch compiles this code."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def _has_values(tensor: Any) -> bool:
    """Whether a tensor is not a symbol of compiled code."""
    if _is_compiling():
        return False
    try:
        is_on_device(tensor)
    except TypeError:
        return False
    framework = framework_of(tensor)
    # Variables of TensorFlow are not symbols, but have no values in graphs.
    is_graph = framework == "tensorflow" and not sys.modules["tensorflow"].executing_eagerly()
    return framework is not None and not is_graph


def number_of(condition: Any) -> Any:
    """The number of true values; 0 of None."""
    if condition is None:
        return ops.zeros((), dtype="int32")
    return ops.sum(ops.cast(condition, "int32"))


def mask_of(weight: Any, truth: Any, axis: int | None = None) -> tuple[Any, Any]:
    """Mask of counted pixels in the shape of the truth, and of weights other than 0 and a constant.

    The truth has channels along the axis, if any. Losses of Keras scale the weights of a batch in
    place.
    """
    if weight is None or 0 in tuple(truth.shape):
        return None, None
    weight = native(weight) if isinstance(weight, np.ndarray) else weight
    weight = ops.cast(ops.convert_to_tensor(weight), "float32")
    axes, shape = len(truth.shape), tuple(truth.shape)
    pixels = shape if axis is None else shape[: axis % axes] + shape[axis % axes :][1:]
    has_axis = len(weight.shape) == len(pixels) + 1 and weight.shape[-1] == 1
    if has_axis and (axis is None or shape[-1] != 1):
        weight = ops.squeeze(weight, -1)
    if axis is not None and len(weight.shape) == len(pixels) > 1:
        weight = ops.expand_dims(weight, axis % axes)
    given = tuple(weight.shape)
    if len(given) != axes and all(size == 1 for size in given[1:]):
        weight = ops.reshape(weight, (-1,) + (1,) * (axes - 1))
    sizes = zip(weight.shape, shape, strict=False)
    if len(weight.shape) != axes or any(a not in (1, b, None) and b is not None for a, b in sizes):
        shapes = " or ".join(map(str, dict.fromkeys((pixels, shape))))
        msg = f"sample_weight must have shape (N,) or {shapes}, got {given}"
        raise ValueError(msg)
    counted = weight != 0
    is_other = counted & ((weight != ops.max(weight)) | (weight < 0))
    return counted & ops.ones_like(truth, dtype="bool"), is_other
