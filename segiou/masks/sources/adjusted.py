"""Masks that options select or change as they are read: an array, a threshold, a region."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from segiou._support.files import Stamp
from segiou._support.locks import Lockable
from segiou._support.text import listed, plural
from segiou.masks.colors import as_read, grey_values
from segiou.masks.formats.numpy_files import array_names
from segiou.masks.raw_mask import MaskError, RawMask, image_shape
from segiou.masks.read import from_bytes
from segiou.masks.reading import Reading
from segiou.masks.sources.class_files import binary_area
from segiou.masks.sources.derived import DerivedSource, ReadBy
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.pairing import pair_folders

_FINDING = Lockable()


@dataclass(frozen=True)
class AdjustedSource(DerivedSource):
    """A source whose masks are changed as they are read.

    Attributes
    ----------
    key : str
        Name of the array in ``.npz`` files with several.
    reading : Reading
        How masks are read.
    side : int
        0 for the truth, 1 for predictions.
    roi : Source or str, optional
        Masks of the regions of interest, which are 0 outside, or the name of their array in
        the ``.npz`` files of the masks.
    """

    key: str = ""
    reading: Reading = Reading()
    side: int = 0
    roi: Source | str | None = None
    #: The region of each file, once it is known.
    _regions: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def stamp(self, path: str) -> Stamp:
        """The stamp of a file, joined with that of its region."""
        return self._joined_stamp(self.place.stamp(path), path)

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The mask of a file."""
        return self.read_sized(path, ())

    def lacks_size(self, path: str) -> bool:
        """Whether a file has polygons without the size of their image."""
        return self.place.lacks_size(path)

    def read_sized(self, path: str, shape: tuple[int, ...]) -> tuple[bytes | RawMask, Stamp]:
        """The mask of a file, which has this shape if the file lacks the size."""
        data, stamp = self.place.read_sized(path, shape)
        return self.adjusted(data, path), self._joined_stamp(stamp, path)

    def _joined_stamp(self, stamp: Stamp, path: str) -> Stamp:
        """The stamp of a file, joined with that of its region."""
        if self.roi is None or isinstance(self.roi, str):
            return stamp
        return stamp.joined(self.roi.stamp(self._region_of(path, self.roi)))

    def adjusted(self, data: bytes | RawMask, path: str) -> RawMask:
        """The mask in the content of a file."""
        threshold = self.reading.threshold_of(self.side)
        raw = from_bytes(data, path, key=self.key, floats=threshold is not None)
        raw = as_read(raw, path, self.reading.read_palette)
        if threshold is not None:
            raw = _thresholded(raw, path, threshold)
        if self.roi is None:
            return raw
        if isinstance(self.roi, str):
            region, raw_region = path, _region_in(data, path, self.roi)
        else:
            region = self._region_of(path, self.roi)
            if not region:
                where = f"no mask in {self.roi.root} has its name"
                raise MaskError(path, f"has no region of interest ({where}); add one")
            raw_region = from_bytes(self.roi.read(region)[0], region)
        allow_lossy = self.reading.allow_lossy
        valid = binary_area(raw_region, region, "a region of interest", allow_lossy=allow_lossy)
        shape = raw.values.shape[:2] if raw.is_color else raw.values.shape
        if image_shape(valid.shape, shape) == image_shape(shape, valid.shape):
            valid = valid.reshape(shape)
        if valid.shape != shape:
            problem = f"has shape {valid.shape}, but its mask {shape} [mask: {path}]"
            raise MaskError(region, problem)
        return raw._replace(valid=valid)

    def _region_of(self, path: str, regions: Source) -> str:
        """The region of a file; empty if it has none."""
        with _FINDING.lock:
            if not self._regions:
                self._regions.update({"": ""} | self._paired_regions(regions))
        return self._regions.get(path, "")

    def _paired_regions(self, regions: Source) -> dict[str, str]:
        """Regions by the path of the file, paired by name as predictions are."""
        if is_one_file(self.place) and is_one_file(regions):
            return {self.place.root: regions.root}
        pairing = pair_folders(self.place.find(), regions.find())
        doubled = {key for key, _ in pairing.duplicates}
        return {pair.truth: pair.pred for pair in pairing.pairs if pair.id not in doubled}


def _region_in(data: bytes | RawMask, path: str, key: str) -> RawMask:
    """The region of interest in the ``.npz`` file of a mask."""
    if isinstance(data, RawMask) or data[:4] != b"PK\x03\x04":
        problem = f"is not an .npz file with an array {key!r}; pass a folder of regions of interest"
        raise MaskError(path, f"{problem}: roi=DIR (--roi DIR)")
    if key not in (names := array_names(data, path)):
        problem = f"has no array {key!r} ({listed(names, 8)}); name the one that is 0 outside the "
        raise MaskError(path, f"{problem}region of interest: roi=KEY (--roi KEY)")
    return from_bytes(data, path, key=key)


def is_one_file(source: Source) -> bool:
    """Whether a source is a single local file."""
    place = place_of(source)
    return isinstance(place, LocalFolder) and Path(place.root).is_file()


def place_of(source: Source) -> Source:
    """The place of the files themselves."""
    while isinstance(source, (AdjustedSource, ReadBy)):
        source = source.place
    return source


def _thresholded(raw: RawMask, path: str, threshold: float) -> RawMask:
    """The mask with 1 from the threshold on, and 0 below."""
    values = grey_values(raw, path, "to use a threshold")
    if threshold > 1 and values.max(initial=0) == 1:
        problem = f"has the values 0 and 1, all below the threshold {threshold}; set it to 1"
        raise MaskError(path, problem)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise MaskError(path, f"has {plural(int(np.isnan(values).sum()), 'score')} NaN")
    is_of_scores = threshold < 1 and values.dtype.kind != "f" and values.max(initial=0) > 1
    if is_of_scores and {*np.unique(values).tolist()} - {0, 255}:
        problem = f"has integers, but a threshold of {threshold:g} is for scores from 0 to 1"
        raise MaskError(path, f"{problem}; pass a grey value, such as 128")
    above = (values >= threshold).astype(np.uint8)
    volume = raw.volume and replace(raw.volume, values=above)
    return raw._replace(values=above, mode="L", lossy=False, volume=volume)
