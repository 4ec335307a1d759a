"""Boundary counts of two label maps in arrays."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal

from segiou._support.arguments import check_choice, check_integer, check_kind, is_several
from segiou.counting.encoding import Encoding
from segiou.measures.boundary.byte_codes import ByteCodes
from segiou.measures.boundary.image import count_labels
from segiou.measures.boundary.measure import BoundaryOptions
from segiou.measures.boundary.sums import BoundaryCounts
from segiou.regions.label_codes import LabelCodes


def boundary_counts(
    truth: Any,
    pred: Any,
    num_classes: int,
    *,
    ignore: int | Iterable[int] = (),
    unassigned: Literal["error", "count"] = "error",
    mask: Any = None,
    options: BoundaryOptions | None = None,
) -> BoundaryCounts:
    """Count the pixels along the boundaries of two label maps.

    Parameters
    ----------
    truth, pred : array_like of int or bool, equal shapes (H, W)
        Labels 0 … C − 1.
    num_classes : int
        C.
    ignore : int or iterable of int
        Truth values whose pixels are skipped regardless of the prediction: they
        form no boundary and are not counted.
    unassigned : {"error", "count"}
        Whether a prediction outside 0 … C − 1 on a valid pixel is an error, or
        counts as a pixel without a class.
    mask : array_like of bool, optional
        True where a pixel is valid.
    options : BoundaryOptions, optional
        Widths of the bands.

    Raises
    ------
    TypeError
        If an array does not contain integers or bool.
    ValueError
        If the shapes differ or are not (H, W), or ``num_classes`` is less than 1.
    UndeclaredValuesError
        If a value is neither a class nor ignored.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.zeros((8, 8), dtype=np.uint8)
    >>> truth[2:6, 2:6] = 1
    >>> pred = np.roll(truth, 1, axis=1)
    >>> options = BoundaryOptions(widths=1)
    >>> counts = boundary_counts(truth, pred, 2, options=options).band_counts()[0, 1]
    >>> int(counts.tp), int(counts.fp), int(counts.fn)
    (6, 6, 6)
    """
    # Values that cannot be keys of the cache are wrong, which this reports.
    values: Iterable[Any] = ignore if is_several(ignore) else (ignore,)
    ignored = tuple(check_integer("ignore", value) for value in values)
    check_choice("unassigned", unassigned, ("error", "count"))
    codes = _label_codes(check_integer("num_classes", num_classes, 1), ignored, unassigned)
    if options is None:
        options = BoundaryOptions()
    check_kind("options", options, BoundaryOptions, "BoundaryOptions")
    return count_labels(codes, truth, pred, options, mask)


@lru_cache(maxsize=2, typed=True)
def _label_codes(
    num_classes: int, ignore: tuple[int, ...], unassigned: Literal["error", "count"]
) -> LabelCodes:
    # Cached, because building it takes a fifth of the time of a small image.
    return ByteCodes(Encoding.of_indices(num_classes, ignore, unassigned))
