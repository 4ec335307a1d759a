"""What all accumulators have in common: they add up, are copied, saved and read at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_integer, check_kind
from segiou._support.text import Json, plural
from segiou.counting.counts import LARGEST, ConfusionCounts, Counts, add_exactly, sum_exactly
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from segiou.report.report import Report

_STATE_VERSION = 1


class _Part:
    """What one thread has counted."""

    __slots__ = ("cells", "pairs")

    def __init__(self, cells: NDArray[np.int64]) -> None:
        self.cells = cells
        self.pairs = 0


class Accumulator(ABC):
    """A commutative monoid of integer counts.

    An empty one merged in changes nothing, merging is associative and
    commutative, and any split of the same pairs over any number of
    accumulators, in any order, merges to the same integers.

    Threads may update one accumulator at the same time, and nothing is lost:
    each counts into a table of its own, and reading sums the tables. What is
    read while a thread counts can hold a part of its batch.
    """

    _noun: ClassVar[str]
    _classes: ClassOptions

    def _start(self, classes: ClassOptions) -> None:
        """Set the classes and begin with no counts."""
        self._classes = classes
        self._forget()

    def _forget(self) -> None:
        self._parts: dict[int, _Part] = {}
        self._is_crowded = False

    @abstractmethod
    def _empty(self) -> NDArray[np.int64]:
        """No counts, as the array that a thread adds to."""

    @abstractmethod
    def _named(self) -> dict[str, NDArray[np.int64]]:
        """The counts by name, in a form that is equal where the counts are."""

    @abstractmethod
    def _read(self, named: Mapping[str, Any]) -> NDArray[np.int64]:
        """The array of what :meth:`_named` gives, checked."""

    @classmethod
    def from_options(cls, options: ClassOptions, *own: Any, **named: Any) -> Self:
        """An empty accumulator of the given classes; does not warn again.

        Parameters
        ----------
        options : ClassOptions
            The classes, and what is ignored.
        *own, **named
            What only this kind has.
        """
        new = cls.__new__(cls)
        new._start(options, *own, **named)
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
        """C."""
        return self._classes.num_classes

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for classes that means leave out, (C,)."""
        return self._classes.include

    @property
    def pairs(self) -> int:
        """Pairs of arrays counted."""
        return sum(part.pairs for part in list(self._parts.values()))

    def _own(self) -> _Part:
        """What this thread adds to."""
        # The number of a thread that has ended is given again, so that tables do not pile up.
        thread = get_ident()
        return self._parts.get(thread) or self._parts.setdefault(thread, _Part(self._empty()))

    @property
    def _cells(self) -> NDArray[np.int64]:
        """What all threads have counted; only to be read."""
        cells = [part.cells for part in list(self._parts.values())]
        total = cells[0] if cells else self._empty()
        for more in cells[1:]:
            total = add_exactly(total, more, f"the sum of {self._noun}")
        return total

    def _add(self, cells: NDArray[np.int64], pairs: int) -> None:
        """Add counts, or none of them where a sum would leave int64."""
        largest = int(self._cells.max(initial=0)) + int(cells.max(initial=0))
        if largest > LARGEST // max(1, cells.size):
            self._check_sum(cells)
            self._is_crowded = True
        own = self._own()
        own.cells += cells
        own.pairs += pairs

    def _check_sum(self, cells: NDArray[np.int64]) -> None:
        """Refuse counts that, together with what is there, leave int64."""
        add_exactly(self._cells, cells, f"the sum of {self._noun}")

    def _difference(self, other: Self) -> str:
        """In words what keeps two from being added; empty if nothing does."""
        return self._classes.difference(other._classes)

    def merge(self, *others: Self) -> Self:
        """Add others to this one; they stay as they are.

        Parameters
        ----------
        *others : Self
            What to add.

        Returns
        -------
        Self

        Raises
        ------
        TypeError
            If one is of another kind.
        ValueError
            If classes or options differ; the message says in what.
        OverflowError
            If a count would leave int64; nothing is added then.
        """
        cells, pairs = self._empty(), 0
        for other in others:
            if not isinstance(other, self._kind()):
                msg = f"only {self._noun} can be merged, not {type(other).__name__}"
                raise TypeError(msg)
            if difference := self._difference(other):
                msg = f"cannot merge {self._noun}: {difference}"
                raise ValueError(msg)
            cells = add_exactly(cells, other._cells, f"the sum of {self._noun}")
            pairs += other.pairs
        self._add(cells, pairs)
        return self

    @classmethod
    def _kind(cls) -> type[Accumulator]:
        """The class that names the kind: subclasses of it merge with one another."""
        return next(base for base in reversed(cls.__mro__) if "_noun" in vars(base))

    def empty(self) -> Self:
        """Another one of the same classes and options, with nothing counted."""
        new = object.__new__(type(self))
        new.__dict__ |= self.__dict__
        new._forget()
        return new

    def copy(self) -> Self:
        """An independent copy."""
        return self.empty().merge(self)

    def reset(self) -> Self:
        """Forget all counts; classes and options stay."""
        self._forget()
        return self

    def __add__(self, other: object) -> Self:
        if isinstance(other, int) and other == 0:
            return self.copy()
        if not isinstance(other, self._kind()):
            return NotImplemented
        return self.copy().merge(other)  # type: ignore[arg-type]

    # sum() starts from 0, which stands for no counts at all.
    __radd__ = __add__

    def __iadd__(self, other: object) -> Self:
        if not isinstance(other, self._kind()):
            return NotImplemented
        return self.merge(other)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, self._kind()):
            return NotImplemented
        if self.pairs != other.pairs or self._difference(other):
            return False
        mine, theirs = self._named(), other._named()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __repr__(self) -> str:
        classes = plural(self.num_classes, "class", "classes")
        return f"<{type(self).__name__}: {classes}, {plural(self.pairs, 'pair')}>"

    def state_dict(self) -> dict[str, Json]:
        """The counts and options as plain lists, strings and integers."""
        return {
            "state_version": _STATE_VERSION,
            "options": self._classes.to_dict(),
            **{name: part.tolist() for name, part in self._named().items()},
            "pairs": self.pairs,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replace the counts by saved ones.

        Parameters
        ----------
        state : mapping
            What :meth:`state_dict` gave.

        Returns
        -------
        Self

        Raises
        ------
        TypeError
            If something in it is of the wrong kind.
        ValueError
            If the state is of another version, or its classes or options differ.
        """
        saved = self.from_state_dict(state)
        if difference := self._difference(saved):
            msg = f"the saved state is of other options: {difference}"
            raise ValueError(msg)
        return self.reset().merge(saved)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Build one from a saved state alone; raises as :meth:`load_state_dict`.

        Parameters
        ----------
        state : mapping
            What :meth:`state_dict` gave.
        """
        check_kind("state", state, Mapping, _STATE)
        _check_names(state, "state_version", "options", "pairs")
        if state["state_version"] != _STATE_VERSION:
            msg = (
                f"state_version is {state['state_version']!r}, this segiou reads "
                f"{_STATE_VERSION}; save it again with the same version of segiou"
            )
            raise ValueError(msg)
        new = cls._of_state(state)
        _check_names(state, *new._named())
        new._add(new._read(state), check_integer("pairs", state["pairs"], 0))
        return new

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        """An empty one, of the classes and options of a saved state."""
        return cls.from_options(ClassOptions.from_dict(state["options"]))

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = self.from_state_dict(state).__dict__


class PixelAccumulator(Accumulator):
    """Counts of pixels, and the ratios that are made of them."""

    #: The sum over these axes is a number of pixels, and bounds every other sum of counts.
    _pixel_axes: ClassVar[tuple[int, ...]]

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
    @abstractmethod
    def tally(self) -> ConfusionCounts:
        """Everything counted so far."""

    @staticmethod
    @abstractmethod
    def _report_kind() -> type[Report]:
        """The class of reports of such counts."""

    def compute(self) -> Report:
        """The same as :meth:`report`, by the name that validation loops expect."""
        return self.report()

    def report(self, protocol: Protocol | str = "segiou", *, title: str = "") -> Report:
        """All scores, by a protocol, ready to be shown or saved.

        Parameters
        ----------
        protocol : Protocol or str, default "segiou"
            How means are made.
        title : str, default ""
            Title of the report.

        Returns
        -------
        Report
            Of channels a :class:`segiou.report.channel_report.ChannelReport`.
        """
        protocol = load_protocol(protocol)
        return self._report_kind()(
            class_names=self.class_names,
            tally=self.tally,
            pairs=self.pairs,
            protocol=protocol,
            include=protocol.include_of(self),
            groups=self.options.groups,
            title=title,
        )

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def iou(self) -> Floats:
        """IoU per class, (C,); NaN for a class in neither truth nor prediction."""
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
        """Mean IoU over the classes that are not excluded, by a protocol.

        Parameters
        ----------
        protocol : Protocol or str, default "segiou"
            How means are made.

        Returns
        -------
        float
        """
        chosen = load_protocol(protocol)
        return chosen.mean(metrics.iou, self.counts, include=chosen.include_of(self)).value

    def mean_accuracy(self) -> float:
        """Mean recall over the classes that are not excluded."""
        return float(metrics.mean(metrics.recall(self.counts), self.include))


_STATE = "a state as state_dict gives it"


def _check_names(state: Mapping[str, Any], *names: str) -> None:
    if missing := sorted(set(names) - set(state)):
        msg = f"state must be {_STATE}; it lacks {', '.join(missing)}"
        raise ValueError(msg)
