"""A mask of a pair, opened whole or window by window."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou.labels.label_set import LabelSet
from segiou.masks.finding import RASTER_SUFFIXES
from segiou.masks.raw_mask import MaskError, RawMask, image_shape
from segiou.masks.read import open_windowed, to_labels
from segiou.masks.sources.folders import LocalFolder, Source, stable_stamp, stamp_of
from segiou.masks.sources.remote import RemoteFolder
from segiou.masks.windows import FileMask, ResizedMask, WindowedMask, resized

if TYPE_CHECKING:
    from segiou.masks.formats.georeference import Raster
    from segiou.masks.raw_mask import Volume
    from segiou.measures.object_mask import ObjectMask

#: Uncompressed files with fewer bytes are small.
_BIG_BYTES = 1 << 26
_RASTERS = tuple(RASTER_SUFFIXES)


@dataclass(slots=True)  # a frozen one takes twice as long to create
class OpenMask:
    """A mask of labels."""

    #: The labels, or ids of objects.
    values: WindowedMask
    stamp: Stamp
    #: The same values with their geometry.
    volume: Volume | None = None
    #: Converts a window of ``values`` to labels.
    decoded: Callable[[Any], Any] = lambda window: window
    #: Raises MaskError if the file has changed since.
    check: Callable[[], None] = lambda: None
    #: The same values with object ids.
    objects: ObjectMask | None = None
    raster: Raster | None = None
    #: Label of pixels outside all objects, and outside all segments.
    outside: tuple[int | None, int | None] = None, None
    #: A file of scores that is not decoded yet, and the scores that its labels derive from.
    content: bytes | RawMask | None = None
    scores: Any = None
    #: Pixels inside the region of interest, if there is one.
    valid: NDArray[np.bool_] | None = None
    #: Spacing along the axes of an array; NaN if its order is unknown.
    array_spacing: tuple[float, ...] | None = None
    #: Values of the classes of a pixel indexed by ``values``, if classes have separate files.
    sets: tuple[tuple[int, ...], ...] = ()

    @property
    def is_big(self) -> bool:
        """Whether it is counted window by window."""
        return isinstance(self.values, (FileMask, ResizedMask))

    def labelled(self) -> OpenMask:
        """The same with labels in place of ids of objects."""
        if self.objects is None:
            return self
        return replace(self, values=self.objects.whole().classes)

    def whole(self) -> Any:
        """All labels as one array."""
        if not self.is_big:
            return self.values
        return self.decoded(self.values[tuple(slice(0, n) for n in self.values.shape)])

    def as_image(self, other: tuple[int, ...] = ()) -> OpenMask:
        """The mask without axes of length 1 or equal channels (H, W, 3), if it is one image."""
        old = tuple(self.values.shape)
        shape = old if self.is_big or self.objects else image_shape(old, other)
        if old == (*other, 3) and len(other) == 2 and self.valid is None and not self.is_big:
            first: Any = self.values[..., :1]
            if (self.values == first).all():
                return replace(self, values=first[..., 0])
        if shape == old:
            return self
        valid = None if self.valid is None else self.valid.reshape(shape)
        return replace(self, values=np.asarray(self.values).reshape(shape), valid=valid)

    def resized(self, shape: tuple[int, ...]) -> OpenMask:
        """The mask at another size, by nearest neighbour."""
        values = ResizedMask(self.values, shape) if self.is_big else resized(self.values, shape)
        return replace(self, values=values, objects=self.objects and self.objects.resized(shape))


def open_large(
    stack: ExitStack, path: str, source: Source, labels: LabelSet, allow_lossy: bool
) -> OpenMask | None:
    """A mask that is read window by window; None if it is read whole."""
    is_local = isinstance(source, LocalFolder)
    if is_local and _may_be_big(path):
        version, stamp = stable_stamp(path)
        big = open_windowed(path)
    elif isinstance(source, RemoteFolder) and is_packed(path):
        version, stamp = (), source.stamp(path)
        big = source.open_tiff(path) if (stamp.size or 0) >= _BIG_BYTES else None
    else:
        return None
    if big is None:
        return None
    values = stack.enter_context(big.values)

    def decoded(window: Any) -> Any:
        return to_labels(big._replace(values=window), path, labels, allow_lossy=allow_lossy)

    def check() -> None:
        if is_local and stable_stamp(path)[0] != version:
            problem = "changed while being read; wait until it is fully written"
            raise MaskError(path, problem)

    return OpenMask(values, stamp, big.volume, decoded, check, raster=big.raster)


def _may_be_big(path: str) -> bool:
    """Whether a local file may be too large to read whole; others need no further call."""
    if path.lower().endswith((".npy", ".nii")):
        return (stamp_of(path).size or 0) >= _BIG_BYTES
    return is_packed(path) or path.lower().endswith(_RASTERS)


def is_packed(path: str) -> bool:
    """Whether a file is a TIFF, which may be large although its bytes are few."""
    return path.lower().endswith((".tif", ".tiff"))
