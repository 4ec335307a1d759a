"""Two folders → a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from segiou._arguments import check_kind
from segiou.boundary import BoundaryOptions
from segiou.classes import ClassOptions, Labels
from segiou.counting.pairs import Unassigned
from segiou.pairing import Pair
from segiou.protocols import Protocol, load_protocol
from segiou.run import Run
from segiou.runs import Header
from segiou.runs.tables import shown
from segiou.scoring.engines import EngineChoice, ExecutorLike, Progress
from segiou.scoring.job import Job
from segiou.scoring.pair import PairScorer
from segiou.scoring.pairings import PairingRule, open_sources

__all__ = ["score_folder"]


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
        As :func:`segiou.pairing.pair_folders`.
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
    options.encoding()
    options.warn_of_ignored_classes(stacklevel=4)
    return options
