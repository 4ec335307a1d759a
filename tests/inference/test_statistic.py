import numpy as np
import pytest

import segiou
from segiou import Counts, Protocol
from segiou.analysis import influence
from segiou.counting import ConfusionCounts
from segiou.inference import group_by_pattern, statistic, units_of
from segiou.metrics import METRICS, iou, mean_iou, pixel_accuracy
from segiou.metrics.protocols import PROTOCOLS

# Three images, three classes; class 2 is in the truth of the last only, and predicted in the first.
TABLES = np.array(
    [
        [[6, 2, 1, 0], [1, 4, 0, 0], [0, 0, 0, 0]],
        [[8, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
        [[3, 0, 0, 0], [2, 2, 0, 0], [1, 0, 5, 0]],
    ]
)
COUNTS = ConfusionCounts(TABLES).counts
UNITS = units_of(3)


def values_of(**options):
    return statistic(COUNTS, units=UNITS, **options).values


def test_data_set_by_hand():
    # TP 17, 6, 5; unions 6+2+1+1 + 8+1 + 3+2+1, 2+4+1 + 0 + 4, 1 + 0 + 6
    expected = [17 / 25, 6 / 11, 5 / 7]
    assert values_of() == pytest.approx([np.mean(expected), *expected])


def test_an_undefined_mean_of_an_image_is_not_zero():
    protocol = Protocol("custom", "", unit="image", absent="nan")
    assert np.isnan(values_of(protocol=protocol)[0])


@pytest.mark.parametrize("unit", ["dataset", "image", "image-class", "class"])
def test_an_empty_mean_is_zero_under_a_protocol_with_that_rule(unit):
    # Nothing but class 2, which the mean leaves out.
    counts = Counts([[0, 0, 4]] * 3, [[0] * 3] * 3, [[0] * 3] * 3, [[4, 4, 0]] * 3)
    include = [True, True, False]
    for empty, expected in (("zero", 0.0), ("nan", np.nan)):
        protocol = Protocol("custom", "", unit=unit, empty=empty)
        found = statistic(counts, units=UNITS, include=include, protocol=protocol).values
        np.testing.assert_array_equal(found, [expected, np.nan, np.nan, 1.0])


def test_image_by_hand():
    # Per image over the classes in its truth.
    per_image = [(6 / 10 + 4 / 7) / 2, 8 / 9, (3 / 6 + 2 / 4 + 5 / 6) / 3]
    found = values_of(aggregate="I")
    assert found[0] == pytest.approx(np.mean(per_image))
    assert found[1:] == pytest.approx([(6 / 10 + 8 / 9 + 3 / 6) / 3, (4 / 7 + 2 / 4) / 2, 5 / 6])


def test_class_by_hand():
    classes = [(6 / 10 + 8 / 9 + 3 / 6) / 3, (4 / 7 + 2 / 4) / 2, 5 / 6]
    assert values_of(aggregate="C") == pytest.approx([np.mean(classes), *classes])
    assert values_of(aggregate="C", include=[True, True, False])[0] == pytest.approx(
        np.mean(classes[:2])
    )


@pytest.mark.parametrize("include", [None, [True, False, True]])
@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_every_protocol(name, include):
    total = COUNTS.summed()
    for metric in ("iou", "recall"):
        expected = PROTOCOLS[name].mean(METRICS[metric], total, include=include, per_image=COUNTS)
        found = values_of(metric=metric, protocol=name, include=include)
        assert found[0] == pytest.approx(expected.value, nan_ok=True)


def test_metrics_by_name_alias_and_function():
    assert values_of(metric="mean_iou") == pytest.approx(values_of(metric=iou))
    total = COUNTS.summed()
    assert values_of(metric="pixel_accuracy") == pytest.approx([float(pixel_accuracy(total))])
    assert values_of(metric=mean_iou) == pytest.approx([float(mean_iou(total))])
    per_image = pixel_accuracy(COUNTS)
    assert values_of(metric="pixel_accuracy", aggregate="I") == pytest.approx([per_image.mean()])


@pytest.mark.parametrize("groups", [None, tuple("aba")])
@pytest.mark.parametrize("aggregate", ["D", "I", "C"])
def test_left_out_is_leaving_out(aggregate, groups):
    found = influence(COUNTS, aggregate=aggregate, groups=groups)
    members = [[0], [1], [2]] if groups is None else [[0, 2], [1]]
    for row, left in zip(found.left_out, members, strict=True):
        kept = np.setdiff1d(np.arange(3), left)
        # Twice the same image is one unit too few to complain and changes no ratio.
        twice = COUNTS[np.concatenate([kept, kept])]
        again = statistic(twice, units=units_of(len(twice.tp)), aggregate=aggregate)
        assert row == pytest.approx(again.values, nan_ok=True)


def test_influence_of_a_mean_is_known():
    # Accuracy per image averaged over images: a plain mean, whose jackknife error is s/√N.
    found = influence(COUNTS, "pixel_accuracy", aggregate="I", ids=["a", "b", "c"])
    values = pixel_accuracy(COUNTS)
    assert found.standard_error == pytest.approx([values.std(ddof=1) / np.sqrt(3)])
    assert found.effect[:, 0] == pytest.approx((values - values.mean()) / 2)
    raising, lowering = found.strongest(1)
    assert (raising, lowering) == ([1], [0])
    assert found.to_dict()["names"] == ["a", "b", "c"]


def test_seen_counts_units_with_the_class():
    assert statistic(COUNTS, units=UNITS).seen.tolist() == [3, 3, 2, 1]
    grouped = statistic(COUNTS, units=units_of(3, ["x", "y", "x"]))
    assert grouped.seen.tolist() == [2, 2, 1, 1]


def test_products_are_exact_beyond_float():
    most = 2**52
    counts = Counts([[most + 1], [1]], [[0], [1]], [[0], [0]], [[0], [0]])
    found = statistic(counts, units=units_of(2))
    assert found.products.dtype == np.int64
    assert (np.array([1, 1]) @ found.products)[0] == most + 2
    assert statistic(COUNTS, units=UNITS).products.dtype == np.float64
    beyond = Counts([[2**62], [1]], [[0], [1]], [[0], [0]], [[0], [0]])
    with pytest.raises(ValueError, match=r"exceed 2\^63"):
        _ = statistic(beyond, units=units_of(2)).products


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "uio"}, "unknown score 'uio'"),
        ({"aggregate": "X"}, "aggregate must be"),
        ({"metric": "pixel_accuracy", "aggregate": "C"}, "no per-class values"),
        ({"class_names": ["a"]}, "3 classes, got 1 class names"),
        ({"protocol": "nobody"}, "unknown protocol"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        values_of(**options)


def test_counts_must_fit_the_units():
    with pytest.raises(ValueError, match=r"N = 4 images, got \(3, 3\)"):
        statistic(COUNTS, units=units_of(4))


def test_units_refuse():
    with pytest.raises(ValueError, match="3 images, 2 groups"):
        units_of(3, ["a", "b"])
    with pytest.raises(ValueError, match="at least 2 groups, got 1"):
        units_of(3, ["a", "a", "a"])
    with pytest.raises(ValueError, match="at least 2 images, got 1"):
        units_of(1)


def test_group_by_pattern():
    ids = ["p1/s01", "p1/s02", "p2/s01"]
    assert group_by_pattern(ids, r"^[^/]+") == ("p1", "p1", "p2")
    assert group_by_pattern(ids, r"(p\d)/s(0)") == ("p1/0", "p1/0", "p2/0")
    with pytest.raises(ValueError, match="not found in p2/s01; every id"):
        group_by_pattern(ids, "p1")
    with pytest.raises(ValueError, match="is not a regular expression"):
        group_by_pattern(ids, "(")


@pytest.mark.parametrize(
    "metric",
    [
        lambda counts: np.mean(iou(counts)),
        lambda counts: float(iou(counts).mean()),
        lambda counts: iou(counts)[:, 1:],
        lambda counts: iou(counts).mean(1),
    ],
)
def test_functions_reduce_over_the_classes_alone(metric):
    run = segiou.score([[[0, 1, 1]]] * 3, [[[0, 0, 1]]] * 3, labels=2)
    for call in (lambda: run.intervals(metric), lambda: segiou.compare(run, run, metric=metric)):
        with pytest.raises(ValueError, match="returned values of shape"):
            call()
