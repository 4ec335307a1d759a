"""Scoring of mask folders into a run, in memory or in a run file."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from segiou._support.arguments import (
    check_callable,
    check_kind,
    check_path,
    level_of_caller,
    names_options,
)
from segiou._support.files import Problem
from segiou._support.options import Options, option
from segiou._support.text import plural
from segiou.labels.class_options import CLASS_ARGUMENTS, ClassOptions, Labels, Unassigned
from segiou.masks.colors import NO_COLORS
from segiou.masks.finding import RASTER_SUFFIXES
from segiou.masks.raw_mask import MaskError
from segiou.masks.reading import Geometry, Match
from segiou.masks.sources.adjusted import place_of
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.pairing import Pair, Pairing
from segiou.measures.registry import read_measures
from segiou.metrics.protocols import Protocol
from segiou.runs.image_counts import Columns, ImageCount, ImageFiles
from segiou.runs.run import Run
from segiou.scoring.advice import advice_of, better_labels
from segiou.scoring.clusters import ClusterOptions, Clusters, check_clusters, counting_options
from segiou.scoring.engines import Dispatcher, ExecutorLike, check_engine, open_engine, task_of
from segiou.scoring.file_pairs import check_palettes, pair_sources, pairing_problems
from segiou.scoring.job import Job
from segiou.scoring.pair import PairScorer
from segiou.scoring.problems import DataError, ScoringInterrupted
from segiou.scoring.proposed_pairs import best_proposals, scorer_of
from segiou.scoring.segment_classes import labels_of

if TYPE_CHECKING:
    from segiou.measures.measure import Measure
    from segiou.runs.run_writing import RunWriter

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Callbacks(Options):
    """Functions that a job calls while it runs; none by default.

    Attributes
    ----------
    progress, stop, on_paired
        As in :func:`segiou.score_folder`.
    on_problem : callable
        Called with each problem as it is found.
    """

    progress: Progress = option(
        lambda done, total: None, check_callable, "a function of the pairs done and all pairs"
    )
    stop: Callable[[], bool] = option(
        lambda: False, check_callable, "a function that returns whether to stop"
    )
    on_paired: Callable[[Sequence[Pair]], object] = option(
        lambda pairs: None, check_callable, "a function of the pairs"
    )
    on_problem: Callable[[Problem], object] = lambda problem: None


#: Number of images that are packed into columns together.
_BLOCK = 1024


@names_options
def score_folder(
    truth: str | Path,
    pred: str | Path,
    *,
    labels: Labels | None = None,
    pred_labels: Labels | None = None,
    ignore: int | str | Iterable[int | str] = (),
    exclude: int | str | Iterable[int | str] = (),
    unassigned: Unassigned = "error",
    protocol: Protocol | str = "segiou",
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
    ids: str | Path | Iterable[str] | None = None,
    pairs: str | Path | None = None,
    missing: Literal["error", "skip"] = "error",
    extra: Literal["error", "skip"] = "error",
    on_error: Literal["stop", "skip"] = "stop",
    allow_lossy: bool = False,
    resize_pred: Literal["nearest"] | None = None,
    geometry: Geometry = "check",
    truth_threshold: float | None = None,
    pred_threshold: float | None = None,
    array_key: str | None = None,
    array_axes: Literal["xyz", "zyx", "nyx"] | None = None,
    class_files: str | None = None,
    roi: str | Path | None = None,
    read_palette: Literal["indices", "colors"] | None = None,
    match: Literal["hungarian", "majority"] | None = None,
    boundary: Measure | bool | None = None,
    objects: Measure | str | bool | None = None,
    measures: Iterable[Measure | str] = (),
    surfaces: Measure | str | bool | None = None,
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
    """Score a folder of predicted masks against a folder of truth masks.

    Parameters
    ----------
    truth, pred : str or path
        Two folders or two files. Archives (``.zip``, ``.tar``, ``.tar.gz``,
        ``masks.zip/folder``), JSON files of segments (COCO, detectron2) and
        URLs supported by fsspec (``s3://bucket/folder``) are read in place.
    labels, pred_labels, ignore, exclude, unassigned
        See :class:`segiou.ConfusionMatrix`. The segments of 3D Slicer's files name their
        classes, so they need no ``labels``, and ``objects="labels"`` implies them.
    protocol : Protocol or str
        The default protocol of the run's reports.
    truth_suffix, pred_suffix, key
        See :func:`segiou.masks.sources.pairing.pair_folders`.
    ids : path or sequence of str, optional
        Score only these images: ids or file names, a text file with one id per
        line, such as Pascal VOC's ``ImageSets``, or ``FILE:COLUMN``. Ids
        without a truth file are treated as missing.
    pairs : path, optional
        A table of the pairs: CSV, TSV, JSON, JSON Lines or Parquet with the
        columns ``truth`` and ``prediction``, and optionally ``id``. Paths are relative to
        the table, or to the folders of masks. Other files are not scored.
    missing, extra : {"error", "skip"}
        Whether a truth without a prediction (missing) or a prediction without
        a truth (extra) raises an error or is skipped and listed. With
        ``class_files``, files of undeclared classes are extra.
    on_error : {"stop", "skip"}
        Whether a pair that cannot be scored raises an error, after all pairs
        were tried, or is skipped and listed in ``Run.skipped``.
    allow_lossy : bool
        Whether to accept JPEG masks.
    resize_pred : {"nearest"}, optional
        Resize predictions, never truth, to the truth's size.
    geometry : {"check", "ignore", "reorient"}
        For label volumes: require the truth's shape, spacing, affine and
        orientation (for GeoTIFF: coordinate system and corners), ignore the
        geometry, or reorient the axes of the prediction first.
    truth_threshold, pred_threshold : float, optional
        For two classes in greyscale masks with soft edges, such as JPEG files:
        values from this one on are the second class.
    array_key : str, optional
        Name of the array with the mask in ``.npz``, ``.mat`` and ``.h5`` files with several;
        names for truth and prediction are separated by a comma: ``"gts,segs"``.
    array_axes : {"xyz", "zyx", "nyx"}, optional
        Whether arrays (``.npy``, ``.npz``, TIFF) paired with volumes have the axes of the
        file of the volume, or reversed ones. If it is omitted, nnU-Net's files of
        probabilities are reversed, and other arrays may have the only order that fits.
        Without volumes, an array of three axes in an ``.npy`` or ``.npz`` file is N images
        (``"nyx"``) or a volume (``"zyx"`` or ``"xyz"``, or a spacing of three values);
        one of them is required.
    class_files : str, optional
        Relative path of masks with one file per class, without extension, such as
        ``"{id}/segmentations/{class}"`` (TotalSegmentator) or ``"{id}_class_{class}"``.
        The remaining pixels are the class ``"background"``. For truth, predictions or both.
        With ``{object}``, such as ``"{id}/masks/{object}"``, each file has one object, and the
        mask of the image has their ids, for ``objects="labels"``.
    roi : str or path, optional
        Folder of regions of interest, or one, paired by name with the truth; or the name of
        their array in the ``.npz`` files of the truth. Pixels outside (0) are ignored.
    read_palette : {"indices", "colors"}, optional
        Reading of palette images: their indices, or their colours. By default indices, and an
        error if the palette contradicts them: an index has the colour (or grey) of another
        value, or different colours in the files of one folder.
    match : {"hungarian", "majority"}, optional
        Predictions are cluster numbers of an unsupervised model. Each cluster is assigned a class,
        once over all images, before the images are scored: one to one with the most correct
        pixels (unmatched clusters are wrong), or the class with the largest overlap. Masks are
        read twice. See :func:`segiou.scoring.match_clusters`.
    boundary : BoundaryOptions or bool, optional
        Boundary metrics to compute; True computes all, with the defaults of
        :class:`segiou.measures.boundary.BoundaryOptions`. For volumes, surfaces are
        measured.
    objects : ObjectOptions, str or bool, optional
        Also compute panoptic quality. A string is the source of object ids, see
        :class:`segiou.measures.objects.ObjectOptions`; True uses the connected
        components of each class.
    measures : iterable of Measure or str
        Other measures, or their keys.
    surfaces : SurfaceOptions, str or bool, optional
        Surface distances to compute, in 2-D and 3-D. A convention such as
        ``"medpy"`` selects the definitions of a tool; True selects segiou's.
    spacing : sequence of float, optional
        Pixel size along each axis for surfaces and the minimum size of
        objects, overriding the files.
    run : str or path, optional
        Run file that stores every finished pair. If it exists, pairs whose
        files are unchanged are not read again.
    shard : (int, int), optional
        ``(i, n)`` scores part i of n of the pairs, counted from 1. A pair's
        part depends only on its id. ``segiou merge`` merges the run files.
    workers : int, optional
        Number of threads; one per core by default. If an executor is passed,
        the number of concurrent tasks.
    processes : int, optional
        Number of processes, instead of threads.
    executor : concurrent.futures.Executor or callable, optional
        Executor to use, which is left open. A callable that returns an
        executor is called again if the first one breaks.
    dask : str, optional
        Address of a Dask scheduler to use.
    storage_options : mapping, optional
        Options for fsspec; never stored.
    progress : callable, optional
        Called with the number of pairs done and of all pairs.
    stop : callable, optional
        Called several times per second. Once it returns True, running tasks
        are finished and :class:`segiou.scoring.ScoringInterrupted` is raised.
    on_paired : callable, optional
        Called once with all pairs, before any is read or the run file is
        created; its exceptions propagate.
    name : str
        Name of the run; by default the last part of the predictions' path.

    Raises
    ------
    DataError
        If files have problems.
    RunFileError
        If the run file cannot be used.
    ScoringInterrupted
        If ``stop`` returns True.
    TypeError
        If an argument has the wrong type.
    ValueError
        If options contradict each other or the options of the run file.
    """
    arguments: dict[str, Any] = dict(locals())
    check_path("truth", truth)
    check_path("pred", pred)
    chosen = read_measures(measures, boundary=boundary, objects=objects, surfaces=surfaces)
    implied = (
        type(measure).class_names({measure.key: measure}) for measure in chosen if labels is None
    )
    given = next((names for names in implied if names is not None), labels)
    arguments["labels"] = labels_of(given, (truth, pred))
    calls = Callbacks.of({name: x for name, x in arguments.items() if x is not None})
    options = ClassOptions.of(**{name: arguments[name] for name in CLASS_ARGUMENTS})
    options.warn_of_ignored_classes()
    return score_job(Job.from_arguments(options, chosen, arguments), calls, executor)


_SILENT = Callbacks()


def score_job(job: Job, calls: Callbacks = _SILENT, executor: ExecutorLike | None = None) -> Run:
    """Run a job; see :func:`score_folder`.

    Parameters
    ----------
    job : Job
        The job.
    calls : Callbacks
        What to call meanwhile.
    executor : Executor or callable, optional
        Executor to use; threads by default.
    """
    check_kind("job", job, Job, "a Job")
    check_engine(job, executor)
    if (match := job.reading.match) is not None:
        are_scores = any(plan.reads_predictions for plan in job.plans(volumes=False))
        check_clusters(match, scores=are_scores)
        job = replace(job, options=counting_options(job.options))
    pairing, trial = best_proposals(pair_sources(*job.sources, job), job)
    problems, left_out = pairing_problems(pairing, job.pair_by, job.for_empty)
    left_out += job.skipped_classes()
    job, nodata = _ignore_nodata(job, pairing)
    doubled = {key for key, _ in pairing.duplicates}
    pairs = _shard_pairs([pair for pair in pairing.pairs if pair.id not in doubled], job.shard)
    if not problems:
        calls.on_paired(pairs)
        if all(pairing.skipped):  # on one side, they are other files in the folder of masks
            text = (
                f"{plural(pairing.skipped[0], 'truth file')} and "
                f"{plural(pairing.skipped[1], 'prediction')} are skipped, because they have no key "
                f"(by {pairing.rule})"
            )
            warnings.warn(text, UserWarning, stacklevel=level_of_caller())
    if problems and trial is not None:  # the pairs are those of the proposal
        tried = trial.pairs, trial.run, trial.scorer, trial.problems
        better = better_labels(trial.job, *tried, command=trial.command)
        raise DataError([*problems, *trial.problems], better)
    if match is not None and not problems:
        job = _matched(job, match, pairing, nodata, calls, executor)
    header = job.header(pairing, len(pairs))
    scorer = scorer_of(job, pairing, header, nodata)
    task = _Task(job, pairs, scorer, calls, executor)
    if job.run is None:
        run, skipped = task.in_memory(left_out)
    else:
        run, skipped = task.in_file(left_out, all_paired=not problems)
    wrong = [*problems, *(skipped if job.pair_by.on_error == "stop" else ())]
    # A shard may be empty, which is not an error.
    if wrong or (skipped and not len(run)):
        raise DataError(wrong or skipped, better_labels(job, pairs, run, scorer, wrong or skipped))
    for advice in filter(None, advice_of(job, pairing, pairs, run, scorer)):
        warnings.warn(advice, UserWarning, stacklevel=level_of_caller())
    return run


def _matched(
    job: Job,
    match: Match,
    pairing: Pairing,
    nodata: int | None,
    calls: Callbacks,
    executor: ExecutorLike | None,
) -> Job:
    """The job with the classes of the clusters of all pairs, also of those of other shards."""
    whole = replace(job, measures=(ClusterOptions(),), run=None, shard=None)
    header = whole.header(pairing, len(pairing.pairs))
    scorer = scorer_of(whole, pairing, header, nodata)
    stops = job.pair_by.on_error == "stop"
    # Skipped pairs are problems of the scoring, which follows.
    calls = calls if stops else replace(calls, on_problem=_SILENT.on_problem)
    try:
        counted, skipped = _Task(whole, pairing.pairs, scorer, calls, executor).in_memory()
    except ScoringInterrupted as stopped:
        raise ScoringInterrupted(0, stopped.total) from stopped
    without = _nodata_of(job.sources[1], [pair.pred for pair in pairing.pairs])
    if without is not None:
        text = (
            f"{pairing.pairs[0].pred}: nodata value {without}; predicted pixels with it are not a "
            "cluster and count as missed"
        )
        warnings.warn(text, UserWarning, stacklevel=level_of_caller())
    if skipped and (stops or not len(counted)):
        are_colors = all(problem.text.startswith(NO_COLORS) for problem in skipped)
        raise DataError(skipped, "Save cluster numbers instead of their colours" * are_colors)
    parts = counted.measured[ClusterOptions.key]
    clusters = Clusters.of(match, job.options, parts, len(counted), without)
    return replace(job, options=clusters.options, clusters=str(clusters))


@dataclass(frozen=True)
class _Task:
    """Pairs to score, and how."""

    job: Job
    pairs: Sequence[Pair]
    scorer: PairScorer
    calls: Callbacks
    executor: ExecutorLike | None

    def in_memory(self, left_out: Sequence[Problem] = ()) -> tuple[Run, list[Problem]]:
        """The run of the pairs, and their problems."""
        images = _InMemory()
        skipped = self._score_into(images, self.pairs)
        return Run(self.scorer.header, images.columns(), (*skipped, *left_out)), skipped

    def in_file(
        self, left_out: Sequence[Problem], *, all_paired: bool
    ) -> tuple[Run, list[Problem]]:
        """The same, with the pairs that the run file of the job lacks scored into it."""
        from segiou.runs.run_writing import RunWriter

        with RunWriter(str(self.job.run), self.scorer.header) as writer:
            by_id = {pair.id: pair for pair in self.pairs}
            known = writer.reconcile(partial(_files_now, by_id, self.job))
            for problem in left_out:
                writer.skip(problem)
            skipped = self._score_into(writer, [p for p in self.pairs if p.id not in known])
            if all_paired and (self.job.pair_by.on_error == "skip" or not skipped):
                writer.finish()
        file = writer.opened()
        return Run(file.header, file, file.skipped), skipped

    def _score_into(self, images: _InMemory | RunWriter, todo: Sequence[Pair]) -> list[Problem]:
        """Score the pairs in ``todo``; returns their problems."""
        job, calls, total = self.job, self.calls, len(self.pairs)
        files = [pair.truth for pair in todo], [pair.pred for pair in todo]
        alike = job.options.pred_labels == job.options.labels
        if len(todo) > 1 or total == 1:  # the last pair of a resumed run is read only once
            check_palettes(zip(job.sources, files, strict=True), job.options.labels, alike=alike)
        skipped: list[Problem] = []
        done = total - len(todo)
        with open_engine(job, self.executor) as engine:
            task = task_of(self.scorer, remote=engine.remote)
            for batch in Dispatcher(engine, task, todo, stop=calls.stop).results():
                for pair, result in batch:
                    if isinstance(result, ImageCount):
                        images.add(result)
                    else:
                        skipped += result
                        for problem in result:
                            images.skip(problem, pair.id)
                            calls.on_problem(problem)
                    done += 1
                    calls.progress(done, total)
                images.flush_if_due()
        if done < total:
            raise ScoringInterrupted(done, total)
        return sorted(skipped, key=lambda problem: problem.where)


class _InMemory:
    """Collects images in memory, with the interface of :class:`RunWriter`."""

    def __init__(self) -> None:
        self._images: list[ImageCount] = []
        self._blocks: list[Columns] = []

    def add(self, image: ImageCount) -> None:
        self._images.append(image)

    def skip(self, problem: Problem, id: str) -> None:
        """Problems are collected by the caller."""

    def flush_if_due(self) -> None:
        if len(self._images) >= _BLOCK:
            # Columns take half the memory of single images.
            self._blocks.append(Columns.of(self._images))
            self._images.clear()

    def columns(self) -> Columns:
        return Columns.joined([*self._blocks, Columns.of(self._images)]).by_id()


def _ignore_nodata(job: Job, pairing: Pairing) -> tuple[Job, int | None]:
    """The job with the nodata value of its first truth file ignored, and this value."""
    paths, options = [pair.truth for pair in pairing.pairs], job.options
    value = _nodata_of(job.sources[0], paths)
    if value is None or value in options.ignore:
        return job, value
    names = [label.name for label in options.labels.classes if value in label.values]
    what = "truth pixels with it are ignored"
    if names:
        what = f"counted as class {names[0]!r} because the label set defines it"
    text = f"{paths[0]}: nodata value {value}; {what} (same as --ignore {value})"
    warnings.warn(text, UserWarning, stacklevel=level_of_caller())
    if names:
        return job, value
    return replace(job, options=replace(options, ignore=(*options.ignore, value))), value


def _nodata_of(source: Source, paths: Sequence[str]) -> int | None:
    """The nodata value of the first of several files; None if it is not a raster or has none."""
    if not paths or not paths[0].lower().endswith((".tif", ".tiff", *RASTER_SUFFIXES)):
        return None
    from segiou.masks.formats.tiff import nodata_of

    place = place_of(source)
    try:
        # Local files are not read whole.
        content = paths[0] if isinstance(place, LocalFolder) else place.read(paths[0])[0]
        return nodata_of(BytesIO(content) if isinstance(content, bytes) else content)
    except MaskError:  # reported when the pair is scored
        return None


def _shard_pairs(pairs: Sequence[Pair], shard: tuple[int, int] | None) -> Sequence[Pair]:
    if shard is None:
        return pairs
    part, parts = shard
    # Hashing the id keeps a pair in its part when others are added.
    hashes = (zlib.crc32(pair.id.encode("utf-8", "surrogateescape")) for pair in pairs)
    return [pair for pair, number in zip(pairs, hashes, strict=True) if number % parts == part - 1]


def _files_now(pairs: Mapping[str, Pair], job: Job, id: str) -> ImageFiles | None:
    """The current files of a pair; None if it does not exist."""
    if (pair := pairs.get(id)) is None:
        return None
    files = pair.truth, pair.pred
    stamps = [source.stamp(file) for source, file in zip(job.sources, files, strict=True)]
    for measure in job.measures:
        stamps = [*map(measure.stamp, stamps, files)]
    return ImageFiles(*files, *stamps)
