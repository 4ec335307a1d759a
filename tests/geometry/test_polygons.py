import subprocess
import sys

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, strategies as st

from segiou.geometry import (
    box_iou,
    mask_iou,
    mask_to_box,
    polygon_giou,
    polygon_intersection,
    polygon_iou,
    polygon_to_mask,
    polygon_union,
)

BOW_TIE = [(0, 0), (2, 2), (2, 0), (0, 2)]
RING = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (3, 1), (3, 3), (1, 3)]])
PARTS = shapely.MultiPolygon([shapely.box(0, 0, 1, 4), shapely.box(3, 0, 4, 4)])


def random_polygons(rng, count):
    """Stars around random centres: valid, and seldom convex."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, (count, 9)), axis=1)
    radii = rng.uniform(1, 6, (count, 9))
    centres = rng.uniform(0, 12, (count, 1, 2))
    stars = centres + np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=-1)
    return [p for p in map(shapely.Polygon, stars) if p.is_valid]


def test_holes_and_parts():
    np.testing.assert_array_equal(polygon_intersection([RING], [PARTS]), [[8]])
    np.testing.assert_array_equal(polygon_union([RING], [PARTS]), [[12]])
    np.testing.assert_array_equal(
        polygon_iou([RING], [PARTS, shapely.box(1, 1, 3, 3)]), [[8 / 12, 0]]
    )
    np.testing.assert_array_equal(polygon_iou([PARTS], [RING], elementwise=True), [8 / 12])


def test_published_boxes_as_polygons():
    truth = np.array([[50, 100], [200, 100], [200, 300], [50, 300]])
    pred = shapely.box(80, 120, 220, 310)
    assert polygon_iou([truth], [pred])[0, 0] == 21600 / 35000
    assert polygon_iou([shapely.box(0, 0, 5, 5)], [shapely.box(1, 1, 5, 5)])[0, 0] == 16 / 25


def test_giou_by_the_convex_hull():
    square = shapely.box(0, 0, 1, 1)
    # Corner to corner the convex hull has area 3, the enclosing box 4.
    diagonal = polygon_giou([square], [shapely.box(1, 1, 2, 2)])
    np.testing.assert_allclose(diagonal, [[-1 / 3]])
    np.testing.assert_array_equal(polygon_giou([square], [square]), [[1]])
    np.testing.assert_allclose(polygon_giou([RING], [RING]), [[1 - 4 / 16]])


def test_all_pairs_against_shapely_one_by_one():
    rng = np.random.default_rng(0)
    truth, pred = random_polygons(rng, 12), random_polygons(rng, 10)
    iou, giou = polygon_iou(truth, pred), polygon_giou(truth, pred)
    for i, a in enumerate(truth):
        for j, b in enumerate(pred):
            shared, whole = a.intersection(b).area, a.union(b).area
            hull = shapely.unary_union([a, b]).convex_hull.area
            assert iou[i, j] == pytest.approx(shared / whole, abs=1e-12)
            assert giou[i, j] == pytest.approx(shared / whole - (hull - whole) / hull, abs=1e-12)
    count = min(len(truth), len(pred))
    for measure in (polygon_iou, polygon_giou, polygon_intersection, polygon_union):
        np.testing.assert_allclose(
            measure(truth[:count], pred[:count], elementwise=True),
            np.diagonal(measure(truth, pred)),
            rtol=1e-12,
        )
    np.testing.assert_allclose(iou, polygon_iou(pred, truth).T, rtol=1e-12)
    assert (giou <= iou).all()
    assert (iou > 0).any()
    assert (iou == 0).any()


def test_polygons_without_area():
    empty, square = shapely.Polygon(), shapely.box(0, 0, 1, 1)
    np.testing.assert_array_equal(polygon_iou([empty], [empty, square]), [[np.nan, 0]])
    assert np.isnan(polygon_giou([empty], [empty])[0, 0])
    assert polygon_iou([], [square]).shape == (0, 1)
    assert polygon_giou([square], []).shape == (1, 0)


def test_invalid_polygons_are_named():
    square = shapely.box(0, 0, 1, 1)
    with pytest.raises(ValueError, match=r"truth polygon 1 is invalid: Self-intersection.*repair"):
        polygon_iou([square, BOW_TIE], [square])
    with pytest.raises(ValueError, match="predicted polygon 0 is invalid"):
        polygon_giou([square], [shapely.Polygon(BOW_TIE)])
    with pytest.raises(ValueError, match="polygon 0 is invalid"):
        polygon_to_mask(BOW_TIE, (2, 2))


def test_invalid_polygons_are_repaired_if_asked():
    square = shapely.box(0, 0, 2, 2)
    assert polygon_iou([BOW_TIE], [square], repair=True)[0, 0] == 0.5
    spike = [(0, 0), (2, 0), (2, 2), (0, 2), (0, 1), (-3, 1), (0, 1)]
    assert polygon_iou([spike], [square], repair=True)[0, 0] == 1
    assert np.isnan(polygon_iou([[(0, 0), (1, 1), (2, 2)]], [shapely.Polygon()], repair=True)[0, 0])
    hole_twice = shapely.MultiPolygon([square, shapely.box(1, 0, 3, 2)])
    assert polygon_union([hole_twice], [square], repair=True)[0, 0] > 0


def test_corners_must_be_finite():
    with pytest.raises(ValueError, match=r"truth polygon 0 has a nonfinite corner.*nan"):
        polygon_iou([[(0, 0), (1, 1), (np.nan, 2)]], [RING], repair=True)
    with np.errstate(invalid="ignore"):
        endless = shapely.Polygon([(0, 0), (1, 1), (np.inf, 2)])
    with pytest.raises(ValueError, match="truth polygon 0 cannot be repaired: Invalid Coordinate"):
        polygon_iou([endless], [RING], repair=True)


@pytest.mark.parametrize(
    "item", [shapely.Point(0, 0), None, "a", [(0, 0), (1, 1)], [1, 2, 3], np.zeros((3, 3))]
)
def test_other_things_are_refused(item):
    with pytest.raises(TypeError, match="truth polygon 1 must be a"):
        polygon_iou([RING, item], [RING])


def test_lists_are_required_and_must_pair_off():
    with pytest.raises(TypeError, match="expected a list of truth polygons"):
        polygon_iou(RING, [RING])
    with pytest.raises(ValueError, match="equal numbers of polygons, got 2 and 1"):
        polygon_iou([RING, RING], [RING], elementwise=True)


def test_mask_of_a_polygon_with_hole_and_parts():
    expected = np.zeros((5, 6), dtype=bool)
    expected[:4, :4] = True
    expected[1:3, 1:3] = False
    np.testing.assert_array_equal(polygon_to_mask(RING, (5, 6)), expected)
    expected[:, 1:3] = False
    np.testing.assert_array_equal(polygon_to_mask(PARTS, (5, 6)), expected)
    np.testing.assert_array_equal(polygon_to_mask(shapely.Polygon(), (2, 2)), np.zeros((2, 2)))
    np.testing.assert_array_equal(polygon_to_mask(RING, (0, 3)), np.zeros((0, 3)))


def test_mask_takes_centres_on_the_outline_and_on_holes():
    square = shapely.Polygon(
        shapely.box(0.5, 0.5, 4.5, 4.5).exterior, [shapely.box(1.5, 1.5, 3.5, 3.5).exterior]
    )
    expected = np.ones((5, 5), dtype=bool)
    expected[2, 2] = False
    np.testing.assert_array_equal(polygon_to_mask(square, (5, 5)), expected)


def test_masks_are_cut_off_at_the_border():
    np.testing.assert_array_equal(
        polygon_to_mask(shapely.box(-5, 1, 1, 99), (3, 2)), [[0, 0], [1, 0], [1, 0]]
    )
    assert not polygon_to_mask(shapely.box(-9, -9, -5, -5), (3, 2)).any()
    assert not polygon_to_mask(shapely.box(50, 50, 60, 60), (3, 2)).any()


def test_masks_against_shapely_point_by_point():
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:14, :15] + 0.5
    hole = shapely.box(4.2, 4.1, 7.7, 8.9)
    for polygon in random_polygons(rng, 15):
        for shape in (polygon, polygon.difference(hole)):
            if shape.geom_type in ("Polygon", "MultiPolygon"):
                expected = shapely.intersects_xy(shape, x, y)
                np.testing.assert_array_equal(polygon_to_mask(shape, (14, 15)), expected)


sides = st.tuples(*[st.integers(0, 8)] * 4).map(
    lambda c: [min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3])]
)


@given(sides, sides)
def test_boxes_polygons_and_masks_agree(first, second):
    assume(all(box[0] < box[2] and box[1] < box[3] for box in (first, second)))
    polygons = [shapely.box(*first)], [shapely.box(*second)]
    masks = [polygon_to_mask(one[0], (8, 8)) for one in polygons]
    expected = box_iou(first, second, elementwise=True)
    assert polygon_iou(*polygons, elementwise=True)[0] == expected
    assert mask_iou(*masks, elementwise=True) == expected
    np.testing.assert_array_equal(mask_to_box(masks), [first, second])


def test_the_room_opens_without_shapely():
    code = (
        "import sys; sys.modules['shapely'] = None\n"
        "from segiou.geometry import box_iou, polygon_iou\n"
        "assert 'skimage' not in sys.modules\n"
        "box_iou([[0, 0, 1, 1]], [[0, 0, 1, 1]])\n"
        "try:\n    polygon_iou([], [])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'segiou[polygon]'" in done.stdout


def test_areas_that_overflow_are_an_error():
    large = [(0, 0), (1e200, 0), (1e200, 1e200)]
    with pytest.raises(ValueError, match="the polygons are so large that float64 overflows"):
        polygon_iou([large], [large])
