import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pycocotools import mask as coco_mask

from segiou import geometry
from segiou.geometry import (
    box_giou,
    box_intersection,
    box_iof,
    box_iou,
    box_signed_iou,
    box_union,
    iter_box_iou,
)

MEASURES = [box_intersection, box_union, box_iou, box_giou, box_signed_iou, box_iof]


def random_boxes(rng, count, low=0, high=30, dtype=float):
    ends = np.sort(rng.uniform(low, high, (count, 2, 2)), axis=1)
    return np.concatenate([ends[:, 0], ends[:, 1]], axis=1).astype(dtype)


def as_format(boxes, fmt):
    corners = np.asarray(boxes, dtype=float)
    size = corners[..., 2:] - corners[..., :2]
    start = corners[..., :2] if fmt == "xywh" else corners[..., :2] + size / 2
    return corners if fmt == "xyxy" else np.concatenate([start, size], axis=-1)


def torchvision_style(truth, pred):
    """Intersection, union, IoU and GIoU by the formulas that torchvision.ops.boxes states."""
    top_left = np.maximum(truth[:, None, :2], pred[None, :, :2])
    bottom_right = np.minimum(truth[:, None, 2:], pred[None, :, 2:])
    shared = np.prod((bottom_right - top_left).clip(min=0), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (truth, pred)]
    union = areas[0][:, None] + areas[1] - shared
    outer_left = np.minimum(truth[:, None, :2], pred[None, :, :2])
    outer_right = np.maximum(truth[:, None, 2:], pred[None, :, 2:])
    hull = np.prod((outer_right - outer_left).clip(min=0), axis=2)
    return shared, union, shared / union, shared / union - (hull - union) / hull


@pytest.mark.parametrize(
    ("truth", "pred", "shared", "union"),
    [
        ([50, 100, 200, 300], [80, 120, 220, 310], 21600, 35000),
        ([0, 0, 10, 10], [5, 5, 15, 15], 25, 175),
        ([0, 0, 5, 5], [1, 1, 5, 5], 16, 25),
    ],
)
@pytest.mark.parametrize("fmt", ["xyxy", "xywh", "cxcywh"])
def test_published_boxes(truth, pred, shared, union, fmt):
    given_boxes = as_format(truth, fmt), as_format(pred, fmt)
    assert box_intersection(*given_boxes, fmt=fmt, elementwise=True) == shared
    assert box_union(*given_boxes, fmt=fmt, elementwise=True) == union
    assert box_iou(*given_boxes, fmt=fmt, elementwise=True) == shared / union


def test_integer_centre_format_keeps_halves():
    assert box_iou([5, 5, 5, 5], [5, 5, 4, 4], fmt="cxcywh", elementwise=True) == 16 / 25


def test_all_pairs_have_truth_in_rows():
    iou = box_iou([[0, 0, 10, 10], [0, 0, 5, 5]], [[0, 0, 5, 5], [5, 5, 15, 15], [20, 20, 30, 30]])
    np.testing.assert_array_equal(iou, [[0.25, 25 / 175, 0], [1, 0, 0]])


def test_against_torchvision_formulas():
    rng = np.random.default_rng(1)
    truth, pred = random_boxes(rng, 40), random_boxes(rng, 30)
    expected = torchvision_style(truth, pred)
    for measure, values in zip(MEASURES[:4], expected, strict=True):
        np.testing.assert_allclose(measure(truth, pred), values, rtol=1e-12, atol=1e-12)


def test_elementwise_is_the_diagonal_of_all_pairs():
    rng = np.random.default_rng(2)
    truth, pred = random_boxes(rng, 25), random_boxes(rng, 25)
    for measure in MEASURES:
        np.testing.assert_array_equal(
            measure(truth, pred, elementwise=True), np.diagonal(measure(truth, pred))
        )


def test_elementwise_broadcasts_and_scalars_stay_scalars():
    boxes = np.arange(24).reshape(2, 3, 4)
    assert box_iou(boxes, boxes[0, 0], elementwise=True).shape == (2, 3)
    single = box_iou([0, 0, 1, 1], [0, 0, 1, 1], elementwise=True)
    assert isinstance(single, np.float64)


def test_crowds_as_in_pycocotools():
    rng = np.random.default_rng(3)
    truth, pred = random_boxes(rng, 20), random_boxes(rng, 35)
    truth, pred = as_format(truth, "xywh"), as_format(pred, "xywh")
    crowd = rng.random(20) < 0.5
    expected = coco_mask.iou(pred, truth, crowd.astype(np.uint8)).T
    np.testing.assert_allclose(
        box_iou(truth, pred, fmt="xywh", crowd=crowd), expected, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_array_equal(
        box_iou(truth[:20], pred[:20], fmt="xywh", crowd=crowd, elementwise=True),
        np.diagonal(box_iou(truth, pred, fmt="xywh", crowd=crowd)),
    )


def test_intersection_over_foreground_divides_by_the_prediction():
    assert box_iof([[0, 0, 100, 100]], [[90, 0, 110, 50]]) == 0.5
    np.testing.assert_array_equal(
        box_iof([[0, 0, 100, 100]], [[90, 0, 110, 50]]),
        box_iou([[0, 0, 100, 100]], [[90, 0, 110, 50]], crowd=[1]),
    )


@pytest.mark.parametrize(
    ("pred", "giou", "signed"),
    [
        ([1, 0, 2, 1], 0, 0),  # sharing a side
        ([1, 1, 2, 2], -0.5, 0),  # sharing a corner
        ([2, 0, 3, 1], -1 / 3, -1 / 3),  # a gap as wide as the boxes
        ([2, 2, 3, 3], -7 / 9, -1 / 3),
        ([0, 3, 1, 4], -1 / 2, -1 / 2),
    ],
)
def test_touching_and_disjoint_boxes(pred, giou, signed):
    box = [0, 0, 1, 1]
    for measure in (box_intersection, box_iou, box_iof):
        assert measure(box, pred, elementwise=True) == 0
    assert box_union(box, pred, elementwise=True) == 2
    assert box_giou(box, pred, elementwise=True) == pytest.approx(giou, abs=1e-15)
    assert box_signed_iou(box, pred, elementwise=True) == pytest.approx(signed, abs=1e-15)
    assert not np.signbit(box_iou(box, pred, elementwise=True))
    assert signed or not np.signbit(box_signed_iou(box, pred, elementwise=True))


def test_boxes_without_area():
    point, square = [2, 2, 2, 2], [0, 0, 4, 4]
    assert box_iou(point, square, elementwise=True) == 0
    assert box_giou(point, square, elementwise=True) == 0
    assert box_signed_iou(point, square, elementwise=True) == 0
    assert np.isnan(box_iof(square, point, elementwise=True))
    for measure in (box_iou, box_giou, box_signed_iou):
        assert np.isnan(measure(point, point, elementwise=True))
    assert np.isnan(box_iou([0, 0, 4, 0], [9, 9, 9, 9], elementwise=True))


@pytest.mark.parametrize(
    ("boxes", "fmt", "message"),
    [
        (
            [[0, 0, 1, 1], [50, 100, 20, 300]],
            "xyxy",
            r"truth box 1 .*swapped.*\[50, 100, 20, 300\]",
        ),
        ([[0, 5, 1, 1], [0, 5, 1, 1]], "xyxy", r"truth box 0 .*\[0, 5, 1, 1\] \(and 1 more\)"),
        ([[0, 0, -1, 1]], "xywh", r"truth box 0 .*negative.*\[0, 0, -1, 1\]"),
        ([[0, 0, 1, -0.5]], "cxcywh", r"truth box 0 .*negative.*-0\.5"),
        ([[0, 0, 1, 1], [0, np.nan, 1, 1]], "xyxy", r"truth box 1 is not finite: \[0\.0, nan"),
        ([[0, 0, np.inf, 1]], "xyxy", "truth box 0 is not finite"),
        ([[0, 0, 1]], "xyxy", "must have 4 numbers"),
        ([0, 0, 1, 1], "xyxy", "elementwise=True"),
        ([[0, 0, 1, 1]], "yxyx", "'xyxy', 'xywh' or 'cxcywh'"),
        ([[2**63 - 5, 0, 6, 1]], "xywh", "truth box 0 ends beyond int64"),
        ([[-1e308, 0, 1e308, 1]], "xyxy", "overflows"),
        (np.array([[0, 0, 2**63, 1]], dtype=np.uint64), "xyxy", "truth box 0 is beyond int64"),
    ],
)
def test_bad_boxes_are_named(boxes, fmt, message):
    with pytest.raises(ValueError, match=message):
        box_iou(boxes, [[0, 0, 1, 1]], fmt=fmt)


def test_bad_predictions_are_named_as_such():
    with pytest.raises(ValueError, match=r"predicted box \(0, 1\) has swapped ends"):
        box_iou(np.zeros((1, 2, 4)), [[[0, 0, 1, 1], [1, 0, 0, 1]]], elementwise=True)
    with pytest.raises(ValueError, match="predicted box has swapped ends"):
        box_iou([0, 0, 1, 1], [1, 0, 0, 1], elementwise=True)


@pytest.mark.parametrize("boxes", [[["a"] * 4], np.zeros((1, 4), bool), [[None] * 4], [[1j] * 4]])
def test_other_kinds_are_refused(boxes):
    with pytest.raises(TypeError, match="integers or floats"):
        box_iou(boxes, [[0, 0, 1, 1]])


def test_shapes_flags_and_out_are_checked():
    boxes = np.array([[0, 0, 1, 1], [0, 0, 2, 2]])
    with pytest.raises(ValueError, match="do not broadcast"):
        box_iou(boxes, np.zeros((3, 4)), elementwise=True)
    with pytest.raises(ValueError, match="one flag per truth"):
        box_iou(boxes, boxes, crowd=[True])
    with pytest.raises(ValueError, match="True or False"):
        box_iou(boxes, boxes, crowd=[0, 2])
    with pytest.raises(TypeError, match="crowd"):
        box_iou(boxes, boxes, crowd=[0.0, 1.0])
    with pytest.raises(ValueError, match="out must have shape"):
        box_iou(boxes, boxes, out=np.empty((2, 3)))
    with pytest.raises(TypeError, match="float32 or float64"):
        box_iou(boxes, boxes, out=np.empty((2, 2), dtype=int))


def test_no_boxes_at_all():
    assert box_iou([], [[0, 0, 1, 1]]).shape == (0, 1)
    assert box_iou(np.zeros((2, 4), int), np.zeros((0, 4))).shape == (2, 0)
    assert list(iter_box_iou([], [])) == []


def test_caller_arrays_are_left_alone():
    boxes = np.array([[0, 0, 4, 4], [1, 1, 3, 3]])
    boxes.flags.writeable = False
    for fmt in ("xyxy", "xywh", "cxcywh"):
        box_giou(boxes, boxes, fmt=fmt)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("fmt", ["xyxy", "xywh"])
def test_small_integer_types_do_not_overflow(dtype, fmt):
    top = int(np.iinfo(dtype).max)
    half = top // 2
    size = [top, top] if fmt == "xyxy" else [half, half]
    start = half if fmt == "xyxy" else half + top % 2
    big = np.array([0, 0, top, top], dtype=dtype)
    part = np.array([start, start, *size], dtype=dtype)
    side = top - start if fmt == "xyxy" else half
    expected = float(Fraction(side * side, top * top))
    assert box_iou(big, part, fmt=fmt, elementwise=True) == pytest.approx(expected, rel=1e-15)


def test_the_whole_range_of_int32_and_int64():
    for dtype in (np.int32, np.int64):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        whole = np.array([low, low, high, high], dtype=dtype)
        quarter = np.array([0, 0, high, high], dtype=dtype)
        expected = Fraction(high * high, (high - low) ** 2)
        assert box_iou(whole, quarter, elementwise=True) == pytest.approx(
            float(expected), rel=1e-15
        )
        assert box_iou(whole, whole, elementwise=True) == 1


@pytest.mark.parametrize("far", [2**20, 2**54, 2**62])
def test_small_boxes_far_from_the_origin_are_exact(far):
    truth = np.array([[far, far, far + 10, far + 10], [-far, -far, 5 - far, 5 - far]])
    pred = np.array([[far + 5, far + 5, far + 15, far + 15], [1 - far, 1 - far, 5 - far, 5 - far]])
    np.testing.assert_array_equal(box_iou(truth, pred), [[25 / 175, 0], [0, 16 / 25]])
    np.testing.assert_array_equal(box_intersection(truth, pred), [[25, 0], [0, 16]])
    assert (box_signed_iou(truth, pred)[[0, 1], [1, 0]] < 0).all()
    assert box_giou(truth, pred)[0, 1] == pytest.approx(-1, abs=1e-9)


def test_blocks_make_up_the_whole():
    rng = np.random.default_rng(4)
    truth, pred = random_boxes(rng, 23), random_boxes(rng, 11)
    for measure in MEASURES:
        name = measure.__name__.removeprefix("box_")
        blocks = list(iter_box_iou(truth, pred, name, rows=7))
        assert [(rows.start, rows.stop) for rows, _ in blocks] == [
            (0, 7),
            (7, 14),
            (14, 21),
            (21, 23),
        ]
        np.testing.assert_array_equal(
            np.concatenate([block for _, block in blocks]), measure(truth, pred)
        )
    crowd = np.arange(23) % 2 == 0
    whole = np.concatenate([block for _, block in iter_box_iou(truth, pred, crowd=crowd, rows=7)])
    np.testing.assert_array_equal(whole, box_iou(truth, pred, crowd=crowd))


def test_blocks_check_at_the_call():
    with pytest.raises(ValueError, match="swapped"):
        iter_box_iou([[1, 0, 0, 1]], [])
    with pytest.raises(ValueError, match="measure must be 'intersection', 'union'"):
        iter_box_iou([], [], "diou")
    with pytest.raises(ValueError, match="crowd requires measure"):
        iter_box_iou([], [], "giou", crowd=[])
    with pytest.raises(ValueError, match="at least 1"):
        iter_box_iou([], [], rows=0)


def test_memory_stays_bounded():
    rng = np.random.default_rng(5)
    truth, pred = random_boxes(rng, 700), random_boxes(rng, 1500)
    out = np.empty((700, 1500), dtype=np.float32)
    for measure in MEASURES:
        tracemalloc.start()
        measure(truth, pred, out=out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2_000_000, measure
    assert box_iof(truth, pred, out=out) is out
    np.testing.assert_array_equal(out, box_iof(truth, pred).astype(np.float32))


coordinates = st.integers(-8, 8)
boxes_strategy = st.tuples(coordinates, coordinates, coordinates, coordinates).map(
    lambda c: [min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3])]
)
lists = st.lists(boxes_strategy, min_size=1, max_size=6)


@given(lists, lists)
def test_symmetry_range_and_order(truth, pred):
    iou = box_iou(truth, pred)
    for measure in MEASURES[:5]:
        np.testing.assert_array_equal(measure(truth, pred), measure(pred, truth).T)
    defined = ~np.isnan(iou)
    np.testing.assert_array_equal(defined, box_union(truth, pred) > 0)
    giou, signed = box_giou(truth, pred), box_signed_iou(truth, pred)
    assert ((iou >= 0) & (iou <= 1))[defined].all()
    assert ((giou > -1) & (giou <= iou))[defined].all()
    assert (signed >= -1)[~np.isnan(signed)].all()
    np.testing.assert_array_equal(signed[iou > 0], iou[iou > 0])
    equal = (np.array(truth)[:, None] == np.array(pred)).all(axis=2)
    np.testing.assert_array_equal((iou == 1)[defined], equal[defined])
    np.testing.assert_array_equal((giou == 1)[defined], equal[defined])


@given(
    st.lists(
        st.tuples(*[st.floats(-1e6, 1e6)] * 2, *[st.floats(1e-3, 1e6)] * 2), min_size=1, max_size=5
    )
)
def test_floats_stay_in_range(sized):
    iou, giou = box_iou(sized, sized, fmt="xywh"), box_giou(sized, sized, fmt="xywh")
    assert ((iou >= 0) & (iou <= 1)).all()
    assert (giou <= iou).all()
    np.testing.assert_array_equal(np.diagonal(iou), 1)


@given(boxes_strategy, st.integers(0, 8), st.integers(0, 8))
def test_shrinking_inside_falls_monotonically(box, left, top):
    x1, y1, x2, y2 = box
    smaller = [min(x1 + left, x2), min(y1 + top, y2), x2, y2]
    smallest = [smaller[0], smaller[1], max(smaller[0], x2 - 1), y2]
    values = box_iou([box] * 3, [box, smaller, smallest], elementwise=True)
    if not np.isnan(values).any():
        assert values[0] == 1 >= values[1] >= values[2]


def test_public_names_exist():
    assert all(hasattr(geometry, name) for name in geometry.__all__)
    assert sorted(set(geometry.__all__), key=geometry.__all__.index) == geometry.__all__


@pytest.mark.parametrize("scale", [1e-161, 1e-170, 1e-320])
def test_areas_that_underflow_are_an_error(scale):
    truth, pred = np.array([[0, 0, 3, 3]]) * scale, np.array([[1, 1, 3, 4]]) * scale
    for function in (box_iou, box_giou, box_iof):
        with pytest.raises(ValueError, match="the boxes are so small that float64 underflows"):
            function(truth, pred)


def test_boxes_without_an_area_and_small_boxes_have_scores():
    assert box_iou([[0, 0, 0, 1e-320]], [[0, 0, 1, 1]]).tolist() == [[0]]
    truth, pred = np.array([[0, 0, 3, 3]]) * 1e-140, np.array([[1, 1, 3, 4]]) * 1e-140
    assert box_iou(truth, pred)[0, 0] == pytest.approx(4 / 11)
