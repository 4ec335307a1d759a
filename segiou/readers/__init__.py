"""Mask files → label arrays."""

from segiou.readers.masks import LossyMaskError, MaskError, RawMask, open_mask, read_mask

__all__ = ["LossyMaskError", "MaskError", "RawMask", "open_mask", "read_mask"]
