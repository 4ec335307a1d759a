"""Raters and a model by hand, and against published differences."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.raters.scores import rater_agreement
from segiou.raters.votes import Votes

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "rules" / "raters"
RATERS = ("anna", "ben", "chen", "dora")


def agreement_of(cases, raters=("a", "b"), classes=("0", "1"), **options):
    """``cases`` has one list of masks per case, one mask or None per rater."""
    several = [[None if mask is None else np.array([mask]) for mask in case] for case in cases]
    votes = [Votes.of(case)[0] for case in several]
    ids = [f"case{i}" for i in range(len(cases))]
    return rater_agreement(votes, ids, raters, classes, **options)


def test_pairs_are_pooled_and_averaged():
    # Class 1 of case 0: 2 and 1 pixels, 1 shared; of case 1: 1 and 1, 1 shared.
    found = agreement_of([[[0, 1, 1], [0, 0, 1]], [[1, 0, 0], [1, 0, 0]]])
    (_, pair) = found.pairs
    assert pair.dice.value == 4 / 5
    assert pair.iou.value == 2 / 3
    assert pair.mean_dice.value == (2 / 3 + 1) / 2
    assert pair.mean_iou.value == (1 / 2 + 1) / 2
    assert pair.dice.low < 4 / 5 < pair.dice.high
    assert found.agreement.value == 5 / 6 and found.unanimity.value == 5 / 6
    assert found.matrix("dice", "1").tolist() == [[1, 4 / 5], [4 / 5, 1]]


def test_a_missing_case_is_named_and_left_out_of_the_pairs():
    found = agreement_of(
        [[[0, 1], [0, 1], [0, 1]], [[1, 1], [0, 1], None], [[0, 1], [0, 1], [1, 1]]],
        raters=("a", "b", "c"),
    )
    assert found.missing == {"c": ("case1",)}
    by_names = {(p.first, p.second): p for p in found.pairs if p.class_name == "1"}
    assert by_names["a", "b"].mean_dice.cases == 3
    assert by_names["a", "c"].mean_dice.cases == 2
    assert found.fleiss_kappa.cases == 2
    assert found.krippendorff_alpha.cases == 3


def test_a_class_that_nobody_has_is_undefined():
    found = agreement_of([[[0, 0], [0, 0]], [[0, 0], [0, 0]]])
    assert math.isnan(found.pairs[1].dice.value) and math.isnan(found.pairs[1].dice.low)
    assert math.isnan(found.fleiss_kappa.value)


def test_a_model_that_agrees_less():
    # Experts agree exactly; the model has one of two pixels: 1 − Dice is 1/3 in each case.
    case = [[0, 1, 1], [0, 1, 1], [0, 1, 1], [0, 0, 1]]
    found = agreement_of([case, case, case], raters=("a", "b", "c"), model="m")
    (_, row) = found.against_model
    assert row.difference.value == pytest.approx(1 / 3)
    assert row.expert.reason == "the experts do not differ"


def test_the_verdict_has_one_direction():
    # Experts share all of 100 pixels; the model has 50, 52 and 48 of them.
    whole = [1] * 100
    cases = [[whole, whole, [1] * n + [0] * (100 - n)] for n in (50, 52, 48)]
    found = agreement_of(cases, classes=("0", "aorta"), model="m")
    row = found.against_model[1]
    low, high = (f"{100 * end:.2f}" for end in (row.difference.low, row.difference.high))
    text = " ".join(found.to_text().split())
    assert (
        "aorta: m disagrees with these experts more than they disagree with each other. Its "
        f"Dice with them is {100 * row.difference.value:.2f} percentage points lower than their "
        f"Dice with each other (95 % interval {low} to {high} points lower, 3 cases)." in text
    )
    assert "+" not in text.partition("pairwise agreement")[0]


def test_the_verdict_of_an_interval_that_contains_0():
    # The model is closer to the experts in one case, and farther in the other.
    near = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]
    far = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    found = agreement_of([near, far], model="m")
    low, value, high = (
        100 * getattr(found.against_model[1].difference, n) for n in ("low", "value", "high")
    )
    assert low < 0 < value < high
    assert (
        f"is {value:.2f} percentage points lower than their Dice with each other (95 % interval "
        f"from {-low:.2f} points higher to {high:.2f} points lower, 2 cases)."
        in " ".join(found.to_text().split())
    )


def test_a_missing_test_is_explained_once():
    case = [[0, 1, 2, 2], [0, 1, 1, 2], [0, 0, 1, 2]]
    found = agreement_of([case, case, case], classes=("0", "1", "2"), model="m")
    assert [row.expert.reason for row in found.against_model] == [
        "it needs at least three experts"
    ] * 3
    text = " ".join(found.to_text().split())
    assert text.count("at least three experts") == text.count("as one more expert") == 1
    assert "no test as one more expert, because it needs at least three experts." in text
    assert found.to_html().count("at least three experts") == 1


def test_one_rater_is_refused():
    with pytest.raises(ValueError, match="at least two raters"):
        agreement_of([[[0, 1]], [[0, 1]]], raters=("a",))


@pytest.fixture(scope="module")
def golden():
    if not FOLDER.is_dir():
        pytest.skip("the masks are not beside this checkout")
    return json.loads((FOLDER / "raters.json").read_text(encoding="utf-8"))


def votes_of(names):
    found = []
    for case in range(6):
        masks = []
        for name in names:
            path = FOLDER / "masks" / name / f"case{case}.png"
            labels = np.array(Image.open(path)).astype(int) if path.exists() else None
            masks.append(None if labels is None else np.where(labels == 255, -1, labels))
        found.append(Votes.of(masks)[0])
    return found


def test_values_that_peers_computed(golden):
    ids, classes = [f"case{i}" for i in range(6)], ("0", "1", "2")
    votes = votes_of([*RATERS, "model"])
    found = rater_agreement(votes, ids, RATERS, classes, model="model")
    pooled = golden["pooled"]
    assert found.krippendorff_alpha.value == pytest.approx(pooled["krippendorff_alpha"], abs=1e-12)
    assert found.fleiss_kappa.value == pytest.approx(pooled["fleiss_kappa"], abs=1e-12)
    for pair in found.pairs:
        row = pooled["pairs"][f"{pair.first}|{pair.second}"]
        assert pair.dice.value == pytest.approx(row["dice"][int(pair.class_name)])
        assert pair.iou.value == pytest.approx(row["iou"][int(pair.class_name)])
    for row in found.against_model[1:]:
        expected = golden["segagree"][row.class_name]
        assert row.difference.value == pytest.approx(expected["estimate"], abs=1e-12)
        assert [row.difference.low, row.difference.high] == pytest.approx(expected["t95"])
        assert row.difference.cases == expected["cases"]
    assert found.missing == {"dora": ("case5",)}


def test_nodules_of_four_readers(golden):
    expected = json.loads((FOLDER / "lidc.json").read_text(encoding="utf-8"))
    votes, ids = [], []
    with np.load(FOLDER / "lidc.npz") as packed:
        for name in expected["cases"]:
            shape = packed[f"{name}_shape"]
            bits = np.unpackbits(packed[name])[: shape.prod()].reshape(shape)
            votes.append(Votes.of([*bits.astype(np.int64)])[0])
            ids.append(name)
    found = rater_agreement(votes, ids, ("0", "1", "2"), ("no", "nodule"), model="3")
    (_, row) = found.against_model
    assert row.difference.value == pytest.approx(expected["segagree"]["estimate"], abs=1e-9)
    assert [row.difference.low, row.difference.high] == pytest.approx(expected["segagree"]["t95"])
    assert row.expert.p == pytest.approx(expected["expert_test"]["p"])
    assert row.expert.t == pytest.approx(expected["expert_test"]["t"])
    assert row.expert.freedom == 2
    first = [expected["cases"][name]["dice"]["0|1"] for name in ids]
    assert found.pairs[1].mean_dice.value == pytest.approx(np.mean(first))


def test_order_of_pairs(golden):
    votes = votes_of([*RATERS, "model"])
    found = rater_agreement(votes, [*"abcdef"], RATERS, ("0", "1", "2"), model="model")
    names = list(dict.fromkeys((pair.first, pair.second) for pair in found.pairs))
    assert names == [*combinations(RATERS, 2), *((name, "model") for name in RATERS)]


def test_findings_with_rows_are_csv_and_data_frames():
    pytest.importorskip("pandas")
    truth = np.array([[[0, 0, 1, 1]], [[0, 1, 1, 1]], [[0, 0, 0, 1]]])
    run = segiou.score(truth, truth[::-1], labels=["road", "car"])
    raters = agreement_of([*zip(truth[:, 0], truth[::-1, 0], strict=True)])
    for found, index in ((run.intervals("iou"), ["name"]), (raters, [])):
        heads, *lines = found.to_csv().splitlines()
        frame = found.to_pandas()
        assert [*filter(None, frame.index.names)] == index
        assert heads.split(",") == [*index, *frame.columns] == [*next(iter(found.rows()))]
        assert len(lines) == len(frame)


def test_intervals_of_a_pair_are_those_of_a_report():
    # Mean Dice 83 % of three cases, one of them poor: Student's interval ended at 105 %.
    first = [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    second = [[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    (_, pair) = agreement_of([*zip(first, second, strict=True)]).pairs
    run = segiou.score(np.array(first)[:, None], np.array(second)[:, None], labels=2)
    for found, metric, aggregate in (
        (pair.dice, "dice", "D"),
        (pair.iou, "iou", "D"),
        (pair.mean_dice, "dice", "C"),
        (pair.mean_iou, "iou", "C"),
    ):
        classes = run.intervals(metric, aggregate=aggregate, groups="none").classes
        same = classes[1]
        assert (found.value, found.low, found.high) == (same.value, same.low, same.high)
        assert 0 <= found.low < found.value < found.high <= 1


def test_pairs_of_all_classes_are_one_table():
    found = agreement_of([[[0, 1, 1], [0, 0, 1]], [[1, 0, 0], [1, 0, 0]]])
    heads = [line for line in found.to_text(200).splitlines() if line.startswith("class ")]
    assert len(heads) == 1
    lines = [line.split()[:3] for line in found.to_text(200).splitlines()]
    assert ["0", "a,", "b"] in lines and ["1", "a,", "b"] in lines


@pytest.mark.parametrize("masks", [np.zeros((2, 3, 3), int), [[[0, 1]]], 1])
def test_masks_without_names_of_cases_are_an_error(masks):
    named = {"1": np.zeros((3, 3), int)}
    for raters in ({"anna": masks, "ben": named}, {"anna": named, "ben": masks}):
        with pytest.raises(TypeError, match="must be a folder, or a mapping of cases to arrays"):
            segiou.compare_raters(raters, labels=2)
    with pytest.raises(TypeError, match="the masks of 'model' must be a folder"):
        segiou.compare_raters({"anna": named, "ben": named}, labels=2, model=masks)
