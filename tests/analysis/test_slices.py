"""Slices: what is tested, named and refused; test_slice_reference has the formulas."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t as student_t

import segiou
from segiou import Counts, Protocol, slices
from segiou.analysis.slices.result import Gap, Slice
from segiou.cli.main import main
from segiou.metrics import load_protocol

CLASSES = ("road", "car", "pole", "rare")


@dataclass
class Scored:
    """A run as a comparison sees it."""

    name: str
    counts: Counts
    ids: tuple[str, ...]
    class_names: tuple[str, ...] = CLASSES
    include: np.ndarray = field(default_factory=lambda: np.ones(4, bool))
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))


def made(name, ids, lift, seed=0):
    """A model whose IoU of an image is 0.7 plus its lift; the last class is in images 0–11."""
    rng = np.random.default_rng(seed)
    number = len(ids)
    truth = np.random.default_rng(7).integers(200, 900, (number, 4))
    truth[np.arange(number) >= 12, 3] = 0
    quality = np.clip(0.8 + np.asarray(lift)[:, None] + rng.normal(0, 0.08, (number, 4)), 0.05, 1)
    tp = np.rint(truth * quality).astype(np.int64)
    fp = np.rint((truth - tp) * 0.4).astype(np.int64)
    fn = truth - tp
    return Scored(name, Counts(tp, fp, fn, 10_000 - tp - fp - fn), ids)


IDS = tuple(f"{'abc'[i % 3]}{'xyzuv'[i % 5]}{i:02}" for i in range(30))
TIME = {id: "night" if i >= 20 else "day" for i, id in enumerate(IDS)}
LIFT = np.array([-0.2 if TIME[id] == "night" else 0.0 for id in IDS])


def test_two_complements_are_one_test():
    found = slices(made("A", IDS, LIFT), by=TIME, groups="none")
    day, night = found
    assert found.tests == 1
    assert night.gap.p == night.gap.p_holm == day.gap.p_holm
    assert [one.name for one in found.worst()] == ["slice=night"]
    assert night.gap.value == pytest.approx(-day.gap.value)


def test_two_values_that_an_image_may_both_have_are_two_tests():
    both = {id: [["fog", "rain"], ["fog"], ["rain"]][i % 3] for i, id in enumerate(IDS)}
    assert slices(made("A", IDS, LIFT), by=both, groups="none").tests == 2


def test_p_is_adjusted_for_all_columns():
    rows = [{"id": id, "time": TIME[id], "letter": id[0]} for id in IDS]
    found = slices(made("A", IDS, LIFT), by=rows, groups="none")
    assert found.tests == 4
    p = sorted({one.gap.p: one.gap.p_holm for one in found}.items())
    assert p[0][1] == pytest.approx(4 * p[0][0])
    assert found.key == "id"


def test_fewer_than_five_units_are_not_tested():
    few = dict.fromkeys(IDS[:26], "day") | dict.fromkeys(IDS[26:], "dusk")
    found = slices(made("A", IDS, LIFT), by=few, groups="none")
    assert found.tests == 0
    dusk = found["slice=dusk"]
    assert np.isnan(dusk.gap.p) and dusk.gap.low < dusk.gap.value < dusk.gap.high
    assert "cannot be compared" in str(found)


def test_a_side_without_spread_is_not_compared():
    """The models are equal by day, so nothing tells how much their difference would vary."""
    a, b = made("A", IDS, LIFT), made("B", IDS, LIFT / 2)
    day = np.array([TIME[id] == "day" for id in IDS])[:, None]
    own = zip(vars(a.counts).values(), vars(b.counts).values(), strict=True)
    same = Counts(*(np.where(day, *pair) for pair in own))
    found = slices(a, Scored("B", same, IDS), by=TIME, groups="none")
    assert found.tests == 0
    assert "cannot be compared between slices: all images of a side agree." in str(found)
    odd = {id: {"time": TIME[id], "odd": str(k % 2)} for k, id in enumerate(IDS)}
    found = slices(a, Scored("B", same, IDS), by=odd, groups="none")
    assert found.tests == 1  # even and odd images are the same comparison
    assert "All images of a side agree, so not tested: time=day" in str(found)


def test_trend_is_a_regression_with_hc3_errors():
    x = np.linspace(20, 80, 30)
    run = made("A", IDS, -0.004 * x)
    found = slices(run, by=dict(zip(IDS, x, strict=True)), groups="none")
    (trend,) = found.trends
    assert trend.change < 0 and trend.high < 0 and trend.p_holm < 0.01
    assert found.tests == 1  # its quartiles are not tested
    assert len(found) == 4
    tp, union = run.counts.tp.astype(float), run.counts.tp + run.counts.fp + run.counts.fn
    d = tp.sum(0) / union.sum(0) - (tp.sum(0) - tp) / (union.sum(0) - union)
    y = 30 * d.mean(1) * np.sqrt(29 / 30)
    design = np.column_stack([np.ones(30), x])
    slope = np.linalg.lstsq(design, y, rcond=None)[0][1]
    start, end = np.quantile(x, [0.1, 0.9])
    assert trend.change == pytest.approx(slope * (end - start))
    inverse = np.linalg.inv(design.T @ design)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    rest = (y - design @ (inverse @ design.T @ y)) / (1 - leverage)
    error = np.sqrt((inverse @ (design.T * rest**2) @ design @ inverse)[1, 1])
    freedom = min(28.0, _freedom(d, run))
    half = student_t.ppf(0.975, freedom) * error * (end - start)
    assert trend.high - trend.change == pytest.approx(half)


def test_dates_are_ordered():
    """30 days, of which the later are worse: quartiles by date, and a trend."""
    days = [f"2024-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(30)]
    found = slices(
        made("A", IDS, np.linspace(0, -0.3, 30)),
        by=dict(zip(IDS, days, strict=True)),
        groups="none",
    )
    assert [one.value for one in found] == [
        "< 2024-01-09",
        "2024-01-09 to 2024-01-16",
        "2024-01-16 to 2024-01-23",
        "≥ 2024-01-23",
    ]
    assert [one.images for one in found] == [8, 7, 7, 8]
    (trend,) = found.trends
    assert (trend.start, trend.end) == ("2024-01-03 21:36", "2024-01-27 02:24")
    assert trend.high < 0
    assert "2024-01-03" in str(found)


def _freedom(d, run):
    v, k = (d**2).sum(0), (run.counts.truth > 0).sum(0)
    return max(v.sum() ** 2 / (v**2 / (k - 1)).sum(), 2)


def test_simpsons_paradox_is_said():
    """By day and at night B is better, on all pixels worse: its false positives are at night."""
    ids = tuple(f"i{i}" for i in range(20))
    day = np.arange(20) < 10

    def model(name, day_counts, night_counts):
        tp, fp, fn = (
            np.where(day, *pair)[:, None] for pair in zip(day_counts, night_counts, strict=True)
        )
        counts = Counts(tp, fp, fn, 100_000 - tp - fp - fn)
        return Scored(name, counts, ids, ("car",), np.ones(1, bool))

    # Day: 900/1000 → 901/1000. Night: 1/100 → 99/9000. All: 901/1100 → 1000/10000.
    a = model("A", (900, 50, 50), (1, 0, 99))
    b = model("B", (901, 50, 49), (99, 8900, 1))
    by = {id: "day" if d else "night" for id, d in zip(ids, day, strict=True)}
    found = slices(a, b, by=by, groups="none")
    assert found.score == pytest.approx(1000 / 10000 - 901 / 1100)
    assert [round(one.score, 6) for one in found] == [0.001, round(99 / 9000 - 1 / 100, 6)]
    assert found.reversed == ("slice",)
    assert "Simpson's paradox" in found.to_markdown()


def test_values_that_differ_only_in_case_are_named():
    by = {id: "Night" if i % 3 == 0 else time for i, (id, time) in enumerate(TIME.items())}
    found = slices(made("A", IDS, LIFT), by=by, groups="none")
    assert "slice=Night and slice=night differ only in case" in found.to_text(200)


def test_slices_of_the_same_images_are_named():
    rows = [{"id": id, "a": TIME[id], "b": TIME[id].upper()} for id in IDS]
    found = slices(made("A", IDS, LIFT), by=rows, groups="none")
    assert ("a=night", "b=NIGHT") in found.alike
    assert "cannot be separated" in found.to_text(200)


def test_groups_in_both_sides_are_counted():
    found = slices(made("A", IDS, LIFT), by=TIME, groups=lambda id: id[:2])
    assert found.unit == "group" and found.units == 15
    assert found["slice=night"].gap.shared == 10


def test_outputs(tmp_path, capsys):
    truth = {f"{time}_{i}": np.eye(4, dtype=int) for time in ("day", "night") for i in range(6)}
    rng = np.random.default_rng(0)
    pred = {id: np.where(rng.random((4, 4)) < 0.2, 0, mask) for id, mask in truth.items()}
    segiou.score(truth, pred, labels=2).save(tmp_path / "run.sqlite")
    run = str(tmp_path / "run.sqlite")
    assert main(["slices", run, "(?P<time>[a-z]+)_", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [one["value"] for one in data["slices"]] == ["day", "night"]
    assert main(["slices", run, "(?P<time>[a-z]+)_", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith(
        "column,value,images,units,classes,score,low,high,gap"
    )
    assert main(["slices", run, run]) == 2
    assert "the last argument is the metadata" in capsys.readouterr().err
    assert main(["slices", run, "(?P<time>[a-z]+)_(?P<age>.)", "--bins", "age=3,2"]) == 2
    assert "bins of age must be a number of quantiles or ascending edges" in capsys.readouterr().err


@pytest.mark.needs("measures.surfaces")
def test_medians_have_order_statistics_of_one_run():
    from segiou.inference import median_limits

    rng = np.random.default_rng(2)
    truth = {f"{'ab'[i % 2]}_{i}": np.zeros((24, 24), int) for i in range(16)}
    pred = {}
    for id, mask in truth.items():
        mask[4:16, 4:16] = 1
        pred[id] = np.roll(mask, rng.integers(1, 7), 1)
    run = segiou.score(truth, pred, labels=2, surfaces=True)
    name = "hausdorff:1"
    found = run.slices("(?P<site>[ab])_", metric=name, groups="none")
    inside = np.array(["a_" in id for id in run.ids])
    cases = run.to_pandas()[name].to_numpy()[inside]
    one = found["site=a"]
    assert one.score == np.median(cases)
    assert (one.low, one.high) == pytest.approx(median_limits(cases))
    several = run.slices("(?P<site>[ab])_", metric="hausdorff", groups="none")
    assert "medians need one structure (hausdorff:NAME)" in several.to_text(200)
    with pytest.raises(ValueError, match="one run at a time"):
        slices(run, run, by="(?P<site>[ab])_", metric=name)


@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.parametrize(("slice_", "rest"), [(5, 5), (5, 50), (10, 30)])
def test_coverage_of_no_difference(slice_, rest):
    """95 % intervals of the difference of two slices of one population cover 0."""
    samples = 1000 if os.environ.get("SEGIOU_SLOW") else 4
    ids = tuple(map(str, range(slice_ + rest)))
    by = {id: "s" if int(id) < slice_ else "r" for id in ids}
    hits = 0
    for seed in range(samples):
        rng = np.random.default_rng([seed, slice_, rest])
        quality = expit(1 + rng.normal(0, 0.8, (len(ids), 3)))
        union = np.rint(np.exp(rng.normal(8, 0.7, quality.shape))).astype(np.int64)
        tp = np.rint(union * quality).astype(np.int64)
        fn = np.rint((union - tp) * 0.5).astype(np.int64)
        counts = Counts(tp, union - tp - fn, fn, 10**6 - union)
        run = Scored("A", counts, ids, CLASSES[:3], np.ones(3, bool))
        gap = slices(run, by=by, groups="none")["slice=s"].gap
        hits += gap.low <= 0 <= gap.high
    assert hits / samples >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / samples)


def test_a_reference_slice_replaces_the_rest():
    third = {id: TIME[id] if int(id[2:]) % 4 else "dusk" for id in IDS}
    run = made("A", IDS, LIFT)
    found = slices(run, by=third, groups="none", against="day")
    # As if dusk had no value.
    two = slices(run, by={id: v for id, v in third.items() if v != "dusk"}, groups="none")
    gap, alone = found["slice=night"].gap, two["slice=night"].gap
    assert (gap.value, gap.low, gap.p) == (alone.value, alone.low, alone.p)
    assert np.isnan(found["slice=day"].gap.value) and found.tests == 2
    assert "lower on slice=night than on slice=day" in str(found)
    with pytest.raises(ValueError, match="did you mean dusk"):
        slices(run, by=third, groups="none", against="dust")


OTHER = [made("B", IDS, 0.3 * LIFT, seed=1)]


@pytest.mark.parametrize("others", [[], pytest.param(OTHER, marks=pytest.mark.gate)])
def test_classes_on_slices_are_slices_of_the_class(others):
    runs = made("A", IDS, LIFT), *others
    found = slices(*runs, by=TIME, groups="none", by_class=True)
    assert found.tests == 4  # the mean and three classes, of two complements
    alone = slices(*runs, by=TIME, groups="none", metric="iou:pole")["slice=night"]
    one = found["slice=night, class=pole"]
    assert (one.score, one.low, one.high) == pytest.approx((alone.score, alone.low, alone.high))
    assert (one.gap.value, one.gap.low, one.gap.p) == pytest.approx(
        (alone.gap.value, alone.gap.low, alone.gap.p)
    )
    assert "slice=day, class=rare" in [own.name for own in found]
    assert found.rows()[1]["class"] == "road"


def test_combinations_of_twenty_units_are_searched():
    ids = tuple(f"{i}" for i in range(115))
    run = made("A", ids, [0.0 if i % 2 or i % 3 else -0.2 for i in range(115)])
    rows = [{"id": id, "even": i % 2 == 0, "three": i % 3 == 0} for i, id in enumerate(ids)]
    found = slices(run, by=rows, groups="none", search=True)
    pairs = [one.name for one in found if "×" in one.name]
    # 20 images are even and divisible by 3, and 19 are odd and divisible by 3.
    assert pairs == [f"even × three={x}" for x in ("False × False", "True × False", "True × True")]
    assert found.images_in(pairs[0])[:3] == ("1", "5", "7")
    assert found.tests == 5 and not found.outside


def test_values_that_read_like_bins_or_combinations():
    """Only bins are named with a blank, and any value may have the sign of combinations."""
    ids = tuple(f"{i}" for i in range(120))
    values = [
        {"id": id, "size": "9 × 9" if i % 2 else "<9", "b": i % 3} for i, id in enumerate(ids)
    ]
    found = slices(made("A", ids, [0.0] * 120), by=values, groups="none", search=True)
    assert found.images_in("size=<9") == ids[::2]
    assert found.images_in("size=9 × 9") == ids[1::2]
    assert found.images_in("size × b=9 × 9 × 0") == ids[3::6]


def test_another_mix_of_slices():
    run = made("A", IDS, LIFT)
    day, night = slices(run, by=TIME, groups="none")
    mix = {"slice": {"day": 0.7, "night": 0.3}}
    (one,) = slices(run, by=TIME, groups="none", mix=mix).mixes
    assert one.score == pytest.approx(0.7 * day.score + 0.3 * night.score)
    down = (0.7 * (day.score - day.low)) ** 2 + (0.3 * (night.score - night.low)) ** 2
    assert one.score - one.low == pytest.approx(down**0.5)
    assert one.low < one.score < one.high


def test_mixed_slices_with_the_same_groups_are_correlated():
    """Each image is in both slices, so their mix varies as much as one of them."""
    run = made("A", IDS, LIFT)
    own = Counts(*(np.repeat(values, 2, 0) for values in vars(run.counts).values()))
    by = {f"{id}-{time}": time for id in IDS for time in ("day", "night")}
    found = slices(
        Scored("A", own, tuple(by)),
        by=by,
        groups=lambda id: id.partition("-")[0],
        mix={"slice": {"day": 0.5, "night": 0.5}},
    )
    (one,), (day, night) = found.mixes, found
    assert day.score == night.score
    assert (one.score, one.low, one.high) == pytest.approx((day.score, day.low, day.high))


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({"slice": {"day": 0.7, "night": 0.7}}, "sum to 1"),
        ({"slice": {"day": 1.7, "night": -0.7}}, "at least 0"),
        ({"slice": {}}, "sum to 1"),
        ({"slice": {"dya": 1.0}}, "slice=dya does not occur; values: day and night"),
        ({"slic": {"day": 1.0}}, "no column 'slic'; columns: slice; did you mean slice"),
    ],
)
def test_mixes_that_are_not(mix, message):
    with pytest.raises(ValueError, match=message):
        slices(made("A", IDS, LIFT), by=TIME, groups="none", mix=mix)


def test_trends_leave_out_classes_of_a_single_image():
    truth = np.tile([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], (12, 1, 1))
    pred = truth.copy()
    for row, wrong in zip(pred[:, 0], (0, 1, 3, 2, 4, 3, 5, 4, 5, 3, 4, 5), strict=True):
        row[:wrong] = 1
    truth[0, 0, 9], pred[0, 0, 8:] = 2, 2

    def trend(**options):
        run = segiou.score(truth, pred, labels=3, **options)
        table = {id: {"lux": k * k + 0.5} for k, id in enumerate(run.ids)}
        return segiou.slices(run, by=table, groups="none").trends[0].change

    assert trend() == pytest.approx(trend(exclude=2))


def test_equal_images_have_neither_trends_nor_tests():
    ids = [f"i{k}" for k in range(12)]
    run = segiou.score({id: [[0, 1]] for id in ids}, {id: [[0, 0]] for id in ids}, labels=2)
    table = {id: {"lux": k * k + 0.5, "side": "ab"[k % 2]} for k, id in enumerate(ids)}
    found = segiou.slices(run, by=table, groups="none")
    assert (found.trends, found.tests, found.outside) == ((), 0, ())
    assert "between slices: all images of a side agree." in str(found).replace("\n", " ")


@pytest.mark.needs("measures.surfaces")
def test_equal_results_are_equal_where_nothing_is_defined():
    masks = [np.array([[0, 1], [1, 1]])] * 8
    run = segiou.score(masks, masks, labels=3, surfaces=True)
    table = {id: "xy"[int(id) % 2] for id in run.ids}
    for use in (
        lambda: segiou.compare(run, run, names=("a", "b")).pairs,
        lambda: segiou.slices(run, by=table, metric="hausdorff_95:2").slices,
        lambda: segiou.slices(run, run, by=table, metric="dice:2").slices,
    ):
        assert use() == use()


def test_slices_whose_edges_differ_late_are_tested_alone():
    rng = np.random.default_rng(1)
    truth = {f"im{k:02d}": rng.integers(0, 2, (20, 20)) for k in range(60)}
    wrong = {id: rng.random((20, 20)) < (0.45 if k % 4 == 2 else 0.1) for k, id in enumerate(truth)}
    pred = {id: np.where(wrong[id], 1 - mask, mask) for id, mask in truth.items()}
    run = segiou.score(truth, pred, labels=2)

    def found(start):
        rows = [{"id": id, "date": start + 10 * (k % 4)} for k, id in enumerate(truth)]
        edges = {"date": [start + 10, start + 20, start + 30]}
        return run.slices(rows, bins=edges, mix={"date": {f"{start + 20} to {start + 30}": 1.0}})

    dates, small = found(20240501), found(0)
    assert [one.gap for one in dates] == [one.gap for one in small]
    assert (dates.tests, len({one.name for one in dates})) == (4, 4)
    assert all(one.gap.p <= one.gap.p_holm for one in dates)
    (worst,) = dates.worst()[:1]
    assert (worst.name, dates.mixes[0].score) == ("date=20240521 to 20240531", worst.score)
    assert dates.images_in(worst.name) == tuple(id for k, id in enumerate(truth) if k % 4 == 2)


def test_p_at_the_level_differs_no_more_than_in_comparisons():
    # 1 − 0.95 is 0.050000000000000044.
    gap = Gap(0.1, -0.0, 0.2, 0.05, 0.05, 3, 0)
    one = Slice("time", "day", 9, 9, 0.5, 0.4, 0.6, (0.5,), 3, gap)
    assert not one.differs(0.95)
    assert replace(one, gap=replace(gap, p_holm=0.0499)).differs(0.95)
