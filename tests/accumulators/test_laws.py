"""The laws of every accumulator: empty ones, any split and order, threads, processes, states."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest
from accumulator_kinds import KINDS, NUMBER, counted, counted_each

from segiou.accumulators import Accumulator
from segiou.accumulators.base import TableAccumulator

IMAGES = range(NUMBER)


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
