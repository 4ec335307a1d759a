"""The counts of every image of one evaluation, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_integer,
    check_kind,
    check_path,
    check_several,
    refuse_kind,
)
from segiou._support.files import Problem
from segiou._support.optional import Drawable
from segiou._support.text import Json, plural
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import CellTally, Counts, Tally
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.measures.parts import Parts
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import (
    Columns,
    ImageCount,
    unpack_parts,
)

if TYPE_CHECKING:
    import pandas

    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.units import Groups, Metric
    from segiou.boundary.boundary_options import BoundaryOptions
    from segiou.boundary.boundary_sums import BoundaryCounts
    from segiou.boundary.surface_plan import SurfacePlan
    from segiou.boundary.surfaces import SurfaceRow
    from segiou.instances.object_files import ObjectOptions
    from segiou.instances.panoptic import PanopticCounts
    from segiou.measures.measure import Plan
    from segiou.report.report import Report
    from segiou.runs.database import RunFile
    from segiou.runs.tables import RunTable

#: Counts that are made at a time where a run is too large for all of them.
_PART = 1 << 20
#: Images whose counts at boundaries are unpacked at a time.
_UNPACKED = 256


class Run(Drawable):
    """Counts of every image of one evaluation, in memory or in a run file.

    :func:`segiou.score`, :func:`segiou.score_folder`, :meth:`Run.open` and
    :func:`segiou.runs.run_of` make runs.

    Parameters
    ----------
    header : Header
        What the run was made from.
    images : Columns or RunFile
        The images, in memory or in a run file.
    skipped : sequence of Problem, optional
        Pairs that were left out.

    Attributes
    ----------
    skipped : tuple of Problem
        Pairs that were left out, and why.

    Examples
    --------
    >>> import segiou
    >>> run = segiou.score([[[0, 1], [1, 1]]], [[[0, 1], [1, 0]]], labels=2)
    >>> run.total().iou().round(4), run.ids
    (array([0.5   , 0.6667]), ('0',))
    """

    def __init__(
        self, header: Header, images: Columns | RunFile, skipped: Sequence[Problem] = ()
    ) -> None:
        self._header, self._images = header, images
        self.skipped: tuple[Problem, ...] = tuple(skipped)

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open a run file; its images are read when they are needed.

        Parameters
        ----------
        path : str or Path
            The run file.

        Raises
        ------
        RunFileError
            If it does not exist, is no run file, damaged, of another version,
            or another process is writing it.
        """
        from segiou.runs.database import RunFile

        check_path("path", path)
        file = RunFile.open(path)
        return cls(file.header, file, file.skipped)

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
        """The protocol of the run's reports, unless they are asked for another."""
        return self._header.protocol

    @property
    def path(self) -> Path | None:
        """The run file; None for a run in memory."""
        return self._images.path

    @property
    def finished(self) -> bool:
        """False where a run file does not hold all pairs yet."""
        return self._header.finished

    @property
    def provenance(self) -> dict[str, Json]:
        """Files and options that made it, and whether it is complete."""
        known = dict(self._header.provenance)
        if not self.finished:
            of_all = "" if self._header.expected is None else f" of {self._header.expected}"
            known["unfinished"] = f"{len(self)}{of_all} pairs are scored"
        if missing := self._header.missing_shards():
            known["partial"] = missing
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

    @property
    def boundary_options(self) -> BoundaryOptions | None:
        """What was measured at boundaries; None for nothing."""
        plan: Any = self._header.plan("boundary")
        options: BoundaryOptions | None = plan and plan.measure
        return options

    @property
    def surface_plan(self) -> SurfacePlan | None:
        """What was measured between surfaces; None for nothing."""
        plan: SurfacePlan | None = self._header.plan("surfaces")  # type: ignore[assignment]
        return plan

    @cached_property
    def surfaces(self) -> tuple[SurfaceRow, ...]:
        """Distances between surfaces, a row for each case and structure; () where none were."""
        if self.surface_plan is None:
            return ()
        return tuple(self.surface_plan.rows(self.measured["surfaces"], self.ids))

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[ImageCount]:
        return iter(self._images)

    @cached_property
    def images(self) -> tuple[ImageCount, ...]:
        """All images, in the order of their ids; of a large run, iterate over it instead."""
        return tuple(self)

    # Pyright takes a property for what Scored asks for, and no cached one.
    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the images, sorted."""
        return self._ids

    @property
    def counts(self) -> Counts:
        """Counts of each image, shape (N, C)."""
        return self._counts

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        return tuple(id for block in self._images.blocks(files=False) for id in block.ids)

    @cached_property
    def ignored(self) -> NDArray[np.int64]:
        """Ignored pixels of each image, (N,)."""
        parts = [block.ignored for block in self._images.blocks(files=False)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    @cached_property
    def _counts(self) -> Counts:
        return self._stacked(self.count_parts())

    def _stacked(self, parts: Iterable[Counts]) -> Counts:
        """Counts of all images of those of some at a time, (N, C); in memory once."""
        arrays = np.zeros((4, len(self), self.options.num_classes), dtype=np.int64)
        start = 0
        for part in parts:
            stop = start + len(part.tp)
            for array, found in zip(arrays, (part.tp, part.fp, part.fn, part.tn), strict=True):
                array[start:stop] = found
            start = stop
        return Counts(*arrays)

    def count_parts(self) -> Iterator[Counts]:
        """Counts of some images at a time, shape (n, C), in the order of their ids.

        Yields
        ------
        Counts
        """
        num_classes = self.options.num_classes
        step = max(1, _PART // num_classes)
        for block in self._images.blocks(files=False):
            for part in block.parts(step):
                yield part.counts(num_classes)

    @cached_property
    def _tally(self) -> CellTally:
        blocks = self._images.blocks(files=False)
        return CellTally.summed(self.options.num_classes, (block.summed() for block in blocks))

    def total(self) -> ConfusionMatrix:
        """All images merged into one confusion matrix."""
        return ConfusionMatrix.from_options(self.options).add(self._tally, pairs=len(self))

    def tally(self, index: int) -> Tally:
        """The confusion matrix of one image.

        Parameters
        ----------
        index : int
            Position of the image in the run.

        Returns
        -------
        Tally
        """
        one = self._loaded.take([range(len(self))[index]])
        return CellTally(self.options.num_classes, one.summed())

    @cached_property
    def _loaded(self) -> Columns:
        return Columns.joined(self._images.blocks())

    @cached_property
    def boundary(self) -> BoundaryCounts | None:
        """Boundary counts of each image, N rows; None where none were measured.

        A row takes some 10 KB a class with distances, 200 bytes without.
        """
        if self.boundary_options is None:
            return None
        plan: Any = self._header.plan("boundary")
        counts: BoundaryCounts = plan.counts(self.parts("boundary"))
        return counts

    def _packed(self) -> list[bytes]:
        """What was counted of each image beside its pixels."""
        blocks = self._images.blocks(files=False, measured=True)
        return [packed for block in blocks for packed in block.measured]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What is counted beside the pixels."""
        return self._header.plans

    def parts(self, key: str) -> Parts:
        """What a measure counted of each image.

        Parameters
        ----------
        key : str
            Key of the measure.

        Returns
        -------
        Parts
        """
        return unpack_parts(self._packed(), self._header, key)

    @cached_property
    def measured(self) -> dict[str, Parts]:
        """What each measure counted of all images together, by its key."""
        found = {}
        for plan in self.plans:
            none = Parts.joined(plan.layout, [])
            blocks = self._images.blocks(files=False, measured=True)
            parts = (p for block in blocks for p in block.parts(_UNPACKED))
            totals = (unpack_parts(p.measured, self._header, plan.key).total for p in parts)
            found[plan.key] = Parts.joined(plan.layout, [none, *totals]).total
        return found

    @property
    def score_plans(self) -> dict[str, Plan]:
        """The plan of every score that was measured, by the name of the score."""
        return {name: plan for plan in self.plans for name in plan.scores}

    @property
    def object_options(self) -> ObjectOptions | None:
        """What objects are, and how they are scored; None where they are not."""
        plan = self._header.plan("objects")
        return None if plan is None else plan.measure

    @cached_property
    def objects(self) -> PanopticCounts | None:
        """Counts of the objects of all images; None where they were not scored."""
        plan: Any = self._header.plan("objects")
        return None if plan is None else plan.counts(self.measured["objects"], len(self))

    def worst(self, n: int = 10, *, by: str = "mean_iou") -> list[dict[str, str | float]]:
        """Rows of the images with the lowest scores, the lowest first.

        Parameters
        ----------
        n : int
            How many.
        by : str
            A column of :meth:`rows` that is a score: ``"mean_iou"``,
            ``"pixel_accuracy"``, ``"iou:CLASS"``, or ``"influence"``; or, the
            most first, ``"objects_missed"`` or ``"objects_invented"``. Images
            where it is undefined are left out.

        Returns
        -------
        list of dict

        Raises
        ------
        ValueError
            If there is no such score.
        """
        return self._table().worst(check_integer("n", n, 0), by)

    def rows(self) -> list[dict[str, str | float]]:
        """One row an image.

        Its ``id``, files and pixels; ``mean_iou`` over the classes in its truth;
        ``pixel_accuracy``; ``influence``, how much higher the mean IoU of the
        data set (by the protocol ``segiou``) is for having the image;
        ``false_positive_classes``, how many are predicted in it and not in its
        truth, which its mean does not count; and ``iou:CLASS`` of each class, NaN
        where it is in neither truth nor prediction. Where objects are scored,
        ``objects_found``, ``objects_invented`` and ``objects_missed``.

        Where surfaces were measured, also for each structure ``dice:NAME``,
        ``hausdorff_95:NAME`` and the other measures, in the unit of the run's
        ``surface_plan``; and ``iou:NAME`` of each region. Distances to what is
        missed are infinite, or as the convention counts them.

        Returns
        -------
        list of dict
        """
        return list(self._table().rows())

    def to_csv(self) -> str:
        """The rows as CSV; an undefined ratio is an empty cell."""
        return self._table().to_csv()

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a :class:`pandas.DataFrame`, indexed by id.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self._table().to_pandas()

    def to_parquet(self, path: str | Path) -> Path:
        """Write the rows as a Parquet file; a file of that name is replaced.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        OSError
            If the file cannot be written.
        """
        return self._table().to_parquet(Path(path).expanduser())

    def _table(self) -> RunTable:
        from segiou.runs.tables import RunTable

        return RunTable(self)

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
            aggregate, blocks.

        Returns
        -------
        Intervals
        """
        from segiou.analysis.bootstrapping import bootstrap

        return bootstrap(self, metric, groups=groups, protocol=protocol, **options)

    def report(
        self,
        protocol: Protocol | str | None = None,
        *,
        title: str = "",
        intervals: Intervals | Sequence[Intervals] | None = None,
        worst: int = 0,
        worst_by: str = "mean_iou",
    ) -> Report:
        """All scores of the run, by a protocol, with intervals if they are given.

        ``worst`` of its images are listed too, by :meth:`worst` and its column
        ``worst_by``.

        Of a run of very many images, the report holds the counts of each only
        where its protocol needs them.

        Parameters
        ----------
        protocol : Protocol or str, optional
            How means are made.
        title : str, default ""
            Title of the report.
        intervals : Intervals or sequence of Intervals, optional
            Intervals of this run, from :meth:`intervals`: of IoU, PQ or surface Dice, or several.
        worst : int, default 0
            How many of the worst images are listed.
        worst_by : str, default "mean_iou"
            Column by which images are the worst.

        Returns
        -------
        Report
        """
        from segiou.report.report import report_of

        return report_of(
            self,
            self.protocol if protocol is None else load_protocol(protocol),
            title,
            intervals,
            worst=worst,
            worst_by=worst_by,
        )

    def select(self, ids: Iterable[str]) -> Run:
        """The run of some of the images.

        Parameters
        ----------
        ids : iterable of str
            Ids of the images to keep.

        Returns
        -------
        Run

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

    def groups(self, key: Groups) -> dict[str, Run]:
        """Parts of the run: frames of one video, slices of one patient.

        Parameters
        ----------
        key : str, mapping, callable or sequence
            The group of each image: what a regular expression finds in its id,
            or as :func:`segiou.analysis.units.groups_of` takes it.

        Returns
        -------
        dict of str to Run
            In the order of their names.

        Raises
        ------
        ValueError
            If an image has no group.

        Examples
        --------
        >>> import segiou
        >>> run = segiou.score([[[0]], [[1]], [[1]]], [[[0]], [[1]], [[0]]], labels=2,
        ...                    ids=["a_1", "a_2", "b_1"])
        >>> {name: part.total().pixel_accuracy() for name, part in run.groups(r"^(.)_").items()}
        {'a': 1.0, 'b': 0.0}
        """
        from segiou.analysis.units import groups_of

        found = groups_of(self.ids, key)
        if found is None:
            raise refuse_kind("key", key, "a regular expression, a mapping or a function")
        members: dict[str, list[int]] = {}
        for i, group in enumerate(found):
            members.setdefault(str(group), []).append(i)
        return {name: self._part(members[name]) for name in sorted(members)}

    def _part(self, indices: Sequence[int]) -> Run:
        return Run(self._header, self._loaded.take(indices), self.skipped)

    def merge(self, *others: Run, partial: bool = False) -> Run:
        """A run of the images of this and other runs.

        Parameters
        ----------
        *others : Run
            What to add.
        partial : bool
            Whether parts (``shard``) of the data set may be missing; the run and
            its reports then say which.

        Returns
        -------
        Run

        Raises
        ------
        ValueError
            If classes or options differ, an id occurs twice with different
            counts, or a part is missing. Equal duplicates are counted once.
        """
        from segiou.runs.run_writing import merged

        for run in others:
            check_kind("each argument of merge", run, Run, "a Run")
        if not others:
            return self
        runs = (self, *others)
        names = [run.name or f"run {i}" for i, run in enumerate(runs)]
        header, images, skipped = merged(runs, names, partial=partial)
        return Run(header, Columns.joined(images), skipped)

    def save(self, path: str | Path) -> Path:
        """Write the run into a new run file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The run file to write.

        Returns
        -------
        Path

        Raises
        ------
        RunFileError
            If the file exists already, or cannot be written.
        """
        from segiou.runs.run_writing import write_new

        check_path("path", path)
        return write_new(path, self._header, self._images.blocks(), self.skipped)

    def to_html(self, protocol: Protocol | str | None = None, **options: Any) -> str:
        """The report as a self-contained page, with examples of its images.

        Parameters
        ----------
        protocol : Protocol or str, optional
            The run's own by default.
        **options
            As for :func:`segiou.report.report_page.render_report`: ``images``, ``examples``, ….

        Returns
        -------
        str
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
