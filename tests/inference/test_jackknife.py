"""Jackknife-t intervals: by hand, at the bounds, over groups, and with several training runs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, strategies as st
from scipy import stats
from scipy.special import expit, logit

from segiou import Counts, Protocol, compare, confidence_intervals, score
from segiou.analysis.comparison.recipes import Crossed, mean_of_runs
from segiou.inference import jackknife, statistic, units_of
from segiou.inference.leave_one_out import Jackknife, correlation
from segiou.inference.paired import Paired
from segiou.inference.student import student, student_below
from segiou.metrics import load_protocol


@dataclass
class Scored:
    """A run as a comparison sees it."""

    name: str
    counts: Counts
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    include: np.ndarray
    protocol: Protocol


def named_run(counts, name):
    images, classes = counts.tp.shape
    ids, names = tuple(f"i{i}" for i in range(images)), tuple(map(str, range(classes)))
    return Scored(name, counts, ids, names, np.ones(classes, bool), load_protocol("segiou"))


def recalls(hits, pixels):
    """One class: true positives and false negatives of each image."""
    hits, pixels = np.array(hits)[:, None], np.array(pixels)[:, None]
    return Counts(hits, 0 * hits, pixels - hits, 0 * hits)


def some_counts(images=20, seed=0, lift=0.0):
    rng = np.random.default_rng(seed)
    size = rng.integers(50, 200, (images, 3)) * (rng.random((images, 3)) < (1, 0.8, 0.4))
    hit = rng.binomial(size, np.clip(rng.normal(0.7 + lift, 0.1, (images, 1)), 0.05, 0.95))
    fp = np.roll(size - hit, 1, axis=1)
    return Counts(hit, fp, size - hit, size.sum(1, keepdims=True) - size - fp)


def stat(counts, metric="iou", **options):
    return statistic(counts, metric, units=units_of(len(counts.tp)), **options)


def test_by_hand():
    # Recall 6/12 without each of three images of 4 pixels: 4/8, 3/8, 5/8.
    found = jackknife(stat(recalls([2, 3, 1], [4, 4, 4]), "recall"))
    error = np.sqrt(2 / 8**2)  # of the class, (0, 1/8, -1/8)
    reach = stats.t.ppf(0.975, 2) * error / 0.25  # on the logit, whose slope at 1/2 is 4
    assert found.standard_error == pytest.approx([error, error])
    for i in (0, 1):  # the mean is that of one class
        assert (found.low[i], found.high[i]) == pytest.approx((expit(-reach), expit(reach)))
    assert found.freedom.tolist() == [2, 2]


def twice(counts):
    """Two equal classes."""
    return Counts(*(np.repeat(x, 2, axis=1) for x in vars(counts).values()))


def test_the_bias_of_a_score_widens_its_interval():
    # Recall 6/16 without each image: 4/12, 3/12, 5/8; bias 2 (29/72 - 27/72) = 1/18.
    pixels = [4, 4, 8]
    one = stat(twice(recalls([2, 3, 1], pixels)), "recall")
    found = jackknife(one)
    squares = (1 + 9 + 36) / 24**2
    assert found.standard_error == pytest.approx(np.sqrt([2 / 3 * squares, squares, squares]))
    wider = np.sqrt((2 / 3 * squares + 1 / 18**2) / squares)
    for ends in (found.low, found.high):
        assert ends[0] - 6 / 16 == pytest.approx(wider * (ends[1] - 6 / 16))


@pytest.mark.parametrize("aggregate", [None, "I", "C"])
def test_a_mean_over_one_class_is_that_class(aggregate):
    found = jackknife(stat(some_counts(8), include=[False, True, False], aggregate=aggregate))
    for column in (found.values, found.low, found.high, found.standard_error, found.freedom):
        assert column[0] == column[2] != column[1]


def test_limits_of_any_classes_at_any_level():
    left_out = Jackknife.of(stat(some_counts(30)))
    every = left_out.mean_of(np.ones(3, bool))
    assert every.reach(0.9) == pytest.approx(left_out.score.reach(0.9))
    whole = left_out.limits(0.9)
    assert left_out.values[0] - whole.low[0] == pytest.approx(every.reach(0.9)[0])
    assert every.variance == pytest.approx(whole.standard_error[0] ** 2)
    one = left_out.one_class(2)
    assert one.value - one.reach(0.9)[0] == pytest.approx(whole.low[3])
    assert left_out.mean_of(np.array([False, False, True])).value == one.value


def test_sides_of_the_same_units_are_correlated():
    left_out = Jackknife.of(stat(some_counts(30)))
    side, units = left_out.score, np.arange(30)
    assert correlation(side.moves, side.moves, units, units) == pytest.approx(1)
    assert correlation(side.moves, side.moves, units[:0], units[:0]) == 0


def test_the_mean_of_equal_classes_has_their_degrees_of_freedom():
    one = stat(some_counts(), "recall", include=[True, False, False])
    found = jackknife(one)
    assert found.freedom[0] == pytest.approx(found.freedom[1])
    both = jackknife(stat(some_counts(), "recall"))
    assert 2 <= both.freedom[0] <= 19


def test_limits_at_a_bound_are_those_of_hits_in_a_row_or_of_one_changed_pixel():
    # One of 5 pixels missed would have the lower limit 0.21.
    found = jackknife(stat(recalls([1] * 5, [1] * 5), "recall"))
    assert found.low.tolist() == pytest.approx([0.025**0.2] * 2)
    assert found.high.tolist() == [1.0, 1.0]
    missed = jackknife(stat(recalls([0] * 5, [1] * 5), "recall"))
    assert missed.high.tolist() == pytest.approx([1 - 0.025**0.2] * 2)
    # One of 100 pixels missed: 0.99 with the standard error 0.01.
    close = expit(logit(0.99) - stats.t.ppf(0.975, 4) / 0.99)
    found = jackknife(stat(recalls([20] * 5, [20] * 5), "recall"))
    assert found.low[1] == pytest.approx(close) and close > 0.025**0.2
    missed = jackknife(stat(recalls([0] * 5, [20] * 5), "recall"))
    assert missed.high[1] == pytest.approx(1 - close)


@pytest.mark.parametrize(("protocol", "value"), [("sklearn", 0.0), ("paddleseg", 1.0)])
def test_a_mean_over_absent_classes_has_no_interval(protocol, value):
    masks = [np.zeros((1, 4), int)] * 8
    run = score(masks, masks, labels=["a", "b", "c"], exclude="a")
    overall = run.intervals(protocol=protocol, groups="none").overall
    assert overall.value == value
    assert np.isnan([overall.low, overall.high]).all()


def test_a_perfect_model_may_pass_where_one_wrong_pixel_passes():
    truths = np.zeros((59, 24, 24), int)
    truths[:, :, 12:] = 1
    preds = truths.copy()
    perfect = score([*truths], [*preds], labels=2)
    preds[7, 3, 3] = 1
    wrong = score([*truths], [*preds], labels=2)
    ends = [one.intervals(level=0.9).overall.low for one in (perfect, wrong)]
    assert ends[0] >= ends[1] > 0.999


@given(st.data())
@examples(150)
def test_a_perfect_model_has_the_bound_of_one_wrong_pixel_or_better(data):
    images, classes = data.draw(st.integers(3, 8)), data.draw(st.integers(2, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    truths = rng.integers(0, classes, (images, 1, 1)) * np.ones((1, 6, 6), int)
    truths = np.where(
        rng.random(truths.shape) < 0.4, rng.integers(0, classes, truths.shape), truths
    )
    preds = truths.copy()
    place = tuple(int(rng.integers(0, n)) for n in truths.shape)
    preds[place] = (preds[place] + 1) % classes
    aggregate = data.draw(st.sampled_from(["D", "I", "C"]))
    metric = data.draw(st.sampled_from(["iou", "dice", "recall", "pixel_accuracy"]))
    if metric == "pixel_accuracy" and aggregate == "C":
        aggregate = "D"
    perfect, wrong = (
        score([*truths], [*pred], labels=classes).intervals(
            metric, aggregate=aggregate, groups="none", level=0.9
        )
        for pred in (truths, preds)
    )
    for best, other in zip(perfect, wrong, strict=True):
        if other.low == other.low and other.value < 1:
            assert best.low >= other.low - 1e-12, (best, other)


@pytest.mark.gate
@given(st.integers(3, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
@examples(300)
def test_limits_of_a_score_are_nested_in_the_level(images, classes, seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 60, (images, classes)) ** rng.integers(1, 3)
    hit = rng.binomial(size, rng.random((images, classes)) ** rng.random())
    fp = np.roll(size - hit, 1, axis=1)
    counts = Counts(hit, fp, size - hit, size.sum(1, keepdims=True) + 4000 - size - fp)
    for aggregate in (None, "I", "C"):
        left_out = Jackknife.of(stat(counts, aggregate=aggregate))
        several = [left_out.limits(level) for level in (0.9, 0.95, 0.99)]
        for inner, outer in pairwise(several):
            known = ~np.isnan(inner.low + outer.low)
            assert (outer.low - inner.low)[known].max(initial=0) <= 1e-12
            assert (inner.high - outer.high)[known].max(initial=0) <= 1e-12


def test_a_class_in_one_image_has_no_interval_and_leaves_the_mean_one():
    counts = some_counts(6)
    only = np.array([1, 1, 0])
    here = np.arange(6)[:, None] == 2
    counts = Counts(*(np.where(here, x, x * only) for x in vars(counts).values()))
    found = jackknife(stat(counts))
    assert np.isnan([found.low[3], found.high[3], found.standard_error[3]]).all()
    assert found.low[0] < found.values[0] < found.high[0]


def test_kappa_is_on_fishers_scale_and_may_be_negative():
    rng = np.random.default_rng(0)
    tables = rng.integers(1, 20, (12, 2, 2))
    tp = np.stack([tables[:, 0, 0], tables[:, 1, 1]], 1)
    fn = np.stack([tables[:, 0, 1], tables[:, 1, 0]], 1)
    total = tables.sum((1, 2))[:, None]
    kappa = stat(Counts(tp, fn[:, ::-1], fn, total - tp - fn - fn[:, ::-1]), "cohen_kappa")
    found = jackknife(kappa)
    z, slope = np.arctanh(found.values[0]), 1 / (1 - found.values[0] ** 2)
    error = found.standard_error[0] * np.sqrt(12 / 11)  # arms by the plain sum of squares
    reach = stats.t.ppf(0.975, 11) * error * slope
    bias = 11 * (kappa.left_out[:, 0].mean() - found.values[0])
    shrink = np.sqrt(11 / 12 * (1 + (bias / found.standard_error[0]) ** 2))
    assert found.high[0] - found.values[0] == pytest.approx(
        shrink * (np.tanh(z + reach) - found.values[0])
    )


def test_parts_of_units_do_not_change_the_numbers(monkeypatch):
    whole = jackknife(stat(some_counts(50)))
    monkeypatch.setattr("segiou.inference.units._PART", 36)
    monkeypatch.setattr("segiou.inference.leave_one_out._KEPT", 1)
    parts = jackknife(stat(some_counts(50)))
    for name in ("values", "low", "high", "standard_error", "freedom"):
        one, other = getattr(whole, name), getattr(parts, name)
        assert one == pytest.approx(other, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("unit", ["dataset", "class"])
def test_absent_classes_that_count_zero_are_in_the_weights(unit):
    counts = some_counts(12)
    counts = Counts(*(np.concatenate([x, 0 * x[:, :1]], 1) for x in vars(counts).values()))
    prepared = stat(counts, protocol=Protocol("custom", "", unit=unit, absent="zero"))
    assert prepared.weights.tolist() == [0.25, 0.25, 0.25, 0.0]
    found = jackknife(prepared)
    assert found.low[0] < found.values[0] < found.high[0]


def test_predicted_classes_in_no_truth_are_a_caution():
    counts = Counts([[9, 0], [8, 0], [7, 0]], [[0, 1], [0, 0], [0, 2]], [[1, 0]] * 3, [[0, 9]] * 3)
    found = confidence_intervals(counts, class_names=["road", "bus"])
    assert found.unseen_classes == ("bus",)
    assert found.truth_mean == pytest.approx(24 / 27)
    assert (
        "1 class is predicted but never occurs in the truth and counts as 0" in found.caution().text
    )
    assert "88.89 %" in found.caution().text
    seen = confidence_intervals(counts, class_names=["road", "bus"], protocol="detectron2")
    assert seen.caution() is None


def test_the_mean_without_unseen_classes_is_that_of_the_protocol():
    # IoU of road is 8/10 and of ghost 0; unicorn is nowhere, which this protocol counts as 1.
    tp, fp, fn, tn = [[4, 0, 0]] * 2, [[0, 1, 0]] * 2, [[1, 0, 0]] * 2, [[0, 4, 5]] * 2
    options = {"class_names": ("road", "ghost", "unicorn"), "groups": "none"}
    protocol = Protocol("custom", "", absent="one")
    found = confidence_intervals(Counts(tp, fp, fn, tn), protocol=protocol, **options)
    assert found.overall.value == pytest.approx(1.8 / 3)
    assert (found.unseen_classes, found.truth_mean) == (("ghost",), pytest.approx(1.8 / 2))


@pytest.mark.parametrize("aggregate", ["I", "C", "D"])
def test_every_aggregate_has_an_interval_around_its_value(aggregate):
    found = confidence_intervals(some_counts(), aggregate=aggregate).overall
    assert 0 < found.low < found.value < found.high < 1


# -- several training runs -------------------------------------------------------------------


def crossed(a, b):
    both = Crossed.of(a, b)
    return both.limits(0.95), both.p


def of_images(a, b):
    """Standard errors of the difference of the means, without training runs."""
    return Paired.of(mean_of_runs(a), mean_of_runs(b)).limits(0.95).standard_error


def runs_of(lift, seeds, images=30):
    return [stat(some_counts(images, seed=0, lift=lift + 0.01 * seed)) for seed in seeds]


def test_the_mean_over_runs_is_the_mean_of_their_scores():
    runs = runs_of(0, (0, 1, 2))
    mean = mean_of_runs(runs)
    assert mean.values == pytest.approx(np.mean([run.values for run in runs], 0))
    assert mean.left_out == pytest.approx(np.mean([run.left_out for run in runs], 0))


def test_runs_that_differ_widen_the_interval():
    same, p_same = crossed(runs_of(0, (0, 0, 0)), runs_of(0.1, (0, 0, 0)))
    apart, p_apart = crossed(runs_of(0, (0, 4, 9)), runs_of(0.1, (-4, 0, 5)))
    images = of_images(runs_of(0, (0, 0, 0)), runs_of(0.1, (0, 0, 0)))
    assert same.standard_error == pytest.approx(images)
    assert apart.standard_error[0] > 1.5 * same.standard_error[0]
    assert apart.freedom[0] < same.freedom[0]
    assert p_apart[0] > p_same[0]


def test_the_variance_of_runs_by_hand():
    # Runs that differ by a constant on every image have no residual: s²/3 + s²/3.
    hits = np.array([50, 60, 70, 80, 55, 65])
    a, b = (
        [stat(recalls(hits + s, [100] * 6), "recall") for s in own]
        for own in ((0, 3, 6), (9, 9, 9))
    )
    found, p = crossed(a, b)
    seeds = np.var([0.0, 0.03, 0.06], ddof=1) / 3
    images = of_images(a, b)[0] ** 2
    assert found.standard_error[0] ** 2 == pytest.approx(images + seeds)
    assert found.values[0] == pytest.approx(0.06)
    t = found.values[0] / found.standard_error[0]
    assert p[0] == pytest.approx(2 * stats.t.sf(t, found.freedom[0]))


def test_unequal_designs_pool_the_variance_of_runs():
    # Runs that differ by a constant on every image have no residual: .01 and .03 apart.
    hits = np.array([50, 60, 70, 80, 55, 65])
    a, b = (
        [stat(recalls(hits + s, [100] * 6), "recall") for s in own]
        for own in ((0, 1), (9, 9, 12, 12, 9, 12))
    )
    both = Crossed.of(a, b)
    # Sums of squares .00005 and 6 · .015², with 1 and 5 degrees of freedom.
    pooled = (0.00005 + 0.00135) / 6
    assert both.runs[0] == pytest.approx(pooled * (1 / 2 + 1 / 6))
    assert both.run_freedom[0] == 6
    # The variance of images falls with their number, that of runs does not.
    error, _ = both.spreads(24)
    assert error[0] ** 2 == pytest.approx(both.images[0] / 4 + both.runs[0])
    assert both.spreads(10**9)[0][0] == pytest.approx(np.sqrt(both.runs[0]), rel=1e-6)


def test_no_number_of_images_replaces_training_runs():
    rng = np.random.default_rng(0)
    truth = rng.integers(4000, 6000, (60, 2))

    def run_of(wrong):
        fn = np.rint(truth * wrong * rng.uniform(0.97, 1.03, truth.shape)).astype(int)
        return Counts(truth - fn, fn[:, ::-1], fn, truth[:, ::-1] - fn[:, ::-1])

    recipes = {
        name: [named_run(run_of(x), f"{name}{i}") for i, x in enumerate(own)]
        for name, own in {"old": (0.18, 0.2, 0.22), "new": (0.17, 0.2, 0.21)}.items()
    }
    found = compare(recipes, groups="none", detect=0.01)
    assert found.pairs[0].power.needed is None
    assert "no number of images is enough without more training runs" in str(found)
    few = compare(recipes, groups="none", detect=0.2).pairs[0].power
    assert few.needed is not None and few.needed < 60


def trained(wrong, seed):
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, (20, 6, 6))
    flipped = np.random.default_rng(seed).random(truth.shape) < wrong
    return score(list(truth), list(np.where(flipped, 1 - truth, truth)), labels=2)


def test_degrees_of_freedom_are_at_least_those_of_the_runs():
    # Both recipes contain the run a, so images vary less than their residual by runs. The two
    # variances of two runs have one degree of freedom each, and six images five.
    a, b, c = (stat(some_counts(6, seed=seed)) for seed in range(3))
    limits, _ = crossed([a, c], [b, a])
    assert limits.freedom[0] == 5
    assert (limits.freedom >= 1).all() and (limits.freedom <= 5).all()


def test_recipes_are_compared_by_the_means_of_their_runs():
    recipes = {
        "old": [trained(0.3, s) for s in (1, 2, 3)],
        "new": [trained(0.1, s) for s in (4, 5)],
    }
    found = compare(recipes)
    pair = found.pairs[0]
    assert found.names == ("old", "new")
    assert [len(own) for own in found.run_scores] == [3, 2]
    assert pair.overall.a == pytest.approx(np.mean(found.run_scores[0]))
    assert pair.overall.low > 0 and pair.overall.p < 0.05
    evidence = found.pair_sentences(pair)[1]
    assert "(20 images; 3 and 2 training runs)" in evidence
    assert "with these training recipes" in found.limitations()[1]
    one = compare({"old": recipes["old"], "new": recipes["new"][:1]})
    assert "new has only one training run" in one.pair_sentences(one.pairs[0])[2]


def test_differences_of_recipes_end_at_the_bounds_of_their_score():
    def hundredfold(counts):
        return 100 * counts.tp / (counts.tp + counts.fn)

    cases = (
        [recalls([2, 1, 3, 2], [10] * 4), recalls([3, 1, 2, 3], [10] * 4)],
        [recalls([7, 6, 8, 7], [10] * 4), recalls([6, 7, 8, 8], [10] * 4)],
    )
    shares, of_100 = (
        crossed(*([stat(one, metric) for one in runs] for runs in cases))[0]
        for metric in ("recall", hundredfold)
    )
    assert shares.values[0] == pytest.approx(57 / 80 - 17 / 80)
    assert -1 < shares.low[0] < shares.high[0] < 1
    for name in ("values", "low", "high"):
        assert getattr(of_100, name) == pytest.approx(100 * getattr(shares, name))


def test_limits_of_no_width_are_no_limits_at_either_end():
    better, worse = ([stat(recalls([hits] * 4, [10] * 4), "recall")] * 2 for hits in (8, 6))
    found = crossed(worse, better)[0]
    assert found.values == pytest.approx([0.2, 0.2])
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize(
    ("runs", "message"),
    [((), "at least two runs"), (({"a": []},), "recipe 'a' has no runs"), ((3, 4), "expects runs")],
)
def test_recipes_that_cannot_be_compared(runs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare(*runs)


def test_logit_limits_of_a_class():
    found = jackknife(stat(some_counts(), "iou"))
    value, error = found.values[2], found.standard_error[2]
    reach = stats.t.ppf(0.975, found.freedom[2]) * error / (value * (1 - value))
    assert found.low[2] == pytest.approx(expit(logit(value) - reach))


@pytest.mark.parametrize("tail", [0.5, 0.45, 0.2, 0.05, 0.025, 1e-4, 1e-9, 1e-15, 0.975])
def test_quantiles_of_student_are_those_of_scipy(tail):
    freedom = np.array([1, 1.5, 2, 3, 10.3, 30, 199, 200.5, 1e4, 1e6])
    np.testing.assert_allclose(student(freedom, tail), stats.t.isf(tail, freedom), rtol=1e-11)
    assert np.isnan(student([0, np.nan], tail)).all()


@pytest.mark.parametrize("t", [-40.0, -8.0, -2.5, -1.9, -0.3, -1e-3, 0.0, 1.2, 7.0])
def test_tails_of_student_are_those_of_scipy(t):
    freedom = np.array([1, 1.5, 2, 3, 10.3, 30, 199, 200.5, 1e4, 1e6])
    np.testing.assert_allclose(student_below(t, freedom), stats.t.cdf(t, freedom), rtol=1e-12)


def test_tails_of_student_at_the_ends():
    assert student_below([-np.inf, np.inf], 3.0).tolist() == [0, 1]
    assert np.isnan(student_below([np.nan, 1.0, 1.0], [3.0, np.nan, 0.0])).all()
    assert isinstance(student_below(-1.0, 3.0), float)
