"""Shared by all object scores: classes with ids, and integer rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.locks import Lockable
from segiou.accumulators.base import TableAccumulator
from segiou.counting.arrays import label_arrays
from segiou.counting.counts import counts_array
from segiou.counting.encoding import Encoding
from segiou.counting.id_pairs import count_id_pairs
from segiou.labels.class_options import ClassOptions, Labels, Unassigned, class_indices

Ints = NDArray[np.int64]
Ids = NDArray[np.integer[Any] | np.bool_]

#: Class index of pixels without a class.
VOID = -1
#: Class value that is void and no object on either side.
NO_OBJECT = -(2**31)
ID_BITS = 32
#: Held while counts and rows change or are read together. Shared by all accumulators, since a
#: lock in an accumulator could not be pickled.
LOCK = Lockable()


def pack_ids(classes: Any, ids: Any, names: tuple[str, str]) -> Ints:
    """Class value and id of each pixel packed into one number; errors use the argument names."""
    sides = label_arrays(classes, ids, names)
    for name, array, low in zip(names, sides, (-(2**31), 0), strict=True):
        if np.can_cast(array.dtype, np.int32 if low else np.uint32):
            continue
        for far in (int(array.min(initial=0)), int(array.max(initial=0))):
            if not low <= far < low + 2**ID_BITS:
                msg = f"{name} contains {far}; expected {low} to {low + 2**ID_BITS - 1}"
                raise ValueError(msg)
    codes = sides[0].astype(np.int64)
    codes <<= ID_BITS  # in place: fresh memory costs more than the arithmetic
    codes |= sides[1].astype(np.int64, copy=False)
    return codes


def shared_ids(truth: tuple[Any, Any], pred: tuple[Any, Any]) -> tuple[Ids, Ids, Ints]:
    """Packed classes and ids of either side that share pixels, and the pixels of each two."""
    return count_id_pairs(
        pack_ids(*truth, ("truth_classes", "truth_ids")),
        pack_ids(*pred, ("pred_classes", "pred_ids")),
    )


def unpack_ids(codes: NDArray[Any]) -> tuple[Ints, Ints]:
    """Class values and ids from numbers that :func:`pack_ids` packed."""
    return codes >> ID_BITS, codes & (2**ID_BITS - 1)


class ObjectCounts(TableAccumulator):
    """Integers per class, and rows of integers: one per object, or per match.

    Rows form a multiset: merging concatenates them, and their order has no meaning.
    """

    #: Names of the counts per class.
    _columns: ClassVar[tuple[str, ...]]
    #: Name of the rows, and names of their columns.
    _rows_are: ClassVar[str]
    _row: ClassVar[tuple[str, ...]]
    #: Names of further options in a saved state.
    _options: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        labels: Labels,
        *,
        pred_labels: Labels | None = None,
        ignore: int | str | Iterable[int | str] = (),
        things: Iterable[int | str] | None = None,
        exclude: int | str | Iterable[int | str] = (),
        unassigned: Unassigned = "error",
        **options: Any,
    ) -> None:
        classes = ClassOptions.of(
            labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
        )
        self._start(classes, things, **options)

    def _start(self, classes: ClassOptions, things: Iterable[int | str] | None = None) -> None:
        vars(self).pop("_encoding", None)
        self._things = np.full(classes.num_classes, things is None)
        if things is not None:
            self._things[[*class_indices("things", classes.labels, things)]] = True
        super()._start(classes)

    @classmethod
    def _restored(cls, state: Mapping[str, Any]) -> Self:
        options = {name: state.get(name, "") for name in cls._options}
        things = [int(c) for c in state.get("things", ())]
        return cls.from_options(ClassOptions.from_dict(state["options"]), things=things, **options)

    def _forget(self) -> None:
        super()._forget()
        self._added_rows: list[Ints] = []

    def _empty(self) -> Ints:
        return np.zeros((self.num_classes, len(self._columns)), dtype=np.int64)

    @property
    def _rows(self) -> Ints:
        """The distinct rows, sorted, each with its number of occurrences."""
        rows = np.concatenate([np.empty((0, len(self._row)), np.int64), *self._added_rows])
        distinct, often = np.unique(rows, axis=0, return_counts=True)
        return np.concatenate([distinct, often[:, None]], axis=1)

    def _arrays_by_name(self, cells: Ints) -> dict[str, Ints]:
        return {"counts": cells, self._rows_are: self._rows}

    def _content(self) -> dict[str, Any]:
        with LOCK.lock:
            return super()._content()

    def _read(self, arrays: Mapping[str, Any]) -> Ints:
        cells = counts_array(arrays["counts"], "counts")
        wide = np.reshape(np.array(arrays[self._rows_are], int), (-1, len(self._row) + 1))
        shape, once = self._empty().shape, (wide[:, -1] > 0).all()
        if cells.shape != shape or not (once and self._are_rows(wide, cells)):
            rows = f"{self._rows_are} must be rows of {', '.join(self._row)} and a number"
            msg = f"counts must have shape {shape}, {rows}"
            raise ValueError(msg)
        self._added_rows = [np.repeat(wide[:, :-1], wide[:, -1], axis=0)]
        return cells

    @abstractmethod
    def _are_rows(self, rows: Ints, counts: Ints) -> bool:
        """Whether saved rows, each with its number, are possible and agree with the counts."""

    def _difference(self, other: Self) -> str:
        if text := super()._difference(other):
            return text
        names = [*compress(self.class_names, self._things != other._things)]
        return f"class {names[0]!r} is a thing in only one of them" if names else ""

    def _join(self, others: Sequence[Self]) -> None:
        with LOCK.lock:
            super()._join(others)
            self._added_rows += [part for other in others for part in other._added_rows]

    def add_counts(self, counts: Ints, rows: Ints, pairs: int = 1) -> Self:
        """Add the counts and rows of one or more images; returns itself.

        Parameters
        ----------
        counts : ndarray of int64
            Counts per class.
        rows : ndarray of int64
            Rows, each without a number.
        pairs : int
            Number of images.
        """
        with LOCK.lock:
            self._add(counts, pairs)
            self._added_rows.append(rows)
        return self

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "things": np.flatnonzero(self._things).tolist()}

    @property
    def things(self) -> NDArray[np.bool_]:
        """True for the classes that have objects, (C,)."""
        return self._things.copy()

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding.of_classes(self._classes)

    def _class_indices(self, values: Ids, name: str) -> Ints:
        """Class index of each value; ``name`` is the argument that the values come from."""
        is_pred = name.startswith("pred")
        encoding = self._encoding
        codes = (encoding.pred if is_pred else encoding.truth).codes_of(values).astype(np.int64)
        classes = np.where(codes < self.num_classes, codes, VOID)
        unknown = {*values[classes == VOID].tolist()}.difference(self._classes.ignore, [NO_OBJECT])
        if unknown and not (is_pred and self._classes.unassigned == "count"):
            shown = ", ".join(map(str, sorted(unknown)[:6]))
            msg = f"{name} contains undeclared values: {shown}; declare them as classes, or " + (
                "pass unassigned='count' to count them as void" if is_pred else "pass ignore=…"
            )
            raise ValueError(msg)
        return classes
