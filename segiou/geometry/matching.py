"""Greedy one-to-one matching of predictions and truths, as in COCO."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_number, refuse_kind
from segiou.counting.arrays import as_array
from segiou.geometry.boxes import Format, as_flags, box_iou

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Matching:
    """Matches of predictions and truths at one threshold.

    Attributes
    ----------
    pairs : ndarray of int64, shape (tp, 2)
        Truth and prediction of each true positive, by decreasing score.
    ignored_pairs : ndarray of int64, shape (K, 2)
        Matches with a crowd or an ignored truth: neither true nor false positives.
    unmatched_pred : ndarray of int64, shape (fp,)
        The false positives, by decreasing score.
    unmatched_truth : ndarray of int64, shape (fn,)
        The false negatives, without crowds and ignored truths.
    """

    pairs: Indices
    ignored_pairs: Indices
    unmatched_pred: Indices
    unmatched_truth: Indices

    @property
    def tp(self) -> int:
        """Number of true positives."""
        return len(self.pairs)

    @property
    def fp(self) -> int:
        """Number of false positives."""
        return len(self.unmatched_pred)

    @property
    def fn(self) -> int:
        """Number of false negatives."""
        return len(self.unmatched_truth)


def greedy_match(
    iou: ArrayLike,
    scores: ArrayLike | None = None,
    *,
    threshold: float = 0.5,
    crowd: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
) -> Matching:
    """Match predictions and truths one to one, in order of decreasing score.

    Parameters
    ----------
    iou : array_like of float, shape (N, M)
        IoU of truths (rows) and predictions (columns): boxes, masks, polygons or intervals. For
        crowds, the intersection over the prediction, as returned by `box_iou` with ``crowd``.
    scores : array_like of float, shape (M,), optional
        Confidence of each prediction. Ties keep their order. By default, predictions are matched
        in column order.
    threshold : float
        Least IoU of a match, compared with ``>=``.
    crowd : array_like of bool, shape (N,), optional
        Truths that mark a crowd: any number of predictions may match a crowd.
    ignore : array_like of bool, shape (N,), optional
        Truths that are not counted, such as difficult ones or those outside a size range. Each is
        matched at most once. Crowds are always ignored.

    Returns
    -------
    Matching
        The pairs and the counts `tp`, `fp`, `fn`.

    Raises
    ------
    TypeError, ValueError
        If a shape does not match, or a score or the threshold is NaN.

    Notes
    -----
    Follows ``COCOeval.evaluateImg`` of pycocotools. Predictions are matched by decreasing score,
    each with the free truth of highest IoU that is at least ``min(threshold, 1 - 1e-10)``; ties go
    to the last truth. Ignored truths are considered only if no other truth matches, and the
    prediction is then ignored as well. An IoU of NaN never matches.

    Examples
    --------
    >>> m = greedy_match([[0.9, 0.8, 0.0], [0.0, 0.6, 0.0]], scores=[0.7, 0.9, 0.8])
    >>> m.pairs
    array([[0, 1]])
    >>> m.tp, m.fp, m.fn
    (1, 2, 1)
    """
    table = _numbers("iou", iou)
    least = min(check_number("threshold", threshold), 1 - 1e-10)
    if table.ndim != 2:
        msg = f"iou must have shape (truths, predictions), got {table.shape}"
        raise ValueError(msg)
    truths, preds = table.shape
    crowds = np.zeros(truths, bool) if crowd is None else as_flags(crowd, (truths,), "crowd")
    ignored = crowds if ignore is None else crowds | as_flags(ignore, (truths,), "ignore")
    order = _order(scores, preds)
    partner = _partners(table, order, least, crowds, ignored)
    matched = order[partner[order] >= 0]
    pairs = np.stack([partner[matched], matched], axis=-1)
    aside = ignored[pairs[:, 0]]
    missed = ~ignored
    missed[pairs[:, 0]] = False
    return Matching(
        pairs=pairs[~aside],
        ignored_pairs=pairs[aside],
        unmatched_pred=order[partner[order] < 0],
        unmatched_truth=np.flatnonzero(missed).astype(np.int64),
    )


def _partners(
    table: NDArray[np.float64],
    order: Indices,
    least: float,
    crowds: NDArray[np.bool_],
    ignored: NDArray[np.bool_],
) -> Indices:
    """The truth that each prediction is matched with, in an order; −1 for none."""
    partner = np.full(table.shape[1], -1, dtype=np.int64)
    free = np.ones(len(table), dtype=np.bool_)
    for pred in order:
        close = table[:, pred] >= least
        for allowed in (close & free & ~ignored, close & (free | crowds) & ignored):
            if allowed.any():
                best = table[allowed, pred].max()
                partner[pred] = np.flatnonzero(allowed & (table[:, pred] == best))[-1]
                free[partner[pred]] = False
                break
    return partner


def match_boxes(
    truth: ArrayLike,
    pred: ArrayLike,
    scores: ArrayLike | None = None,
    *,
    threshold: float = 0.5,
    crowd: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
    fmt: Format = "xyxy",
) -> Matching:
    """Match the predicted and true boxes of one image and class, as in COCO.

    Parameters
    ----------
    truth : array_like, shape (N, 4)
        True boxes.
    pred : array_like, shape (M, 4)
        Predicted boxes.
    scores, threshold, crowd, ignore
        As for `greedy_match`.
    fmt : {"xyxy", "xywh", "cxcywh"}
        As for `box_iou`; COCO files use "xywh".

    Returns
    -------
    Matching
        The pairs and the counts `tp`, `fp`, `fn`.

    Raises
    ------
    TypeError, ValueError
        As for `box_iou` and `greedy_match`.

    Examples
    --------
    >>> m = match_boxes([[0, 0, 10, 10]], [[0, 0, 9, 10], [50, 50, 60, 60]], [0.9, 0.4])
    >>> m.tp, m.fp, m.fn
    (1, 1, 0)
    """
    iou = box_iou(truth, pred, fmt=fmt, crowd=crowd)
    return greedy_match(iou, scores, threshold=threshold, crowd=crowd, ignore=ignore)


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = as_array(values, name)
    if array.size and array.dtype.kind not in "biuf":
        raise refuse_kind(name, values, "numbers")
    return array.astype(np.float64, copy=False)


def _order(scores: ArrayLike | None, preds: int) -> Indices:
    if scores is None:
        return np.arange(preds, dtype=np.int64)
    values = _numbers("scores", scores)
    if values.shape != (preds,):
        msg = f"scores must have one value per prediction, shape ({preds},), got {values.shape}"
        raise ValueError(msg)
    if np.isnan(values).any():
        msg = f"the score of prediction {int(np.flatnonzero(np.isnan(values))[0])} is NaN"
        raise ValueError(msg)
    return np.argsort(-values, kind="stable")
