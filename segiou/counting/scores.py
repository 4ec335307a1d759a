"""Scores → labels, by argmax or by a threshold; compiled routines where they were built."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part, warn_missing
from segiou.counting import reference
from segiou.counting.arrays import as_array, check_decision, is_bfloat16

_compiled = load_part("segiou.counting._scores")
#: "c" where the compiled routines were built, else "numpy"; both give the same labels.
SCORES_BACKEND = "numpy" if _compiled is None else "c"


class NanScoresError(ValueError):
    """Scores that are NaN, and so name no class."""

    def __init__(self, pixels: int) -> None:
        super().__init__(
            f"{pixels} pixels have a NaN score, which names no class; fix the model, or put a "
            "number there"
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
        Scores, logits or probabilities; of any strides, never copied as a whole.
    argmax : int, optional
        The class axis: the label is the position of the largest score along
        it, the first where several are equal.
    threshold : float, optional
        The label is 1 where the score is above this, else 0. It is rounded to
        the type of the scores first, as frameworks do.
    allow_nan : bool
        Whether a NaN score gives its pixel some label, instead of an error.

    Returns
    -------
    ndarray
        Labels: without the class axis (argmax), or bool of the same shape.

    Raises
    ------
    TypeError
        If the scores are not numbers.
    ValueError
        If both or neither of ``argmax`` and ``threshold`` are given, the axis
        does not exist, or a score is NaN.

    Examples
    --------
    >>> scores_to_labels([[0.1, 0.7], [0.9, 0.3]], argmax=0).tolist()
    [1, 0]
    >>> scores_to_labels([0.2, 0.8], threshold=0.5).tolist()
    [False, True]
    """
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


def nan_pixels(scores: Any, *, argmax: int | None = None, **_: Any) -> NDArray[np.bool_]:
    """Pixels that have a NaN score."""
    array = as_array(scores, "pred")
    planes = array[None] if argmax is None else np.moveaxis(array, argmax, 0)
    found = np.zeros(planes.shape[1:], dtype=bool)
    for plane in planes:
        if is_bfloat16(array.dtype):
            found |= (plane.view(np.uint16) & 0x7FFF) > 0x7F80
        elif array.dtype.kind == "f":
            found |= np.isnan(plane)
    return found


def _decided(planes: NDArray[Any], threshold: float | None) -> tuple[NDArray[Any], int]:
    """The labels, and how many pixels have a NaN score."""
    kind = _kind(planes.dtype)
    limit = bits = None
    if threshold is not None:
        limit = _rounded(threshold, planes.dtype)
        bits = int(limit.view(f"u{limit.itemsize}")) >> (16 if kind == "bfloat16" else 0)
    dtype = np.bool_ if limit is not None else np.uint8 if len(planes) <= 256 else np.intp
    walked, labels, found = _laid_out(planes, dtype)
    is_known = kind is not None and (limit is None or kind not in ("int", "uint"))
    if _compiled is not None and is_known and labels.itemsize == 1:
        unsigned = walked.view(f"u{walked.itemsize}")
        if _compiled.decide_into(unsigned, kind, bits, labels):
            return found, 0
    # Either it cannot be done otherwise, or there is NaN to be counted.
    return found, reference.decide_into(walked, limit, labels)


def _laid_out(planes: NDArray[Any], dtype: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Scores to be walked as memory lies, room for their labels, and these in the order given."""
    strides = list(planes.strides[1:])
    if strides == sorted(map(abs, strides), reverse=True):
        labels = np.empty(planes.shape[1:], dtype=dtype)
        return planes, labels, labels
    order = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
    forwards = [slice(None, None, -1 if strides[axis] < 0 else 1) for axis in order]
    walked = planes.transpose([0, *(1 + axis for axis in order)])[:, *forwards]
    labels = np.empty(walked.shape[1:], dtype=dtype)
    found: NDArray[Any] = labels[tuple(forwards)]
    return walked, labels, found.transpose(np.argsort(order))


def _kind(dtype: np.dtype[Any]) -> str | None:
    """What the compiled routines call a type; None if they do not know it."""
    if not dtype.isnative:
        return None
    if is_bfloat16(dtype):
        return "bfloat16"
    if dtype.kind == "f":
        return {2: "float16", 4: "float32", 8: "float64"}.get(dtype.itemsize)
    return "int" if dtype.kind == "i" else "uint"


def _rounded(threshold: float, dtype: np.dtype[Any]) -> Any:
    """The threshold in the type of the scores; for integers and bfloat16 in a wider one."""
    if dtype.kind in "iub":
        return np.float64(threshold)
    with np.errstate(over="ignore"):
        if not is_bfloat16(dtype):
            return dtype.newbyteorder("=").type(threshold)
        limit = np.float32(threshold)
    if np.isfinite(limit):
        bits = int(limit.view(np.uint32))
        bits += 0x7FFF + (bits >> 16 & 1)  # half of the last place: ties to even
        limit = np.uint32(bits >> 16 << 16).view(np.float32)
    return limit
