"""Images of a run, in memory or in a file: what Run's scores are made of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._arguments import check_integer
from segiou.boundary import BoundaryCounts, BoundaryOptions
from segiou.classes import ClassOptions
from segiou.confusion import ConfusionMatrix
from segiou.counting import PairCount
from segiou.counts import Counts, Tally
from segiou.labels import LabelSet
from segiou.protocols import Protocol
from segiou.runs.boundaries import band_counts, sum_boundaries, unpack_boundaries
from segiou.runs.columns import Columns
from segiou.runs.header import Header
from segiou.runs.image import ImageCount
from segiou.runs.problems import Problem
from segiou.runs.reading import RunFile
from segiou.runs.tables import block_rows, to_csv, to_pandas, to_parquet, worst_rows

__all__ = ["Images"]


class Images:
    """Images in the order of their ids, and sums over them.

    A base of :class:`segiou.Run`.

    Attributes
    ----------
    skipped : tuple of Problem
        Pairs that were left out, and why.
    """

    _header: Header
    _columns: Columns | None
    _file: RunFile | None
    skipped: tuple[Problem, ...]

    @property
    def options(self) -> ClassOptions:
        """The classes and how pixels were counted."""
        return self._header.options

    @property
    def name(self) -> str:
        """What was scored."""
        return self._header.name

    @property
    def protocol(self) -> Protocol:
        """By which rule reports are made unless they are asked for another."""
        return self._header.protocol

    @property
    def path(self) -> Path | None:
        """The run file behind it."""
        return None if self._file is None else self._file.path

    @property
    def finished(self) -> bool:
        """False where a run file does not hold all pairs yet."""
        return self._header.finished

    @property
    def provenance(self) -> dict[str, Any]:
        """Files and options that made it, and whether it is whole."""
        known = dict(self._header.provenance)
        if not self.finished:
            of_all = "" if self._header.expected is None else f" of {self._header.expected}"
            known["unfinished"] = f"{len(self)}{of_all} pairs are scored"
        return known

    @property
    def labels(self) -> LabelSet:
        """The classes."""
        return self.options.labels

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return self.options.labels.class_names

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for classes that means leave out, (C,)."""
        return self.options.include

    def __len__(self) -> int:
        if self._columns is not None:
            return len(self._columns)
        return 0 if self._file is None else self._file.num_images

    def __iter__(self) -> Iterator[ImageCount]:
        for block in self._blocks():
            yield from block

    def _blocks(self, *, files: bool = True, boundary: bool | None = None) -> Iterator[Columns]:
        """All images in parts that fit into memory."""
        if self._columns is not None:
            yield self._columns
        elif self._file is not None:
            yield from self._file.blocks(files=files, boundary=boundary)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the images, sorted."""
        return tuple(id for block in self._blocks(files=False) for id in block.ids)

    @cached_property
    def images(self) -> tuple[ImageCount, ...]:
        """All images, in the order of their ids; of a large run, iterate over it instead."""
        return tuple(self)

    @cached_property
    def ignored(self) -> NDArray[np.int64]:
        """Ignored pixels of each image, (N,)."""
        parts = [block.ignored for block in self._blocks(files=False)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    @cached_property
    def counts(self) -> Counts:
        """Counts of each image, shape (N, C)."""
        shape = (len(self), self.options.num_classes)
        names = ("tp", "fp", "fn", "tn")
        arrays = {name: np.zeros(shape, dtype=np.int64) for name in names}
        start = 0
        for block in self._blocks(files=False):
            counts = block.counts(self.options.num_classes)
            for name, array in arrays.items():
                array[start : start + len(block)] = getattr(counts, name)
            start += len(block)
        return Counts(**arrays)

    @cached_property
    def boundary(self) -> BoundaryCounts | None:
        """Boundary counts of each image, N rows; None where none were measured.

        A row takes some 10 KB a class with distances, 200 bytes without.
        """
        classes, options = self._header.options.num_classes, self._header.boundary
        if options is None:
            return None
        rows = [unpack_boundaries(b.boundary, classes, options) for b in self._boundary_blocks()]
        if not rows:
            return unpack_boundaries([], classes, options)
        return BoundaryCounts(np.concatenate([row.table for row in rows]), classes, options)

    @cached_property
    def band_counts(self) -> Counts | None:
        """Counts of Boundary IoU at the first width of each image, (N, C).

        None where boundaries were not measured.
        """
        options = self._header.boundary
        if options is None:
            return None
        packed = [row for block in self._boundary_blocks() for row in block.boundary]
        return band_counts(packed, self._header.options.num_classes, options)

    @property
    def boundary_options(self) -> BoundaryOptions | None:
        """What was measured at boundaries; None for nothing."""
        return self._header.boundary

    @cached_property
    def _boundary_total(self) -> BoundaryCounts | None:
        """Boundary counts of all images."""
        classes, options = self._header.options.num_classes, self._header.boundary
        if options is None:
            return None
        total = BoundaryCounts.zeros(classes, options)
        for block in self._boundary_blocks():
            total += sum_boundaries(block.boundary, classes, options)
        return total

    def _boundary_blocks(self) -> Iterator[Columns]:
        return self._blocks(files=False, boundary=True)

    @cached_property
    def _total(self) -> ConfusionMatrix:
        matrix = ConfusionMatrix.from_options(self.options)
        for block in self._blocks(files=False):
            table = block.table(self.options.num_classes)
            count = PairCount(table, int(block.ignored.sum()))
            matrix.add(count, pairs=len(block))
        return matrix

    def total(self) -> ConfusionMatrix:
        """All images merged into one confusion matrix."""
        return self._total.copy()

    def tally(self, index: int) -> Tally:
        """The confusion matrix of one image."""
        one = self._loaded().take([range(len(self))[index]])
        table = one.table(self.options.num_classes)
        return Tally.of_table(table, int(one.ignored[0]))

    def _loaded(self) -> Columns:
        if self._columns is None:
            self._columns = Columns.joined(self._blocks())
        return self._columns

    def worst(self, n: int = 10, *, by: str = "mean_iou") -> list[dict[str, Any]]:
        """Rows of the images with the lowest scores, the lowest first.

        Parameters
        ----------
        n : int
            How many.
        by : str
            A column of :meth:`rows` that is a score: ``"mean_iou"``,
            ``"pixel_accuracy"``, ``"iou:CLASS"``, or ``"influence"``. Images
            where it is undefined take no part.

        Raises
        ------
        ValueError
            If there is no such score.
        """
        return worst_rows(self._blocks(), *self._scored(), check_integer("n", n, 0), by)

    def _scored(self) -> tuple[ClassOptions, Counts]:
        return self.options, self._total.counts

    def rows(self) -> list[dict[str, Any]]:
        """One row an image.

        Its ``id``, files and pixels; ``mean_iou`` over the classes in its truth;
        ``pixel_accuracy``; ``influence``, how much higher the mean IoU of the
        data set (by the rule ``segiou``) is for having the image;
        ``false_positive_classes``, how many are predicted in it and not in its
        truth, which its mean does not see; and ``iou:CLASS`` of each class, NaN
        where it is in neither truth nor prediction.
        """
        return list(block_rows(self._blocks(), *self._scored()))

    def to_csv(self) -> str:
        """The rows as CSV; an undefined ratio is an empty cell."""
        return to_csv(self._blocks(), *self._scored())

    def to_pandas(self) -> Any:
        """The rows as a :class:`pandas.DataFrame`, indexed by id.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return to_pandas(self._blocks(), *self._scored())

    def to_parquet(self, path: str | Path) -> Path:
        """Write the rows as a Parquet file, in the place of one of its name.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        OSError
            If the file cannot be written.
        """
        return to_parquet(Path(path).expanduser(), self._blocks(), *self._scored())
