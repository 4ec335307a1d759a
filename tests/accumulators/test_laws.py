"""The laws of every accumulator: empty ones, any split and order, threads, processes, states."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from copy import copy, deepcopy
from itertools import permutations
from threading import Event, Thread

import numpy as np
import pytest
from accumulator_kinds import KINDS, NUMBER, counted, counted_each

from segiou._support.locks import _ALL
from segiou.accumulators import Accumulator
from segiou.accumulators.base import TableAccumulator

IMAGES = range(NUMBER)


def subclass_of(kind):
    """A subclass that can be pickled."""
    own = type(f"Own{kind.__name__}", (kind,), {"__module__": __name__})
    return globals().setdefault(own.__name__, own)


OWN = {name: subclass_of(type(KINDS[name].make())) for name in KINDS}


@pytest.fixture(params=KINDS)
def name(request):
    return request.param


@pytest.fixture
def whole(name):
    """What all images count to at once."""
    return counted(name, IMAGES)


def test_empty_ones_change_nothing(name, whole):
    make = KINDS[name].make
    assert make().merge() == make()
    assert make().merge(whole, make()) == whole
    assert whole != make()


@pytest.mark.few(4)
def test_any_split_in_any_order_is_the_whole(name, whole):
    for cut in range(NUMBER + 1):
        shuffled = np.random.default_rng(cut).permutation(NUMBER).tolist()
        parts = counted(name, shuffled[:cut]), counted(name, shuffled[cut:])
        assert KINDS[name].make().merge(*parts) == whole
        assert parts[1].merge(parts[0]) == whole


def test_merging_is_associative_and_leaves_the_others_alone(name, whole):
    a, b, c = parts = [counted(name, IMAGES[start::3]) for start in range(3)]
    before = [pickle.loads(pickle.dumps(part)) for part in parts]
    for order in permutations(parts):
        assert KINDS[name].make().merge(*order) == whole
    grouped = KINDS[name].make().merge(b, c)
    assert KINDS[name].make().merge(a, grouped) == whole
    assert parts == before
    KINDS[name].update(a.merge(b), np.random.default_rng(9))
    assert b == before[1]
    a = before[0]
    assert (a + b) + c == a + (b + c) == c + (b + a) == sum([a, b, c]) == whole
    if isinstance(a, TableAccumulator):
        assert a.copy().merge(a).pairs == 2 * a.pairs
    total = a.copy()
    total += b
    assert total == a + b != a


@pytest.mark.few(3)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_while_a_thread_holds_all_locks_goes_on(name, whole):
    is_held, is_done = Event(), Event()

    def hold():
        with ExitStack() as stack:
            for lockable in [*_ALL]:
                stack.enter_context(lockable.lock)
            is_held.set()
            is_done.wait()

    thread = Thread(target=hold)
    thread.start()
    is_held.wait()
    if not (child := os.fork()):
        signal.alarm(60)
        KINDS[name].update(whole, np.random.default_rng(9))
        os._exit(whole != counted(name, [*IMAGES, 9]))
    is_done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("again", [copy, deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_subclasses_keep_their_own_attributes(name, whole, again):
    assert "own" not in whole.__getstate__()
    whole.__class__ = OWN[name]
    whole.note = "a"
    found = again(whole)
    assert (type(found), found.note, found) == (OWN[name], "a", whole)
    assert (found.copy().note, found.empty().note) == ("a", "a")


@pytest.mark.gate
def test_threads_lose_nothing(name):
    often, images = 8, [*IMAGES] * 8
    found, before = KINDS[name].make(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            update = KINDS[name].update
            done = [threads.submit(update, found, np.random.default_rng(i)) for i in images]
            _ = [one.result() for one in done]
    finally:
        sys.setswitchinterval(before)
    assert found == KINDS[name].make().merge(*[counted(name, IMAGES)] * often)


@pytest.fixture(scope="module")
def parts_of_processes():
    """Parts of all kinds, from this process and another."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        other = process.submit(counted_each, IMAGES[::2])
        return counted_each(IMAGES[1::2]), other.result()


@pytest.mark.gate
def test_processes_add_up(name, whole, parts_of_processes):
    assert KINDS[name].make().merge(*(part[name] for part in parts_of_processes)) == whole


def test_pickles_are_the_same_and_go_on(name, whole):
    again = pickle.loads(pickle.dumps(whole))
    assert again == whole
    KINDS[name].update(again, np.random.default_rng(9))
    assert again == counted(name, [*IMAGES, 9])


def test_states_are_the_same_and_go_on(name, whole):
    state = json.loads(json.dumps(whole.state_dict()))
    for one in KINDS[name].make().load_state_dict(state), type(whole).from_state_dict(state):
        assert one == whole
        assert json.loads(json.dumps(one.state_dict())) == state
        KINDS[name].update(one, np.random.default_rng(9))
        assert one == counted(name, [*IMAGES, 9])
    assert json.loads(json.dumps(whole.state_dict())) == state
    with pytest.raises(ValueError, match="options"):
        KINDS[name].other().load_state_dict(state)


def test_a_reset_forgets_counts_and_keeps_options(name, whole):
    assert whole.reset() == KINDS[name].make()
    KINDS[name].update(whole, np.random.default_rng(0))
    assert whole == counted(name, [0])


def test_other_options_and_kinds_are_refused_and_change_nothing(name, whole):
    before = pickle.loads(pickle.dumps(whole))
    with pytest.raises(ValueError, match="cannot merge "):
        whole.merge(counted(name, [0]), KINDS[name].other())
    with pytest.raises(TypeError, match="not int"):
        whole.merge(3)
    assert whole == before


def test_every_accumulator_is_held_to_the_laws():
    def kinds(base):
        return {base}.union(*map(kinds, base.__subclasses__()))

    ours = {kind for kind in kinds(Accumulator) if kind.__module__.startswith("segiou.")}
    assert {type(KINDS[name].make()) for name in KINDS} == {
        kind for kind in ours if not kind.__abstractmethods__
    }
