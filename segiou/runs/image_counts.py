"""The counts of one image of a run, and of many as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou.counting.counts import Cells, Counts, Tally, counts_of_cells


def to_text(name: str) -> str | bytes:
    """A name for SQLite: text, or its bytes where a file system gave no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape")
    return name


def from_text(stored: str | bytes) -> str:
    """The name that :func:`to_text` was given."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogateescape")


def id_order(id: str) -> tuple[bool, bytes]:
    """The key that sorts ids as SQLite does: names that are not UTF-8 come last."""
    stored = to_text(id)
    return (True, stored) if isinstance(stored, bytes) else (False, stored.encode())


class ImageFiles(NamedTuple):
    """The two files of an image.

    Parameters
    ----------
    truth : str, default ""
        Path of the true mask.
    pred : str, default ""
        Path of the prediction.
    truth_stamp, pred_stamp : Stamp, optional
        What identified the file when it was read.
    """

    truth: str = ""
    pred: str = ""
    truth_stamp: Stamp | None = None
    pred_stamp: Stamp | None = None


NO_FILES = ImageFiles()


@dataclass(frozen=True, slots=True, eq=False)
class ImageCount:
    """Counts of one image, sparse: most cells of its confusion matrix are empty.

    Attributes
    ----------
    id : str
        Unique within the run.
    cells : ndarray of int64, shape (K,)
        Flat indices ``t * (C + 1) + p`` into the (C, C + 1) table, ascending.
    values : ndarray of int64, shape (K,)
        Pixels of each of these cells.
    ignored : int
        Pixels dropped.
    truth, pred : str
        The files, where there were any.
    truth_stamp, pred_stamp : Stamp, optional
        What the files were when they were read.
    measured : bytes, optional
        Counts at boundaries and of objects, where there are any, packed by
        :func:`segiou.runs.cells.pack_measured`.
    surfaces : str, optional
        Distances between surfaces, where they were measured, as
        :meth:`segiou.runs.surface_plan.SurfacePlan.measure` gives them.
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
    surfaces: str | None = None

    @classmethod
    def of(
        cls,
        id: str,
        counted: Tally | Cells,
        files: ImageFiles = NO_FILES,
        measured: bytes | None = None,
        surfaces: str | None = None,
    ) -> ImageCount:
        """Keep the cells that are not zero.

        Parameters
        ----------
        id : str
            Id of the image.
        counted : Tally or Cells
            What was counted.
        files : ImageFiles, default NO_FILES
            The two files of the image.
        measured : bytes, optional
            What was measured at boundaries.
        surfaces : str, optional
            What was measured between surfaces, as text.
        """
        found = counted.cells if isinstance(counted, Tally) else counted
        return cls(id, found.indices, found.values, found.ignored, *files, measured, surfaces)

    @property
    def pixels(self) -> int:
        """Pixels seen, ignored ones included."""
        return int(self.values.sum()) + self.ignored

    @property
    def files(self) -> ImageFiles:
        """The files and their stamps."""
        return ImageFiles(self.truth, self.pred, self.truth_stamp, self.pred_stamp)

    def same_counts(self, other: ImageCount) -> bool:
        """Whether the counts are equal, wherever they came from.

        Parameters
        ----------
        other : ImageCount
            What to compare with.

        Returns
        -------
        bool
        """
        return (
            self.ignored == other.ignored
            and (self.measured, self.surfaces) == (other.measured, other.surfaces)
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.values, other.values)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageCount):
            return NotImplemented
        return (self.id, self.files) == (other.id, other.files) and self.same_counts(other)


Ints = NDArray[np.int64]
NO_CELLS: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Images with their sparse counts, one after the other.

    Attributes
    ----------
    ids : tuple of str
        N ids.
    sizes : ndarray of int64, shape (N,)
        Filled cells of each image.
    cells, values : ndarray of int64, shape (sum of sizes,)
        As :class:`ImageCount`, of all images.
    ignored : ndarray of int64, shape (N,)
    files : tuple of ImageFiles
        N pairs of files.
    measured : tuple of bytes
        N packed counts at boundaries and of objects; empty where there are none.
    surfaces : tuple of str
        N texts of distances between surfaces; empty where there are none.
    """

    #: They are in memory.
    path: ClassVar[None] = None

    ids: tuple[str, ...]
    sizes: Ints
    cells: Ints
    values: Ints
    ignored: Ints
    files: tuple[ImageFiles, ...]
    measured: tuple[bytes, ...] = ()
    surfaces: tuple[str, ...] = ()

    @classmethod
    def of(cls, images: Sequence[ImageCount]) -> Columns:
        """Columns of images, in their order.

        Parameters
        ----------
        images : sequence of ImageCount
            The images.
        """
        return cls(
            tuple(image.id for image in images),
            np.array([len(image.cells) for image in images], dtype=np.int64),
            _joined([NO_CELLS, *(image.cells for image in images)]),
            _joined([NO_CELLS, *(image.values for image in images)]),
            np.array([image.ignored for image in images], dtype=np.int64),
            tuple(image.files for image in images),
            tuple(image.measured for image in images if image.measured is not None),
            tuple(image.surfaces for image in images if image.surfaces is not None),
        )

    @classmethod
    def joined(cls, blocks: Iterable[Columns]) -> Columns:
        """Several columns as one.

        Parameters
        ----------
        blocks : iterable of Columns
            The images, in blocks.
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
            beside = (
                self.measured[i] if self.measured else None,
                self.surfaces[i] if self.surfaces else None,
            )
            yield ImageCount(self.ids[i], cells, values, int(self.ignored[i]), *files, *beside)
            start = stop

    def blocks(self, *, files: bool = True, measured: bool | None = None) -> Iterator[Columns]:
        """All images at once; a run file gives them in several blocks.

        Parameters
        ----------
        files : bool, default True
            Whether to read the names and stamps of files.
        measured : bool, optional
            Whether to read what was measured beside the pixels.

        Yields
        ------
        Columns
        """
        yield self

    def by_id(self) -> Columns:
        """The images in the order of their ids.

        Raises
        ------
        ValueError
            If two images have one id.
        """
        order = sorted(range(len(self)), key=lambda i: id_order(self.ids[i]))
        for i, j in pairwise(order):
            if self.ids[i] == self.ids[j]:
                msg = f"two images have the id {self.ids[i]!r}; give every image an id of its own"
                raise ValueError(msg)
        return self if order == [*range(len(self))] else self.take(order)

    def take(self, indices: Sequence[int]) -> Columns:
        """Some of the images, in the order of the indices.

        Parameters
        ----------
        indices : sequence of int
            Positions of the images.

        Returns
        -------
        Columns
        """
        chosen = np.asarray(indices, dtype=np.int64)
        sizes = self.sizes[chosen]
        starts = (np.cumsum(self.sizes) - self.sizes)[chosen]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = np.repeat(starts, sizes) + within
        return Columns(
            tuple(self.ids[i] for i in indices),
            sizes,
            self.cells[entries],
            self.values[entries],
            self.ignored[chosen],
            tuple(self.files[i] for i in indices) if self.files else (),
            tuple(self.measured[i] for i in indices) if self.measured else (),
            tuple(self.surfaces[i] for i in indices) if self.surfaces else (),
        )

    def pixels(self) -> Ints:
        """Valid pixels of each image, (N,)."""
        sums = np.concatenate([[0], np.cumsum(self.values)])
        ends = np.cumsum(self.sizes)
        valid: Ints = sums[ends] - sums[ends - self.sizes]
        return valid

    def summed(self) -> Cells:
        """The cells of all images, each as often as it occurs."""
        return Cells(self.cells, self.values, sum(self.ignored.tolist()))

    def counts(self, num_classes: int) -> Counts:
        """Counts of each image, shape (N, C).

        Parameters
        ----------
        num_classes : int
            Number of classes.

        Returns
        -------
        Counts
        """
        return counts_of_cells(self.sizes, self.cells, self.values, num_classes)


def check_measured(columns: Columns, *, counts: bool, surfaces: bool) -> None:
    """Refuse images that lack what was measured beside their pixels."""
    for wanted, found, what, options in (
        (
            counts,
            columns.measured,
            "counts of boundaries or objects",
            "boundary=True (--boundary), or objects=True (--objects)",
        ),
        (surfaces, columns.surfaces, "distances between surfaces", "surfaces=True (--surface)"),
    ):
        if wanted and len(found) != len(columns):
            msg = (
                f"{len(columns) - len(found)} of {len(columns)} images have no {what}; score them "
                f"with {options}"
            )
            raise ValueError(msg)


def _joined(parts: Sequence[Any]) -> Any:
    """Several arrays, or several tuples, as one."""
    is_array = isinstance(parts[0], np.ndarray)
    return np.concatenate(parts) if is_array else tuple(chain.from_iterable(parts))
