"""Regions where two label maps differ, by hand and by either routine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segiou.regions import components
from segiou.regions.differences import differences

#: Values 10 … 13 are classes 0 … 3, of which 11 is ignored in the truth; all others have none.
CLASSES = 4
TRUTH = (10, np.array([0, 4, 2, 3, 5], np.uint16))
PRED = (10, np.array([0, 1, 2, 3, 4], np.uint16))


@pytest.fixture(params=["c", "numpy"])
def program(request, monkeypatch):
    """Either routine."""
    if request.param == "numpy":
        monkeypatch.setattr(components, "_components", None)
    elif components._components is None:
        pytest.skip("the compiled routine was not built")


def found(truth, pred, codes=(TRUTH, PRED), least=1, most=8):
    one = differences(truth, pred, codes, CLASSES, least=least, most=most, with_runs=True)
    pixels = {}
    for start, length, region in one.runs.tolist():
        pixels.setdefault(region, set()).update(range(start, start + length))
    return one.rows.tolist(), [pixels[i] for i in range(len(one.rows))]


def test_by_hand(program):
    truth = np.array([[10, 10, 10, 12, 11], [10, 10, 10, 12, 11]], np.uint8)
    pred = np.array([[10, 13, 13, 13, 13], [13, 10, 10, 12, 12]], np.uint8)
    # Ignored pixels (the last column) belong to no object of the prediction.
    assert found(truth, pred) == (
        [
            [0, 3, 3, 3, 1, 0, 2, 0, 3, 0, 1],
            [2, 3, 1, 1, 3, 0, 1, 3, 1, 0, 1],
        ],
        [{1, 2, 5}, {3}],
    )
    assert found(truth, pred, least=3)[1] == [{1, 2, 5}]
    assert found(truth, pred, most=0) == ([], [])
    without_runs = differences(truth, pred, (TRUTH, PRED), CLASSES, least=1, most=8)
    assert (len(without_runs.rows), len(without_runs.runs)) == (2, 0)


def test_values_of_one_class_are_one_object(program):
    codes = (0, np.array([0, 0, 1, 9], np.uint16))
    truth, pred = np.array([[0, 1, 0, 1]], np.int64), np.array([[2, 2, 2, 0]], np.int64)
    assert found(truth, pred, (codes, codes)) == ([[0, 1, 3, 1, 0, 0, 1, 0, 3, 0, 1]], [{0, 1, 2}])


def test_largest_of_a_pair_first_then_by_first_pixel(program):
    truth = np.full((1, 12), 10, np.int16)
    pred = np.array([[13, 10, 13, 13, 10, 13, 10, 13, 13, 10, 12, 10]], np.int16)
    assert found(truth, pred, most=3)[1] == [{10}, {2, 3}, {7, 8}, {0}]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(
        [(5, 7), (3, 64), (2, 65), (3, 130), (1, 300), (4, 3, 5), (2, 3, 70), (40, 30), (3, 20, 30)]
    ),
    st.sampled_from(["u1", "i1", ">u2", "i2", "u4", ">i4", "i8", "u8"]),
    st.floats(0.5, 1),
    st.sampled_from([0, 0.9, 0.98]),
)
def test_both_routines_agree(seed, shape, dtype, smooth, alike):
    rng = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        side = rng.choice([*range(9, 15), 127], shape).astype(dtype)
        repeats = rng.random(side.size) < smooth  # long runs
        side.flat[1:][repeats[1:]] = side.flat[:-1][repeats[1:]]
        for row in range(1, shape[-2]):  # rows that resemble the one above
            is_same = rng.random(shape[-1]) < alike
            side[..., row, is_same] = side[..., row - 1, is_same]
        sides.append(side)
    if components._components is None:
        pytest.skip("the compiled routine was not built")
    sides[0] = np.asfortranarray(sides[0])
    compiled = found(*sides, least=2, most=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "_components", None)
        assert compiled == found(*sides, least=2, most=3)


def test_refused():
    if (routines := components._components) is None:
        pytest.skip("the compiled routine was not built")
    side, codes = np.zeros((2, 3), np.uint8), (0, np.zeros(2, np.uint16))
    fine = [side, side, 1, (1, 2, 3), codes, codes, 2, 1, 8, True]
    assert routines.find_differences(*fine) == (b"", b"")
    for at, value in [
        (1, side[:1]),
        (2, 3),
        (3, (1, 2, 4)),
        (3, (0, 2, 3)),
        (4, (0, np.zeros(0, np.uint16))),
        (5, (0, np.zeros(3, np.uint8))),
        (6, 0),
        (6, 65535),
        (7, -1),
        (8, -1),
    ]:
        with pytest.raises(ValueError, match=r"values|codes|classes"):
            routines.find_differences(*fine[:at], value, *fine[at + 1 :])
