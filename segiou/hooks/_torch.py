"""Counts as torch tensors, for the frameworks that keep and reduce states as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import is_on_device, to_host
from segiou.counting.device_counts import NONE_MET, count_on_device, read_counts, sums_of_table
from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import Scoring, rule_for

__all__ = ["TorchCounter"]


class TorchCounter:
    """Counts batches into two tensors: sums, which add, and maxima, of which the largest stays."""

    def __init__(self, scoring: Scoring, axis: int = 1, threshold: float | None = None) -> None:
        self.scoring = scoring
        self.axis = axis
        self.threshold = threshold
        self._encodings = {
            decided: Encoding.of_classes(scoring.options, pred_is_index=decided)
            for decided in (False, True)
        }
        self._tables: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies build their own tables: these may be on a device that the copy is not on.
        return (TorchCounter, (self.scoring, self.axis, self.threshold))

    def empty(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Nothing counted, nothing met."""
        classes = self.scoring.options.num_classes
        sums = torch.zeros((classes + 2) * (classes + 1) + 1, dtype=torch.int64)
        return sums, torch.full((2,), NONE_MET, dtype=torch.int64)

    def count(self, truth: Any, pred: Any) -> tuple[Any, Any]:
        """Sums and maxima of a batch; on the device where the batch is."""
        how = rule_for(truth, pred, self.axis, self.threshold)
        if is_on_device(truth) or is_on_device(pred):
            self.scoring.options.check_scores(tuple(pred.shape), self.axis if how else None)
            encoding = self._encodings[bool(how)]
            counted = count_on_device(encoding, truth, pred, tables=self._tables, **how)
            return counted.sums, counted.maxima
        sums = sums_of_table(self.scoring.empty().count(truth, pred, **how))
        return torch.from_numpy(sums), self.empty()[1]

    def read(self, sums: torch.Tensor, maxima: torch.Tensor, pairs: int) -> ConfusionMatrix:
        """The confusion matrix; raises if a device met undeclared values."""
        both: Any = to_host(torch.cat([sums, maxima])).astype(np.int64)
        count = read_counts(self._encodings[False], both[:-2], both[-2:])
        return self.scoring.empty().add(count, pairs=pairs)
