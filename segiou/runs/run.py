"""A run: per-image counts of one evaluation, and queries on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
    read_several,
    refuse_kind,
)
from segiou._support.files import Problem
from segiou._support.optional import Drawable
from segiou._support.text import Json, listed, plural
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import ConfusionCounts, Counts, SparseConfusionCounts
from segiou.labels.class_options import ClassOptions, class_indices
from segiou.labels.label_set import LabelSet
from segiou.measures.parts import Parts
from segiou.measures.registry import read_measures
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import (
    Columns,
    ImageCount,
    unpack_parts,
)

if TYPE_CHECKING:
    import pandas

    from segiou.analysis.intervals import Intervals
    from segiou.analysis.slice_results import Slices
    from segiou.analysis.units import Groups, Metric
    from segiou.measures.measure import Measure, Plan
    from segiou.report.report import Report
    from segiou.runs.database import RunFile
    from segiou.runs.tables import RunTable

#: Counts created at a time in runs that are too large for all of them.
_PART = 1 << 20
#: Images whose measures are unpacked at a time.
_UNPACKED = 256


class Run(Drawable):
    """Counts of every image of one evaluation, in memory or in a run file.

    Runs are created by :func:`segiou.score`, :func:`segiou.score_folder`, :meth:`Run.open` and
    :func:`segiou.runs.run_from_counts`.

    Parameters
    ----------
    header : Header
        Options and origin of the run.
    images : Columns or RunFile
        The images, in memory or in a run file.
    skipped : sequence of Problem, optional
        Skipped pairs.

    Attributes
    ----------
    skipped : tuple of Problem
        Skipped pairs and the reasons.

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
    def open(cls, path: str | Path, *, measures: Iterable[Measure] = ()) -> Run:
        """Open a run file; images are read on demand.

        Measures whose package is not installed, or has changed, are listed in
        ``provenance["unread"]``; their counts are kept.

        Parameters
        ----------
        path : str or Path
            The run file.
        measures : iterable of Measure
            Measures in the run that no installed package defines, with any options.

        Raises
        ------
        RunFileError
            If it does not exist, is not a run file, is corrupt, has a different
            version, or is locked by a writer.
        """
        from segiou.runs.database import RunFile, check_local

        check_path("path", path)
        given = read_several("measures", measures, "measures such as MyMeasure()")
        check_local(path)
        file = RunFile.open(path, read_measures(given))
        return cls(file.header, file, file.skipped)

    @property
    def options(self) -> ClassOptions:
        """The classes and counting options."""
        return self._header.options

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._header.name

    @property
    def protocol(self) -> Protocol:
        """The default protocol of the run's reports."""
        return self._header.protocol

    @property
    def path(self) -> Path | None:
        """The run file; None for runs in memory."""
        return self._images.path

    @property
    def finished(self) -> bool:
        """Whether all pairs have been scored."""
        return self._header.finished

    @property
    def provenance(self) -> dict[str, Json]:
        """Origin of the run, and whether it is complete."""
        known = dict(self._header.provenance)
        if not self.finished:
            of_all = "" if self._header.expected is None else f" of {self._header.expected}"
            known["unfinished"] = f"{len(self)}{of_all} pairs are scored"
        if missing := self._header.missing_shards():
            known["partial"] = missing
        if unread := self._header.unread:
            known["unread"] = "; ".join(map(str, unread))
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
        """Boolean mask of the classes included in means, (C,)."""
        return self.options.include

    def plan(self, key: str) -> Plan | None:
        """The plan of a measure; None if it was not counted.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        return self._header.plan(key)

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[ImageCount]:
        return iter(self._images)

    @cached_property
    def images(self) -> tuple[ImageCount, ...]:
        """All images, sorted by id; iterate over large runs instead."""
        return tuple(self)

    # A plain property, because pyright rejects cached ones for protocols.
    @property
    def ids(self) -> tuple[str, ...]:
        """Image ids, sorted."""
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
        """Number of ignored pixels of each image, (N,)."""
        parts = [block.ignored for block in self._images.blocks(files=False)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    @cached_property
    def _counts(self) -> Counts:
        return self._stacked(self.count_parts(), self.options.num_classes)

    def _stacked(self, parts: Iterable[Counts], width: int) -> Counts:
        """Stack parts of counts into one array per count, (N, width)."""
        arrays = np.zeros((4, len(self), width), dtype=np.int64)
        start = 0
        for part in parts:
            stop = start + len(part.tp)
            for array, found in zip(arrays, (part.tp, part.fp, part.fn, part.tn), strict=True):
                array[start:stop] = found
            start = stop
        return Counts(*arrays)

    def count_parts(self) -> Iterator[Counts]:
        """Yield counts of shape (n, C) for a limited number of images at a time, sorted by id.

        Yields
        ------
        Counts
        """
        num_classes = self.options.num_classes
        step = max(1, _PART // num_classes)
        for block in self._images.blocks(files=False):
            for part in block.parts(step):
                yield part.counts(num_classes)

    def structure_counts(
        self, members: Sequence[Sequence[int]], *, grouped_truth_only: bool = False
    ) -> Counts:
        """Counts of groups of classes in each image, each against the rest, shape (N, G).

        Parameters
        ----------
        members : sequence of sequence of int
            Class indices of each of the G groups.
        grouped_truth_only : bool
            Whether to drop the pixels whose truth is in none of the groups.
        """
        width, how = self.options.num_classes, {"grouped_truth_only": grouped_truth_only}
        blocks = self._images.blocks(files=False)
        parts = (block.structure_counts(members, width, **how) for block in blocks)
        return self._stacked(parts, len(members))

    @property
    def quick_scores(self) -> list[str]:
        """Names of the scores of measures whose intervals take no bootstrap of many numbers."""
        return [n for n, plan in self.score_plans.items() if plan.scores[n].is_smooth]

    @cached_property
    def _tally(self) -> SparseConfusionCounts:
        blocks = self._images.blocks(files=False)
        return SparseConfusionCounts.summed(
            self.options.num_classes, (block.summed() for block in blocks)
        )

    def total(self) -> ConfusionMatrix:
        """The confusion matrix of all images."""
        return ConfusionMatrix.from_options(self.options).add(self._tally, pairs=len(self))

    def tally(self, index: int) -> ConfusionCounts:
        """The confusion matrix of one image.

        Parameters
        ----------
        index : int
            Position of the image in the run.
        """
        one = self._loaded.take([range(len(self))[index]])
        return SparseConfusionCounts(self.options.num_classes, one.summed())

    @cached_property
    def _loaded(self) -> Columns:
        return Columns.joined(self._images.blocks())

    def _packed(self) -> list[bytes]:
        """The packed measures of each image."""
        blocks = self._images.blocks(files=False, measured=True)
        return [packed for block in blocks for packed in block.measured]

    def under(self, protocol: Protocol) -> Run:
        """The run, without the pixels that a protocol ignores.

        Parameters
        ----------
        protocol : Protocol
            The protocol of the scores.
        """
        if protocol.undeclared == "miss" or not self._tally.unassigned.any():
            return self
        return self._declared

    @cached_property
    def _declared(self) -> Run:
        blocks = self._images.blocks(measured=True)
        images = Columns.joined(block.declared(self.options.num_classes) for block in blocks)
        return Run(self._header, images, self.skipped)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The measures counted in every image."""
        return self._header.plans

    def parts(self, key: str) -> Parts:
        """The counts of a measure in each image.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        return unpack_parts(self._packed(), self._header, key)

    @cached_property
    def measured(self) -> dict[str, Parts]:
        """The counts of each measure summed over all images, by key."""
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
        """The plan of every score of a measure, by name."""
        return {name: plan for plan in self.plans for name in plan.scores}

    def counts_of(self, key: str) -> object:
        """The counts of a measure in the form that its functions take; None if not counted.

        Such as :class:`segiou.boundary.BoundaryCounts` of each image for ``"boundary"``; of
        a measure without a form of its own, the parts of each image.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        plan = self.plan(key)
        if plan is not None and key not in self._counts_by_key:
            self._counts_by_key[key] = plan.counts_of(self)
        return self._counts_by_key.get(key)

    @cached_property
    def _counts_by_key(self) -> dict[str, Any]:
        return {}

    def worst(self, n: int = 10, *, by: str = "mean_iou") -> list[dict[str, str | float]]:
        """Return rows of the worst images, the worst first.

        Parameters
        ----------
        n : int
            Number of images.
        by : str
            A score column of :meth:`rows`: ``"mean_iou"``, ``"pixel_accuracy"``,
            ``"iou:CLASS"`` or ``"influence"``, lowest first; ``"objects_missed"``
            or ``"objects_false_positive"``, highest first. Images with an undefined
            score are skipped.

        Raises
        ------
        ValueError
            If the score does not exist.
        """
        return self._table().worst(check_integer("n", n, 0), by)

    def rows(self) -> list[dict[str, str | float]]:
        """Return one row per image.

        A row has the ``id``, files and pixels; ``mean_iou`` over the classes in
        the image's truth; ``pixel_accuracy``; ``influence``, the mean IoU of the
        data set with the image minus without it (protocol ``segiou``);
        ``false_positive_classes``, the number of classes that are predicted but
        absent from the image's truth, which ``mean_iou`` ignores; and
        ``iou:CLASS`` of each class, NaN if it is in neither truth nor prediction.
        Measures add their scores, such as ``hausdorff_95:NAME`` of each structure; the
        unit of a score is in :attr:`score_plans`.
        """
        return list(self._table().rows())

    def to_csv(self, *, long: bool = False, protocol: Protocol | str | None = None) -> str:
        """The rows as CSV; an undefined ratio is an empty cell.

        Parameters
        ----------
        protocol : Protocol or str, optional
            The protocol whose ignored pixels are left out; the run's own by default.
        long : bool
            One row per image, structure and score instead of one per image: case,
            structure, score, value, unit, and a note where the value is undefined
            or infinite and its cell empty.
        """
        table = self._table(protocol)
        return table.to_long_csv() if long else table.to_csv()

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

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        OSError
            If the file cannot be written.
        """
        return self._table().to_parquet(Path(path).expanduser())

    def _table(self, protocol: Protocol | str | None = None) -> RunTable:
        from segiou.runs.tables import RunTable

        chosen = load_protocol(protocol or self.protocol)
        return RunTable(self.under(chosen), chosen.include_of(self))

    def intervals(
        self,
        metric: Metric = "iou",
        *,
        groups: Groups | None = None,
        protocol: Protocol | str | None = None,
        **options: Any,
    ) -> Intervals:
        """Intervals of a score and of each class.

        Parameters
        ----------
        metric : str or callable
            See :func:`segiou.analysis.statistics.statistic`; ``"boundary_iou"`` uses the
            first width.
        groups : str, mapping, callable or sequence, optional
            Groups of related images, see :func:`segiou.analysis.units.groups_of`.
        protocol : Protocol or str, optional
            The run's own by default.
        **options
            Other options of :func:`segiou.confidence_intervals`: level, blocks, aggregate,
            method, resamples, seed.
        """
        from segiou.analysis.intervals import confidence_intervals

        return confidence_intervals(self, metric, groups=groups, protocol=protocol, **options)

    def slices(
        self,
        by: Any,
        columns: Sequence[str] | None = None,
        metric: Metric = "iou",
        **options: Any,
    ) -> Slices:
        """Compare the images with each value of their metadata with the rest.

        Parameters
        ----------
        by, columns, metric, **options
            As of :func:`segiou.slices`: a table, mapping or pattern, and key, bins, groups,
            protocol, level.
        """
        from segiou.analysis.slices import slices

        return slices(self, by=by, columns=columns, metric=metric, **options)

    def report(
        self,
        protocol: Protocol | str | None = None,
        *,
        title: str = "",
        intervals: Intervals | Sequence[Intervals] | None = None,
        worst: int = 0,
        worst_by: str = "mean_iou",
    ) -> Report:
        """Return a report with all scores of the run.

        For runs with very many images, the report keeps the counts of each image only
        if the protocol needs them.

        Parameters
        ----------
        protocol : Protocol or str, optional
            Averaging protocol; the run's own by default.
        title : str, default ""
            Title of the report.
        intervals : Intervals or sequence of Intervals, optional
            Intervals of one or more scores of this run, from :meth:`intervals`.
        worst : int, default 0
            Number of worst images to list.
        worst_by : str, default "mean_iou"
            Score to rank images by, see :meth:`worst`.
        """
        from segiou.report.run_report import report_of

        return report_of(
            self,
            self.protocol if protocol is None else load_protocol(protocol),
            title,
            intervals,
            worst=worst,
            worst_by=worst_by,
        )

    def select(self, ids: Iterable[str]) -> Run:
        """Return a run with a subset of the images.

        Parameters
        ----------
        ids : iterable of str
            Ids of the images to keep.

        Raises
        ------
        ValueError
            If an id is not in the run.
        """
        check_several("ids", ids, "a sequence of ids")
        wanted = set(ids)
        if missing := sorted(map(str, wanted - set(self.ids))):
            are = "id is" if len(missing) == 1 else "ids are"
            msg = f"{len(missing)} {are} not in the run: {listed(missing, 8)}"
            raise ValueError(msg)
        return self._part([i for i, id in enumerate(self.ids) if id in wanted])

    def excluding(self, classes: int | str | Iterable[int | str]) -> Run:
        """The same counts with further classes left out of the means.

        Parameters
        ----------
        classes : int, str or iterable of them
            Names or indices; classes that the run excludes already stay excluded.

        Raises
        ------
        ValueError
            If there is no such class.

        Examples
        --------
        >>> import segiou
        >>> run = segiou.score([[[0, 1]]], [[[0, 0]]], labels=["road", "car"])
        >>> run.report().mean_iou, run.excluding("car").report().mean_iou
        (0.25, 0.5)
        """
        given = class_indices("exclude", self.labels, classes)
        together = tuple(dict.fromkeys((*self.options.exclude, *given)))
        if together == self.options.exclude:
            return self
        options = replace(self.options, exclude=together)
        plans = tuple(replace(plan, classes=options) for plan in self.plans)
        return Run(replace(self._header, options=options, plans=plans), self._images, self.skipped)

    def groups(self, key: Groups) -> dict[str, Run]:
        """Split the run into groups, such as the frames of a video or the slices of a patient.

        Parameters
        ----------
        key : str, mapping, callable or sequence
            The group of each image: a regular expression whose match in the id names the
            group, or as in :func:`segiou.analysis.units.groups_of`.

        Returns
        -------
        dict of str to Run
            Sorted by name.

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
        """Merge the images of this run and others.

        Parameters
        ----------
        *others : Run
            Runs to add.
        partial : bool
            Whether parts (``shard``) of the data set may be missing; reports
            then list them.

        Raises
        ------
        ValueError
            If classes or options differ, a duplicate image has different counts,
            or a part is missing. Equal duplicates are counted once.
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
        """Write the run to a new run file, atomically.

        Parameters
        ----------
        path : str or Path
            The run file to write.

        Raises
        ------
        RunFileError
            If the file already exists or cannot be written.
        """
        from segiou.runs.run_writing import write_run

        check_path("path", path)
        return write_run(path, self._header, self._images.blocks(), self.skipped)

    def to_html(self, protocol: Protocol | str | None = None, **options: Any) -> str:
        """Return the report as a self-contained HTML page with example images.

        Parameters
        ----------
        protocol : Protocol or str, optional
            The run's own by default.
        **options
            Options of :func:`segiou.report.report_page.render_report`, such as ``images``.
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
