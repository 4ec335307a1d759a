"""Masks larger than memory, counted window by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from segiou.counting.counts import Cells, CellTally
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.masks.windows import WINDOW_PIXELS, BigMask, chunks_of, window_slices

__all__ = ["count_windows"]


def count_windows(
    encoding: Encoding,
    truth: BigMask,
    pred: BigMask,
    *,
    pixels: int = WINDOW_PIXELS,
    decoded: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (np.asarray, np.asarray),
) -> CellTally:
    """Count a pair of masks without ever holding them whole.

    Parameters
    ----------
    encoding : Encoding
        What values mean, such as :meth:`Encoding.of_classes` gives.
    truth, pred : array-like with shape, dtype and slices, equal shapes
        zarr and dask arrays, memory maps, :class:`BigMask`.
    pixels : int
        Pixels of a window; memory is a few bytes times that.
    decoded : pair of callables
        How a window of either side becomes an array of labels.

    Raises
    ------
    ValueError
        If the shapes differ.
    UndeclaredValuesError
        As :meth:`segiou.counting.Encoding.count`, with the values of the whole.

    Examples
    --------
    >>> from segiou.labels.class_options import ClassOptions
    >>> truth = np.zeros((100, 100), dtype=np.uint8)
    >>> encoding = Encoding.of_classes(ClassOptions.of(2))
    >>> count_windows(encoding, truth, truth, pixels=1000).table.tolist()
    [[10000, 0, 0], [0, 0, 0]]
    """
    if truth.shape != pred.shape:
        msg = f"truth has shape {truth.shape} but pred has {pred.shape}; they must be equal"
        raise ValueError(msg)
    undeclared: dict[str, Counter[int]] = {"truth": Counter(), "pred": Counter()}

    def parts() -> Iterator[Cells]:
        for window in window_slices(tuple(truth.shape), _steps(truth, pred), pixels):
            try:
                yield encoding.count(decoded[0](truth[window]), decoded[1](pred[window])).cells
            except UndeclaredValuesError as error:
                undeclared[error.side].update(error.values)

    total = CellTally.summed(encoding.num_classes, parts())
    for side, values in undeclared.items():
        if values:
            raise UndeclaredValuesError(side, values)
    return total


def _steps(truth: BigMask, pred: BigMask) -> tuple[int, ...] | None:
    """Chunks of both; the larger where they differ, so that few are read twice."""
    found = [steps for steps in (chunks_of(truth), chunks_of(pred)) if steps is not None]
    return tuple(max(sizes) for sizes in zip(*found, strict=True)) if found else None
