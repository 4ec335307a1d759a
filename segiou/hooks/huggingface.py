"""Segmentation scores for the Hugging Face Trainer, and ``mean_iou`` of ``evaluate``."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Unpack

from segiou.hooks._reading import upsampled
from segiou.hooks._scoring import missing, scoring_of

try:
    import torch
    from accelerate.state import GradientState
    from transformers import EvalPrediction
except ImportError as error:
    raise missing("transformers and accelerate", "huggingface") from error

from segiou.hooks.evaluate import mean_iou
from segiou.hooks.hook_options import TorchOptions
from segiou.report.formats import DEFAULT

__all__ = ["ComputeMetrics", "mean_iou", "preprocess_logits_for_metrics"]

#: The value with which the Trainer pads labels if images differ in size.
_PADDING = -100


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
        Class indices.
    """
    scores = torch.as_tensor(logits[0] if isinstance(logits, (tuple, list)) else logits)
    pred = torch.empty((len(scores), *labels.shape[-2:]), dtype=torch.int32, device=scores.device)
    for i in range(len(scores)):
        pred[i] = upsampled(scores[i], tuple(labels.shape[-2:]), 0).argmax(0)
    return pred


class ComputeMetrics:
    """``compute_metrics`` of a Trainer, with or without ``batch_eval_metrics``.

    Each evaluation starts without counts, even if the previous one was
    interrupted; a new evaluation is recognised by its data loader.

    Parameters
    ----------
    labels, **options
        The classes and :class:`segiou.hooks.hook_options.TorchOptions`; ``ignore`` always includes
        the Trainer's padding, -100, and smaller logits are upsampled unless
        ``upsample=False``. Scores of classes are named ``iou_road``. If a
        :class:`segiou.ScoreHistogram` replaces the classes, logits are counted in
        histograms like it; the Trainer must then keep them, so do not pass
        ``preprocess_logits_for_metrics``.

    Attributes
    ----------
    counted : ConfusionMatrix or ScoreHistogram
        Counts of the current or last evaluation.
    """

    def __init__(self, labels: Any, **options: Unpack[TorchOptions]) -> None:
        ignore = options.get("ignore", ())
        ignored = [ignore] if isinstance(ignore, (int, str)) else [*ignore]
        options["ignore"] = [*ignored, _PADDING]
        options.setdefault("upsample", True)
        self.scoring = scoring_of(ComputeMetrics, labels, DEFAULT, options)
        self.counted: Any = self.scoring.empty()
        self._running: Any = None

    def __call__(self, eval_pred: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        """Count one batch, or all; return the scores if `compute_result` is true."""
        loader = GradientState().active_dataloader
        if self._running is None or self._running() is not loader:
            self.counted = self.scoring.empty()
        pairs = [*_batches(eval_pred)]
        # A batch of several arrays is added as a whole or, after an error, not at all.
        batch = self.counted if len(pairs) == 1 else self.scoring.empty()
        for pair in pairs:
            self.scoring.update(batch, *pair)
        if batch is not self.counted:
            self.counted.merge(batch)
        if not compute_result:
            self._running = (lambda: None) if loader is None else weakref.ref(loader)
            return {}
        self._running = None
        return self.scoring.values(self.counted, separator="_")


def _batches(eval_pred: EvalPrediction) -> Iterator[tuple[Any, Any]]:
    """Truth and prediction of the batch, or of each image if its logits are to be upsampled."""
    preds: Any = eval_pred.predictions
    truths: Any = eval_pred.label_ids
    pairs = zip(truths, preds, strict=True) if isinstance(truths, list) else [(truths, preds)]
    for truth, outputs in pairs:
        pred = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        if pred.shape[-2:] == truth.shape[-2:]:
            yield truth, pred
        else:
            yield from ((truth[i : i + 1], pred[i : i + 1]) for i in range(len(truth)))
