"""Segmentation scores for the Hugging Face Trainer, and ``evaluate``'s mean_iou."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from segiou.hooks._scoring import Scores, Scoring, missing

try:
    import torch
    from accelerate.state import GradientState
    from transformers import EvalPrediction
except ImportError as error:
    raise missing("transformers and accelerate", "huggingface") from error

from segiou.hooks.evaluate import mean_iou
from segiou.metrics.protocols import Protocol
from segiou.report.formats import DEFAULT

__all__ = ["ComputeMetrics", "mean_iou", "preprocess_logits_for_metrics"]

#: What the Trainer pads labels with where images differ in size.
_PADDING = -100


def preprocess_logits_for_metrics(logits: Any, labels: Any) -> torch.Tensor:
    """Upsample logits bilinearly to the labels' size and take argmax: class indices of 32 bits.

    It works on one image after the other, so that no upsampled copy of all logits is made.

    Parameters
    ----------
    logits : array_like
        Scores of the model, (N, C, h, w), or a tuple that begins with them.
    labels : array_like
        Labels of the batch, (N, H, W).

    Returns
    -------
    torch.Tensor
    """
    scores = torch.as_tensor(logits[0] if isinstance(logits, (tuple, list)) else logits)
    size = tuple(labels.shape[-2:])
    pred = torch.empty((len(scores), *size), dtype=torch.int32, device=scores.device)
    for i in range(len(scores)):
        image = scores[i : i + 1]
        if tuple(image.shape[-2:]) != size:
            image = torch.nn.functional.interpolate(
                image, size=size, mode="bilinear", align_corners=False
            )
        pred[i] = image[0].argmax(0)
    return pred


class ComputeMetrics:
    """``compute_metrics`` of a Trainer, with ``batch_eval_metrics`` and without.

    Each evaluation starts with no counts, also after an evaluation that was
    interrupted (the hook recognises the new one by its data loader).

    Parameters
    ----------
    labels, **options
        The classes and the options of :class:`segiou.ConfusionMatrix`.
    ignore : int, str or iterable of them
        Truth values whose pixels are dropped; the Trainer's padding, -100, always is.
    scores, protocol
        Which scores to give, those of classes as ``iou_road``; the protocol of the means.

    Attributes
    ----------
    counted : ConfusionMatrix
        The counts of the current or last evaluation.
    """

    def __init__(
        self,
        labels: Any,
        *,
        ignore: int | str | Iterable[int | str] = (),
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        **options: Any,
    ) -> None:
        ignored = [ignore] if isinstance(ignore, (int, str)) else [*ignore]
        options |= {"ignore": [*ignored, _PADDING], "scores": scores, "protocol": protocol}
        self.scoring = Scoring(labels, **options)
        self.counted = self.scoring.empty()
        self._running: Any = None

    def __call__(self, eval_pred: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        """Count one batch, or all; return the scores once `compute_result` is true."""
        loader = GradientState().active_dataloader
        if self._running is None or self._running() is not loader:
            self.counted = self.scoring.empty()
        for truth, pred in _batches(eval_pred):
            truth, pred, decision = self.scoring.read(truth, pred)
            self.counted.update(truth, pred, **decision)
        if not compute_result:
            self._running = (lambda: None) if loader is None else weakref.ref(loader)
            return {}
        self._running = None
        return self.scoring.values(self.counted, separator="_")


def _batches(eval_pred: EvalPrediction) -> Iterator[tuple[Any, Any]]:
    preds: Any = eval_pred.predictions
    truths: Any = eval_pred.label_ids
    pairs = zip(truths, preds, strict=True) if isinstance(truths, list) else [(truths, preds)]
    for truth, outputs in pairs:
        pred = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        if pred.shape[-2:] != truth.shape[-2:]:
            pred = preprocess_logits_for_metrics(pred, truth)
        yield truth, pred
