"""Pixels with a set of classes each → the counts of every class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import UndeclaredValuesError
from segiou.counting.id_pairs import count_id_pairs, count_ids
from segiou.counting.value_codes import ValueCodes

#: The set of each pixel as its number, and the class indices of each set.
Side = tuple[NDArray[Any], Sequence[Sequence[int]]]


def read_sets(
    side: str, values: NDArray[Any], sets: Sequence[Sequence[int]], codes: ValueCodes
) -> Side:
    """A mask of sets of class values; a label map has one class per pixel, if ``sets`` is empty."""
    if sets:
        return values, [codes.codes_of(np.array(members)).tolist() for members in sets]
    indices = codes.codes_of(values)
    if (wrong := indices == codes.undeclared).any():
        raise UndeclaredValuesError(side, count_ids(values[wrong]))
    return indices, [(code,) for code in range(codes.undeclared)]


def count_class_sets(
    truth: Side, pred: Side, num_classes: int, rest: int, valid: NDArray[np.bool_] | None = None
) -> ConfusionCounts:
    """Count each class separately; pixels of a class and not of the other side are of the rest.

    The class ``rest`` has the pixels of no other class: every pixel is counted once per class, so
    that TP, FP and FN of each class are those of its channel.

    >>> sides = (np.array([0, 1, 2]), [(0,), (1,), (1, 2)]), (np.array([0, 1, 1]), [(0,), (1,)])
    >>> count_class_sets(*sides, 3, 0).table.tolist()
    [[3, 0, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0]]
    """
    sides = [numbers if valid is None else numbers[valid] for numbers, _ in (truth, pred)]
    in_truth, in_pred, pixels = count_id_pairs(*sides)
    # The number of classes is the code of ignored pixels.
    ignored = np.array([num_classes in classes for classes in truth[1]])[in_truth.astype(np.intp)]
    left_out = int(pixels[ignored].sum()) + truth[0].size - sides[0].size
    pixels = np.where(ignored, 0, pixels)
    t = _members(truth[1], num_classes)[in_truth.astype(np.intp)]
    p = _members(pred[1], num_classes)[in_pred.astype(np.intp)]
    table = np.zeros((num_classes, num_classes + 1), np.int64)
    for c in range(num_classes):
        if c == rest:
            continue
        for row, here in ((c, t[:, c]), (rest, ~t[:, c])):
            for column, there in ((c, p[:, c]), (rest, ~p[:, c])):
                table[row, column] += pixels[here & there].sum()
    return ConfusionCounts(table, np.int64(left_out))


def _members(sets: Sequence[Sequence[int]], num_classes: int) -> NDArray[np.bool_]:
    """Whether each set contains each class."""
    contains = np.zeros((len(sets), num_classes), np.bool_)
    for number, classes in enumerate(sets):
        contains[number, [c for c in classes if c < num_classes]] = True
    return contains
