"""Counts of images: one image, many as columns, and packed for run files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer
from segiou._support.files import Stamp
from segiou._support.text import Json, listed
from segiou.counting.counts import (
    Cells,
    ConfusionCounts,
    Counts,
    counts_of_cells,
    group_counts_of_cells,
)
from segiou.counting.id_pairs import sums
from segiou.counting.varints import decode_cells as decode_cells, encode_cells as encode_cells
from segiou.measures.parts import Parts, rows_of

if TYPE_CHECKING:
    from segiou.runs.header import Header

Ints = NDArray[np.int64]


def to_text(name: str) -> str | bytes:
    """A name for SQLite: text, or bytes if it is not valid UTF-8."""
    try:
        name.encode()
        return name
    except UnicodeEncodeError:
        pass
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        msg = f"{name!r} is not text that can be stored; correct the id"
        raise ValueError(msg) from None


def from_text(stored: str | bytes) -> str:
    """The inverse of :func:`to_text`."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogateescape")


def id_order(id: str) -> tuple[bool, bytes]:
    """A sort key that orders ids as SQLite does: names that are not UTF-8 come last."""
    stored = to_text(id)
    return (True, stored) if isinstance(stored, bytes) else (False, stored.encode())


class ImageFiles(NamedTuple):
    """The two files of an image.

    Parameters
    ----------
    truth : str, default ""
        Path of the truth mask.
    pred : str, default ""
        Path of the prediction.
    truth_stamp, pred_stamp : Stamp, optional
        Size and version of the file when it was read.
    """

    truth: str = ""
    pred: str = ""
    truth_stamp: Stamp | None = None
    pred_stamp: Stamp | None = None


NO_FILES = ImageFiles()


@dataclass(frozen=True, slots=True, eq=False)
class ImageCount:
    """Sparse counts of one image; most cells of its confusion matrix are empty.

    Attributes
    ----------
    id : str
        Unique within the run.
    cells : ndarray of int64, shape (K,)
        Flat indices ``t * (C + 1) + p`` into the (C, C + 1) table, ascending.
    values : ndarray of int64, shape (K,)
        Pixels in each of these cells.
    ignored : int
        Number of ignored pixels.
    truth, pred : str
        The files, if any.
    truth_stamp, pred_stamp : Stamp, optional
        Size and version of the files when they were read.
    measured : bytes, optional
        Counts of measures, if any, packed by
        :func:`segiou.runs.image_counts.pack_measured`.
    """

    id: str
    cells: NDArray[np.int64]
    values: NDArray[np.int64]
    ignored: int = 0
    truth: str = ""
    pred: str = ""
    truth_stamp: Stamp | None = None
    pred_stamp: Stamp | None = None
    measured: bytes | None = None

    @classmethod
    def of(
        cls,
        id: str,
        counted: ConfusionCounts | Cells,
        files: ImageFiles = NO_FILES,
        measured: bytes | None = None,
    ) -> ImageCount:
        """Create the counts of an image from its non-zero cells.

        Parameters
        ----------
        id : str
            Id of the image.
        counted : ConfusionCounts or Cells
            The confusion matrix.
        files : ImageFiles, default NO_FILES
            The two files of the image.
        measured : bytes, optional
            Packed counts of measures.
        """
        cells = counted.cells if isinstance(counted, ConfusionCounts) else counted
        return cls(id, cells.indices, cells.values, cells.ignored, *files, measured)

    @property
    def pixels(self) -> int:
        """Number of pixels, including ignored ones."""
        return int(self.values.sum()) + self.ignored

    @property
    def files(self) -> ImageFiles:
        """The files and their stamps."""
        return ImageFiles(self.truth, self.pred, self.truth_stamp, self.pred_stamp)

    def same_counts(self, other: ImageCount) -> bool:
        """Whether the counts are equal, regardless of the files.

        Parameters
        ----------
        other : ImageCount
            The counts to compare with.
        """
        return (
            self.ignored == other.ignored
            and self.measured == other.measured
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.values, other.values)
        )

    def to_dict(self) -> dict[str, Json]:
        """The id and the counts as plain data, without the files."""
        cells: Any = {"cells": self.cells.tolist(), "values": self.values.tolist()}
        packed = None if self.measured is None else self.measured.hex()
        return {"id": self.id, **cells, "ignored": self.ignored, "measured": packed}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the result of :meth:`to_dict`.

        Parameters
        ----------
        data : mapping
            Id and counts.

        Raises
        ------
        TypeError, ValueError
            If the counts are invalid.
        """
        cells, values = (np.array(data[name], dtype=np.int64) for name in ("cells", "values"))
        if cells.shape != values.shape or cells.ndim != 1 or (values < 1).any():
            msg = f"the saved state has invalid counts of image {data['id']!r}"
            raise ValueError(msg)
        ignored = check_integer("ignored", data["ignored"], 0)
        packed = None if data["measured"] is None else bytes.fromhex(data["measured"])
        return cls(str(data["id"]), cells, values, ignored, measured=packed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageCount):
            return NotImplemented
        return (self.id, self.files) == (other.id, other.files) and self.same_counts(other)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sparse counts of many images, concatenated.

    Attributes
    ----------
    ids : tuple of str
        N ids.
    sizes : ndarray of int64, shape (N,)
        Number of non-zero cells of each image.
    cells, values : ndarray of int64, shape (sum of sizes,)
        Those of :class:`ImageCount`, concatenated.
    ignored : ndarray of int64, shape (N,)
    files : tuple of ImageFiles
        N pairs of files.
    measured : tuple of bytes
        N packed counts of measures; empty if there are none.
    """

    #: In memory, unlike a RunFile.
    path: ClassVar[None] = None

    ids: tuple[str, ...]
    sizes: Ints
    cells: Ints
    values: Ints
    ignored: Ints
    files: tuple[ImageFiles, ...]
    measured: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, images: Sequence[ImageCount]) -> Columns:
        """Columns of images, in the given order.

        Parameters
        ----------
        images : sequence of ImageCount
            The images.
        """
        no_cells = np.zeros(0, dtype=np.int64)
        return cls(
            ids=tuple(image.id for image in images),
            sizes=np.array([len(image.cells) for image in images], dtype=np.int64),
            cells=_joined([no_cells, *(image.cells for image in images)]),
            values=_joined([no_cells, *(image.values for image in images)]),
            ignored=np.array([image.ignored for image in images], dtype=np.int64),
            files=tuple(image.files for image in images),
            measured=tuple(image.measured for image in images if image.measured is not None),
        )

    @classmethod
    def joined(cls, blocks: Iterable[Columns]) -> Columns:
        """Concatenate several columns.

        Parameters
        ----------
        blocks : iterable of Columns
            The columns.
        """
        parts = list(blocks) or [cls.of([])]
        if len(parts) == 1:
            return parts[0]
        columns = zip(
            *([getattr(part, f.name) for f in fields(cls)] for part in parts), strict=True
        )
        return cls(*map(_joined, columns))

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[ImageCount]:
        start = 0
        for i, stop in enumerate(np.cumsum(self.sizes).tolist()):
            cells, values = self.cells[start:stop], self.values[start:stop]
            files = self.files[i] if self.files else NO_FILES
            packed = self.measured[i] if self.measured else None
            yield ImageCount(self.ids[i], cells, values, int(self.ignored[i]), *files, packed)
            start = stop

    def blocks(self, *, files: bool = True, measured: bool | None = None) -> Iterator[Columns]:
        """Yield all images as one block, with the interface of :class:`RunFile`.

        Parameters
        ----------
        files : bool, default True
            Has no effect in memory.
        measured : bool, optional
            Has no effect in memory.

        Yields
        ------
        Columns
        """
        yield self

    def by_id(self) -> Columns:
        """The images sorted by id.

        Raises
        ------
        ValueError
            If ids are not unique.
        """
        order = sorted(range(len(self)), key=lambda i: id_order(self.ids[i]))
        for i, j in pairwise(order):
            if self.ids[i] == self.ids[j]:
                msg = f"duplicate image id {self.ids[i]!r}; ids must be unique"
                raise ValueError(msg)
        return self if order == [*range(len(self))] else self.take(order)

    def take(self, indices: Sequence[int]) -> Columns:
        """Select images by position.

        Parameters
        ----------
        indices : sequence of int
            Positions of the images.
        """
        chosen = np.asarray(indices, dtype=np.int64)
        entries = rows_of(self.sizes, chosen)
        return Columns(
            ids=tuple(self.ids[i] for i in indices),
            sizes=self.sizes[chosen],
            cells=self.cells[entries],
            values=self.values[entries],
            ignored=self.ignored[chosen],
            files=tuple(self.files[i] for i in indices) if self.files else (),
            measured=tuple(self.measured[i] for i in indices) if self.measured else (),
        )

    def parts(self, size: int) -> Iterator[Columns]:
        """Yield the images in parts of limited size.

        Parameters
        ----------
        size : int
            Maximum number of images in a part.

        Yields
        ------
        Columns
        """
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            yield self if stop - start == len(self) else self.take(range(start, stop))

    def pixels(self) -> Ints:
        """Valid pixels of each image, (N,)."""
        sums = np.concatenate([[0], np.cumsum(self.values)])
        ends = np.cumsum(self.sizes)
        valid: Ints = sums[ends] - sums[ends - self.sizes]
        return valid

    def summed(self) -> Cells:
        """The cells of all images; a cell occurs once per image."""
        return Cells(self.cells, self.values, sum(self.ignored.tolist()))

    def declared(self, num_classes: int) -> Columns:
        """The images with undeclared predictions ignored.

        Parameters
        ----------
        num_classes : int
            Number of classes.
        """
        kept = self.cells % (num_classes + 1) < num_classes
        owner = np.repeat(np.arange(len(self)), self.sizes)
        dropped = sums(owner[~kept], self.values[~kept], len(self))
        return replace(
            self,
            sizes=np.bincount(owner[kept], minlength=len(self)),
            cells=self.cells[kept],
            values=self.values[kept],
            ignored=self.ignored + dropped,
        )

    def counts(self, num_classes: int) -> Counts:
        """Counts of each image, shape (N, C).

        Parameters
        ----------
        num_classes : int
            Number of classes.
        """
        return counts_of_cells(self.sizes, self.cells, self.values, num_classes)

    def structure_counts(
        self,
        members: Sequence[Sequence[int]],
        num_classes: int,
        *,
        grouped_truth_only: bool = False,
    ) -> Counts:
        """Counts of groups of classes in each image, each against the rest, shape (N, G).

        Parameters
        ----------
        members : sequence of sequence of int
            Class indices of each of the G groups.
        num_classes : int
            Number of classes.
        grouped_truth_only : bool
            Whether to drop the pixels whose truth is in none of the groups.
        """
        grouping = members, num_classes
        return group_counts_of_cells(
            self.sizes, self.cells, self.values, *grouping, grouped_truth_only=grouped_truth_only
        )


def check_measured(columns: Columns, header: Header) -> None:
    """Raise ValueError if images lack the counts of measures."""
    if header.counts_more and len(columns.measured) != len(columns):
        lacking = len(columns) - len(columns.measured)
        keys = listed([plan.measure.noun for plan in header.plans])
        msg = (
            f"{lacking} of {len(columns)} images have no counts of {keys}; score them with these "
            "measures"
        )
        raise ValueError(msg)


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate several arrays or several tuples."""
    is_array = isinstance(parts[0], np.ndarray)
    return np.concatenate(parts) if is_array else tuple(chain.from_iterable(parts))


def pack_measured(header: Header, counted: Mapping[str, Parts]) -> list[bytes]:
    """The counts of all measures as bytes per image; empty without measures."""
    arrays, sizes, number = {}, {}, 0
    for key, parts in counted.items():
        number = len(parts)
        for name, field in parts.layout.items():
            arrays[f"{key}/{name}"] = parts[name]
            if field.rows:
                sizes[f"{key}/{name}"] = parts.sizes(name)
    return Parts(header.layout, number, arrays, sizes).pack()


def check_packed(packed: Sequence[bytes], header: Header) -> None:
    """Validate the packed counts of measures."""
    for plan in header.plans:
        plan.check(unpack_parts(packed, header, plan.key))


def reordered_images(
    wanted: Header, images: Iterable[ImageCount], header: Header
) -> Iterator[ImageCount]:
    """Images of a header with the measures in the order of another header with the same ones."""
    if [*header.layout] == [*wanted.layout]:
        return iter(images)
    return (replace(image, measured=_repacked(image.measured, header, wanted)) for image in images)


def _repacked(packed: bytes | None, header: Header, wanted: Header) -> bytes | None:
    if packed is None:
        return None
    return pack_measured(wanted, _unpacked([packed], header))[0]


def _unpacked(packed: Sequence[bytes], header: Header) -> dict[str, Parts]:
    """The counts of all measures of a header in several images."""
    keys = dict.fromkeys(name.partition("/")[0] for name in header.layout)
    return {key: unpack_parts(packed, header, key) for key in keys}


def of_structures(columns: Columns, header: Header, wanted: Header) -> Columns:
    """Images with the counts of fewer structures, those of a header that excludes more classes."""
    counted = _unpacked(columns.measured, header)
    for plan, fewer in zip(header.plans, wanted.plans, strict=True):
        known, left = plan.counted_structures, fewer.counted_structures
        if known != left:
            places = [known.index(members) for members in left]
            counted[plan.key] = counted[plan.key].of_places(fewer.layout, places)
    return replace(columns, measured=tuple(pack_measured(wanted, counted)))


def unpack_parts(packed: Sequence[bytes], header: Header, key: str) -> Parts:
    """The counts of one measure in several images."""
    return Parts.unpack(header.layout, packed, f"{key}/")
