import csv
import json
import pickle
from dataclasses import dataclass, field, replace
from io import StringIO

import numpy as np
import pytest
from scipy import stats

from segiou import Counts, Protocol, analysis, compare, confidence_intervals, rank, score
from segiou.cli.thresholds import not_worse
from segiou.counting import ConfusionCounts
from segiou.inference import DifferentImagesError
from segiou.metrics import image_means, iou, load_protocol, mean_iou


@dataclass
class Scored:
    """A run as a comparison sees it."""

    name: str
    counts: Counts
    ids: tuple[str, ...]
    class_names: tuple[str, ...] = ("road", "car", "pole")
    include: np.ndarray = field(default_factory=lambda: np.ones(3, bool))
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))


def models(images=30, lifts=(0, 20), seed=0, step=1):
    """Models on one truth; a larger lift finds more of every class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(50, 200, (images, 3))
    luck = rng.integers(0, 80, truth.shape)
    found = []
    for number, lift in enumerate(lifts):
        table = np.zeros((images, 3, 4), np.int64)
        missed = np.clip(luck + rng.integers(-20, 21, truth.shape) + 20 - lift, 0, truth)
        for c in range(3):
            table[:, c, c] = truth[:, c] - missed[:, c]
            table[:, c, (c + 1) % 3] = missed[:, c]
        ids = tuple(f"{step * i:03d}" for i in range(images))
        found.append(Scored(f"m{number}", ConfusionCounts(table).counts, ids))
    return found


FEW = {"resamples": 300, "permutations": 300}


def test_differences_are_second_minus_first():
    a, b = models()
    pair = compare(a, b, **FEW).pairs[0]
    ious = iou(a.counts.summed()), iou(b.counts.summed())
    assert pair.overall.delta == pytest.approx(ious[1].mean() - ious[0].mean())
    assert [c.delta for c in pair.classes] == pytest.approx((ious[1] - ious[0]).tolist())
    assert [c.name for c in pair.classes] == ["road", "car", "pole"]
    turned = compare(b, a, **FEW).pairs[0]
    assert turned.overall.delta == -pair.overall.delta
    assert turned.overall.low == pytest.approx(-pair.overall.high)


def test_interval_is_paired_and_so_narrower_than_the_models_own():
    a, b = models()
    found = compare(a, b, permutations=100)
    alone = confidence_intervals(a.counts).overall
    pair = found.pairs[0].overall
    assert pair.high - pair.low < 0.7 * (alone.high - alone.low)
    ranked = {r.name: r for r in found.ranking}["m0"]
    assert (ranked.low, ranked.high) == (alone.low, alone.high)


def test_a_clear_difference_and_none():
    a, b = models()
    clear = compare(a, b, **FEW).pairs[0]
    assert clear.overall.low > 0
    assert clear.overall.p == 1 / 301
    assert {c.name for c in clear.different(0.95)} == {"road", "car", "pole"}
    none = compare(*models(lifts=(10, 10), seed=3, step=5), **FEW).pairs[0]
    assert none.overall.low < 0 < none.overall.high
    assert none.overall.p > 0.05
    assert none.different(0.95) == ()


def test_order_of_the_images_does_not_matter():
    a, b = models()
    order = np.random.default_rng(1).permutation(30)
    mixed = Scored("m1", b.counts[order], tuple(b.ids[i] for i in order))
    assert compare(a, mixed, **FEW) == compare(a, b, **FEW)


def test_influential_are_leave_one_out():
    a, b = models(images=12)
    pair = compare(a, b, influential=3, **FEW).pairs[0]
    whole = float(mean_iou(b.counts.summed()) - mean_iou(a.counts.summed()))
    for image in (*pair.favours_a, *pair.favours_b):
        i = a.ids.index(image.id)
        kept = np.arange(12) != i
        without = mean_iou(b.counts[kept].summed()) - mean_iou(a.counts[kept].summed())
        assert image.effect == pytest.approx(whole - float(without))
        assert image.a == pytest.approx(float(image_means(a.counts)[i]))
    assert len(pair.favours_b) == 3
    effects = [m.effect for m in pair.favours_b]
    assert effects == sorted(effects, reverse=True)
    assert effects[-1] > 0
    assert all(m.effect < 0 for m in pair.favours_a)


@pytest.mark.parametrize("protocol", ["segiou", "ade20k", "monai"])
def test_an_image_has_one_mean_iou(protocol):
    # Class 2 is only predicted, and does not count in the image.
    truth, pred = [[[0, 0, 1, 1]], [[0, 1, 1, 2]]], [[[0, 1, 1, 2]], [[0, 0, 1, 2]]]
    runs = [score(truth, one, labels=3, ids=[*"ab"]) for one in (pred, truth)]
    pair = compare(*runs, protocol=protocol, **FEW).pairs[0]
    (image,) = (one for one in (*pair.favours_a, *pair.favours_b) if one.id == "a")
    row = next(csv.DictReader(StringIO(runs[0].to_csv(protocol=protocol))))
    assert image.a == float(row["mean_iou"]) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_ranking_of_several():
    found = compare(*models(lifts=(0, 25, 20), images=60), **FEW)
    assert [r.name for r in found.ranking] == ["m1", "m2", "m0"]
    assert sum(r.best for r in found.ranking) == pytest.approx(1.0)
    assert found.ranking[0].best > 0.9
    assert [(p.a, p.b) for p in found.pairs] == [("m0", "m1"), ("m0", "m2"), ("m1", "m2")]
    # That m1 is best is one claim, whose p is the larger one of its pairs.
    first, other, second = found.pairs
    claim = max(first.overall.p, second.overall.p)
    assert first.overall.p_holm == second.overall.p_holm == claim
    ordered = sorted(pair.overall.p for pair in found.pairs)
    place = ordered.index(other.overall.p)
    assert other.overall.p_holm == max((3 - i) * ordered[i] for i in range(place + 1))


def test_a_model_against_itself_shares_the_first_place():
    a, _ = models()
    found = compare(a, replace(a, name="twin"), **FEW)
    pair = found.pairs[0]
    assert (pair.overall.delta, pair.overall.p) == (0.0, 1.0)
    assert np.isnan(pair.overall.low)
    third = compare(a, replace(a, name="twin"), replace(a, name="third"), **FEW)
    assert [r.best for r in third.ranking] == pytest.approx([1 / 3] * 3)
    assert pair.power.needed is None
    assert found.sentences() == [
        f"m0 and twin are identical: mean IoU {100 * pair.overall.a:.2f} %.",
        "All counts are equal on 30 images, 3 classes.",
    ]
    assert "Classes" not in found.to_text()


def test_bca_and_other_metrics():
    a, b = models()
    plain, bca = (compare(a, b, method=m, **FEW).pairs[0].overall for m in ("percentile", "bca"))
    assert bca.delta == plain.delta
    assert bca.low != plain.low
    assert abs(bca.low - plain.low) < plain.standard_error
    accuracy = compare(a, b, metric="pixel_accuracy", **FEW).pairs[0]
    assert accuracy.classes == ()
    assert accuracy.overall.name == "pixel accuracy"
    per_class = compare(a, b, aggregate="C", metric="recall", **FEW)
    assert (per_class.aggregate, per_class.pairs[0].overall.name) == ("C", "mean recall")


def test_excluded_class_is_left_out_of_the_mean():
    a, b = models()
    include = np.array([True, True, False])
    found = compare(replace(a, include=include), replace(b, include=include), **FEW)
    expected = (iou(b.counts.summed()) - iou(a.counts.summed()))[:2].mean()
    assert found.pairs[0].overall.delta == pytest.approx(expected)


@pytest.mark.parametrize(
    "groups",
    [
        r"^\d\d",
        {f"{i:03d}": i // 10 for i in range(30)},
        [i // 10 for i in range(30)],
        lambda name: name[:2],
    ],
)
def test_groups_in_every_form(groups):
    a, b = models()
    found = compare(a, b, groups=groups, **FEW)
    assert (found.unit, found.units, found.images) == ("group", 3, 30)
    assert found.pairs[0].exact
    _, evidence = found.pair_sentences(found.pairs[0])
    # Permutations of three groups cannot be significant, so Student's t stands in.
    assert found.outcome(found.pairs[0]) == ("better", "m1", "m0")
    assert evidence.endswith("(3 groups; Student's t, because fewer than 6).")
    assert "paired t test and its interval" in " ".join(found.sentences())
    overall = found.pairs[0].overall
    assert overall.freedom == 2
    assert overall.p == pytest.approx(2 * stats.t.sf(overall.delta / overall.standard_error, 2))
    margin = stats.t.isf(0.025, 2) * overall.standard_error
    assert overall.low == pytest.approx(overall.delta - margin)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_bootstrap_does_not_change_p(method):
    for images in (3, 5, 8):
        several = models(images, lifts=(0, 10, 20))
        found, drawn = (
            compare(*several, groups="none", method=m, **FEW) for m in ("permutation", method)
        )
        for pair, other in zip(found.pairs, drawn.pairs, strict=True):
            for row, of_bootstrap in zip(pair.classes, other.classes, strict=True):
                assert of_bootstrap.p == row.p
            assert (other.overall.p, other.overall.p_holm) == (pair.overall.p, pair.overall.p_holm)
            assert found.outcome(pair) == drawn.outcome(other)
        is_students = "p of Student's t, because fewer than 6" in drawn.pair_sentences(other)[1]
        assert is_students == (images < 6)
        assert (
            "paired t test (permutations need 6 units) and" in str(drawn.sentences())
        ) == is_students


def test_two_groups_have_no_interval():
    a, b = models()
    found = compare(a, b, groups=["x", "y"] * 15, **FEW)
    _, evidence, caution = found.pair_sentences(found.pairs[0])
    assert found.outcome(found.pairs[0]).kind == "too few"
    assert "no interval, p = 0.50 (2 groups; p cannot be below 0.50 with" in evidence
    assert "at least 3 groups" in caution
    assert np.isnan([found.pairs[0].overall.low, found.ranking[0].low]).all()


@pytest.mark.parametrize("method", ["jackknife", "percentile"])
def test_two_images_show_no_difference(method):
    # m2 is far better than the others on both images.
    several = models(images=2, lifts=(0, 1, 90))
    found = compare(*several, method=method, groups="none", **FEW)
    for pair in found.pairs:
        assert found.outcome(pair).kind == "too few"
        assert found.pair_sentences(pair)[0].startswith("Not enough images to compare")
        assert "no interval, p = " in found.pair_sentences(pair)[1]
        assert not pair.overall.differs(0.95)
        assert np.isnan([pair.overall.low, *pair.bounds]).all()
    ranking = rank(several, groups="none")
    assert [model.rank_low for model in ranking.models] == [None] * 3
    assert np.isnan(ranking.false_claim)
    assert not_worse(compare(several[2], several[0], groups="none")).state == "undecided"
    three = compare(*models(images=3, lifts=(0, 90)), groups="none")
    assert not np.isnan(three.pairs[0].overall.low)


def test_few_permutations_limit_p():
    a, b = models()
    pair = compare(a, b, permutations=9, groups="none").pairs[0]
    assert (pair.permutations, pair.exact) == (9, False)
    assert not pair.overall.low > 0
    _, evidence = compare(a, b, permutations=9, groups="none").pair_sentences(pair)[:2]
    assert evidence.endswith("p = 0.10 (30 images; p cannot be below 0.10 with 9 permutations).")


def test_pairs_of_single_runs_beside_a_recipe_are_tested_over_their_images():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (4, 6, 6))

    def model(share):
        wrong = rng.random(truth.shape) < share
        return score(truth, np.where(wrong, 1 - truth, truth), labels=2)

    recipes = {"a": [model(0.3)], "b": [model(0.05)], "c": [model(0.2), model(0.2)]}
    found = compare(recipes, groups="none")
    single, *crossed = found.pairs
    # Permutations of 4 images have p ≥ 2/2⁴; recipes are compared by a t test of their own.
    assert single.exact and single.permutations == 16
    for pair in crossed:
        assert pair.permutations == 0
        assert "training runs crossed" in " ".join(found.sentences())
        assert pair.overall.low <= pair.overall.delta <= pair.overall.high


def test_text_gives_verdict_evidence_and_titled_sections():
    a, b = models(images=120, step=5)
    found = compare(a, b, **FEW)
    pair, text = found.pairs[0], found.to_text(80)
    score, lines = pair.overall, text.splitlines()
    ends = f"{100 * score.low:+.2f} to {100 * score.high:+.2f}"
    assert found.pair_sentences(pair) == [
        f"m1 scores higher than m0: mean IoU {100 * score.b:.2f} % vs {100 * score.a:.2f} %.",
        f"m1 − m0: {100 * score.delta:+.2f} points, 95 % interval {ends}, p = 0.0033 "
        "(20 batches of neighbouring images).",
    ]
    titles = ["Classes (significant: 3 of 3)", "Most influential images", "Method"]
    assert [line for line in lines if line in titles] == titles
    assert "m1 − m0" in next(line for line in lines if line.startswith("class "))
    row = next(line for line in lines if line.startswith("pole"))
    assert f"{100 * pair.classes[2].delta:+.2f} *" in row
    assert "these 20 batches detect a true difference of" in text.replace("\n", " ")
    assert all(len(line) <= 80 for line in lines)


def test_effects_that_round_to_0_are_not_shown():
    """One of 10 000 pixels is corrected in image a, two in b: +.002 and +.006 points."""
    truths = {id: np.repeat([[0, 1]], 5000, axis=1) for id in "abcdef"}
    wrong = {"a": 99, "b": 98}
    runs = [
        score(
            truths,
            {id: np.where(np.arange(10_000) < n.get(id, 100), 1, t) for id, t in truths.items()},
            labels=["road", "car"],
        )
        for n in ({}, wrong)
    ]
    found = compare(*runs)
    assert [image.id for image in found.pairs[0].favours_b] == ["b", "a"]
    assert len(found.pairs[0].favours_a) == 4
    table = found.to_text().split("shifts toward")[1].split("\n\n")[0]
    assert [row.split()[:3] for row in table.splitlines()[2:]] == [["b", "B", "+0.01"]]


def test_an_interval_that_is_not_adjusted_is_explained():
    found = compare(*models(), **FEW)
    pair, note = found.pairs[0], "so they may exclude 0 without a star."
    doubtful = tuple(replace(row, p=0.04, p_holm=0.12) for row in pair.classes)
    several = replace(found, pairs=(replace(pair, classes=doubtful),))
    assert note in several.to_text() and note not in found.to_text()


def test_no_difference_is_not_called_one():
    found = compare(*models(lifts=(10, 10), seed=3, step=5), **FEW)
    _, evidence, _ = found.pair_sentences(found.pairs[0])
    assert found.outcome(found.pairs[0]).kind == "similar"
    assert "95 % interval −" in evidence
    text = found.to_text()
    assert "Classes (significant: none)" in text
    assert "Largest contributions" not in text and "* Holm" not in text


def test_p_decides_and_says_so_if_a_bootstrap_disagrees():
    found = compare(*models(), method="percentile", **FEW)
    pair = found.pairs[0]
    assert pair.overall.low > 0
    doubtful = replace(pair, overall=replace(pair.overall, p_holm=0.2))
    _, evidence, *_ = found.pair_sentences(doubtful)
    assert found.outcome(doubtful).kind == "similar"
    assert evidence.endswith("The bootstrap interval and the test disagree; p decides.")


def test_a_limit_that_is_printed_as_0_is_explained():
    found = compare(*models(), **FEW)
    pair = found.pairs[0]
    close = replace(pair, overall=replace(pair.overall, low=0.00004))
    _, evidence, *_ = found.pair_sentences(close)
    assert "interval 0.00 to" in evidence
    assert evidence.endswith("The interval excludes 0, which its rounded limit hides.")


@pytest.mark.parametrize(
    ("images", "lifts", "kind"),
    [
        (5, (0, 60), "better"),
        (5, (0, 4), "similar"),
        (5, (0, 20, 22), "similar"),
        (8, (0, 20), "better"),
        (30, (0, 20, 40), "better"),
        (30, (0, 4, 8), "similar"),
    ],
)
def test_what_stands_on_one_screen_does_not_contradict(images, lifts, kind):
    found = compare(*models(images, lifts), permutations=400)
    pair, ranks = found.best_pair, found.stability
    outside = pair.overall.low > 0 or pair.overall.high < 0
    outcome = found.outcome(pair)
    assert outcome.kind == kind
    assert outcome.first == (found.ranking[0].name if kind == "better" else pair.a)
    assert outside == pair.overall.differs(0.95) == (kind == "better")
    assert (pair.overall.p_holm < 0.05) == outside
    if ranks is not None:
        assert ranks.models[0].name in (pair.a, pair.b)
        assert (ranks.false_claim < 0.025) == outside
        assert not outside or not ranks.is_resampled or ranks.models[0].best > 0.95
        text = " ".join(ranks.sentences())
        assert ("P(best) cannot be estimated" in text) == (images == 5)


@pytest.mark.gate
@pytest.mark.parametrize("images", [6, 12, 30])
def test_three_models_do_not_contradict_each_other(images):
    for seed in range(30):
        found = compare(*models(images, (0, 6, 9), seed), resamples=400, permutations=400)
        best, claim = found.ranking[0], found.stability.false_claim
        assert sum(model.best for model in found.ranking) == pytest.approx(1)
        ranks = {model.name: (model.rank_low, model.rank_high) for model in found.ranking}
        for pair in found.pairs:
            score, outcome = pair.overall, found.outcome(pair)
            winner, loser = (pair.b, pair.a) if score.delta > 0 else (pair.a, pair.b)
            outside = score.low > 0 or score.high < 0
            if best.name in (pair.a, pair.b):
                assert outside or claim >= 0.025
                assert not outside or claim < 0.025 or found.stability.rival != loser
            if outcome.kind == "better":
                assert outcome == ("better", winner, loser)
                assert outside and ranks[loser][0] > 1 and ranks[winner][1] < 3
                assert score.p_holm < 0.05
            elif outcome.kind == "similar":
                assert not outside


def test_a_score_in_a_unit_that_is_better_when_lower():
    found = replace(compare(*models(images=120), **FEW), better="lower", score_unit="mm")
    pair = found.pairs[0]
    values = {"a": 13.0, "b": 14.53, "delta": 1.53, "low": 0.4, "high": 2.6}
    pair = replace(pair, overall=replace(pair.overall, name="mean HD95", **values))
    verdict, evidence = found.pair_sentences(pair)
    assert verdict == ("m0 scores better than m1: mean HD95 13.00 mm vs 14.53 mm (1.53 mm lower).")
    assert evidence.startswith("m1 − m0: +1.53 mm, 95 % interval +0.40 to +2.60, p = ")
    image = replace(pair.favours_b[0], effect=0.5)
    page = replace(found, pairs=(replace(pair, favours_b=(image,)),)).to_text()
    assert "m1 − m0, mm" in page and "effect (mm)" in page


def test_equal_scores_of_different_counts_and_undefined_ones():
    found = compare(*models(), **FEW)
    pair = found.pairs[0]
    same = replace(pair, images_differing=7, overall=replace(pair.overall, delta=0.0))
    assert found.pair_sentences(same) == [
        f"m0 and m1 have the same mean IoU: {100 * pair.overall.a:.2f} %.",
        "Their counts differ in 7 of 30 images.",
    ]
    undefined = replace(pair, overall=replace(pair.overall, a=np.nan, delta=np.nan))
    assert found.pair_sentences(undefined) == [
        "Cannot compare m0 and m1: mean IoU of m0 is undefined."
    ]
    infinite = replace(pair.classes[0], name="car", a=np.inf, b=np.inf)
    overall = replace(pair.overall, name="mean HD", delta=np.nan)
    assert found.pair_sentences(replace(pair, overall=overall, classes=(infinite,))) == [
        "Cannot compare m0 and m1: mean HD is infinite for both, as it is for car."
    ]


def test_to_dict_is_strict_json():
    told = compare(*models(), **FEW).to_dict()
    again = json.loads(json.dumps(told, allow_nan=False))
    assert again["pairs"][0]["overall"]["name"] == "mean IoU"
    assert again["pairs"][0]["power"]["detectable"] > 0
    assert again["sentences"] == told["sentences"]


def test_class_that_one_model_only_invents_is_pointed_out():
    a, b = models()

    def without_pole(counts, invented):
        keep = np.array([1, 1, 0])
        fp = counts.fp * keep + np.array([0, 0, invented])
        return Counts(counts.tp * keep, fp, counts.fn * keep, counts.tn)

    a = replace(a, counts=without_pole(a.counts, 0))
    b = replace(b, counts=without_pole(b.counts, 1))
    found = compare(a, b, **FEW)
    assert found.pairs[0].defined_for_one == ("pole",)
    assert np.isnan(found.pairs[0].classes[2].p)
    overall = found.pairs[0].overall
    ious = [iou(x.counts.summed())[:2].mean() for x in (a, b)]
    assert (overall.a, overall.b) == pytest.approx(ious)
    assert found.uncommon_classes == ("pole",)
    assert found.protocol_scores == pytest.approx((ious[0], ious[1] * 2 / 3))
    said = found.pair_sentences(found.pairs[0])[2]
    assert "the classes that both models score: pole has a score for m1 only" in said
    assert "36.29 % (m0) and 33.88 % (m1)" in said


def test_different_images_are_refused_and_named():
    a, b = models()
    fewer = Scored("m1", b.counts[:26], (*b.ids[:25], "new"))
    with pytest.raises(
        DifferentImagesError, match="only in m0: 025, 026, 027 and 2 more; only in m1: new"
    ) as error:
        compare(a, fewer, **FEW)
    assert error.value.only == {"m0": ("025", "026", "027", "028", "029"), "m1": ("new",)}
    assert pickle.loads(pickle.dumps(error.value)).only == error.value.only


def test_different_truth_is_refused():
    a, b = models()
    tp = b.counts.tp.copy()
    tp[4, 1] += 7
    other = Counts(tp, b.counts.fp, b.counts.fn, b.counts.tn)
    with pytest.raises(ValueError, match=r"different ground truth: image 004 has .* pixels of car"):
        compare(a, replace(b, counts=other), **FEW)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ("000",) * 30}, "m1 has duplicate image ids: 000"),
        ({"class_names": ("road", "car", "sign")}, "only in m0: pole; only in m1: sign"),
        ({"class_names": ("car", "road", "pole")}, "in a different order"),
        ({"include": np.array([True, True, False])}, "from their means: pole"),
        ({"protocol": load_protocol("ade20k")}, "choose one with protocol="),
    ],
)
def test_runs_that_cannot_be_compared(change, message):
    a, b = models()
    with pytest.raises(ValueError, match=message):
        compare(a, replace(b, **change), **FEW)


def test_a_given_protocol_settles_it():
    a, b = models()
    found = compare(a, replace(b, protocol=load_protocol("ade20k")), protocol="segiou", **FEW)
    assert found.protocol == "segiou"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"permutations": 0}, ValueError, "permutations must be at least 1"),
        ({"resamples": "many"}, TypeError, "resamples must be an integer"),
        ({"level": 1.0}, ValueError, "level must be between"),
        ({"method": "t"}, ValueError, "method must be"),
        ({"names": ["same", "same"]}, ValueError, "names must be 2 distinct names"),
        ({"groups": {"000": 1}}, ValueError, "no group for 001, 002, 003 and 26 more"),
        ({"groups": "x"}, ValueError, "not found in"),
        ({"influential": -1}, ValueError, "influential must be at least 0"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        compare(*models(), **{**FEW, **options})


def test_names_given_made_and_told_apart():
    a, b = models()
    assert compare(replace(a, name=""), b, **FEW).names == ("A", "m1")
    assert compare(a, replace(b, name="m0"), **FEW).names == ("m0 (A)", "m0 (B)")
    alike = [a, replace(b, name="m0"), replace(b, name="m0 (A)")]
    assert compare(*alike, **FEW).names == ("m0 (A)", "m0 (B)", "m0 (A) (C)")
    assert compare(a, b, names=["old", "new"], **FEW).pairs[0].b == "new"


def test_camvid_base_is_ahead(camvid_tables):
    names = tuple(camvid_tables["class_names"])
    small, base = (
        Scored(m, ConfusionCounts(camvid_tables[m]).counts, tuple(camvid_tables["ids"]), names,
               np.ones(11, bool))
        for m in ("small", "base")
    )  # fmt: skip
    found = compare(small, base, resamples=2000, permutations=2000).pairs[0]
    assert found.overall.delta == pytest.approx(0.4679 - 0.3917, abs=1e-4)
    assert found.overall.low == pytest.approx(0.04165, abs=1e-5)
    assert {c.name for c in found.different(0.95)} == {"pedestrian", "pole"}


def test_several_models_are_ranked_and_share_one_method():
    truths = [[[0, 0, 1, 1]]] * 12
    mixed = [[[0, 1, 1, 1]], [[0, 0, 0, 1]]] * 6
    runs = [score(truths, preds, labels=2) for preds in (mixed, truths, [[[1, 0, 0, 0]]] * 12)]
    found = compare(*runs, names=("mixed", "perfect", "wrong"), resamples=200, permutations=200)
    text = found.to_text()
    ranking = text[: text.index("P(best): ")].splitlines()
    rows = {line.split()[0]: line.split() for line in ranking if line.strip()}
    assert rows["1"][1:3] == ["perfect", "100.00"] and rows["1"][-3:] == ["100.00", "%", "1"]
    assert rows["3"][1:3] == ["wrong", "12.50"] and rows["3"][-3:] == ["0.00", "%", "3"]
    assert "P(best): share of 200 resamples" in text
    titles = ("Ranking", "Test: ", "Scope: ", "Power (")
    assert [text.count(title) for title in titles] == [1, 1, 1, 2]
    assert found.pair_sentences(found.best_pair)[0] in text
    assert "The claim that perfect is best needs no adjustment" in " ".join(text.split())


def test_a_comparison_of_dice_says_that_it_is_pooled():
    a, b = models(images=12)
    pooled = "Score: Dice of the pixels pooled over all images, not the mean over images."
    assert pooled in " ".join(str(compare(a, b, metric="dice", **FEW)).split())
    assert "pooled over all images" not in str(compare(a, b, **FEW))


def test_repr_names_models_score_and_images():
    truths = [np.array([[0, 1]])] * 3
    runs = [score(truths, truths, labels=2) for _ in range(2)]
    found = compare(*runs, metric="dice", names=("a", "b"))
    assert repr(found) == "<Comparison of a and b by dice: 3 images>"
    assert repr(analysis.rank(dict(zip("ab", runs, strict=True)))) == (
        "<Ranking of a and b by mean_iou: 3 images>"
    )


def test_two_groups_have_no_p_of_recipes():
    rng = np.random.default_rng(0)
    truths = list(rng.integers(0, 2, (4, 6, 6)))
    noisy = [[np.where(rng.random((6, 6)) < share, 1 - t, t) for t in truths] for share in (0.4, 0)]
    recipes = {
        n: [score(truths, preds, labels=2)] * 2 for n, preds in zip("ab", noisy, strict=True)
    }
    found = compare(recipes, groups=list("xxyy"))
    assert found.outcome(found.pairs[0]).kind == "too few"
    assert np.isnan(found.pairs[0].overall.p)
    assert not found.pairs[0].overall.differs(0.95)


@pytest.mark.parametrize(("differing", "more"), [(1, ""), (2, ", and 1 more image;")])
def test_other_images_of_a_different_truth_are_counted(differing, more):
    masks = [[[0, 1]]] * 4
    others = [[[1, 1]]] * differing + masks[differing:]
    runs = [score(truths, masks, labels=2) for truths in (masks, others)]
    with pytest.raises(ValueError, match="different ground truth: image 0 has") as error:
        compare(*runs)
    assert more in str(error.value)
    assert ("more image" in str(error.value)) == (differing > 1)


def test_a_third_model_does_not_change_the_evidence_of_two():
    for images in (60, 120):
        a, b, c = models(images=images, lifts=(0, 4, 60))
        alone, together = compare(a, b, **FEW).pairs[0], compare(a, b, c, **FEW).pairs[0]
        assert together.power == alone.power
        assert (together.overall.p, together.classes) == (alone.overall.p, alone.classes)
        assert together.over["units"] == alone.over["units"]


def test_classes_that_no_test_can_show_are_stated_once():
    # Three classes over six images: the smallest p is 2/2⁶ · 3 = 0.09; seven images have 0.05.
    text = compare(*models(images=6, lifts=(0, 60)), groups="none").to_text()
    title = "Classes (significant: none, because p cannot be below 0.09 with fewer than 7 images)"
    assert text.count("cannot be below") == 1
    assert title in " ".join(text.split())
