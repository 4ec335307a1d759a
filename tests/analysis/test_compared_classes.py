"""Comparisons and rankings where the models score different classes, or differ alike everywhere."""

import numpy as np
import pytest

from segiou import compare, rank, score
from segiou.report import render_comparison


def test_equal_differences_are_significant_in_the_text_and_in_the_numbers():
    # Every image has IoU 1 and 1 instead of 2/3 and 1/2, so the differences have no spread.
    truths, worse = [[[0, 0, 1, 1]]] * 8, [[[0, 0, 0, 1]]] * 8
    found = compare(
        *(score(truths, preds, labels=2) for preds in (worse, truths)), names=("old", "new")
    )
    (pair,) = found.pairs
    assert np.isnan([pair.overall.low, pair.overall.high]).all()
    assert pair.overall.p == 2 / 2**8
    assert found.outcome(pair).kind == "better"
    assert pair.overall.differs(0.95)
    assert [row.name for row in pair.different(0.95)] == ["1", "0"]
    assert found.method_text() == "95 % permutation intervals over 8 images"


def test_classes_outside_the_mean_are_not_left_out_of_it():
    # Both car and the excluded class are predicted by the first model only.
    truths, wrong, right = [[[0, 0, 0, 0]]] * 6, [[[0, 0, 1, 2]]] * 6, [[[0, 0, 0, 0]]] * 6
    labels = ["road", "car", "void"]
    runs = (score(truths, preds, labels=labels, exclude="void") for preds in (wrong, right))
    found = compare(*runs, names=("old", "new"))
    assert found.uncommon_classes == ("car",)
    assert found.protocol_scores == (0.25, 1.0)
    assert "car has a score for old only" in " ".join(found.sentences())


def test_kappa_has_one_form_in_every_text():
    """Agreement of 3/4 with equal shares of two classes: kappa 0.5; all correct: 1."""
    truths, worse = [[[0, 0, 1, 1]]] * 6, [[[0, 0, 1, 0]], [[0, 1, 1, 1]]] * 3
    runs = [score(truths, preds, labels=2) for preds in (worse, truths)]
    found = compare(*runs, names=("old", "new"), metric="kappa")
    assert "new scores higher than old: Cohen's kappa 1.0000 vs 0.5000." in found.to_text()
    assert "new − old: +0.5000" in found.to_text()
    known = runs[0].report().scores_by_name["cohen_kappa"]
    assert (known.value, known.unit, found.score_unit) == (0.5, "coefficient", "coefficient")


@pytest.mark.gate
def test_every_output_states_the_classes_that_the_mean_excludes():
    """Of five classes, the mean covers road and car, and three are tested."""
    rng = np.random.default_rng(4)
    truths = rng.integers(0, 3, (12, 9, 9))
    good = np.where(rng.random(truths.shape) < 0.1, (truths + 1) % 3, truths)
    bad = np.where(rng.random(truths.shape) < 0.5, (truths + 1) % 3, truths)
    good[:, 0, 0] = 3
    labels = ["ground", "road", "car", "sign", "sky"]
    runs = [score(truths, preds, labels=labels, exclude="ground") for preds in (bad, good)]
    found = compare(*runs, names=("old", "new"))
    assert found.excluded_classes == {"ground": "excluded", "sky": "absent"}
    assert found.uncommon_classes == ("sign",)
    assert found.to_dict()["excluded_classes"] == found.excluded_classes
    (pair,) = found.pairs
    road, car = pair.classes[1:3]
    assert pair.overall.b == pytest.approx((road.b + car.b) / 2)
    note = (
        "excluded from the mean: ground (excluded); sky (absent); sign (not scored for all models)"
    )
    page = render_comparison(found, *runs).replace("\N{NO-BREAK SPACE}", " ")
    texts = [found.to_text(width=200), found.to_markdown(), found.to_latex()]
    texts += [found.table().to_text(width=200), page.replace("Excluded from", "excluded from")]
    assert [note in text for text in texts] == [True] * len(texts)
    assert "significant: 3 of 3 tested" in texts[0]


@pytest.mark.parametrize("protocol", ["segiou", "sklearn"])
def test_specificity_of_a_class_that_one_model_never_predicts_is_not_compared(protocol):
    # The truth lacks class 2, so its specificity is 1 for the first model, but not in the mean.
    truths = [[[0, 0, 0, 0, 1, 1]]] * 6
    first = score(truths, [[[0, 0, 0, 1, 1, 1]]] * 6, labels=3)
    second = score(truths, [[[0, 0, 0, 1, 1, 2]]] * 6, labels=3)
    options = {"protocol": protocol, "names": ("first", "second")}
    found = compare(first, second, metric="specificity", **options)
    row = found.pairs[0].overall
    assert (row.a, row.b, row.p) == ((1 + 3 / 4) / 2, (1 + 3 / 4) / 2, 1.0)
    assert found.uncommon_classes == ("2",)
    ranking = rank([first, second], by="specificity", draws=0, **options)
    assert [model.value for model in ranking.models] == [7 / 8, 7 / 8]
    assert ranking.uncommon_classes == ("2",)


def test_ranks_by_several_scores_name_the_classes_that_means_exclude():
    truths = [[[0, 0, 0, 0, 1, 1]]] * 6
    first = score(truths, [[[0, 0, 0, 1, 1, 1]]] * 6, labels=3)
    second = score(truths, [[[0, 0, 0, 1, 1, 2]]] * 6, labels=3)
    found = rank([first, second], by=["pixel_accuracy", "iou"], draws=0)
    assert [(model.value, model.rank) for model in found.models] == [(1.0, 1), (2.0, 2)]
    assert found.uncommon_classes == ("2",)
    covered = "The means cover the classes that all models score, without class 2."
    assert found.sentences()[0] == covered


def test_permutations_of_specificity_cover_the_classes_that_both_models_always_have():
    # Each model predicts class 2, which the truth lacks, on one image. Without it, a permutation
    # has the difference |±1 ± 1 ± 1| / 12 / 2, which is as large as observed in 2 of 8.
    truths = [[[0, 0, 0, 0, 1, 1]]] * 3
    wrong = [[[1, 2, 2, 2, 1, 1]], [[1, 0, 0, 0, 1, 1]], [[1, 0, 0, 0, 1, 1]]]
    right = [[[0, 0, 0, 0, 1, 1]], [[2, 2, 2, 0, 1, 1]], [[0, 0, 0, 0, 1, 1]]]
    runs = [score(truths, preds, labels=3) for preds in (wrong, right)]
    row = compare(*runs, metric="specificity").pairs[0].overall
    assert row.b == pytest.approx((1 + 1 + 5 / 6) / 3)
    assert row.p == 2 / 8
