from segiou.masks.finding import MASK_SUFFIXES as MASK_SUFFIXES, find_masks as find_masks
from segiou.masks.formats.drawn_image import DrawnImage as DrawnImage
from segiou.masks.formats.volumes import (
    geometry_difference as geometry_difference,
    read_volume as read_volume,
    reorient as reorient,
)
from segiou.masks.raw_mask import (
    LossyMaskError as LossyMaskError,
    MaskError as MaskError,
    RawMask as RawMask,
    Volume as Volume,
)
from segiou.masks.read import (
    open_mask as open_mask,
    open_windowed as open_windowed,
    read_mask as read_mask,
)
from segiou.masks.sources.annotations import (
    AnnotationFormat as AnnotationFormat,
    Annotations as Annotations,
)
from segiou.masks.sources.archives import ArchiveFolder as ArchiveFolder
from segiou.masks.sources.folders import LocalFolder as LocalFolder, Source as Source
from segiou.masks.sources.opening import open_source as open_source
from segiou.masks.sources.pairing import (
    Pair as Pair,
    Pairing as Pairing,
    pair_folders as pair_folders,
)
from segiou.masks.sources.remote import RemoteFolder as RemoteFolder
from segiou.masks.windows import (
    FileMask as FileMask,
    ResizedMask as ResizedMask,
    WindowedMask as WindowedMask,
    is_chunked as is_chunked,
    window_slices as window_slices,
)
