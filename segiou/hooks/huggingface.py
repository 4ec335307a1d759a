"""Segmentation scores for the Hugging Face Trainer, and ``mean_iou`` of ``evaluate``."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np

from segiou._support.optional import extra_named
from segiou.counting.arrays import as_array, dtype_name
from segiou.counting.scores import NanScoresError
from segiou.hooks._frameworks import evaluation
from segiou.hooks._reading import drop_channel, first_output, upsampled
from segiou.hooks._scoring import ChannelScoring, HistogramScoring, scoring_of

with extra_named("segiou.hooks.huggingface needs transformers and accelerate", "huggingface"):
    import torch
    from accelerate.state import GradientState
    from transformers import EvalPrediction

from segiou.hooks.evaluate import mean_iou
from segiou.hooks.hook_options import TorchOptions
from segiou.report.formats import DEFAULT

__all__ = ["ComputeMetrics", "mean_iou", "preprocess_logits_for_metrics"]

#: The value with which the Trainer pads labels if images differ in size.
_PADDING = -100
#: Stands for a pixel with a NaN score, which has no class; an error if the pixel is not ignored.
_NAN = -(1 << 31)


def preprocess_logits_for_metrics(logits: Any, labels: Any) -> torch.Tensor:
    """Upsample logits bilinearly to the size of the labels, and take the argmax.

    Images are upsampled one at a time to save memory.

    Parameters
    ----------
    logits : array_like
        Scores of the model, (N, C, h, w), or a tuple that starts with them.
    labels : array_like
        Labels of the batch, (N, H, W).

    Returns
    -------
    torch.Tensor of int32, shape (N, H, W)
        Class indices; −2³¹ at pixels with a NaN score, for which `ComputeMetrics` raises an error.

    Raises
    ------
    ValueError
        If the logits have a single channel, whose argmax is always 0.
    """
    scores = torch.as_tensor(first_output(logits))
    if scores.shape[1] == 1:
        msg = (
            f"logits of shape {tuple(scores.shape)} have a single channel, whose argmax is always "
            "0; build metrics = ComputeMetrics(..., threshold=0.0) and pass "
            "metrics.preprocess_logits_for_metrics to the Trainer"
        )
        raise ValueError(msg)
    pred = torch.empty((len(scores), *labels.shape[-2:]), dtype=torch.int32, device=scores.device)
    for i in range(len(scores)):
        best, index = upsampled(scores[i], tuple(labels.shape[-2:]), 0).max(0)
        pred[i] = index.masked_fill(best.isnan(), _NAN)
    return pred


class ComputeMetrics:
    """``compute_metrics`` of a Trainer, with or without ``batch_eval_metrics``.

    Each evaluation starts without counts, even if the previous one was
    interrupted.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.TorchOptions`; ``ignore`` always includes
        the Trainer's padding, -100, and smaller logits are upsampled unless
        ``upsample=False``. Scores of classes are named ``iou_road``. A
        :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram` in place of the classes
        counts channels that may overlap, or scores, like it; both need this object's
        `preprocess_logits_for_metrics`, or none.

    Attributes
    ----------
    counts : ConfusionMatrix, ChannelCounts or ScoreHistogram
        Counts of the current or last evaluation.
    """

    def __init__(self, labels: Any, **options: Unpack[TorchOptions]) -> None:
        ignore = options.get("ignore", ())
        ignored = [ignore] if isinstance(ignore, (int, str)) else [*ignore]
        options["ignore"] = [*ignored, _PADDING]
        options.setdefault("upsample", True)
        self.scoring = scoring_of(ComputeMetrics, labels, DEFAULT, options)
        self.counts: Any = self.scoring.empty()
        self._running: Any = None

    def preprocess_logits_for_metrics(self, logits: Any, labels: Any) -> Any:
        """Reduce logits to what is counted, for the argument of the Trainer of this name.

        Returns a label value of the predicted class in the size of the labels or, with a
        threshold, scores in it; for histograms, all logits.

        Parameters
        ----------
        logits, labels
            As for :func:`preprocess_logits_for_metrics`.

        Raises
        ------
        ValueError
            If the logits do not have one channel per class or, with a threshold, a single one.
        """
        scores = first_output(logits)
        if isinstance(self.scoring, HistogramScoring):
            return scores
        if isinstance(self.scoring, ChannelScoring):
            return upsampled(scores, (len(labels), *labels.shape[2:]))
        if self.scoring.threshold is None:
            return self._labels(scores, labels)
        labels = drop_channel(labels, 1, scores)
        if len(scores.shape) > len(labels.shape) and scores.shape[1] != 1:
            msg = (
                f"logits of shape {tuple(scores.shape)} have {scores.shape[1]} channels, expected "
                "one for a threshold; omit threshold= for one score per class"
            )
            raise ValueError(msg)
        return drop_channel(upsampled(scores, tuple(labels.shape)), 1, labels)

    def _labels(self, logits: Any, labels: Any) -> torch.Tensor:
        """A value of the predicted class of each pixel."""
        indices = preprocess_logits_for_metrics(logits, labels)
        options = self.scoring.options
        options.check_scores(tuple(logits.shape), 1)
        values = torch.as_tensor(options.decided_values, dtype=torch.int32, device=indices.device)
        return torch.where(indices == _NAN, indices, values[indices.clamp(0).long()])

    def __call__(
        self, eval_pred: EvalPrediction, compute_result: bool | None = None
    ) -> dict[str, float]:
        """Count a batch, and return the scores if `compute_result`; or count all batches."""
        current = evaluation()
        current = GradientState().active_dataloader if current is None else current
        if self._running is None or self._running() is not current:
            self.counts = self.scoring.empty()
        if compute_result is None:
            _check_sizes(eval_pred, are_channels=isinstance(self.scoring, ChannelScoring))
        pairs = [*_batches(eval_pred)]
        # A batch of several arrays is added as a whole or, after an error, not at all.
        batch = self.counts if len(pairs) == 1 else self.scoring.empty()
        for truth, pred in pairs:
            self._check_nan(truth, pred)
            self.scoring.update(batch, truth, pred)
        if batch is not self.counts:
            self.counts.merge(batch)
        if compute_result is False:
            self._running = (lambda: None) if current is None else weakref.ref(current)
            return {}
        self._running = None
        return self.scoring.values(self.counts, separator="_")

    def _check_nan(self, truth: Any, pred: Any) -> None:
        """Raise a ValueError for NaN scores that `preprocess_logits_for_metrics` has met."""
        if dtype_name(pred) not in ("int32", "int64") or not (is_nan := pred == _NAN).any():
            return
        is_ignored = np.isin(as_array(truth, "truth"), self.scoring.options.ignore)
        if number := int((as_array(is_nan, "pred") & ~is_ignored.reshape(is_nan.shape)).sum()):
            raise NanScoresError(number)


def _check_sizes(eval_pred: EvalPrediction, *, are_channels: bool) -> None:
    """Raise a ValueError for logits of images whose labels the Trainer has padded."""
    truths, preds = eval_pred.label_ids, first_output(eval_pred.predictions)
    if isinstance(truths, tuple):
        msg = (
            f"label_ids has {len(truths)} arrays; pass label_names to TrainingArguments with the "
            "name of the label maps only"
        )
        raise TypeError(msg)
    if isinstance(truths, list) or (preds.ndim <= truths.ndim and not are_channels):
        return  # batches of their own size, or labels, which are padded alike
    if truths.ndim < 2 or not truths.size or not preds.size:
        return
    are_padded = [(x[..., -1, :] == _PADDING).reshape(len(x), -1).all(1) for x in (truths, preds)]
    padded = are_padded[0] & ~are_padded[1]
    if padded.any() and not padded.all():
        msg = (
            f"{padded.sum()} of {len(truths)} label images end in rows of {_PADDING}, with which "
            f"the Trainer pads images of different heights, so logits of shape {preds.shape} do "
            "not match their sizes; pass batch_eval_metrics=True to TrainingArguments"
        )
        raise ValueError(msg)


def _batches(eval_pred: EvalPrediction) -> Iterator[tuple[Any, Any]]:
    """Truth and prediction of the batch, or of each image if its logits are to be upsampled."""
    preds: Any = eval_pred.predictions
    truths: Any = eval_pred.label_ids
    pairs = zip(truths, preds, strict=True) if isinstance(truths, list) else [(truths, preds)]
    for truth, outputs in pairs:
        pred = first_output(outputs)
        if pred.shape[-2:] == truth.shape[-2:]:
            yield truth, pred
        else:
            yield from ((truth[i : i + 1], pred[i : i + 1]) for i in range(len(truth)))
