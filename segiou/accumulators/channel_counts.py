"""Counts of binary channels that may overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, names_options, read_several
from segiou._support.text import plural
from segiou.accumulators.base import PixelAccumulator
from segiou.counting.arrays import as_array, not_compiled, with_dimensions_of, without_lists
from segiou.counting.channels import check_axis, count_channels
from segiou.counting.counts import (
    ConfusionCounts,
    Counts,
    broadcast_counts,
    check_counts,
    counts_array,
)
from segiou.counting.scores import ScaleCheck
from segiou.labels.class_options import ClassOptions, Labels
from segiou.labels.loading import load_labels

#: Counts of each channel.
_ROWS = ("tp", "fp", "fn", "tn", "ignored")


class ChannelCounts(PixelAccumulator):
    """Counts of overlapping binary channels, updated batch by batch.

    Use it for multi-label masks and sigmoid outputs, where a pixel may belong
    to several classes or to none. Accumulators can be added, and several
    threads can update one at the same time: see
    :class:`segiou.accumulators.base.Accumulator`.

    Parameters
    ----------
    labels : sequence of str, int, LabelSet, str or path
        Names of the channels, in order; or their number; or a label set, the
        name of a preset or a TOML file, of which only the class names are used.
    ignore : int or iterable of int
        Values of the truth, other than 0 and 1, that are dropped.
    exclude : str, int or iterable of them
        Channels, by name or index, that are counted but excluded from means.

    Raises
    ------
    TypeError, ValueError
        If a channel to exclude does not exist, or a value to ignore is not an integer, 0 or 1.

    Examples
    --------
    >>> channels = ChannelCounts(["edema", "tumour"])
    >>> truth = [[[1, 1, 0]], [[0, 1, 0]]]
    >>> sigmoid = [[[0.9, 0.4, 0.2]], [[0.1, 0.8, 0.7]]]
    >>> channels.update(truth, sigmoid, axis=0, threshold=0.5).counts
    Counts(tp=[1 1], fp=[0 1], fn=[1 0], tn=[1 1])
    >>> channels.iou(), channels.mean_iou()
    (array([0.5, 0.5]), 0.5)
    >>> sum([channels, channels]).pairs
    2
    """

    _noun = "channel counts"
    _pixel_axes = (0,)
    _has_matrix = False

    @names_options
    def __init__(
        self,
        labels: Labels,
        *,
        ignore: int | Iterable[int] = (),
        exclude: int | str | Iterable[int | str] = (),
    ) -> None:
        # Channels have no label values, so only the names of a label set are used.
        names = load_labels(labels).class_names
        wanted = "an integer, or several"
        is_one = isinstance(ignore, int | np.integer)
        several: Any = [ignore] if is_one else ignore
        values = read_several("ignore", several, wanted)
        for value in values:
            if check_integer("ignore", value) in (0, 1):
                msg = f"ignore={value} is a value of every channel; use exclude= to skip a channel"
                raise ValueError(msg)
        self._start(ClassOptions.of(names, ignore=values, exclude=exclude))

    def _start(self, classes: ClassOptions) -> None:
        self._scale = ScaleCheck()
        super()._start(classes)

    def _empty(self) -> NDArray[np.int64]:
        return np.zeros((len(_ROWS), self.num_classes), dtype=np.int64)

    def _arrays_by_name(self, cells: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        return dict(zip(_ROWS, cells, strict=True))

    def _read(self, arrays: Mapping[str, Any]) -> NDArray[np.int64]:
        rows = [counts_array(arrays[name], name) for name in _ROWS]
        return np.stack(np.broadcast_arrays(self._cells[0], *rows)[1:])

    @property
    def counts(self) -> Counts:
        """TP, FP, FN and TN per channel, each of shape (C,); a copy."""
        return Counts.trusted(*self._cells[:-1])

    @property
    def ignored(self) -> NDArray[np.int64]:
        """Values of each channel that were ignored; a copy."""
        return np.array(self._cells[-1])

    @property
    def pixels(self) -> int:
        """Pixels counted, including ignored ones."""
        return int(self._cells[:, 0].sum())

    def _tally(self, cells: NDArray[np.int64]) -> ConfusionCounts:
        """A matrix of negative and positive per channel, (C, 2, 3)."""
        tp, fp, fn, tn, ignored = cells
        none = np.zeros_like(tp)
        table = np.array([[tn, fp, none], [fn, tp, none]])
        return ConfusionCounts.trusted(np.moveaxis(table, -1, 0), ignored)

    @not_compiled
    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        axis: int,
        mask: Any = None,
        threshold: float | Sequence[float] | None = None,
    ) -> Self:
        """Count one pair, or one batch, of channels; returns itself.

        Parameters
        ----------
        truth, pred, mask, threshold
            As for :func:`segiou.counting.count_channels`.
        axis : int
            The channel axis: 0 for (C, H, W), −1 for (H, W, C), 1 for
            (N, C, H, W).

        Raises
        ------
        TypeError, ValueError
            As :func:`segiou.counting.count_channels`, or if the axis does not
            have one channel per class. The counts are unchanged then.
        """
        cells = self._empty()
        self._count_into(cells, truth, pred, axis=axis, mask=mask, threshold=threshold)
        self._add(cells, 1)
        return self

    def _count_into(
        self,
        cells: NDArray[np.int64],
        truth: Any,
        pred: Any,
        *,
        axis: int,
        mask: Any = None,
        threshold: Any = None,
    ) -> None:
        """Add the counts of a pair to cells."""
        truth = without_lists(truth, "truth")
        shape = tuple(np.shape(truth))
        check_channels(shape, axis, self.num_classes)
        mask = self._valid(truth, with_dimensions_of(truth, mask), axis)
        counts = count_channels(truth, pred, axis=axis, mask=mask, threshold=threshold)
        if threshold is not None and not self._scale.is_done:
            self._scale.check(truth, with_dimensions_of(truth, pred), threshold, mask=mask)
        pixels = int(np.prod(shape, dtype=np.int64)) // self.num_classes
        cells += [counts.tp, counts.fp, counts.fn, counts.tn, pixels - counts.total]

    def _valid(self, truth: Any, mask: Any, axis: int) -> Any:
        """The mask in the shape of the channels, without ignored values; None if all are valid."""
        if mask is not None:
            mask, axes = as_array(mask, "mask"), np.ndim(truth)
            if mask.ndim == axes - 1:
                mask = np.expand_dims(mask, axis % axes)
                mask = np.repeat(mask, self.num_classes, axis % axes)
        if not self.options.ignore:
            return mask
        kept = ~np.isin(as_array(truth, "truth"), self.options.ignore)
        if mask is None:
            return kept
        return kept & mask if mask.shape == kept.shape and mask.dtype == bool else mask

    def add(self, counts: Counts, *, ignored: Any = 0, pairs: int = 1) -> Self:
        """Add counts of the same channels made elsewhere.

        Parameters
        ----------
        counts : Counts
            Counts of each channel, (C,).
        ignored : array_like of int, default 0
            Ignored values of each channel, a single number or (C,).
        pairs : int, default 1
            Number of image pairs that the counts come from.

        Raises
        ------
        ValueError
            If the number of channels differs.
        OverflowError
            If a count would exceed int64. The counts are unchanged then.
        """
        check_counts(counts)
        pairs = check_integer("pairs", pairs, 0)
        if counts.tp.shape != (self.num_classes,):
            msg = f"expected counts of {self.num_classes} channels, got shape {counts.tp.shape}"
            raise ValueError(msg)
        cells = self._empty()
        cells[:-1] = counts.tp, counts.fp, counts.fn, counts.tn
        cells[-1] = broadcast_counts(ignored, "ignored", (self.num_classes,))
        self._add(cells, pairs)
        return self

    def __repr__(self) -> str:
        return (
            f"<ChannelCounts: {plural(self.num_classes, 'channel')}, "
            f"{plural(self.pairs, 'pair')}, {plural(self.pixels, 'pixel')}>"
        )


def check_channels(shape: Sequence[int | None], axis: int, number: int) -> None:
    """Raise a ValueError unless an array of this shape has that many channels along the axis."""
    check_axis(shape, axis)
    if shape[axis] != number:
        msg = (
            f"expected {number} channels along axis {axis}, got {shape[axis]} in shape "
            f"{tuple(shape)}; pass one mask of 0 and 1 per channel"
        )
        raise ValueError(msg)
