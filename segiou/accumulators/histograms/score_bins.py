"""Bins of scores, and scores → integer counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_integer
from segiou._support.optional import load_part, warn_missing
from segiou._support.text import plural
from segiou.counting.arrays import as_array, as_float, is_bfloat16
from segiou.counting.reference import iter_blocks
from segiou.counting.scores import NanScoresError
from segiou.metrics.ratio import Floats

Activation = Literal["softmax", "sigmoid"]
Ints = NDArray[np.int64]

FLOAT16 = "float16"
#: Bits of the half-precision number 1.0; those of 0.0 are 0, and scores are between them.
_ONE = 0x3C00
_MOST_BINS = 1 << 16
_compiled = load_part("segiou.accumulators.histograms._scores_by_bin")
#: Sums of top scores are integers in this unit, in which half-precision scores are exact.
SCORE_UNIT = 2.0**-24


class ScoreRangeError(ValueError):
    """Scores that are not probabilities.

    Attributes
    ----------
    scores : int
        Number of scores outside [0, 1] on valid pixels.
    """

    def __init__(self, scores: int) -> None:
        super().__init__(
            f"found {plural(scores, 'score')} outside [0, 1] on valid pixels; for logits, pass "
            "activation='softmax' or 'sigmoid' (--scores=softmax or --scores=sigmoid)"
        )
        self.scores: int = scores

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScoreRangeError, (self.scores,))


@dataclass(frozen=True)
class ScoreBins:
    """Bins in ascending order of scores.

    Attributes
    ----------
    kind : int or "float16"
        A number of equal bins in [0, 1], the last of which contains 1; or one bin
        per half-precision number.
    """

    kind: int | str = 4096

    def __post_init__(self) -> None:
        if isinstance(self.kind, str):
            if self.kind != FLOAT16:
                msg = f"bins must be an integer or 'float16', got {self.kind!r}"
                raise ValueError(msg)
        else:
            number = check_integer("bins", self.kind, 2, _MOST_BINS)
            object.__setattr__(self, "kind", number)

    @property
    def number(self) -> int:
        """Number of bins."""
        return _ONE + 1 if isinstance(self.kind, str) else int(self.kind)

    @cached_property
    def edges(self) -> Floats:
        """Smallest score of each bin."""
        if isinstance(self.kind, str):
            return np.arange(self.number, dtype=np.uint16).view(np.float16).astype(np.float64)
        return np.arange(self.number) / self.number

    @cached_property
    def values(self) -> Floats:
        """Representative score of each bin: its centre, or the half-precision number."""
        return self.edges if isinstance(self.kind, str) else self.edges + 0.5 / self.number

    def rows_of(self, rows: int) -> NDArray[np.int32]:
        """Row of each bin among equal ones, by its centre; that above the edge of two."""
        if isinstance(self.kind, str):
            return np.minimum((self.values * rows).astype(np.int32), rows - 1)
        centres = 2 * np.arange(self.number, dtype=np.int64) + 1  # in halves of a bin
        return (centres * rows // (2 * self.number)).astype(np.int32)

    def index_of(self, scores: NDArray[Any]) -> NDArray[np.intp]:
        """Bin of each score in [0, 1]."""
        if isinstance(self.kind, str):
            return (scores + 0.0).astype(np.float16).view(np.uint16).astype(np.intp)
        # Products may round across an edge, so the nearest edge is compared with the score.
        edge = np.rint(scores * np.float64(self.number))
        index = edge.astype(np.intp) - (scores < edge / self.number)
        return np.minimum(index, self.number - 1)


def as_scores(data: Any) -> NDArray[Any]:
    """View scores as an array of floats or of 8- or 16-bit integers; TypeError for others."""
    array = as_array(data, "scores")
    if array.dtype == np.bool_ or is_bfloat16(array.dtype) or array.dtype.kind == "f":
        return array
    if array.dtype.kind == "u" and array.itemsize <= 2:
        return array
    msg = f"scores must be floats, uint8 or uint16, got dtype {array.dtype}"
    raise TypeError(msg)


def check_axis(
    shape: tuple[int | None, ...],
    dtype: str,
    axis: int | None,
    activation: Activation | None,
    classes: int,
) -> None:
    """Raise unless scores of a shape and dtype have this class axis, and allow the activation."""
    if activation is not None:
        check_choice("activation", activation, ("softmax", "sigmoid"))
        if "float" not in dtype:
            msg = f"activation={activation!r} needs float scores, got {dtype}"
            raise TypeError(msg)
    if axis is None:
        if classes == 2 and activation != "softmax":
            return
        wanted = f"2 classes, not {classes}; pass the class axis"
        if classes == 2:
            wanted = "probabilities or activation='sigmoid'"
        msg = f"axis=None needs {wanted}"
        raise ValueError(msg)
    check_integer("axis", axis)
    if not -len(shape) <= axis < len(shape) or shape[axis] != classes:
        msg = (
            f"expected {plural(classes, 'class', 'classes')} along axis {axis} of scores of shape "
            f"{shape}; pass the class axis, such as axis=-1"
        )
        raise ValueError(msg)


def as_floats(part: NDArray[Any]) -> NDArray[Any]:
    """Scores as float32 or float64; 255 and 65535 are 1."""
    if is_bfloat16(part.dtype):
        return as_float(part)
    if part.dtype.kind == "u":
        return np.asarray(part / np.float64(np.iinfo(part.dtype).max))
    return part.astype(np.float64 if part.dtype.itemsize == 8 else np.float32, copy=False)


def two_planes(scores: NDArray[Any], activation: Activation | None) -> NDArray[Any]:
    """Scores of two classes from those of the second."""
    second = as_floats(scores)
    with np.errstate(invalid="ignore"):  # NaN scores are counted later
        return np.stack([1 - second if activation is None else -second, second])


#: exp(x) = 2^n · exp(r) for |r| ≤ log(2) / 2, by a polynomial of float32 operations that every
#: processor rounds in the same way, so that compiled code and NumPy return the same integers.
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_EXP = tuple(
    np.float32(c)
    for c in (1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1)
)
_HALF = np.float32(0.50000001201)
_ROUND = np.float32(12582912.0)  # 1.5 · 2^23 added and taken off rounds to an integer
_LEAST = np.float32(-87.0)


def exp_of(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """exp(x) in float32 for x ≤ 0; values below -87 are taken as -87."""
    x = np.maximum(x, _LEAST)
    n = (x * _LOG2E + _ROUND) - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _EXP[0]
    for c in _EXP[1:]:
        p = p * r + c
    p = (p * r + _HALF) * (r * r) + (r + np.float32(1))
    power = ((n.astype(np.int32) + 127) << 23).view(np.float32)
    return np.asarray(p * power)


def activated(logits: NDArray[Any], activation: Activation | None) -> NDArray[Any]:
    """Scores in [0, 1] of planes (C, n) of logits, in float32; NaN stays NaN."""
    if activation is None:
        return logits
    with np.errstate(invalid="ignore", over="ignore"):
        if activation == "sigmoid":
            x = logits.astype(np.float32)
            e = exp_of(-np.abs(x))
            return np.asarray(np.where(x >= 0, np.float32(1), e) / (np.float32(1) + e))
        # Differences first, because float32 cannot represent all logits of float64.
        e = exp_of((logits - logits.max(0)).astype(np.float32))
        total = e[0].copy()
        for plane in e[1:]:
            total += plane
        return np.asarray(e / total)


def count_scores(
    codes: NDArray[np.uint16],
    planes: NDArray[Any],
    bins: ScoreBins,
    activation: Activation | None = None,
    valid_codes: int | None = None,
) -> Ints:
    """Count scores into the cells (C + 2, B, 2) of :class:`segiou.ScoreHistogram`.

    ``planes`` are scores (C, *pixels) and ``codes`` the class indices of the pixels; codes of
    ``valid_codes`` and more, C by default, are ignored.
    """
    limit = len(planes) if valid_codes is None else valid_codes
    cells = np.zeros((len(planes) + 2, bins.number, 2), np.int64)
    kind = _kind(planes.dtype)
    if _compiled is None:
        warn_missing("segiou.accumulators.histograms._scores_by_bin")
    if _compiled is None or kind is None:
        nan, outside = _count_plainly(cells, codes, planes, bins, activation, limit)
    else:
        unsigned = planes.view(f"u{planes.itemsize}")
        mode = {None: 0, "softmax": 1, "sigmoid": 2}[activation]
        is_half = bins.kind == FLOAT16
        nan, outside = _compiled.count_scores(unsigned, kind, codes, cells, limit, is_half, mode)
    if nan:
        raise NanScoresError(nan)
    if outside:
        raise ScoreRangeError(outside)
    return cells


def _kind(dtype: np.dtype[Any]) -> str | None:
    """Name of a dtype in the compiled routine; None if it does not support it."""
    if is_bfloat16(dtype):
        return "bfloat16"
    return dtype.name if dtype.isnative and dtype.itemsize <= 8 else None


def _count_plainly(
    new: Ints,
    codes: NDArray[np.uint16],
    planes: NDArray[Any],
    bins: ScoreBins,
    activation: Activation | None,
    limit: int,
) -> tuple[int, int]:
    """Count with NumPy; returns pixels with a NaN score, and scores outside [0, 1]."""
    nan = outside = 0
    for at in iter_blocks(codes.shape):
        truth = codes[at].ravel()
        valid = truth < limit
        part = planes[(slice(None), *at)].reshape(len(planes), -1)[:, valid]
        raw = as_floats(part)
        scores = activated(raw, activation)
        truth = truth[valid].astype(np.intp)
        missing = np.isnan(scores)
        nan += int(missing.any(0).sum())
        wrong = int(((scores < 0) | (scores > 1)).sum())
        outside += wrong
        new[-1, 0, 1] += len(valid) - len(truth)
        if not (wrong or missing.any()):
            _add_block(new, truth, raw.argmax(0), scores, bins)
    return nan, outside


def _add_block(
    new: Ints, truth: NDArray[Any], top: NDArray[Any], scores: NDArray[Any], bins: ScoreBins
) -> None:
    """Add the cells of at most 2^15 pixels whose highest score is that of class ``top``."""
    index = bins.index_of(scores)
    for c in range(len(scores)):
        new[c] += _table(2 * index[c] + (truth == c), bins)
    pixels = np.arange(len(truth))
    top_bin, best = index[top, pixels], scores[top, pixels]
    new[-2] += _table(2 * top_bin + (top == truth), bins)
    # Sums of so many multiples of 2^-24 are exact in float64.
    units = np.rint(best.astype(np.float64) / SCORE_UNIT)
    new[-1, :, 0] += np.bincount(top_bin, units, bins.number).astype(np.int64)


def _table(index: NDArray[np.intp], bins: ScoreBins) -> Ints:
    return np.bincount(index, minlength=2 * bins.number).reshape(bins.number, 2)
