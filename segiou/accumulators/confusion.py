"""A confusion matrix of exclusive classes, counted pair by pair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_integer, check_kind, check_number, names_options
from segiou._support.locks import Lockable
from segiou._support.optional import Drawable
from segiou._support.text import plural
from segiou.accumulators.base import PixelAccumulator
from segiou.counting.arrays import (
    as_array,
    as_valid_mask,
    axis_in_image,
    check_labels,
    is_on_device,
    not_compiled,
    with_dimensions_of,
    without_lists,
)
from segiou.counting.counts import ConfusionCounts, Counts, check_memory
from segiou.counting.encoding import Encoding
from segiou.counting.one_hot import decided_truth
from segiou.counting.scores import NanScoresError, ScaleCheck, nan_pixels, scores_to_labels
from segiou.labels.class_options import ClassOptions, Labels, Unassigned

if TYPE_CHECKING:
    from segiou.counting.device_counts import DeviceCount, Tables

#: Tables of all pairs of classes in memory at once: the counts, and two during an addition.
_TABLES = 3


def _differ_in_size(images: Any) -> bool:
    """Whether a list contains arrays of different sizes."""
    shapes = [getattr(image, "shape", None) for image in images]
    return None not in shapes and len({tuple(shape) for shape in shapes if shape is not None}) > 1


def _each_of(truth: Any, pred: Any, mask: Any) -> list[tuple[Any, Any, Any]]:
    """Truth, prediction and mask of each image of lists."""
    masks = [None] * len(truth) if mask is None else mask
    if len(pred) != len(truth) or len(masks) != len(truth):
        msg = f"got {len(truth)} truth images but {len(pred)} predictions and {len(masks)} masks"
        raise ValueError(msg)
    return list(zip(truth, pred, masks, strict=True))


class _Pending(Lockable):
    """Counts of batches that are still on their devices; safe to use from several threads.

    The code for devices is loaded with the first batch on one.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables
        self._counts: dict[Any, DeviceCount] = {}
        self.pairs: int = 0
        self._pixels = 0

    def add(
        self, encoding: Encoding, truth: Any, pred: Any, **decision: Any
    ) -> Iterator[tuple[ConfusionCounts, int]]:
        """Count a batch; yields earlier counts that had to be collected to avoid an overflow."""
        from segiou.counting.device_counts import count_on_device

        count = count_on_device(encoding, truth, pred, tables=self._tables, **decision)
        device, pixels = count.operations.place, math.prod(np.shape(truth))
        with self.lock:
            if count.operations.limit and self._pixels + pixels > count.operations.limit:
                yield from self.collect(encoding)
            self._pixels += pixels
            self.pairs += 1
            before = self._counts.get(device)
            self._counts[device] = count if before is None else before.plus(count)

    def collect(self, encoding: Encoding) -> Iterator[tuple[ConfusionCounts, int]]:
        """Transfer counts and pairs, one vector per device; counts that raise an error stay."""
        with self.lock:
            while self._counts:
                from segiou.counting.device_counts import read

                device, count = next(iter(self._counts.items()))
                tally = read(encoding, count)
                del self._counts[device]
                # All pairs come with the last counts, so that none is counted without the other.
                pairs = 0 if self._counts else self.pairs
                self.pairs -= pairs
                yield tally, pairs
            self._pixels = 0


class ConfusionMatrix(PixelAccumulator, Drawable):
    """A confusion matrix, updated batch by batch.

    Matrices can be added, and several threads can update one at the same time:
    see :class:`segiou.accumulators.base.Accumulator`.

    Parameters
    ----------
    labels : LabelSet, str, path, sequence of str or int
        The classes: a label set, the name of a preset, a TOML file, class
        names for the values 0, 1, 2, …, values such as ``"1-7"``, or the number
        of classes; see :func:`segiou.load_labels`.
    pred_labels : the same, optional
        The label set of the predictions, if it differs from that of the truth.
        Classes are matched by name, and those that are never predicted may be
        missing. Values such as ``"0-6"`` or a number are those of the classes
        of ``labels``, in order; None, or ``"none"`` in text, is for a class
        that is never predicted.
    ignore : int, str or iterable of them
        Truth values whose pixels are dropped, in addition to the label set's.
        A class name stands for its values.
    exclude : str, int or iterable of them
        Classes, by name or index, that are counted but excluded from means.
    unassigned : {"error", "count"}
        Whether an undeclared prediction on a valid pixel is an error, or counts
        as a missed pixel of its truth class.

    Attributes
    ----------
    labels : LabelSet
    matrix : ndarray of int64, shape (C, C)
        ``[t, p]`` is the number of pixels of truth ``t`` predicted as ``p``.
        ``numpy.asarray`` of the object returns the same matrix.
    unassigned : ndarray of int64, shape (C,)
        Valid pixels of each truth class with an undeclared prediction.
    ignored : int
        Pixels dropped. ``matrix.sum() + unassigned.sum() + ignored == pixels``.
    pairs : int
        Pairs of arrays counted.

    Warns
    -----
    UserWarning
        If an ignored value is also a declared class. False positives on its
        pixels are then never counted, and its IoU equals its recall.

    Examples
    --------
    >>> cm = ConfusionMatrix(["background", "cell"], ignore=255)
    >>> cm.update([[0, 0, 1], [1, 1, 255]], [[0, 1, 1], [1, 0, 1]]).matrix
    array([[1, 1],
           [1, 2]])
    >>> cm.iou().round(4), round(float(cm.pixel_accuracy()), 4)
    (array([0.3333, 0.5   ]), 0.6)
    >>> (cm + cm).matrix.tolist(), sum([cm, cm, cm]).pairs
    ([[2, 2], [2, 4]], 3)
    """

    _noun = "confusion matrices"
    _plot_kind = "confusion_matrix"
    _pixel_axes = (0, 1)

    @names_options
    def __init__(
        self,
        labels: Labels,
        *,
        pred_labels: Labels | None = None,
        ignore: int | str | Iterable[int | str] = (),
        exclude: int | str | Iterable[int | str] = (),
        unassigned: Unassigned = "error",
    ) -> None:
        options = ClassOptions.of(
            labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
        )
        options.warn_of_ignored_classes()
        check_memory(options.num_classes, _TABLES)
        self._start(options)

    def _start(self, classes: ClassOptions) -> None:
        self._device_tables: Tables = {}
        self._scale = ScaleCheck()  # shared with empty copies, so that a loop warns once
        super()._start(classes)

    def _forget(self) -> None:
        super()._forget()
        self._pending = _Pending(self._device_tables)

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding.of_classes(self.options)

    @cached_property
    def _decided_encoding(self) -> Encoding:
        return Encoding.of_classes(self.options, pred_is_index=True)

    def _empty(self) -> NDArray[np.int64]:
        """Rows: classes, ignored, undeclared (always 0); columns: classes, unassigned."""
        check_memory(self.num_classes, _TABLES)
        return self._encoding.empty_table()

    def _collect(self) -> None:
        """Add the counts that are still on devices."""
        for tally, pairs in self._pending.collect(self._encoding):
            self._add(self._tally_counts(tally), pairs)

    def _snapshot(self) -> tuple[NDArray[np.int64], int]:
        self._collect()
        return super()._snapshot()

    @property
    def pairs(self) -> int:
        """Pairs of arrays counted."""
        return super().pairs + self._pending.pairs

    def _tally_counts(self, tally: ConfusionCounts) -> NDArray[np.int64]:
        shape = self.num_classes, self.num_classes + 1
        if tally.table.shape != shape:
            msg = f"expected a table of shape {shape}, got {tally.table.shape}"
            raise ValueError(msg)
        check_memory(self.num_classes, _TABLES)
        return self._encoding.table_of(tally)

    def _arrays_by_name(self, cells: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        return {"table": cells[:-2], "ignored": cells[-2].sum()}

    def _read(self, arrays: Mapping[str, Any]) -> NDArray[np.int64]:
        return self._tally_counts(ConfusionCounts(arrays["table"], arrays["ignored"]))

    @property
    def ignored(self) -> int:
        """Pixels dropped."""
        return int(self._cells[-2].sum())

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The (C, C) matrix, rows truth; a copy."""
        return self._cells[:-2, :-1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.matrix if dtype is None else self.matrix.astype(dtype, copy=False)

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class with an undeclared prediction; a copy."""
        return self._cells[:-2, -1]

    @property
    def pixels(self) -> int:
        """Pixels counted, including ignored ones."""
        return int(self._cells.sum())

    def _tally(self, cells: NDArray[np.int64]) -> ConfusionCounts:
        return self._encoding.tally(cells)

    @property
    def counts(self) -> Counts:
        """TP, FP, FN and TN per class, each of shape (C,)."""
        self._collect()
        with self._locked_parts() as parts:
            if len(parts) == 1:  # without a copy of the table, which may be large
                return self._encoding.tally(parts[0].cells).counts
        return self.tally.counts

    @not_compiled
    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> Self:
        """Count one pair, or one batch, of label arrays; returns itself.

        Parameters
        ----------
        truth : array_like of int or bool, any shape
            Labels in the label set's file values; or a list of arrays of different
            sizes, with lists for ``pred`` and ``mask``.
        pred : array_like
            Labels of the same shape; or scores, with ``argmax`` or ``threshold``.
        mask : array_like of bool, optional
            True where a pixel is valid; other pixels count as ignored.
        argmax : int, optional
            The class axis of ``pred``, which then holds one score per class; also
            that of a one-hot ``truth`` of the same shape. The images of a list count as
            the first axis: 1 for a list of (C, H, W), as for (N, C, H, W). With 0, scores are
            (C, N, H, W), even if there are as many images as classes.
        threshold : float, optional
            ``pred`` then holds the score of the second of two classes, which is
            predicted if its score is greater than this; see
            :func:`segiou.counting.scores_to_labels`. Scores are compared as they are:
            pass 0.5 for probabilities, and 0 for logits.

        Raises
        ------
        TypeError, ValueError
            As :meth:`segiou.counting.Encoding.count`. The counts are unchanged then.

        Notes
        -----
        Tensors on a GPU or another device are counted there without waiting for
        the device. Undeclared values then raise an error when the counts are
        read, until :meth:`reset`.
        """
        if type(truth) in (list, tuple) and _differ_in_size(truth):
            images = _each_of(truth, pred, mask)
            options: Any = {"argmax": axis_in_image(argmax), "threshold": threshold}
            # All are counted first, so that an error leaves the counts unchanged.
            for tally in [self.count(t, p, mask=m, **options) for t, p, m in images]:
                self.add(tally)
            return self
        if self._is_crowded:  # a sum could exceed int64, so it is checked before the addition
            options = {"mask": mask, "argmax": argmax, "threshold": threshold}
            return self.add(self.count(truth, pred, **options))
        part = self._parts.get(get_ident()) or self._own()
        # NumPy arrays first, since every check takes noticeable time for a small mask; and before
        # any use of shapes, because is_on_device rejects symbolic tensors without a shape.
        arrays = type(truth) is type(pred) is np.ndarray
        if not arrays:
            truth, pred = without_lists(truth, "truth"), without_lists(pred, "pred")
        on_device = not arrays and (is_on_device(truth) or is_on_device(pred))
        if on_device:
            self._encoding_for(truth, pred, argmax, threshold)
            options = {"mask": mask, "argmax": argmax, "threshold": threshold}
            for tally, pairs in self._pending.add(self._encoding, truth, pred, **options):
                self._add(self._tally_counts(tally), pairs)
            return self
        encoding = self._encoding
        if argmax is not None or threshold is not None:
            encoding, truth, pred = self._decided(truth, pred, mask, argmax, threshold)
        are_labels = encoding is not self._encoding
        with part.lock:
            encoding.count_into(part.cells, truth, pred, mask=mask, are_labels=are_labels)
            part.pairs += 1
        return self

    @not_compiled
    def count(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> ConfusionCounts:
        """Count a pair as :meth:`update` does, without adding it.

        Parameters
        ----------
        truth, pred, mask, argmax, threshold
            As for :meth:`update`.
        """
        truth, pred = without_lists(truth, "truth"), without_lists(pred, "pred")
        if is_on_device(truth) or is_on_device(pred):
            from segiou.counting.device_counts import count_on_device, read

            self._encoding_for(truth, pred, argmax, threshold)
            options = {"mask": mask, "argmax": argmax, "threshold": threshold}
            tables, encoding = self._device_tables, self._encoding
            return read(encoding, count_on_device(encoding, truth, pred, tables=tables, **options))
        return self._count_decided(truth, pred, mask, argmax=argmax, threshold=threshold)[0]

    def _count_decided(
        self, truth: Any, pred: Any, mask: Any, **options: Any
    ) -> tuple[ConfusionCounts, Any]:
        """Count arrays on the host; also returns the labels, as class indices if decided here."""
        encoding, truth, pred = self._decided(truth, pred, mask, **options)
        are_labels = encoding is not self._encoding
        return encoding.count(truth, pred, mask=mask, are_labels=are_labels), pred

    def _count_into(
        self,
        table: NDArray[np.int64],
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> None:
        """Count a pair of arrays on the host into a table of the encoding."""
        encoding, truth, pred = self._decided(truth, pred, mask, argmax, threshold)
        are_labels = encoding is not self._encoding
        encoding.count_into(table, truth, pred, mask=mask, are_labels=are_labels)

    def _decided(
        self, truth: Any, pred: Any, mask: Any, argmax: int | None, threshold: float | None
    ) -> tuple[Encoding, Any, Any]:
        """The encoding of a pair, and the pair, with class indices in place of scores."""
        encoding = self._encoding_for(truth, pred, argmax, threshold)
        if encoding is not self._encoding:
            truth = decided_truth(truth, pred, argmax, self._encoding.truth_values)
            pred = self._decide(truth, pred, mask, argmax=argmax, threshold=threshold)
        return encoding, truth, pred

    def _decide(self, truth: Any, pred: Any, mask: Any, **options: Any) -> NDArray[Any]:
        """Convert scores to labels; scores may be NaN on ignored pixels."""
        pred = with_dimensions_of(truth, pred, options["argmax"])
        mask = with_dimensions_of(truth, mask)
        if options["threshold"] is not None and not self._scale.is_done:
            limit, ignore = options["threshold"], self.options.ignore
            self._scale.check(truth, pred, limit, ignore=ignore, mask=mask)
        try:
            return scores_to_labels(pred, **options)
        except NanScoresError:
            nan, labels = nan_pixels(pred, **options), as_array(truth, "truth")
            if nan.shape != labels.shape:
                raise
            valid = None if mask is None else as_valid_mask(mask, nan.shape)[nan]
            none = np.zeros(int(nan.sum()), dtype=np.uint8)
            tally = self._decided_encoding.count(labels[nan], none, mask=valid)
            if pixels := int(tally.valid):
                raise NanScoresError(pixels) from None
            return scores_to_labels(pred, allow_nan=True, **options)

    def _encoding_for(
        self, truth: Any, pred: Any, argmax: int | None, threshold: float | None
    ) -> Encoding:
        if argmax is None and threshold is None:
            return self._encoding
        if argmax is not None:
            check_integer("argmax", argmax)
        if threshold is not None:
            check_number("threshold", threshold)
        try:
            self.options.check_scores(tuple(np.shape(pred)), argmax)
        except ValueError:
            if len(np.shape(truth)) > len(np.shape(pred)):  # swapped: the truth holds the scores
                check_labels(truth, "truth")
            raise
        return self._decided_encoding

    def add(self, tally: ConfusionCounts, *, pairs: int = 1) -> Self:
        """Add counts from elsewhere that have the same options.

        Parameters
        ----------
        tally : ConfusionCounts
            The counts to add.
        pairs : int, default 1
            Number of image pairs that the counts come from.

        Raises
        ------
        TypeError
            If an argument has a wrong type.
        ValueError
            If the number of classes differs.
        OverflowError
            If the number of pixels would exceed int64. The counts are unchanged
            then.
        """
        check_kind(
            "tally", tally, ConfusionCounts, "ConfusionCounts, as from ConfusionMatrix.count"
        )
        self._add(self._tally_counts(tally), check_integer("pairs", pairs, 0))
        return self

    def pixel_accuracy(self) -> float:
        """Share of the valid pixels that are correct."""
        return float(metrics.pixel_accuracy(self.counts))

    def __repr__(self) -> str:
        cells, pairs = self._snapshot()
        return (
            f"<ConfusionMatrix: {plural(self.num_classes, 'class', 'classes')}, "
            f"{plural(pairs, 'pair')}, {plural(int(cells.sum()), 'pixel')}, "
            f"{int(cells[-2].sum())} ignored>"
        )
