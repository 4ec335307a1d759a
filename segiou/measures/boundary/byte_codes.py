"""Codes of bytes, in one pass of the compiled module."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part
from segiou.regions.label_codes import BYTE_CLASSES, Codes, LabelCodes

_kernel = load_part("segiou.measures.boundary._kernel")


class ByteCodes(LabelCodes):
    """The codes of :class:`segiou.regions.LabelCodes`, sooner in the common case."""

    def _encode_bytes(self, truth: NDArray[Any], pred: NDArray[Any]) -> tuple[Codes, Codes] | None:
        """One pass for the common case: bytes equal to their codes, at most one ignored value."""
        ignored = self._ignored_byte
        if _kernel is None or not truth.dtype == pred.dtype == np.uint8 or ignored is None:
            return None
        codes = np.empty((2, *truth.shape), dtype=np.uint8)
        bad_truth, bad_pred = _kernel.encode(
            np.ascontiguousarray(truth),
            np.ascontiguousarray(pred),
            ignored,
            self.encoding.num_classes,
            *codes,
        )
        refused = bad_truth or (bad_pred and self.encoding.unassigned == "error")
        # The general path raises the error.
        return None if refused else (codes[0], codes[1])

    @cached_property
    def _ignored_byte(self) -> int | None:
        """The ignored byte, -1 for none; None if there are several or classes are remapped."""
        num_classes = self.encoding.num_classes
        if num_classes > BYTE_CLASSES:
            return None
        for codes in self._byte_codes:
            values = np.flatnonzero(codes < num_classes)
            if not values.tolist() == codes[values].tolist() == [*range(num_classes)]:
                return None
        ignored = [-1, *np.flatnonzero(self._byte_codes[0] == 255).tolist()]
        return ignored[-1] if len(ignored) <= 2 else None
