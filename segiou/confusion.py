"""The streaming accumulator: a confusion matrix that is updated, merged and read at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.classes import ClassOptions
from segiou.counting import Encoding, PairCount, decide
from segiou.counting.pairs import Unassigned
from segiou.counts import Counts, Tally
from segiou.labels import LabelSet
from segiou.metrics import Floats
from segiou.protocols import Protocol, load_protocol
from segiou.report import Report

__all__ = ["ConfusionMatrix"]

_STATE_VERSION = 1


class ConfusionMatrix:
    """A confusion matrix that counts pairs of label arrays as they come.

    It is a commutative monoid: an empty one merged in changes nothing, merging
    is associative and commutative, and any split of the same pairs over any
    number of matrices, in any order, merges to the same integers.

    Parameters
    ----------
    labels : LabelSet, str, path, sequence of str or int
        The classes: a label set, the name of a preset, a TOML file, class
        names for the values 0, 1, 2, …, or the number of classes.
    pred_labels : the same, optional
        The label set of the predictions, where they are encoded otherwise.
        Classes are matched by name.
    ignore : int, str or iterable of them
        Truth values whose pixels are dropped, in addition to the label set's.
        A class name stands for its values.
    exclude : str, int or iterable of them
        Classes, by name or index, that are left out of means but still counted.
    unassigned : {"error", "count"}
        What a prediction that names no class is on a valid pixel.

    Attributes
    ----------
    labels : LabelSet
    matrix : ndarray of int64, shape (C, C)
        ``[t, p]`` pixels of truth ``t`` predicted ``p``.
    unassigned : ndarray of int64, shape (C,)
        Pixels of each truth class whose prediction names no class.
    ignored : int
        Pixels dropped. ``matrix.sum() + unassigned.sum() + ignored == pixels``.
    pairs : int
        Pairs of arrays counted.

    Warns
    -----
    UserWarning
        If an ignored value is also a declared class: false positives on its
        pixels are then never counted, and IoU turns into recall.

    Examples
    --------
    >>> cm = ConfusionMatrix(["background", "cell"], ignore=255)
    >>> cm.update([[0, 0, 1], [1, 1, 255]], [[0, 1, 1], [1, 0, 1]]).matrix
    array([[1, 1],
           [1, 2]])
    >>> cm.iou().round(4), round(float(cm.pixel_accuracy()), 4)
    (array([0.3333, 0.5   ]), 0.6)
    >>> (cm + cm).matrix.sum(), sum([cm, cm, cm]).pairs
    (np.int64(10), 3)
    """

    def __init__(
        self,
        labels: LabelSet | str | Path | Sequence[str] | int,
        *,
        pred_labels: LabelSet | str | Path | Sequence[str] | int | None = None,
        ignore: int | str | Iterable[int | str] = (),
        exclude: int | str | Iterable[int | str] = (),
        unassigned: Unassigned = "error",
    ) -> None:
        options = ClassOptions.of(
            labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
        )
        options.warn_of_ignored_classes(stacklevel=3)
        self._set_options(options)
        self._table = np.zeros((options.num_classes, options.num_classes + 1), dtype=np.int64)
        self.ignored = 0
        self.pairs = 0

    def _set_options(self, options: ClassOptions) -> None:
        self.options = options
        self._encoding: Encoding = options.encoding()
        self._decided_encoding: Encoding = options.encoding(pred_is_index=True)

    @classmethod
    def from_options(cls, options: ClassOptions) -> Self:
        """An empty matrix of the given classes; does not warn again."""
        new = cls.__new__(cls)
        new._set_options(options)
        new._table = np.zeros((options.num_classes, options.num_classes + 1), dtype=np.int64)
        new.ignored = 0
        new.pairs = 0
        return new

    @property
    def labels(self) -> LabelSet:
        """The classes."""
        return self.options.labels

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return self.options.labels.class_names

    @property
    def num_classes(self) -> int:
        """C."""
        return self.options.num_classes

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The (C, C) matrix, rows truth; a copy."""
        return self._table[:, :-1].copy()

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class whose prediction names no class; a copy."""
        return self._table[:, -1].copy()

    @property
    def pixels(self) -> int:
        """Pixels seen, ignored ones included."""
        return int(self._table.sum()) + self.ignored

    @property
    def tally(self) -> Tally:
        """Everything counted so far, frozen."""
        return Tally.of_table(self._table.copy(), self.ignored)

    @property
    def counts(self) -> Counts:
        """TP, FP, FN and TN per class, each of shape (C,)."""
        return self.tally.counts

    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> Self:
        """Count one pair, or one batch, of label arrays.

        Parameters
        ----------
        truth : array_like of int or bool, any shape
            Labels in the label set's file values.
        pred : array_like
            Labels of the same shape; or scores, if a rule is given.
        mask : array_like of bool, optional
            True where a pixel is valid; the others count as ignored.
        argmax : int, optional
            ``pred`` holds scores, one channel a class along this axis.
        threshold : float, optional
            ``pred`` holds the score of the second of two classes; it is
            predicted where the score is above this.

        Returns
        -------
        ConfusionMatrix
            Itself.

        Raises
        ------
        TypeError, ValueError
            As :meth:`segiou.counting.Encoding.count`; the state is unchanged then.
        """
        return self.add(self.count(truth, pred, mask=mask, argmax=argmax, threshold=threshold))

    def count(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> PairCount:
        """Count a pair as :meth:`update` does, without adding it."""
        if argmax is None and threshold is None:
            return self._encoding.count(truth, pred, mask=mask)
        self.options.check_scores(np.shape(pred), argmax)
        decided = decide(pred, argmax=argmax, threshold=threshold)
        return self._decided_encoding.count(truth, decided, mask=mask)

    def add(self, count: PairCount, *, pairs: int = 1) -> Self:
        """Add what was counted elsewhere with the same options."""
        if count.table.shape != self._table.shape:
            msg = f"a table of shape {count.table.shape} does not fit {self._table.shape}"
            raise ValueError(msg)
        self._table += count.table
        self.ignored += count.ignored
        self.pairs += pairs
        return self

    def merge(self, *others: ConfusionMatrix) -> Self:
        """Add other matrices to this one; they stay as they are.

        Raises
        ------
        ValueError
            If classes or options differ; the message says in what.
        """
        for other in others:
            if not isinstance(other, ConfusionMatrix):
                msg = f"only a ConfusionMatrix can be merged, not {type(other).__name__}"
                raise TypeError(msg)
            if difference := self.options.difference(other.options):
                msg = f"cannot merge confusion matrices: {difference}"
                raise ValueError(msg)
        for other in others:
            self.add(PairCount(other._table, other.ignored), pairs=other.pairs)
        return self

    def copy(self) -> Self:
        """An independent copy."""
        new = type(self).from_options(self.options)
        return new.merge(self)

    def reset(self) -> Self:
        """Forget all counts; classes and options stay."""
        self._table[:] = 0
        self.ignored = 0
        self.pairs = 0
        return self

    def __add__(self, other: object) -> Self:
        if isinstance(other, int) and other == 0:
            return self.copy()
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        return self.copy().merge(other)

    # sum() starts from 0, which stands for the empty matrix.
    __radd__ = __add__

    def __iadd__(self, other: object) -> Self:
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        return self.merge(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        return (
            not self.options.difference(other.options)
            and np.array_equal(self._table, other._table)
            and (self.ignored, self.pairs) == (other.ignored, other.pairs)
        )

    __hash__ = None  # type: ignore[assignment]

    def state_dict(self) -> dict[str, Any]:
        """The counts and options as plain lists, strings and integers."""
        return {
            "state_version": _STATE_VERSION,
            "options": self.options.to_dict(),
            "table": self._table.tolist(),
            "ignored": self.ignored,
            "pairs": self.pairs,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replace the counts by saved ones.

        Raises
        ------
        ValueError
            If the state is of a newer version, or its classes or options differ.
        """
        if state.get("state_version") != _STATE_VERSION:
            msg = (
                f"state_version is {state.get('state_version')!r}, this segiou reads "
                f"{_STATE_VERSION}; save it again with the same version of segiou"
            )
            raise ValueError(msg)
        saved = ClassOptions.from_dict(state["options"])
        if difference := self.options.difference(saved):
            msg = f"the saved state is of other options: {difference}"
            raise ValueError(msg)
        table = np.array(state["table"], dtype=np.int64)
        return self.reset().add(PairCount(table, int(state["ignored"])), pairs=int(state["pairs"]))

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Build a matrix from a saved state alone."""
        return cls.from_options(ClassOptions.from_dict(state["options"])).load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(type(self).from_state_dict(state).__dict__)

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
        return (
            load_protocol(protocol)
            .mean(metrics.iou, self.counts, include=self.options.include)
            .value
        )

    def mean_accuracy(self) -> float:
        """Mean recall over the classes that are not excluded."""
        return float(metrics.mean(metrics.recall(self.counts), self.options.include))

    def pixel_accuracy(self) -> float:
        """Share of the valid pixels that are right."""
        return float(metrics.pixel_accuracy(self.counts))

    def compute(self) -> Report:
        """The same as :meth:`report`, by the name that validation loops expect."""
        return self.report()

    def report(self, protocol: Protocol | str = "segiou", *, title: str = "") -> Report:
        """All scores, by a protocol, ready to be shown or saved."""
        return Report(
            class_names=self.class_names,
            tally=self.tally,
            pairs=self.pairs,
            protocol=load_protocol(protocol),
            include=self.options.include,
            groups=self.options.groups,
            title=title,
        )

    def __repr__(self) -> str:
        return (
            f"<ConfusionMatrix: {self.num_classes} classes, {self.pairs} pairs, "
            f"{self.pixels} pixels, {self.ignored} ignored>"
        )

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()
