"""A drop-in replacement for ``mean_iou`` of Hugging Face ``evaluate``; needs no framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from segiou import metrics
from segiou._support.arguments import (
    check_flag,
    check_integer,
    check_kind,
    check_number,
    check_several,
)
from segiou._support.text import Json
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.encoding import Encoding
from segiou.counting.value_codes import MAX_CLASSES

__all__ = ["mean_iou"]


def mean_iou(
    predictions: Iterable[Any],
    references: Iterable[Any],
    num_labels: int,
    ignore_index: int | None = None,
    nan_to_num: float | None = None,
    label_map: Mapping[int, int] | None = None,
    reduce_labels: bool = False,
) -> dict[str, Json]:
    """Mean IoU of a list of masks, with the keys of ``evaluate.load("mean_iou")``.

    Parameters
    ----------
    predictions, references : iterable of array_like of int
        Masks, one reference per prediction; pairs may differ in size.
    num_labels : int
        Number of classes, C.
    ignore_index : int, optional
        Reference pixels with this value are dropped, after `label_map` and
        `reduce_labels` have been applied.
    nan_to_num : float, optional
        Replacement for undefined scores, which are NaN by default.
    label_map : mapping of int to int, optional
        New values of reference values, replaced simultaneously.
    reduce_labels : bool
        Whether reference values start at 1: 0 becomes 255, and all other values
        are reduced by one.

    Returns
    -------
    dict
        ``mean_iou``, ``mean_accuracy``, ``overall_accuracy``, and ``per_category_iou`` and
        ``per_category_accuracy`` as lists of C floats.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or value.
    segiou.counting.UndeclaredValuesError
        If a reference value is neither a class nor ignored. ``evaluate`` drops
        such pixels silently but counts their predictions as false positives.

    Examples
    --------
    >>> scores = mean_iou([[[0, 1, 1]]], [[[0, 1, 255]]], num_labels=3, ignore_index=255)
    >>> scores["mean_iou"], scores["per_category_iou"]
    (1.0, [1.0, 1.0, nan])
    """
    number = check_integer("num_labels", num_labels, 1, MAX_CLASSES)
    ignored = None if ignore_index is None else check_integer("ignore_index", ignore_index)
    filling = None if nan_to_num is None else check_number("nan_to_num", nan_to_num)
    check_kind("label_map", label_map, (Mapping, type(None)), "a mapping of values to new values")
    check_flag("reduce_labels", reduce_labels)
    mapped = {
        check_integer("a value of label_map", old): check_integer("a new value of label_map", new)
        for old, new in (label_map or {}).items()
    }
    encoding = _encoding(number, ignored, mapped, bool(reduce_labels))
    counted = ConfusionMatrix(number)
    for name, masks in (("predictions", predictions), ("references", references)):
        check_several(name, masks, "a sequence of masks")
    ended = object()
    for pred, truth in zip_longest(predictions, references, fillvalue=ended):
        if pred is ended or truth is ended:
            more = "references" if pred is ended else "predictions"
            msg = f"{more} has more masks; pass one reference per prediction"
            raise ValueError(msg)
        counted.add(encoding.count(truth, pred))
    scores: dict[str, Any] = {
        "mean_iou": metrics.mean(counted.iou()),
        "mean_accuracy": counted.mean_accuracy(),
        "overall_accuracy": counted.pixel_accuracy(),
        "per_category_iou": counted.iou(),
        "per_category_accuracy": counted.recall(),
    }
    if filling is not None:
        scores = {name: np.nan_to_num(value, nan=filling) for name, value in scores.items()}
    return {name: np.asarray(value).tolist() for name, value in scores.items()}


def _encoding(
    num_labels: int, ignore_index: int | None, label_map: Mapping[int, int], reduce_labels: bool
) -> Encoding:
    """Reference values of each class and ignored values, after both mappings."""
    beyond = {255} if ignore_index is None else {255, ignore_index, ignore_index + 1}
    meanings: dict[int, list[int]] = {}
    for value in sorted({*range(num_labels + 1), *beyond, *label_map}):
        meaning = label_map.get(value, value)
        if reduce_labels:
            meaning = 255 if meaning in (0, 255) else meaning - 1
        meanings.setdefault(meaning, []).append(value)
    ignored = [] if ignore_index is None else meanings.get(ignore_index, [])
    return Encoding.of(
        [meanings.get(label, []) for label in range(num_labels)],
        [(label,) for label in range(num_labels)],
        ignore=ignored,
        unassigned="count",
    )
