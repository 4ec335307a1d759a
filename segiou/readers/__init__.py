"""Mask files → label arrays."""

from segiou.readers.masks import LossyMaskError, MaskError, RawMask, open_mask, read_mask

# Loaded early: were its compiled module required and missing, every file would be blamed for it.
from segiou.readers.png import EXTENSION_BUILT

__all__ = [
    "EXTENSION_BUILT",
    "LossyMaskError",
    "MaskError",
    "RawMask",
    "open_mask",
    "read_mask",
]
