"""Images of grey values: thresholds of masks, and maps of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.masks.colors import packed
from segiou.masks.raw_mask import MaskError, RawMask


def grey_values(raw: RawMask, path: str, purpose: str) -> NDArray[Any]:
    """The values of a mask, those of its equal channels if it has colours."""
    if not raw.is_color:
        return np.asarray(raw.values)
    colors = packed(raw.values)
    values = (colors & 255).astype(np.uint8)
    if (colors != values * np.uint32(0x10101)).any():
        raise MaskError(path, f"is a colour image; save it as greyscale {purpose}")
    return values


def grey_scores(raw: RawMask, path: str) -> NDArray[Any]:
    """Scores in a greyscale image: bool, uint8, uint16, or float64 if it has another maximum."""
    if raw.lossy:
        raise MaskError(path, f"is a lossy {raw.kind}; save scores as PNG, TIFF or .npy")
    if raw.mode not in ("L", "I;16", "I", "I;16B"):
        problem = f"is an image of mode {raw.mode}; expected 8- or 16-bit greyscale"
        raise MaskError(path, problem)
    values = np.asarray(raw.values)
    if raw.maximum not in (None, 255, 65535):
        return values / np.float64(raw.maximum)
    return values.astype(np.uint16) if values.dtype.itemsize > 1 else values
