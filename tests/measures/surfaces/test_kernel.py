"""The compiled search of surface distances equals SciPy, and refuses what does not fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bit_patterns import CASES, any_floats

from segiou.measures.surfaces import SurfaceOptions, measure_surfaces
from segiou.regions import surface_points
from segiou.regions.conventions import CONVENTIONS
from segiou.regions.surface_points import SurfacePair, find_points

kernel = pytest.importorskip("segiou.regions._surfaces", reason="the kernel is not built here")

#: Cases of each kind of volumes, with all conventions.
ROUNDS = [range(15), pytest.param(range(15, 100), marks=pytest.mark.gate)]
STEPS = (0.5, 1.0, 0.7, 3.0, 0.586, 1.37)


def smooth(rng, shape):
    """Two volumes of a few labels in patches, much alike."""
    from scipy.ndimage import gaussian_filter

    noise = rng.random((2, *shape))
    noise[1] = 0.6 * noise[0] + 0.4 * noise[1]
    patches = np.stack([gaussian_filter(side, rng.choice([1.0, 2.0])) for side in noise])
    cuts = np.quantile(patches, np.sort(rng.random(rng.integers(1, 5))))
    return np.searchsorted(cuts, patches).astype(np.uint8)


def noisy(rng, shape):
    return rng.integers(0, rng.integers(2, 6), (2, *shape)).astype(np.uint8)


def sparse(rng, shape):
    """Few voxels, far apart; sometimes none on one side."""
    pair = np.zeros((2, *shape), np.uint8)
    for side in pair:
        for _ in range(rng.integers(0, 4)):
            side[tuple(rng.integers(shape))] = rng.integers(1, 3)
    return pair


def shifted(rng, shape):
    truth = smooth(rng, shape)[0]
    return np.stack([truth, np.roll(truth, rng.integers(shape), range(len(shape)))])


def at_borders(rng, shape):
    """Slabs and bars that end where the volume does."""
    pair = np.zeros((2, *shape), np.uint8)
    for side in pair:
        axis = rng.integers(len(shape))
        np.moveaxis(side, axis, 0)[: rng.integers(1, shape[axis] + 1)] = 1
    return pair


def long_rows(rng, shape):
    """Rows of several vectors of 64 voxels, and objects farther apart than a word of bits."""
    longer = list(shape)
    longer[rng.integers(len(shape))] = int(rng.integers(60, 200))
    return (sparse, shifted, at_borders)[rng.integers(3)](rng, tuple(longer))


KINDS = (smooth, noisy, sparse, shifted, at_borders, long_rows)


def by_scipy(monkeypatch, *arguments, **settings):
    with monkeypatch.context() as patch:
        patch.setattr(surface_points, "_kernel", None)
        return measure_surfaces(*arguments, **settings)


def assert_same(found, expected, what):
    assert found.labels == expected.labels, what
    for name in ("state", "hausdorff", "percentiles"):
        np.testing.assert_array_equal(found.numbers[name], expected.numbers[name], what)
    sides = [(rows.numbers["sizes"], rows.numbers["average"]) for rows in (found, expected)]
    for ours, theirs in zip(*sides, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=what)
    for ours, theirs in zip(found.numbers, expected.numbers, strict=True):
        np.testing.assert_allclose(
            ours["within"],
            theirs["within"],
            rtol=1e-12,
            atol=1e-12 * max(ours["sizes"]),
            err_msg=what,
        )


@pytest.mark.parametrize("rounds", ROUNDS, ids=["few", "many"])
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.gate
def test_random_volumes_equal_scipy(monkeypatch, make, rounds):
    for i in rounds:
        rng = np.random.default_rng(i)
        shape = tuple(rng.integers(1, 18, 2 if i % 5 == 0 else 3).tolist())
        pair = make(rng, shape)
        if i % 4 == 0:
            pair = [np.asfortranarray(side) for side in pair]
        spacing = tuple(rng.choice(STEPS, len(shape)).tolist())
        ignore = [1] if i % 6 == 0 else []
        regions = {"a": (1, 2), "b": (2, 3), "outside": 0, "never": 9} if i % 7 == 0 else None
        name = list(CONVENTIONS)[i % len(CONVENTIONS)]
        options = SurfaceOptions((0, 1, 2.5), (95, 50), name)
        settings = {"ignore": ignore, "spacing": spacing, "options": options}
        found = measure_surfaces(*pair, regions, **settings)
        expected = by_scipy(monkeypatch, *pair, regions, **settings)
        assert_same(found, expected, f"{make.__name__} {i}")


@pytest.mark.parametrize("kind", ["voxels", "elements"])
def test_noise_is_measured_few_labels_at_a_time(monkeypatch, kind):
    truth, pred = np.random.default_rng(0).integers(0, 40, (2, 20, 30, 40)).astype(np.uint8)
    pair = SurfacePair(truth, pred, (1.0, 1.0, 2.0), kind)
    at_once = dict(pair.distances(None))
    calls = []
    monkeypatch.setattr(surface_points, "_FEWEST_POINTS", 1000)
    monkeypatch.setattr(surface_points, "find_points", recorded(find_points, calls))
    one_by_one = dict(pair.distances(None))
    assert len(calls) > 5
    assert list(one_by_one) == list(at_once)
    for label, both in at_once.items():
        for ours, theirs in zip(one_by_one[label], both, strict=True):
            np.testing.assert_array_equal(ours.values, theirs.values)
            np.testing.assert_array_equal(ours.weights, theirs.weights)


def recorded(function, calls):
    def call(labels, codes, *more):
        calls.append(codes)
        return function(labels, codes, *more)

    return call


MORE_TYPES = [
    pytest.param(name, marks=pytest.mark.gate) for name in (">u2", "int16", "int32", "uint64")
]


@pytest.mark.parametrize("dtype", ["uint8", *MORE_TYPES])
def test_many_labels_of_any_type(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    values = rng.permutation(256 if dtype == "uint8" else 30000)[:300].astype(dtype)
    if dtype == "int32":
        values[:2] = -(1 << 30), 1 << 30
    truth = values[rng.integers(0, len(values), (9, 10, 11))]
    pred = np.where(rng.random(truth.shape) < 0.7, truth, values[0])
    for pair in ((truth, pred), (np.asfortranarray(truth), pred[::-1][::-1])):
        found = measure_surfaces(*pair, spacing=(1, 2, 1))
        assert len(found) > 250
        assert_same(found, by_scipy(monkeypatch, *pair, spacing=(1, 2, 1)), dtype)


def test_threads_find_the_same():
    pair = smooth(np.random.default_rng(3), (30, 31, 32))
    assert measure_surfaces(*pair, threads=4) == measure_surfaces(*pair)


def test_parts_of_larger_arrays_are_measured_as_they_are():
    whole = smooth(np.random.default_rng(4), (20, 40, 30))
    part = whole[:, 3:17, ::2, 5:]
    assert measure_surfaces(*part) == measure_surfaces(*(side.copy() for side in part))


def test_axes_too_long_for_the_kernel_are_measured_by_scipy():
    row = np.zeros((1, 70000), np.uint8)
    row[0, 5:9] = 1
    (found,) = measure_surfaces(row, np.roll(row, 69000, axis=1))
    assert found["hausdorff"] == 69000.0


WANTED = np.ones(256, np.uint8)


def find(labels=b"\1" * 24, size=(2, 3, 4), flat=False, wanted=WANTED, ignored=-1, limit=999):
    return kernel.find(labels, *size, flat, wanted, ignored, False, limit)


def test_points_are_voxels_in_order():
    points = np.frombuffer(find()[1], np.uint64)
    places = np.stack([points >> np.uint64(bits) & np.uint64(65535) for bits in (32, 16, 0)], -1)
    assert [tuple(map(int, p)) for p in places] == [
        *itertools.product(range(2), range(3), range(4))
    ]
    assert find(limit=0) is None
    assert find(wanted=WANTED * 0) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": b"\1" * 23},
        {"size": (2, 3, 5)},
        {"size": (0, 3, 4)},
        {"size": (-2, -3, 4)},
        {"size": (1 << 40, 1 << 40, 1 << 40)},
        {"flat": True},
        {"wanted": WANTED[1:]},
        {"ignored": 256},
        {"ignored": -2},
        {"limit": -1},
    ],
)
def test_volumes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ValueError, match="do not suit"):
        find(**wrong)


POINTS = np.array([1, 1 << 20, 1 << 40], np.uint64)
ROWS = np.zeros((1, 2), np.int32)
RANKS = np.arange(29, dtype=np.uint16)
AREAS = np.full(256, 0.5)


def nearest(
    query=POINTS,
    target=POINTS,
    rows=ROWS,
    ranks=RANKS,
    certain=0,
    steps=(1.0, 1.0, 1.0),
    areas=AREAS,
):
    return kernel.nearest(query, target, rows, ranks, certain, *steps, False, areas)


def test_points_of_one_surface_are_no_distance_apart():
    ranks, areas, far = nearest()
    assert np.frombuffer(ranks, np.uint16).tolist() == [0, 0, 0]
    assert (np.frombuffer(areas), far) == ([1.5], b"")
    ranks, areas, far = nearest(target=POINTS[:1])
    assert np.frombuffer(ranks, np.uint16).tolist() == [0, 1, 1]
    assert np.frombuffer(far).tolist() == [1 + 16**2, 1 + 256**2]


def test_queries_need_no_order():
    ranks, *_ = nearest(query=POINTS[[2, 0, 0]])
    assert np.frombuffer(ranks, np.uint16).tolist() == [0, 0, 0]


@pytest.mark.parametrize("bad", [POINTS[:0], POINTS[::-1].copy(), b"1234567", POINTS[[0, 0]]])
def test_points_that_do_not_fit_are_refused(bad):
    with pytest.raises(ValueError, match="targets one after the other"):
        nearest(target=bad)


@pytest.mark.parametrize("bad", [POINTS[:0], b"1234567"])
def test_queries_that_do_not_fit_are_refused(bad):
    with pytest.raises(ValueError, match="there must be points"):
        nearest(query=bad)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"steps": (1.0, x, 1.0)} for x in (0.0, -1.0, np.nan, np.inf, 1e-300, 1e300)),
        {"rows": ROWS[:0], "ranks": RANKS[:0]},
        {"rows": ROWS + 7},
        {"rows": ROWS - 7},
        {"rows": np.zeros((65, 2), np.int32), "ranks": np.zeros(65 * 29, np.uint16)},
        {"ranks": RANKS[1:]},
        {"certain": -1},
        {"certain": 64 * 29},
        {"areas": np.zeros(255)},
    ],
)
def test_tables_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ValueError, match="the table does not suit"):
        nearest(**wrong)


@pytest.mark.parametrize("step", [1e-12, 1e12])
def test_any_spacing_is_measured(step):
    pair = sparse(np.random.default_rng(8), (5, 6, 7))
    for one, other in zip(
        measure_surfaces(*pair, spacing=step), measure_surfaces(*pair), strict=True
    ):
        np.testing.assert_allclose(one["hausdorff"], other["hausdorff"] * step, rtol=1e-14)


def test_spacings_and_areas_of_random_bits():
    rng, refused = np.random.default_rng(9), 0
    for number in range(50 * CASES):
        steps = any_floats(rng, "float64", 3)
        if number % 2:
            steps[rng.integers(3)] = rng.choice([1e-9, 1.0, 1e9])
            steps = np.where(rng.random(3) < 0.7, 10.0 ** rng.uniform(-9, 9, 3), steps)
        areas = any_floats(rng, "float64", 256)
        if not ((steps >= 1e-9) & (steps <= 1e9)).all():
            refused += 1
            with pytest.raises(ValueError, match="does not suit"):
                nearest(steps=steps.tolist(), areas=areas)
            continue
        ranks, _, far = nearest(target=POINTS[:1], steps=steps.tolist(), areas=areas)
        assert np.frombuffer(ranks, np.uint16).tolist() == [0, 1, 1]
        z, y, x = steps**2
        np.testing.assert_allclose(np.frombuffer(far), [x + 256 * y, x + 65536 * z], rtol=1e-12)
    assert refused < 45 * CASES


def test_any_spacing_is_that_of_scipy(monkeypatch):
    rng = np.random.default_rng(10)
    for number in range(CASES):
        pair = (sparse, at_borders, smooth)[number % 3](rng, (5, 6, 7)[number % 2 :])
        spacing = tuple(10.0 ** rng.uniform(-11, 8, pair.ndim - 1))
        found = measure_surfaces(*pair, spacing=spacing)
        assert_same(found, by_scipy(monkeypatch, *pair, spacing=spacing), f"{number} {spacing}")


def test_a_share_of_equal_weights_is_not_missed_by_rounding():
    """57 of 60 points are 95 %, although the sum of 57 weights of 0.7 is rounded."""
    side = surface_points.Distances(np.arange(60.0), np.full(60, 0.7), 42.0)
    assert surface_points.Both(side, side).percentile("weighted", 0.95) == 56
