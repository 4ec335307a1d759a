"""A Dask cluster as an engine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from segiou._support.arguments import check_integer, check_kind
from segiou.masks.pairing import Pair
from segiou.scoring.dispatch import Dispatcher, EngineLostError, Task
from segiou.scoring.pair import PairScorer, Result

__all__ = [
    "Engine",
    "EngineChoice",
    "EngineLostError",
    "ExecutorLike",
    "dask_engine",
    "score_pairs",
]

#: How long to wait for the scheduler to answer.
CONNECT_SECONDS = 10.0


@contextmanager
def dask_engine(address: str) -> Iterator[Engine]:
    """Connect to a running Dask scheduler, and let it go at the end.

    Raises
    ------
    ImportError
        If dask.distributed is not installed.
    ValueError
        If nothing answers at the address, or it has no workers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        msg = "scoring on a Dask cluster needs distributed: pip install 'segiou[dask]'"
        raise ImportError(msg) from error

    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        msg = f"no Dask scheduler answers at {address!r}: {error}"
        raise ValueError(msg) from error
    with client:
        slots = sum(client.nthreads().values())
        if not slots:
            msg = f"the Dask scheduler at {address!r} has no workers; start some: dask worker"
            raise ValueError(msg)
        with client.get_executor() as executor:
            yield Engine(executor, slots, 0.2, True)


Progress = Callable[[int, int], None]
ExecutorLike = Executor | Callable[[], Executor]


@dataclass
class Engine:
    """An executor, and how to use it.

    Attributes
    ----------
    executor : Executor
    slots : int
        Tasks that it works on at once.
    seconds : float
        How long a task should take, so that handing it over costs next to
        nothing.
    remote : bool
        Whether tasks leave this process.
    renew : callable, optional
        Makes a new executor after the first has broken.
    """

    executor: Executor
    slots: int
    seconds: float
    remote: bool
    renew: Callable[[], Executor] | None = None


@dataclass(frozen=True)
class EngineChoice:
    """Which engine is wanted; see :func:`score_pairs`.

    Raises
    ------
    TypeError
        If one is of the wrong kind.
    ValueError
        If more than one is wanted, or a number is less than 1.
    """

    workers: int | None = None
    processes: int | None = None
    executor: ExecutorLike | None = None
    dask: str | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "processes"):
            if (count := getattr(self, name)) is not None:
                check_integer(name, count, 1)
        if self.executor is not None and not callable(self.executor):
            wanted = "a concurrent.futures.Executor, or a function that gives one"
            check_kind("executor", self.executor, Executor, wanted)
        if self.dask is not None:
            check_kind("dask", self.dask, str, "the address of a Dask scheduler")
        chosen = [n for n in ("processes", "executor", "dask") if getattr(self, n) is not None]
        if len(chosen) > 1:
            msg = f"choose one of {' and '.join(chosen)}: each says who does the work"
            raise ValueError(msg)

    @contextmanager
    def open(self) -> Iterator[Engine]:
        """Make the engine, and end it if it is ours."""
        if self.executor is not None:
            yield _given(self.executor, self.workers)
        elif self.dask is not None:
            with dask_engine(self.dask) as engine:
                yield engine
        else:
            own = _threads(self.workers) if self.processes is None else _processes(self.processes)
            try:
                yield own
            finally:
                own.executor.shutdown(wait=True, cancel_futures=True)


def _threads(workers: int | None) -> Engine:
    count = workers or os.cpu_count() or 1
    return Engine(ThreadPoolExecutor(count, thread_name_prefix="segiou"), count, 0.02, False)


def _processes(count: int) -> Engine:
    # A forked copy of a process with threads may hang; a fresh one never does.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")

    def make() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)

    return Engine(make(), count, 0.1, True, make)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _given(executor: ExecutorLike, workers: int | None) -> Engine:
    renew = None if isinstance(executor, Executor) else executor
    made = executor if isinstance(executor, Executor) else executor()
    check_kind("what executor() gives", made, Executor, "a concurrent.futures.Executor")
    known = (getattr(made, name, None) for name in ("_max_workers", "num_workers"))
    slots = workers or next((n for n in known if n), None) or 2 * (os.cpu_count() or 1)
    in_process = isinstance(made, ThreadPoolExecutor)
    return Engine(made, int(slots), 0.02 if in_process else 0.2, not in_process, renew)


class LocalTask:
    """Scores a batch in this process and tells how long it took."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer

    def __call__(self, pairs: Sequence[Pair]) -> tuple[list[Result], float]:
        """Results in the order of the pairs, and seconds."""
        start = time.perf_counter()
        return self._scorer(pairs), time.perf_counter() - start


class RemoteTask:
    """The same in another process, which keeps the scorer from batch to batch."""

    def __init__(self, scorer: PairScorer) -> None:
        self._packed = pickle.dumps(scorer)

    def __call__(self, pairs: Sequence[Pair]) -> tuple[list[Result], float]:
        """Results in the order of the pairs, and seconds."""
        return _unpacked(self._packed)(pairs)


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> LocalTask:
    # From the process that sent the task, never from a file.
    return LocalTask(pickle.loads(packed))


def task_of(scorer: PairScorer, engine: Engine) -> Task:
    """What the engine is to do with each batch."""
    return RemoteTask(scorer) if engine.remote else LocalTask(scorer)


def score_pairs(
    pairs: Iterable[Pair],
    scorer: PairScorer,
    *,
    workers: int | None = None,
    processes: int | None = None,
    executor: ExecutorLike | None = None,
    dask: str | None = None,
    total: int = 0,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Score pairs as they finish, with a bounded number under way.

    Parameters
    ----------
    pairs : iterable of Pair
    scorer : PairScorer
    workers : int, optional
        Threads; as many as processors by default. With an executor: how many
        tasks it works on at once.
    processes : int, optional
        Processes instead of threads.
    executor : concurrent.futures.Executor or callable, optional
        Used instead, and left open. A callable that gives one is asked again
        if the first breaks.
    dask : str, optional
        Address of a Dask scheduler to use instead.
    total : int
        Number of pairs, for ``progress``.
    progress : callable, optional
        Called with pairs done and total.

    Raises
    ------
    EngineLostError
        If an executor breaks and cannot be made again.
    """
    todo = list(pairs)
    choice = EngineChoice(workers, processes, executor, dask)
    with choice.open() as engine:
        done = 0
        for scored in Dispatcher(engine, task_of(scorer, engine), todo).results():
            for _, result in scored:
                done += 1
                if progress is not None:
                    progress(done, total or len(todo))
                yield result
