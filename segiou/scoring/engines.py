"""Parallel engines (threads, processes, Dask, any executor) and batching."""

from __future__ import annotations

import math
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_kind
from segiou._support.files import Problem
from segiou._support.optional import (
    ForeignExitError,
    import_extra,
    leave_warning_to_parent,
    warn_missing,
)
from segiou.masks.sources.pairing import Pair
from segiou.scoring.pair import PairScorer, Result

if TYPE_CHECKING:
    from segiou.scoring.job import Job

#: Maximum seconds between two calls of ``stop``.
_TICK = 0.2
_MAX_BATCH = 1024
_LEAST_SECONDS = 0.005
#: A batch that was lost this often is split into single pairs.
_ALONE = 2
#: Files that are open in addition to the two pipes of each process.
_OPEN_FILES, _PIPES = 32, 2
#: Workers may die this often in a row without any result.
_MOST_BREAKS = 8

Scored = tuple[Pair, Result]
Timed = tuple[list[Result], float]
Task = Callable[[Sequence[Pair]], Timed]


class ExecutorLostError(RuntimeError):
    """The executor failed and cannot be recreated."""


@dataclass
class Engine:
    """An executor and how to use it."""

    executor: Executor
    #: Number of concurrent tasks.
    slots: int
    #: Target duration of a task, long enough to make submission negligible.
    seconds: float
    #: Whether tasks run in other processes.
    remote: bool
    #: Creates a new executor after a failure.
    renew: Callable[[], Executor] | None = None


@dataclass
class _Batch:
    pairs: Sequence[Pair]
    losses: int = 0


class Dispatcher:
    """Submits batches of suitable size and retries lost ones.

    A batch whose worker dies is retried. Batches lost twice are split and their
    pairs submitted one at a time, so that a pair that kills its worker is
    identified and reported without losing others. Once ``stop`` returns True,
    running batches are finished and no others are started.
    """

    def __init__(
        self,
        engine: Engine,
        task: Task,
        pairs: Sequence[Pair],
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine, self._task, self._stop = engine, task, stop
        self._pairs = pairs
        self._next = 0
        self._again: deque[_Batch] = deque()
        self._running: dict[Future[Timed], _Batch] = {}
        self._seconds_a_pair = math.inf
        self._ready: list[Scored] = []
        self._breaks = 0

    def results(self) -> Iterator[list[Scored]]:
        """Yield results as they arrive, and an empty list at intervals while waiting."""
        try:
            while True:
                if self._stop():
                    # Cancel batches that have not started.
                    self._again.clear()
                    for future in [future for future in self._running if future.cancel()]:
                        del self._running[future]
                else:
                    self._fill()
                if not self._running and not self._ready and not self._again:
                    return
                for future in wait(self._running, _TICK, FIRST_COMPLETED).done:
                    self._take(future)
                yield self._ready
                self._ready = []
        finally:
            for future in self._running:
                future.cancel()

    def _fill(self) -> None:
        while len(self._running) < 2 * self._engine.slots:
            if any(batch.losses >= _ALONE for batch in self._running.values()):
                return
            if (batch := self._batch()) is None:
                return
            try:
                future = self._engine.executor.submit(self._task, batch.pairs)
            except BrokenExecutor as error:
                self._again.appendleft(batch)
                self._replace_executor(error)
                return
            self._running[future] = batch

    def _batch(self) -> _Batch | None:
        if self._again:
            # A suspect runs alone.
            if self._again[0].losses >= _ALONE and self._running:
                return None
            return self._again.popleft()
        left = len(self._pairs) - self._next
        wanted = int(self._engine.seconds / self._seconds_a_pair)
        # Batches of several workers shrink towards the end, so that none is left with a large one,
        # but not so far that submitting takes longer than scoring.
        least = int(_LEAST_SECONDS / self._seconds_a_pair)
        fair = max(math.ceil(left / (3 * self._engine.slots)), least)
        fair = left if self._engine.slots == 1 else fair
        pairs = self._pairs[self._next : self._next + max(1, min(wanted, fair, _MAX_BATCH))]
        self._next += len(pairs)
        return _Batch(pairs) if pairs else None

    def _take(self, future: Future[Timed]) -> None:
        if future not in self._running:  # lost with its executor
            return
        try:
            results, seconds = future.result()
        except BrokenExecutor as error:
            self._replace_executor(error)
        except CancelledError as error:
            msg = "the executor cancelled its tasks; is the cluster still running?"
            raise ExecutorLostError(msg) from error
        except ForeignExitError:
            raise
        except Exception as error:  # noqa: BLE001 - executors raise anything for a lost task
            self._lost(self._running.pop(future), f"{type(error).__name__}: {error}")
        else:
            batch = self._running.pop(future)
            self._breaks = 0
            # Clocks with low resolution may measure no time.
            known, took = self._seconds_a_pair, max(1e-9, seconds / len(batch.pairs))
            self._seconds_a_pair = took if known == math.inf else (known + took) / 2
            self._ready += zip(batch.pairs, results, strict=True)

    def _lost(self, batch: _Batch, why: str) -> None:
        batch.losses += 1
        if batch.losses > _ALONE:
            text = f"failed three times: {why} (out of memory?)"
            self._ready += [(pair, [Problem(pair.pred, text)]) for pair in batch.pairs]
        elif batch.losses == _ALONE:
            self._again.extend(_Batch([pair], batch.losses) for pair in batch.pairs)
        else:
            self._again.append(batch)

    def _replace_executor(self, error: BrokenExecutor) -> None:
        """Continue with a new executor; running batches are lost."""
        self._breaks += 1
        if self._engine.renew is None:
            msg = (
                f"the executor failed ({error}) and cannot be recreated; finished pairs are in "
                "the run file. Rerun with a new executor, or pass a callable that creates one"
            )
            raise ExecutorLostError(msg) from error
        if self._breaks > _MOST_BREAKS:
            msg = f"workers died {self._breaks} times in a row without any result: {error}"
            raise ExecutorLostError(msg) from error
        lost = list(self._running.values())
        self._running.clear()
        for batch in lost:
            self._lost(batch, "its worker died")
        self._engine.executor.shutdown(wait=False, cancel_futures=True)
        self._engine.executor = self._engine.renew()


#: Timeout for connecting to the scheduler.
CONNECT_SECONDS = 10.0


ExecutorLike = Executor | Callable[[], Executor]


def check_engine(job: Job, executor: ExecutorLike | None) -> None:
    """Validate the executor, and reject more than one engine."""
    if executor is not None and not callable(executor):
        wanted = "a concurrent.futures.Executor, or a function that returns one"
        check_kind("executor", executor, Executor, wanted)
    engines = {"processes": job.processes, "executor": executor, "dask": job.dask}
    chosen = [name for name, engine in engines.items() if engine is not None]
    if len(chosen) > 1:
        msg = f"{' and '.join(chosen)} are mutually exclusive; pass one"
        raise ValueError(msg)


@contextmanager
def open_engine(job: Job, executor: ExecutorLike | None = None) -> Iterator[Engine]:
    """Create the engine, and shut it down if it was created here."""
    if executor is not None:
        yield _engine_of(executor, job.workers)
    elif job.dask is not None:
        with _dask_engine(job.dask) as engine:
            yield engine
    else:
        created = _threads(job.workers) if job.processes is None else _processes(job.processes)
        try:
            yield created
        finally:
            created.executor.shutdown(wait=True, cancel_futures=True)


class _AtOnce(Executor):
    """Runs tasks in the calling thread, for platforms without threads such as browsers."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **options))
        except Exception as error:  # noqa: BLE001 - tasks may raise anything
            done.set_exception(error)
        return done


def _threads(workers: int | None) -> Engine:
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return Engine(_AtOnce(), 1, 0.1, False)
    count = workers or os.cpu_count() or 1
    return Engine(ThreadPoolExecutor(count, thread_name_prefix="segiou"), count, 0.1, False)


def _processes(count: int) -> Engine:
    # Inside, because threads do not need them.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    _check_open_files(count)
    # Forking a process with threads can deadlock.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")

    def make() -> ProcessPoolExecutor:
        if context.get_start_method() == "forkserver":
            _start_fork_server()
        warn_missing()  # once, not in every process
        return ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)

    return Engine(make(), count, 0.1, True, make)


def _check_open_files(count: int) -> None:
    """Reject more processes than this process has file handles for; the fork server crashes."""
    if sys.platform == "win32":
        return
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _OPEN_FILES + _PIPES * count
    if resource.RLIM_INFINITY != allowed < needed:
        msg = (
            f"{count} processes need {needed} open files, but only {allowed} are allowed (ulimit "
            "-n). Allow more, start fewer processes, or use threads"
        )
        raise ValueError(msg)


def _start_fork_server() -> None:
    from multiprocessing import forkserver, resource_tracker

    # ensure_running() of the fork server starts the tracker, which unblocks the signal.
    resource_tracker.ensure_running()
    # Workers inherit the blocked signal, so they never see Ctrl-C, which a terminal sends to all
    # processes.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    except OSError as error:
        if "path too long" not in str(error):  # of its socket
            raise
        folder = tempfile.gettempdir()
        msg = (
            f"processes cannot be started: the path of the temporary folder {folder!r} is too long "
            f"({len(folder)} characters). Set TMPDIR to a shorter path"
        )
        raise ValueError(msg) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Leave Ctrl-C and warnings of the installation to the parent process, and exit with it."""
    leave_warning_to_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _dask_engine(address: str) -> Iterator[Engine]:
    """Connect to a running Dask scheduler."""
    distributed = import_extra("distributed", "scoring on a Dask cluster needs distributed", "dask")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        msg = f"cannot connect to a Dask scheduler at {address!r}: {error}"
        raise ValueError(msg) from error
    with client:
        slots = sum(client.nthreads().values())
        if not slots:
            msg = f"the Dask scheduler at {address!r} has no workers; start one with: dask worker"
            raise ValueError(msg)
        with client.get_executor() as executor:
            yield Engine(executor, slots, 0.2, True)


def _engine_of(executor: ExecutorLike, workers: int | None) -> Engine:
    renew = None if isinstance(executor, Executor) else executor
    created = executor if isinstance(executor, Executor) else executor()
    check_kind("the result of executor()", created, Executor, "a concurrent.futures.Executor")
    known = (getattr(created, name, None) for name in ("_max_workers", "num_workers"))
    slots = workers or next((n for n in known if n), None) or 2 * (os.cpu_count() or 1)
    in_process = isinstance(created, ThreadPoolExecutor)
    return Engine(created, int(slots), 0.1 if in_process else 0.2, not in_process, renew)


def task_of(scorer: PairScorer, *, remote: bool) -> Task:
    """The task that an engine runs for each batch."""
    return partial(_score, pickle.dumps(scorer) if remote else scorer)


def _score(sent: PairScorer | bytes, pairs: Sequence[Pair]) -> Timed:
    """Results in the order of the pairs, and seconds."""
    scorer: PairScorer = _unpacked(sent) if isinstance(sent, bytes) else sent
    start = time.perf_counter()
    return scorer(pairs), time.perf_counter() - start


#: Cached between batches. The pickle comes from the parent process, never from a file.
_unpacked = lru_cache(maxsize=4)(pickle.loads)
