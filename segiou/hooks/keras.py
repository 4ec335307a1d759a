"""Segmentation scores as a :class:`keras.metrics.Metric` for every backend, compiled or not."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Unpack

from segiou._support.optional import extra_named
from segiou._support.text import plural
from segiou.accumulators.channel_counts import ChannelCounts
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.arrays import to_host
from segiou.counting.device_counts import NUM_MAXIMA
from segiou.counting.device_operations import NONE_MET
from segiou.hooks._frameworks import compiled_metrics
from segiou.hooks._scoring import ChannelScoring, Counting, HistogramScoring, scoring_of
from segiou.hooks.hook_options import HookOptions
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol

with extra_named("segiou.hooks.keras needs keras and its backend, such as torch or jax", "keras"):
    import keras
    from keras import ops

from segiou.hooks._keras_counts import KerasCounts, mask_of, number_of

__all__ = ["SegmentationScores"]


@keras.saving.register_keras_serializable(package="segiou")
class SegmentationScores(Counting, keras.metrics.Metric):
    """Mean IoU and other scores of everything since the last reset.

    Counts are exact. Logged scores are computed from them in float32 inside the
    compiled step, which cannot raise errors. If undeclared values, NaN scores, a truth that is
    neither whole numbers nor one-hot, or different weights in a batch were counted, the scores
    are NaN, and :attr:`counts` raises a ValueError.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.HookOptions`; or a
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`, to count channels
        that may overlap, or scores, like it, without regions.
        ``scores`` is ``"mean_iou"`` or, of histograms, ``"average_precision"`` by default.
        The result for one overall score is a scalar, logged as ``val_mean_iou`` for
        ``scores="mean_iou"`` and ``["mean_iou"]``; that for several, or for a per-class score
        such as ``"iou"``, is a dict of scalars. ``axis`` is -1 by default.
    name : str, optional
        Name of the metric: the key of a single score, or in front of the keys of several:
        ``val_fg/mean_iou`` for ``name="fg"``. Two metrics with equal keys raise a ValueError.
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
        options.setdefault("axis", -1)
        scoring = scoring_of(SegmentationScores, labels, "mean_iou", options, kind=HookOptions)
        self.scoring: Any = scoring
        #: A single score, whose key is the name; Keras allows no "/" in it.
        self._only = scoring.keys[0] if len(scoring.keys) == 1 else ""
        self._only = "" if "/" in self._only else self._only
        super().__init__(name=name or self._only or "segmentation_scores", dtype=dtype)
        #: Precedes the keys of several scores.
        self._prefix = f"{name}/" if name else ""
        #: ModelCheckpoint and EarlyStopping read their mode from it.
        self._direction = "up" if self.scoring.higher_is_better else "down"
        self._is_checked = False
        self._counts = KerasCounts(scoring)
        cells = self._counts.cells
        # Keras sums each of these over the devices of a distributed model.
        sizes = {"low": (cells,), "high": (cells,), "batches": (), "refused": (2,)}
        most = (NUM_MAXIMA,)
        self.low, self.high, self.batches, self.refused, self.largest, self.met = (
            self.add_variable(shape, "zeros", dtype="int32", name=name)
            for name, shape in {**sizes, "largest": most, "met": most}.items()
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
            A constant, such as 1, for pixels, or images if the shape is (N,), that count, and 0
            for others; for channels also in their shape. Different weights in a batch make the
            scores NaN, because pixels are counted.
        """
        if not self._is_checked:
            self._check_keys()
        truth, pred = map(self._counts.ops.array, (y_true, y_pred))
        truth, wrong = self._counts.labels(truth, pred)
        truth, pred, decision = self.scoring.read(truth, pred)
        self._counts.check_pixels(truth.shape)
        axis = self.scoring.axis if isinstance(self.scoring, ChannelScoring) else None
        mask, wrong_weights = mask_of(sample_weight, truth, axis)
        if mask is not None and wrong is not None:
            wrong = ops.reshape(wrong, ops.shape(truth)) & mask
        count = self._counts.count(truth, pred, mask, decision)
        low, high = self._counts.add(self.low.value, self.high.value, count)
        self.low.assign(low)
        self.high.assign(high)
        self.batches.assign(self.batches.value + 1)
        if wrong is not None or wrong_weights is not None:
            refused = ops.stack([number_of(condition) for condition in (wrong, wrong_weights)])
            self.refused.assign(ops.minimum(self.refused.value + refused, 1 << 30))
        self._remember(count.maxima)

    def _remember(self, maxima: Any) -> None:
        """Keep the largest undeclared values, and whether there were any."""
        before, now = self.met.value > 0, maxima > NONE_MET
        largest = ops.where(before, ops.maximum(self.largest.value, maxima), maxima)
        self.largest.assign(ops.where(now, largest, self.largest.value))
        self.met.assign(ops.cast(before | now, "int32"))

    def result(self) -> Any:
        """The scores: a scalar or a dict of scalars; NaN if undefined."""
        self._counts.warn_of_scale(self.largest.value, self.met.value)
        known = self._counts.scores(self.low.value, self.high.value, self.refused.value)
        if self._only:
            return known[self._only]
        return {self._prefix + key: value for key, value in known.items()}

    def _keys(self, output: str) -> set[str]:
        """The logged keys; Keras puts an output of several before a single score only."""
        if self._only:
            return {f"{output}_{self.name}" if output else self.name}
        return {self._prefix + key for key in self.scoring.keys}

    def _check_keys(self) -> None:
        """Raise a ValueError if another metric of the model has the same keys."""
        self._is_checked = True
        metrics = compiled_metrics()
        mine: set[str] = next((self._keys(o) for o, metric in metrics if metric is self), set())
        for output, other in metrics:
            is_ours = isinstance(other, SegmentationScores)
            theirs = other._keys(output) if is_ours else {f"{output}_{other.name}".lstrip("_")}
            if other is not self and (shared := mine & theirs):
                msg = (
                    f"two metrics return {min(shared)!r}, and Keras would keep or rename one; pass "
                    "a different name= to each, which then precedes its keys"
                )
                raise ValueError(msg)

    def _counted(self) -> Any:
        variables = self.low, self.high, self.refused, self.met, self.largest, self.batches
        # NumPy warns of copies of variables.
        tensors = map(ops.convert_to_tensor, variables)
        low, high, refused, met, largest, batches = map(to_host, tensors)
        if refused[0]:
            msg = (
                f"y_true has {plural(refused[0], 'pixel')} with neither a whole number nor one-hot "
                "classes (a single 1, otherwise 0); pass a sample_weight of 0 for such pixels"
            )
            raise ValueError(msg)
        if refused[1]:
            msg = (
                f"sample_weight has {plural(refused[1], 'value')} other than 0 and the largest of "
                "its batch, but pixels can only be counted or skipped; pass this metric in "
                "metrics= instead of weighted_metrics=, so that only the loss uses the weights"
            )
            raise ValueError(msg)
        if (devices := met[:2].max()) > 1:
            msg = (
                f"undeclared values were counted on {devices} devices; run the model on a single "
                "device to see the values"
            )
            raise ValueError(msg)
        return self._counts.read(low, high, largest, batches)

    def __reduce__(self) -> tuple[Any, ...]:
        # Keras would pickle and copy metrics without their counts.
        arrays = [ops.convert_to_numpy(variable) for variable in self.variables]
        return _with_counts, (type(self), self.get_config(), arrays)

    def get_config(self) -> dict[str, Any]:
        """The configuration that Keras saves with a model."""
        scoring = self.scoring
        config = {
            **super().get_config(),
            "name": self._prefix[:-1] or None,
            "options": scoring.options.to_dict(),
            "scores": scoring.scores,
            "axis": scoring.axis,
        }
        if isinstance(scoring, HistogramScoring):
            like = {"bins": scoring.empty().bins.kind, "activation": scoring.activation}
            return {**config, **like}
        config |= {"protocol": asdict(scoring.protocol), "threshold": scoring.threshold}
        if isinstance(scoring.threshold, float):
            config["threshold"] = float(scoring.threshold)
        return {**config, "channels": isinstance(scoring, ChannelScoring)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SegmentationScores:
        """Build from a configuration of :meth:`get_config`."""
        config = dict(config)
        classes = ClassOptions.from_dict(config.pop("options"))
        if "bins" in config:
            return cls(ScoreHistogram.from_options(classes, config.pop("bins")), **config)
        config["protocol"] = Protocol(**config["protocol"])
        if config.pop("channels"):
            return cls(ChannelCounts.from_options(classes), **config)
        return cls(**vars(classes), **config)


def _with_counts(kind: Any, config: dict[str, Any], arrays: list[Any]) -> Any:
    """A metric of a configuration, with these values of its variables."""
    metric = kind.from_config(config)
    for variable, array in zip(metric.variables, arrays, strict=True):
        variable.assign(array)
    return metric
