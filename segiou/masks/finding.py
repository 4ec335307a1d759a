"""Mask files and their names: extensions, and the files below a folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from segiou._support.arguments import check_path
from segiou._support.files import is_file, no_file_problem, os_problem
from segiou._support.text import did_you_mean, listed, plural
from segiou.masks.raw_mask import VOLUME_SUFFIXES

#: Extensions of mask files.
MASK_SUFFIXES = frozenset(
    {".png", ".tif", ".tiff", ".npy", ".npz", ".bmp", ".gif", ".pgm", ".ppm", ".pbm", ".pnm"}
    | {".jpg", ".jpeg", ".jp2", ".webp", ".avif"}
    | {".nii", ".nii.gz", ".nrrd", ".nhdr", ".mha", ".mhd", ".label", ".labels", "_lidarseg.bin"}
)
#: Extensions of rasters that GDAL opens, which are masks in folders without any of the others.
RASTER_SUFFIXES = frozenset(
    {".img", ".vrt", ".asc", ".dat", ".bsq", ".bil", ".bip", ".rst", ".sdat", ".grd", ".nc"}
)
#: Extensions of MATLAB and HDF5 files, which are masks in folders without any of the others.
ARRAY_SUFFIXES = frozenset({".mat", ".h5", ".hdf5"})
#: Extensions of headers of NIfTI whose data are in other files: masks beside volumes, or alone.
HEADER_SUFFIXES = (".hdr", ".hdr.gz")
#: The problem of a file where a folder is expected.
IS_A_FILE = "is a file, not a folder"
#: The problem of a pickle, and its fix.
IS_A_PICKLE = (
    "is a pickle, and unpickling can run arbitrary code; if you trust the file, convert it: "
    "python -c \"import pickle, numpy; numpy.savez('masks.npz', **pickle.load(open('FILE', "
    "'rb')))\" for a dictionary of masks by name"
)
_AS_PNG = "save it as PNG"
_AS_FILES = "save its masks as PNG files, or as WebDataset shards (.tar)"
#: Problems of other files that may contain masks, by extension.
UNSUPPORTED = {
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".pth"), IS_A_PICKLE),
    ".safetensors": "has arrays by name; pass the file in place of a folder",
    **dict.fromkeys((".mgz", ".mgh"), "is a volume of FreeSurfer; convert it with mri_convert"),
    **dict.fromkeys(
        HEADER_SUFFIXES,
        "is the header of another file; pass that file, or a folder or archive of NIfTI pairs",
    ),
    **dict.fromkeys(
        (".csv", ".tsv"),
        "is read in place of a folder if it has run lengths (columns ImageId and EncodedPixels)",
    ),
    ".txt": "is read only in a folder of YOLO's polygons, with a class and three corners per line",
    ".xml": "is read in place of a folder if it is of CVAT (annotations.xml, CVAT for images)",
    ".mnc": "is a MINC volume; convert it with mnc2nii",
    **dict.fromkeys((".gipl", ".vtk", ".vti"), "is a volume; save it as NIfTI or NRRD"),
    ".dcm": "is DICOM; convert segmentations with dcmqi's segimage2itkimage -t nii",
    **dict.fromkeys((".exr", ".heic", ".jxl"), f"is an image that Pillow cannot read; {_AS_PNG}"),
    ".svg": f"is a vector image; {_AS_PNG}",
    **dict.fromkeys((".7z", ".rar"), "is an archive that is not read; save it as .zip or .tar.gz"),
    **dict.fromkeys(
        (".zip", ".tar", ".tgz"), "is an archive; pass it in place of a folder, or extract it"
    ),
    ".gz": "is compressed; decompress it, or save a .tar.gz",
    **dict.fromkeys((".tfrecord", ".tfrecords"), f"is a table of TensorFlow; {_AS_FILES}"),
    **dict.fromkeys((".mdb", ".lmdb"), f"is an LMDB database; {_AS_FILES}"),
}
#: Files and folders that systems add: macOS to archives, Windows to folders of images, Synology.
_OF_SYSTEMS = frozenset(
    {"__MACOSX", "Thumbs.db", "thumbs.db", "desktop.ini", "Desktop.ini", "@eaDir", "#recycle"}
    | {"$RECYCLE.BIN"}
)
#: Names that an error lists.
_MOST_NAMED = 12
#: Files that a zarr store begins with.
ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")
#: Problems of folders with masks in another layout, by a file in them.
_LAYOUT_FILES = dict.fromkeys(
    ("dataset_info.json", "dataset_dict.json", "state.json"),
    "is a data set of save_to_disk (Hugging Face); write it with Dataset.to_parquet",
)


def find_masks(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Find the mask files below a folder: relative path (with ``/``) → path.

    Hidden files and folders are skipped. Links to folders are followed, except to those that
    contain the link, or that are below the folder themselves.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder to search.

    Raises
    ------
    ValueError
        If the folder does not exist, is a file, cannot be read, or contains no masks, or if two
        links lead to the same folder.
    """
    check_path("folder", folder)
    root = Path(folder).expanduser()
    if not root.is_dir():
        is_what = UNSUPPORTED.get(root.suffix.lower(), IS_A_FILE)
        what = is_what if root.is_file() else no_file_problem(root)
        msg = f"{root}: {what}"
        raise ValueError(msg)
    masks = files_below(root, MASK_SUFFIXES)
    if not masks or any(path.lower().endswith(VOLUME_SUFFIXES) for path in masks):
        masks |= _headers_below(root)
    masks = masks or files_below(root, RASTER_SUFFIXES) or files_below(root, ARRAY_SUFFIXES)
    masks = masks or files_below(root, _plugin_suffixes())
    if not masks:
        layout = next(
            (text for name, text in _LAYOUT_FILES.items() if (root / name).is_file()), None
        )
        if layout is not None:
            msg = f"{root}: {layout}"
            raise ValueError(msg)
        check_found(masks, root, files_below(root))
    return masks


def _headers_below(root: Path) -> dict[str, str]:
    """Headers of volumes whose data are in other files; none if none is of a volume."""
    headers = files_below(root, HEADER_SUFFIXES)
    if headers:
        from segiou.masks.formats.nifti_pairs import starts_as_volume

        return headers if any(map(starts_as_volume, headers.values())) else {}
    return {}


def is_raster(path: str | Path) -> bool:
    """Whether GDAL reads a file, because no plug-in reads its extension."""
    ending = Path(path).suffix.lower()
    return ending in RASTER_SUFFIXES and ending not in _plugin_suffixes()


def _plugin_suffixes() -> set[str]:
    from segiou._support.optional import plugin_names

    return {f".{name}" for name in plugin_names("formats")}


def files_below(root: Path, endings: Collection[str] | None = None) -> dict[str, str]:
    """Files below a folder with one of the given extensions; without them, all."""
    return _files_below(root, endings, (os.path.realpath(root),), {})


def _files_below(
    root: Path, endings: Collection[str] | None, above: tuple[str, ...], linked: dict[str, str]
) -> dict[str, str]:
    """Files below a folder, the last of those ``above``, which links lead to; each folder once.

    ``linked`` has the links by the folder that they lead to and, with a separator at the end, by
    the folders above it.
    """
    paths: dict[str, str] = {}
    for base, folders, files in os.walk(root, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for link in (Path(base) / name for name in folders):
            if not link.is_symlink():
                continue
            target, containing = os.path.realpath(link), (*above, os.path.realpath(base))
            if any(f"{folder}{os.sep}".startswith(f"{target}{os.sep}") for folder in containing):
                continue
            if any(_is_found_below(folder, target) for folder in above):
                continue
            around = [str(folder) for folder in Path(target).parents]
            known = [linked.get(folder) for folder in (f"{target}{os.sep}", target, *around)]
            if other := next(filter(None, known), None):
                msg = f"{link}: leads to the same folder as {other}; keep one of the links"
                raise ValueError(msg)
            linked |= dict.fromkeys(
                [target, *(f"{folder}{os.sep}" for folder in around)], str(link)
            )
            below = _files_below(link, endings, (*containing, target), linked)
            name = link.relative_to(root).as_posix()
            paths |= {f"{name}/{relative}": path for relative, path in below.items()}
        # Plain text: creating a Path for each of a million files takes a minute.
        inside = (Path(base).relative_to(root) / "x").as_posix()[:-1]
        outside = str(Path(base) / "x")[:-1]
        for name in sorted(files):
            if is_hidden(name):
                continue
            if endings is None or split_ending(name)[1].lower() in endings:
                paths[f"{inside}{name}"] = f"{outside}{name}"
    return paths


def _is_found_below(folder: str, target: str) -> bool:
    """Whether the files of a folder are found below another one under their own names."""
    inside = target.removeprefix(f"{folder}{os.sep}")
    return inside != target and not any(map(is_hidden, Path(inside).parts))


def _raise_unreadable(error: OSError) -> None:
    msg = f"{error.filename}: {os_problem(error)}"
    raise ValueError(msg) from error


def split_ending(name: str) -> tuple[str, str]:
    """Split a name into stem and extension; ``.nii.gz`` is one extension."""
    stem, dot, ending = name.rpartition(".")
    # Equals os.path.splitext, which takes three times as long.
    if "/" in ending or not stem.rpartition("/")[2].strip("."):
        return name, ""
    ending = dot + ending
    if ending == ".bin" and stem.endswith("_lidarseg"):
        # Other .bin files, such as point coordinates, are not masks.
        return stem.removesuffix("_lidarseg"), "_lidarseg.bin"
    if ending.lower() == ".gz" and stem.lower().endswith((".nii", ".hdr", ".img")):
        return stem[:-4], f"{stem[-4:]}{ending}"
    return stem, ending


def masks_among(names: Iterable[str]) -> list[str]:
    """Relative paths of masks: with a known extension, or if none has, with that of a plug-in."""
    several = [*names]
    plain = [name for name in several if is_mask(name)]
    arrays = plain or [name for name in several if is_mask(name, ARRAY_SUFFIXES)]
    if arrays or not (added := _plugin_suffixes()):
        return arrays
    return [name for name in several if is_mask(name, added)]


def is_mask(relative: str, endings: Collection[str] = MASK_SUFFIXES) -> bool:
    """Whether a relative path names a mask: a known extension, and not hidden."""
    parts = relative.split("/")
    hidden = any(is_hidden(part) and part not in (".", "..") for part in parts)
    return not hidden and split_ending(parts[-1])[1].lower() in endings


def is_zarr(path: Path) -> bool:
    """Whether a path is a zarr store, or an array or group in one."""
    return path.is_dir() and any(is_file(path / name) for name in ZARR_FILES)


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is hidden or reserved by the system."""
    return name.startswith(".") or name in _OF_SYSTEMS


def check_found(
    files: Collection[str], where: str | os.PathLike[str], others: Iterable[str] = ()
) -> None:
    """Raise an error if no masks were found; ``others`` are the files that are there."""
    if not files:
        msg = f"{where}: no mask files found{_contents(others, where)}"
        raise ValueError(msg)


def _contents(others: Iterable[str], where: str | os.PathLike[str]) -> str:
    """Other files in place of masks by extension, and how to read the most frequent ones."""
    seen = (name for name in others if not any(map(is_hidden, name.split("/"))))
    endings = [(split_ending(name.rpartition("/")[2])[1].lower(), name) for name in seen]
    counted = Counter(ending for ending, _ in endings)
    known = sorted(MASK_SUFFIXES | ARRAY_SUFFIXES | _plugin_suffixes())
    supported = f" (supported: {', '.join(known)})"
    if not counted:
        return supported
    most = [
        plural(n, f"{end} file") if end else plural(n, "other file")
        for end, n in counted.most_common(4)
    ]
    text = f", but {listed(most, 3)}"
    ending = next((end for end, _ in counted.most_common() if end in (".json", *UNSUPPORTED)), None)
    if any(name.rpartition("/")[2] in ZARR_FILES for _, name in endings):
        return f"{text}; it has a zarr store, which must be extracted"
    if ending == ".json" and not Path(where).is_dir():
        return f"{text}; extract annotation files to read them"
    if ending == ".json":
        folders = Counter(name.rpartition("/")[0] for end, name in endings if end == ".json")
        pattern = Path(where) / folders.most_common(1)[0][0] / "*.json"
        return f"{text}; to read annotation files, pass a pattern: '{pattern}'"
    return f"{text}; each {UNSUPPORTED[ending]}" if ending else text + supported


def unknown_part(
    where: str | os.PathLike[str], kind: str, name: str, known: Iterable[str]
) -> ValueError:
    """The error for a name after a file of several masks that it does not contain."""
    names = sorted(known)
    more = f", … ({len(names)} in total)" if len(names) > _MOST_NAMED else ""
    choices = f"choose from {', '.join(names[:_MOST_NAMED])}{more}{did_you_mean(name, names)}"
    return ValueError(f"{where}: unknown {kind} {name!r}; {choices}")
