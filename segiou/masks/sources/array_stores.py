"""Label arrays in zarr stores and safetensors files, as sources of masks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou.masks.finding import ZARR_FILES
from segiou.masks.read import MaskError, RawMask, damage
from segiou.masks.sources.folders import MOST_MASKS, stamp_of
from segiou.masks.windows import WHOLE_PIXELS, FileMask, unread

#: Name of the mask of a store that is a single array.
_ALONE = "mask"
#: Most pixels of a mask, which are counted even if none of them is stored.
_MOST_PIXELS = 1 << 36


def is_store(path: Path) -> bool:
    """Whether a path is a zarr store or a safetensors file."""
    if path.suffix.lower() == ".safetensors":
        return path.is_file()
    return path.is_dir() and any((path / name).is_file() for name in ZARR_FILES)


@dataclass(frozen=True)
class ArrayStore:
    """A zarr store or safetensors file: one mask per array (H, W), or per item of (N, H, W)."""

    root: str

    def find(self) -> dict[str, str]:
        """Masks by name; those of a stack by the name of its array and their index."""
        masks: dict[str, str] = {}
        with self._arrays() as arrays:
            shapes = {name: _shape_of(array) for name, array in arrays.items()}
        self._check_number(shapes)
        for name, shape in shapes.items():
            path = f"{self.root}/{name}"
            if len(shape) == 2:
                masks[name] = path
            elif len(shape) == 3:
                width = len(str(shape[0] - 1))
                masks |= {f"{name}/{i:0{width}}": f"{path}[{i}]" for i in range(shape[0])}
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
                msg = f"{self.root}/{name}: has shape {shape}; a mask must have {wanted}"
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
        return Stamp(None, None) if Path(self.root).is_dir() else stamp_of(self.root)

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """A mask, whole unless it is large."""
        stamp = self.stamp(path)
        name, _, index = path[len(self.root) + 1 :].partition("[")
        with self._arrays() as arrays, damage(path, "cannot be read", MemoryError):
            array = arrays[name or _ALONE]
            if hasattr(array, "store"):  # zarr
                array.store.expect(array, path)
            mask = _StoredMask(path, array, int(index[:-1]) if index else None)
            is_big = stamp.size is None and math.prod(mask.shape) >= WHOLE_PIXELS
            values: Any = mask if is_big else mask[:, :]
        if values.dtype.kind not in "biu":
            raise MaskError(path, f"contains {values.dtype} values; expected integer labels")
        return RawMask(values, "array", "array"), stamp

    @contextmanager
    def _arrays(self) -> Iterator[Mapping[str, Any]]:
        """The arrays by name."""
        is_zarr = Path(self.root).is_dir()
        package = "zarr" if is_zarr else "safetensors"
        try:
            module: Any = import_module(package)
        except ImportError as error:
            what = "zarr store" if is_zarr else "safetensors file"
            msg = f"{self.root}: is a {what}, which needs {package}: pip install {package}"
            raise ValueError(msg) from error
        if is_zarr:
            with damage(self.root, "cannot be opened as a zarr store"):
                from segiou.masks.formats.zarr_files import CheckedStore

                store = CheckedStore(self.root, read_only=True)
                arrays = dict(_arrays_below(module.open(store, mode="r"), self.root))
            yield arrays
            return
        with (
            damage(self.root, "is a corrupt safetensors file"),
            module.safe_open(self.root, framework="numpy") as file,
        ):
            yield {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118


def _arrays_below(store: Any, root: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All arrays of a zarr group, or the array itself."""
    if hasattr(store, "shape"):
        yield _ALONE, store
        return
    for name, one in sorted(store.arrays()):
        yield f"{prefix}{name}", one
    for name, group in sorted(store.groups()):
        folder = Path(root, group.path)
        if f"{folder.parent.resolve()}/".startswith(f"{folder.resolve()}/"):
            msg = f"group {group.path!r} links to a group that contains it"
            raise ValueError(msg)
        yield from _arrays_below(group, root, f"{prefix}{name}/")


def _shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape if hasattr(array, "shape") else array.get_shape())


class _StoredMask(FileMask):
    """An array of a store, or an item of a stack; windows are read."""

    def __init__(self, path: str, array: Any, item: int | None) -> None:
        self._array, self._item = array, item
        shape, chunks = _shape_of(array)[-2:], getattr(array, "chunks", None)
        # safetensors give the type with the values.
        kind = np.dtype(getattr(array, "dtype", np.uint8))
        super().__init__(path, shape, kind, chunks and chunks[-2:], unread)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        if self._item is None:
            return np.asarray(self._array[index])
        item = slice(self._item, self._item + 1)
        window: NDArray[Any] = np.asarray(self._array[(item, *index)])[0]
        return window
