import json

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy import stats

import segiou
from segiou import Counts
from segiou.inference import confidence_intervals
from segiou.planning import sample_sizes

#: Found pixels of 100 in each image, so that the IoU is their mean.
FOUND = [90, 80, 85, 95, 70, 88]


def one_class(found):
    tp = np.array(found)[:, None]
    return Counts(tp, 0 * tp, 100 - tp, 0 * tp)


def plan(found, half_width, **options):
    return sample_sizes(one_class(found), half_width, **options).overall


def least(error, units, half_width, level=0.95):
    """The first number by the definition: t √(U/n) e ≤ h."""
    n = np.arange(2, 100_000)
    enough = stats.t.ppf((1 + level) / 2, n - 1) * error * np.sqrt(units / n) <= half_width
    return n[enough.argmax()]


def test_the_number_is_that_of_the_definition():
    # A class with mean IoU .8467: its jackknife standard error is √(Σ (x − mean)²) / (U − 1).
    x = np.array(FOUND) / 100
    error = np.sqrt(((x - x.mean()) ** 2).sum()) / 5
    for half_width in (0.3, 0.1, 0.05, 0.01, 0.001):
        assert plan(FOUND, half_width).needed == least(error, 6, half_width)
    assert plan(FOUND, 0.05, level=0.9).needed == least(error, 6, 0.05, 0.9)


def test_limits_follow_from_the_jackknife_of_the_logarithm_of_the_variance():
    x = np.array(FOUND) / 100
    squares = (x - x.mean()) ** 2
    logs = np.log(squares.sum() - squares)
    spread = np.sqrt(5 / 6 * ((logs - logs.mean()) ** 2).sum())
    factor = np.exp(stats.t.ppf(0.975, 5) * spread / 2)
    error = np.sqrt(squares.sum()) / 5
    found = plan(FOUND, 0.02)
    assert found.low == least(error / factor, 6, 0.02)
    assert found.high == least(error * factor, 6, 0.02)


TABLES = st.lists(st.tuples(*[st.integers(0, 50)] * 6), min_size=3, max_size=12)


def counts_of(table):
    """Two classes in every image."""
    tp, fp, fn = np.array(table).reshape(-1, 3, 2).swapaxes(0, 1)
    return Counts(tp, fp, fn + 1, 0 * tp)


@pytest.mark.gate
@given(TABLES, st.sampled_from(["iou", "dice", "pixel_accuracy"]))
def test_the_width_of_the_run_takes_the_units_of_the_run(table, metric):
    counts = counts_of(table)
    for place, row in enumerate(sample_sizes(counts, 0.1, metric)):
        assume(row.needed)
        if 0.001 < row.half_width < 1:
            again = [*sample_sizes(counts, row.half_width, metric)][place]
            assert again.needed == len(table)


@pytest.mark.gate
@given(TABLES, st.floats(0.01, 0.5))
def test_more_precision_and_more_confidence_take_more_units(table, half_width):
    counts = counts_of(table)
    some = sample_sizes(counts, half_width)
    finer, surer = (
        sample_sizes(counts, half_width / 2),
        sample_sizes(counts, half_width, level=0.99),
    )
    for one, two, three in zip(some, finer, surer, strict=True):
        if one.needed is not None:
            assert (two.needed or np.inf) >= one.needed <= (three.needed or np.inf)
            assert one.low is None or one.low <= one.needed <= (one.high or np.inf)


@pytest.mark.gate
@given(TABLES, st.randoms())
def test_the_order_of_images_does_not_matter(table, random):
    shuffled = random.sample(table, len(table))
    first, second = (sample_sizes(counts_of(t), 0.03) for t in (table, shuffled))
    for one, two in zip(first, second, strict=True):
        assert one.half_width == pytest.approx(two.half_width, nan_ok=True)
        assert (one.needed or 0) == pytest.approx(two.needed or 0, abs=1)


def test_copies_of_an_image_are_a_group_with_the_design_effect_of_their_number():
    # Σ (x − mean)² / (U − 1)² of the groups, and 3 Σ (x − mean)² / (3 U − 1)² of the images.
    found = sample_sizes(
        one_class(np.repeat(FOUND, 3)), 0.05, groups=np.repeat(range(6), 3).tolist()
    )
    row = found.overall
    assert row.design_effect == pytest.approx(17**2 / (3 * 5**2))
    assert (row.needed, row.images) == (plan(FOUND, 0.05).needed, 3 * plan(FOUND, 0.05).needed)
    assert found.to_dict()["images"] == 18
    assert "With 3 images per group, this is 51 images." in found.sentences()
    assert np.isnan(plan(FOUND, 0.05).design_effect)


def test_the_half_width_now_is_that_of_the_interval_on_the_scale_of_the_score():
    rng = np.random.default_rng(0)
    counts = one_class(rng.integers(48, 53, 200))
    now = sample_sizes(counts, 0.1).overall.half_width
    interval = confidence_intervals(counts).overall
    assert now == pytest.approx((interval.high - interval.low) / 2, rel=0.01)


def two_classes(second):
    tp = np.column_stack([FOUND, second])
    return Counts(
        tp, 0 * tp, np.column_stack([100 - np.array(FOUND), 0 * np.array(second)]), 0 * tp
    )


def test_what_a_run_does_not_show_has_no_number():
    flat = sample_sizes(one_class([50] * 6), 0.02)
    assert flat.overall.needed is None
    said = "The run does not determine the images for a 95 % interval of ± 2.00 points of mean IoU."
    assert flat.sentences()[0] == said
    absent, rare, perfect = (
        sample_sizes(two_classes(second), 0.02, class_names=["road", "car"])
        for second in ([0] * 6, [9, 0, 0, 0, 0, 0], [9] * 6)
    )
    for found, why in (
        (absent, "Fewer than two images contain: car."),
        (rare, "Fewer than two images contain: car."),
        (perfect, "Scores do not vary for: car."),
    ):
        assert found.classes[0].needed == plan(FOUND, 0.02).needed
        assert (found.classes[1].needed, found.classes[1].low) == (None, None)
        assert why in found.sentences()
        json.dumps(found.to_dict(), allow_nan=False)


def test_two_groups_and_two_images():
    groups = sample_sizes(one_class(FOUND), 0.02, groups=list("aaabbb"))
    assert (groups.overall.needed, groups.overall.low) == (None, None)
    assert any("at least 3 groups" in sentence for sentence in groups.sentences())
    three = sample_sizes(one_class(FOUND), 0.9, groups=list("aabbcc"))
    assert three.overall.needed == 3
    images = sample_sizes(one_class([50, 60]), 0.02).overall
    assert images.needed == least(0.1 / np.sqrt(2), 2, 0.02)
    assert (images.low, images.high) == (None, None)
    with pytest.raises(ValueError, match="at least 2 images, got 1"):
        plan([50], 0.02)


@pytest.mark.parametrize("half_width", [0, -0.1, 1, 2, np.inf, np.nan])
def test_half_widths_that_are_none(half_width):
    with pytest.raises(ValueError, match="half_width must be"):
        plan(FOUND, half_width)


def test_two_points_are_proposed_for_two():
    with pytest.raises(ValueError, match=r"got 2 \(200 percentage points\); for 2 .*, pass 0\.02"):
        plan(FOUND, 2)


@pytest.mark.parametrize("half_width", ["0.02", None, True])
def test_half_widths_of_other_kinds(half_width):
    with pytest.raises(TypeError, match="half_width must be a number"):
        plan(FOUND, half_width)


def test_widths_out_of_reach_have_no_number():
    assert plan(FOUND, 1e-12).needed is None
    said = sample_sizes(one_class(FOUND), 1e-12).sentences()
    assert said[0].startswith("More than 10 000 000 images are needed to give mean IoU a 95 % int")
    assert not any("do not vary" in sentence for sentence in said)
    assert plan(FOUND, 0.999).needed == 2


@pytest.mark.needs("measures.surfaces", "measures.topology")
def test_scores_of_other_kinds():
    rng = np.random.default_rng(0)
    truth = np.zeros((12, 20, 20), int)
    truth[:, 5:15, 5:15] = 1
    pred = np.where(rng.random(truth.shape) < 0.02 * rng.random((12, 1, 1)), 1, truth)
    measures = ["surfaces", "topology"]
    run = segiou.score(truth, pred, labels=["road", "car"], measures=measures)
    for metric in ("pixel_accuracy", "cohen_kappa", "iou:car", "surface_dice"):
        assert run.sample_sizes(0.05, metric).overall.needed
    assert run.sample_sizes(0.05, "pixel_accuracy").classes == ()
    errors = run.sample_sizes(1.5, "betti_0_error")
    assert errors.overall.needed and "± 1.50 with" in errors.sentences()[0]
    with pytest.raises(ValueError, match=r"by surface_dice or boundary_f1$"):
        run.sample_sizes(1.5, "hausdorff_95:car")
    with pytest.raises(TypeError, match="per-image counts"):
        sample_sizes(run.total(), 0.02)


@pytest.mark.parametrize(("each", "shown"), [(1, "1 image per"), (2000, "2000 images per")])
def test_images_per_group_are_written_as_a_number(each, shown):
    rng = np.random.default_rng(0)
    tp = rng.integers(50, 100, (12 * each, 1))
    counts = Counts(tp, 0 * tp, 100 - tp, 0 * tp)
    found = sample_sizes(counts, 0.01, groups=np.repeat([f"g{i}" for i in range(12)], each))
    assert f"With {shown} group" in "\n".join(found.sentences())
