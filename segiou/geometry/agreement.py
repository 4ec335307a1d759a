"""Inter-annotator agreement: IoU between several masks of one image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_choice, check_integer, check_several, read_several
from segiou.counting.arrays import as_label_array, with_dimensions_of
from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import count_pairs
from segiou.geometry.positions import quotient
from segiou.metrics.per_class import iou

Ties = Literal["drop", "lowest"]
Labels = NDArray[Any]
Masks = Sequence[ArrayLike] | Labels

#: A vote of each class is kept for every pixel.
_MOST_CLASSES = 1 << 16
#: Label of a pixel without a consensus.
UNDECIDED = -1


def annotator_iou(
    masks: Masks, num_classes: int, *, ignore: int | Iterable[int] = ()
) -> NDArray[np.float64]:
    """IoU of each pair of annotators, per class.

    Parameters
    ----------
    masks : array_like of int, shape (K, ...), or sequence of K arrays of one shape
        Labels 0 … C − 1 from at least two annotators.
    num_classes : int
        C.
    ignore : int or iterable of int
        Values that mark pixels without a class. Such a pixel is skipped in all pairs that involve
        this annotator.

    Returns
    -------
    ndarray of float64, shape (K, K, C)
        Symmetric in the first two axes; NaN if neither annotator used the class.
        ``segiou.metrics.mean`` of the result is the (K, K) mean IoU over the classes.

    Raises
    ------
    TypeError
        If a mask does not contain integers.
    ValueError
        If there are fewer than two masks, shapes differ, or a value is undeclared.

    Examples
    --------
    >>> masks = [[[0, 0, 1, 1]], [[0, 0, 1, 1]], [[0, 0, 0, 1]]]
    >>> annotator_iou(masks, 2)[..., 1]
    array([[1. , 1. , 0.5],
           [1. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    labels = _read(masks, num_classes, ignore)
    values = np.empty((len(labels), len(labels), num_classes))
    for a, b in combinations_with_replacement(range(len(labels)), 2):
        values[a, b] = values[b, a] = _iou(labels[a], labels[b], num_classes)
    return values


def consensus(
    masks: Masks, num_classes: int, *, ignore: int | Iterable[int] = (), ties: Ties = "drop"
) -> NDArray[np.int64]:
    """Majority label of each pixel: the class chosen by most annotators.

    Parameters
    ----------
    masks, num_classes, ignore
        As for `annotator_iou`.
    ties : {"drop", "lowest"}
        Label of a pixel with tied votes: none (-1), or the lowest of the tied classes.

    Returns
    -------
    ndarray of int64, the shape of one mask
        Labels; -1 for tied votes (with "drop") and for pixels without votes.

    Raises
    ------
    TypeError, ValueError
        As for `annotator_iou`, or if `ties` is unknown.

    Examples
    --------
    >>> consensus([[0, 0, 1, 1], [0, 1, 1, 2], [0, 1, 0, 0]], 3)
    array([ 0,  1,  1, -1])
    """
    return _majority(vote_counts(masks, num_classes, ignore=ignore), ties)


def consensus_iou(
    masks: Masks, num_classes: int, *, ignore: int | Iterable[int] = (), ties: Ties = "drop"
) -> NDArray[np.float64]:
    """IoU of each annotator with the consensus, per class.

    Every annotator contributes to the majority, so all values are high if there are few annotators;
    compare the values with each other rather than with 1. Pixels without a consensus are skipped.

    Parameters
    ----------
    masks, num_classes, ignore, ties
        As for `consensus`.

    Returns
    -------
    ndarray of float64, shape (K, C)
        NaN if neither the annotator nor the consensus has the class.

    Raises
    ------
    TypeError, ValueError
        As for `consensus`.

    Examples
    --------
    >>> consensus_iou([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], 2)
    array([[1.        , 1.        ],
           [1.        , 1.        ],
           [0.66666667, 0.5       ]])
    """
    labels = _read(masks, num_classes, ignore)
    agreed = _majority(_votes(labels, num_classes), ties)
    return np.stack([_iou(agreed, label, num_classes) for label in labels])


def disagreement(
    masks: Masks,
    num_classes: int,
    *,
    ignore: int | Iterable[int] = (),
    measure: Literal["share", "entropy"] = "share",
) -> NDArray[np.float64]:
    """Heat map of the disagreement between annotators.

    Parameters
    ----------
    masks, num_classes, ignore
        As for `annotator_iou`.
    measure : {"share", "entropy"}
        The share of annotators who differ from the majority, 1 − (most votes) / votes; or the
        entropy of the votes divided by that of an even split over all classes, −Σ p ln p / ln C.
        With fewer annotators than classes the entropy stays below 1.

    Returns
    -------
    ndarray of float64, the shape of one mask
        0 if all agree; NaN for pixels without votes.

    Raises
    ------
    TypeError, ValueError
        As for `annotator_iou`, or if `measure` is unknown.

    Examples
    --------
    >>> disagreement([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]], 2)
    array([0.  , 0.25, 0.5 , 0.  ])
    """
    check_choice("measure", measure, ("share", "entropy"))
    votes = vote_counts(masks, num_classes, ignore=ignore)
    total = votes.sum(axis=0, dtype=np.int64)
    if measure == "share":
        return quotient(total - votes.max(axis=0), total)
    entropy = np.zeros(total.shape)
    for of_class in votes:
        share = quotient(of_class, total)
        entropy -= share * np.log(share, out=np.zeros(total.shape), where=share > 0)
    # Subtracting from 0 gives -0 if all agree.
    return quotient(np.abs(entropy), np.log(num_classes))


def vote_counts(
    masks: Masks, num_classes: int, *, ignore: int | Iterable[int] = ()
) -> NDArray[np.unsignedinteger[Any]]:
    """Count the annotators who chose each class, per pixel.

    Parameters
    ----------
    masks, num_classes, ignore
        As for `annotator_iou`.

    Returns
    -------
    ndarray of the smallest unsigned integer that holds K, shape (C, ...)
        The votes; their sum over the classes is the number of votes of a pixel.

    Raises
    ------
    TypeError, ValueError
        As for `annotator_iou`.

    Examples
    --------
    >>> vote_counts([[0, 0, 1], [0, 1, 255]], 2, ignore=255)
    array([[2, 1, 0],
           [0, 1, 1]], dtype=uint8)
    """
    return _votes(_read(masks, num_classes, ignore), num_classes)


def _read(masks: Masks, num_classes: int, ignore: int | Iterable[int]) -> Labels:
    """The labels of all annotators, (K, ...), with UNDECIDED for pixels without a class."""
    num_classes = check_integer("num_classes", num_classes, 1, _MOST_CLASSES)
    check_several("masks", masks, "label images, one per annotator")
    masks = [*masks]
    if not masks:
        msg = "expected the masks of at least two annotators, got 0"
        raise ValueError(msg)
    aligned = [with_dimensions_of(masks[0], mask) for mask in masks]
    labels: list[Labels] = [as_label_array(m, f"annotator {k}") for k, m in enumerate(aligned)]
    if len(labels) < 2:
        msg = f"expected the masks of at least two annotators, got {len(labels)}"
        raise ValueError(msg)
    for k, mask in enumerate(labels):
        if mask.shape != labels[0].shape:
            msg = f"annotator {k} has shape {mask.shape}, but annotator 0 has {labels[0].shape}"
            raise ValueError(msg)
    several = (
        [ignore]
        if isinstance(ignore, int | np.integer)
        else read_several("ignore", ignore, "integers")
    )
    ignored = [check_integer("ignore", value) for value in several]
    small = np.min_scalar_type(-num_classes)
    read = np.full((len(labels), *labels[0].shape), UNDECIDED, small)
    for k, mask in enumerate(labels):
        labelled = ~np.isin(mask, ignored) if ignored else ...
        _refuse_undeclared(mask[labelled], k, num_classes)
        read[k, ...][labelled] = mask[labelled]
    return read


def _refuse_undeclared(values: Labels, annotator: int, num_classes: int) -> None:
    if values.size == 0 or (values.min() >= 0 and values.max() < num_classes):
        return
    distinct, counts = np.unique(values, return_counts=True)
    wrong = (distinct < 0) | (distinct >= num_classes)
    listed = [f"{v} ({n} px)" for v, n in zip(distinct[wrong], counts[wrong], strict=True)]
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    msg = (
        f"annotator {annotator} has undeclared values (classes are 0 to {num_classes - 1}): "
        f"{', '.join(listed[:8])}{more}; increase num_classes, or pass them in ignore"
    )
    raise ValueError(msg)


def _iou(first: Labels, second: Labels, num_classes: int) -> NDArray[np.float64]:
    """IoU of each class over pixels that both sides label."""
    table = count_pairs(first, second, num_classes, ignore=UNDECIDED, unassigned="count")
    table[:, -1] = 0
    return iou(ConfusionCounts(table).counts)


def _votes(labels: Labels, num_classes: int) -> NDArray[np.unsignedinteger[Any]]:
    dtype = np.min_scalar_type(len(labels))
    votes = [(labels == value).sum(axis=0, dtype=dtype) for value in range(num_classes)]
    return np.stack(votes)


def _majority(votes: NDArray[np.unsignedinteger[Any]], ties: Ties) -> NDArray[np.int64]:
    check_choice("ties", ties, ("drop", "lowest"))
    most = votes.max(axis=0)
    is_open = most == 0
    if ties == "drop":
        is_open |= np.count_nonzero(votes == most, axis=0) > 1
    return np.where(is_open, UNDECIDED, votes.argmax(axis=0))
