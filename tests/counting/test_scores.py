"""Labels from scores: every backend against NumPy's argmax and comparison."""

from __future__ import annotations

import importlib
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from instruction_sets import loops_here, with_loops

from segiou.counting import scores, scores_to_labels

try:
    COMPILED = importlib.import_module("segiou.counting._scores")
except ImportError:
    COMPILED = None

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
SPECIAL = (0.0, -0.0, np.inf, -np.inf, 6e-8, -6e-8, 1.0, -1.0, 65504.0, -65504.0, 0.25)


def decide_nothing(loops):
    COMPILED.decide_into(np.zeros((1, 0), "u1"), "uint", None, np.zeros(0, "u1"), loops)


BACKENDS = {"numpy": None}
if COMPILED is not None:
    for name in loops_here(decide_nothing):
        BACKENDS[name] = with_loops(COMPILED, "decide_into", name)


@pytest.fixture(params=BACKENDS)
def decided(request, monkeypatch):
    """``scores_to_labels`` with each backend."""
    monkeypatch.setattr(scores, "_compiled", BACKENDS[request.param])
    return scores_to_labels


def on_every_backend(given_scores, **decision):
    """The labels of all backends, which must be the same."""
    live, found = scores._compiled, []
    try:
        for backend in BACKENDS.values():
            scores._compiled = backend
            found.append(scores_to_labels(given_scores, **decision))
    finally:
        scores._compiled = live
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
        assert other.dtype == found[0].dtype
    return found[0]


def as_bfloat16(array):
    """The nearest below in magnitude, as to_host hands bfloat16 over, and as float32."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16
    return bits.astype(np.uint16).view(BFLOAT16), (bits << 16).view(np.float32)


def test_the_first_largest_by_hand(decided):
    given_scores = np.array(
        [[1, 2, 5, -0.0, -np.inf], [3, 2, 9, 0.0, -np.inf], [3, 1, np.inf, 0, 0]]
    )
    for dtype in FLOATS:
        found = decided(given_scores.astype(dtype), argmax=0)
        assert found.tolist() == [1, 0, 2, 0, 2]
        assert found.dtype == np.uint8
        assert decided(given_scores.T.astype(dtype), argmax=-1).tolist() == [1, 0, 2, 0, 2]
    assert decided(np.array([[-1, 4], [-2, 4]], np.int8), argmax=0).tolist() == [0, 0]
    assert decided(np.array([[200, 4], [100, 5]], np.uint8), argmax=0).tolist() == [0, 1]
    assert decided(np.array([0.1, 0.9, 0.9], np.float32), argmax=0) == 1


def test_above_a_threshold_by_hand(decided):
    given_scores = np.array([0.5, 0.75, -0.0, np.inf, -np.inf])
    for dtype in FLOATS:
        found = decided(given_scores.astype(dtype), threshold=0.5)
        assert found.tolist() == [False, True, False, True, False]
        assert found.dtype == np.bool_
        assert not decided(np.array([0.0, -0.0], dtype), threshold=-0.0).any()
    assert decided(np.array([0, 1, 2], np.uint8), threshold=0.5).tolist() == [False, True, True]
    assert decided(np.float32(0.7), threshold=0.5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_threshold_is_rounded_to_the_type_of_the_scores(decided, dtype):
    third = np.array([1 / 3]).astype(dtype)
    assert not decided(third, threshold=1 / 3)[0]
    assert not decided(third, threshold=np.float64(1 / 3))[0]
    assert decided(np.nextafter(third, third + 1), threshold=1 / 3)[0]
    assert not decided(np.array([np.inf], "float16"), threshold=1e9)[0]


def test_bfloat16_thresholds_round_to_even(decided):
    for bits in (0x3E4C_0000, 0x3E4D_0000):
        below = np.uint32(bits).view(np.float32)
        here, _ = as_bfloat16([below])
        middle = float(np.uint32(bits + 0x8000).view(np.float32))
        # From the middle upwards where the last bit is odd: then nothing here is above.
        assert not decided(here, threshold=middle)[0]
        after, _ = as_bfloat16([np.uint32(bits + 0x10000).view(np.float32)])
        assert bool(decided(after, threshold=middle)[0]) is (bits == 0x3E4C_0000)


@st.composite
def layouts(draw):
    """Scores of odd values, types and strides, and their class axis."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 9, 17, 33]))
    dtype = draw(st.sampled_from(["bfloat16", *FLOATS, *INTEGERS]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if dtype in INTEGERS:
        lowest, highest = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values = np.array([lowest, highest, lowest + 1, highest - 1, 0, 1], object)
        made = rng.choice(values, shape).astype(dtype)
    else:
        with np.errstate(over="ignore"):
            special = rng.choice(np.float32(SPECIAL), shape)
            made = np.where(rng.random(shape) < 0.5, special, rng.normal(size=shape))
            made = made.astype("float32" if dtype == "bfloat16" else dtype)
    plain = made
    if dtype == "bfloat16":
        made, plain = as_bfloat16(made)
    elif draw(st.booleans()):
        made = made.astype(made.dtype.newbyteorder(draw(st.sampled_from("<>"))))
    return strided(made, draw), plain, axis


def strided(array, draw):
    """The same values with other strides, and sometimes not aligned."""
    order = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, 1, -1, 2, -3])) for _ in order]
    shape = [array.shape[axis] * abs(step) for axis, step in zip(order, steps, strict=True)]
    offset = draw(st.sampled_from([0, 0, 1]))
    memory = np.zeros(int(np.prod(shape)) * array.itemsize + offset, np.uint8)[offset:]
    view = memory.view(array.dtype).reshape(shape)[tuple(slice(None, None, s) for s in steps)]
    view = view.transpose(np.argsort(order))
    view[...] = array
    return view


@given(layouts())
def test_argmax_of_any_layout_is_numpys(layout):
    made, plain, axis = layout
    np.testing.assert_array_equal(on_every_backend(made, argmax=axis), plain.argmax(axis))


@given(layouts(), st.sampled_from([*SPECIAL, 0.5, 1e9, -1e9]))
def test_thresholds_of_any_layout_are_numpys(layout, threshold):
    made, plain, _ = layout
    with np.errstate(over="ignore"):
        limit = plain.dtype.type(threshold) if plain.dtype.kind == "f" else threshold
    if made.dtype == BFLOAT16 and np.isfinite(limit) and as_bfloat16(limit)[1] != limit:
        return
    np.testing.assert_array_equal(on_every_backend(made, threshold=threshold), plain > limit)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "int16", *FLOATS])
@pytest.mark.gate
def test_whole_blocks_and_what_is_left_of_them(decided, dtype):
    for classes in (1, 2, 3, 6, 7, 16, 19, 47, 48, 96, 150, 255, 256, 257):
        rng = np.random.default_rng(classes)
        made = plain = rng.integers(-100, 100, (2, classes, 1, 1217))
        if dtype == "bfloat16":
            made, plain = as_bfloat16(plain)
        else:
            made = plain.astype(dtype)
        want = plain.argmax(1)
        last = np.ascontiguousarray(np.moveaxis(made, 1, -1))
        for found, expected in (
            (decided(made, argmax=1), want),
            (decided(last, argmax=-1), want),
            (decided(np.moveaxis(last, -1, 1), argmax=1), want),
            (decided(made[..., ::-3], argmax=1), want[..., ::-3]),
            (decided(last[:, :, 1::2], argmax=3), want[:, :, 1::2]),
        ):
            np.testing.assert_array_equal(found, expected, f"{classes} classes")


# Some processors, such as aarch64, flag the cast of a signalling NaN as invalid.
@np.errstate(invalid="ignore")
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_every_score_of_16_bits(decided, kind):
    bits = np.arange(1 << 16, dtype=np.uint16)
    exact = bits.view(np.float16) if kind == "float16" else None
    wide = (bits.astype(np.uint32) << 16).view(np.float32) if exact is None else np.float32(exact)
    made = bits.view(BFLOAT16) if exact is None else exact
    is_number = ~np.isnan(wide)
    numbers, wide_numbers = made[is_number], wide[is_number]
    for limit in (0.0, -0.0, np.inf, -np.inf, 1.0, -2.0):
        np.testing.assert_array_equal(decided(numbers, threshold=limit), wide_numbers > limit)
    turned = np.roll(numbers, 12345)
    want = np.roll(wide_numbers, 12345) > wide_numbers
    np.testing.assert_array_equal(decided(np.stack([numbers, turned]), argmax=0), want)
    for nan in made[~is_number][::17]:
        with pytest.raises(ValueError, match="found NaN scores on 1 pixel"):
            decided(np.array([[1, 0], [nan, 0]], dtype=made.dtype), argmax=0)


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sign", [1, -1])
def test_pixels_with_a_nan_are_counted(decided, dtype, sign):
    nan = np.copysign(np.nan, sign)
    given_scores = np.ones((19, 300, 400), dtype)
    given_scores[7, 250, 3] = given_scores[8, 250, 3] = given_scores[0, 0, 0] = nan
    given_scores[18, 299, 399] = nan
    given_scores[3, 299, 399] = np.inf
    layouts = {0: given_scores, -1: np.ascontiguousarray(np.moveaxis(given_scores, 0, -1))}
    for axis, laid_out in layouts.items():
        with pytest.raises(ValueError, match=r"^found NaN scores on 3 pixels"):
            decided(laid_out, argmax=axis)
    with pytest.raises(ValueError, match=r"^found NaN scores on 1 pixel"):
        decided(given_scores[7], threshold=0.5)
    with pytest.raises(ValueError, match=r"^found NaN scores on 2 pixels"):
        decided(np.tile(given_scores[:, :1, 0], (100, 1))[:, [0, 0]], argmax=0)


def test_many_classes_take_wider_labels(decided):
    given_scores = np.zeros((300, 2, 3), np.float32)
    given_scores[299, 1, 2] = 1
    found = decided(given_scores, argmax=0)
    assert found.dtype == np.uint16
    assert found.tolist() == [[0, 0, 0], [0, 0, 299]]


def test_long_double_is_compared_in_full(decided):
    given_scores = np.array([[1.0], [1.0]], np.longdouble)
    given_scores[1] += np.finfo(np.longdouble).eps
    assert decided(given_scores, argmax=0).tolist() == [1]


@pytest.mark.parametrize("shape", [(3, 0), (3, 0, 4), (3, 4, 0)])
def test_no_pixels_have_no_labels(decided, shape):
    assert decided(np.zeros(shape, np.float32), argmax=0).shape == shape[1:]
    assert decided(np.zeros(shape, np.float32), threshold=0.5).shape == shape


@pytest.mark.few(1)
def test_scores_are_not_copied(decided):
    planes = np.ones((64, 512, 128), np.float16)
    for given_scores, axis in ((planes, 0), (np.moveaxis(planes, 1, 2), 0), (planes, -1)):
        decided(given_scores, argmax=axis)
        tracemalloc.start()
        decided(given_scores, argmax=axis)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < planes.nbytes / 8
    before = planes.copy()
    decided(planes, argmax=0)
    np.testing.assert_array_equal(planes, before)
    planes.flags.writeable = False
    assert not decided(planes, argmax=0).any()


REFUSED = [
    (np.zeros((2, 3), "u2"), "float32", np.zeros(3, "u1"), TypeError, "2 bytes are not 'float32'"),
    (np.zeros((2, 3), "u2"), "half", np.zeros(3, "u1"), TypeError, "2 bytes are not 'half'"),
    (np.zeros((2, 3), "c16"), "uint", np.zeros(3, "u1"), TypeError, "16 bytes are not 'uint'"),
    (np.zeros((0, 3), "u2"), "uint", np.zeros(3, "u1"), ValueError, "1 to 65536 classes"),
    (np.zeros((257, 3), "u2"), "uint", np.zeros(3, "u1"), ValueError, "two for more than 256"),
    (np.array(3, "u2"), "uint", np.zeros(3, "u1"), ValueError, "1 to 65536 classes"),
    (np.zeros((2, 3), "u2"), "uint", np.zeros(4, "u1"), ValueError, "one byte per pixel"),
    (np.zeros((2, 3), "u2"), "uint", np.zeros((3, 1), "u1"), ValueError, "one byte per pixel"),
    (np.zeros((2, 3), "u2"), "uint", np.zeros(3, "u2"), ValueError, "labels must have one byte"),
    (np.zeros((2, 3), "u2"), "uint", np.zeros(6, "u1")[::2], (ValueError, BufferError), "contig"),
    ([[1, 2, 3]], "uint", np.zeros(3, "u1"), TypeError, "bytes-like object"),
]


@pytest.mark.skipif(COMPILED is None, reason="the compiled routines were not built")
@pytest.mark.parametrize(("given_scores", "kind", "labels", "error", "message"), REFUSED)
def test_the_compiled_routine_refuses_what_does_not_fit(given_scores, kind, labels, error, message):
    with pytest.raises(error, match=message):
        COMPILED.decide_into(given_scores, kind, None, labels)


@pytest.mark.skipif(COMPILED is None, reason="the compiled routines were not built")
def test_unknown_loops_are_refused():
    assert "c" in BACKENDS
    with pytest.raises(ValueError, match="no such loops"):
        decide_nothing("abacus")


@pytest.mark.skipif(COMPILED is None, reason="the compiled routines were not built")
def test_the_compiled_routine_refuses_odd_thresholds():
    above = partial(COMPILED.decide_into, np.zeros((1, 3), np.uint16))
    with pytest.raises(TypeError, match="only floats"):
        above("uint", 3, np.zeros(3, bool))
    with pytest.raises(TypeError, match="int"):
        above("float16", 0.5, np.zeros(3, bool))
    with pytest.raises(OverflowError):
        above("float16", -1, np.zeros(3, bool))
    with pytest.raises(ValueError, match="one byte per pixel"):
        above("float16", 1, np.zeros(2, bool))
    read_only = np.zeros(3, bool)
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match=r"read-only|writ"):
        above("float16", 1, read_only)


@pytest.mark.parametrize("classes", [256, 257, 1000])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "float32", "float64"])
def test_more_classes_than_bytes_hold(decided, classes, dtype):
    scores = np.random.default_rng(classes).integers(-99, 99, (classes, 5, 33)).astype(dtype)
    want = scores.argmax(0)
    np.testing.assert_array_equal(decided(scores, argmax=0), want)
    last = np.ascontiguousarray(np.moveaxis(scores, 0, -1))
    np.testing.assert_array_equal(decided(last, argmax=-1), want)
    np.testing.assert_array_equal(decided(last[::2, ::-3], argmax=-1), want[::2, ::-3])


def test_scores_of_extended_precision_have_thresholds():
    scores = np.array([0.25, 0.5, 0.75], np.longdouble)
    assert scores_to_labels(scores, threshold=0.5).tolist() == [False, False, True]
