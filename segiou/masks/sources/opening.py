"""The source at a path or URL, by its content, and with options that change its masks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segiou._support.arguments import check_path
from segiou._support.files import Stamp
from segiou.masks.finding import MASK_SUFFIXES, check_found
from segiou.masks.formats.nifti_pairs import as_header
from segiou.masks.raw_mask import RawMask
from segiou.masks.reading import STACKED, Reading
from segiou.masks.sources.adjusted import AdjustedSource
from segiou.masks.sources.folders import (
    LocalFolder,
    PatternFolder,
    RemoteFolder,
    Source,
    first_files,
    is_pattern,
    matches,
)

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_FILES_OF_MASKS = (*ARCHIVE_SUFFIXES, ".npz", ".json", ".parquet")
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MOST_SHARDS = 1 << 16


def open_source(where: str | Path, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Return the source for a path or URL.

    Parameters
    ----------
    where : str or path
        A folder of masks, or of YOLO's polygons; a ``.zip``, ``.tar``, ``.tar.gz``
        (``.tgz``, ``.tar.bz2``, ``.tar.xz``) archive or a folder in one (``masks.zip/truth``); an
        ``.npz`` file of several arrays, or one of them (``case.npz/gts``); a zarr
        store or safetensors file; a JSON file of segments, CVAT's ``annotations.xml`` or a table
        of run lengths (CSV); a Parquet file, optionally
        followed by the column (``val.parquet/mask``); a pattern that matches several of these
        (``val-*.tar``, ``val-{000..009}.tar``), folders (``Val/*/masks_png``) or mask
        files (``data/*_mask.png``); or a URL supported by fsspec, such as
        ``s3://bucket/truth``.
    storage_options : mapping, optional
        Options for fsspec, such as keys and endpoints.

    Raises
    ------
    ImportError
        If a URL is given and fsspec is not installed.
    """
    check_path("a folder or file", where)
    text = str(where)
    if isinstance(where, str) and ("://" in text or "::" in text) and not Path(text).exists():
        return RemoteFolder(text.rstrip("/"), dict(storage_options or {}))
    path = Path(where).expanduser()
    from segiou.masks.sources.array_stores import ArrayStore, StoreFolder, has_stores, is_store

    # Paths of masks in a store do not exist.
    for part in (path,) if path.exists() else path.parents:
        if is_store(part):
            return ArrayStore(str(path), str(part))
    for part in (path, *path.parents):
        if part.name.lower().endswith(_FILES_OF_MASKS) and not part.is_dir():
            return _file_of_masks(path, part)
        if part.suffix.lower() not in MASK_SUFFIXES and part.is_file() and _is_annotated(part):
            return _segment_file(path, part)
    if is_pattern(str(path)) and not path.exists():
        return _pattern_source(str(path))
    # Other folders, which are most, are decided without the code that draws polygons.
    files = first_files(path) if path.is_dir() else []
    texts = [*files, *(str(Path(name).with_suffix(".txt")) for name in files[:1])]
    if any(name.lower().endswith(".txt") and Path(name).is_file() for name in texts):
        from segiou.masks.sources.yolo_files import YoloFolder, is_yolo

        root = path / "labels" if (path / "images").is_dir() else path
        if is_yolo(root):
            return YoloFolder(str(root))
    return StoreFolder(str(path)) if has_stores(path, files) else LocalFolder(str(as_header(path)))


def _is_annotated(file: Path) -> bool:
    from segiou.masks.sources.segment_files import is_annotated

    return is_annotated(file)


def _segment_file(path: Path, file: Path) -> Source:
    from segiou.masks.sources.segment_files import SegmentFile

    return SegmentFile(str(path), str(file))


def _pattern_source(pattern: str) -> Source:
    """The folders, mask files or stores that match a pattern."""
    from segiou.masks.sources.array_stores import StoreFolder, is_store

    is_of_stores = any(is_store(Path(path)) for path in matches(pattern))
    return StoreFolder(pattern) if is_of_stores else PatternFolder(pattern)


def _file_of_masks(path: Path, file: Path) -> Source:
    """The source for a multi-mask file, a part of one, or a pattern of such files."""
    kind = file.suffix.lower()
    is_open = (is_pattern(str(file)) or "{" in file.name) and not file.exists()
    if kind == ".json" and not is_open:
        return _segment_file(path, file)
    from segiou.masks.sources.archives import ArchiveFolder, ParquetFile, member_names

    if is_open and kind == ".npz" and not _has_shards(str(file)):
        return PatternFolder(str(path))
    if is_open:
        return Shards(str(path))
    if kind == ".parquet":
        return ParquetFile(str(path), str(file))
    arrays = member_names(file) if kind == ".npz" else ()
    if kind == ".npz" and path == file and len(arrays) < 2:
        return LocalFolder(str(file))
    if path.parent == file and f"{path.name}.npy" in arrays:
        return AdjustedSource(LocalFolder(str(file)), path.name)
    return ArchiveFolder(str(path), str(file))


def _has_shards(pattern: str) -> bool:
    """Whether ``.npz`` files are shards: several masks each, of different names."""
    from segiou.masks.sources.archives import member_names

    places = [*matches(pattern)][:2]
    arrays = [{*member_names(Path(path))} - {"spacing.npy"} for path in places]
    is_apart = len(arrays) < 2 or not arrays[0] & arrays[1]
    return "{" in pattern or (is_apart and all(len(names) > 1 for names in arrays))


@dataclass(frozen=True)
class Shards(Source):
    """Several archives or Parquet files as one source."""

    #: Their paths as one pattern, such as ``val-*.tar`` or ``val-*.parquet/annotation``.
    root: str

    @property
    def draws(self) -> bool:
        """Whether its masks may be drawn from polygons."""
        return self.root.lower().endswith(".json")

    def find(self) -> dict[str, str]:
        """Masks of all shards."""
        masks: dict[str, str] = {}
        for shard in self._shards():
            for name, path in shard.find().items():
                if name in masks:
                    msg = f"{self.root}: {name!r} is in two shards, {masks[name]} and {path}"
                    raise ValueError(msg)
                masks[name] = path
        check_found(masks, self.root)
        return masks

    def stamp(self, path: str) -> Stamp:
        """The stamp given by the shard."""
        return open_source(path).stamp(path)

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The content of a file in its shard."""
        return open_source(path).read(path)

    def _shards(self) -> Iterator[Source]:
        pattern, ending, column = self.root.partition(".parquet/")
        pattern += ending.rstrip("/")
        if (numbers := _RANGE.search(pattern)) is None:
            paths = [*matches(pattern)]
        else:
            first, last = int(numbers[1]), int(numbers[2])
            several = range(first, min(last, first + _MOST_SHARDS) + 1)
            width = len(numbers[1])
            paths = [_RANGE.sub(f"{number:0{width}}", pattern, count=1) for number in several]
        if not paths:
            msg = f"{self.root}: no files match"
            raise ValueError(msg)
        for path in paths:
            yield open_source(f"{path}/{column}" if column else path)


def adjusted(
    truth: Source,
    pred: Source,
    reading: Reading,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Source, Source]:
    """Both sources with masks as these options read them."""
    roi: Any = reading.roi
    if roi is not None and not is_array_name(roi, truth):
        roi = open_source(roi, storage_options)
    return read_by(reading, truth, roi=roi), read_by(reading, pred, side=1)


def read_by(
    reading: Reading, source: Source, *, side: int = 0, roi: Source | str | None = None
) -> Source:
    """The source with masks as these options read them; unchanged without any."""
    if roi is not None or reading.adjusts(side):
        key = source.key if isinstance(source, AdjustedSource) else ""  # FILE.npz/KEY
        place = source.place if isinstance(source, AdjustedSource) else source
        source = AdjustedSource(place, reading.key_of(side) or key, reading, side, roi)
    if reading.array_axes != STACKED:
        return source
    from segiou.masks.sources.stacked_arrays import StackedArrays

    return StackedArrays(source)


def is_array_name(roi: str | Path, truth: Source) -> bool:
    """Whether regions of interest are an array of this name in the ``.npz`` files of the truth."""
    name = str(roi)
    if not re.fullmatch(r"\w+", name) or Path(name).exists():
        return False
    try:
        files = (truth.root, *truth.find().values()) if Path(truth.root).is_dir() else (truth.root,)
    except ValueError:  # reported when the masks are paired
        return False
    return files[-1].lower().endswith(".npz")
