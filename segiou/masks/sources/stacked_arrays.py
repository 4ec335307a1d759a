"""Arrays (N, H, W) in files, and pages of TIFF files, as N images."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from segiou._support.files import Stamp
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import from_bytes
from segiou.masks.sources.adjusted import is_one_file
from segiou.masks.sources.derived import DerivedSource
from segiou.masks.sources.folders import check_number

_ENDING = r"\.(?:np[yz]|tiff?|mat|h5|hdf5)"
_ARRAY = re.compile(rf"{_ENDING}$", re.IGNORECASE)
_ITEM = re.compile(rf"(.*{_ENDING})/(\d+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class StackedArrays(DerivedSource):
    """A source whose arrays of three axes are stacks of images."""

    #: The file read last, because its images follow each other.
    _last: dict[str, tuple[Stamp, RawMask]] = field(default_factory=dict, repr=False, compare=False)

    def find(self) -> dict[str, str]:
        """Masks by name; those of a stack by the name of its file and their index."""
        files = {"": self.root} if is_one_file(self.place) else self.place.find()
        masks: dict[str, str] = {}
        for name, path in files.items():
            number = self._length(path)
            if number is None:
                masks[name or "0"] = path
                continue
            folder = _ARRAY.sub("", name)
            width = len(str(number - 1))
            items = {f"{folder}/{i:0{width}}".lstrip("/"): f"{path}/{i}" for i in range(number)}
            masks |= items
            check_number(masks, self.root)
        return masks

    def _length(self, path: str) -> int | None:
        """Number of the images in a file; None if it is not a stack."""
        if not _ARRAY.search(path):
            return None
        try:
            raw = self._whole(path)[0]
        except MaskError:
            if is_one_file(self.place):
                raise
            return None  # reported when the pair is scored
        if raw.values.ndim > 3:
            raise MaskError(path, f"has shape {raw.values.shape}; expected images (N, H, W)")
        return len(raw.values) if raw.values.ndim == 3 and not raw.is_color else None

    def stamp(self, path: str) -> Stamp:
        """The stamp of the file of a mask."""
        item = _ITEM.fullmatch(path)
        return self.place.stamp(item[1] if item else path)

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """A mask, or the content of its file."""
        item = _ITEM.fullmatch(path)
        if item is None:
            return self.place.read(path)
        raw, stamp = self._whole(item[1])
        index = int(item[2])
        if raw.values.ndim != 3 or index >= len(raw.values):
            raise MaskError(path, "is no longer in its file; wait until it is fully written")
        valid = None if raw.valid is None else raw.valid[index]
        return raw._replace(values=raw.values[index], valid=valid, spacing=None), stamp

    def _whole(self, path: str) -> tuple[RawMask, Stamp]:
        """All masks of a file."""
        stamp, raw = self._last.get(path, (None, None))
        if raw is not None and stamp is not None and stamp.known and self.stamp(path) == stamp:
            return raw, stamp
        data, stamp = self.place.read(path)
        raw = from_bytes(data, path)
        if raw.values.ndim == 4 and 1 in (raw.values.shape[1], raw.values.shape[3]):  # one channel
            raw = raw._replace(values=raw.values.squeeze(1 if raw.values.shape[1] == 1 else 3))
        self._last.clear()
        self._last[path] = stamp, raw
        return raw, stamp
