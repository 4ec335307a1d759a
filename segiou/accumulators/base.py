"""What all accumulators of counts have in common: they add up, and are read at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_kind
from segiou.counting.counts import Counts
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats

__all__ = ["Accumulator"]

_STATE_VERSION = 1


class Accumulator(ABC):
    """A commutative monoid of integer counts, and the scores that are made of them.

    An empty one merged in changes nothing, merging is associative and
    commutative, and any split of the same pairs over any number of
    accumulators, in any order, merges to the same integers.

    Attributes
    ----------
    options : ClassOptions
        The classes and how they are counted.
    pairs : int
        Pairs of arrays counted.
    """

    _noun: ClassVar[str]
    options: ClassOptions
    pairs: int

    @abstractmethod
    def _start(self, options: ClassOptions) -> None:
        """Set the options and begin with no counts."""

    @abstractmethod
    def _parts(self) -> dict[str, NDArray[np.int64]]:
        """Everything counted so far, in a form that is equal where the counts are."""

    @abstractmethod
    def _add_parts(self, parts: Mapping[str, Any]) -> None:
        """Add what :meth:`_parts` of another gave; a wrong shape is a ValueError."""

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """TP, FP, FN and TN per class, each of shape (C,)."""

    @classmethod
    def from_options(cls, options: ClassOptions) -> Self:
        """An empty accumulator of the given classes; does not warn again."""
        new = cls.__new__(cls)
        new._start(options)
        return new

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return self.options.labels.class_names

    @property
    def num_classes(self) -> int:
        """C."""
        return self.options.num_classes

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for classes that means leave out, (C,)."""
        return self.options.include

    def merge(self, *others: Self) -> Self:
        """Add others to this one; they stay as they are.

        Raises
        ------
        TypeError
            If one is of another kind.
        ValueError
            If classes or options differ; the message says in what.
        """
        for other in others:
            if not isinstance(other, self._kind()):
                msg = f"only {self._noun} can be merged, not {type(other).__name__}"
                raise TypeError(msg)
            if difference := self.options.difference(other.options):
                msg = f"cannot merge {self._noun}: {difference}"
                raise ValueError(msg)
        for parts, pairs in [(other._parts(), other.pairs) for other in others]:
            self._add_parts(parts)
            self.pairs += pairs
        return self

    @classmethod
    def _kind(cls) -> type[Accumulator]:
        """The class that names the kind: subclasses of it merge with one another."""
        return next(base for base in reversed(cls.__mro__) if "_noun" in vars(base))

    def copy(self) -> Self:
        """An independent copy."""
        return type(self).from_options(self.options).merge(self)

    def reset(self) -> Self:
        """Forget all counts; classes and options stay."""
        self._start(self.options)
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
        if self.pairs != other.pairs or self.options.difference(other.options):
            return False
        mine, theirs = self._parts(), other._parts()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def state_dict(self) -> dict[str, Any]:
        """The counts and options as plain lists, strings and integers."""
        return {
            "state_version": _STATE_VERSION,
            "options": self.options.to_dict(),
            **{name: part.tolist() for name, part in self._parts().items()},
            "pairs": self.pairs,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replace the counts by saved ones.

        Raises
        ------
        ValueError
            If the state is of another version, or its classes or options differ.
        """
        _check_state(state)
        if state.get("state_version") != _STATE_VERSION:
            msg = (
                f"state_version is {state.get('state_version')!r}, this segiou reads "
                f"{_STATE_VERSION}; save it again with the same version of segiou"
            )
            raise ValueError(msg)
        if difference := self.options.difference(ClassOptions.from_dict(state["options"])):
            msg = f"the saved state is of other options: {difference}"
            raise ValueError(msg)
        self.reset()._add_parts(state)
        self.pairs = int(state["pairs"])
        return self

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Build one from a saved state alone."""
        _check_state(state)
        return cls.from_options(ClassOptions.from_dict(state["options"])).load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._start(ClassOptions.from_dict(state["options"]))
        self.load_state_dict(state)

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
        """Mean IoU over the classes that are not excluded, by a protocol."""
        rule = load_protocol(protocol)
        return rule.mean(metrics.iou, self.counts, include=rule.include_of(self)).value

    def mean_accuracy(self) -> float:
        """Mean recall over the classes that are not excluded."""
        return float(metrics.mean(metrics.recall(self.counts), self.include))


def _check_state(state: object) -> None:
    wanted = "a state as state_dict gives it"
    check_kind("state", state, Mapping, wanted)
    if isinstance(state, Mapping) and (missing := {"state_version", "options"} - set(state)):
        msg = f"state must be {wanted}; it lacks {' and '.join(sorted(missing))}"
        raise ValueError(msg)
