"""Folders of masks → a run, in memory or in its file."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from segiou._support.arguments import check_callable
from segiou._support.files import Problem
from segiou._support.text import encodable
from segiou.labels.class_options import ClassOptions, Labels, Unassigned
from segiou.labels.label_set import labelset_names
from segiou.masks.pairing import Pair, Pairing
from segiou.masks.read import VOLUME_SUFFIXES, MaskError
from segiou.masks.sources import LocalFolder, Source
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header, Shard
from segiou.runs.image_counts import Columns, ImageCount, ImageFiles
from segiou.runs.run import Run
from segiou.scoring.engines import (
    Dispatcher,
    ExecutorLike,
    Scored,
    check_engine,
    open_engine,
    task_of,
)
from segiou.scoring.job import Job, object_options
from segiou.scoring.pair import Geometry, PairScorer
from segiou.scoring.pairings import (
    DataError,
    ScoringStopped,
    ids_of,
    is_undeclared,
    pair_sources,
    pairing_problems,
)

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions
    from segiou.boundary.surfaces import SurfaceOptions
    from segiou.instances.object_files import ObjectOptions
    from segiou.runs.run_writing import RunWriter

Progress = Callable[[int, int], None]
#: Images that are put into columns together.
_BLOCK = 1024


def score_folder(
    truth: str | Path,
    pred: str | Path,
    *,
    labels: Labels,
    pred_labels: Labels | None = None,
    ignore: int | str | Iterable[int | str] = (),
    exclude: int | str | Iterable[int | str] = (),
    unassigned: Unassigned = "error",
    protocol: Protocol | str = "segiou",
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
    ids: str | Path | Iterable[str] | None = None,
    missing: Literal["error", "skip"] = "error",
    extra: Literal["error", "skip"] = "error",
    on_error: Literal["stop", "skip"] = "stop",
    allow_lossy: bool = False,
    resize_pred: Literal["nearest"] | None = None,
    geometry: Geometry = "check",
    boundary: BoundaryOptions | bool | None = None,
    objects: ObjectOptions | str | bool | None = None,
    surfaces: SurfaceOptions | str | bool | None = None,
    spacing: Sequence[float] | None = None,
    run: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    workers: int | None = None,
    processes: int | None = None,
    executor: ExecutorLike | None = None,
    dask: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    on_paired: Callable[[Sequence[Pair]], None] | None = None,
    name: str = "",
) -> Run:
    """Score a folder of predicted masks against a folder of true ones.

    Parameters
    ----------
    truth, pred : str or path
        Two folders, or two files; archives (``.zip``, ``.tar``, ``.tar.gz``,
        also ``masks.zip/folder``), JSON files of segments (COCO, detectron2)
        and addresses that fsspec knows (``s3://bucket/folder``) are read in
        place.
    labels, pred_labels, ignore, exclude, unassigned
        As :class:`segiou.ConfusionMatrix`.
    protocol : Protocol or str
        The protocol of the run's reports.
    truth_suffix, pred_suffix, key
        As :func:`segiou.masks.pairing.pair_folders`.
    ids : path or sequence of str, optional
        Score only these images: ids, or file names; or a text file with one a
        line, such as Pascal VOC's ``ImageSets``; or ``FILE.csv:COLUMN``. Ids
        that no truth file has are missing.
    missing, extra : {"error", "skip"}
        Whether truth without a prediction (missing) or a prediction without
        truth (extra) is an error, or is left out and listed.
    on_error : {"stop", "skip"}
        Whether a pair that cannot be scored stops the run, when all pairs were
        tried, or is left out and listed in ``Run.skipped``.
    allow_lossy : bool
        Whether JPEG masks are taken.
    resize_pred : {"nearest"}, optional
        Resize predictions, never truth, to the truth's size.
    geometry : {"check", "ignore", "reorient"}
        Of label volumes: whether shape, spacing, affine and orientation of a
        prediction must be its truth's (of GeoTIFF: coordinate system and
        corners); are not looked at; or may differ in the
        order and direction of the axes, which are then exchanged.
    boundary : BoundaryOptions or bool, optional
        What to measure at the boundaries of every pair; True: all of it, as
        :class:`segiou.boundary.BoundaryOptions` has it by default. Of volumes the
        surfaces are measured, with its tolerances.
    objects : ObjectOptions, str or bool, optional
        Score objects too, by panoptic quality: the source of their ids, as
        :class:`segiou.instances.ObjectOptions` names it; True: connected
        components of each class.
    surfaces : SurfaceOptions, str or bool, optional
        What to measure between the surfaces of every pair, in 2-D and 3-D; a
        convention such as ``"medpy"`` takes the tolerances of ``boundary``; True:
        segiou's own convention.
    spacing : sequence of float, optional
        Size of a pixel along each axis for the surfaces, in place of what the
        files say.
    run : str or path, optional
        A run file to keep every finished pair in. If it exists, pairs in it
        whose files are unchanged are not read again.
    shard : (int, int), optional
        ``(i, n)``: score only the i-th of n parts, from 1, of the pairs. The id
        alone decides to which part a pair belongs. ``segiou merge`` joins the
        run files of all parts.
    workers : int, optional
        Threads; as many as processors by default. With an executor: how many
        tasks it works on at once.
    processes : int, optional
        Processes instead of threads.
    executor : concurrent.futures.Executor or callable, optional
        Used instead, and left open. A callable that gives one is called again
        if the first breaks.
    dask : str, optional
        Address of a Dask scheduler to use instead.
    storage_options : mapping, optional
        Options of fsspec for the addresses; never kept.
    progress : callable, optional
        Called with pairs done and total.
    stop : callable, optional
        Called several times a second; once it returns True, running tasks are
        finished, and :class:`segiou.scoring.ScoringStopped` is raised.
    on_paired : callable, optional
        Called once with all pairs, before the first is read or the run file
        made; what it raises is raised.
    name : str
        What is scored; by default the last part of the predictions' path.

    Returns
    -------
    Run

    Raises
    ------
    DataError
        With everything that is wrong with the files.
    RunFileError
        If the run file cannot be used.
    ScoringStopped
        If ``stop`` returns True.
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If classes or options do not fit together, or the run file is of others.
    """
    options = ClassOptions.of(
        labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
    )
    options.warn_of_ignored_classes(stacklevel=3)
    job = Job(
        truth=truth,
        pred=pred,
        options=options,
        protocol=load_protocol(protocol),
        truth_suffix=truth_suffix,
        pred_suffix=pred_suffix,
        key=key,
        ids=None if ids is None else ids_of(ids),
        missing=missing,
        extra=extra,
        on_error=on_error,
        allow_lossy=allow_lossy,
        resize_pred=resize_pred,
        geometry=geometry,
        boundary=_boundary_options(boundary),
        objects=object_options(objects, labels),
        surfaces="segiou" if surfaces is True else surfaces or None,
        spacing=spacing,
        run=run,
        shard=shard,
        workers=workers,
        processes=processes,
        dask=dask,
        storage_options=storage_options,
        name=name,
    )
    return score_job(job, executor=executor, progress=progress, stop=stop, on_paired=on_paired)


def _boundary_options(choice: BoundaryOptions | bool | None) -> BoundaryOptions | None:
    if choice is None:
        return None
    from segiou.boundary.boundary_options import BoundaryOptions

    return BoundaryOptions.of(choice)


def score_job(
    job: Job,
    *,
    executor: ExecutorLike | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    on_paired: Callable[[Sequence[Pair]], None] | None = None,
    on_problem: Callable[[Problem], None] | None = None,
) -> Run:
    """Do a job; arguments as of :func:`score_folder`, and what is called with each problem.

    Parameters
    ----------
    job : Job
        What to do.
    executor : ExecutorLike, optional
        Runs the work; threads by default.
    progress : Progress, optional
        Called with the number of finished pairs and of all pairs.
    stop : callable, optional
        Asked now and then; True ends the job.
    on_paired : callable, optional
        Called with the pairs before they are scored.
    on_problem : callable, optional
        Called with each pair that is left out.

    Returns
    -------
    Run
    """
    check_engine(job, executor)
    if progress is not None:
        check_callable("progress", progress, "a function of pairs done and total")
    if stop is not None:
        check_callable("stop", stop, "a function that says whether to stop")
    pairing, problems = _paired(job)
    job = _with_nodata(job, pairing)
    pairs = _of_shard(pairing.pairs, job.shard)
    if on_paired is not None and not problems:
        on_paired(pairs)
    header = _header(job, pairing, len(pairs))
    scorer = replace(job.scorer, boundary=header.boundary, surfaces=header.surfaces)
    work = _Work(job, scorer, pairs, executor, progress, on_problem, stop or (lambda: False))
    left_out = _left_out(job, pairing)
    score = _in_memory if job.run is None else _in_file
    run = score(work, header, left_out, problems)
    work.warn_of_labels(run)
    return run


def _paired(job: Job) -> tuple[Pairing, list[Problem]]:
    """The pairs, and what is wrong with the rest."""
    pairing = pair_sources(
        job.scorer.truth_source,
        job.scorer.pred_source,
        truth_suffix=job.truth_suffix,
        pred_suffix=job.pred_suffix,
        key=job.key,
        ids=job.ids,
    )
    return pairing, pairing_problems(pairing, job.missing, job.extra)


def _with_nodata(job: Job, pairing: Pairing) -> Job:
    """The job with the value for no data of its truth ignored, where that is said in its files."""
    first = pairing.pairs[0].truth if pairing.pairs else ""
    if not first.lower().endswith((".tif", ".tiff")):
        return job
    from segiou.masks.tiff import nodata_of

    source, options = job.scorer.truth_source, job.options
    value = nodata_of(_file_or_path(source, first))
    if value is None or value in options.ignore:
        return job
    named = [one.name for one in options.labels.classes if value in one.values]
    if named:
        what = f"it is counted as class {named[0]!r}, as the label set says"
    else:
        what = "pixels of the truth with it are ignored"
    text = f"{first}: {value} is its value for no data; {what} (--ignore {value} says it, too)"
    warnings.warn(text, UserWarning, stacklevel=4)
    if named:
        return job
    return replace(job, options=replace(options, ignore=(*options.ignore, value)))


def _file_or_path(source: Source, path: str) -> Any:
    """A file of this machine by its path, and any other by its content."""
    if isinstance(source, LocalFolder):
        return path
    try:
        data = source.read(path)[0]
    except MaskError:  # said when it is scored
        data = b""
    return BytesIO(data if isinstance(data, bytes) else b"")


def _of_shard(pairs: Sequence[Pair], shard: tuple[int, int] | None) -> Sequence[Pair]:
    if shard is None:
        return pairs
    part, parts = shard
    # By a hash of the id, so that a pair stays in its part when others come.
    hashes = (zlib.crc32(pair.id.encode("utf-8", "surrogateescape")) for pair in pairs)
    return [pair for pair, number in zip(pairs, hashes, strict=True) if number % parts == part - 1]


def _left_out(job: Job, pairing: Pairing) -> list[Problem]:
    """What the options say to leave out."""
    skips = job.missing == "skip"
    missing, unknown = (pairing.missing, pairing.unknown) if skips else ((), ())
    extra = pairing.extra if job.extra == "skip" else ()
    return [
        *(Problem(path, "has no prediction") for path in missing),
        *(Problem(id, "is in the list of ids, but no truth file has it") for id in unknown),
        *(Problem(path, "has no truth") for path in extra),
    ]


def _header(job: Job, pairing: Pairing, expected: int) -> Header:
    roots = job.scorer.truth_source.root, job.scorer.pred_source.root
    shards = () if job.shard is None else (Shard(*job.shard, len(pairing.pairs)),)
    volumes = any(pair.truth.lower().endswith(VOLUME_SUFFIXES) for pair in pairing.pairs)
    boundary, surfaces = job.plans(volumes)
    header = Header(
        job.options,
        job.protocol,
        job.title,
        provenance={
            "truth": encodable(roots[0]),
            "pred": encodable(roots[1]),
            "pairing": pairing.rule,
            **({"masks": "volumes"} if volumes else {}),
        },
        boundary=boundary,
        objects=job.objects,
        surfaces=surfaces,
        shards=shards,
    )
    if job.run is None:
        return header
    reading: dict[str, Any] = {"allow_lossy": job.allow_lossy, "resize_pred": job.resize_pred}
    if job.geometry != "check":
        reading["geometry"] = job.geometry
    return replace(header, truth=roots[0], pred=roots[1], reading=reading, expected=expected)


@dataclass(frozen=True)
class _Work:
    """A job with its pairs, and what can be called while it is done."""

    job: Job
    scorer: PairScorer
    pairs: Sequence[Pair]
    executor: ExecutorLike | None
    progress: Progress | None
    on_problem: Callable[[Problem], None] | None
    stop: Callable[[], bool]

    def results(
        self, pairs: Sequence[Pair], now_and_then: Callable[[], None] = lambda: None
    ) -> Iterator[Scored]:
        """Results of some pairs as they come; the others are done already."""
        total = len(self.pairs)
        done = total - len(pairs)
        with open_engine(self.job, self.executor) as engine:
            task = task_of(self.scorer, remote=engine.remote)
            for batch in Dispatcher(engine, task, pairs, stop=self.stop).results():
                for scored in batch:
                    done += 1
                    if self.on_problem is not None and not isinstance(scored[1], ImageCount):
                        for problem in scored[1]:
                            self.on_problem(problem)
                    if self.progress is not None:
                        self.progress(done, total)
                    yield scored
                now_and_then()
        if done < total:
            raise ScoringStopped(done, total)

    def check(self, problems: Sequence[Problem], skipped: Sequence[Problem], images: int) -> None:
        """Raise what is wrong with the files."""
        found = [*problems, *(skipped if self.job.on_error == "stop" else ())]
        # A shard of few pairs may be empty: then nothing is scored, and nothing is wrong.
        if found or (skipped and not images):
            raise DataError(found or skipped, self._reason(found or skipped, images))

    def _reason(self, problems: Sequence[Problem], images: int) -> str:
        """What explains that so many masks have values that are no class."""
        undeclared = {problem.where for problem in problems if is_undeclared(problem)}
        if len(undeclared) < max(images, len(problems) / 2):
            return ""
        from segiou.scoring.inspection import better_label_set

        paths = [pair.truth for pair in self.pairs]
        return better_label_set(
            self.job.options.labels, self.job.scorer.truth_source, paths, certain=False
        )

    def warn_of_labels(self, run: Run) -> None:
        """Warn where everything could be counted, but another label set fits better."""
        labels = run.options.labels
        if labels.name not in labelset_names():
            return
        if int((run._tally.counts.truth > 0).sum()) > 0.75 * labels.num_classes:
            return
        from segiou.scoring.inspection import better_label_set

        paths = [pair.truth for pair in self.pairs]
        text = better_label_set(labels, self.job.scorer.truth_source, paths, certain=True)
        if text:
            warnings.warn(text, UserWarning, stacklevel=4)


def _in_memory(
    work: _Work,
    header: Header,
    left_out: Sequence[Problem],
    problems: Sequence[Problem],
) -> Run:
    images: list[ImageCount] = []
    blocks: list[Columns] = []
    skipped: list[Problem] = []
    for _, result in work.results(work.pairs):
        if isinstance(result, ImageCount):
            images.append(result)
        else:
            skipped += result
        if len(images) == _BLOCK:
            # Columns take half as much memory as the images one by one.
            blocks.append(Columns.of(images))
            images.clear()
    skipped.sort(key=lambda problem: problem.where)
    columns = Columns.joined([*blocks, Columns.of(images)])
    blocks.clear()
    work.check(problems, skipped, len(columns))
    return Run(header, columns.by_id(), (*skipped, *left_out))


def _in_file(
    work: _Work,
    header: Header,
    left_out: Sequence[Problem],
    problems: Sequence[Problem],
) -> Run:
    """Score the pairs that the run file does not hold yet, and keep them there."""
    from segiou.runs.run_writing import RunWriter

    assert work.job.run is not None
    with RunWriter(work.job.run, header) as writer:
        known = writer.reconcile(_files_now(work.job, work.pairs))
        for problem in left_out:
            writer.skip(problem)
        todo = [pair for pair in work.pairs if pair.id not in known]
        skipped = _into(writer, work.results(todo, writer.flush_if_due))
        if not problems and (work.job.on_error == "skip" or not skipped):
            writer.finish()
    file = writer.opened()
    work.check(problems, skipped, len(file))
    return Run(file.header, file, file.skipped)


def _into(writer: RunWriter, results: Iterable[Scored]) -> list[Problem]:
    skipped: list[Problem] = []
    for pair, result in results:
        if isinstance(result, ImageCount):
            writer.add(result)
            continue
        skipped += result
        for problem in result:
            writer.skip(problem, pair.id)
    return sorted(skipped, key=lambda problem: problem.where)


def _files_now(job: Job, pairs: Sequence[Pair]) -> Callable[[str], ImageFiles | None]:
    """The files of a pair as they are now, by its id."""
    by_id = {pair.id: pair for pair in pairs}
    truth, pred = job.scorer.truth_source, job.scorer.pred_source

    def files_of(id: str) -> ImageFiles | None:
        pair = by_id.get(id)
        if pair is None:
            return None
        return ImageFiles(pair.truth, pair.pred, truth.stamp(pair.truth), pred.stamp(pair.pred))

    return files_of
