"""One image of a run: its counts and the files that they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.counting import PairCount

__all__ = ["NO_FILES", "ImageCount", "ImageFiles", "Stamp"]


class Stamp(NamedTuple):
    """What tells that a file is still the one that was counted.

    The version is the modification time in nanoseconds of a local file, the
    ETag or date that a server gives, the checksum of an archive's member; None
    where nothing is known, and then the file is read again.
    """

    size: int | None
    version: int | str | None

    @property
    def known(self) -> bool:
        """Whether it can tell anything."""
        return self.size is not None and self.version is not None


class ImageFiles(NamedTuple):
    """The two files of an image."""

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
    boundary : bytes, optional
        Counts at boundaries, where they were measured, packed by
        :func:`segiou.runs.boundaries.pack_boundary`.
    """

    id: str
    cells: NDArray[np.int64]
    values: NDArray[np.int64]
    ignored: int = 0
    truth: str = ""
    pred: str = ""
    truth_stamp: Stamp | None = None
    pred_stamp: Stamp | None = None
    boundary: bytes | None = None

    @classmethod
    def of(
        cls,
        id: str,
        count: PairCount,
        files: ImageFiles = NO_FILES,
        boundary: bytes | None = None,
    ) -> ImageCount:
        """Keep the cells that are not zero."""
        flat = count.table.ravel()
        cells = np.flatnonzero(flat)
        return cls(id, cells, flat[cells], count.ignored, *files, boundary)

    @property
    def pixels(self) -> int:
        """Pixels seen, ignored ones included."""
        return int(self.values.sum()) + self.ignored

    @property
    def files(self) -> ImageFiles:
        """The files and their stamps."""
        return ImageFiles(self.truth, self.pred, self.truth_stamp, self.pred_stamp)

    def same_counts(self, other: ImageCount) -> bool:
        """Whether the counts are equal, wherever they came from."""
        return (
            self.ignored == other.ignored
            and self.boundary == other.boundary
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.values, other.values)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageCount):
            return NotImplemented
        return (self.id, self.files) == (other.id, other.files) and self.same_counts(other)

    __hash__ = None  # type: ignore[assignment]
