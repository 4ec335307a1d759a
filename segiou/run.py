"""A run: the counts of every image of one evaluation, with what they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from segiou._arguments import check_kind, check_path, check_several, read_several, refuse_kind
from segiou.boundary import BoundaryOptions, band_iou
from segiou.classes import ClassOptions
from segiou.imbalance.wording import plural
from segiou.protocols import Protocol, load_protocol
from segiou.report import Report
from segiou.runs import Columns, Header, ImageCount, Problem, RunFile, RunFileError, write_new
from segiou.runs.boundaries import bands_of
from segiou.runs.ids import ordered, searcher
from segiou.runs.images import Images
from segiou.runs.merging import merged
from segiou.runs.reporting import report_of
from segiou.runs.rows import check_boundaries
from segiou.uncertainty import Groups, Intervals, bootstrap, groups_of
from segiou.uncertainty.scores import Metric

__all__ = ["ImageCount", "Problem", "Run", "RunFileError"]


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
            As :func:`segiou.uncertainty.statistic`, or ``"boundary_iou"``: at the
            first width that was measured.
        groups : str, mapping, callable or sequence, optional
            Images that belong together, see :func:`segiou.uncertainty.groups_of`.
        protocol : Protocol or str, optional
            The run's own by default.
        **options
            Others of :func:`segiou.bootstrap`: resamples, seed, level, method,
            aggregate.
        """
        counts = self.counts
        if isinstance(metric, str) and metric == "boundary_iou":
            counts, metric = bands_of(self, "the run"), band_iou
        return bootstrap(
            counts,
            metric,
            groups=groups_of(self.ids, groups),
            class_names=self.class_names,
            include=self.include,
            protocol=self._rule(protocol),
            **options,
        )

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
            As for :func:`segiou.html.render_report`: ``images``, ``examples``, …
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
