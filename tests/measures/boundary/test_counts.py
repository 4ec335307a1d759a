"""Boundary counts add up, are picked, weighed, kept and refused."""

import math
import pickle

import numpy as np
import pytest

import segiou
from segiou.counting import UndeclaredValuesError
from segiou.measures import measure_of
from segiou.measures.boundary import (
    BoundaryCounts,
    BoundaryOptions,
    boundary_counts,
    boundary_iou,
    boundary_rows,
    trimap_accuracy,
    trimap_iou,
)
from segiou.regions import Tolerance
from segiou.scoring import Evaluator

OPTIONS = BoundaryOptions(("2%", 2))


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
    with pytest.raises(ValueError, match="boundary is measured with different widths"):
        other.load_state_dict(counted(image).state_dict())


def test_images_without_pixels_are_refused():
    for shape in ((0, 4), (4, 0)):
        with pytest.raises(ValueError, match=rf"at least one pixel, got shape \({shape[0]}, "):
            boundary_counts(np.zeros(shape, int), np.zeros(shape, int), 2)
    with pytest.raises(ValueError, match="two label maps of equal shape"):
        boundary_counts(np.zeros(0, int), np.zeros(0, int), 2)


def test_options_of_a_different_kind_are_refused():
    with pytest.raises(TypeError, match="options must be BoundaryOptions, not int"):
        boundary_counts([[0, 1]], [[0, 1]], 2, options=2)


def test_a_volume_is_not_measured_slice_by_slice():
    volume = np.zeros((3, 8, 8), int)
    with pytest.raises(ValueError, match=r"\(3, 8, 8\), but boundaries are measured in two dimens"):
        boundary_counts(volume, volume, 2)


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


def test_counts_are_pickled(three):
    assert pickle.loads(pickle.dumps(three)) == three
    assert pickle.loads(pickle.dumps(OPTIONS)) == OPTIONS


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"widths": 3}, "widths"),
        ({"border": "none"}, "border"),
        ({"trimaps": False}, "trimaps"),
    ],
)
def test_other_options_do_not_add_up(change, name):
    other = BoundaryCounts.zeros(3, BoundaryOptions(**{"widths": OPTIONS.widths, **change}))
    with pytest.raises(ValueError, match=f"boundary {name} is "):
        _ = BoundaryCounts.zeros(3, OPTIONS) + other


def test_resamples_are_weighted_sums(three):
    weights = np.array([[1, 1, 1], [3, 0, 0], [0, 2, 1]])
    resamples = three.weighted(weights)
    assert len(resamples) == 3
    assert resamples[0] == three.summed()
    assert resamples[2] == three[1] + three[1] + three[2]
    assert boundary_iou(resamples).shape == (3, 2, 3)
    for measure in (boundary_iou, trimap_iou, trimap_accuracy):
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
    options = BoundaryOptions(1, trimaps=False)
    counts = boundary_counts(*masks.pair_of_blobs(0), 3, options=options)
    with pytest.raises(ValueError, match="'trimap' was not measured"):
        counts.trimap_counts()


def test_rows_hold_every_measure(three):
    names = ["road", "sky", "car"]
    rows = boundary_rows(three.summed(), names)
    keys = [(r["measure"], r["tolerance"]) for r in rows]
    bands = ("boundary_iou", "trimap_iou", "class_trimap_iou", "class_trimap_accuracy")
    assert keys == [(name, w) for name in (*bands, "trimap_accuracy") for w in ("2%", "2")]
    row = rows[keys.index(("boundary_iou", "2"))]
    values = boundary_iou(three.summed())[1]
    assert row["classes"] == dict(zip(names, values.tolist(), strict=True))
    assert row["mean"] == pytest.approx(values.mean())
    assert row["mean_classes"] == 3
    with pytest.raises(ValueError, match="sum first"):
        boundary_rows(three)
    with pytest.raises(ValueError, match="expected 3 class names, got 2"):
        boundary_rows(three.summed(), ["a", "b"])


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
        (lambda: BoundaryOptions(()), ValueError, "at least one width"),
        (lambda: BoundaryOptions(trimaps=1), TypeError, "trimaps must be"),
    ],
)
def test_options_are_checked(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: boundary_counts(t, t, 0), "num_classes must be at least 1"),
        (lambda t: boundary_counts(t, t[1:], 2), "two label maps of equal shape"),
        (lambda t: boundary_counts(t[0], t[0], 2), "two label maps of equal shape"),
        (lambda t: boundary_counts(t[None], t[None], 2), "slicing a volume"),
        (lambda t: boundary_counts(t[:0], t[:0], 2), "at least one pixel"),
    ],
)
def test_bad_input(masks, call, text):
    with pytest.raises(ValueError, match=text):
        call(masks.square())


@pytest.mark.needs("measures.surfaces")
def test_millimetres_need_the_size_of_a_pixel():
    in_mm = measure_of("surfaces")((1,), unit="mm")
    with pytest.raises(ValueError, match="tolerances in mm require the pixel size in mm"):
        segiou.score([[0, 1]], [[0, 1]], labels=2, surfaces=in_mm)
    assert segiou.score([[0, 1]], [[0, 1]], labels=2, surfaces=in_mm, spacing=(1, 1))


@pytest.mark.parametrize("width", [7, 1e18, 2**63, 1e100])
def test_a_band_wider_than_the_image_is_the_image(width):
    truth, pred = np.eye(7, dtype=int), np.tri(7, dtype=int)
    wide = boundary_counts(truth, pred, 2, options=BoundaryOptions(width, border="none"))
    counts = wide.band_counts()[0]
    assert counts.truth.tolist() == [42, 7] and counts.pred.tolist() == [21, 28]


def test_too_many_classes_are_an_error_at_once():
    with pytest.raises(ValueError, match="num_classes must be at most 65534"):
        boundary_counts([[0]], [[0]], 2**63)


@pytest.mark.parametrize(
    ("option", "value"),
    [("num_classes", [2]), ("ignore", [[0]]), ("ignore", [0.0]), ("unassigned", ["error"])],
)
def test_arguments_of_another_kind_are_named(option, value):
    options = {"num_classes": 2, option: value}
    with pytest.raises(TypeError, match=f"{option} must be"):
        boundary_counts([[0]], [[0]], **options)


def test_flags_of_numpy_are_saved(tmp_path):
    options = BoundaryOptions(np.int64(1), trimaps=np.True_)
    run = segiou.score([np.eye(4, dtype=int)], [np.eye(4, dtype=int)], labels=2, boundary=options)
    run.save(tmp_path / "run.json")
    assert segiou.Run.open(tmp_path / "run.json").plans == run.plans
