"""The source at a path or URL, by its content, and with options that change its masks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from segiou._support.arguments import check_path
from segiou._support.files import is_file
from segiou._support.optional import find_plugin, no_exit, plugin_names
from segiou.masks.finding import MASK_SUFFIXES, is_zarr, split_ending
from segiou.masks.formats.nifti_pairs import as_header
from segiou.masks.reading import STACKED, Reading
from segiou.masks.sources.adjusted import AdjustedSource
from segiou.masks.sources.folders import LocalFolder, Source, first_files
from segiou.masks.sources.patterns import PatternFolder, is_pattern, matches
from segiou.masks.sources.remote import RemoteFolder

#: Extension of texts beside images.
_TEXT = ".txt"


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
    # The name of a mask follows the path of its file or store, and does not exist.
    parts = (path,) if path.exists() else (path, *path.parents)
    around = ((part, kind) for part in parts for kind in _kinds_of(part))
    inside = ((path, kind) for kind in _kinds_in(path))
    for part, kind in chain(around, inside):
        if (source := _opened(kind, path, part)) is not None:
            return source
    if is_pattern(str(path)) and not path.exists():
        return PatternFolder(str(path))
    return LocalFolder(str(as_header(path)))


def _opened(kind: str, path: Path, part: Path) -> Source | None:
    """The source that a function of ``segiou.sources`` returns; None for what it does not open."""
    whose = f"{kind!r} of segiou.sources"
    with no_exit(f"{path}: the plug-in {whose}"):
        source: Source | None = find_plugin("sources", kind)(path, part)
    # isinstance would evaluate the properties, which read the file.
    if source is not None and Source not in type(source).__mro__:
        msg = f"the result of {whose} must be a Source or None, not {source!r:.80}"
        raise TypeError(msg)
    return source


def _kinds_of(part: Path) -> list[str]:
    """Names in ``segiou.sources`` of what a file or store may be."""
    if is_zarr(part):
        return ["zarr"]
    file = part.name.lower()
    if part.is_dir() or not _may_have_several(split_ending(file)[1]):
        return []
    return [name for name in plugin_names("sources") if file.endswith(f".{name}")] or ["other"]


def _kinds_in(path: Path) -> list[str]:
    """Names in ``segiou.sources`` of what a folder, or the matches of a pattern, may be."""
    if not (path.is_dir() or is_pattern(str(path))):
        return []
    # Other packages are asked only if a folder has more than masks.
    endings = [*filter(_may_have_several, _endings_in(path))]
    names = plugin_names("sources") if endings else ()
    return [name for name in names if name.removeprefix("folder") in endings]


def _may_have_several(ending: str) -> bool:
    """Whether files with an extension may have several masks."""
    return ending == ".npz" or (ending not in MASK_SUFFIXES and ending != "")


def _endings_in(place: Path) -> set[str]:
    """Extensions of some files and stores in a folder, or of all that match a pattern."""
    if not place.is_dir():
        return {_ending_of(Path(path)) for path in matches(str(place))}
    files = first_files(place)
    # The system may list all images of a folder before their text files.
    texts = [str(Path(file).with_suffix(_TEXT)) for file in files[:1]]
    around = {file.rpartition(os.sep)[0] for file in files}  # a Path for each takes longer
    folders = {part for folder in around for part in (Path(folder), *Path(folder).parents)}
    stores = {_ending_of(folder) for folder in folders if place in folder.parents}
    return stores | {split_ending(file.lower())[1] for file in (*files, *filter(is_file, texts))}


def _ending_of(path: Path) -> str:
    """The extension of a file, or that of a store whatever its name."""
    return ".zarr" if is_zarr(path) else split_ending(path.name.lower())[1]


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
