"""Segmentation scores as a :class:`keras.metrics.Metric`, on every backend, compiled or not."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.device_counts import NONE_MET, CodeTables, read_counts
from segiou.counting.device_operations import Operations
from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import Scores, Scoring, missing
from segiou.hooks._split_counts import BASE, as_int64, carry, check_pixels
from segiou.labels.class_options import ClassOptions

try:
    import keras
    from keras import ops
except ImportError as error:
    raise missing("keras and its backend, such as torch or jax", "keras") from error

__all__ = ["SegmentationScores"]


class _Operations(Operations):
    """Operations of Keras's backend; its names are NumPy's where Keras has them."""

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


def _scores_in_graph(low: Any, high: Any, options: ClassOptions) -> dict[str, Any]:
    """Scores for compiled code, by segiou's own protocol; all NaN if a value was no class."""
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


@keras.saving.register_keras_serializable(package="segiou")
class SegmentationScores(keras.metrics.Metric):
    """Mean IoU and other scores of everything since the last reset.

    The counts are exact. The logged scores are computed from them in float32,
    inside the compiled step, where nothing can raise: if a value was no class,
    the scores are NaN, and :meth:`confusion_matrix` says which value.

    Parameters
    ----------
    labels, **options
        As :class:`segiou.ConfusionMatrix`.
    scores : str or sequence of str
        One name gives a scalar; several, or a per-class score such as
        ``"iou"``, give a dict of scalars.
    axis, threshold
        The class axis of scores; or the score above which the second of two
        classes is predicted.
    name : str
        As Keras's.
    """

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = "mean_iou",
        axis: int = -1,
        threshold: float | None = None,
        name: str = "segmentation_scores",
        **options: Any,
    ) -> None:
        super().__init__(name=name)
        options |= {"axis": axis, "threshold": threshold}
        self.scoring = Scoring(labels, scores=scores, **options)
        classes = self.scoring.options
        tables = (Encoding.of_classes(classes, pred_is_index=index) for index in (False, True))
        self._tables = [CodeTables(_Operations(), encoding) for encoding in tables]
        cells = (classes.num_classes + 2) * (classes.num_classes + 1) + 1
        self.low = self.add_variable((cells,), "zeros", dtype="int32", name="low")
        self.high = self.add_variable((cells,), "zeros", dtype="int32", name="high")
        self.maxima = self.add_variable((2,), "zeros", dtype="int32", name="maxima")
        self.batches = self.add_variable((), "zeros", dtype="int32", name="batches")
        self.reset_state()

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch; a weight must be bool, True where a pixel counts."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if y_true.shape[-1:] == (1,) and tuple(y_true.shape) != tuple(y_pred.shape):
            y_true = ops.squeeze(y_true, -1)
        check_pixels(tuple(size or 1 for size in y_true.shape))
        decision = self.scoring.decision(y_true, y_pred)
        count = self._tables[bool(decision)].count(y_true, y_pred, mask=sample_weight, **decision)
        low, high = carry(self.low.value + count.sums, self.high.value)
        self.low.assign(low)
        self.high.assign(high)
        self.maxima.assign(ops.maximum(self.maxima.value, count.maxima))
        self.batches.assign(self.batches.value + 1)

    def result(self) -> Any:
        """The scores: a scalar, or a dict of scalars; NaN where undefined."""
        known = _scores_in_graph(self.low.value, self.high.value, self.scoring.options)
        return known[self.scoring.only] if self.scoring.only else self.scoring.named(known)

    def reset_state(self) -> None:
        """Forget all counts."""
        for variable in (self.low, self.high, self.batches):
            variable.assign(ops.zeros(variable.shape, dtype="int32"))
        self.maxima.assign(ops.full((2,), NONE_MET, dtype="int32"))

    def confusion_matrix(self) -> ConfusionMatrix:
        """The counts themselves, exact; raises if values were no class."""
        low, high, maxima = map(ops.convert_to_numpy, (self.low, self.high, self.maxima))
        count = read_counts(self._tables[False].encoding, as_int64(low, high), maxima)
        return self.scoring.empty().add(count, pairs=int(ops.convert_to_numpy(self.batches)))

    def get_config(self) -> dict[str, Any]:
        """What Keras saves with a model."""
        return {
            "options": self.scoring.options.to_dict(),
            "scores": self.scoring.only or list(self.scoring.names),
            "axis": self.scoring.axis,
            "threshold": self.scoring.threshold,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SegmentationScores:
        """Build what :meth:`get_config` described."""
        options = ClassOptions.from_dict(config.pop("options"))
        return cls(**vars(options), **config)
