import numpy as np
import pytest
from hypothesis import given, strategies as st
from pycocotools import mask as coco_mask

from segiou.geometry import box_iou, box_to_mask, mask_iou, mask_to_box

SHAPE = (7, 9)
boxes = st.tuples(st.integers(0, 9), st.integers(0, 7), st.integers(0, 9), st.integers(0, 7)).map(
    lambda c: [min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3])]
)


@given(boxes, boxes)
def test_masks_of_integer_boxes_have_the_iou_of_the_boxes(first, second):
    masks = box_to_mask([first, second], SHAPE)
    assert masks[0].sum() == (first[2] - first[0]) * (first[3] - first[1])
    np.testing.assert_array_equal(
        mask_iou(masks[0], masks[1], elementwise=True), box_iou(first, second, elementwise=True)
    )
    drawn = mask_to_box(masks)
    np.testing.assert_array_equal(box_to_mask(drawn, SHAPE), masks)
    np.testing.assert_array_equal(box_iou(drawn, drawn), mask_iou(masks, masks))


def test_box_of_a_mask_has_exclusive_ends():
    mask = np.zeros((2, 4, 6), dtype=np.uint8)
    mask[0, 1:3, 2:5] = 255
    np.testing.assert_array_equal(mask_to_box(mask), [[2, 1, 5, 3], [0, 0, 0, 0]])
    np.testing.assert_array_equal(mask_to_box(np.zeros((0, 5), bool)), [0, 0, 0, 0])


def test_box_to_mask_goes_by_pixel_centres_and_cuts_off():
    mask = box_to_mask([-3, 0.5, 1.5, 9], (3, 3))
    np.testing.assert_array_equal(mask, [[1, 0, 0], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(box_to_mask([0, 0.6, 1.6, 9], (3, 3))[0], [0, 0, 0])
    assert box_to_mask(np.zeros((4, 2, 4)), (3, 5)).shape == (4, 2, 3, 5)
    np.testing.assert_array_equal(box_to_mask([1, 1, 2, 2], (3, 3), fmt="cxcywh")[2], [0, 0, 0])


def test_mask_iou_as_in_pycocotools():
    rng = np.random.default_rng(0)
    truth, pred = rng.random((5, 300, 301)) < 0.3, rng.random((4, 300, 301)) < 0.6
    crowd = np.array([0, 1, 0, 1, 0])
    encoded = [
        coco_mask.encode(np.asfortranarray(np.moveaxis(masks, 0, -1), dtype=np.uint8))
        for masks in (pred, truth)
    ]
    expected = coco_mask.iou(*encoded, crowd.tolist()).T
    np.testing.assert_array_equal(mask_iou(truth, pred, crowd=crowd), expected)
    np.testing.assert_array_equal(
        mask_iou(truth[:4], pred, crowd=crowd[:4], elementwise=True), np.diagonal(expected)
    )


def test_empty_masks_are_undefined_together():
    nothing, something = np.zeros((1, 2, 2), bool), np.ones((1, 2, 2), bool)
    assert np.isnan(mask_iou(nothing, nothing)[0, 0])
    assert mask_iou(nothing, something)[0, 0] == 0
    assert mask_iou(np.zeros((0, 2, 2), bool), something).shape == (0, 1)


def test_bad_masks():
    with pytest.raises(TypeError, match="mask > threshold"):
        mask_to_box([[0.5]])
    with pytest.raises(ValueError, match="height and a width"):
        mask_to_box([True])
    with pytest.raises(ValueError, match="equal height and width"):
        mask_iou(np.zeros((1, 2, 2), bool), np.zeros((1, 2, 3), bool))
    with pytest.raises(ValueError, match="elementwise=True"):
        mask_iou(np.zeros((2, 2), bool), np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match="do not broadcast"):
        mask_iou(np.zeros((2, 2, 2), bool), np.zeros((3, 2, 2), bool), elementwise=True)
    with pytest.raises(ValueError, match="box 1 has swapped"):
        box_to_mask([[0, 0, 1, 1], [1, 0, 0, 1]], (2, 2))
    for shape in [(2,), (-1, 2), (2.0, 3.0), (1, 2, 3)]:
        with pytest.raises(ValueError, match="height, width"):
            box_to_mask([0, 0, 1, 1], shape)
