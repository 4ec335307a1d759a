"""Counts as torch tensors, for the frameworks that keep and reduce states as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import is_on_device, to_host
from segiou.counting.device_counts import NONE_MET, count_on_device, read_counts, sums_of_table
from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import Scoring

OTHER_OPTIONS = (
    "these counts were made with other classes or options (ignore, unassigned, pred_labels, "
    "exclude, axis, threshold) than this metric's: they come from a checkpoint, another process, "
    "or a metric that shares its state (compute_groups); build both with the same arguments"
)


class TorchCounter:
    """Counts batches into two tensors: sums, which add, and maxima, of which the largest stays."""

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self._counting = scoring.empty()
        self._encodings = {
            is_index: Encoding.of_classes(scoring.options, pred_is_index=is_index)
            for is_index in (False, True)
        }
        self._tables: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies build their own tables: these may be on a device that the copy is not on.
        return (TorchCounter, (self.scoring,))

    def empty(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima of no batch."""
        classes = self.scoring.options.num_classes
        sums = torch.zeros((classes + 2) * (classes + 1) + 1, dtype=torch.int64)
        return sums, torch.full((2,), NONE_MET, dtype=torch.int64)

    def options(self) -> torch.Tensor:
        """What the counts depend on beside the pairs, as a tensor to be kept with them."""
        return torch.tensor(self.scoring.digest(), dtype=torch.int64)

    def check_options(self, kept: torch.Tensor) -> None:
        """Refuse counts that were kept with other options."""
        if kept.tolist() != self.scoring.digest():
            raise ValueError(OTHER_OPTIONS)

    def count(self, truth: Any, pred: Any) -> tuple[Any, Any]:
        """Sums and maxima of a batch; on the device where the batch is."""
        truth, pred, decision = self.scoring.read(truth, pred)
        if is_on_device(truth) or is_on_device(pred):
            encoding = self._encodings[bool(decision)]
            counted = count_on_device(encoding, truth, pred, tables=self._tables, **decision)
            return counted.sums, counted.maxima
        sums = sums_of_table(self._counting.count(truth, pred, **decision))
        return torch.from_numpy(sums), self.empty()[1]

    def read(self, sums: torch.Tensor, maxima: torch.Tensor, pairs: int) -> ConfusionMatrix:
        """The confusion matrix; raises if a device met undeclared values."""
        both: Any = to_host(torch.cat([sums, maxima])).astype(np.int64)
        count = read_counts(self._encodings[False], both[:-2], both[-2:])
        return self.scoring.empty().add(count, pairs=pairs)
