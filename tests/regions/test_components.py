"""Connected components by hand, by either routine, and as SciPy finds them."""

import numpy as np
import pytest
from scipy import ndimage

from segiou.counting import count_id_pairs
from segiou.regions import components, label_components

DIAGONAL = [[1, 0, 0, 2], [0, 1, 0, 2], [0, 0, 1, 0]]


@pytest.fixture(params=["c", "skimage"])
def program(request, monkeypatch):
    """Either routine that finds components."""
    if request.param == "skimage":
        monkeypatch.setattr(components, "_components", None)
    elif components._components is None:
        pytest.skip("the compiled routine was not built")
    return request.param


def test_by_hand(program):
    assert label_components(DIAGONAL).tolist() == [[1, 0, 0, 2], [0, 1, 0, 2], [0, 0, 1, 0]]
    assert label_components(DIAGONAL, connectivity=4).max() == 4
    assert label_components(DIAGONAL, [2]).tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [0] * 4]
    assert label_components([[1, 2, 0, 300000]], [(1, 300000), 2]).tolist() == [[1, 2, 0, 3]]
    # Class 0 may be meant, and touching classes are different objects.
    assert label_components([[0, 0, 1], [5, 0, 1]], [0, 1]).tolist() == [[1, 1, 2], [0, 1, 2]]


def test_small_components_are_no_objects():
    assert label_components(DIAGONAL, min_size=3).max() == 1
    assert label_components(DIAGONAL, min_size=3, spacing=(1, 1.5)).max() == 2
    assert label_components(DIAGONAL, min_size=4).max() == 0


def test_small_volumes_are_no_objects():
    volume = np.zeros((3, 3, 6), np.uint8)
    volume[0, 0, :2] = volume[2, 2, 5] = 1  # 10 and 5 mm³
    assert label_components(volume, min_size=5, spacing=(1, 1, 5)).max() == 2
    assert label_components(volume, min_size=10, spacing=(1, 1, 5)).max() == 1
    assert label_components(volume, min_size=10.5, spacing=(1, 1, 5)).max() == 0


def test_fragments_that_nearly_touch_are_one(program):
    row = [[1, 0, 0, 0, 1, 0, 0, 0, 0, 2]]
    assert label_components(row, merge=1).tolist() == [[1, 0, 0, 0, 2, 0, 0, 0, 0, 3]]
    assert label_components(row, merge=2).tolist() == [[1, 0, 0, 0, 1, 0, 0, 0, 0, 2]]


def same_partition(found, expected):
    pairs = {*zip(found.ravel().tolist(), expected.ravel().tolist(), strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize(
    ("shape", "connectivity"), [((9, 8), 4), ((9, 8), 8)] + [((5, 6, 4), n) for n in (6, 18, 26)]
)
def test_random_maps_are_cut_as_scipy_cuts_them(program, shape, connectivity):
    ranks = {4: 1, 8: 2, 6: 1, 18: 2, 26: 3}
    structure = ndimage.generate_binary_structure(len(shape), ranks[connectivity])
    rng = np.random.default_rng(connectivity)
    for _ in range(20):
        labels = rng.integers(0, 4, shape).astype(np.uint8)
        expected = np.zeros(shape, int)
        for value in (1, 2, 3):
            ids, _ = ndimage.label(labels == value, structure)
            expected = np.where(ids, ids + expected.max(), expected)
        found = label_components(labels, connectivity=connectivity)
        assert same_partition(found, expected)
        assert sorted({*found.ravel().tolist()} - {0}) == list(range(1, expected.max() + 1))


@pytest.mark.parametrize("dtype", ["bool", "u1", ">i2", "u4", "i8", "u8"])
def test_runs_are_found_in_labels_of_any_type(program, dtype):
    rng = np.random.default_rng(0)
    values = np.array([0, 1, -(2**63), 2**63 - 1, 2**16, 2**32 + 1]).astype(dtype)
    for width in (1, 7, 8, 9, 63, 64, 65, 130):
        labels = rng.choice(values, (5, width)).repeat(rng.integers(1, 4), axis=1)
        for order in "CF":
            found = components.components(np.asarray(labels, order=order), (), 4, 0)
            expected = [ndimage.label(labels == value)[0] for value in np.unique(values)]
            code = np.max([ids + 1000 * k * (ids > 0) for k, ids in enumerate(expected)], axis=0)
            assert same_partition(found.id_map, code)
            assert found.id_map.max() == len(found.values) == len(found.sizes)
            assert (found.drawn(found.values) == labels).all()
            assert (np.diff(np.unique(found.id_map, return_index=True)[1]) > 0).all()


def test_overlaps_of_runs_are_those_of_pixels(program):
    rng = np.random.default_rng(1)
    for _ in range(50):
        shape = tuple(rng.integers(1, 12, rng.integers(2, 4)))
        sides = [components.components(rng.integers(0, 3, shape), (), None, 0) for _ in range(2)]
        expected = count_id_pairs(*(side.id_map for side in sides))
        for ours, theirs in zip(sides[0].overlaps(sides[1]), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_classes_of_two_values_are_one(program):
    labels = np.array([[1, 2, 0, 300], [0, 0, 3, 300]], np.int16)
    assert label_components(labels, [(300, 3), (2, 1, 70000)]).tolist() == [
        [1, 1, 0, 2],
        [0, 0, 2, 2],
    ]
    assert labels.tolist() == [[1, 2, 0, 300], [0, 0, 3, 300]]


def test_the_routine_refuses_what_it_would_read_outside():
    if components._components is None:
        pytest.skip("the compiled routine was not built")
    find, labels = components._components.find_components, np.zeros(12, np.uint8)
    for size, shape in [
        (1, (1, 3, 5)), (2, (1, 3, 4)), (3, (1, 1, 4)), (1, (0, 3, 4)), (1, (-1, -3, 4)),
        (8, (1, 1 << 31, 1 << 31)), (1, (1 << 31, 1 << 31, 4)),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="aligned integers"):
            find(labels, size, shape, 2)
    with pytest.raises(ValueError, match="aligned integers"):
        find(np.zeros(9, np.uint8)[1:], 8, (1, 1, 1), 2)


def test_nothing_is_no_object(program):
    assert label_components(np.zeros((3, 4), bool)).max() == 0
    assert label_components(np.zeros((0, 4), int)).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"connectivity": 6}, "connectivity of 2 axes must be 4 or 8, got 6"),
        ({"min_size": -1}, "min_size must be at least 0"),
        ({"merge": -1}, "merge must be at least 0"),
        ({"values": [1, (2, 1)]}, "value 1 is in two regions"),
        ({"spacing": 0}, "spacing must be one number from 1e-12 to 1e12 or one per axis, got 0"),
        ({"spacing": 1e-320}, "spacing must be one number from 1e-12 to 1e12"),
        ({"spacing": (1, 1e13)}, "spacing must be one number from 1e-12 to 1e12"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        label_components(DIAGONAL, **options)


def test_wrong_arrays_are_named():
    with pytest.raises(ValueError, match=r"shape \(H, W\) or \(D, H, W\), got shape \(3,\)"):
        label_components([1, 0, 1])
    with pytest.raises(TypeError, match="labels"):
        label_components([[0.5]])
    with pytest.raises(TypeError, match="values must be a sequence of classes"):
        label_components(DIAGONAL, 1)
    for wrong in ("1", 1.5, (1, None)):
        with pytest.raises(TypeError, match="values must be an integer"):
            label_components(DIAGONAL, [wrong])
    assert label_components([[True, False]], [True]).tolist() == [[1, 0]]


@pytest.mark.parametrize("side", [0.1, 0.3, 0.7, 1.1])
@pytest.mark.parametrize("pixels", [3, 7, 21])
def test_a_size_in_mm_of_whole_pixels_is_reached(side, pixels):
    mask = np.zeros((3, 30), np.uint8)
    mask[1, :pixels] = 1
    size = f"{round(pixels * side * side, 4)}mm2"
    assert label_components(mask, min_size=size, spacing=(side, side)).max() == 1
    more = f"{round((pixels + 1) * side * side, 4)}mm2"
    assert label_components(mask, min_size=more, spacing=(side, side)).max() == 0


def test_dilations_beyond_the_image_change_nothing():
    mask = np.zeros((5, 5), int)
    mask[0, 0] = mask[4, 4] = 1
    assert label_components(mask, merge=2**70).max() == 1
    assert label_components(mask, merge=0).max() == 2


@pytest.mark.parametrize("connectivity", ["4", 4.0, True, [4]])
def test_connectivity_is_an_integer(connectivity):
    with pytest.raises(TypeError, match="connectivity must be an integer"):
        label_components(np.eye(3, dtype=int), connectivity=connectivity)
