"""Label arrays in zarr stores and safetensors files, as sources of masks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou.masks.finding import check_found, is_mask, is_zarr, split_ending, unknown_part
from segiou.masks.formats.numpy_files import whole_labels
from segiou.masks.raw_mask import MaskError, RawMask, damage
from segiou.masks.read import WHOLE_PIXELS
from segiou.masks.sources.folders import MOST_MASKS, Source, check_number, first_files, stamp_of
from segiou.masks.sources.patterns import check_links, matches
from segiou.masks.windows import FileMask, unread

#: Name of the mask of a store that is a single array.
_ALONE = "mask"
#: Most pixels of a mask, which are counted even if none of them is stored.
_MOST_PIXELS = 1 << 36


def open_store(path: Path, part: Path) -> Source | None:
    """The source for a store, or for an array or group in one."""
    return ArrayStore(str(path), str(part)) if _is_store(part) else None


def open_folder(path: Path, _part: Path) -> Source | None:
    """The source for stores in place of mask files in a folder, or that match a pattern."""
    is_of_masks = path.is_dir() and any(is_mask(Path(name).name) for name in first_files(path))
    return None if is_of_masks else StoreFolder(str(path))


def _is_store(path: Path) -> bool:
    """Whether a path is a zarr store or a safetensors file."""
    return is_zarr(path) or (path.suffix.lower() == ".safetensors" and path.is_file())


@dataclass(frozen=True)
class ArrayStore(Source):
    """Masks of a zarr store or safetensors file: arrays (H, W), or items of arrays (N, H, W).

    Attributes
    ----------
    root : str
        The path of the store, optionally followed by an array or group in it.
    store : str
        The path of the store.
    """

    root: str
    store: str

    def find(self) -> dict[str, str]:
        """Masks by name; those of a stack by the name of its array and their index."""
        masks: dict[str, str] = {}
        with self._arrays() as arrays:
            shapes = {name: _shape_of(array) for name, array in arrays.items()}
        part = self.root[len(self.store) + 1 :].strip("/")
        start = part and f"{part}/"
        below = [name for name in shapes if f"{name}/".startswith(start)]
        chosen = {name[len(start) :] or _ALONE: name for name in below}
        if shapes and not chosen:
            raise unknown_part(self.root, "array or group", part, shapes)
        self._check_number({name: shapes[name] for name in chosen.values()})
        for short, name in chosen.items():
            path, shape = f"{self.store}/{name}", shapes[name]
            if len(shape) == 2:
                masks[short] = path
            elif len(shape) == 3:
                width = len(str(shape[0] - 1))
                masks |= {f"{short}/{i:0{width}}": f"{path}[{i}]" for i in range(shape[0])}
            else:
                msg = f"{path}: has shape {shape}; expected (H, W) or (N, H, W)"
                raise ValueError(msg)
        if not masks:
            msg = f"{self.root}: contains no arrays"
            raise ValueError(msg)
        return masks

    def _check_number(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise an error for masks without pixels, and for more than can be listed or counted."""
        for name, shape in shapes.items():
            if 0 in shape or math.prod(shape[-2:]) > _MOST_PIXELS:
                wanted = f"at most {_MOST_PIXELS} pixels" if all(shape) else "at least one pixel"
                msg = f"{self.store}/{name}: has shape {shape}; a mask must have {wanted}"
                raise ValueError(msg)
        number = sum(shape[0] if len(shape) == 3 else 1 for shape in shapes.values())
        if number > MOST_MASKS:
            msg = (
                f"{self.root}: declares {number} masks; at most {MOST_MASKS} are supported. Split "
                "the store, or save volumes as NIfTI"
            )
            raise ValueError(msg)

    def stamp(self, path: str) -> Stamp:
        """Size and time of a safetensors file; unknown for zarr, which has many files."""
        return Stamp(None, None) if Path(self.store).is_dir() else stamp_of(self.store)

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """A mask, whole unless it is large."""
        stamp = self.stamp(path)
        name, _, index = path[len(self.store) + 1 :].partition("[")
        with self._arrays() as arrays, damage(path, "cannot be read", MemoryError):
            array = arrays[name or _ALONE]
            if hasattr(array, "store"):  # zarr
                array.store.expect(array, path)
            mask = _StoredMask(path, array, int(index[:-1]) if index else None)
            is_big = stamp.size is None and math.prod(mask.shape) >= WHOLE_PIXELS
            values: Any = mask if is_big else mask[:, :]
        return RawMask(values, "array", "array"), stamp

    @contextmanager
    def _arrays(self) -> Iterator[Mapping[str, Any]]:
        """The arrays by name."""
        is_zarr = Path(self.store).is_dir()
        package = "zarr" if is_zarr else "safetensors"
        try:
            module: Any = import_module(package)
        except ImportError as error:
            what = "zarr store" if is_zarr else "safetensors file"
            msg = f"{self.store}: is a {what}, which needs {package}: pip install {package}"
            raise ValueError(msg) from error
        if is_zarr:
            with damage(self.store, "cannot be opened as a zarr store"):
                from segiou.masks.formats.zarr_files import CheckedStore

                store = CheckedStore(self.store, read_only=True)
                arrays = dict(_arrays_below(module.open(store, mode="r"), self.store))
            yield arrays
            return
        with (
            damage(self.store, "is a corrupt safetensors file"),
            module.safe_open(self.store, framework="numpy") as file,
        ):
            yield {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118


@dataclass(frozen=True)
class StoreFolder(Source):
    """Stores below a folder, or that match a pattern, such as one per case.

    The mask of a store with one array has the name of the store; those of other stores follow it.

    Attributes
    ----------
    root : str
        The folder or pattern.
    """

    root: str

    def find(self) -> dict[str, str]:
        """Masks by the relative path of their store, without extension."""
        masks: dict[str, str] = {}
        for name, store in self._stores().items():
            paths = ArrayStore(store, store).find()
            arrays = {key: path[len(store) + 1 :].partition("[")[0] for key, path in paths.items()}
            is_single = len({*arrays.values()}) == 1
            for key, path in paths.items():
                part = key[len(arrays[key]) + 1 :] if is_single else key
                masks[f"{split_ending(name)[0]}/{part}".rstrip("/")] = path
            check_number(masks, self.root)
        check_found(masks, self.root)
        check_links(masks.values())
        return masks

    def _stores(self) -> dict[str, str]:
        """Stores by relative path."""
        if not Path(self.root).is_dir():
            places = {"/".join(kept): path for path, kept in matches(self.root).items()}
            return {name: path for name, path in places.items() if _is_store(Path(path))}
        stores = {}
        for base, folders, files in os.walk(self.root):
            here = [name for name in folders if _is_store(Path(base, name))]
            folders[:] = sorted({*folders} - {*here})
            here += [name for name in files if name.lower().endswith(".safetensors")]
            for path in (Path(base, name) for name in sorted(here) if not name.startswith(".")):
                stores[path.relative_to(self.root).as_posix()] = str(path)
        return stores

    def stamp(self, path: str) -> Stamp:
        """The stamp of the store of a mask."""
        return self._store(path).stamp(path)

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """A mask, whole unless it is large."""
        return self._store(path).read(path)

    def _store(self, path: str) -> ArrayStore:
        store = next((part for part in Path(path).parents if _is_store(part)), None)
        if store is None:
            raise MaskError(path, "its store does not exist any more")
        return ArrayStore(str(store), str(store))


def _arrays_below(store: Any, root: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All arrays of a zarr group that may be masks, or the array itself."""
    if hasattr(store, "shape"):
        yield _ALONE, store
        return
    # Metadata of OME-NGFF: from version 0.5 on below "ome".
    if levels := store.attrs.get("ome", {}).get("multiscales") or store.attrs.get("multiscales"):
        if "labels" in store:  # the arrays of the group are those of the image
            yield from _arrays_below(store["labels"], root, f"{prefix}labels/")
        else:
            yield prefix.rstrip("/") or _ALONE, _largest(store, levels[0])
        return
    for name, array in sorted(store.arrays()):
        yield f"{prefix}{name}", array
    for name, group in sorted(store.groups()):
        folder = Path(root, group.path)
        if f"{folder.parent.resolve()}/".startswith(f"{folder.resolve()}/"):
            msg = f"group {group.path!r} links to a group that contains it"
            raise ValueError(msg)
        yield from _arrays_below(group, root, f"{prefix}{name}/")


def _largest(group: Any, levels: Mapping[str, Any]) -> Any:
    """The first level of an OME-NGFF pyramid, which is the largest."""
    path = levels["datasets"][0]["path"]
    if path not in group:
        msg = f"group {group.path!r} lists the level {path!r}, which is missing"
        raise ValueError(msg)
    array = group[path]
    kinds = [axis["type"] for axis in levels.get("axes", ()) if isinstance(axis, dict)]
    for kind, length in zip(kinds, array.shape, strict=False):
        if kind == "channel" and length > 1:
            msg = f"group {group.path!r} is an image of {length} channels without labels"
            raise ValueError(msg)
    return array


def _shape_of(array: Any) -> tuple[int, ...]:
    """The shape of an array; with more axes than a stack has, without those of length 1."""
    shape = _full_shape(array)
    if len(shape) < 4:
        return shape
    return (*(length for length in shape[:-2] if length != 1), *shape[-2:])


def _full_shape(array: Any) -> tuple[int, ...]:
    return tuple(array.shape if hasattr(array, "shape") else array.get_shape())


class _StoredMask(FileMask):
    """An array of a store, or an item of a stack; windows are read."""

    def __init__(self, path: str, array: Any, item: int | None) -> None:
        shape, chunks = _full_shape(array), getattr(array, "chunks", None)
        self._array = array
        # Of the axes before height and width, at most that of the items is longer than 1.
        self._item = [slice(0, 1) if n == 1 else slice(item, (item or 0) + 1) for n in shape[:-2]]
        # safetensors give the type with the values.
        kind = np.dtype(getattr(array, "dtype", np.uint8))
        super().__init__(path, shape[-2:], kind, chunks and chunks[-2:], unread)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        window: NDArray[Any] = np.asarray(self._array[(*self._item, *index)])
        return whole_labels(window.reshape(window.shape[-2:]), self.path)
