"""Counts batches into PyTorch tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import distributed
from torch.nn.functional import pad

from segiou.counting.arrays import is_on_device, to_host
from segiou.counting.counts import ConfusionCounts
from segiou.counting.device_counts import NUM_MAXIMA, count_on_device, read_counts
from segiou.counting.device_operations import NONE_MET
from segiou.hooks._reading import pairs_of
from segiou.hooks._scoring import MatrixScoring, Scoring
from segiou.hooks.distributed import DeferredErrors

#: Place in the maxima of a process that could not count a batch.
_FAILED = NUM_MAXIMA


class TorchCounter:
    """Counts batches into two tensors, whose sums and maxima over processes are the total.

    Sums are the counts, the number of NaN scores and that of batches. Maxima are the largest
    undeclared values, the scale of scores, a process that could not count a batch, if any, and a
    digest of the options, which must be equal on all processes. Label pairs are counted on their
    own device.
    """

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self._counting: Any = scoring.empty()
        self._shape = self._counting._empty().shape
        self._are_pairs = isinstance(scoring, MatrixScoring)
        self._tables: dict[Any, Any] = {}
        self._deferred = DeferredErrors()

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies build their own tables, since they may be on a different device.
        return (type(self), (self.scoring,))

    def empty(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima before the first batch."""
        sums = torch.zeros(math.prod(self._shape) + 2, dtype=torch.int64)
        return sums, torch.tensor([*[NONE_MET] * NUM_MAXIMA, 0, *self.scoring.digest])

    def check(self, maxima: Any) -> None:
        """Raise a ValueError if counts were made with different options, or not at all."""
        numbers, digest = maxima.tolist(), self.scoring.digest
        if numbers[_FAILED + 1 :] != digest:
            msg = (
                "the counts come from a metric with different classes or options (ignore, "
                "unassigned, pred_labels, exclude, bins, axis, activation, threshold), such as a "
                "checkpoint, another process, or a metric with shared state (compute_groups); "
                "build both metrics with the same arguments"
            )
            raise ValueError(msg)
        if number := numbers[_FAILED]:
            if self._deferred.error is not None:
                raise self._deferred.error
            msg = f"process {number - 1} could not count a batch; see the error on that process"
            raise ValueError(msg)

    def add(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima after another batch.

        Sums on the host are changed in place, since a copy for many classes takes longer than
        counting an image. A process that cannot count a batch raises in :meth:`check` as all
        others do, so that none waits for another.
        """
        deferred = self._deferred
        if deferred.error is not None and not maxima[_FAILED]:
            deferred.error = None  # of an earlier epoch
        with deferred:
            pairs = pairs_of(truth, pred)
            if len(pairs) > 1:  # an error of one image leaves the counts unchanged
                sums = sums.clone()
            for pair in pairs:
                sums, maxima = self._count(sums, maxima, *pair)
            return sums, maxima
        maxima = maxima.clone()
        maxima[_FAILED] = distributed.get_rank() + 1
        return sums, maxima

    def _count(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        truth, pred, decision = self.scoring.read(truth, pred)
        if self._are_pairs and (is_on_device(truth) or is_on_device(pred)):
            return self._count_on_device(sums, maxima, truth, pred, decision)
        return self._count_on_host(sums, truth, pred, decision), maxima

    def _count_on_device(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any, decision: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        encoding, tables = self._counting._encoding, self._tables
        counted = count_on_device(encoding, truth, pred, tables=tables, **decision)
        added = pad(counted.sums.to(sums.device), (0, 1), value=1)
        largest = pad(
            counted.maxima.to(maxima.device), (0, len(maxima) - NUM_MAXIMA), value=NONE_MET
        )
        return sums + added, torch.maximum(maxima, largest)

    def _count_on_host(
        self, sums: torch.Tensor, truth: Any, pred: Any, decision: Any
    ) -> torch.Tensor:
        """Sums after a batch that is counted in the host's memory."""
        batch = sums if sums.is_cpu else self.empty()[0]
        numbers = to_host(batch)  # raises inside torch.func
        self._counting._count_into(numbers[:-2].reshape(self._shape), truth, pred, **decision)
        numbers[-1] += 1
        return sums if sums.is_cpu else sums + batch.to(sums.device)

    def read(self, sums: torch.Tensor, maxima: torch.Tensor) -> Any:
        """The counts for :meth:`Scoring.values`, which may share memory with the tensors."""
        if not sums.is_cpu:
            numbers = torch.cat([sums, maxima]).cpu()  # one transfer
            sums, maxima = numbers[: len(sums)], numbers[len(sums) :]
        self.check(maxima)
        numbers = sums.numpy()
        if self._are_pairs:
            return read_counts(self._counting._encoding, numbers[:-1], maxima)
        counted = self.scoring.empty()
        counted._add(numbers[:-2].reshape(self._shape), int(numbers[-1]))
        return counted

    def accumulated(self, sums: torch.Tensor, maxima: torch.Tensor) -> Any:
        """The counts as an accumulator."""
        counted = self.read(sums, maxima)
        if isinstance(counted, ConfusionCounts):
            return self.scoring.empty().add(counted, pairs=int(sums[-1]))
        return counted
