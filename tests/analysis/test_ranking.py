"""Rankings of runs: schemes, stability, confidence sets, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import segiou
from segiou import Counts
from segiou.analysis import Ranking, rank, rank_cases
from segiou.analysis.comparison.ranking import Contest, kendall_tau, placed
from segiou.inference import DifferentImagesError

NAN = float("nan")
SCHEMES = ("aggregate-then-rank", "rank-then-aggregate", "test-then-rank")


def run(shares, name, **changes):
    """A run of one class whose IoU on each image is a share of 100 pixels; NaN without pixels."""
    shares = np.asarray(shares, float)
    found = np.nan_to_num(100 * shares).round().astype(np.int64)[:, None]
    missed = np.where(np.isnan(shares[:, None]), 0, 100 - found)
    nothing = np.zeros_like(found)
    counts = Counts(found, nothing, missed, nothing)

    class Run:
        protocol = segiou.metrics.protocols.load_protocol("segiou")
        class_names = ("liver",)
        include = np.ones(1, bool)
        ids = tuple(f"case {chr(97 + i)}" for i in range(len(shares)))

    for key, value in {"name": name, "counts": counts, **changes}.items():
        setattr(Run, key, value)
    return Run()


def table(models=3, cases=20, seed=0, step=0.02):
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.3, 0.8, cases)
    rows = base + rng.normal(0, 0.05, (models, cases)) + step * np.arange(models)[:, None]
    return rows.round(2)


def runs_of(rows):
    return [run(row, f"m{i}") for i, row in enumerate(rows)]


def ranks(found):
    by_name = {model.name: model for model in found.models}
    return [by_name[name].rank for name in found.names]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_are_those_of_tables(scheme):
    rows = table()
    aggregate = "I" if scheme == "aggregate-then-rank" else None
    found = rank(runs_of(rows), scheme=scheme, aggregate=aggregate, draws=50)
    expected = rank_cases(rows, scheme=scheme)
    assert ranks(found) == expected.ranks.tolist()
    by_name = {model.name: model.value for model in found.models}
    assert [by_name[name] for name in found.names] == pytest.approx(expected.values.tolist())


def test_scores_are_of_the_data_set_by_default():
    found = rank(runs_of([[0.2, 0.8], [0.4, 0.5]]), draws=10)
    assert [(m.name, m.value) for m in found.models] == [("m0", 0.5), ("m1", 0.45)]
    assert found.value_name == "mean IoU"
    assert found.by == ("mean_iou",)


def test_a_false_claim_has_the_probability_of_the_paper():
    stdtr = pytest.importorskip("scipy.special").stdtr
    a, b = table(2, 25)
    found = rank(runs_of([a, b]), aggregate="I", draws=0)
    s_a, s_b, r = a.std(ddof=1), b.std(ddof=1), np.corrcoef(a, b)[0, 1]
    spread = math.sqrt(s_a**2 + s_b**2 - 2 * s_a * s_b * r)
    assert found.models[0].name == "m1"
    expected = stdtr(24, math.sqrt(25) * (a.mean() - b.mean()) / spread)
    # Half of the p of the permutation test, which is close to that of Student's t.
    assert found.false_claim == pytest.approx(expected, abs=0.02)
    pair = segiou.compare(*runs_of([a, b]), aggregate="I").pairs[0]
    assert found.false_claim == pair.overall.p / 2
    assert found.rival == "m0"
    assert found.sentences()[-1] == (
        f"Risk of calling m1 the best: with probability {100 * found.false_claim:.2f} %, m0 is as "
        "good or better."
    )


def test_tau_agrees_with_scipy():
    tau = pytest.importorskip("scipy.stats").kendalltau
    own = np.array([1.0, 2, 2, 4, 5])
    others = np.random.default_rng(0).integers(1, 4, (20, 5)).astype(float)
    expected = [tau(own, row).statistic for row in others]
    assert kendall_tau(own, others) == pytest.approx(expected, nan_ok=True)
    assert np.isnan(kendall_tau(own, np.ones((1, 5)))).all()


def test_shares_of_resamples_at_each_rank():
    drawn = np.array([[0.9, 0.8, 0.1], [0.8, 0.9, 0.1], [0.9, 0.9, 0.1], [0.9, 0.8, 0.1]])
    unknown = np.full((3, 3), NAN)
    contest = Contest(np.array([0.9, 0.8, 0.1]), "higher", unknown[:, :2], unknown, drawn)
    one, two, three = placed("abc", contest)["models"]
    # The tie of the third resample gives both rank 1, and P(best) half to each.
    assert (one.shares, one.best) == ((0.75, 0.25, 0.0), 0.625)
    assert (two.shares, two.best) == ((0.5, 0.5, 0.0), 0.375)
    assert (three.shares, three.best) == ((0.0, 0.0, 1.0), 0.0)
    middle = placed("abc", contest, "average")["models"][1]
    assert middle.shares == (0.375, 0.625, 0.0)


def test_confidence_sets_are_of_all_models_together():
    # a beats c and b beats c clearly; a against b is open. Six one-sided p, Holm-adjusted.
    p = np.array([[NAN, 0.3, 0.001], [0.7, NAN, 0.005], [0.999, 0.995, NAN]])
    contest = Contest(np.array([3.0, 2.0, 1.0]), "higher", np.full((3, 2), NAN), p, None)
    sets = [(m.rank_low, m.rank_high) for m in placed("abc", contest)["models"]]
    assert sets == [(1, 2), (1, 2), (3, 3)]
    p[1, 2] = 0.02  # times 5
    sets = [(m.rank_low, m.rank_high) for m in placed("abc", contest)["models"]]
    assert sets == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_runs_share_the_first_rank(scheme):
    rows = table(1)[0]
    found = rank(runs_of([rows, rows, rows - 0.2]), scheme=scheme, draws=100)
    assert ranks(found) == [1, 1, 3]
    assert found.models[0].best == 0.5
    assert found.tau == 1.0
    assert found.false_claim == 1.0


def test_all_equal_runs_have_no_order():
    rows = table(1)[0]
    found = rank(runs_of([rows, rows]), draws=20)
    assert ranks(found) == [1, 1]
    assert math.isnan(found.tau)
    assert [m.possible_ranks for m in found.models] == ["1 to 2"] * 2
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_resamples_are_reproducible(scheme):
    runs = runs_of(table())
    found = rank(runs, scheme=scheme, draws=40)
    assert found == rank(runs, scheme=scheme, draws=40)
    assert all(sum(model.shares) == pytest.approx(1) for model in found.models)
    assert found.resamples == 40
    none = rank(runs, scheme=scheme, draws=0)
    assert (none.resamples, none.seed) == (None, None)
    assert math.isnan(none.tau)
    assert none.models[0].shares == ()
    assert [m.rank for m in none.models] == [m.rank for m in found.models]


def test_several_scores_rank_by_their_mean_rank():
    truth = np.random.default_rng(0).integers(0, 3, (8, 12, 12))
    rng = np.random.default_rng(1)
    runs = {
        name: segiou.score(
            truth, np.where(rng.random(truth.shape) < rate, 0, truth), labels=3, boundary=True
        )
        for name, rate in (("good", 0.1), ("fair", 0.3), ("poor", 0.6))
    }
    found = rank(runs, by=["mean_iou", "boundary_iou", "dice:1"], draws=50)
    assert [m.name for m in found.models] == ["good", "fair", "poor"]
    assert [m.value for m in found.models] == [1, 2, 3]
    assert found.score_ranks == ((1, 2, 3),) * 3
    assert found.value_name == "mean rank"
    assert math.isnan(found.false_claim)  # means of ranks of aggregates are not smooth


@pytest.mark.needs("measures.surfaces")
def test_lower_distances_are_better():
    truth = np.zeros((6, 20, 20), int)
    truth[:, 5:12, 5:12] = 1
    runs = [segiou.score(truth, np.roll(truth, far, 1), labels=2, surfaces=True) for far in (3, 1)]
    for scheme in SCHEMES[:2]:
        options = {"scheme": scheme, "aggregate": "I", "draws": 10}
        found = rank(runs, by="hausdorff_95:1", names=("far", "near"), **options)
        assert [m.name for m in found.models] == ["near", "far"]


def test_images_without_the_class_are_not_cases():
    rows = [[0.5, NAN, 0.7], [0.6, NAN, 0.8]]
    found = rank(runs_of(rows), scheme="rank-then-aggregate", draws=10)
    assert [m.value for m in found.models] == [1, 2]


def test_missing_images():
    whole, part = run([0.5, 0.7, 0.6], "whole"), run([0.9, 0.9], "part")
    found = rank([whole, part], scheme="rank-then-aggregate", draws=10)
    assert found.images == 3
    assert {m.name: m.value for m in found.models} == {"whole": 5 / 3, "part": 4 / 3}
    options = {"aggregate": "I", "draws": 10}
    dropped = rank([whole, part], missing="drop", **options)
    assert {m.name: m.value for m in dropped.models} == pytest.approx({"whole": 0.6, "part": 0.9})
    filled = rank([whole, part], missing=0, **options)
    assert {m.name: m.value for m in filled.models} == pytest.approx({"whole": 0.6, "part": 0.6})
    for refused in ({}, {"aggregate": "I"}, {"scheme": "test-then-rank"}):
        with pytest.raises(DifferentImagesError, match="case c"):
            rank([whole, part], **refused)


def test_groups_are_resampled_whole():
    rows = table(2, 12, step=0.0)
    groups = ["p", "q", "r"] * 4
    for scheme in SCHEMES:
        found = rank(runs_of(rows), scheme=scheme, groups=groups, draws=30)
        assert (found.unit, found.units) == ("group", 3)
    # The tests take images as independent, so that they show nothing about other groups.
    assert found.models[0].rank_low is None


def test_medians_have_no_bootstrap():
    runs = runs_of([[0.1, 0.5, 0.9], [0.4, 0.6, 0.7]])
    for scheme in SCHEMES[:2]:
        with pytest.raises(ValueError, match=r"medians.*draws=0"):
            rank(runs, scheme=scheme, aggregate="median")
    found = rank(runs, aggregate="median", draws=0)
    assert [(m.name, m.value) for m in found.models] == [("m1", 0.6), ("m0", 0.5)]
    (reason,) = found.sentences()
    assert "median" in reason


@pytest.mark.needs("measures.surfaces")
def test_scores_that_are_medians_have_no_bootstrap():
    truth = np.zeros((6, 20, 20), int)
    truth[:, 5:12, 5:12] = 1
    runs = [
        segiou.score(truth, np.roll(truth, far, 1), labels=2, surfaces=True, name=f"by {far}")
        for far in (3, 1, 2)
    ]
    with pytest.raises(ValueError, match=r"medians.*draws=0"):
        rank(runs, by="hausdorff_95")
    found = rank(runs, by="hausdorff_95", draws=0)
    assert [m.name for m in found.models] == ["by 1", "by 2", "by 3"]
    three = segiou.compare(*runs, metric="hausdorff_95", resamples=50, permutations=20)
    assert three.method == "percentile"
    assert math.isnan(three.ranking[0].best)
    assert three.ranking[0].rank_low is None
    assert any("median" in sentence for sentence in three.stability.sentences())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scheme": "best"}, ValueError, "scheme"),
        ({"by": "iuo"}, ValueError, "unknown score 'iuo'"),
        ({"by": "iou:spleen"}, ValueError, "choose from liver"),
        ({"by": "cohen_kappa:liver"}, ValueError, "no values of classes"),
        ({"by": []}, ValueError, "at least one"),
        ({"by": 3}, TypeError, "by"),
        ({"aggregate": "sum"}, ValueError, "aggregate"),
        ({"aggregate": "D", "scheme": "test-then-rank"}, ValueError, "does not apply"),
        ({"aggregate": "C", "scheme": "rank-then-aggregate"}, ValueError, "does not apply"),
        ({"draws": -1}, ValueError, "draws"),
        ({"draws": 1.5}, TypeError, "draws"),
        ({"level": 1}, ValueError, "level"),
        ({"alpha": "x"}, TypeError, "alpha"),
        ({"names": ["a"]}, ValueError, "2 distinct names"),
        ({"missing": 0, "scheme": "rank-then-aggregate"}, ValueError, "rank last"),
        ({"ties": "first", "scheme": "rank-then-aggregate"}, ValueError, "ties"),
        ({"ties": "first"}, ValueError, "ties"),
        ({"missing": 0}, ValueError, "aggregate='I'"),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        rank(runs_of(table(2)), **options)


def test_refused_runs():
    one = run([0.5], "a")
    with pytest.raises(ValueError, match="at least two runs, got 1"):
        rank([one])
    with pytest.raises(ValueError, match="at least 2 images, got 1"):
        rank([one, run([0.6], "b")])
    with pytest.raises(TypeError, match="expects runs, got str"):
        rank(["a.run", "b.run"])
    with pytest.raises(TypeError, match="runs"):
        rank("a.run")
    with pytest.raises(ValueError, match="no image has a score"):
        rank([run([NAN, NAN], "a"), run([NAN, NAN], "b")])


def test_text_has_every_model_and_the_stability():
    found = rank(runs_of(table()), draws=100)
    assert isinstance(found, Ranking)
    words = str(found)
    for model in found.models:
        assert f"{100 * model.value:.2f} %" in words
    assert f"{found.tau:.2f}" in words
    assert "P(best)" in words
    assert len(max(found.to_text(40).splitlines(), key=len)) <= 40


def test_a_comparison_of_three_holds_the_ranking():
    runs = runs_of(table())
    found = segiou.compare(*runs, resamples=200)
    assert found.stability.models == found.ranking
    alone = rank(runs, by="iou", draws=200)
    assert replace(found.stability, by=alone.by, aggregate=alone.aggregate) == alone
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["stability"]["false_claim"] == found.stability.false_claim
    assert data["ranking"][0]["rank"] == 1
    assert segiou.compare(*runs[:2], permutations=50).stability is None


@pytest.mark.gate
@pytest.mark.needs("measures.surfaces")
def test_rankings_and_comparisons_of_infinite_distances_have_the_same_units():
    disc = np.zeros((24, 24), int)
    disc[8:16, 8:16] = 1
    runs = {}
    for seed, name in enumerate("abc"):
        walk = np.cumsum(np.random.default_rng(seed).normal(size=60))
        preds = [np.roll(disc, far, 1) for far in np.abs(walk).round().clip(0, 7).astype(int)]
        if name == "b":
            preds[7] = 0 * disc  # missed, so infinitely far
        ids = [f"vid_{i:04d}" for i in range(60)]
        labels = ["back", "disc"]
        runs[name] = segiou.score([disc] * 60, preds, labels=labels, surfaces=True, ids=ids)
    compared = segiou.compare(*runs.values(), metric="hausdorff_95", names=[*runs])
    ranked = rank(runs, by="hausdorff_95", aggregate="median", draws=0)
    assert ranked.cases[1][7] == np.inf
    assert (ranked.unit, ranked.units) == (compared.unit, compared.units) == ("batch", 6)
    assert ranked.dependence == compared.dependence


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize(
    "by", ["dice", "dice:disc", "cohen_kappa", "hausdorff_95:disc", "average_surface_distance"]
)
def test_intervals_of_means_over_images_are_those_of_the_score(by):
    rng = np.random.default_rng(3)
    disc = np.zeros((24, 24), int)
    disc[8:16, 8:16] = 1
    moved = (
        [np.roll(disc, rng.integers(far), 1) * (rng.random(disc.shape) < 0.95) for _ in range(12)]
        for far in (3, 6)
    )
    options = {"labels": ["back", "disc"], "surfaces": True}
    runs = {
        n: segiou.score([disc] * 12, preds, **options) for n, preds in zip("ab", moved, strict=True)
    }
    for model in rank(runs, by=by, aggregate="I", groups="none").models:
        found = runs[model.name].intervals(by, aggregate="I", groups="none").overall
        assert (model.value, model.low, model.high) == pytest.approx(
            (found.value, found.low, found.high)
        )
