"""Pairs of ids: by hand, against sorting, and far outside of what fits in a table."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from instruction_sets import loops_here

from segiou.counting import count_id_pairs, id_pairs
from segiou.counting.id_pairs import mapped

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


COMPILED = id_pairs._id_pairs


def with_loops(loops):
    """The compiled routine with loops for one instruction set."""

    def count_pairs(*given):
        return COMPILED.count_pairs(*given, loops)

    return SimpleNamespace(count_pairs=count_pairs, count_overlaps=COMPILED.count_overlaps)


def count_nothing(loops):
    with_loops(loops).count_pairs(b"", 1, False, b"", 1, False)


LOOPS = ["c"] if COMPILED is None else loops_here(count_nothing)


@pytest.fixture(params=[*LOOPS, "numpy"], autouse=True)
def backend(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(id_pairs, "_id_pairs", None)
    elif id_pairs._id_pairs is None:
        pytest.skip("the compiled routine was not built")
    else:
        monkeypatch.setattr(id_pairs, "_id_pairs", with_loops(request.param))
    return request.param


def by_hand(truth, pred):
    """The definition, pixel by pixel."""
    counts = {}
    for pair in zip(np.ravel(truth).tolist(), np.ravel(pred).tolist(), strict=True):
        counts[pair] = counts.get(pair, 0) + 1
    return [(*pair, counts[pair]) for pair in sorted(counts)]


def rows(found):
    return list(zip(*(column.tolist() for column in found), strict=True))


def test_counted_by_hand():
    truth = [[7, 7, 0], [7, 9, 9]]
    pred = [[1, 1, 0], [2, 2, 2]]
    assert rows(count_id_pairs(truth, pred)) == [(0, 0, 1), (7, 1, 2), (7, 2, 1), (9, 2, 2)]
    assert rows(count_id_pairs(truth, pred, ignore=[7])) == [(0, 0, 1), (9, 2, 2)]


@pytest.mark.parametrize("base", [1 << 60, 1 << 63])
def test_ignored_ids_are_exact_whatever_stands_beside_them(base):
    truth = np.array([base, base + 1], np.uint64)
    found = count_id_pairs(truth, [0, 0], ignore=[base, -1, 2**64 - 1, 2**70])
    assert rows(found) == [(base + 1, 0, 1)]


@pytest.mark.parametrize(("ignore", "problem"), [(0, "a sequence of ids"), (["0"], "an integer")])
def test_ignored_ids_are_integers(ignore, problem):
    with pytest.raises(TypeError, match=f"ignore must be {problem}"):
        count_id_pairs([0], [0], ignore=ignore)


def test_every_pair_of_dtypes():
    for dtypes in product(DTYPES, repeat=2):
        rng = np.random.default_rng(1)
        sides = []
        for dtype in dtypes:
            limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            ids = np.array([*limits, 1, 0], dtype=dtype)
            sides.append(np.repeat(ids[rng.integers(0, 4, 40)], rng.integers(1, 90, 40))[:900])
        truth, pred = (side[:600] for side in sides)
        found = count_id_pairs(truth, pred)
        assert rows(found) == by_hand(truth, pred), dtypes
        assert [part.dtype for part in found] == [truth.dtype, pred.dtype, np.int64]


@given(
    runs=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 70)), min_size=1, max_size=30
    )
)
@pytest.mark.gate
def test_runs_of_every_length(runs):
    truth = np.repeat([t for t, _, _ in runs], [n for _, _, n in runs]).astype(np.uint16)
    pred = np.repeat([p for _, p, _ in runs], [n for _, _, n in runs]).astype(np.uint32)
    assert rows(count_id_pairs(truth, pred)) == by_hand(truth, pred)


def test_the_table_grows():
    truth = np.arange(5000, dtype=np.uint64) * (2**64 // 5000)
    pred = np.arange(5000)[::-1] - 2500
    found = count_id_pairs(truth, pred)
    assert rows(found) == by_hand(truth, pred)


# How much more memory a count needs at its peak, in MiB: of few pairs, then of very many.
PEAKS = """
import re
from pathlib import Path
import numpy as np
from segiou.counting import count_id_pairs

def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024

ids = np.zeros(8_000_000, np.uint64)
ids[:] = 7
ids[::1000] = 2**40
count_id_pairs(ids[:100], ids[:100])
start = peak()
assert len(count_id_pairs(ids, ids)[0]) == 2
few = peak()
assert len(count_id_pairs(np.arange(300_000), ids[:300_000])[0]) == 300_000
print(few - start, peak() - few)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read as Linux gives it")
@pytest.mark.parametrize("backend", LOOPS[:1], indirect=True)
@pytest.mark.gate
def test_memory_grows_with_the_pairs_that_occur():  # NumPy needs some for every pixel
    out = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True)
    of_few, of_many = map(float, out.stdout.split())
    # Two ids of 8 bytes for 8 million pixels are 122 MiB; sanitizers keep what is freed.
    assert of_few < 4 < of_many < (480 if "asan" in os.environ.get("LD_PRELOAD", "") else 120)


def test_memory_may_lie_in_any_order():
    truth = np.random.default_rng(0).integers(0, 5, (6, 7, 8))
    pred = truth[::-1]
    expected = by_hand(truth, pred)
    assert rows(count_id_pairs(np.asfortranarray(truth), pred)) == expected
    assert rows(count_id_pairs(truth.astype(">i4"), pred.astype(">u2"))) == expected
    both = np.asfortranarray(truth), np.asfortranarray(pred)
    assert rows(count_id_pairs(*both)) == expected


def test_nothing_gives_nothing():
    found = count_id_pairs(np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.uint8))
    assert [len(column) for column in found] == [0, 0, 0]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"truth_ids has shape \(2,\) but pred_ids has \(3,\)"):
        count_id_pairs([1, 2], [1, 2, 3])
    with pytest.raises(TypeError, match="pred_ids"):
        count_id_pairs([1, 2], [1.0, 2.0])


@pytest.mark.gate
def test_threads_count_at_the_same_time():
    rng = np.random.default_rng(3)
    pairs = [rng.integers(0, 50, (2, 20_000)) for _ in range(16)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda pair: count_id_pairs(*pair), pairs))
    assert [rows(one) for one in found] == [by_hand(*pair) for pair in pairs]


def assert_sorted_alike(truth, pred):
    """The pairs are those that a sort of all pixels finds."""
    order = np.lexsort((pred, truth))
    t, p = truth[order], pred[order]
    starts = np.flatnonzero(np.r_[True, (t[1:] != t[:-1]) | (p[1:] != p[:-1])])
    expected = t[starts], p[starts], np.diff(starts, append=len(t))
    for found, column in zip(count_id_pairs(truth, pred), expected, strict=True):
        np.testing.assert_array_equal(found, column)
        assert found.dtype == column.dtype
        assert found.flags.writeable


def noise(dtype, span, pixels, low=None):
    """Ids from `low` on, by default from 0 or, where ids have signs, around it."""
    rng = np.random.default_rng(span)
    lowest = (-(span // 2) if np.dtype(dtype).kind == "i" else 0) if low is None else low
    return (rng.integers(0, span, pixels, np.uint64) + np.uint64(lowest % 2**64)).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint16", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("span", [300, 30_000])  # a dense table, and sorting
@pytest.mark.gate
def test_noise_is_counted_as_sorting_counts_it(dtype, span):
    truth = noise(dtype, span, 90_000)
    assert_sorted_alike(truth, truth[::-1].copy())


@pytest.mark.gate
def test_noise_of_every_pair_of_dtypes():
    for one, other in product(DTYPES, repeat=2):
        few = {"bool": 2}
        sides = noise(one, few.get(one, 90), 9000), noise(other, few.get(other, 80), 9000)
        assert_sorted_alike(*sides)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.gate
def test_noise_next_to_the_limits_of_a_dtype(dtype):
    limits = np.iinfo(dtype)
    for span in (20, 100) if limits.bits == 8 else (60, 20_000):
        lowest = noise(dtype, span, 40_000, limits.min)
        highest = noise(dtype, span, 40_000, limits.max - span + 1)[::-1].copy()
        assert_sorted_alike(lowest, highest)
        assert_sorted_alike(highest, lowest)


@pytest.mark.parametrize(
    "span", [1 << 32, (1 << 32) + 1, pytest.param(1 << 60, marks=pytest.mark.gate)]
)
@pytest.mark.gate
def test_very_many_pairs_of_ids_that_just_fit_into_64_bits_or_do_not(span):
    truth = noise("int64", span, 300_000)
    truth[[0, -1]] = -(span // 2), -(span // 2) + span - 1
    assert_sorted_alike(truth, truth[::-1].copy())


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_sizes_around_those_of_blocks(size):
    for pixels in (1, 2, 63, 64, 65, 66, *(k * 2048 // size + d for k in (1, 2) for d in range(4))):
        truth, pred = noise(f"u{size}", 9, pixels), noise("u1", 7, pixels)
        assert_sorted_alike(truth, pred)
        assert_sorted_alike(pred, np.sort(truth))


@pytest.mark.gate
def test_noise_in_a_part_of_a_map():
    parts = [np.repeat(np.arange(40), 1000), *(noise("int64", n, 40_000) for n in (50, 9000))]
    for two in product(parts, repeat=2):
        truth = np.concatenate(two)
        assert_sorted_alike(truth, np.roll(truth, 3))


@pytest.mark.parametrize("factor", [1 << 20, 1 << 40])
@pytest.mark.parametrize("backend", LOOPS, indirect=True)
@pytest.mark.gate
def test_ids_that_change_meanwhile_are_counted_somehow(factor):
    ids, done = noise("int64", 60, 200_000), Event()

    def change():
        while not done.is_set():
            ids[:] *= factor
            ids[:] //= factor

    with ThreadPoolExecutor(1) as thread:
        changing = thread.submit(change)
        try:
            pixels = [count_id_pairs(ids, ids[::-1].copy())[2].sum() for _ in range(20)]
        finally:
            done.set()
        changing.result()
    assert pixels == [len(ids)] * 20


@pytest.mark.parametrize("backend", LOOPS[:1], indirect=True)
def test_unknown_loops_are_refused(monkeypatch):
    monkeypatch.undo()
    with pytest.raises(ValueError, match="no such loops"):
        with_loops("c-none").count_pairs(b"", 1, False, b"", 1, False)


def test_large_ids_among_noise_are_exact():
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 300, (2, 90_000))
    truth[-1] = 1 << 40
    assert rows(count_id_pairs(truth, pred))[-1] == (1 << 40, pred[-1], 1)
    assert sum(count_id_pairs(truth, pred)[2]) == 90_000


def test_objects_with_ids_of_64_bits_are_counted_run_by_run(backend):
    ids = np.repeat(np.arange(40, dtype=np.int64) << 40, 25).reshape(20, 50)
    found = count_id_pairs(ids - (1 << 50), ids.T.copy().reshape(20, 50))
    assert rows(found) == by_hand(ids - (1 << 50), ids.T.copy().reshape(20, 50))


def runs_of(ids):
    """First pixel and id of each run."""
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])).astype(np.uint32)
    return starts, ids[starts]


def test_runs_count_as_their_pixels_do(backend):
    rng = np.random.default_rng(3)
    for length in (1, 2, 63, 1000, 50_000):
        for most in (1, 3, 1 << 20):
            sides = [
                np.repeat(rng.integers(0, most, length, np.uint32), rng.integers(1, 5, length))
                for _ in range(2)
            ]
            truth, pred = (side[:length] for side in sides)
            found = id_pairs.count_run_pairs(runs_of(truth), runs_of(pred), length)
            for ours, theirs in zip(found, count_id_pairs(truth, pred), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.skipif(COMPILED is None, reason="the compiled routine was not built")
def test_runs_out_of_order_harm_nothing():
    count_overlaps = COMPILED.count_overlaps
    rng = np.random.default_rng(4)
    for _ in range(200):
        many = rng.integers(0, 50, 2)
        starts = [rng.integers(0, 1 << 32, n, dtype=np.uint32) for n in many]
        ids = [rng.integers(0, 5, n, dtype=np.uint32) for n in many]
        content, _ = count_overlaps(starts[0], ids[0], starts[1], ids[1], 1000)
        assert len(content) % 24 == 0
    with pytest.raises(ValueError, match="as many first pixels as ids"):
        count_overlaps(starts[0], ids[0], starts[1], np.zeros(60, "u4"), 9)


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "i4", "u8", "i8", ">i4"])
@pytest.mark.parametrize("shape", [(0,), (7,), (3000,), (40, 50), (9, 12, 30), (2, 3, 20, 20)])
@pytest.mark.parametrize("to", [np.uint8, np.int64])
@pytest.mark.gate
def test_ids_are_mapped_to_their_values_and_others_to_0(dtype, shape, to):
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype)
    info = SimpleNamespace(min=0, max=1) if kind.kind == "b" else np.iinfo(kind)
    low, high = int(info.min), int(info.max)
    for chosen in ([low, high], [low, low + 1, high - 1], [*range(low, min(low + 300, high))]):
        ids = rng.choice(np.array(chosen, kind), shape)
        meaning = {number: place % 200 + 1 for place, number in enumerate(chosen[::2])}
        meaning |= {2**70: 9, -(2**70): 8}
        expected = [meaning.get(number, 0) for number in ids.ravel().tolist()]
        for arranged in (ids, np.asfortranarray(ids)):
            found = mapped(arranged, meaning, to)
            assert (found.dtype, found.shape) == (to, shape)
            assert found.ravel().tolist() == expected
