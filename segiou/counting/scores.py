"""Scores → labels, by argmax or by a threshold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_flag, check_number
from segiou._support.optional import load_part, warn_missing
from segiou._support.text import plural
from segiou.counting import reference
from segiou.counting.arrays import AtLeast, as_array, as_float, check_decision, is_bfloat16

#: Probabilities of half precision may be this much outside [0, 1].
_ROUNDING = 1e-3

_compiled = load_part("segiou.counting._scores")
#: "c" if the compiled routines were built, else "numpy"; both return the same labels.
SCORES_BACKEND = "numpy" if _compiled is None else "c"


class NanScoresError(ValueError):
    """Pixels with a NaN score, which have no label."""

    def __init__(self, pixels: int) -> None:
        super().__init__(
            f"found NaN scores on {plural(pixels, 'pixel')}; fix the model, or replace the NaNs"
        )
        self.pixels = pixels

    def __reduce__(self) -> tuple[Any, ...]:
        return (NanScoresError, (self.pixels,))


def scores_to_labels(
    scores: Any,
    *,
    argmax: int | None = None,
    threshold: float | None = None,
    allow_nan: bool = False,
) -> NDArray[np.integer[Any] | np.bool_]:
    """Turn scores into labels, by argmax or by a threshold.

    Parameters
    ----------
    scores : array_like of float or int
        Scores, logits or probabilities, with any strides; they are never copied
        as a whole.
    argmax : int, optional
        The class axis. The label is the position of the largest score along
        it, or the first of several equal ones.
    threshold : float, optional
        The label is True if the score is greater than this. A score equal to
        the threshold is False, as in torchmetrics;
        segmentation_models.pytorch uses ``>=``. The threshold is rounded to the
        dtype of the scores first, as frameworks do.
    allow_nan : bool
        Whether pixels with a NaN score get an arbitrary label instead of
        raising an error.

    Returns
    -------
    ndarray
        With ``argmax``, labels without the class axis; with ``threshold``, an
        array of bool of the same shape.

    Raises
    ------
    TypeError
        If the scores are not numbers.
    ValueError
        If not exactly one of ``argmax`` and ``threshold`` is given, the axis
        does not exist, or a score is NaN.

    Examples
    --------
    >>> scores_to_labels([[0.1, 0.7], [0.9, 0.3]], argmax=0).tolist()
    [1, 0]
    >>> scores_to_labels([0.2, 0.8], threshold=0.5).tolist()
    [False, True]
    """
    check_flag("allow_nan", allow_nan)
    if threshold is not None:
        check_number("threshold", threshold)
    array = as_array(scores, "pred")
    if array.dtype.kind not in "fiub" and not is_bfloat16(array.dtype):
        msg = f"scores must be numbers, got dtype {array.dtype}"
        raise TypeError(msg)
    check_decision(array.shape, argmax, threshold)
    if _compiled is None:
        warn_missing("segiou.counting._scores")
    planes = array[None] if argmax is None else np.moveaxis(array, argmax, 0)
    labels, nan = _decided(planes, threshold)
    if nan and not allow_nan:
        raise NanScoresError(nan)
    return labels


class ScaleCheck:
    """Warns once of scores of another scale than that of the threshold, by the first scores."""

    def __init__(self) -> None:
        self.is_done: bool = False

    def check(
        self, truth: Any, scores: Any, threshold: Any, *, ignore: Any = (), mask: Any = None
    ) -> None:
        """Check scores in the shape of the truth, without ignored and masked values."""
        labels, scores = as_array(truth, "truth"), as_array(scores, "pred")
        mask = np.True_ if mask is None else as_array(mask, "mask")
        scores = as_float(scores)
        is_wrong = labels.shape != scores.shape or mask.shape not in ((), scores.shape)
        if scores.dtype.kind != "f" or is_wrong or mask.dtype != np.bool_:
            return  # of integers, or an error of the count
        valid = ~np.isin(labels, ignore) & mask
        if valid.any():
            scores = scores[valid]
            warned = warn_of_scale(int(scale_of(scores, threshold).max()))
            self.is_done = warned or bool(scores.min() < scores.max())  # not by a trial run


#: What scores show about a threshold; the largest of all scores counts.
_PROBABILITIES, _LOGITS, _WRONG_LOGITS = 1, 2, 3


def scale_of(scores: Any, threshold: Any, xp: Any = np) -> Any:
    """A number for each score, whose maximum is for `warn_of_scale`; NaN and others are 0."""
    limits = np.asarray(threshold)
    are_of_probabilities = bool(((limits > 0) & (limits < 1)).all())
    is_outside = (scores < -_ROUNDING) | (scores > 1 + _ROUNDING)
    if not limits.any():
        is_between = (scores > 0) & (scores < 1)
        return xp.where(is_outside, _LOGITS, xp.where(is_between, _PROBABILITIES, 0))
    return xp.where(is_outside, _WRONG_LOGITS if are_of_probabilities else 0, 0)


def warn_of_scale(scale: int) -> bool:
    """Warn if a threshold of probabilities met logits, or one of logits probabilities."""
    if scale == _WRONG_LOGITS:
        text = (
            "threshold is between 0 and 1, but scores are outside [0, 1], so they are probably "
            "logits; apply a sigmoid, or pass the logit of the threshold: log(p / (1 - p)), which "
            "is 0 for p = 0.5"
        )
    elif scale == _PROBABILITIES:
        text = (
            "threshold is 0, but all scores are in [0, 1], so they are probably probabilities; "
            "pass threshold=0.5"
        )
    else:
        return False
    warnings.warn(text, stacklevel=3)
    return True


def nan_pixels(scores: Any, *, argmax: int | None = None, **_: Any) -> NDArray[np.bool_]:
    """Which pixels have a NaN score."""
    array = as_array(scores, "pred")
    planes = array[None] if argmax is None else np.moveaxis(array, argmax, 0)
    is_nan = np.zeros(planes.shape[1:], dtype=bool)
    for plane in map(as_float, planes):
        if plane.dtype.kind == "f":
            is_nan |= np.isnan(plane)
    return is_nan


def _decided(planes: NDArray[Any], threshold: float | None) -> tuple[NDArray[Any], int]:
    """The labels, and how many pixels have a NaN score."""
    kind = _kind(planes.dtype)
    limit = bits = None
    if threshold is not None:
        limit = rounded(threshold, planes.dtype)
        if isinstance(threshold, AtLeast):
            limit = _next_lower(limit, planes.dtype)
        if kind is not None:
            bits = int(limit.view(f"u{limit.itemsize}")) >> (16 if kind == "bfloat16" else 0)
    dtype = np.bool_ if limit is not None else _label_type(planes)
    walked, labels, in_order = _laid_out(planes, dtype)
    if isinstance(threshold, AtLeast) and threshold == -np.inf:  # below which there is no limit
        missing = nan_pixels(planes, argmax=0)
        in_order[...] = ~missing
        return in_order, int(missing.sum())
    is_known = kind is not None and (limit is None or kind not in ("int", "uint"))
    if _compiled is not None and is_known and labels.itemsize <= 2:
        unsigned = walked.view(f"u{walked.itemsize}")
        if _compiled.decide_into(unsigned, kind, bits, labels):
            return in_order, 0
    # The compiled routine does not know the dtype, or there are NaNs to count.
    return in_order, reference.decide_into(walked, limit, labels)


def _label_type(planes: NDArray[Any]) -> Any:
    """The smallest type for labels that the compiled routines can write; else intp."""
    if len(planes) <= 256:
        return np.uint8
    return np.uint16 if len(planes) <= 1 << 16 and planes.itemsize > 1 else np.intp


def _laid_out(planes: NDArray[Any], dtype: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Scores in memory order, an array for their labels, and a view of it in the given order."""
    strides = list(planes.strides[1:])
    if strides == sorted(map(abs, strides), reverse=True):
        labels = np.empty(planes.shape[1:], dtype=dtype)
        return planes, labels, labels
    order = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
    forwards = [slice(None, None, -1 if strides[axis] < 0 else 1) for axis in order]
    walked = planes.transpose([0, *(1 + axis for axis in order)])[:, *forwards]
    labels = np.empty(walked.shape[1:], dtype=dtype)
    view: NDArray[Any] = labels[tuple(forwards)]
    return walked, labels, view.transpose(np.argsort(order))


def _kind(dtype: np.dtype[Any]) -> str | None:
    """Name of a dtype in the compiled routines; None if they do not support it."""
    if not dtype.isnative:
        return None
    if is_bfloat16(dtype):
        return "bfloat16"
    if dtype.kind == "f":
        return {2: "float16", 4: "float32", 8: "float64"}.get(dtype.itemsize)
    return "int" if dtype.kind == "i" else "uint"


def rounded(threshold: float, dtype: np.dtype[Any]) -> Any:
    """The threshold in the dtype of the scores, or a wider one for integers and bfloat16."""
    if dtype.kind in "iub":
        return np.float64(threshold)
    with np.errstate(over="ignore"):
        if not is_bfloat16(dtype):
            return dtype.newbyteorder("=").type(threshold)
        limit = np.float32(threshold)
    if np.isfinite(limit):
        bits = int(limit.view(np.uint32))
        bits += 0x7FFF + (bits >> 16 & 1)  # half a unit in the last place; ties to even
        limit = np.uint32(bits >> 16 << 16).view(np.float32)
    return limit


def _next_lower(limit: Any, dtype: np.dtype[Any]) -> Any:
    """The next lower limit, so that ``> _next_lower(limit)`` is the same as ``>= limit``."""
    lowest = limit.dtype.type(-np.inf)
    if not is_bfloat16(dtype):
        with np.errstate(over="ignore"):
            return np.nextafter(limit, lowest)
    # The next lower float32 is between two bfloat16; that of the upper half of the bits is exact.
    half = np.nextafter(limit, lowest).view(np.uint32) >> 16
    lower = np.uint32(half << 16).view(np.float32)
    return lower if lower < limit else np.uint32((half + 1) << 16).view(np.float32)
