"""Ignored pixels make no boundary and count nowhere."""

import numpy as np
import pytest

from segiou.counting import Encoding, UndeclaredValuesError
from segiou.labels import ClassOptions, LabelClass, LabelSet
from segiou.measures.boundary import BoundaryOptions, boundary_counts, count_labels
from segiou.regions import LabelCodes

pytestmark = pytest.mark.usefixtures("backend")
ALL = BoundaryOptions((1, 4))


def with_void(masks, seed=4):
    truth, pred = masks.pair_of_blobs(seed)
    void = masks.blobs(seed + 90, smooth=2.0) == 0
    return np.where(void, 255, truth).astype(np.uint8), pred, void


def surface_sizes(truth, pred):
    """Pixels and elements of the surfaces of 0 and 1 in both masks, without the image border."""
    from segiou.measures.surfaces import SurfaceOptions, measure_surfaces

    rows = [
        measure_surfaces(truth, pred, (0, 1), ignore=255,
                         options=SurfaceOptions(convention=name, border=False))
        for name in ("segiou", "monai")
    ]  # fmt: skip
    return sum(row.numbers["sizes"].sum() for row in rows)


def test_what_is_predicted_on_ignored_pixels_cannot_matter(masks):
    truth, pred, void = with_void(masks)
    rng = np.random.default_rng(0)
    counts = boundary_counts(truth, pred, 3, ignore=255, options=ALL)
    for low, high in ((0, 3), (3, 256)):
        noise = np.where(void, rng.integers(low, high, pred.shape), pred)
        assert boundary_counts(truth, noise, 3, ignore=255, options=ALL) == counts


def test_mask_and_ignored_value_are_the_same(masks):
    truth, pred, void = with_void(masks)
    by_value = boundary_counts(truth, pred, 3, ignore=255, options=ALL)
    by_mask = boundary_counts(np.where(void, 0, truth), pred, 3, mask=~void, options=ALL)
    assert by_value == by_mask
    assert by_value.pixels == (~void).sum()


@pytest.mark.needs("measures.surfaces")
def test_edge_to_an_ignored_region_is_no_boundary():
    # 0 | void | 1: no pixel of 0 touches one of 1, and yet one is within 2 of the other.
    truth = np.array([[0, 0, 255, 1, 1]] * 3, dtype=np.uint8)
    options = BoundaryOptions((1, 2), border="none")
    counts = boundary_counts(truth, np.minimum(truth, 1), 2, ignore=255, options=options)
    assert surface_sizes(truth, np.minimum(truth, 1)) == 0
    assert counts.part("band")[0].sum() == 0
    assert counts.part("band")[1].tolist() == [[3, 3, 3], [3, 3, 3]]


@pytest.mark.needs("measures.surfaces")
def test_predicted_boundary_inside_an_ignored_region_is_dropped():
    truth = np.zeros((9, 9), dtype=np.uint8)
    truth[2:7, 2:7] = 255
    pred = np.zeros_like(truth)
    pred[4, 4] = 1
    options = BoundaryOptions(1, border="none")
    counts = boundary_counts(truth, pred, 2, ignore=255, options=options)
    assert counts.part("band").sum() == surface_sizes(truth, pred) == 0


def test_everything_ignored_counts_nothing():
    counts = boundary_counts(np.full((4, 5), 9), np.zeros((4, 5), int), 2, ignore=9, options=ALL)
    assert counts.table.sum() == 1 == counts.images


def test_predicted_void_is_no_class_and_yet_a_boundary(masks):
    truth = masks.square()
    pred = np.where(truth == 1, truth, 200).astype(np.uint8)
    with pytest.raises(UndeclaredValuesError, match="pred has undeclared values"):
        boundary_counts(truth, pred, 2, options=ALL)
    counts = boundary_counts(truth, pred, 2, unassigned="count", options=ALL)
    exact = boundary_counts(truth, truth, 2, options=ALL)
    np.testing.assert_array_equal(counts.part("band")[:, 1], exact.part("band")[:, 1])
    assert counts.part("band")[:, 0, 1].sum() == 0


def test_undeclared_truth_is_refused(masks):
    truth = masks.square() * 7
    with pytest.raises(UndeclaredValuesError, match=r"truth has values .* 7 \(64 pixels\)"):
        boundary_counts(truth, masks.square(), 2)


@pytest.mark.parametrize("ignored", [(), (2,), (255,), (0,), (2, 255)])
@pytest.mark.parametrize("size", [1, 63, 64, 200])
def test_bytes_are_encoded_as_any_integers_are(ignored, size):
    rng = np.random.default_rng(size)
    encoding = Encoding.of([(0,), (1,)], ignore=ignored, unassigned="count")
    truth = rng.choice([0, 1, *ignored], (3, size)).astype(np.uint8)
    pred = rng.choice([0, 1, 2, 253, 254, 255], (3, size)).astype(np.uint8)
    expected = np.where(np.isin(truth, ignored), 255, truth)
    for kind in (np.uint8, np.int64, np.uint16):
        t, p = LabelCodes(encoding).encode(truth.astype(kind), pred.astype(kind))
        np.testing.assert_array_equal(t, expected)
        np.testing.assert_array_equal(p == 255, t == 255)
        for c in (0, 1):
            np.testing.assert_array_equal(p == c, (pred == c) & (t != 255))


@pytest.mark.parametrize("value", [2, 200, 254, 255])
def test_an_undeclared_byte_is_refused_wherever_it_stands(value):
    for place in (0, 63, 64, 129):
        labels = np.zeros((1, 130), dtype=np.uint8)
        odd = labels.copy()
        odd[0, place] = value
        with pytest.raises(UndeclaredValuesError, match="truth has"):
            boundary_counts(odd, labels, 2, unassigned="count")
        with pytest.raises(UndeclaredValuesError, match="pred has"):
            boundary_counts(labels, odd, 2, ignore=1)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "<u2", ">u2", ">i4", "int64", "uint64", "float32"]
)
def test_dtypes_strides_and_byte_orders(masks, dtype):
    truth, pred = masks.square(), np.roll(masks.square(), 1, 0)
    expected = boundary_counts(truth, pred, 2, options=ALL)
    if dtype == "float32":
        with pytest.raises(TypeError, match="labels must be integers"):
            boundary_counts(truth.astype(dtype), pred, 2, options=ALL)
        return
    wide = np.repeat(truth.astype(dtype), 2, axis=1)[:, ::2]
    wide.flags.writeable = False
    assert boundary_counts(wide, pred.astype(dtype)[::1], 2, options=ALL) == expected


def test_label_values_are_mapped_at_once(masks):
    truth, pred = masks.pair_of_blobs(2)
    expected = boundary_counts(truth, pred, 3, options=ALL)
    labels = [LabelClass("a", (7, 8)), LabelClass("b", (-3,)), LabelClass("c", (70000,))]
    table = np.array([8, -3, 70000])
    classes = ClassOptions.of(LabelSet("spread", labels), ignore=6)
    codes = LabelCodes(Encoding.of_classes(classes))
    assert count_labels(codes, table[truth], table[pred], ALL) == expected


@pytest.mark.parametrize("value", [-(2**31), 2**32 - 1, 2**64 - 1])
def test_any_integer_can_be_ignored(masks, value):
    truth, pred, void = with_void(masks)
    expected = boundary_counts(truth, pred, 3, ignore=255, options=ALL)
    wide = truth.astype(np.uint64 if value > 0 else np.int64)
    wide[void] = value
    for ignore in (value, [value, 2**40, 2**41]):
        assert boundary_counts(wide, pred, 3, ignore=ignore, options=ALL) == expected


def test_values_that_swap_places_are_looked_up(masks):
    truth, pred = masks.pair_of_blobs(2)
    labels = LabelSet("swapped", [LabelClass(str(v), (v,)) for v in (1, 0, 2)])
    codes = LabelCodes(Encoding.of_classes(ClassOptions.of(labels, ignore=3)))
    table = np.array([1, 0, 2], dtype=np.uint8)
    swapped = count_labels(codes, table[truth], table[pred], ALL)
    assert swapped == boundary_counts(truth, pred, 3, options=ALL)


def test_more_classes_than_a_byte_holds(masks):
    truth, pred = masks.pair_of_blobs(5)
    expected = boundary_counts(truth, pred, 3, options=ALL)
    far = np.array([0, 299, 7])
    counts = boundary_counts(far[truth], far[pred], 300, options=ALL)
    for name in ("band", "trimap", "outer"):
        np.testing.assert_array_equal(counts.part(name)[:, far], expected.part(name))
        assert counts.part(name).sum() == expected.part(name).sum()


def test_more_classes_in_an_image_than_a_byte_holds():
    truth = np.arange(24 * 24, dtype=np.uint16).reshape(24, 24)
    ignored = truth.copy()
    ignored[0, 0] = 65535
    counts = boundary_counts(ignored, truth, 600, ignore=65535, options=BoundaryOptions(1))
    assert counts.part("band")[0, 1:576].tolist() == [[1, 1, 1]] * 575
    assert counts.part("band")[0, 0].sum() == counts.part("band")[0, 576:].sum() == 0


def test_the_callers_arrays_stay_as_they_were(masks):
    truth, pred, _ = with_void(masks)
    before = truth.copy(), pred.copy()
    boundary_counts(truth, pred, 3, ignore=255, options=ALL)
    np.testing.assert_array_equal(truth, before[0])
    np.testing.assert_array_equal(pred, before[1])


def test_label_codes_share_the_ignored_pixels():
    encoding = Encoding.of([(0,), (1,)], ignore=[2], unassigned="count")
    truth, pred = LabelCodes(encoding).encode([[0, 1, 2]], [[255, 2, 1]])
    assert truth.tolist() == [[0, 1, 255]]
    assert pred[0, 2] == 255
    assert ((pred[0, :2] >= 2) & (pred[0, :2] < 255)).all()
