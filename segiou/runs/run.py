"""Ids of images: their order, and what groups are read from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_integer,
    check_kind,
    check_path,
    check_several,
    read_several,
    refuse_kind,
)
from segiou._support.files import Problem
from segiou._support.text import plural
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.analysis.bootstrapping import bootstrap
from segiou.analysis.intervals import Intervals
from segiou.analysis.statistics import Metric
from segiou.analysis.units import Groups
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.counting.counts import Counts, Tally
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.cells import band_counts, sum_boundaries, unpack_boundaries
from segiou.runs.database import RunFileError, id_order
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount
from segiou.runs.merging import merged
from segiou.runs.run_reading import RunFile, check_boundaries
from segiou.runs.run_writing import write_new
from segiou.runs.tables import block_rows, to_csv, to_pandas, to_parquet, worst_rows

if TYPE_CHECKING:
    from segiou.report.report import Report

__all__ = ["ImageCount", "Images", "Problem", "Run", "RunFileError", "ordered", "searcher"]


def ordered(images: Iterable[ImageCount] | Columns) -> Columns:
    """Images in the order of their ids.

    Raises
    ------
    TypeError
        If they are something else.
    ValueError
        If two images have one id.
    """
    if isinstance(images, Columns):
        columns = images
    else:
        several = read_several("images", images, "ImageCounts, one an image, such as run.images")
        for image in several:
            check_kind("each of images", image, ImageCount, "an ImageCount")
        columns = Columns.of(sorted(several, key=lambda image: id_order(image.id)))
    order = [id_order(id) for id in columns.ids]
    for i, (first, second) in enumerate(pairwise(order)):
        if first == second:
            msg = (
                f"two images have the id {columns.ids[i]!r}; "
                "ids tell images apart: make them unique"
            )
            raise ValueError(msg)
        if first > second:
            return ordered(columns.take(sorted(range(len(order)), key=order.__getitem__)))
    return columns


def searcher(key: str) -> Callable[[str], str]:
    """A function that finds the name of an id's group.

    Raises
    ------
    ValueError
        If the expression is none; the function does, if it finds nothing.
    """
    try:
        pattern = re.compile(key)
    except re.error as error:
        msg = f"key {key!r} is no regular expression: {error}"
        raise ValueError(msg) from error

    def name_of(id: str) -> str:
        match = pattern.search(id)
        if match is None:
            msg = f"key {key!r} is not found in the id {id!r}; every image needs a group"
            raise ValueError(msg)
        found = match.groupdict().get("key") or (
            match.group(1) if pattern.groups else match.group(0)
        )
        return str(found)

    return name_of


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
            matrix.add(Tally.trusted(table, block.ignored.sum()), pairs=len(block))
        return matrix

    def total(self) -> ConfusionMatrix:
        """All images merged into one confusion matrix."""
        return self._total.copy()

    def tally(self, index: int) -> Tally:
        """The confusion matrix of one image."""
        one = self._loaded().take([range(len(self))[index]])
        table = one.table(self.options.num_classes)
        return Tally.trusted(table, one.ignored[0])

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


class Run(Images):
    """Counts of every image of one evaluation, in memory or in a run file.

    Parameters
    ----------
    options : ClassOptions
        The classes and how pixels were counted.
    images : iterable of ImageCount or Columns
        Kept in the order of their ids.
    skipped : sequence of Problem
        Pairs that were left out, and why.
    name : str
        What was scored.
    protocol : Protocol, optional
        By which rule reports are made unless they are asked for another.
    provenance : mapping, optional
        Files and options that made it.
    boundary : BoundaryOptions, optional
        What was measured at the boundaries of all images.

    Attributes
    ----------
    path : Path or None
        The run file behind it.
    finished : bool
        False where a run file does not hold all pairs yet.

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If two images have one id, or one has no boundary counts where they are
        said to be measured.

    Examples
    --------
    >>> import segiou
    >>> run = segiou.score([[[0, 1], [1, 1]]], [[[0, 1], [1, 0]]], labels=2)
    >>> run.total().iou().round(4), run.ids
    (array([0.5   , 0.6667]), ('0',))
    """

    def __init__(
        self,
        options: ClassOptions,
        images: Iterable[ImageCount] | Columns = (),
        skipped: Sequence[Problem] = (),
        name: str = "",
        protocol: Protocol | None = None,
        provenance: Mapping[str, Any] | None = None,
        boundary: BoundaryOptions | None = None,
    ) -> None:
        check_kind(
            "options", options, ClassOptions, "ClassOptions, such as ConfusionMatrix.options"
        )
        check_kind("name", name, str, "text")
        rule = load_protocol("segiou" if protocol is None else protocol)
        origin = {} if provenance is None else provenance
        check_kind("provenance", origin, Mapping, "a mapping")
        measured = BoundaryOptions.of(boundary)
        self._header = Header(options, rule, name, provenance=dict(origin), boundary=measured)
        self._columns: Columns | None = ordered(images)
        if measured is not None:
            check_boundaries(self._columns)
        self._file: RunFile | None = None
        self.skipped = tuple(read_several("skipped", skipped, "Problems, one a pair"))
        for problem in self.skipped:
            check_kind("each of skipped", problem, Problem, "a Problem")

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in a run file; its images are read when they are needed.

        Raises
        ------
        RunFileError
            If it does not exist, is no run file, damaged, of a newer version,
            or another process is writing it.
        """
        check_path("path", path)
        file = RunFile.open(path)
        run = cls._of(file.header, None, file.skipped)
        run._file = file
        return run

    @classmethod
    def _of(cls, header: Header, columns: Columns | None, skipped: Sequence[Problem]) -> Run:
        run = cls.__new__(cls)
        run._header, run._columns, run._file = header, columns, None
        run.skipped = tuple(skipped)
        return run

    def intervals(
        self,
        metric: Metric = "iou",
        *,
        groups: Groups | None = None,
        protocol: Protocol | str | None = None,
        **options: Any,
    ) -> Intervals:
        """Bootstrap intervals of a score and of each class.

        Parameters
        ----------
        metric : str or callable
            As :func:`segiou.analysis.statistics.statistic`, or ``"boundary_iou"``: at the
            first width that was measured.
        groups : str, mapping, callable or sequence, optional
            Images that belong together, see :func:`segiou.analysis.units.groups_of`.
        protocol : Protocol or str, optional
            The run's own by default.
        **options
            Others of :func:`segiou.bootstrap`: resamples, seed, level, method,
            aggregate.
        """
        return bootstrap(self, metric, groups=groups, protocol=protocol, **options)

    def report(
        self,
        protocol: Protocol | str | None = None,
        *,
        title: str = "",
        intervals: Intervals | None = None,
        worst: int = 0,
        worst_by: str = "mean_iou",
    ) -> Report:
        """All scores of the run, by a protocol, with intervals if they are given.

        ``worst`` of its images are listed too, by :meth:`worst` and its column
        ``worst_by``.

        Of a run of very many images, the report holds the counts of each only
        where its protocol needs them.
        """
        rule, left_out = self._rule(protocol), len(self.skipped)
        from segiou.report.report import report_of

        return report_of(
            self, rule, title, intervals, worst=worst, worst_by=worst_by, left_out=left_out
        )

    def _rule(self, protocol: Protocol | str | None) -> Protocol:
        return self.protocol if protocol is None else load_protocol(protocol)

    def select(self, ids: Iterable[str]) -> Run:
        """The run of some of the images.

        Raises
        ------
        ValueError
            If an id is not in the run.
        """
        check_several("ids", ids, "a sequence of ids")
        wanted = set(ids)
        if missing := sorted(map(str, wanted - set(self.ids))):
            msg = f"{len(missing)} ids are not in the run: {', '.join(missing[:8])}"
            raise ValueError(msg)
        return self._part([i for i, id in enumerate(self.ids) if id in wanted])

    def _part(self, indices: Sequence[int]) -> Run:
        return Run._of(self._header, self._loaded().take(indices), self.skipped)

    def groups(self, key: str | Callable[[str], str]) -> dict[str, Run]:
        """Parts of the run: frames of one video, slices of one patient.

        Parameters
        ----------
        key : str or callable
            A regular expression to search in each id, whose group ``key``, or
            first group, or whole match names the part; or a function of the id.

        Returns
        -------
        dict of str to Run
            In the order of their names.

        Raises
        ------
        ValueError
            If the expression is none, or does not match an id.

        Examples
        --------
        >>> import segiou
        >>> run = segiou.score([[[0]], [[1]], [[1]]], [[[0]], [[1]], [[0]]], labels=2,
        ...                    ids=["a_1", "a_2", "b_1"])
        >>> {name: part.total().pixel_accuracy() for name, part in run.groups(r"^(.)_").items()}
        {'a': 1.0, 'b': 0.0}
        """
        if not (isinstance(key, str) or callable(key)):
            raise refuse_kind("key", key, "a regular expression or a function")
        name_of = searcher(key) if isinstance(key, str) else key
        members: dict[str, list[int]] = {}
        for i, id in enumerate(self.ids):
            members.setdefault(name_of(id), []).append(i)
        return {name: self._part(members[name]) for name in sorted(members)}

    def merge(self, *others: Run) -> Run:
        """A run of the images of this and other runs.

        Raises
        ------
        ValueError
            If classes or options differ, or an id occurs twice with different
            counts. Equal duplicates are counted once.
        """
        runs = (self, *others)
        if strangers := [run for run in others if not isinstance(run, Run)]:
            msg = f"merge takes runs, not {type(strangers[0]).__name__}"
            raise TypeError(msg)
        return Run._of(*merged(runs, [run._header for run in runs]))

    def save(self, path: str | Path) -> Path:
        """Write the run into a new run file, whole or not at all.

        Raises
        ------
        RunFileError
            If the file exists already, or cannot be written.
        """
        check_path("path", path)
        return write_new(path, self._header, self._blocks(), self.skipped)

    def to_html(self, protocol: Protocol | str | None = None, **options: Any) -> str:
        """The report as a self-contained page, with examples of its images.

        Parameters
        ----------
        protocol : Protocol or str, optional
            By which rule; the run's own by default.
        **options
            As for :func:`segiou.report.report_page.render_report`: ``images``, ``examples``, …
        """
        return self.report(protocol).to_html(run=self, **options)

    def __repr__(self) -> str:
        left_out = f", {len(self.skipped)} skipped" if self.skipped else ""
        unfinished = "" if self.finished else ", unfinished"
        images = plural(len(self), "image")
        classes = plural(self.options.num_classes, "class", "classes")
        return f"<Run: {images}, {classes}{left_out}{unfinished}>"

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()
