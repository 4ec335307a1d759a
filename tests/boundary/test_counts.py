"""Boundary counts add up, are picked, weighed, kept and refused."""

import math
import operator
import pickle
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import segiou
from segiou.boundary.boundary_image import boundary_counts, measure_boundaries
from segiou.boundary.boundary_options import (
    BoundaryOptions,
    Tolerance,
    bin_distances,
    bin_indices,
)
from segiou.boundary.boundary_scores import (
    average_surface_distance,
    boundary_iou,
    boundary_rows,
    hausdorff_distance,
    surface_dice,
)
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.boundary.contours import percentile_place
from segiou.counting.encoding import UndeclaredValuesError
from segiou.measures import Evaluator

OPTIONS = BoundaryOptions(("2%", 2), contours=("pixels", "elements"), tolerances=(1, "1%"))


@pytest.fixture
def three(masks):
    pairs = [masks.pair_of_blobs(s) for s in range(3)]
    return BoundaryCounts.stack(boundary_counts(t, p, 3, options=OPTIONS) for t, p in pairs)


def counted(*images):
    """An evaluator of boundaries after these images."""
    evaluator = Evaluator(3, measures=[OPTIONS])
    for truth, pred in images:
        evaluator.update(truth, pred)
    return evaluator


def counts_of(evaluator):
    return evaluator.run().counts_of("boundary")


def test_an_evaluator_has_the_counts_of_its_images(masks, three):
    pairs = [masks.pair_of_blobs(s) for s in range(3)]
    assert counts_of(counted(*pairs)) == three
    batch = [np.stack(side) for side in zip(*pairs, strict=True)]
    assert counts_of(counted(batch)) == three
    assert counts_of(counted(*pairs[:1]) + counted(*pairs[1:])) == three
    total = three.summed()
    assert total == sum(three[i] for i in range(3)) == three[0] + three[1] + three[2]
    assert (total.images, total.pixels) == (3, 3 * 40 * 50)


def test_nothing_is_counted_when_one_image_is_refused(masks):
    truth, pred = masks.pair_of_blobs(0)
    evaluator = counted((truth, pred))
    with pytest.raises(UndeclaredValuesError):
        evaluator.update([truth, truth + 9], [pred, pred])
    assert len(evaluator) == 1


def test_only_boundary_counts_of_the_same_options_merge(masks):
    image = masks.pair_of_blobs(0)
    other = Evaluator(3, measures=[BoundaryOptions()]).update(*image)
    with pytest.raises(ValueError, match="boundary widths is 2%, 2 here and 2% there"):
        _ = counted(image) + other
    with pytest.raises(ValueError, match="boundary is measured with different widths, "):
        other.load_state_dict(counted(image).state_dict())


def test_images_without_pixels_are_refused():
    for shape in ((0, 4), (4, 0)):
        with pytest.raises(ValueError, match=rf"at least one pixel, got shape \({shape[0]}, "):
            boundary_counts(np.zeros(shape, int), np.zeros(shape, int), 2)
    with pytest.raises(ValueError, match="two label maps of equal shape"):
        boundary_counts(np.zeros(0, int), np.zeros(0, int), 2)


def test_a_volume_is_not_measured_slice_by_slice():
    volume = np.zeros((3, 8, 8), int)
    with pytest.raises(ValueError, match=r"\(3, 8, 8\), but boundaries are measured in two dimens"):
        measure_boundaries(volume, volume, 2)


def test_sums_past_64_bits_are_refused(three):
    table = three.table[0]
    large = BoundaryCounts(table * ((2**63 - 1) // int(table.max())), 3, OPTIONS)
    for add in (
        lambda: large + large,
        lambda: BoundaryCounts.stack([large] * 2).summed(),
        lambda: BoundaryCounts.stack([large]).weighted([[1], [3]]),
    ):
        with pytest.raises(OverflowError, match="exceed"):
            add()
    assert BoundaryCounts.stack([large]).weighted([[1]])[0] == large


def exact_percentile(elements, distances, spacing, percentile):
    """The smallest distance within which that share of the length lies, to sixty digits."""
    with localcontext(Context(prec=60)):
        height, width = (Decimal(str(length)) for length in spacing)
        diagonal = (height * height + width * width).sqrt() / 2
        lengths = [sum(map(operator.mul, row, (width, height, diagonal))) for row in elements]
        needed, reached = sum(lengths) * Decimal(percentile) / 100, Decimal(0)
        for length, distance in zip(lengths, distances, strict=True):
            reached += length
            if reached > 0 and reached >= needed - Decimal("1e-40"):
                return distance
    raise AssertionError


@settings(max_examples=400)
@given(st.data())
@pytest.mark.gate
def test_percentiles_are_exact_where_shares_tie(data):
    spacing = data.draw(st.sampled_from([(1.0, 1.0), (3.0, 4.0), (0.1, 0.3), (0.7, 0.7)]))
    rows = st.lists(st.tuples(*[st.integers(0, 3)] * 3).filter(any), min_size=1, max_size=8)
    elements = data.draw(rows)
    if data.draw(st.booleans()):  # the same again, so that halves tie
        elements = [*elements, *data.draw(st.permutations(elements))]
    percentile = data.draw(st.sampled_from([0, 10, 25, 50, 75, 90, 95, 99.9, 100]))
    place = percentile_place(np.array(elements), "elements", spacing, percentile)
    assert place == exact_percentile(elements, range(len(elements)), spacing, percentile)


@pytest.mark.parametrize("contour", ["pixels", "elements"])
def test_one_image_and_its_counts_have_the_same_percentiles(contour):
    options = BoundaryOptions((), trimaps=False, tolerances=(), contours=contour, resolution=1.0)
    result = measure_boundaries([[0, 0, 1]], [[1, 0, 1]], 2, options=options)
    exact, counted = result.distances[contour], result.counts
    for percentile in (0, 10, 25, 50, 60, 75, 90, 100):
        np.testing.assert_allclose(
            exact.hausdorff(percentile), hausdorff_distance(counted, percentile), atol=0.5
        )


def test_counts_are_pickled(three):
    assert pickle.loads(pickle.dumps(three)) == three
    assert pickle.loads(pickle.dumps(OPTIONS)) == OPTIONS


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"widths": 3}, "widths"),
        ({"tolerances": 5}, "tolerances"),
        ({"spacing": (2, 1), "resolution": 0.25}, "spacing"),
        ({"border": "none"}, "border"),
        ({"resolution": 1.0}, "resolution"),
        ({"contours": "pixels"}, "contours"),
        ({"trimaps": False}, "trimaps"),
    ],
)
def test_other_options_do_not_add_up(change, name):
    kwargs = {
        "widths": OPTIONS.widths,
        "tolerances": OPTIONS.tolerances,
        "contours": OPTIONS.contours,
    }
    other = BoundaryCounts.zeros(3, BoundaryOptions(**{**kwargs, **change}))
    with pytest.raises(ValueError, match=f"boundary {name} is "):
        _ = BoundaryCounts.zeros(3, OPTIONS) + other


def test_resamples_are_weighted_sums(three):
    weights = np.array([[1, 1, 1], [3, 0, 0], [0, 2, 1]])
    resamples = three.weighted(weights)
    assert len(resamples) == 3
    assert resamples[0] == three.summed()
    assert resamples[2] == three[1] + three[1] + three[2]
    assert boundary_iou(resamples).shape == (3, 2, 3)
    assert surface_dice(resamples, "elements").shape == (3, 2, 3)
    for measure in (boundary_iou, surface_dice, average_surface_distance, hausdorff_distance):
        np.testing.assert_array_equal(measure(resamples)[1], measure(three[0]))
    with pytest.raises(TypeError, match="weights must be integers"):
        three.weighted([0.5, 0.5, 0.0])


def test_leading_axes_are_counts_to_other_packages(three):
    counts = three.band_counts()
    assert counts.tp.shape == (3, 2, 3)
    assert (counts.total == 2000).all()
    assert (three.trimap_counts().total[..., 0] > 0).all()


def test_counts_are_integers_of_the_right_length(three):
    with pytest.raises(TypeError, match="counts must be integers"):
        BoundaryCounts(three.table / 2, 3, OPTIONS)
    with pytest.raises(ValueError, match=r"have [0-9]+ entries"):
        BoundaryCounts(three.table[:, 1:], 3, OPTIONS)
    with pytest.raises(ValueError, match="cannot stack an empty sequence"):
        BoundaryCounts.stack([])
    with pytest.raises(IndexError, match="no leading axis"):
        _ = three[0][0]


def test_what_was_not_measured_is_named(masks):
    options = BoundaryOptions(1, trimaps=False, contours=())
    counts = boundary_counts(*masks.pair_of_blobs(0), 3, options=options)
    with pytest.raises(ValueError, match="'trimap' was not measured"):
        counts.trimap_counts()
    with pytest.raises(ValueError, match=r"'pixels\.total' was not measured"):
        surface_dice(counts)


def test_rows_hold_every_measure(three):
    names = ["road", "sky", "car"]
    rows = boundary_rows(three.summed(), names)
    keys = [(r["measure"], r["tolerance"], r["contour"]) for r in rows]
    assert len(set(keys)) == len(keys)
    for expected in (
        ("boundary_iou", "2%", None),
        ("trimap_accuracy", "2", None),
        ("boundary_f1", "1%", "pixels"),
        ("surface_dice", "1", "elements"),
        ("hausdorff_95", None, "elements"),
    ):
        assert expected in keys
    row = rows[keys.index(("surface_dice", "1", "elements"))]
    values = surface_dice(three.summed(), "elements")[0]
    assert row["classes"] == dict(zip(names, values.tolist(), strict=True))
    assert row["mean"] == pytest.approx(values.mean())
    assert row["mean_classes"] == 3
    with pytest.raises(ValueError, match="sum first"):
        boundary_rows(three)
    with pytest.raises(ValueError, match="expected 3 class names, got 2"):
        boundary_rows(three.summed(), ["a", "b"])


def test_rounding_of_distances():
    values = bin_distances(0.5)
    assert (np.diff(values) > 0).all()
    distances = np.concatenate([np.arange(0, 40, 0.013), np.geomspace(1, 60000, 500)])
    rounded = values[bin_indices(distances, 0.5)]
    assert (np.abs(rounded - distances) <= np.maximum(0.25, distances / 64) + 1e-12).all()
    np.testing.assert_array_equal(values[bin_indices(values, 0.5)], values)
    with pytest.raises(ValueError, match="choose a coarser resolution"):
        bin_indices(np.array([1e6]), 0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (3, Tolerance(3.0)),
        (0.5, Tolerance(0.5)),
        ("1.5", Tolerance(1.5)),
        (" 0.75% ", Tolerance(0.0075, "diagonal")),
        (Tolerance(1.0), Tolerance(1.0)),
        (np.float32(2), Tolerance(2.0)),
    ],
)
def test_tolerances_are_read(text, expected):
    assert Tolerance.of(text) == expected
    assert Tolerance.of(str(expected)) == expected


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Tolerance.of("2 px"), ValueError, "invalid tolerance"),
        (lambda: Tolerance.of(None), TypeError, "a number or a string"),
        (lambda: Tolerance.of(True), TypeError, "a number or a string"),
        (lambda: Tolerance(-1.0), ValueError, "at least 0"),
        (lambda: Tolerance(math.nan), ValueError, "must be a number, got NaN"),
        (lambda: Tolerance(math.inf), ValueError, "finite"),
        (lambda: Tolerance(1.0, "percent"), ValueError, "'absolute', 'diagonal' or 'mm'"),
        (lambda: BoundaryOptions(0), ValueError, "whole number of pixels"),
        (lambda: BoundaryOptions(1.5), ValueError, "whole number of pixels"),
        (lambda: BoundaryOptions("0%"), ValueError, "above 0 %"),
        (lambda: BoundaryOptions((1, 1)), ValueError, "widths contains duplicates"),
        (lambda: BoundaryOptions(border="image"), ValueError, "border must be"),
        (lambda: BoundaryOptions(contours="edges"), ValueError, "contours must be"),
        (lambda: BoundaryOptions(spacing=(1, 0)), ValueError, "two positive numbers"),
        (lambda: BoundaryOptions(spacing=(1, 1, 1)), ValueError, "two positive numbers"),
        (lambda: BoundaryOptions(spacing=(1e-300, 1)), ValueError, "1e-100 to 1e100"),
        (lambda: BoundaryOptions(resolution=0), ValueError, "must be positive"),
    ],
)
def test_options_are_checked(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: measure_boundaries(t, t, 0), "num_classes must be at least 1"),
        (lambda t: measure_boundaries(t, t[1:], 2), "two label maps of equal shape"),
        (lambda t: measure_boundaries(t[0], t[0], 2), "two label maps of equal shape"),
        (lambda t: measure_boundaries(t[None], t[None], 2), "slicing a volume"),
        (lambda t: measure_boundaries(t[:0], t[:0], 2), "at least one pixel"),
        (lambda t: hausdorff_distance(boundary_counts(t, t, 2), 101), "at most 100, got 101"),
        (lambda t: average_surface_distance(boundary_counts(t, t, 2), lone="no"), "lone must be"),
        (
            lambda t: average_surface_distance(boundary_counts(t, t, 2), direction="up"),
            "direction must be",
        ),
        (
            lambda t: measure_boundaries(t, t, 2).distances["pixels"].hausdorff(-1),
            "at least 0, got -1",
        ),
        (
            lambda t: measure_boundaries(t, t, 2).distances["pixels"].hausdorff(50, "upper"),
            "method must be",
        ),
    ],
)
def test_bad_input(masks, call, text):
    with pytest.raises(ValueError, match=text):
        call(masks.square())


@pytest.mark.parametrize("scale", [0.1, 1.1, 0.7, 1e6])
def test_a_scale_of_all_lengths_changes_no_boundary(scale):
    noise = np.random.default_rng(3)
    truth, pred = np.kron(noise.integers(0, 3, (2, 4, 40)), np.ones((1, 3, 5), int))
    pred = np.roll(pred, 2, axis=1)

    def counted(factor):
        options = BoundaryOptions(
            (),
            trimaps=False,
            tolerances=[factor * limit for limit in (1, 3, 5)],
            contours=("pixels", "elements"),
            spacing=(factor, 2 * factor),
        )
        parts = measure_boundaries(truth, pred, 3, options=options).counts
        return parts.table

    assert counted(scale).tolist() == counted(1).tolist()


def test_millimetres_need_the_size_of_a_pixel():
    in_mm = BoundaryOptions(tolerances="1mm")
    with pytest.raises(ValueError, match="tolerances in mm require the pixel size in mm"):
        segiou.score([[0, 1]], [[0, 1]], labels=2, boundary=in_mm)
    assert segiou.score([[0, 1]], [[0, 1]], labels=2, boundary=in_mm, spacing=(1, 1))
