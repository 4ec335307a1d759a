"""Counting binary channels that may overlap."""

import importlib

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import Counts
from segiou.counting import channels as channels_module, count_channels

NUMPY = importlib.import_module("segiou.counting.reference").count_bytes
try:
    COMPILED = importlib.import_module("segiou.counting._channels").count_bytes
except ImportError:
    COMPILED = None

needs_compiled = pytest.mark.skipif(COMPILED is None, reason="the compiled routine was not built")
backends = pytest.mark.parametrize(
    "count_bytes",
    [pytest.param(NUMPY, id="numpy"), pytest.param(COMPILED, id="c", marks=needs_compiled)],
)


def by_numpy(truth, pred, axis, valid=None):
    """Counts by the NumPy expressions that everybody writes."""
    t, p = np.moveaxis(truth, axis, 0) != 0, np.moveaxis(pred, axis, 0) != 0
    v = np.ones(t.shape, bool) if valid is None else np.moveaxis(valid, axis, 0)
    others = tuple(range(1, t.ndim))
    return Counts(
        (t & p & v).sum(others),
        (~t & p & v).sum(others),
        (t & ~p & v).sum(others),
        (~t & ~p & v).sum(others),
    )


@pytest.fixture(params=["numpy", pytest.param("c", marks=needs_compiled)])
def backend(request, monkeypatch):
    routine = NUMPY if request.param == "numpy" else COMPILED
    monkeypatch.setattr(channels_module, "_count_bytes", routine)


def test_two_overlapping_channels_by_hand(backend):
    truth = [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    pred = [[[1, 0], [1, 0]], [[1, 0], [1, 0]]]
    counts = count_channels(truth, pred, axis=0)
    assert counts == Counts(tp=[1, 2], fp=[1, 0], fn=[1, 0], tn=[1, 2])


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6)


@given(st.data())
def test_any_shape_and_axis(data):
    shape = data.draw(shapes)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from(["?", "u1", "i1", ">i2", "u4", "<i8"]))
    bits = hnp.arrays(np.dtype(dtype), shape, elements=st.integers(0, 1).map(np.dtype(dtype).type))
    truth, pred = data.draw(bits), data.draw(bits)
    assert count_channels(truth, pred, axis=axis) == by_numpy(truth, pred, axis)
    swapped = count_channels(pred, truth, axis=axis)
    assert swapped == by_numpy(pred, truth, axis)


# Sizes around what is added up in one byte (255 rows) and in one row (512 bytes).
@backends
@pytest.mark.parametrize(
    ("outer", "channels", "inner"),
    [
        (1, 2, 512 * 255),
        (1, 1, 512 * 255 * 2 + 511),
        (2, 3, 255),
        (70_001, 3, 1),
        (255 * 171, 3, 1),
        (300, 700, 1),
        (3, 5000, 1),
        (2, 1, 1),
        (0, 3, 1),
        (1, 3, 0),
        (4, 2, 2),
    ],
)
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_long_runs_do_not_overflow_a_byte(count_bytes, outer, channels, inner, density):
    rng = np.random.default_rng(7)
    truth, pred = rng.random((2, outer, channels, inner)) < density
    totals = np.ones((3, channels), np.int64)
    assert count_bytes(truth, pred, outer, channels, inner, totals) is True
    counts = by_numpy(truth, pred, 1)
    np.testing.assert_array_equal(totals - 1, [counts.tp, counts.truth, counts.pred])


@backends
@pytest.mark.parametrize("where", [0, 700, 1023])
def test_a_byte_above_one_is_noticed_wherever_it_is(count_bytes, where):
    for side in (0, 1):
        pair = np.zeros((2, 1, 1, 1024), np.uint8)
        pair[side, 0, 0, where] = 2
        assert count_bytes(*pair, 1, 1, 1024, np.zeros((3, 1), np.int64)) is False


@needs_compiled
@pytest.mark.parametrize(
    "arguments",
    [
        (5, 1, 1, np.zeros((3, 1), np.int64)),
        (-1, 2, -2, np.zeros((3, 2), np.int64)),
        (2, 0, 2, np.zeros((3, 1), np.int64)),
        (1, 2, 2, np.zeros((3, 1), np.int64)),
        (1, 2, 2, np.zeros((3, 2), np.int32)),
        (2**62, 4, 2**62, np.zeros((3, 4), np.int64)),
    ],
)
def test_the_compiled_routine_writes_only_where_it_may(arguments):
    four = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="must hold"):
        COMPILED(four, four, *arguments)


@needs_compiled
def test_the_compiled_routine_refuses_what_is_no_buffer():
    four, totals = np.zeros(4, np.uint8), np.zeros((3, 1), np.int64)
    with pytest.raises(ValueError, match="must hold"):
        COMPILED(four, four[:3], 4, 1, 1, totals)
    with pytest.raises((ValueError, BufferError)):
        COMPILED(np.zeros((4, 2), np.uint8)[:, 0], four, 4, 1, 1, totals)
    totals.setflags(write=False)
    with pytest.raises((TypeError, ValueError, BufferError)):
        COMPILED(four, four, 4, 1, 1, totals)


def test_channel_axis_first_last_and_with_a_batch_agree(backend):
    rng = np.random.default_rng(1)
    truth, pred = rng.random((2, 4, 3, 20, 17)) < 0.4
    batch = count_channels(truth, pred, axis=1)
    last = count_channels(
        np.moveaxis(truth, 1, -1).copy(), np.moveaxis(pred, 1, -1).copy(), axis=-1
    )
    images = [count_channels(t, p, axis=0) for t, p in zip(truth, pred, strict=True)]
    assert batch == last == images[0] + images[1] + images[2] + images[3]
    assert batch == by_numpy(truth, pred, 1)


def test_layouts_that_are_not_contiguous(backend):
    rng = np.random.default_rng(2)
    truth, pred = (rng.random((2, 9, 8, 30)) < 0.5).astype(np.uint8)
    want = by_numpy(truth, pred, 0)
    assert count_channels(np.asfortranarray(truth), pred, axis=0) == want
    assert count_channels(np.asfortranarray(truth), np.asfortranarray(pred), axis=0) == want
    assert count_channels(truth[::-1], pred[::-1], axis=0) == want[::-1]
    assert count_channels(truth[:, ::2, 1::3], pred[:, ::2, 1::3], axis=0) == by_numpy(
        truth[:, ::2, 1::3], pred[:, ::2, 1::3], 0
    )
    constant = np.broadcast_to(np.ones((), bool), truth.shape)
    assert count_channels(constant, pred, axis=0) == by_numpy(constant, pred, 0)


def test_many_blocks_are_the_same_as_one(backend, monkeypatch):
    rng = np.random.default_rng(3)
    truth, pred = rng.integers(0, 2, (2, 3, 40, 50))
    mask = rng.random((40, 50)) < 0.7
    whole = count_channels(truth, pred, axis=0, mask=mask)
    monkeypatch.setattr(channels_module, "_BLOCK_VALUES", 64)
    assert count_channels(truth, pred, axis=0, mask=mask) == whole
    assert whole == by_numpy(truth, pred, 0, np.broadcast_to(mask, truth.shape))


def test_the_callers_arrays_stay_as_they_are(backend):
    truth = np.array([[1, 0, 1]], np.uint8)
    pred = np.array([[0.2, 0.9, 0.7]])
    for array in (truth, pred):
        array.setflags(write=False)
    count_channels(truth, pred, axis=0, threshold=0.5, mask=np.array([True, False, True]))
    assert truth.tolist() == [[1, 0, 1]]
    assert pred.tolist() == [[0.2, 0.9, 0.7]]


# -- masks -----------------------------------------------------------------------------------


def test_a_mask_of_pixels_and_a_mask_of_values(backend):
    truth = np.array([[1, 1, 0, 0], [1, 0, 1, 0]])
    pred = np.array([[1, 0, 1, 0], [1, 1, 1, 1]])
    pixels = np.array([True, True, False, True])
    assert count_channels(truth, pred, axis=0, mask=pixels) == Counts(
        tp=[1, 1], fp=[0, 2], fn=[1, 0], tn=[1, 0]
    )
    values = np.array([[True] * 4, [False, True, False, False]])
    assert count_channels(truth, pred, axis=0, mask=values) == Counts(
        tp=[1, 0], fp=[1, 1], fn=[1, 0], tn=[1, 0]
    )


def test_what_is_masked_out_is_not_looked_at(backend):
    truth = np.array([[1, 255, 0]], np.uint8)
    pred = np.array([[0.9, float("nan"), 0.1]])
    counts = count_channels(truth, pred, axis=0, mask=truth[0] != 255, threshold=0.5)
    assert counts == Counts(tp=[1], fp=[0], fn=[0], tn=[1])


def test_masks_are_checked(backend):
    bits = np.zeros((2, 3, 4), bool)
    with pytest.raises(TypeError, match=r"mask must be bool .* got uint8"):
        count_channels(bits, bits, axis=0, mask=np.ones((3, 4), np.uint8))
    with pytest.raises(ValueError, match=r"mask must have shape \(3, 4\), or"):
        count_channels(bits, bits, axis=0, mask=np.ones((2, 3), bool))


# -- thresholds ------------------------------------------------------------------------------


def test_scores_are_predicted_above_the_threshold(backend):
    truth = np.array([[1.0, 0.0, 1.0, 0.0]], np.float32)
    scores = np.array([[0.5, 0.50001, 0.9, 0.1]], np.float32)
    assert count_channels(truth, scores, axis=0, threshold=0.5) == Counts([1], [1], [1], [1])
    logits = np.array([[-3, 2, 7, 0]])
    assert count_channels(truth, logits, axis=0, threshold=0) == Counts([1], [1], [1], [1])


@pytest.mark.parametrize(
    ("truth", "pred", "threshold", "text"),
    [
        ([[0.0, 0.5]], [[0.1, 0.2]], 0.5, r"truth must .* found 0.5 \(1 time\)"),
        ([[0.0, 1.0]], [[0.1, float("nan")]], 0.5, "pred has 1 NaN scores"),
        ([[0, 1]], [[0.1, 0.2]], float("nan"), "threshold must be a number, got NaN"),
    ],
)
def test_bad_scores_are_refused(backend, truth, pred, threshold, text):
    with pytest.raises(ValueError, match=text):
        count_channels(truth, pred, axis=0, threshold=threshold)


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int64])
def test_values_other_than_0_and_1_are_named_with_their_number(backend, dtype):
    truth = np.array([[0, 1, 7, 7, 100]], dtype)
    clean = np.zeros((1, 5), dtype)
    with pytest.raises(ValueError, match=r"truth must .* found 7 \(2 times\), 100 \(1 time\)"):
        count_channels(truth, clean, axis=0)
    with pytest.raises(ValueError, match=r"pred must .* found 7 \(2 times\), 100 \(1 time\); pass"):
        count_channels(clean, truth, axis=0)


def test_negative_values_are_refused_and_any_byte_of_a_bool_is_true(backend):
    with pytest.raises(ValueError, match=r"found -1 \(1 time\)"):
        count_channels(np.array([[0, -1]], np.int8), np.zeros((1, 2), np.int8), axis=0)
    odd = np.array([[0, 2, 1]], np.uint8).view(bool)
    for data in (odd, np.repeat(odd, 2, axis=1)[:, ::2]):
        assert count_channels(np.zeros((1, 3), bool), data, axis=0).fp.tolist() == [2]


def test_many_wrong_values_are_not_all_listed(backend):
    with pytest.raises(ValueError, match="and 246 more values"):
        count_channels(np.arange(256)[None], np.zeros((1, 256), bool), axis=0)


@pytest.mark.parametrize(
    ("truth", "pred", "axis", "error", "text"),
    [
        (np.zeros((2, 3)), np.zeros((2, 3), bool), 0, TypeError, "truth has dtype float64"),
        (
            np.zeros((2, 3), bool),
            np.zeros((2, 3), "f4"),
            0,
            TypeError,
            "pred has dtype float32.*threshold",
        ),
        (np.zeros((2, 3), complex), np.zeros((2, 3), bool), 0, TypeError, "dtype complex128"),
        (np.array([["a"]]), np.zeros((1, 1), bool), 0, TypeError, "truth has dtype [<>]U1"),
        (np.zeros((2, 3), bool), np.zeros((3, 2), bool), 0, ValueError, r"\(2, 3\) but pred has"),
        (np.zeros((2, 3), bool), np.zeros((2, 3), bool), 2, ValueError, "axis=2 is out of range"),
        (np.zeros((0, 3), bool), np.zeros((0, 3), bool), 0, ValueError, "no channels along axis 0"),
    ],
)
def test_what_are_no_channels_is_refused(backend, truth, pred, axis, error, text):
    with pytest.raises(error, match=text):
        count_channels(truth, pred, axis=axis)


def test_no_pixels_at_all(backend):
    nothing = np.zeros((3, 0, 5), bool)
    assert count_channels(nothing, nothing, axis=0) == Counts(*[[0, 0, 0]] * 4)
    assert count_channels(nothing.astype(int), nothing, axis=0).total.tolist() == [0, 0, 0]
