"""The operations of counting and of the scores in ``keras.ops``, for any backend."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops
from numpy.typing import NDArray

from segiou.classes import ClassOptions
from segiou.counting.array_operations import Operations
from segiou.hooks._limbs import BASE

__all__ = ["KerasOperations", "in_graph_scores"]


class KerasOperations(Operations):
    """Names as NumPy's, where Keras has them."""

    def __init__(self) -> None:
        super().__init__("keras", ops, None)

    def array(self, data: Any) -> Any:
        """To a tensor of the backend."""
        return ops.convert_to_tensor(data)

    def kind(self, array: Any) -> str:
        """From Keras's own names of dtypes."""
        name = keras.backend.standardize_dtype(array.dtype)
        return {"bool": "b", "float": "f", "bfloat": "f", "int": "i", "uint": "u"}.get(
            name.rstrip("0123456789"), "V"
        )

    @property
    def widest(self) -> int:
        """JAX has no 64 bits unless it is told so."""
        return 32 if keras.backend.backend() == "jax" else 64

    def wide(self, labels: Any, bits: int) -> Any:
        """A cast."""
        return ops.cast(labels, f"int{bits}")

    def take(self, table: Any, index: Any) -> Any:
        """Look each index up."""
        return ops.take(table, ops.cast(index, "int32"))

    def largest(self, values: Any, start: int) -> Any:
        """Within 32 bits."""
        largest = ops.clip(ops.max(values), start, (1 << 31) - 1)
        return ops.reshape(ops.cast(largest, "int32"), (1,))

    def total(self, condition: Any) -> Any:
        """A sum of ones."""
        return ops.reshape(ops.sum(ops.cast(condition, "int32")), (1,))

    def histogram(self, index: Any, length: int) -> Any:
        """A sum of ones by segment, whose length every backend lets us fix."""
        flat = ops.cast(ops.reshape(index, (-1,)), "int32")
        return ops.segment_sum(ops.ones_like(flat), flat, num_segments=length)


def in_graph_scores(low: Any, high: Any, options: ClassOptions) -> dict[str, Any]:
    """Scores for compiled code, by segiou's own rule; all NaN if a value was no class."""
    classes = options.num_classes
    sums = ops.cast(high, "float32") * BASE + ops.cast(low, "float32")
    whole = ops.reshape(sums[:-1], (classes + 2, classes + 1))
    table, bad = whole[:classes], sums[-1] + ops.sum(whole[-1])
    if options.unassigned == "error":
        bad = bad + ops.sum(table[:, -1])
    table = ops.where(bad > 0, ops.full_like(table, float("nan")), table)
    tp, truth, pred = ops.diagonal(table), ops.sum(table, axis=1), ops.sum(table[:, :-1], axis=0)
    scores = {"iou": tp / (truth + pred - tp), "dice": 2 * tp / (truth + pred)}
    scores |= {"precision": tp / pred, "recall": tp / truth}
    weighted = ops.where(truth > 0, scores["iou"] * truth, ops.zeros_like(truth))
    # A sum of NaN must stay NaN, so the poisoned total is what divides.
    total = ops.sum(truth)
    return scores | {
        "mean_iou": _mean(scores["iou"], options.include),
        "mean_dice": _mean(scores["dice"], options.include),
        "mean_accuracy": _mean(scores["recall"], options.include),
        "pixel_accuracy": ops.sum(tp) / total,
        "frequency_weighted_iou": ops.sum(weighted) / total,
    }


def _mean(values: Any, include: NDArray[Any]) -> Any:
    counted = ops.logical_and(ops.logical_not(ops.isnan(values)), ops.convert_to_tensor(include))
    total = ops.sum(ops.where(counted, values, ops.zeros_like(values)))
    return total / ops.sum(ops.cast(counted, values.dtype))
