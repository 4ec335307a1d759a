import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from segiou import Counts, bootstrap, confidence_intervals, score
from segiou.counting import ConfusionCounts
from segiou.inference import bootstrapping, statistic, units_of
from segiou.inference.bootstrapping import batches, limits_of, resampled, times_drawn
from segiou.metrics import mean_iou


def some_counts(images=12, classes=3, seed=1):
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 20, (images, classes, classes + 1))
    tables[:, range(classes), range(classes)] += rng.integers(0, 200, (images, classes))
    return ConfusionCounts(tables).counts


def mean_iou_of_images(counts):
    def of(index, axis):
        assert axis == -1
        return mean_iou(Counts(*(x[index].sum(-2) for x in vars(counts).values())))

    return of


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_scipy_gives_the_same_interval_from_the_same_resamples(method):
    counts = some_counts()
    theirs = stats.bootstrap(
        (np.arange(12),),
        mean_iou_of_images(counts),
        vectorized=True,
        n_resamples=500,
        method={"bca": "BCa"}.get(method, method),
        random_state=np.random.default_rng(5),
    )
    ours = bootstrap(counts, resamples=500, seed=5, method=method).overall
    limits = theirs.confidence_interval
    assert (ours.low, ours.high) == pytest.approx((limits.low, limits.high), abs=1e-12)
    assert ours.standard_error == pytest.approx(theirs.standard_error)


def test_scipy_agrees_for_classes_and_groups_within_chance():
    counts = some_counts(images=30)
    groups = np.arange(30) % 10
    grouped = Counts(
        *(np.stack([x[groups == g].sum(0) for g in range(10)]) for x in vars(counts).values())
    )
    theirs = stats.bootstrap(
        (np.arange(10),), mean_iou_of_images(grouped), vectorized=True, n_resamples=4000,
        method="percentile", random_state=np.random.default_rng(1),
    )  # fmt: skip
    ours = bootstrap(counts, groups=groups.tolist(), resamples=4000, seed=2)
    assert (ours.unit, ours.units) == ("group", 10)
    limits = theirs.confidence_interval
    assert (ours.overall.low, ours.overall.high) == pytest.approx(
        (limits.low, limits.high), abs=0.2 * theirs.standard_error
    )


def test_each_resample_is_the_score_of_the_images_drawn():
    counts = some_counts()
    prepared = statistic(counts, units=units_of(12))
    (values,) = resampled((prepared,), 7, 3)
    drawn = np.random.default_rng(3).integers(0, 12, (7, 12))
    for row, index in zip(values, drawn, strict=True):
        assert row[0] == pytest.approx(float(mean_iou(counts[index].summed())), abs=1e-15)


def test_batches_do_not_change_the_numbers(monkeypatch):
    counts = some_counts()
    whole = bootstrap(counts, resamples=101)
    monkeypatch.setattr(bootstrapping, "_BATCH_BYTES", 5000)
    assert len(list(batches(101, 12, 12))) > 10
    assert bootstrap(counts, resamples=101) == whole


def test_integer_products_give_the_same_as_float(monkeypatch):
    counts = some_counts()
    whole = bootstrap(counts, resamples=50)
    monkeypatch.setattr("segiou.inference.statistics._EXACT", 1)
    assert bootstrap(counts, resamples=50) == whole


def test_seed_decides():
    counts = some_counts()
    first, again, other = (bootstrap(counts, resamples=50, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first.overall.low != other.overall.low


def test_weights_are_multinomial():
    weights = np.concatenate([*times_drawn(20_000, 5, 0, 0)])
    assert (weights.sum(1) == 5).all()
    expected = [stats.binom(5, 0.2).pmf(k) for k in range(6)]
    shares = np.bincount(weights[:, 0], minlength=6) / 20_000
    assert shares == pytest.approx(expected, abs=0.012)


def test_a_class_that_vanishes_is_skipped_and_reported():
    # Class 1 is in one image of four: (3/4)^4 of the resamples have none of it.
    counts = Counts(
        tp=[[9, 0], [8, 0], [9, 0], [5, 3]], fp=[[0, 0]] * 4, fn=[[1, 0], [2, 0], [1, 0], [1, 1]],
        tn=[[0, 10], [0, 10], [0, 10], [4, 6]],
    )  # fmt: skip
    found = bootstrap(counts, resamples=20_000, class_names=["road", "cat"])
    cat = found.classes[1]
    assert cat.undefined_share == pytest.approx(0.75**4, abs=0.012)
    # Every resample that has the class has the same value, which is no interval.
    assert cat.value == 0.75 and np.isnan([cat.low, cat.high]).all()
    assert (cat.units, cat.few, found.overall.undefined_share) == (1, True, 0.0)
    assert found.unreliable_classes == ("road", "cat")
    assert "Undefined in some resamples (share in brackets): cat (31" in " ".join(found.sentences())


def test_bca_of_a_class_seen_once_is_undefined():
    counts = Counts(
        tp=[[9, 0], [8, 0], [5, 3]], fp=[[0, 0]] * 3, fn=[[1, 0], [2, 0], [1, 1]],
        tn=[[0, 10], [0, 10], [4, 6]],
    )  # fmt: skip
    found = bootstrap(counts, resamples=100, method="bca")
    assert np.isnan(found.classes[1].low)
    assert not np.isnan(found.classes[0].low)


def test_bca_without_spread_is_the_point():
    assert limits_of(np.full(9, 0.5), 0.95, 0.5, np.full(4, 0.5)) == (0.5, 0.5)
    assert np.isnan(limits_of(np.full(9, 0.4), 0.95, 0.5, np.full(4, 0.5))).all()


def test_bca_is_undefined_without_an_infinite_distance_in_turn():
    resamples = np.array([1.0, 2, 2, 3, np.inf, np.inf])
    with np.errstate(all="raise"):
        limits = limits_of(resamples, 0.95, 2.5, np.array([2.0, np.inf, 3]))
    assert np.isnan(limits).all()


@pytest.mark.parametrize("method", ["jackknife", "percentile", "bca"])
@pytest.mark.parametrize("found_px", [3, 11, 61, 89])
def test_equal_images_that_differ_by_rounding_have_no_interval(method, found_px):
    tp = np.array([[found_px, 50], [found_px, 60], [found_px, 70], [0, 60], [0, 60]])
    fn = np.array([[10, 5], [10, 7], [10, 5], [0, 5], [0, 9]])  # the first class is in 3 images
    counts = Counts(tp, 0 * tp, fn, 200 - tp - fn)
    options = {} if method == "jackknife" else {"resamples": 200}
    found = confidence_intervals(counts, aggregate="C", method=method, **options)
    first, second = found.classes
    assert first.value == pytest.approx(found_px / (found_px + 10))
    assert np.isnan([first.low, first.high]).all()
    assert second.low < second.value < second.high


def test_absent_class_has_no_interval():
    counts = Counts([[1, 0], [2, 0]], [[1, 0], [0, 0]], [[0, 0]] * 2, [[0, 2], [0, 2]])
    found = bootstrap(counts, resamples=20)
    absent = found.classes[1]
    assert np.isnan([absent.value, absent.low, absent.high, absent.standard_error]).all()
    assert absent.undefined_share == 1.0
    assert found.unreliable_classes == ("0",)


def test_wider_level_is_wider():
    counts = some_counts()
    narrow, wide = (bootstrap(counts, resamples=500, level=level).overall for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@pytest.mark.parametrize("aggregate", ["D", "I", "C"])
@pytest.mark.parametrize("metric", ["iou", "dice", "precision", "recall", "specificity"])
def test_any_metric_any_aggregate(metric, aggregate):
    found = bootstrap(some_counts(), metric, aggregate=aggregate, resamples=200)
    assert found.aggregate == aggregate
    for part in found:
        assert part.low < part.value < part.high
        assert part.standard_error > 0


def test_overall_metric_has_no_classes():
    found = bootstrap(some_counts(), "cohen_kappa", resamples=50)
    assert found.classes == ()
    assert found.overall.name == "Cohen's kappa"


def test_to_dict_and_sentences():
    found = bootstrap(some_counts(), resamples=50, class_names=["sky", "road", "car"])
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (told["unit"], told["units"], told["resamples"], told["seed"]) == ("image", 12, 50, 0)
    assert told["overall"]["value"] == found.overall.value
    assert [c["name"] for c in told["classes"]] == ["sky", "road", "car"]
    sentence = found.sentences()[0]
    assert sentence.startswith("Mean IoU is ")
    assert "95 % percentile bootstrap interval" in sentence
    assert "50 resamples, seed 0" in found.interval_method()[0]


def test_a_run_and_its_report_give_what_their_counts_give():
    truths = [[[0, 0, 1, 1]], [[0, 1, 1, 1]], [[1, 1, 0, 0]], [[0, 2, 2, 1]]]
    preds = [[[0, 0, 0, 1]], [[0, 1, 1, 1]], [[1, 0, 0, 0]], [[0, 2, 1, 1]]]
    run = score(truths, preds, labels=["a", "b", "c"], exclude=["c"], protocol="detectron2")
    same = {"class_names": run.class_names, "include": run.include, "protocol": "detectron2"}
    bare = bootstrap(run.counts, resamples=50, **same)
    assert bare.protocol == "detectron2"
    assert bootstrap(run, resamples=50) == bare
    assert bootstrap(run.report(), resamples=50) == bare
    assert run.intervals(resamples=50, method="percentile") == bare
    grouped = bootstrap(run, groups=r"[01]|[23]", resamples=50)
    by_id = bootstrap(run.counts, ids=run.ids, groups=".", resamples=9)
    assert (grouped.units, by_id.units) == (4, 4)
    assert bootstrap(run, "dice", protocol="segiou", resamples=9).protocol == "segiou"


def test_sums_over_images_have_no_interval():
    run = score([[[0, 1]], [[0, 1]]], [[[0, 1]], [[1, 1]]], labels=2)
    with pytest.raises(TypeError, match="a ConfusionMatrix has no per-image counts"):
        bootstrap(run.total())
    without = replace(run.report(), per_image=None)
    with pytest.raises(ValueError, match="the report has no per-image counts; pass the run"):
        bootstrap(without)
    with pytest.raises(ValueError, match="the run has no boundary counts"):
        bootstrap(run, "boundary_iou")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"resamples": 1}, ValueError, "resamples must be at least 2"),
        ({"resamples": 1e4}, TypeError, "resamples must be an integer"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"level": 95}, ValueError, "level must be between 0 and 1"),
        ({"method": "studentised"}, ValueError, "method must be"),
        ({"groups": ["a"] * 12}, ValueError, "at least 2 groups, got 1"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        bootstrap(some_counts(), **{"resamples": 10, **options})


def test_no_interval_has_zero_width():
    right = Counts(*(np.full((12, 1), n) for n in (1, 0, 0, 1)))
    drawn = bootstrap(right, resamples=50)
    assert np.isnan(drawn.overall.low)
    assert drawn.sentences()[0] == "Mean IoU is 100.00 % on 12 images (no interval)."
    # Twelve hits in a row are likely (1 - level) / 2 of the time at this hit rate;
    # one wrong pixel of so few would have a wider interval.
    exact = confidence_intervals(right).overall
    assert (exact.low, exact.high) == (pytest.approx(0.025 ** (1 / 12)), 1.0)
