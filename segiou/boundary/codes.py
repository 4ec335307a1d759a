"""Labels of a pair → small codes: classes, then what is ignored or no class.

Truth and prediction hold the same markers at the same places, so that whatever
was predicted on ignored pixels can reach no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part
from segiou.counting.arrays import as_label_array, as_valid_mask
from segiou.counting.encoding import Encoding, ValueCodes

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


_kernel = load_part("segiou.boundary._kernel")

#: Classes that fit beside the three markers in a byte.
BYTE_CLASSES = 253


def code_dtype(num_classes: int) -> np.dtype[Any]:
    """The smallest dtype that holds the classes and the markers."""
    return np.dtype(np.uint8 if num_classes <= BYTE_CLASSES else np.uint16)


def ignored_code(dtype: np.dtype[Any]) -> int:
    """The code of ignored pixels: the largest of the dtype."""
    return int(np.iinfo(dtype).max)


def unassigned_code(dtype: np.dtype[Any]) -> int:
    """The code of valid pixels that are no class: the second largest of the dtype."""
    return int(np.iinfo(dtype).max) - 1


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Turn pairs of label arrays into pairs of code arrays.

    Attributes
    ----------
    encoding : Encoding
        What each label value means.
    """

    encoding: Encoding

    def encode(
        self, truth: Any, pred: Any, mask: Any = None, *, batch: bool = False
    ) -> tuple[Codes, Codes]:
        """Codes of both sides: 0 … C − 1, unassigned, ignored.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes (H, W)
            Label map of the truth, (H, W); predicted label map, (H, W).
        mask : array_like of bool, optional
            True where a pixel is valid; the others are ignored.
        batch : bool
            The shapes are (..., H, W), a label map at each place of the
            leading axes.

        Returns
        -------
        tuple of Codes

        Raises
        ------
        TypeError
            If an array does not hold integers or bool.
        ValueError
            If the shapes differ, or the arrays are no label maps of two axes.
        UndeclaredValuesError
            As :meth:`segiou.counting.Encoding.count` does.
        """
        truth, pred = as_label_array(truth, "truth"), as_label_array(pred, "pred")
        if truth.shape != pred.shape or truth.ndim < 2:
            msg = (
                f"truth has shape {truth.shape} and pred {pred.shape}; "
                "boundaries need two label maps of one shape (H, W)"
            )
            raise ValueError(msg)
        if truth.ndim > 2 and not batch:
            msg = (
                f"truth and pred have shape {truth.shape}, but boundaries are measured in two "
                "dimensions (H, W): cut into slices, a volume would get wrong distances. Give the "
                "images of a batch one by one, or to BoundaryAccumulator.update with batch=True; "
                "of a volume, measure surfaces: surfaces=True (--surface segiou)"
            )
            raise ValueError(msg)
        truth, pred = as_bytes(truth), as_bytes(pred)
        if mask is None and (fast := self._encode_bytes(truth, pred)):
            return fast
        t, p = self._truth_table.apply(truth), self._pred_table.apply(pred)
        if mask is not None:
            t = np.where(as_valid_mask(mask, truth.shape), t, t.dtype.type(self._ignored))
        p = np.where(t == self._ignored, t, p)
        if self._has_undeclared(t, p):
            self.encoding.count(truth, pred, mask=mask)
        return t, p

    def _encode_bytes(self, truth: NDArray[Any], pred: NDArray[Any]) -> tuple[Codes, Codes] | None:
        """The plain case in one pass: bytes that are their own codes, one value ignored."""
        ignored = self._truth_table.ignored_bytes
        if (
            _kernel is None
            or truth.dtype != np.uint8
            or pred.dtype != np.uint8
            or ignored is None
            or len(ignored) > 1
            or self._pred_table.ignored_bytes is None
        ):
            return None
        codes = np.empty((2, *truth.shape), dtype=np.uint8)
        bad_truth, bad_pred = _kernel.encode(
            np.ascontiguousarray(truth),
            np.ascontiguousarray(pred),
            ignored[0] if ignored else -1,
            self.encoding.num_classes,
            *codes,
        )
        refused = bad_truth or (bad_pred and self.encoding.unassigned == "error")
        # The general way says what is wrong.
        return None if refused else (codes[0], codes[1])

    def _has_undeclared(self, truth: Codes, pred: Codes) -> bool:
        # One more wraps the ignored code round to 0, and a maximum is all that is left to look at.
        one = truth.dtype.type(1)
        top = self.encoding.num_classes
        if truth.size == 0:
            return False
        if int((truth + one).max()) > top:
            return True
        return self.encoding.unassigned == "error" and int((pred + one).max()) > top

    @cached_property
    def _dtype(self) -> np.dtype[Any]:
        return code_dtype(self.encoding.num_classes)

    @cached_property
    def _ignored(self) -> int:
        return ignored_code(self._dtype)

    @cached_property
    def _truth_table(self) -> _Table:
        # In the truth the code C means ignored; undeclared values are refused either way.
        return _Table.of(self.encoding.truth, self.encoding.num_classes, self._ignored)

    @cached_property
    def _pred_table(self) -> _Table:
        # In the prediction the code C means undeclared.
        unassigned = unassigned_code(self._dtype)
        return _Table.of(self.encoding.pred, self.encoding.num_classes, unassigned)


@dataclass(frozen=True, eq=False)
class _Table:
    values: ValueCodes
    codes: Codes
    """The code here of each code there."""

    @classmethod
    def of(cls, values: ValueCodes, num_classes: int, after_last: int) -> _Table:
        dtype = code_dtype(num_classes)
        codes = np.arange(num_classes + 2, dtype=dtype)
        codes[num_classes:] = after_last, unassigned_code(dtype)
        return cls(values, codes)

    def apply(self, labels: NDArray[Any]) -> Codes:
        found: Codes = (
            self.of_bytes[labels]
            if labels.dtype == np.uint8
            else self.codes[self.values.codes_of(labels)]
        )
        return found

    @cached_property
    def of_bytes(self) -> Codes:
        """The code of every byte."""
        found: Codes = self.codes[self.values.codes_of(np.arange(256))]
        return found

    @cached_property
    def ignored_bytes(self) -> tuple[int, ...] | None:
        """Bytes that are ignored; None unless those of classes, and no others, are their codes."""
        num_classes = len(self.codes) - 2
        classes = np.arange(num_classes)
        if self.codes.dtype != np.uint8 or not np.array_equal(self.of_bytes[:num_classes], classes):
            return None
        if (self.of_bytes[num_classes:] < num_classes).any():
            return None
        return tuple(np.flatnonzero(self.of_bytes == 255).tolist())


def as_bytes(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels as bytes, where all of them are from 0 to 255."""
    if labels.dtype == np.bool_:
        return labels.view(np.uint8)
    if labels.dtype != np.uint8 and labels.size and labels.min() >= 0 and labels.max() <= 255:
        return labels.astype(np.uint8)
    return labels
