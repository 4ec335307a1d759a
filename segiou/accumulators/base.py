"""Base class of accumulators: add, copy, save and read at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_integer, check_kind
from segiou._support.locks import Lockable
from segiou._support.text import Json, plural
from segiou.counting.counts import LARGEST, ConfusionCounts, Counts, add_exactly, sum_exactly
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from segiou.report.report import Report

_STATE_VERSION = 1
_STATE = "a mapping as returned by state_dict"


class Accumulator(ABC):
    """Counts that are updated, merged and saved.

    An empty one merged in changes nothing, merging is associative and
    commutative, and any split of the same pairs over any number of
    accumulators, in any order, merges to the same counts.

    Several threads may update an accumulator at the same time without losing
    counts. In a process that is forked meanwhile, a batch may be counted in part.
    """

    _noun: ClassVar[str]

    @abstractmethod
    def _forget(self) -> None:
        """Start without counts."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """The options as plain data, by name."""

    @abstractmethod
    def _difference(self, other: Self) -> str:
        """The reason why two accumulators cannot be added; empty if they can."""

    @abstractmethod
    def _join(self, others: Sequence[Self]) -> None:
        """Add the counts of others, or none of them if this raises."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Counts by name: arrays, or lists of cases as plain data, whose order has no meaning."""

    @abstractmethod
    def _fill(self, state: Mapping[str, Any]) -> None:
        """Add what :meth:`_content` described, after checks."""

    @classmethod
    @abstractmethod
    def _restored(cls, state: Mapping[str, Any]) -> Self:
        """An empty accumulator with the options of a saved state."""

    def merge(self, *others: Self) -> Self:
        """Add other accumulators to this one and return it; the others do not change.

        Parameters
        ----------
        *others : Self
            Accumulators of the same classes and options.

        Raises
        ------
        TypeError
            If an argument is a different kind of accumulator.
        ValueError
            If classes or options differ.
        OverflowError
            If a count would exceed int64. Nothing is added then.
        """
        for other in others:
            self._check_alike(other)
        self._join(others)
        return self

    def _check_alike(self, other: Self) -> None:
        """Raise unless another accumulator can be added to this one."""
        if not isinstance(other, self._kind()):
            msg = f"only {self._noun} can be merged, not {type(other).__name__}"
            raise TypeError(msg)
        if difference := self._difference(other):
            msg = f"cannot merge {self._noun}: {difference}"
            raise ValueError(msg)

    @classmethod
    def _kind(cls) -> type[Accumulator]:
        """The class whose subclasses can be merged with one another."""
        return next(base for base in cls.__mro__ if "_noun" in vars(base))

    def empty(self) -> Self:
        """A new accumulator of the same classes and options, without counts."""
        new = object.__new__(type(self))
        new.__dict__ |= self.__dict__
        new._forget()
        return new

    def copy(self) -> Self:
        """An independent copy."""
        return self.empty().merge(self)

    def reset(self) -> Self:
        """Discard all counts but keep classes and options."""
        self._forget()
        return self

    def __add__(self, other: object) -> Self:
        if isinstance(other, int) and other == 0:
            return self.copy()
        if not isinstance(other, self._kind()):
            return NotImplemented
        return self.copy().merge(other)  # type: ignore[arg-type]

    # sum() starts from 0.
    __radd__ = __add__

    def __iadd__(self, other: object) -> Self:
        if not isinstance(other, self._kind()):
            return NotImplemented
        return self.merge(other)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, self._kind()):
            return NotImplemented
        if self._difference(other):
            return False
        mine, theirs = self._content(), other._content()
        return all(_equal(mine[name], theirs[name]) for name in mine)

    def state_dict(self) -> dict[str, Json]:
        """The counts and options as plain lists, strings and numbers."""
        state = {"state_version": _STATE_VERSION, **self._settings(), **self._content()}
        return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replace the counts with those of a saved state; returns itself.

        Parameters
        ----------
        state : mapping
            As returned by :meth:`state_dict`.

        Raises
        ------
        TypeError
            If a value in it has a wrong type.
        ValueError
            If the state has a different version, or its classes or options differ.
        """
        saved = self.from_state_dict(state)
        if difference := self.empty()._difference(saved):
            msg = f"the saved state has different options: {difference}"
            raise ValueError(msg)
        return self.reset().merge(saved)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Build an accumulator from a saved state; raises as :meth:`load_state_dict`.

        Parameters
        ----------
        state : mapping
            As returned by :meth:`state_dict`.
        """
        check_kind("state", state, Mapping, _STATE)
        if (version := state.get("state_version", _STATE_VERSION)) != _STATE_VERSION:
            msg = (
                f"expected state_version {_STATE_VERSION}, got {version!r}; save the state again "
                "with this version of segiou"
            )
            raise ValueError(msg)
        try:
            new = cls._restored(state)
            new._fill(state)
        except KeyError as error:
            msg = f"state must be {_STATE}; missing: {error.args[0]}"
            raise ValueError(msg) from None
        return new


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, list):
        return sorted(map(repr, mine)) == sorted(map(repr, theirs))
    return np.array_equal(mine, theirs)


class _Part(Lockable):
    """The counts of one thread."""

    __slots__ = ("cells", "pairs")

    def __init__(self, cells: NDArray[np.int64]) -> None:
        super().__init__()
        self.cells = cells
        self.pairs = 0


class TableAccumulator(Accumulator):
    """Base class of accumulators whose counts are one table of int64.

    Each thread has its own table, and reading sums the tables. A reader sees
    every batch either completely or not at all.
    """

    _classes: ClassOptions

    def _start(self, classes: ClassOptions) -> None:
        """Set the classes and start without counts."""
        self._classes = classes
        self._forget()

    def _forget(self) -> None:
        self._parts: dict[int, _Part] = {}
        self._is_crowded = False

    @abstractmethod
    def _empty(self) -> NDArray[np.int64]:
        """An array of zeros that a thread adds its counts to."""

    @abstractmethod
    def _arrays_by_name(self, cells: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Counts by name, in a form that is equal for equal counts."""

    @abstractmethod
    def _read(self, arrays: Mapping[str, Any]) -> NDArray[np.int64]:
        """The checked array of a result of :meth:`_arrays_by_name`."""

    @classmethod
    def from_options(cls, options: ClassOptions, *own: Any, **more: Any) -> Self:
        """Build an empty accumulator from class options, without repeating their warnings.

        Parameters
        ----------
        options : ClassOptions
            The classes and the ignored values.
        *own, **more
            Further options of this class.
        """
        check_kind("options", options, ClassOptions, "ClassOptions; to pass the classes, call it")
        new = cls.__new__(cls)
        new._start(options, *own, **more)
        return new

    @property
    def labels(self) -> LabelSet:
        """The classes."""
        return self._classes.labels

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return self.labels.class_names

    @property
    def num_classes(self) -> int:
        """Number of classes, C."""
        return self._classes.num_classes

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for classes that are excluded from means, (C,)."""
        return self._classes.include

    @property
    def pairs(self) -> int:
        """Pairs of arrays counted."""
        with self._locked_parts() as parts:
            return sum(part.pairs for part in parts)

    def _own(self) -> _Part:
        """The counts of this thread."""
        # Python reuses the ids of threads that have ended, so tables do not accumulate.
        thread = get_ident()
        return self._parts.get(thread) or self._parts.setdefault(thread, _Part(self._empty()))

    @contextmanager
    def _locked_parts(self) -> Iterator[list[_Part]]:
        """The counts of all threads, while none of them adds a batch."""
        with ExitStack() as stack:
            parts = list(self._parts.values())  # in the same order for every reader
            for part in parts:
                stack.enter_context(part.lock)
            yield parts

    def _snapshot(self) -> tuple[NDArray[np.int64], int]:
        """A copy of the counts and the number of pairs at one moment."""
        with self._locked_parts() as parts:
            total = parts[0].cells.copy() if parts else self._empty()
            for part in parts[1:]:
                total = add_exactly(total, part.cells, f"the sum of {self._noun}")
            return total, sum(part.pairs for part in parts)

    @property
    def _cells(self) -> NDArray[np.int64]:
        """A copy of the counts of all threads."""
        return self._snapshot()[0]

    def _add(self, cells: NDArray[np.int64], pairs: int) -> None:
        """Add counts, or none of them where a sum would leave int64."""
        largest = int(self._cells.max(initial=0)) + int(cells.max(initial=0))
        if largest > LARGEST // max(1, cells.size):
            self._check_sum(cells)
            self._is_crowded = True
        part = self._own()
        with part.lock:
            part.cells += cells
            part.pairs += pairs

    def _check_sum(self, cells: NDArray[np.int64]) -> None:
        """Raise an OverflowError if the sum of these and all earlier counts exceeds int64."""
        add_exactly(self._cells, cells, f"the sum of {self._noun}")

    def _settings(self) -> dict[str, Any]:
        return {"options": self._classes.to_dict()}

    def _difference(self, other: Self) -> str:
        return self._classes.difference(other._classes)

    def _join(self, others: Sequence[Self]) -> None:
        cells, pairs = self._empty(), 0
        for other in others:
            more, number = other._snapshot()
            cells = add_exactly(cells, more, f"the sum of {self._noun}")
            pairs += number
        self._add(cells, pairs)

    def _content(self) -> dict[str, Any]:
        cells, pairs = self._snapshot()
        return {**self._arrays_by_name(cells), "pairs": pairs}

    def _fill(self, state: Mapping[str, Any]) -> None:
        self._add(self._read(state), check_integer("pairs", state["pairs"], 0))

    @classmethod
    def _restored(cls, state: Mapping[str, Any]) -> Self:
        return cls.from_options(ClassOptions.from_dict(state["options"]))

    def __repr__(self) -> str:
        classes = plural(self.num_classes, "class", "classes")
        return f"<{type(self).__name__}: {classes}, {plural(self.pairs, 'pair')}>"

    def __getstate__(self) -> dict[str, Any]:
        # A subclass may have attributes of its own; cached ones are computed again.
        ours, kind = vars(self._restored(self._settings())), type(self)
        own = {
            name: value
            for name, value in vars(self).items()
            if not (name in ours or isinstance(getattr(kind, name, None), cached_property))
        }
        return {**self.state_dict(), "own": own} if own else self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**vars(self.from_state_dict(state)), **state.get("own", {})}


class PixelAccumulator(TableAccumulator):
    """Base class of pixel counts, with the scores computed from them."""

    #: The sum over these axes is a number of pixels, which bounds every other sum of counts.
    _pixel_axes: ClassVar[tuple[int, ...]]
    _has_matrix: ClassVar[bool] = True

    def _check_sum(self, cells: NDArray[np.int64]) -> None:
        super()._check_sum(cells)
        name = f"the pixels of {self._noun}"
        here, more = (sum_exactly(x, self._pixel_axes, name) for x in (self._cells, cells))
        add_exactly(here, more, name)

    @property
    def options(self) -> ClassOptions:
        """The classes and how they are counted."""
        return self._classes

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """TP, FP, FN and TN per class, each of shape (C,)."""

    @property
    def tally(self) -> ConfusionCounts:
        """All counts so far; a copy."""
        return self._tally(self._cells)

    @abstractmethod
    def _tally(self, cells: NDArray[np.int64]) -> ConfusionCounts:
        """View the counts of a snapshot as confusion counts."""

    def compute(self) -> Report:
        """The same as :meth:`report`, under the usual name in validation loops."""
        return self.report()

    def report(self, protocol: Protocol | str = "segiou", *, title: str = "") -> Report:
        """All scores under a protocol, as a report to show or save.

        Parameters
        ----------
        protocol : Protocol or str, default "segiou"
            How means are computed.
        title : str, default ""
            Title of the report.

        Returns
        -------
        Report
            For channels, a :class:`segiou.report.channel_report.ChannelReport`.
        """
        from segiou.report.channel_report import ChannelReport
        from segiou.report.report import Report

        check_kind("title", title, str, "text")
        protocol = load_protocol(protocol)
        cells, pairs = self._snapshot()
        tally = self._tally(cells)
        return (Report if self._has_matrix else ChannelReport)(
            class_names=self.class_names,
            tally=protocol.tally_of(tally),
            counted=tally,
            pairs=pairs,
            protocol=protocol,
            include=protocol.include_of(self),
            groups=self.options.groups,
            title=title,
        )

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def iou(self) -> Floats:
        """IoU per class, (C,); NaN for an absent class."""
        return metrics.iou(self.counts)

    def dice(self) -> Floats:
        """Dice per class, (C,)."""
        return metrics.dice(self.counts)

    def precision(self) -> Floats:
        """Precision per class, (C,)."""
        return metrics.precision(self.counts)

    def recall(self) -> Floats:
        """Recall per class, (C,)."""
        return metrics.recall(self.counts)

    def mean_iou(self, protocol: Protocol | str = "segiou") -> float:
        """Mean IoU over the classes that are not excluded, under a protocol.

        Parameters
        ----------
        protocol : Protocol or str, default "segiou"
            How means are computed.
        """
        return self.report(protocol)._mean(metrics.iou).value

    def mean_dice(self, protocol: Protocol | str = "segiou") -> float:
        """Mean Dice over the classes that are not excluded, under a protocol.

        Parameters
        ----------
        protocol : Protocol or str, default "segiou"
            How means are computed.
        """
        return self.report(protocol)._mean(metrics.dice).value

    def mean_accuracy(self) -> float:
        """Mean recall over the classes that are not excluded."""
        return float(metrics.mean(metrics.recall(self.counts), self.include))
