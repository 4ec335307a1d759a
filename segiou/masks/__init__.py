"""Files → label arrays: formats, windows, folders and archives, and which files are a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.masks.archives import ArchiveFolder as ArchiveFolder
    from segiou.masks.pairing import (
        MASK_SUFFIXES as MASK_SUFFIXES,
        Pair as Pair,
        Pairing as Pairing,
        find_masks as find_masks,
        pair_folders as pair_folders,
    )
    from segiou.masks.read import (
        LossyMaskError as LossyMaskError,
        MaskError as MaskError,
        RawMask as RawMask,
        open_mask as open_mask,
        read_mask as read_mask,
    )
    from segiou.masks.remote import RemoteFolder as RemoteFolder
    from segiou.masks.sources import (
        LocalFolder as LocalFolder,
        Source as Source,
        open_source as open_source,
    )
    from segiou.masks.windows import (
        BigMask as BigMask,
        FileMask as FileMask,
        ResizedMask as ResizedMask,
        is_lazy as is_lazy,
        open_big as open_big,
        window_slices as window_slices,
    )
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "archives": ("ArchiveFolder",),
            "pairing": (
                "MASK_SUFFIXES",
                "Pair",
                "Pairing",
                "find_masks",
                "pair_folders",
            ),
            "read": (
                "LossyMaskError",
                "MaskError",
                "RawMask",
                "open_mask",
                "read_mask",
            ),
            "remote": ("RemoteFolder",),
            "sources": (
                "LocalFolder",
                "Source",
                "open_source",
            ),
            "windows": (
                "BigMask",
                "FileMask",
                "ResizedMask",
                "is_lazy",
                "open_big",
                "window_slices",
            ),
        },
    )
