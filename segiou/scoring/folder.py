"""One scoring job: pairs in, a run out, in memory or going on in its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from segiou._support.arguments import check_choice, check_kind, refuse_kind
from segiou._support.files import Problem
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions, Labels, Unassigned
from segiou.masks.archives import ArchiveFolder
from segiou.masks.pairing import Pair, Pairing
from segiou.masks.sources import LocalFolder, Source
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import ImageCount, ImageFiles
from segiou.runs.run import Run
from segiou.runs.run_writing import RunWriter
from segiou.runs.tables import shown
from segiou.scoring.dispatch import Dispatcher, Scored
from segiou.scoring.engines import EngineChoice, ExecutorLike, Progress, task_of
from segiou.scoring.pair import PairScorer
from segiou.scoring.pairings import DataError, PairingRule, Stopped, open_sources

__all__ = ["Job", "score_folder"]


@dataclass(frozen=True)
class Job:
    """Everything that :func:`score_folder` was asked for.

    Attributes
    ----------
    scorer : PairScorer
    rule : PairingRule
    header : Header
        Of the run; what the pairing tells is added.
    engine : EngineChoice
    on_error : {"stop", "skip"}
    stop : callable
    progress : callable, optional
    on_paired : callable, optional
    """

    scorer: PairScorer
    rule: PairingRule
    header: Header
    engine: EngineChoice
    on_error: Literal["stop", "skip"]
    stop: Callable[[], bool]
    progress: Progress | None
    on_paired: Callable[[Sequence[Pair]], None] | None = None

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, ("stop", "skip"))
        if self.progress is not None and not callable(self.progress):
            raise refuse_kind("progress", self.progress, "a function of pairs done and total")
        if not callable(self.stop):
            raise refuse_kind("stop", self.stop, "a function that says whether to stop")

    def in_memory(self) -> Run:
        """Score all pairs and keep the counts in memory."""
        pairing, problems = self._paired()
        images: list[ImageCount] = []
        skipped: list[Problem] = []
        for _, result in self._results(pairing.pairs, len(pairing.pairs)):
            if isinstance(result, ImageCount):
                images.append(result)
            else:
                skipped += result
        skipped.sort(key=lambda p: p.where)
        self._check(problems, skipped, len(images), len(pairing.pairs))
        header = self._with_pairing(pairing)
        left_out = (*skipped, *self.rule.left_out(pairing))
        return Run(
            header.options,
            images,
            left_out,
            header.name,
            header.protocol,
            header.provenance,
            header.boundary,
        )

    def in_file(self, path: str | Path) -> Run:
        """Score the pairs that the run file does not hold yet, and keep them there."""
        job = replace(self, scorer=_absolute(self.scorer))
        sources = (job.scorer.truth_source, job.scorer.pred_source)
        pairing, problems = job._paired()
        header = replace(
            job._with_pairing(pairing),
            truth=sources[0].root,
            pred=sources[1].root,
            reading={
                "allow_lossy": job.scorer.allow_lossy,
                "resize_pred": job.scorer.resize_pred,
            },
            expected=len(pairing.pairs),
        )
        with RunWriter(path, header) as writer:
            skipped = job._into(writer, pairing)
            if not problems and (job.on_error == "skip" or not skipped):
                writer.finish()
        run = Run.open(path)
        job._check(problems, skipped, len(run), len(pairing.pairs))
        return run

    def _paired(self) -> tuple[Pairing, list[Problem]]:
        pairing, problems = self.rule.paired(self.scorer.truth_source, self.scorer.pred_source)
        if self.on_paired is not None and not problems:
            self.on_paired(pairing.pairs)
        return pairing, problems

    def _into(self, writer: RunWriter, pairing: Pairing) -> list[Problem]:
        known = writer.settle(self._files_of(pairing.pairs))
        todo = [pair for pair in pairing.pairs if pair.id not in known]
        for problem in self.rule.left_out(pairing):
            writer.skip(problem)
        skipped: list[Problem] = []
        for pair, result in self._results(todo, len(pairing.pairs), writer.flush_if_due):
            if isinstance(result, ImageCount):
                writer.add(result)
                continue
            skipped += result
            for problem in result:
                writer.skip(problem, pair.id)
        return sorted(skipped, key=lambda p: p.where)

    def _files_of(self, pairs: Sequence[Pair]) -> Callable[[str], ImageFiles | None]:
        by_id = {pair.id: pair for pair in pairs}
        truth, pred = self.scorer.truth_source, self.scorer.pred_source

        def files_of(id: str) -> ImageFiles | None:
            pair = by_id.get(id)
            if pair is None:
                return None
            stamps = truth.stamp(pair.truth), pred.stamp(pair.pred)
            return ImageFiles(pair.truth, pair.pred, *stamps)

        return files_of

    def _results(
        self,
        pairs: Sequence[Pair],
        total: int,
        tick: Callable[[], None] = lambda: None,
    ) -> Iterator[Scored]:
        """Results as they come; ``tick`` is called now and then."""
        done = total - len(pairs)
        with self.engine.open() as engine:
            task = task_of(self.scorer, engine)
            for batch in Dispatcher(engine, task, pairs, stop=self.stop).results():
                for scored in batch:
                    done += 1
                    if self.progress is not None:
                        self.progress(done, total)
                    yield scored
                tick()
        if done < total:
            raise Stopped(done, total)

    def _with_pairing(self, pairing: Pairing) -> Header:
        sources = {"truth": self.scorer.truth_source, "pred": self.scorer.pred_source}
        provenance = {side: shown(source.root) for side, source in sources.items()}
        return replace(self.header, provenance={**provenance, "pairing": pairing.rule})

    def _check(
        self, problems: Sequence[Problem], skipped: Sequence[Problem], images: int, pairs: int
    ) -> None:
        found = [*problems, *(skipped if self.on_error == "stop" else ())]
        # Of few pairs, a shard may hold none: then there is nothing to score, and nothing wrong.
        if pairs and not images and not found:
            found = [*skipped]
        if found:
            raise DataError(found)


def _absolute(scorer: PairScorer) -> PairScorer:
    """The same with full paths, which mean the same wherever the run is read."""

    def absolute(source: Source) -> Source:
        if isinstance(source, LocalFolder):
            return LocalFolder(str(Path(source.root).absolute()))
        if isinstance(source, ArchiveFolder):
            full = (str(Path(part).absolute()) for part in (source.root, source.archive))
            return ArchiveFolder(*full)
        return source

    return replace(
        scorer,
        truth_source=absolute(scorer.truth_source),
        pred_source=absolute(scorer.pred_source),
    )


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
    missing: Literal["error", "skip"] = "error",
    extra: Literal["error", "skip"] = "error",
    on_error: Literal["stop", "skip"] = "stop",
    allow_lossy: bool = False,
    resize_pred: Literal["nearest"] | None = None,
    boundary: BoundaryOptions | bool | None = None,
    run: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    workers: int | None = None,
    processes: int | None = None,
    executor: ExecutorLike | None = None,
    dask: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_paired: Callable[[Sequence[Pair]], None] | None = None,
    name: str = "",
) -> Run:
    """Score a folder of predicted masks against a folder of true ones.

    Parameters
    ----------
    truth, pred : str or path
        Two folders, or two files; archives (``.zip``, ``.tar``, ``.tar.gz``,
        also ``masks.zip/folder``) and addresses that fsspec knows
        (``s3://bucket/folder``) are read in place.
    labels, pred_labels, ignore, exclude, unassigned
        As :class:`segiou.ConfusionMatrix`.
    protocol : Protocol or str
        By which rule the run's reports are made.
    truth_suffix, pred_suffix, key
        As :func:`segiou.masks.pairing.pair_folders`.
    missing, extra : {"error", "skip"}
        What truth without a prediction, or the other way round, is.
    on_error : {"stop", "skip"}
        Whether a pair that cannot be scored stops the run, when all pairs were
        tried, or is left out and listed in ``Run.skipped``.
    allow_lossy, resize_pred
        As :class:`PairScorer`.
    boundary : BoundaryOptions or bool, optional
        What to measure at the boundaries of every pair; True: all of it, as
        :class:`segiou.boundary.BoundaryOptions` has it by default.
    run : str or path, optional
        A run file to keep every finished pair in. If it exists, pairs in it
        whose files are unchanged are not read again.
    shard : (int, int), optional
        ``(i, n)``: score only the i-th of n parts, from 1, of the pairs; parts
        are told by the id alone. Their run files are joined by ``segiou merge``.
    workers, processes, executor, dask, progress
        As :func:`score_pairs`.
    storage_options : mapping, optional
        What fsspec is to know about the addresses; never kept.
    stop : callable, optional
        Asked several times a second; once it says True, what is under way is
        finished, and :class:`Stopped` raised.
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
    Stopped
        If ``stop`` says so.
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If classes or options do not fit together, or the run file is of others.
    """
    options = _class_options(labels, pred_labels, ignore, exclude, unassigned)
    for what, path in (("truth", truth), ("pred", pred), ("run", "" if run is None else run)):
        check_kind(what, path, (str, os.PathLike), "a path or an address")
    check_kind("storage_options", storage_options or {}, Mapping, "a mapping")
    check_kind("name", name, str, "text")
    engine = EngineChoice(workers, processes, executor, dask)
    rule = PairingRule(truth_suffix, pred_suffix, key, missing, extra, shard)
    measured = BoundaryOptions.of(boundary)
    sources = open_sources(truth, pred, storage_options)
    scorer = PairScorer(options, allow_lossy, resize_pred, *sources, measured)
    header = Header(
        options,
        load_protocol(protocol),
        name or shown(Path(str(pred)).name or str(pred)),
        boundary=measured,
    )
    job = Job(scorer, rule, header, engine, on_error, stop, progress, on_paired)
    return job.in_memory() if run is None else job.in_file(run)


def _class_options(
    labels: Labels,
    pred_labels: Labels | None,
    ignore: int | str | Iterable[int | str],
    exclude: int | str | Iterable[int | str],
    unassigned: Unassigned,
) -> ClassOptions:
    options = ClassOptions.of(
        labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
    )
    options.check_memory()
    # Values too far apart to be counted are refused once, and not with every pair.
    Encoding.of_classes(options)
    options.warn_of_ignored_classes(stacklevel=4)
    return options
