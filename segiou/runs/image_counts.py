"""The counts of one image of a run, of many as columns, and as the bytes of a run file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, read_several
from segiou._support.files import Problem, Stamp
from segiou._support.text import listed
from segiou.counting.counts import Cells, Counts, Tally, counts_of_cells
from segiou.counting.varints import decode_cells as decode_cells, encode_cells as encode_cells
from segiou.labels.class_options import ClassOptions
from segiou.measures.parts import Parts
from segiou.metrics.protocols import Protocol, load_protocol

if TYPE_CHECKING:
    from segiou.measures.measure import Measure, Plan
    from segiou.runs.header import Header
    from segiou.runs.run import Run

Ints = NDArray[np.int64]


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
        counted: Tally | Cells,
        files: ImageFiles = NO_FILES,
        measured: bytes | None = None,
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
        """
        found = counted.cells if isinstance(counted, Tally) else counted
        return cls(id, found.indices, found.values, found.ignored, *files, measured)

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
            and self.measured == other.measured
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.values, other.values)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageCount):
            return NotImplemented
        return (self.id, self.files) == (other.id, other.files) and self.same_counts(other)


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

    @classmethod
    def of(cls, images: Sequence[ImageCount]) -> Columns:
        """Columns of images, in their order.

        Parameters
        ----------
        images : sequence of ImageCount
            The images.
        """
        no_cells = np.zeros(0, dtype=np.int64)
        return cls(
            tuple(image.id for image in images),
            np.array([len(image.cells) for image in images], dtype=np.int64),
            _joined([no_cells, *(image.cells for image in images)]),
            _joined([no_cells, *(image.values for image in images)]),
            np.array([image.ignored for image in images], dtype=np.int64),
            tuple(image.files for image in images),
            tuple(image.measured for image in images if image.measured is not None),
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
            packed = self.measured[i] if self.measured else None
            yield ImageCount(self.ids[i], cells, values, int(self.ignored[i]), *files, packed)
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
        )

    def parts(self, size: int) -> Iterator[Columns]:
        """The images, so many at a time.

        Parameters
        ----------
        size : int
            Images of a part, at most.

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


def check_measured(columns: Columns, header: Header) -> None:
    """Refuse images that lack what was measured beside their pixels."""
    if header.counts_more and len(columns.measured) != len(columns):
        lacking = len(columns) - len(columns.measured)
        keys = listed([plan.measure.noun for plan in header.plans])
        msg = f"{lacking} of {len(columns)} images have no counts of {keys}; score them with it"
        raise ValueError(msg)


def _joined(parts: Sequence[Any]) -> Any:
    """Several arrays, or several tuples, as one."""
    is_array = isinstance(parts[0], np.ndarray)
    return np.concatenate(parts) if is_array else tuple(chain.from_iterable(parts))


def run_of(
    options: ClassOptions,
    images: Iterable[ImageCount] = (),
    *,
    skipped: Iterable[Problem] = (),
    name: str = "",
    protocol: Protocol | str = "segiou",
    provenance: Mapping[str, Any] | None = None,
    measures: Iterable[Measure | str] = (),
    plans: Iterable[Plan] = (),
) -> Run:
    """Make a run of images that were counted one by one.

    Parameters
    ----------
    options : ClassOptions
        The classes and how pixels were counted, such as ``ConfusionMatrix.options``.
    images : iterable of ImageCount
        Kept in the order of their ids.
    skipped : iterable of Problem
        Pairs that were left out, and why.
    name : str
        What was scored.
    protocol : Protocol or str
        The protocol of the run's reports, unless they are asked for another.
    provenance : mapping, optional
        Files and options that made it.
    measures : iterable of Measure or str
        What else was counted of all images.
    plans : iterable of Plan
        The same, of these classes.

    Returns
    -------
    Run

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If two images have one id, or one has no boundary counts where they are
        said to be measured.
    """
    from segiou.measures.measure import Masks
    from segiou.measures.registry import read_measures
    from segiou.runs.header import Header
    from segiou.runs.run import Run

    check_kind("options", options, ClassOptions, "ClassOptions, such as ConfusionMatrix.options")
    check_kind("name", name, str, "text")
    check_kind("provenance", provenance or {}, Mapping, "a mapping")
    left_out = read_several("skipped", skipped, "Problems, one a pair")
    for problem in left_out:
        check_kind("each of skipped", problem, Problem, "a Problem")
    several = read_several("images", images, "ImageCounts, one an image, such as run.images")
    for image in several:
        check_kind("each of images", image, ImageCount, "an ImageCount")
    columns = Columns.of(several).by_id()
    header = Header(
        options,
        load_protocol(protocol),
        name,
        provenance=dict(provenance or {}),
        plans=(*(measure.plan(options, Masks()) for measure in read_measures(measures)), *plans),
    )
    check_measured(columns, header)
    return Run(header, columns, left_out)


def pack_measured(header: Header, counted: Mapping[str, Parts]) -> bytes | None:
    """What the measures of a header counted of one image, as bytes; None where there are none."""
    if not header.counts_more:
        return None
    layout = header.layout
    arrays = {f"{key}/{name}": part[name] for key, part in counted.items() for name in part.layout}
    sizes = {name: np.array([len(arrays[name])]) for name, field in layout.items() if field.rows}
    return Parts(layout, 1, arrays, sizes).pack()[0]


def check_packed(packed: Sequence[bytes], header: Header) -> None:
    """Refuse what is not what :func:`pack_measured` gives."""
    for plan in header.plans:
        plan.check(unpack_parts(packed, header, plan.key))


def unpack_parts(packed: Sequence[bytes], header: Header, key: str) -> Parts:
    """What one measure counted of several images."""
    return Parts.unpack(header.layout, packed, f"{key}/")
