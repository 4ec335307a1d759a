"""Counts batches into PyTorch tensors and sums counts over processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from segiou._support.arguments import check_kind
from segiou.accumulators.base import Accumulator
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import is_on_device
from segiou.counting.counts import ConfusionCounts, SparseConfusionCounts
from segiou.counting.device_counts import NONE_MET, count_on_device, read_counts
from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import MatrixScoring, Scoring, missing
from segiou.hooks.images import ImageCounts

try:
    import torch
    from torch import distributed
    from torch.nn.functional import pad
except ImportError as error:
    raise missing("torch", "torch", module="distributed") from error

__all__ = ["DeferredErrors", "ImageCounts", "all_reduce"]

Counted = TypeVar("Counted", bound=Accumulator)


class DeferredErrors:
    """Keeps the error of a process in a loop, so that all processes raise in :func:`all_reduce`.

    A process that raises in the loop would leave the others waiting for it. Count batches inside
    ``with errors:``, and pass the object to `all_reduce`. The first TypeError or ValueError is
    kept, and the loop continues. Use a new object for each epoch. If there is only one process,
    errors are raised at once.

    Examples
    --------
    >>> from segiou import ConfusionMatrix
    >>> cm, errors = ConfusionMatrix(2), DeferredErrors()
    >>> for truth, pred in [([0, 1], [0, 0])]:
    ...     with errors:
    ...         _ = cm.update(truth, pred)
    >>> all_reduce(cm, errors=errors).pixels
    2
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        if not (isinstance(error, (TypeError, ValueError)) and is_distributed()):
            return False
        self.error = self.error or error
        return True


def all_reduce(
    counted: Counted,
    group: distributed.ProcessGroup | None = None,
    *,
    errors: DeferredErrors | None = None,
) -> Counted:
    """Sum the counts of all processes; every process must call this and gets the result.

    Parameters
    ----------
    counted : Accumulator
        Counts of this process, such as a ConfusionMatrix, PanopticCounts or
        Evaluator; not modified. An image that several processes have seen counts
        once in an ImageCounts.
    group : ProcessGroup, optional
        The processes; all of them by default.
    errors : DeferredErrors, optional
        Errors of the loop of this process.

    Returns
    -------
    Accumulator
        The sum, as a new object; `counted` itself if there is only one process.

    Raises
    ------
    TypeError, ValueError
        On all processes, if types, classes or options differ between processes, or
        if one process counted undeclared values or has an error in `errors`.
    OverflowError
        On all processes, if the total number of pixels exceeds int64.
    """
    if not is_distributed():
        return counted

    def gather(item: Any) -> list[Any]:
        everyone: list[Any] = [None] * distributed.get_world_size(group)
        distributed.all_gather_object(everyone, item, group=group)
        return everyone

    return add_up(counted, gather, errors)


def is_distributed() -> bool:
    """Whether this process is one of several."""
    is_running = distributed.is_available() and distributed.is_initialized()
    return bool(is_running and distributed.get_world_size() > 1)


def add_up(
    counted: Counted, gather: Callable[[Any], list[Any]], errors: DeferredErrors | None = None
) -> Counted:
    """The sum over processes, as a new object; `gather` returns the items of all processes."""
    own, own_error = None, errors.error if errors else None
    try:
        own = None if own_error else _described(counted)
    except (TypeError, ValueError, OverflowError) as error:
        own_error = error
    everyone = gather(own)
    if own_error is not None:
        raise own_error
    # If one process raises, all of them do, so that none waits for another.
    if None in everyone:
        broken = everyone.index(None)
        msg = f"process {broken} could not read its counts; see the error on that process"
        raise ValueError(msg)
    kinds, options, parts = zip(*everyone, strict=True)
    if other := _other(kinds):
        msg = (
            f"process {other} passed {kinds[other]} but process 0 passed {kinds[0]}; all processes "
            "must pass the same type"
        )
        raise ValueError(msg)
    if other := _other(options):
        msg = f"the classes or options of process {other} differ from those of process 0"
        raise ValueError(msg)
    if not isinstance(counted, ConfusionMatrix):
        return counted.empty().merge(*parts)
    cells, pixels, pairs = zip(*parts, strict=True)
    if (total := sum(pixels)) >= 1 << 63:
        msg = f"all processes together counted {total} pixels, more than int64 ({(1 << 63) - 1})"
        raise OverflowError(msg)
    tally = SparseConfusionCounts.summed(counted.num_classes, cells)
    return counted.empty().add(tally, pairs=sum(pairs))


def _described(counted: Any) -> tuple[str, Any, Any]:
    """Type and options, which must be equal on all processes, and the counts."""
    check_kind("counted", counted, Accumulator, "an accumulator, such as a ConfusionMatrix")
    parts = counted
    if isinstance(counted, ConfusionMatrix):
        parts = counted.tally.cells, counted.pixels, counted.pairs
    return counted._kind().__name__, counted.empty()._settings(), parts


def _other(values: tuple[Any, ...]) -> int:
    """The first process whose value differs from that of process 0; 0 if there is none."""
    return next((i for i, value in enumerate(values) if value != values[0]), 0)


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
        counted: Any = self._counting.count(truth, pred, **how)
        batch = sums if sums.is_cpu else self.empty()[0]
        numbers = batch.numpy()
        numbers[:-1] += counted.ravel()
        numbers[-1] += 1
        return (sums if sums.is_cpu else sums + batch.to(sums.device)), maxima

    def read(self, sums: torch.Tensor, maxima: torch.Tensor) -> Any:
        """What :meth:`Scoring.values` takes, which may share memory with the tensors."""
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
            batch = sums if sums.is_cpu else self.empty()[0]
            numbers = batch.numpy()
            table = numbers[:-2].reshape(-1, self._encoding.num_classes + 1)
            self._counting._count_into(table, truth, pred, **decision)
            numbers[-1] += 1
            return (sums if sums.is_cpu else sums + batch.to(sums.device)), maxima
        tables = self._tables
        counted = count_on_device(self._encoding, truth, pred, tables=tables, **decision)
        added = pad(counted.sums.to(sums.device), (0, 1), value=1)
        largest = pad(counted.maxima.to(maxima.device), (0, len(maxima) - 2), value=NONE_MET)
        return sums + added, torch.maximum(maxima, largest)

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
