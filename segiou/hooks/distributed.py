"""Sums counts over processes of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from segiou._support.arguments import check_kind
from segiou._support.optional import extra_named
from segiou.accumulators.base import Accumulator
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import SparseConfusionCounts

with extra_named("segiou.hooks.distributed needs torch", "torch"):
    from torch import distributed

__all__ = ["DeferredErrors", "all_reduce"]

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
        once in an Evaluator.
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
    described, failure = None, errors.error if errors else None
    try:
        described = None if failure else _described(counted)
    except (TypeError, ValueError, OverflowError) as error:
        failure = error
    everyone = gather(described)
    if failure is not None:
        raise failure
    parts = _parts_of_all(everyone)
    if not isinstance(counted, ConfusionMatrix):
        return counted.empty().merge(*parts)
    cells, pixels, pairs = zip(*parts, strict=True)
    if (total := sum(pixels)) >= 1 << 63:
        msg = f"all processes together counted {total} pixels, more than int64 ({(1 << 63) - 1})"
        raise OverflowError(msg)
    tally = SparseConfusionCounts.summed(counted.num_classes, cells)
    return counted.empty().add(tally, pairs=sum(pairs))


def _parts_of_all(everyone: list[Any]) -> tuple[Any, ...]:
    """The counts of all processes; ValueError on all of them if one failed or differs.

    If one process raises, all of them do, so that none waits for another.
    """
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
    check_alike(options)
    return parts


def check_alike(options: Sequence[Any]) -> None:
    """Raise a ValueError if classes or options differ between processes."""
    if other := _other(options):
        msg = f"the classes or options of process {other} differ from those of process 0"
        raise ValueError(msg)


def _described(counted: Any) -> tuple[str, Any, Any]:
    """Type and options, which must be equal on all processes, and the counts."""
    check_kind("counted", counted, Accumulator, "an accumulator, such as a ConfusionMatrix")
    parts = counted
    if isinstance(counted, ConfusionMatrix):
        parts = counted.tally.cells, counted.pixels, counted.pairs
    return counted._kind().__name__, counted.empty()._settings(), parts


def _other(values: Sequence[Any]) -> int:
    """The first process whose value differs from that of process 0; 0 if there is none."""
    return next((i for i, value in enumerate(values) if value != values[0]), 0)
