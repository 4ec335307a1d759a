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
from segiou.counting.counts import Cells, Counts, Tally, counts_of_cells
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol, load_protocol

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions
    from segiou.boundary.boundary_sums import BoundaryCounts
    from segiou.instances.object_files import ObjectOptions
    from segiou.instances.panoptic import PanopticCounts
    from segiou.runs.header import Header
    from segiou.runs.run import Run
    from segiou.runs.surface_plan import SurfacePlan

Ints = NDArray[np.int64]
#: 63 bits take nine bytes.
_MAX_BYTES = 9
#: Of one image, more numbers than there can be.
_MOST_NUMBERS = 1 << 40


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
        no_cells = np.zeros(0, dtype=np.int64)
        return cls(
            tuple(image.id for image in images),
            np.array([len(image.cells) for image in images], dtype=np.int64),
            _joined([no_cells, *(image.cells for image in images)]),
            _joined([no_cells, *(image.values for image in images)]),
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
    counting = "boundary=True (--boundary), or objects=True (--objects)"
    measuring = "surfaces=True (--surface)"
    for wanted, found, what, options in (
        (header.counts_more, columns.measured, "counts of boundaries or objects", counting),
        (header.surfaces is not None, columns.surfaces, "distances between surfaces", measuring),
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


def run_of(
    options: ClassOptions,
    images: Iterable[ImageCount] = (),
    *,
    skipped: Iterable[Problem] = (),
    name: str = "",
    protocol: Protocol | str = "segiou",
    provenance: Mapping[str, Any] | None = None,
    boundary: BoundaryOptions | bool | None = None,
    objects: ObjectOptions | None = None,
    surfaces: SurfacePlan | None = None,
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
    boundary : BoundaryOptions or bool, optional
        What was measured at the boundaries of all images.
    objects : ObjectOptions, optional
        How the objects of all images were scored.
    surfaces : SurfacePlan, optional
        What was measured between the surfaces of all images.

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
    from segiou.boundary.boundary_options import BoundaryOptions
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
        boundary=BoundaryOptions.of(boundary),
        objects=objects,
        surfaces=surfaces,
    )
    check_measured(columns, header)
    return Run(header, columns, left_out)


def encode_cells(sizes: Ints, cells: Ints, values: Ints) -> list[bytes]:
    r"""Encode the counts of several images, columns as in :class:`Columns`, as LEB128.

    Examples
    --------
    >>> encode_cells(np.array([2, 0]), np.array([0, 3]), np.array([5, 300]))
    [b'\x01\x05\x03\xac\x02', b'']
    """
    numbers = np.empty(2 * len(cells), dtype=np.int64)
    numbers[0::2] = np.diff(cells, prepend=-1)
    firsts = (np.cumsum(sizes) - sizes)[sizes > 0]
    numbers[2 * firsts] = cells[firsts] + 1
    numbers[1::2] = values
    most = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    rest = numbers[:, None] >> 7 * np.arange(most)
    used = rest > 0
    used[:, 0] = True
    parts = (rest & 0x7F).astype(np.uint8)
    parts[:, :-1] |= used[:, 1:] * np.uint8(0x80)
    data = parts[used].tobytes()
    ends = np.append(0, np.cumsum(used.sum(1)))
    stops = ends[np.append(0, 2 * np.cumsum(sizes))].tolist()
    return [data[a:b] for a, b in pairwise(stops)]


def decode_cells(blobs: list[bytes], num_cells: int) -> tuple[Ints, Ints, Ints]:
    r"""Decode what :func:`encode_cells` gave, of tables of C · (C + 1) cells.

    Raises
    ------
    ValueError
        If a blob is not what an image's counts look like.

    Examples
    --------
    >>> decode_cells([b'\x01\x05\x03\xac\x02', b''], 6)
    (array([2, 0]), array([0, 3]), array([  5, 300]))
    """
    data = np.frombuffer(b"".join(blobs), dtype=np.uint8)
    last = np.flatnonzero(data < 0x80)
    stops = np.cumsum([len(blob) for blob in blobs], dtype=np.int64)
    _check(not (data[stops[stops > 0] - 1] >= 0x80).any(), "a number of its counts is cut off")
    lengths = np.diff(last, prepend=-1)
    longest = int(lengths.max(initial=0))
    _check(longest <= _MAX_BYTES, "a number of its counts is too long")
    numbers = np.zeros(len(last), dtype=np.int64)
    used = np.arange(len(last))
    for k in range(longest):
        used = used[lengths[used] > k]
        part = data[last[used] - lengths[used] + 1 + k] & 0x7F
        numbers[used] |= part.astype(np.int64) << (7 * k)
    sizes, odd = np.divmod(np.diff(np.searchsorted(last, stops), prepend=0), 2)
    _check(not odd.any(), "a count has no cell")
    steps, values = numbers[0::2], numbers[1::2]
    outside = "a cell of its counts lies outside the table"
    _check(not ((steps < 1) | (steps > num_cells)).any(), outside)
    ends = np.cumsum(sizes)
    cells = np.cumsum(steps)
    cells -= np.repeat(np.append(0, cells)[ends - sizes], sizes) + 1
    _check(not (cells[ends[sizes > 0] - 1] >= num_cells).any(), outside)
    _check(not (values < 1).any(), "a count is not positive")
    return sizes, cells, values


def _check(is_right: bool, problem: str) -> None:
    if not is_right:
        raise ValueError(problem)


def pack_measured(boundary: BoundaryCounts | None, objects: PanopticCounts | None) -> bytes | None:
    """Pack the counts of one image as :func:`encode_cells` does.

    First those at boundaries, then TP, FP and FN of the objects of each class,
    then class, intersection, union and number of the matches.
    """
    if boundary is None and objects is None:
        return None
    parts = [] if boundary is None else [boundary.table]
    parts += [] if objects is None else [objects.detections.ravel(), objects.overlaps.ravel()]
    numbers = np.concatenate(parts)
    cells = np.flatnonzero(numbers)
    return encode_cells(np.array([len(cells)]), cells, numbers[cells])[0]


def check_packed(packed: Sequence[bytes], header: Header) -> None:
    """Refuse what is not what :func:`pack_measured` gives."""
    if header.objects is None:
        decode_cells([*packed], _boundary_length(header))
        return
    matches = unpack_objects(packed, header)[1]
    wrong = (matches[:, 0] >= header.options.num_classes) | (matches[:, 1] > matches[:, 2])
    problem = "a match of its objects has no class, or an intersection above its union"
    _check(not wrong.any() and not (matches[:, 1:] < 1).any(), problem)


def _boundary_length(header: Header) -> int:
    """Entries of the counts at boundaries of one image."""
    if header.boundary is None:
        return 0
    from segiou.boundary.boundary_sums import BoundaryCounts

    return len(BoundaryCounts.zeros(header.options.num_classes, header.boundary).table)


def unpack_objects(packed: Sequence[bytes], header: Header) -> tuple[Ints, Ints, Ints]:
    """TP, FP and FN of images (N, C, 3); their matches (M, 4), and the image of each match."""
    start, num_classes = _boundary_length(header), header.options.num_classes
    sizes, cells, values = decode_cells([*packed], _MOST_NUMBERS)
    owner = np.repeat(np.arange(len(packed)), sizes)
    found = np.zeros((len(packed), num_classes * 3), dtype=np.int64)
    stop = start + num_classes * 3
    few = (cells >= start) & (cells < stop)
    found[owner[few], cells[few] - start] = values[few]
    rest = cells >= stop
    cells, values, owner = cells[rest] - stop, values[rest], owner[rest]
    # The last number of a match, how often it is there, is never 0.
    last = cells % 4 == 3
    _check(last[-1:].all(), "a match of its objects is cut off")
    at = np.searchsorted(np.flatnonzero(last), np.arange(len(cells)))
    matches = np.zeros((int(last.sum()), 4), dtype=np.int64)
    matches[at, cells % 4] = values
    return found.reshape(-1, num_classes, 3), matches, owner[last]


def unpack_boundaries(packed: Sequence[bytes], header: Header) -> BoundaryCounts:
    """Unpack the counts of images, as rows of one table (N, n)."""
    from segiou.boundary.boundary_sums import BoundaryCounts

    assert header.boundary is not None
    table = np.zeros((len(packed), _boundary_length(header)), dtype=np.int64)
    sizes, cells, values = decode_cells([*packed], _MOST_NUMBERS)
    here = cells < table.shape[1]  # counts of objects follow
    table[np.repeat(np.arange(len(packed)), sizes)[here], cells[here]] = values[here]
    return BoundaryCounts(table, header.options.num_classes, header.boundary)
