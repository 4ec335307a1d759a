"""Counts batches into PyTorch tensors."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import distributed
from torch.nn.functional import pad

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import is_on_device
from segiou.counting.counts import ConfusionCounts
from segiou.counting.device_counts import NONE_MET, count_on_device, read_counts
from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import MatrixScoring, Scoring
from segiou.hooks.distributed import DeferredErrors


class TorchCounter:
    """Counts batches into two tensors, whose sums and maxima over processes are the total.

    Sums are the counts and the number of batches. Maxima end with a process that could not count a
    batch, if any, and a digest of the options, which must be equal on all processes.
    """

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self._counting: Any = scoring.empty()
        self._failed = -1 - len(scoring.digest)  # its place in the maxima
        self._deferred = DeferredErrors()

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies build their own tables, since they may be on a different device.
        return (type(self), (self.scoring,))

    def empty(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima before the first batch."""
        cells = self._counting._empty().size
        return torch.zeros(cells + 1, dtype=torch.int64), torch.tensor([0, *self.scoring.digest])

    def check(self, maxima: Any) -> None:
        """Raise a ValueError if counts were made with different options, or not at all."""
        numbers, own = maxima.tolist(), self.scoring.digest
        if numbers[-len(own) :] != own:
            msg = (
                "the counts come from a metric with different classes or options (ignore, "
                "unassigned, pred_labels, exclude, bins, axis, activation, threshold), such as a "
                "checkpoint, another process, or a metric with shared state (compute_groups); "
                "build both metrics with the same arguments"
            )
            raise ValueError(msg)
        if number := numbers[self._failed]:
            if self._deferred.error is not None:
                raise self._deferred.error
            msg = f"process {number - 1} could not count a batch; see the error on that process"
            raise ValueError(msg)

    def add(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima after another batch.

        Sums on the host are changed in place, since a copy for many classes takes longer than
        counting an image. Of several processes, one that cannot count a batch raises in
        :meth:`check` as all others do, so that none waits for another.
        """
        deferred = self._deferred
        if deferred.error is not None and not maxima[self._failed]:
            deferred.error = None  # of an earlier epoch
        with deferred:
            return self._added(sums, maxima, truth, pred)
        maxima = maxima.clone()
        maxima[self._failed] = distributed.get_rank() + 1
        return sums, maxima

    def _added(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        truth, pred, how = self.scoring.read(truth, pred)
        return self._on_host(sums, truth, pred, how), maxima

    def _on_host(self, sums: torch.Tensor, truth: Any, pred: Any, how: Any) -> torch.Tensor:
        """Sums after a batch that is counted in the host's memory."""
        batch = sums if sums.is_cpu else self.empty()[0]
        numbers = batch.numpy()
        self._count_into(numbers[:-1], truth, pred, how)
        numbers[-1] += 1
        return sums if sums.is_cpu else sums + batch.to(sums.device)

    def _count_into(self, numbers: NDArray[Any], truth: Any, pred: Any, how: Any) -> None:
        numbers += self._counting.count(truth, pred, **how).ravel()

    def read(self, sums: torch.Tensor, maxima: torch.Tensor) -> Any:
        """The counts for :meth:`Scoring.values`, which may share memory with the tensors."""
        return self.accumulated(sums, maxima)

    def accumulated(self, sums: torch.Tensor, maxima: torch.Tensor) -> Any:
        """The counts as an accumulator."""
        self.check(maxima)
        numbers, found = sums.cpu().numpy(), self.scoring.empty()
        found._add(numbers[:-1].reshape(found._empty().shape), int(numbers[-1]))
        return found


class MatrixCounter(TorchCounter):
    """Counts label pairs, each batch on its own device.

    Maxima start with the largest undeclared values.
    """

    scoring: MatrixScoring

    def __init__(self, scoring: MatrixScoring) -> None:
        super().__init__(scoring)
        self._encoding = Encoding.of_classes(scoring.options)
        self._tables: dict[Any, Any] = {}

    def empty(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima before the first batch."""
        sums = torch.zeros(self._encoding.empty_table().size + 2, dtype=torch.int64)
        return sums, torch.tensor([NONE_MET, NONE_MET, 0, *self.scoring.digest])

    def _added(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        truth, pred, decision = self.scoring.read(truth, pred)
        if not (is_on_device(truth) or is_on_device(pred)):
            return self._on_host(sums, truth, pred, decision), maxima
        tables = self._tables
        counted = count_on_device(self._encoding, truth, pred, tables=tables, **decision)
        added = pad(counted.sums.to(sums.device), (0, 1), value=1)
        largest = pad(counted.maxima.to(maxima.device), (0, len(maxima) - 2), value=NONE_MET)
        return sums + added, torch.maximum(maxima, largest)

    def _count_into(self, numbers: NDArray[Any], truth: Any, pred: Any, how: Any) -> None:
        table = numbers[:-1].reshape(-1, self._encoding.num_classes + 1)
        self._counting._count_into(table, truth, pred, **how)

    def read(self, sums: torch.Tensor, maxima: torch.Tensor) -> ConfusionCounts:
        """The counts, which may share memory; raises if a device counted undeclared values."""
        if not sums.is_cpu:
            both = torch.cat([sums, maxima]).cpu()  # one transfer
            sums, maxima = both[: len(sums)], both[len(sums) :]
        self.check(maxima)
        return read_counts(self._encoding, sums.numpy()[:-1], maxima)

    def accumulated(self, sums: torch.Tensor, maxima: torch.Tensor) -> ConfusionMatrix:
        """The counts as a confusion matrix."""
        return self.scoring.empty().add(self.read(sums, maxima), pairs=int(sums[-1]))


def counter_of(scoring: Scoring) -> TorchCounter:
    """Return a counter of matrices or histograms."""
    if isinstance(scoring, MatrixScoring):
        return MatrixCounter(scoring)
    return TorchCounter(scoring)
