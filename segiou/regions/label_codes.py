"""Encodes the labels of a pair as small codes: classes, unassigned, ignored.

Truth and prediction have the ignored code at the same pixels, so predictions on
ignored pixels cannot affect any result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import as_label_array, as_valid_mask, with_dimensions_of
from segiou.counting.encoding import Encoding

__all__ = [
    "BYTE_CLASSES",
    "Codes",
    "LabelCodes",
    "as_bytes",
    "code_dtype",
    "ignored_code",
    "unassigned_code",
]


Codes = NDArray[np.uint8] | NDArray[np.uint16]


#: Number of classes that fit into a byte together with the three markers.
BYTE_CLASSES = 253


def code_dtype(num_classes: int) -> np.dtype[Any]:
    """The smallest dtype that holds the classes and the markers."""
    return np.dtype(np.uint8 if num_classes <= BYTE_CLASSES else np.uint16)


def ignored_code(dtype: np.dtype[Any]) -> int:
    """The code of ignored pixels: the largest value of the dtype."""
    return int(np.iinfo(dtype).max)


def unassigned_code(dtype: np.dtype[Any]) -> int:
    """The code of valid pixels without a class: the second largest value of the dtype."""
    return int(np.iinfo(dtype).max) - 1


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Converts pairs of label arrays into pairs of code arrays.

    Attributes
    ----------
    encoding : Encoding
        Class of each label value.
    """

    encoding: Encoding

    def encode(
        self, truth: Any, pred: Any, mask: Any = None, *, batch: bool = False
    ) -> tuple[Codes, Codes]:
        """Codes of both sides: 0 … C − 1, unassigned, ignored.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes (H, W)
            True and predicted label map.
        mask : array_like of bool, optional
            True where a pixel is valid; the others are ignored.
        batch : bool
            Whether the shapes are (..., H, W), with one label map per index of
            the leading axes.

        Raises
        ------
        TypeError
            If an array does not contain integers or bool.
        ValueError
            If the shapes differ, or the arrays do not have two axes.
        UndeclaredValuesError
            As for :meth:`segiou.counting.Encoding.count`.
        """
        mask, pred = with_dimensions_of(truth, mask), with_dimensions_of(truth, pred)
        truth, pred = as_label_array(truth, "truth"), as_label_array(pred, "pred")
        _check_shapes(truth.shape, pred.shape, batch)
        truth, pred = as_bytes(truth), as_bytes(pred)
        if mask is None and (fast := self._encode_bytes(truth, pred)):
            return fast
        t, p = self._coded(truth, 0), self._coded(pred, 1)
        ignored = ignored_code(t.dtype)
        if mask is not None:
            t = np.where(as_valid_mask(mask, truth.shape), t, t.dtype.type(ignored))
        p = np.where(t == ignored, t, p)
        # Adding 1 wraps the ignored code to 0, so a maximum is enough for the check.
        checked = (t, p) if self.encoding.unassigned == "error" else (t,)
        highest = max(int((side + side.dtype.type(1)).max(initial=0)) for side in checked)
        if highest > self.encoding.num_classes:
            self.encoding.count(truth, pred, mask=mask)
        return t, p

    def _encode_bytes(self, truth: NDArray[Any], pred: NDArray[Any]) -> tuple[Codes, Codes] | None:
        """Codes of bytes by a faster way, where there is one."""
        return None

    def _coded(self, labels: NDArray[Any], side: int) -> Codes:
        """Labels of the truth (0) or the prediction (1) as codes."""
        values = (self.encoding.truth, self.encoding.pred)[side]
        codes: Codes = (
            self._byte_codes[side][labels]
            if labels.dtype == np.uint8
            else self._codes[side][values.codes_of(labels)]
        )
        return codes

    @cached_property
    def _codes(self) -> tuple[Codes, Codes]:
        """Code of each code of the encoding; C is ignored in truth, unassigned in prediction."""
        dtype = code_dtype(self.encoding.num_classes)
        truth, pred = np.tile(np.arange(self.encoding.num_classes + 2, dtype=dtype), (2, 1))
        truth[-2:] = ignored_code(dtype), unassigned_code(dtype)
        pred[-2:] = unassigned_code(dtype)
        return truth, pred

    @cached_property
    def _byte_codes(self) -> tuple[Codes, Codes]:
        """The code of every byte."""
        sides = zip(self._codes, (self.encoding.truth, self.encoding.pred), strict=True)
        truth, pred = (codes[values.codes_of(np.arange(256))] for codes, values in sides)
        return truth, pred


def _check_shapes(truth: tuple[int, ...], pred: tuple[int, ...], batch: bool) -> None:
    if truth != pred or len(truth) < 2:
        msg = (
            f"truth has shape {truth} and pred has shape {pred}; "
            "boundaries require two label maps of equal shape (H, W)"
        )
        raise ValueError(msg)
    if len(truth) > 2 and not batch:
        msg = (
            f"truth and pred have shape {truth}, but boundaries are measured in two "
            "dimensions (H, W); slicing a volume would give wrong distances. For a batch of "
            "images, use Evaluator(labels, measures=['boundary']); "
            "for a volume, use surfaces=True (--surface segiou)"
        )
        raise ValueError(msg)


def as_bytes(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels as bytes if all of them are between 0 and 255."""
    if labels.dtype == np.bool_:
        return labels.view(np.uint8)
    if labels.dtype != np.uint8 and labels.size and labels.min() >= 0 and labels.max() <= 255:
        return labels.astype(np.uint8)
    return labels
