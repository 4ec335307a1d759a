"""Counting of arrays larger than memory, window by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from segiou._support.arguments import check_kind, refuse_kind
from segiou.counting.arrays import check_same_shape, with_dimensions_of
from segiou.counting.counts import Cells, SparseConfusionCounts
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.counting.one_hot import check_counted
from segiou.masks.windows import WINDOW_PIXELS, WindowedMask, chunks_of, window_slices


def count_windows(
    encoding: Encoding,
    truth: WindowedMask,
    pred: WindowedMask,
    *,
    pixels: int | None = None,
    decoded: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (np.asarray, np.asarray),
    are_labels: bool = False,
) -> SparseConfusionCounts:
    """Count a pair of masks window by window, without loading them whole.

    Parameters
    ----------
    encoding : Encoding
        Meaning of the label values, as from :meth:`Encoding.of_classes`.
    truth, pred : array-like with shape, dtype and slices, equal shapes
        Zarr or dask arrays, memory maps, or :class:`WindowedMask`.
    pixels : int, optional
        Pixels of a window; memory is a few bytes per pixel of it.
    decoded : pair of callables
        Functions that convert a window of truth and of pred to an array of labels.
    are_labels : bool
        As for :meth:`Encoding.count`.

    Raises
    ------
    ValueError
        If the shapes differ, or the arrays may be one-hot.
    UndeclaredValuesError
        As :meth:`segiou.counting.Encoding.count`, with the values of all windows.

    Examples
    --------
    >>> from segiou.labels.class_options import ClassOptions
    >>> truth = np.zeros((100, 100), dtype=np.uint8)
    >>> encoding = Encoding.of_classes(ClassOptions.of(2))
    >>> count_windows(encoding, truth, truth, pixels=1000).table.tolist()
    [[10000, 0, 0], [0, 0, 0]]
    """
    check_kind("encoding", encoding, Encoding, "an Encoding")
    for name, mask in (("truth", truth), ("pred", pred)):
        if not hasattr(mask, "shape") or not hasattr(mask, "dtype"):
            raise refuse_kind(name, mask, "an array with a shape and a dtype")
    pred = with_dimensions_of(truth, pred)
    check_same_shape(truth, pred)
    # If chunk sizes differ, the larger ones, so that few chunks are read twice.
    chunks = [steps for steps in (chunks_of(truth), chunks_of(pred)) if steps is not None]
    steps = tuple(max(sizes) for sizes in zip(*chunks, strict=True)) if chunks else None
    undeclared: dict[str, Counter[int]] = {"truth": Counter(), "pred": Counter()}

    def parts() -> Iterator[Cells]:
        for window in window_slices(tuple(truth.shape), steps, pixels or WINDOW_PIXELS):
            try:
                sides = decoded[0](truth[window]), decoded[1](pred[window])
                yield encoding.count(*sides, are_labels=True).cells
            except UndeclaredValuesError as error:
                undeclared[error.side].update(error.values)

    total = SparseConfusionCounts.summed(encoding.num_classes, parts())
    for side, values in undeclared.items():
        if values:
            raise UndeclaredValuesError(side, values)
    if not are_labels:
        check_counted(tuple(truth.shape), total.cells, encoding.num_classes)
    return total
