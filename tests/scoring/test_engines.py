"""Who does the work makes no difference to what comes out, also when workers die."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import pytest
from command import SCORE, segiou as segiou_command
from deadly_tasks import Deadly
from mask_files import score_pairs

import segiou
from segiou._support.files import Problem
from segiou.masks import Pair
from segiou.runs import Header, ImageCount
from segiou.scoring import ExecutorLostError, Job, PairScorer, engines
from segiou.scoring.engines import Dispatcher, Engine, open_engine, task_of

scored = partial(score_pairs, labels=4)


@pytest.mark.parametrize("options", [{"workers": 1}, {"workers": 7}, {"processes": 2}])
@pytest.mark.gate
def test_threads_and_processes_agree(masks, expected, options):
    assert scored(masks, **options).total() == expected


def test_any_executor_does(masks, expected):
    with ThreadPoolExecutor(3) as executor:
        assert scored(masks, executor=executor).total() == expected
        # It is left open.
        assert executor.submit(int).result() == 0


class Lazily(Executor):
    """Does everything when it is asked to, as MPI's executor of one rank does."""

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as executors do
            future.set_exception(error)
        return future


def test_an_executor_of_ones_own(masks, expected):
    assert scored(masks, executor=Lazily()).total() == expected


def test_a_python_that_cannot_start_threads_works_all_the_same(masks, expected, monkeypatch):
    def refuse(_):
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(engines.threading.Thread, "start", refuse)
    assert scored(masks).total() == expected


@pytest.mark.gate
def test_a_temporary_folder_that_is_too_long_for_a_socket_is_named(tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    done = segiou_command(*SCORE, "--processes", 2, env={"TMPDIR": str(folder)})
    # Newer Pythons find a shorter folder themselves.
    assert done.returncode == 0 or "Set TMPDIR to a shorter path" in done.stderr


def test_loky(masks, expected, required):
    loky = required("loky")
    assert (
        scored(masks, executor=lambda: loky.get_reusable_executor(max_workers=2)).total()
        == expected
    )
    loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)


def test_two_engines_at_once_are_refused(masks):
    with pytest.raises(ValueError, match="processes and executor are mutually exclusive"):
        scored(masks, processes=2, executor=Lazily())
    with pytest.raises(ValueError, match="processes must be at least 1"):
        scored(masks, processes=0)


def test_progress_counts_every_pair(masks):
    seen = []
    scored(masks, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 40) for i in range(1, 41)]


def two_processes():
    options = segiou.score([[[0]]], [[[0]]], labels=4).options
    return open_engine(Job(truth="", pred="", options=options, processes=2))


def dispatched(task, engine, count=30):
    pairs = [Pair(str(i), "", "") for i in range(count)]
    return [
        (pair.id, result[0].text)
        for batch in Dispatcher(engine, task, pairs).results()
        for pair, result in batch
    ]


@pytest.mark.gate
def test_what_a_dying_worker_held_is_done_again(tmp_path):
    with two_processes() as engine:
        found = dispatched(Deadly({"3": tmp_path / "once"}), engine)
    assert sorted(found) == sorted((str(i), "done") for i in range(30))


@pytest.mark.gate
def test_a_pair_that_kills_its_worker_is_found_and_takes_no_other_with_it():
    with two_processes() as engine:
        found = dict(dispatched(Deadly({"3": None}), engine))
    assert len(found) == 30
    assert {id for id, text in found.items() if text != "done"} == {"3"}
    assert "failed three times: its worker died" in found["3"]


def test_a_broken_executor_that_cannot_be_made_again_is_an_error():
    with ProcessPoolExecutor(1) as executor:
        engine = Engine(executor, 1, 0.1, True)
        with pytest.raises(ExecutorLostError, match="pass a callable that creates one"):
            dispatched(Deadly({"0": None}), engine, 3)


class Broken(Executor):
    def submit(self, fn, /, *args, **kwargs):
        msg = "no workers"
        raise BrokenProcessPool(msg)


def test_workers_that_never_start_are_an_error_and_no_endless_loop():
    engine = Engine(Broken(), 2, 0.1, True, Broken)
    with pytest.raises(ExecutorLostError, match="died 9 times in a row"):
        dispatched(len, engine)


class Failing(Lazily):
    """Loses its first tasks with an error of its own."""

    def __init__(self, losses: int) -> None:
        self.losses = losses

    def submit(self, fn, /, *args, **kwargs):
        self.losses -= 1
        if self.losses < 0:
            return super().submit(fn, *args, **kwargs)
        future: Future = Future()
        future.set_exception(RuntimeError("lost on the way"))
        return future


@pytest.mark.parametrize("losses", [1, 2, 4])
def test_tasks_that_an_executor_loses_go_out_again(losses):
    found = dispatched(Deadly({}), Engine(Failing(losses), 1, 0.1, False), 5)
    assert sorted(found) == [(str(i), "done") for i in range(5)]


def test_pairs_that_are_always_lost_are_problems():
    found = dispatched(Deadly({}), Engine(Failing(10**6), 1, 0.1, False), 5)
    assert len(found) == 5
    assert {text for _, text in found} == {
        "failed three times: RuntimeError: lost on the way (out of memory?)"
    }


def test_batches_grow_until_handing_them_over_costs_nothing():
    sizes = []

    def quick(batch):
        sizes.append(len(batch))
        return [[Problem("", "done")] for _ in batch], 1e-5 * len(batch)

    assert len(dispatched(quick, Engine(Lazily(), 2, 0.02, False), 10_000)) == 10_000
    assert max(sizes) > 500
    # At the end smaller ones, so that all workers end together, but none that is over
    # before the next is handed out.
    assert sizes[-2] < 500
    assert len(sizes) < 100


def test_batches_shrink_at_the_end_so_that_workers_end_together():
    sizes = []

    def ordinary(batch):
        sizes.append(len(batch))
        return [[Problem("", "done")] for _ in batch], 0.004 * len(batch)

    dispatched(ordinary, Engine(Lazily(), 2, 0.02, False), 100)
    assert max(sizes) == 5
    assert sizes[-1] == 1


def test_slow_pairs_go_one_at_a_time():
    sizes = []

    def slow(batch):
        sizes.append(len(batch))
        return [[Problem("", "done")] for _ in batch], 3.0 * len(batch)

    dispatched(slow, Engine(Lazily(), 2, 0.02, False), 50)
    assert set(sizes) == {1}


def test_the_task_for_other_processes_carries_the_scorer(masks):
    scorer = PairScorer(Header(segiou.score([[[0]]], [[[0]]], labels=4).options))
    pair = Pair("00", f"{masks}/truth/00.png", f"{masks}/pred/00.png")
    (result,), seconds = task_of(scorer, remote=True)([pair])
    assert isinstance(result, ImageCount)
    assert seconds > 0


@pytest.fixture(scope="module")
def cluster(required):
    """A Dask cluster of two worker processes on this machine."""
    distributed = required("distributed")
    import logging
    import warnings

    logging.getLogger("distributed").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            yield cluster


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_by_its_address(masks, expected, cluster):
    assert scored(masks, dask=cluster.scheduler_address).total() == expected


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_dask_worker_that_is_killed_loses_nothing(masks, expected, cluster, tmp_path):
    from distributed import Client

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        first = client.submit(os.getpid, pure=False).result()
        assert first != os.getpid()
        killed = []

        def progress(done: int, total: int) -> None:
            if not killed:
                killed.append(done)
                os.kill(first, signal.SIGKILL)

        with client.get_executor() as executor:
            run = scored(
                masks, executor=executor, workers=2, run=tmp_path / "r.sqlite", progress=progress
            )
        assert killed
        assert run.total() == expected
        assert len(run) == 40


def test_no_dask_scheduler_there_is_a_clear_error(masks, required, monkeypatch):
    required("distributed")

    monkeypatch.setattr(engines, "CONNECT_SECONDS", 0.3)
    with pytest.raises(
        ValueError, match=r"cannot connect to a Dask scheduler at 'tcp://127.0.0.1:9'"
    ):
        scored(masks, dask="tcp://127.0.0.1:9")
