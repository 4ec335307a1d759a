"""Segmentation scores as a :class:`keras.metrics.Metric` for every backend, compiled or not."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any, Unpack

import numpy as np

from segiou._support.text import plural
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import dtype_name, framework_of, is_on_device, to_host
from segiou.counting.counts import Counts
from segiou.counting.device_counts import (
    LARGEST_FLOAT,
    LARGEST_INTEGER,
    NONE_MET,
    CodeTables,
    DeviceCount,
    Operations,
    read_counts,
    three_dimensions,
    within,
)
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.counting.scores import NanScoresError
from segiou.histograms.compiled_counts import MOST_PIXELS, CompiledScores
from segiou.histograms.score_counts import ScoreHistogram
from segiou.hooks._reading import callers
from segiou.hooks._scoring import (
    Entry,
    HistogramScoring,
    missing,
    of_kind,
    scoring_of,
)
from segiou.hooks._wide_counts import BASE, as_int64, carry, check_pixels
from segiou.hooks.hook_options import HookOptions
from segiou.labels.class_options import ClassOptions
from segiou.metrics.per_class import iou
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.metrics.protocols import Protocol

try:
    import keras
    from keras import ops
except ImportError as error:
    raise missing("keras and its backend, such as torch or jax", "keras") from error

from segiou.hooks._keras_histograms import scores_of_sums

__all__ = ["SegmentationScores"]


class _Operations(Operations):
    """Operations of the Keras backend, which follow NumPy's API."""

    def __init__(self) -> None:
        super().__init__("keras", ops, None)
        self.is_compiled = keras.backend.backend() == "jax"

    def array(self, data: Any) -> Any:
        """To a tensor of the backend."""
        if type(data) is np.ndarray:
            data = within(data, self.widest)
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
        """As the backend itself; ``keras.ops.argmax`` ranks -0 below 0, and is slow by it."""
        backend = keras.backend.backend()
        if backend == "jax":
            scores, axis = ops.reshape(scores, three_dimensions(scores.shape, axis)), 1
            xp: Any = sys.modules["jax.numpy"]
            return xp.argmax(scores, axis), xp.max(scores, axis)
        if backend == "torch":
            best, labels = scores.max(axis)
            return labels, best
        return super().argmax(scores, axis)

    def total(self, condition: Any) -> Any:
        """A sum of ones."""
        return ops.reshape(_number(condition), (1,))

    def histogram(self, index: Any, length: int) -> Any:
        """A sum of ones per segment; every backend accepts a fixed length for it."""
        flat = ops.cast(ops.reshape(index, (-1,)), "int32")
        return ops.segment_sum(ops.ones_like(flat), flat, num_segments=length)

    def sums(self, index: Any, weights: Any, length: int) -> Any:
        """A sum of the weights per segment."""
        return ops.segment_sum(weights, index, num_segments=length)

    def real(self, values: Any, bits: int) -> Any:
        """A cast."""
        return ops.cast(values, f"float{bits}")


@keras.saving.register_keras_serializable(package="segiou")
class SegmentationScores(keras.metrics.Metric):
    """Mean IoU and other scores of everything since the last reset.

    Counts are exact. Logged scores are computed from them in float32 inside the
    compiled step, which cannot raise errors. If undeclared values were counted,
    the scores are NaN and :meth:`confusion_matrix` raises an error that names the
    value.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.HookOptions`; or a
        :class:`segiou.ScoreHistogram`, to count scores in histograms like it, without regions.
        ``scores`` is ``"mean_iou"`` or, of histograms, ``"average_precision"`` by default.
        With one name, the result is a scalar; with several names, or a per-class score such as
        ``"iou"``, it is a dict of scalars. ``axis`` is -1 by default.
    name : str, optional
        Name of the metric, which also precedes the keys of several scores: ``val_fg/mean_iou``
        for ``name="fg"``. A model with two metrics of several scores needs it.
    dtype : optional
        Has no effect, because counts are integers and scores float32.
    """

    def __init__(
        self,
        labels: Any,
        *,
        name: str | None = None,
        dtype: Any = None,
        **options: Unpack[HookOptions],
    ) -> None:
        super().__init__(name=name or "segmentation_scores", dtype=dtype)
        options.setdefault("axis", -1)
        scoring = scoring_of(SegmentationScores, labels, "mean_iou", options, kind=HookOptions)
        self.scoring: Any = scoring
        #: Precedes the keys of several scores.
        self._prefix = f"{name}/" if name else ""
        #: ModelCheckpoint and EarlyStopping choose their mode by it.
        self._direction = "up" if self.scoring.higher_is_better else "down"
        self._is_checked = False
        self._tables: CodeTables | CompiledScores
        if isinstance(self.scoring, HistogramScoring):
            self._tables = CompiledScores(_Operations(), self.scoring.empty())
        else:
            self._tables = CodeTables(_Operations(), Encoding.of_classes(self.scoring.options))
        cells = self._tables.cells
        # Keras sums each of these over the devices of a distributed model.
        sizes = {"low": (cells,), "high": (cells,), "batches": (), "refused": (2,)}
        self.low, self.high, self.batches, self.refused, self.largest, self.met = (
            self.add_variable(shape, "zeros", dtype="int32", name=name)
            for name, shape in {**sizes, "largest": (2,), "met": (2,)}.items()
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        y_true : array of int, bool or float
            Labels, which may be floats if they are whole numbers; or one-hot classes.
        y_pred : array
            Labels, or scores with a class axis.
        sample_weight : array of bool, int or float, optional
            1 for pixels, or images if the shape is (N,), that count, and 0 for
            others. Other weights make the scores NaN, because pixels are counted.
        """
        if not self._is_checked:
            self._check_keys()
        truth, pred = self._tables.ops.array(y_true), self._tables.ops.array(y_pred)
        truth, wrong = self._labels(truth, pred)
        truth, pred, decision = self.scoring.read(truth, pred)
        limit = MOST_PIXELS if isinstance(self._tables, CompiledScores) else 1 << 30
        check_pixels(tuple(size or 1 for size in truth.shape), limit)
        mask, wrong_weights = _mask_of(sample_weight, truth)
        if mask is not None and wrong is not None:
            wrong = ops.reshape(wrong, ops.shape(truth)) & mask
        count = self._on_host(truth, pred, mask, decision)
        if count is None:
            count = self._tables.count(truth, pred, mask=mask, **decision)
        low, high = carry(self.low.value + count.sums, self.high.value)
        self.low.assign(low)
        self.high.assign(high)
        self.batches.assign(self.batches.value + 1)
        if wrong is not None or wrong_weights is not None:
            refused = ops.stack([_number(one) for one in (wrong, wrong_weights)])
            self.refused.assign(ops.minimum(self.refused.value + refused, 1 << 30))
        self._remember(count.maxima)

    def _on_host(self, truth: Any, pred: Any, mask: Any, how: dict[str, Any]) -> DeviceCount | None:
        """Counts of eager tensors in the host's memory, by compiled routines; None for others.

        Values that raise are counted by the operations of Keras, to be reported later.
        """
        tables = self._tables
        if isinstance(tables, CompiledScores) or not (_is_eager(truth) and _is_eager(pred)):
            return None
        counter = self.scoring.empty()
        table = tables.encoding.empty_table()
        try:
            counter._count_into(table, truth, pred, mask=mask, **how)
        except (UndeclaredValuesError, NanScoresError):
            return None
        sums = np.append(table.ravel(), 0).astype(np.int32)
        maxima = np.full(2, NONE_MET, np.int32)
        return DeviceCount(tables.ops, *map(ops.convert_to_tensor, (sums, maxima)))

    def _labels(self, truth: Any, pred: Any) -> tuple[Any, Any]:
        """Labels as integers, and whether the truth is neither a whole number nor one-hot."""
        scoring = self.scoring
        has_scores = scoring.threshold is None and "float" in dtype_name(pred)
        has_axis = has_scores and scoring.axis is not None
        has_axis = has_axis and len(truth.shape) == len(pred.shape) > 1
        if has_axis and truth.shape[scoring.axis] == scoring.options.num_classes:
            return self._labels_of_one_hot(ops.cast(truth, "float32"))
        if "float" not in dtype_name(truth):
            return truth, None
        values = ops.cast(truth, "float32")
        wrong = values != ops.round(values)
        limit = LARGEST_FLOAT if self._tables.ops.widest == 32 else 1 << 62
        whole = ops.where(wrong, ops.zeros_like(values), ops.clip(values, -limit, limit))
        return ops.cast(whole, f"int{self._tables.ops.widest}"), wrong

    def _labels_of_one_hot(self, truth: Any) -> tuple[Any, Any]:
        axis = self.scoring.axis
        values = [label.values[0] for label in self.scoring.options.labels.classes]
        is_one = (ops.max(truth, axis=axis) == 1) & (ops.sum(truth, axis=axis) == 1)
        labels = ops.take(ops.convert_to_tensor(values), ops.argmax(truth, axis=axis))
        return labels, ~is_one

    def _remember(self, maxima: Any) -> None:
        """Keep the largest undeclared values, and whether there were any."""
        before, now = self.met.value > 0, maxima > NONE_MET
        largest = ops.where(before, ops.maximum(self.largest.value, maxima), maxima)
        self.largest.assign(ops.where(now, largest, self.largest.value))
        self.met.assign(ops.cast(before | now, "int32"))

    def result(self) -> Any:
        """The scores: a scalar or a dict of scalars; NaN if undefined."""
        known = self._scores_in_graph()
        only = self.scoring.only
        return known[only] if only else {self._prefix + key: one for key, one in known.items()}

    def _keys(self) -> set[str]:
        return set() if self.scoring.only else {self._prefix + key for key in self.scoring.keys}

    def _check_keys(self) -> None:
        """Raise a ValueError if another metric of the model has the same keys."""
        self._is_checked = True
        model = next((one for one, _ in callers() if type(one).__name__ == "CompileMetrics"), None)
        for other in model.metrics if model else ():
            if other is self or not isinstance(other, SegmentationScores):
                continue
            if shared := self._keys() & other._keys():
                msg = (
                    f"two metrics return {min(shared)!r}, and Keras would keep one; pass a "
                    "different name= to each, which then precedes its keys"
                )
                raise ValueError(msg)

    def _scores_in_graph(self) -> dict[str, Any]:
        """Scores by key in compiled code; all are NaN if undeclared values were counted."""
        options = self.scoring.options
        classes = options.num_classes
        sums = ops.cast(self.high.value, "float32") * BASE + ops.cast(self.low.value, "float32")
        if isinstance(self._tables, CompiledScores):
            refused = ops.sum(ops.cast(self.refused.value, "float32"))
            return scores_of_sums(sums, refused, self._tables, self.scoring)
        whole = ops.reshape(sums[:-1], (classes + 2, classes + 1))
        table, bad = whole[:classes], sums[-1] + ops.sum(whole[-1])
        bad = bad + ops.sum(ops.cast(self.refused.value, "float32"))
        if options.unassigned == "error":
            bad = bad + ops.sum(table[:, -1])
        tp, truth = ops.diagonal(table), ops.sum(table, axis=1)
        pred = ops.sum(table[:, :-1], axis=0)
        counts = Counts.trusted(tp, pred - tp, truth - tp, ops.sum(truth) - truth - pred + tp)
        nan_if_bad = ops.where(bad > 0, float("nan"), 0.0)
        entries = self.scoring.entries().items()
        return {key: self._value(one, counts) + nan_if_bad for key, one in entries}

    def _value(self, entry: Entry, counts: Counts) -> Any:
        if entry.score in _OVERALL:
            return _OVERALL[entry.score](counts)
        function = PIXEL_SCORES[entry.score].function
        if entry.row is not None:
            return function(counts)[entry.row]
        return self.scoring.protocol.pooled_mean(function, counts, entry.include, ops)

    def confusion_matrix(self) -> ConfusionMatrix:
        """The exact counts.

        Raises
        ------
        ValueError
            If there were undeclared values, a truth that is neither whole
            numbers nor one-hot, NaN scores, or weights other than 0 and 1.
        TypeError
            If histograms are counted.
        """
        return of_kind(self._counted(), ConfusionMatrix)

    def histogram(self) -> ScoreHistogram:
        """The exact histograms; raises as :meth:`confusion_matrix`, which it replaces."""
        return of_kind(self._counted(), ScoreHistogram)

    def _counted(self) -> ConfusionMatrix | ScoreHistogram:
        # NumPy warns of copies of variables.
        low, high, refused, met, largest, batches = (
            to_host(ops.convert_to_tensor(one))
            for one in (self.low, self.high, self.refused, self.met, self.largest, self.batches)
        )
        if refused[0]:
            msg = (
                f"y_true has {plural(refused[0], 'pixel')} with neither a whole number nor one-hot "
                "classes (a single 1, otherwise 0); pass a sample_weight of 0 for such pixels"
            )
            raise ValueError(msg)
        if refused[1]:
            msg = (
                f"sample_weight has {plural(refused[1], 'value')} other than 0 and 1, but pixels "
                "can only be counted or skipped; pass this metric in metrics= instead of "
                "weighted_metrics=, so that only the loss uses the weights"
            )
            raise ValueError(msg)
        if met.max() > 1:
            msg = (
                f"undeclared values were counted on {met.max()} devices; run the model on a single "
                "device to see the values"
            )
            raise ValueError(msg)
        sums = as_int64(low, high)
        if isinstance(self._tables, CompiledScores):
            return self._tables.read(sums, largest, int(batches))
        count = read_counts(self._tables.encoding, sums, largest)
        return ConfusionMatrix.from_options(self.scoring.options).add(count, pairs=int(batches))

    def get_config(self) -> dict[str, Any]:
        """The configuration that Keras saves with a model."""
        scoring = self.scoring
        config = {
            **super().get_config(),
            "name": self._prefix[:-1] or None,
            "options": scoring.options.to_dict(),
            "scores": scoring.only or list(scoring.names),
            "axis": scoring.axis,
        }
        if isinstance(scoring, HistogramScoring):
            like = {"bins": scoring.empty().bins.kind, "activation": scoring.activation}
            return {**config, **like}
        threshold = None if scoring.threshold is None else float(scoring.threshold)
        return {**config, "protocol": asdict(scoring.protocol), "threshold": threshold}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SegmentationScores:
        """Build from a configuration of :meth:`get_config`."""
        classes = ClassOptions.from_dict(config.pop("options"))
        if "bins" in config:
            return cls(ScoreHistogram.from_options(classes, config.pop("bins")), **config)
        options = vars(classes)
        return cls(**options, protocol=Protocol(**config.pop("protocol")), **config)


def _pixel_accuracy(counts: Counts) -> Any:
    return ops.sum(counts.tp) / ops.sum(counts.truth)


def _frequency_weighted_iou(counts: Counts) -> Any:
    truth: Any = counts.truth
    weighted = ops.where(truth > 0, iou(counts) * truth, ops.zeros_like(truth))
    return ops.sum(weighted) / ops.sum(truth)


def _cohen_kappa(counts: Counts) -> Any:
    shares = _shares(counts)
    return _covariance(shares) / ops.sum(shares.truth * (shares.fn + shares.tn))


def _matthews_correlation(counts: Counts) -> Any:
    shares = _shares(counts)
    predicted = ops.sum(shares.pred)
    spread_truth = ops.sum(shares.truth * (shares.fp + shares.tn))
    spread_pred = ops.sum(shares.pred * (shares.fn + shares.tn)) + (1 - predicted) * predicted
    return _covariance(shares) / ops.sqrt(spread_truth * spread_pred)


def _shares(counts: Counts) -> Counts:
    """Shares of the pixels, whose products stay within float32."""
    pixels = ops.sum(counts.truth)
    cells = (counts.tp, counts.fp, counts.fn, counts.tn)
    return Counts.trusted(*(cell / pixels for cell in cells))


def _covariance(counts: Counts) -> Any:
    return ops.sum(counts.tp * counts.tn - counts.fp * counts.fn)


#: Scores of the data set in float32 tensors; those of classes are the functions of NumPy arrays.
_OVERALL = {
    "pixel_accuracy": _pixel_accuracy,
    "frequency_weighted_iou": _frequency_weighted_iou,
    "cohen_kappa": _cohen_kappa,
    "matthews_correlation": _matthews_correlation,
}


def _is_eager(tensor: Any) -> bool:
    """Whether a tensor has values in the host's memory."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        return False
    try:
        return framework_of(tensor) is not None and not is_on_device(tensor)
    except TypeError:  # symbolic
        return False


def _number(condition: Any) -> Any:
    if condition is None:
        return ops.zeros((), dtype="int32")
    return ops.sum(ops.cast(condition, "int32"))


def _mask_of(weight: Any, truth: Any) -> tuple[Any, Any]:
    """Which pixels count, in the shape of the truth, and which weights are neither 0 nor 1."""
    if weight is None:
        return None, None
    weight = ops.cast(ops.convert_to_tensor(weight), "float32")
    axes = len(truth.shape)
    if len(weight.shape) == axes + 1 and weight.shape[-1] == 1:
        weight = ops.squeeze(weight, -1)
    if len(weight.shape) != axes and any(size != 1 for size in weight.shape[1:]):
        msg = (
            f"sample_weight must have shape (N,) or {tuple(truth.shape)}, got {tuple(weight.shape)}"
        )
        raise ValueError(msg)
    if len(weight.shape) != axes:
        weight = ops.reshape(weight, (-1,) + (1,) * (axes - 1))
    counted = weight != 0
    return counted & ops.ones_like(truth, dtype="bool"), counted & (weight != 1)
