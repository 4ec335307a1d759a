"""Batches out to an executor and results back, whatever happens to the workers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from dataclasses import dataclass

from segiou._support.files import Problem
from segiou.masks.pairing import Pair
from segiou.scoring.pair import Result

__all__ = ["Dispatcher", "Engine", "EngineLostError", "Scored", "Task"]

#: Seconds between two calls of ``stop``, at most.
_TICK = 0.2
_MAX_BATCH = 1024
_LEAST_SECONDS = 0.003
#: A batch that was lost so often is split, and each pair goes alone.
_ALONE = 2
#: So often in a row workers may die before anything is done.
_MOST_BREAKS = 8

Scored = tuple[Pair, Result]
Timed = tuple[list[Result], float]
Task = Callable[[Sequence[Pair]], Timed]


class EngineLostError(RuntimeError):
    """The executor broke, and there is no way to make another."""


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


@dataclass
class _Batch:
    pairs: Sequence[Pair]
    losses: int = 0


class Dispatcher:
    """Hands out batches, of a size that suits the engine, and repeats lost ones.

    A batch whose worker dies goes out again. Batches lost twice are taken
    apart and their pairs go out one at a time, so that a pair that kills its
    worker is found, reported, and takes no other with it.

    Parameters
    ----------
    engine : Engine
    task : callable
        Batch → results in order, and seconds.
    pairs : sequence of Pair
    stop : callable, optional
        Called now and then; once it returns True, running batches are finished
        and no other is begun.
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
        """Results as they come; an empty list now and then while none come."""
        try:
            while True:
                if self._stop():
                    self._withdraw()
                else:
                    self._fill()
                if not self._running and not self._ready and not self._again:
                    return
                finished = wait(self._running, _TICK, FIRST_COMPLETED).done
                for future in finished:
                    self._ready += self._results_of(future)
                yield self._ready
                self._ready = []
        finally:
            for future in self._running:
                future.cancel()

    def _withdraw(self) -> None:
        """Take back what is not begun yet."""
        self._again.clear()
        for future in [future for future in self._running if future.cancel()]:
            del self._running[future]

    def _fill(self) -> None:
        while len(self._running) < 2 * self._engine.slots:
            if any(batch.losses >= _ALONE for batch in self._running.values()):
                return
            batch = self._batch()
            if batch is None:
                return
            try:
                future = self._engine.executor.submit(self._task, batch.pairs)
            except BrokenExecutor as error:
                self._again.appendleft(batch)
                self._replace_executor(error)
                return
            else:
                self._running[future] = batch

    def _batch(self) -> _Batch | None:
        if self._again:
            # A suspect runs when nothing else does.
            if self._again[0].losses >= _ALONE and self._running:
                return None
            return self._again.popleft()
        size = self._size()
        pairs = self._pairs[self._next : self._next + size]
        self._next += len(pairs)
        return _Batch(pairs) if pairs else None

    def _size(self) -> int:
        wanted = self._engine.seconds / self._seconds_a_pair if self._seconds_a_pair else _MAX_BATCH
        # Small batches at the end, so that no worker is left with a large one.
        left = len(self._pairs) - self._next
        fair = math.ceil(left / (4 * self._engine.slots))
        # But none so small that handing it over takes longer than doing it.
        fair = max(fair, int(_LEAST_SECONDS / self._seconds_a_pair) if self._seconds_a_pair else 1)
        return max(1, min(int(wanted), fair, _MAX_BATCH))

    def _results_of(self, future: Future[Timed]) -> list[Scored]:
        batch = self._running.pop(future, None)
        if batch is None:
            return []
        try:
            results, seconds = future.result()
        except BrokenExecutor as error:
            self._running[future] = batch
            self._replace_executor(error)
            return []
        except CancelledError as error:
            msg = "the executor dropped its tasks: did the cluster go away?"
            raise EngineLostError(msg) from error
        except Exception as error:  # noqa: BLE001 - whatever an executor raises for a lost task
            return self._lost(batch, f"{type(error).__name__}: {error}")
        self._breaks = 0
        self._learn(seconds / len(batch.pairs))
        return list(zip(batch.pairs, results, strict=True))

    def _learn(self, seconds: float) -> None:
        known = self._seconds_a_pair
        self._seconds_a_pair = seconds if known == math.inf else 0.8 * known + 0.2 * seconds

    def _lost(self, batch: _Batch, why: str) -> list[Scored]:
        batch.losses += 1
        if batch.losses > _ALONE:
            text = f"could not be scored, three times over: {why} (out of memory?)"
            return [(pair, [Problem(pair.pred, text)]) for pair in batch.pairs]
        if batch.losses == _ALONE:
            self._again.extend(_Batch([pair], batch.losses) for pair in batch.pairs)
        else:
            self._again.append(batch)
        return []

    def _replace_executor(self, error: BrokenExecutor) -> None:
        """Go on with a new executor; everything that was under way is lost."""
        self._breaks += 1
        if self._engine.renew is None:
            msg = (
                f"the executor broke ({error}) and cannot be made again here; what is in the run "
                "file is kept: run again with a new executor, or give a callable that makes one"
            )
            raise EngineLostError(msg) from error
        if self._breaks > _MOST_BREAKS:
            msg = f"workers died {self._breaks} times in a row before anything was done: {error}"
            raise EngineLostError(msg) from error
        lost = list(self._running.values())
        self._running.clear()
        for batch in lost:
            self._ready += self._lost(batch, "its worker died")
        self._engine.executor.shutdown(wait=False, cancel_futures=True)
        self._engine.executor = self._engine.renew()
