"""Label pairs → integers: how file values become classes, and counting them."""

from __future__ import annotations

import math
import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_integer, is_several
from segiou._support.optional import fallback, load_part
from segiou.counting import reference
from segiou.counting.arrays import (
    as_valid_mask,
    label_arrays,
    memory_ordered,
    native_blocks,
    values_text,
    with_dimensions_of,
)
from segiou.counting.counts import Cells, ConfusionCounts, SparseConfusionCounts
from segiou.counting.id_pairs import count_ids, distinct, sums
from segiou.counting.one_hot import check_label_maps
from segiou.counting.value_codes import MAX_CLASSES, ValueCodes
from segiou.labels.class_options import ClassOptions, Unassigned

_kernel = load_part("segiou.counting._kernel")
#: Name of the compiled loops that run on this processor, or "numpy" if none were built.
BACKEND: str = _kernel.BACKENDS[0] if _kernel else "numpy"
_count_coded: Callable[..., bool | None] = (
    _kernel.count_coded if _kernel else fallback("segiou.counting._kernel", reference.count_coded)
)


def count_coded(truth: NDArray[Any], pred: NDArray[Any], *arguments: Any) -> bool:
    """Count arrays of any strides and byte orders; see `segiou/counting/_kernel.pyi`."""
    has_undeclared = _count_coded(truth, pred, *arguments)
    if has_undeclared is not None:
        return has_undeclared
    if truth.dtype.isnative and pred.dtype.isnative:
        return bool(_count_coded(*memory_ordered(truth, pred), *arguments))
    by_block = [_count_coded(t, p, *arguments) for t, p in native_blocks(truth, pred)]
    return any(by_block)


#: For more classes, a table of all pairs costs more than the few classes of one image.
_DENSE_CLASSES = 256


def _zeros(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Zeros that take memory where they are changed, a small page at a time."""
    size = 8 * math.prod(shape)
    if size < _LARGE_TABLE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, dtype=np.int64)
    # NumPy asks Linux for huge pages, one of which every counted pair might then fill.
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.int64).reshape(shape)


_BLOCK_PIXELS = 1 << 20
#: Bytes from which on a table takes only the memory of the cells that are counted.
_LARGE_TABLE = 1 << 30


class UndeclaredValuesError(ValueError):
    """Label values that are neither a class nor ignored.

    Attributes
    ----------
    side : str
        ``"truth"`` or ``"pred"``.
    values : mapping of int to int
        Pixels of each undeclared value.
    """

    def __init__(self, side: str, values: Mapping[int, int]) -> None:
        self.side = side
        self.values: dict[int, int] = dict(values)
        shown = values_text(self.values, "pixel")
        if side == "truth":
            most = tuple(value for value, _ in Counter(self.values).most_common(8))
            ignored = most[0] if len(self.values) == 1 else most
            fix = f"declare a class for them, or ignore them: ignore={ignored}"
            msg = f"truth has values that are neither a class nor ignored: {shown}; {fix}"
        else:
            fix = "declare a class for them, or count them as missed: unassigned='count'"
            msg = f"pred has undeclared values on valid pixels: {shown}; {fix}"
        super().__init__(msg)

    def __reduce__(self) -> tuple[Any, ...]:
        return (UndeclaredValuesError, (self.side, self.values))


@dataclass(frozen=True, eq=False)
class Encoding:
    """Mapping of label values to the rows and columns of a confusion matrix.

    Attributes
    ----------
    num_classes : int
        Number of classes, C.
    truth, pred : ValueCodes
        Meaning of each label value.
    unassigned : {"error", "count"}
        Whether an undeclared prediction on a valid pixel is an error, or counts
        as a missed pixel of its truth class.
    """

    num_classes: int
    truth: ValueCodes
    pred: ValueCodes
    unassigned: Unassigned = "error"

    @classmethod
    def of(
        cls,
        truth_values: Sequence[Sequence[int]],
        pred_values: Sequence[Sequence[int]] | None = None,
        *,
        ignore: Iterable[int] = (),
        unassigned: Unassigned = "error",
    ) -> Encoding:
        """Build from the label values of each class.

        Parameters
        ----------
        truth_values : sequence of sequence of int
            Values of each class in the truth.
        pred_values : sequence of sequence of int, optional
            Values of each class in the prediction; those of the truth by default.
        ignore : iterable of int, optional
            Truth values whose pixels are dropped.
        unassigned : {"error", "count"}, default "error"
            Treatment of undeclared predictions.

        Raises
        ------
        ValueError
            If ``unassigned`` is neither ``"error"`` nor ``"count"``.
        """
        check_choice("unassigned", unassigned, ("error", "count"))
        return cls(
            len(truth_values),
            ValueCodes.of(truth_values, ignore),
            ValueCodes.of(truth_values if pred_values is None else pred_values),
            unassigned,
        )

    @classmethod
    def of_indices(
        cls, num_classes: int, ignore: int | Iterable[int] = (), unassigned: Unassigned = "error"
    ) -> Encoding:
        """Build for labels 0 … C − 1; raises as :func:`count_pairs`.

        Parameters
        ----------
        num_classes : int
            Number of classes, C.
        ignore : int or iterable of int, optional
            Truth values whose pixels are dropped.
        unassigned : {"error", "count"}, default "error"
            Treatment of undeclared predictions.
        """
        classes = range(check_integer("num_classes", num_classes, 1, MAX_CLASSES))
        values: Iterable[Any] = ignore if is_several(ignore) else (ignore,)
        ignored = [check_integer("ignore", value) for value in values]
        return cls.of([(c,) for c in classes], ignore=ignored, unassigned=unassigned)

    @classmethod
    def of_classes(cls, options: ClassOptions, *, pred_is_index: bool = False) -> Encoding:
        """Build from class options.

        Parameters
        ----------
        options : ClassOptions
            The classes and the ignored values.
        pred_is_index : bool, default False
            Whether ``pred`` holds class indices, such as labels computed from
            scores, instead of the label set's values.
        """
        by_name = {c.name: c.values for c in options.pred_labels.classes}
        pred_values = [by_name.get(name, ()) for name in options.labels.class_names]
        if pred_is_index:
            pred_values = [(i,) for i in range(options.num_classes)]
        return cls.of(
            options.labels.class_values,
            pred_values,
            ignore=options.ignore,
            unassigned=options.unassigned,
        )

    @cached_property
    def truth_values(self) -> NDArray[np.int64]:
        """A label value of each class in the truth, (C,)."""
        values = np.zeros(self.num_classes, np.int64)
        places = np.flatnonzero(self.truth.codes < self.num_classes)[::-1]  # the lowest comes last
        values[self.truth.codes[places]] = self.truth.low + places
        return values

    def count(
        self, truth: Any, pred: Any, *, mask: Any = None, are_labels: bool = False
    ) -> ConfusionCounts:
        """Count pairs of labels.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes
            Labels; any integer dtypes, strides and byte orders.
        mask : array_like of bool, optional
            True where a pixel is valid; other pixels count as ignored.
        are_labels : bool
            Whether all axes are known to be those of pixels. Otherwise, arrays of
            0 and 1 with an axis as long as the classes raise an error.

        Raises
        ------
        TypeError
            If an array does not contain integers or bool.
        ValueError
            If the shapes differ, or the arrays may be one-hot.
        UndeclaredValuesError
            If a truth value is neither a class nor ignored, or if a prediction
            on a valid pixel is undeclared and ``unassigned`` is ``"error"``.
        """
        if self.num_classes <= _DENSE_CLASSES:
            table = self.empty_table()
            self.count_into(table, truth, pred, mask=mask, are_labels=are_labels)
            return self.tally(table)
        if not are_labels:
            check_label_maps(truth, pred, self.num_classes)
        return self._count_few(truth, pred, mask)

    def count_shared(
        self,
        truth: NDArray[Any],
        pred: NDArray[Any],
        pixels: NDArray[np.int64],
        sizes: Sequence[int],
    ) -> list[Cells]:
        """Count labels that several pixels share, in several images.

        Parameters
        ----------
        truth, pred : ndarray of int, shape (P,)
            Labels of all images, one after the other.
        pixels : ndarray of int64, shape (P,)
            Pixels of each pair.
        sizes : sequence of int
            Number of pairs of each image.

        Raises
        ------
        UndeclaredValuesError
            As in :meth:`count`.
        """
        rows, columns = self.truth.codes_of(truth), self.pred.codes_of(pred)
        kept = rows < self.num_classes
        _refuse_undeclared("truth", truth, pixels, rows > self.num_classes)
        if self.unassigned == "error":
            _refuse_undeclared("pred", pred, pixels, kept & (columns == self.num_classes))
        image = np.repeat(np.arange(len(sizes)), sizes)
        ignored = sums(image[~kept], pixels[~kept], len(sizes))
        cells = rows[kept].astype(np.int64) * (self.num_classes + 1) + columns[kept]
        (owner, indices), places = distinct(image[kept], cells)
        values = sums(places, pixels[kept], len(indices))
        stops = np.searchsorted(owner, np.arange(len(sizes)), "right").tolist()
        return [
            Cells(indices[start:stop], values[start:stop], number)
            for start, stop, number in zip([0, *stops], stops, ignored.tolist(), strict=False)
        ]

    def _count_few(self, truth: Any, pred: Any, mask: Any) -> ConfusionCounts:
        """Count with time and memory that depend only on the classes that occur."""
        mask = with_dimensions_of(truth, mask)
        truth, pred = label_arrays(truth, pred)
        occurs = self._occurring(truth, self.truth) | self._occurring(pred, self.pred)
        classes = np.flatnonzero(occurs)
        small = Encoding(
            len(classes),
            self._renumbered(self.truth, classes),
            self._renumbered(self.pred, classes),
            self.unassigned,
        )
        table = small.empty_table()
        small.count_into(table, truth, pred, mask=mask, are_labels=True)
        indices, values, ignored = small.tally(table).cells
        rows, columns = np.divmod(indices, len(classes) + 1)
        columns = np.append(classes, self.num_classes)[columns]
        cells = classes[rows] * (self.num_classes + 1) + columns
        return SparseConfusionCounts(self.num_classes, Cells(cells, values, ignored))

    def _occurring(self, labels: NDArray[Any], side: ValueCodes) -> NDArray[np.bool_]:
        """Which classes occur in an array of labels."""
        table = np.zeros((side.undeclared + 1, 1), dtype=np.int64)
        column = np.zeros_like(side.codes)
        count_coded(labels, labels, side.low, side.codes, side.low, column, table)
        return table[: self.num_classes, 0] > 0

    def _renumbered(self, side: ValueCodes, classes: NDArray[np.intp]) -> ValueCodes:
        """Codes with the classes that occur renumbered to 0 … K − 1, then the other codes."""
        new = np.zeros(side.undeclared + 1, dtype=np.uint16)
        new[classes] = np.arange(len(classes))
        new[self.num_classes :] = len(classes) + np.arange(side.undeclared + 1 - self.num_classes)
        return ValueCodes(side.low, new[side.codes], int(new[-1]), side.far)

    @staticmethod
    def tally(table: NDArray[np.int64]) -> ConfusionCounts:
        """View a table that :meth:`count_into` has filled as confusion counts.

        Parameters
        ----------
        table : ndarray of int64, shape (C + 2, C + 1)
            Counts by code.
        """
        return ConfusionCounts.trusted(table[:-2], np.add.reduce(table[-2]))

    def empty_table(self) -> NDArray[np.int64]:
        """Zeros: rows for classes, ignored, undeclared; columns for classes, unassigned."""
        return _zeros((self.num_classes + 2, self.num_classes + 1))

    def table_of(self, tally: ConfusionCounts) -> NDArray[np.int64]:
        """The table of given confusion counts, the inverse of :meth:`tally`.

        Parameters
        ----------
        tally : ConfusionCounts
            Counts of the same number of classes.
        """
        table = self.empty_table()
        table[:-2], table[-2, 0] = tally.table, tally.ignored
        return table

    def count_into(
        self,
        table: NDArray[np.int64],
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        are_labels: bool = False,
    ) -> None:
        """Count pairs of labels into a table; raises as :meth:`count`, with the table unchanged.

        Parameters
        ----------
        table : ndarray of int64, shape (C + 2, C + 1)
            As :meth:`empty_table`; counts are added to it.
        truth, pred, mask, are_labels
            As for :meth:`count`.
        """
        is_plain = mask is None and type(truth) is type(pred) is np.ndarray
        if not (are_labels or (is_plain and self.num_classes not in truth.shape)):
            check_label_maps(truth, pred, self.num_classes)
        # The kernel itself checks dtypes and shapes. The checks below have better messages but
        # take as long as counting a small mask, so they only run if the kernel raises.
        valid = None
        try:
            has_undeclared = is_plain and self._add(truth, pred, None, table)
        except (TypeError, ValueError):
            is_plain = False
        if not is_plain:
            mask = with_dimensions_of(truth, mask)
            truth, pred = label_arrays(truth, pred)
            valid = None if mask is None else as_valid_mask(mask, truth.shape)
            has_undeclared = self._add(truth, pred, valid, table)
        if not has_undeclared:
            return
        side = "truth" if table[-1].any() else "pred"
        if side == "truth" or (self.unassigned == "error" and table[:-2, -1].any()):
            undone = self.empty_table()
            self._add(truth, pred, valid, undone)
            table -= undone
            self._refuse(truth, pred, valid, side)

    def _add(
        self,
        truth: NDArray[Any],
        pred: NDArray[Any],
        valid: NDArray[np.bool_] | None,
        table: NDArray[np.int64],
    ) -> bool:
        """Add the counts; returns whether any value is undeclared, even on an ignored pixel."""
        if valid is not None:
            by_block = [self._add(t, p, None, table) for t, p in _valid_blocks(truth, pred, valid)]
            table[-2, 0] += truth.size - np.count_nonzero(valid)
            return any(by_block)
        t, p = self.truth, self.pred
        if not count_coded(truth, pred, t.low, t.codes, p.low, p.codes, table):
            return False
        if t.far and table[-1].any():
            # The kernel counts far ignored values as undeclared, since they are not in the table.
            ignored = np.count_nonzero(t.is_far(truth))
            undeclared = table[-1].sum() - ignored
            table[-1] = 0
            table[-1, 0] = undeclared
            table[-2, 0] += ignored
        return True

    def _refuse(
        self,
        truth: NDArray[Any],
        pred: NDArray[Any],
        valid: NDArray[np.bool_] | None,
        side: str,
    ) -> None:
        codes = self.truth if side == "truth" else self.pred
        undeclared: Counter[int] = Counter()
        everywhere = np.broadcast_to(np.True_, truth.shape)
        for t, p in _valid_blocks(truth, pred, everywhere if valid is None else valid):
            labels = t if side == "truth" else p[self.truth.codes_of(t) < self.num_classes]
            undeclared.update(count_ids(labels[codes.codes_of(labels) == codes.undeclared]))
        raise UndeclaredValuesError(side, undeclared)


def _refuse_undeclared(
    side: str, labels: NDArray[Any], pixels: NDArray[np.int64], wrong: NDArray[np.bool_]
) -> None:
    """Raise an error if any label is wrong, with the pixels of each value."""
    if wrong.any():
        (values,), places = distinct(labels[wrong])
        counts = sums(places, pixels[wrong], len(values))
        raise UndeclaredValuesError(side, dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _valid_blocks(
    truth: NDArray[Any], pred: NDArray[Any], valid: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The valid pixels, block by block, without a copy of whole arrays."""
    truth, pred, valid = np.atleast_1d(truth, pred, valid)
    for block in reference.iter_blocks(truth.shape, _BLOCK_PIXELS):
        yield truth[block][valid[block]], pred[block][valid[block]]


def count_pairs(
    truth: Any,
    pred: Any,
    num_classes: int,
    *,
    ignore: int | Iterable[int] = (),
    unassigned: Unassigned = "error",
    mask: Any = None,
) -> NDArray[np.int64]:
    """Count the pixels of each pair of truth class and predicted class.

    Parameters
    ----------
    truth, pred : array_like of int or bool, equal shapes
        Labels 0 … C − 1; any integer dtypes, strides and byte orders.
    num_classes : int
        Number of classes, C.
    ignore : int or iterable of int
        Truth values whose pixels are dropped, for any prediction.
    unassigned : {"error", "count"}
        Whether a prediction outside 0 … C − 1 on a valid pixel is an error, or
        counts as a missed pixel of its truth class.
    mask : array_like of bool, optional
        True where a pixel is valid.

    Returns
    -------
    ndarray of int64, shape (C, C + 1)
        ``[t, p]`` is the number of pixels of truth ``t`` predicted as ``p``; the
        last column counts the valid pixels with an undeclared prediction.

    Raises
    ------
    TypeError
        If an array does not contain integers or bool, or an option has a wrong type.
    UndeclaredValuesError
        If a value is neither a class nor ignored.
    ValueError
        If the shapes differ or ``num_classes`` is less than 1.

    Examples
    --------
    >>> count_pairs([[0, 0, 1], [1, 1, 255]], [[0, 1, 1], [1, 0, 1]], 2, ignore=255)
    array([[1, 1, 0],
           [1, 2, 0]])
    """
    encoding = Encoding.of_indices(num_classes, ignore, unassigned)
    return encoding.count(truth, pred, mask=mask).table
