"""A run: per-image counts of one evaluation, and queries on them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import (
    check_flag,
    check_integer,
    check_kind,
    check_path,
    read_several,
    refuse_kind,
)
from segiou._support.files import Problem
from segiou._support.text import listed, nouns, plural
from segiou.inference.scored_runs import unit_of_pixels
from segiou.labels.class_options import ClassOptions, class_indices
from segiou.measures.registry import read_measures
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount, check_measured, of_structures
from segiou.runs.run_counts import RunCounts

if TYPE_CHECKING:
    import pandas

    from segiou.analysis.slices.result import Slices
    from segiou.inference.intervals import Intervals
    from segiou.inference.units import Groups, Metric
    from segiou.measures.measure import Measure
    from segiou.measures.plan import Plan
    from segiou.report.report import Report
    from segiou.runs.tables import RunTable


class Run(RunCounts):
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
        extra = read_several("measures", measures, "measures such as MyMeasure()")
        check_local(path)
        file = RunFile.open(path, read_measures(extra))
        return cls(file.header, file, file.skipped)

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
            score, and those whose truth lacks the class, are skipped.

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
            The protocol whose ignored pixels are excluded; the run's own by default.
        long : bool
            One row per image, structure and score instead of one per image: case,
            structure, score, value, unit, and a note where the value is undefined
            or infinite and its cell empty.
        """
        check_flag("long", long)
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
        check_path("path", path)
        return self._table().to_parquet(Path(path).expanduser())

    def _table(self, protocol: Protocol | str | None = None) -> RunTable:
        from segiou.runs.tables import RunTable

        chosen = load_protocol(self.protocol if protocol is None else protocol)
        return RunTable(self.under(chosen), chosen)

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
            See :func:`segiou.inference.statistics.statistic`; ``"boundary_iou"`` uses the
            first width.
        groups : str, mapping, callable or sequence, optional
            Groups of related images, see :func:`segiou.inference.units.groups_of`.
        protocol : Protocol or str, optional
            The run's own by default.
        **options
            Other options of :func:`segiou.confidence_intervals`: level, blocks, aggregate,
            method, resamples, seed.
        """
        from segiou.inference.intervals import confidence_intervals

        return confidence_intervals(self, metric, groups=groups, protocol=protocol, **options)

    def sample_sizes(self, half_width: float, metric: Metric = "iou", **options: Any) -> Any:
        """Numbers of images of the same kind that give intervals of a given width.

        Parameters
        ----------
        half_width : float
            Target half-width: 0.02 is ± 2 percentage points. In the unit of the score if it has
            one.
        metric : str or callable
            See :func:`segiou.inference.statistics.statistic`.
        **options
            Other options of :func:`segiou.planning.sample_sizes`: groups, blocks, level,
            protocol, aggregate.

        Returns
        -------
        SampleSizes
            The score, then its classes.
        """
        # By name, as plots: the core does not depend on a feature.
        return import_module("segiou.planning").sample_sizes(self, half_width, metric, **options)

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
        from segiou.analysis.slices.search import slices

        return slices(self, by=by, columns=columns, metric=metric, **options)

    def suspects(self, **options: Any) -> Any:
        """Rank regions or images by how suspicious their truth masks are.

        Parameters
        ----------
        **options
            As of :func:`segiou.find_suspects`: first, all_regions, max_extent, min_size, label,
            omit, groups, reviewed, random_sample, seed.

        Returns
        -------
        Suspects
            Ranked by confusion matrices, unless the run has the measure ``suspects``.
        """
        return import_module("segiou").find_suspects(self, **options)

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
        several = read_several("ids", ids, "a sequence of ids")
        for id in several:
            check_kind("an id", id, Hashable, "text")
        wanted = set(several)
        if missing := sorted(map(str, wanted - set(self.ids))):
            are = "id is" if len(missing) == 1 else "ids are"
            msg = f"{len(missing)} {are} not in the run: {listed(missing, 8)}"
            raise ValueError(msg)
        return self._part([i for i, id in enumerate(self.ids) if id in wanted])

    def excluding(self, classes: int | str | Iterable[int | str]) -> Run:
        """The same counts with further classes excluded from the means.

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
        more = class_indices("exclude", self.labels, classes)
        together = tuple(dict.fromkeys((*self.options.exclude, *more)))
        if together == self.options.exclude:
            return self
        options = replace(self.options, exclude=together)
        plans = tuple(replace(plan, classes=options) for plan in self.plans)
        header, images = replace(self._header, options=options, plans=plans), self._images
        if header.layout != self._header.layout:
            blocks = self._images.blocks(measured=True)
            images = Columns.joined(of_structures(block, self._header, header) for block in blocks)
        return Run(header, images, self.skipped)

    def groups(self, key: Groups) -> dict[str, Run]:
        """Split the run into groups, such as the frames of a video or the slices of a patient.

        Parameters
        ----------
        key : str, mapping, callable or sequence
            The group of each image: a regular expression whose match in the id names the
            group, or as in :func:`segiou.inference.units.groups_of`.

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
        from segiou.inference.units import group_names, groups_of

        groups = groups_of(self.ids, key)
        if groups is None:
            raise refuse_kind("key", key, "a regular expression, a mapping or a function")
        members: dict[str, list[int]] = {}
        for i, group in enumerate(group_names(groups, self.ids)):
            members.setdefault(group, []).append(i)
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
        check_flag("partial", partial)
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
            Options of :func:`segiou.report.pages.report_page.render_report`, such as ``images``.
        """
        return self.report(protocol).to_html(run=self, **options)

    def __repr__(self) -> str:
        left_out = f", {len(self.skipped)} skipped" if self.skipped else ""
        unfinished = "" if self.finished else ", unfinished"
        images = plural(len(self), nouns(unit_of_pixels(self))[1])
        classes = plural(self.options.num_classes, "class", "classes")
        return f"<Run: {images}, {classes}{left_out}{unfinished}>"

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def run_from_counts(
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
    """Create a run from images that were counted separately.

    Parameters
    ----------
    options : ClassOptions
        The classes and counting options, such as ``ConfusionMatrix.options``.
    images : iterable of ImageCount
        Counts of each image; the run sorts them by id.
    skipped : iterable of Problem
        Skipped pairs.
    name : str
        Name of the run.
    protocol : Protocol or str
        The default protocol of the run's reports.
    provenance : mapping, optional
        Information about the origin of the run.
    measures : iterable of Measure or str
        Measures counted in all images, or their keys.
    plans : iterable of Plan
        Plans of such measures for these classes.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If ids are not unique, or an image lacks the counts of a measure.
    """
    from segiou.measures.mask_pair import Masks

    check_kind("options", options, ClassOptions, "ClassOptions, such as ConfusionMatrix.options")
    check_kind("name", name, str, "text")
    check_kind("provenance", {} if provenance is None else provenance, Mapping, "a mapping")
    plans = read_several("plans", plans, "an iterable of Plan")
    left_out = read_several("skipped", skipped, "an iterable of Problem")
    for problem in left_out:
        check_kind("each of skipped", problem, Problem, "a Problem")
    several = read_several("images", images, "an iterable of ImageCount, such as run.images")
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


def merge_files(paths: Sequence[str | Path], output: str | Path, *, partial: bool = False) -> Path:
    """Merge run files into a new one, with constant memory.

    An image that is in several files with equal counts is counted once.

    Parameters
    ----------
    paths : sequence of str or path
        Run files with equal classes and options.
    output : str or path
        The new file; it must not exist.
    partial : bool
        Whether parts (``shard``) of the data set may be missing; reports then
        list them.

    Raises
    ------
    RunFileError
        If a file cannot be used.
    ValueError
        If classes or options differ, a duplicate image has different counts, or
        a part is missing.
    """
    from segiou.runs.run_writing import merged, write_run

    check_flag("partial", partial)
    check_path("output", output)
    runs = [Run.open(path) for path in read_several("paths", paths, "paths of run files")]
    if not runs:
        msg = "paths is empty; pass at least one run file"
        raise ValueError(msg)
    return write_run(output, *merged(runs, [str(run.path) for run in runs], partial=partial))
