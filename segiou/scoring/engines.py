"""Who does the work: threads, processes, a Dask cluster, or any executor."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from multiprocessing import forkserver, resource_tracker
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_kind
from segiou.masks.pairing import Pair
from segiou.scoring.dispatch import Engine, Task
from segiou.scoring.pair import PairScorer, Result

if TYPE_CHECKING:
    from segiou.scoring.job import Job

__all__ = ["ExecutorLike", "check_engine", "open_engine", "task_of"]

#: How long to wait for the scheduler to answer.
CONNECT_SECONDS = 10.0


ExecutorLike = Executor | Callable[[], Executor]


def check_engine(job: Job, executor: ExecutorLike | None) -> None:
    """Refuse what is no executor, and more than one engine.

    Raises
    ------
    TypeError
        If the executor is something else.
    ValueError
        If more than one engine is wanted.
    """
    if executor is not None and not callable(executor):
        wanted = "a concurrent.futures.Executor, or a function that gives one"
        check_kind("executor", executor, Executor, wanted)
    engines = {"processes": job.processes, "executor": executor, "dask": job.dask}
    chosen = [name for name, engine in engines.items() if engine is not None]
    if len(chosen) > 1:
        msg = f"choose one of {' and '.join(chosen)}: each says who does the work"
        raise ValueError(msg)


@contextmanager
def open_engine(job: Job, executor: ExecutorLike | None = None) -> Iterator[Engine]:
    """Make the engine, and end it if it was made here."""
    if executor is not None:
        yield _given(executor, job.workers)
    elif job.dask is not None:
        with _dask_engine(job.dask) as engine:
            yield engine
    else:
        own = _threads(job.workers) if job.processes is None else _processes(job.processes)
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
        if context.get_start_method() == "forkserver":
            # First what it starts itself, which would unblock the signal.
            resource_tracker.ensure_running()
            with _without_interrupts():
                # Workers are forked from it, and inherit what is blocked.
                forkserver.ensure_running()
        return ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)

    return Engine(make(), count, 0.1, True, make)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that never see Ctrl-C, which a terminal sends to all of them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, where it was not blocked before; and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _dask_engine(address: str) -> Iterator[Engine]:
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


def _given(executor: ExecutorLike, workers: int | None) -> Engine:
    renew = None if isinstance(executor, Executor) else executor
    made = executor if isinstance(executor, Executor) else executor()
    check_kind("what executor() gives", made, Executor, "a concurrent.futures.Executor")
    known = (getattr(made, name, None) for name in ("_max_workers", "num_workers"))
    slots = workers or next((n for n in known if n), None) or 2 * (os.cpu_count() or 1)
    in_process = isinstance(made, ThreadPoolExecutor)
    return Engine(made, int(slots), 0.02 if in_process else 0.2, not in_process, renew)


def task_of(scorer: PairScorer, *, remote: bool) -> Task:
    """What an engine is to do with each batch."""
    if remote:
        return partial(_score_packed, pickle.dumps(scorer))
    return partial(_score_timed, scorer)


def _score_timed(scorer: PairScorer, pairs: Sequence[Pair]) -> tuple[list[Result], float]:
    """Results in the order of the pairs, and seconds."""
    start = time.perf_counter()
    return scorer(pairs), time.perf_counter() - start


def _score_packed(packed: bytes, pairs: Sequence[Pair]) -> tuple[list[Result], float]:
    return _score_timed(_unpacked(packed), pairs)


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> PairScorer:
    # From the process that sent the task, never from a file. Kept from batch to batch.
    scorer: PairScorer = pickle.loads(packed)
    return scorer
