"""Classes that may overlap: counts of binary channels, updated, merged and read at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_number
from segiou._support.text import plural
from segiou.accumulators.base import PixelAccumulator
from segiou.counting.arrays import not_compiled
from segiou.counting.channels import count_channels
from segiou.counting.counts import Counts, Tally, check_counts, counts_array
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet, load_labels
from segiou.metrics.protocols import Protocol, load_protocol

if TYPE_CHECKING:
    from segiou.report.channel_report import ChannelReport

_ROWS = ("tp", "fp", "fn", "tn", "ignored")


class ChannelCounts(PixelAccumulator):
    """Counts of overlapping binary channels, one against the rest, as pairs come.

    For multi-label masks and sigmoid outputs: a pixel may be of several classes
    or of none. They add up and can be updated by several threads at once: see
    :class:`segiou.accumulators.base.Accumulator`.

    Parameters
    ----------
    labels : sequence of str, int, LabelSet, str or path
        Names of the channels, in order; or how many there are; or a label set,
        a preset's name or a TOML file, of which only the names are used.
    exclude : str, int or iterable of them
        Channels, by name or index, that are left out of means but still counted.

    Raises
    ------
    ValueError
        If a channel to exclude does not exist.

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

    def __init__(
        self,
        labels: Sequence[str] | int | LabelSet | str | Path,
        *,
        exclude: int | str | Iterable[int | str] = (),
    ) -> None:
        # Of a label set only the names: a channel has no values to be read by.
        names = load_labels(labels).class_names
        self._start(ClassOptions.of(names, exclude=exclude))

    def _empty(self) -> NDArray[np.int64]:
        return np.zeros((len(_ROWS), self.num_classes), dtype=np.int64)

    def _named(self) -> dict[str, NDArray[np.int64]]:
        return dict(zip(_ROWS, self._cells, strict=True))

    def _read(self, named: Mapping[str, Any]) -> NDArray[np.int64]:
        rows = [counts_array(named[name], name) for name in _ROWS]
        return np.stack(np.broadcast_arrays(self._cells[0], *rows)[1:])

    @property
    def counts(self) -> Counts:
        """TP, FP, FN and TN per channel, each of shape (C,); a copy."""
        return Counts.trusted(*self._cells[:-1].copy())

    @property
    def ignored(self) -> NDArray[np.int64]:
        """Values of each channel dropped by a mask; a copy."""
        return np.array(self._cells[-1])

    @property
    def pixels(self) -> int:
        """Pixels seen, ignored ones included."""
        return int(self._cells[:, 0].sum())

    @property
    def tally(self) -> Tally:
        """Everything counted so far: a matrix of no and yes for each channel, (C, 2, 3)."""
        tp, fp, fn, tn, ignored = self._cells.copy()
        none = np.zeros_like(tp)
        table = np.array([[tn, fp, none], [fn, tp, none]])
        return Tally.trusted(np.moveaxis(table, -1, 0), ignored)

    @not_compiled
    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        axis: int,
        mask: Any = None,
        threshold: float | None = None,
    ) -> Self:
        """Count one pair, or one batch, of channels; returns itself.

        Parameters
        ----------
        truth, pred, mask, threshold
            As in :func:`segiou.counting.count_channels`.
        axis : int
            The channel axis: 0 for (C, H, W), −1 for (H, W, C), 1 for
            (N, C, H, W).

        Returns
        -------
        Self

        Raises
        ------
        TypeError, ValueError
            As :func:`segiou.counting.count_channels`, or if the axis has not
            one channel a class; the state is unchanged then.
        """
        check_integer("axis", axis)
        if threshold is not None:
            check_number("threshold", threshold)
        shape = np.shape(truth)
        if -len(shape) <= axis < len(shape) and shape[axis] != self.num_classes:
            msg = (
                f"channels of shape {shape} have {shape[axis]} along axis {axis}, but there are "
                f"{self.num_classes} classes"
            )
            raise ValueError(msg)
        counts = count_channels(truth, pred, axis=axis, mask=mask, threshold=threshold)
        pixels = int(np.prod(shape, dtype=np.int64)) // self.num_classes
        return self.add(counts, ignored=pixels - counts.total)

    def add(self, counts: Counts, *, ignored: Any = 0, pairs: int = 1) -> Self:
        """Add what was counted elsewhere of the same channels.

        Parameters
        ----------
        counts : Counts
            Counts of each channel, (C,).
        ignored : array_like, default 0
            Values that were ignored, one number or (C,).
        pairs : int, default 1
            Number of images that the counts come from.

        Returns
        -------
        Self

        Raises
        ------
        ValueError
            If the counts are not of as many channels.
        OverflowError
            If a count would leave int64; the state is unchanged then.
        """
        check_counts(counts)
        check_integer("pairs", pairs, 0)
        if counts.tp.shape != (self.num_classes,):
            msg = f"counts of shape {counts.tp.shape} do not fit {self.num_classes} channels"
            raise ValueError(msg)
        cells = self._empty()
        cells[:-1] = counts.tp, counts.fp, counts.fn, counts.tn
        cells[-1] = counts_array(ignored, "ignored")
        self._add(cells, pairs)
        return self

    def compute(self) -> ChannelReport:
        """The same as :meth:`report`, by the name that loops expect."""
        return self.report()

    def report(self, protocol: Protocol | str = "segiou", *, title: str = "") -> ChannelReport:
        """All scores, by a protocol, ready to be shown or saved.

        Parameters
        ----------
        protocol : Protocol or str, default "segiou"
            How means are made.
        title : str, default ""
            Title of the report.

        Returns
        -------
        ChannelReport
        """
        from segiou.report.channel_report import ChannelReport

        return ChannelReport(
            class_names=self.class_names,
            tally=self.tally,
            pairs=self.pairs,
            protocol=load_protocol(protocol),
            include=self.options.include,
            title=title,
        )

    def __repr__(self) -> str:
        return (
            f"<ChannelCounts: {plural(self.num_classes, 'channel')}, "
            f"{plural(self.pairs, 'pair')}, {plural(self.pixels, 'pixel')}>"
        )

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()
