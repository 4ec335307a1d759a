"""Scores of raters by hand, and as statsmodels, krippendorff and SimpleITK computed them."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segiou.raters.votes import (
    Votes,
    coincidences,
    consensus,
    fleiss_kappa,
    krippendorff_alpha,
    majority,
    pairwise_agreement,
    staple,
)

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "rules" / "raters"
CASES = [f"case{i}" for i in range(6)]
RATERS = ("anna", "ben", "chen", "dora")


def test_patterns_count_pixels():
    masks = [np.array([[0, 0, 1, 1]]), None, np.array([[0, 1, 1, -1]])]
    votes, place = Votes.of(masks)
    assert votes.has_case.tolist() == [True, False, True]
    found = dict(zip(map(tuple, votes.patterns.tolist()), votes.pixels.tolist(), strict=True))
    assert found == {(0, -1, 0): 1, (0, -1, 1): 1, (1, -1, 1): 1, (1, -1, -1): 1}
    assert votes.patterns[place].tolist() == [[[0, -1, 0], [0, -1, 1], [1, -1, 1], [1, -1, -1]]]
    # Pairs 0-1, 0-2 and 1-2; of class 1, raters 0 and 2 share one of the pixels that both marked.
    assert votes.overlaps(2)[1].tolist() == [[1, 2, 1], [1, 1, 2]]
    assert votes.overlaps(2)[0].sum() == 0


def test_agreement_of_three_raters_by_hand():
    # Two pixels: all vote 0; two vote 0 and one 1.
    table = np.array([[3, 0], [2, 1]])
    assert pairwise_agreement(table).tolist() == [1, 1 / 3]
    # Agreement 2/3, expected (5/6)² + (1/6)² = 26/36.
    assert fleiss_kappa(2 / 3, np.array([5 / 6, 1 / 6])) == pytest.approx(-0.2)
    # Coincidences: [[3 + 1, 1], [1, 0]]; 1 − 5·2 / (36 − 26).
    found = coincidences(table, np.array([1, 1]))
    assert found == pytest.approx(np.array([[4.0, 1.0], [1.0, 0.0]]))
    assert krippendorff_alpha(found) == pytest.approx(0.0)
    assert np.isnan(krippendorff_alpha(np.diag([6.0, 0.0])))
    # Six raters and two pixels of one class: votes weigh 1/5, which rounds.
    assert np.isnan(krippendorff_alpha(coincidences(np.array([[6, 0]]), np.array([2]))))
    assert majority(np.array([[2, 1], [1, 1], [0, 0]])).tolist() == [0, -1, -1]


@pytest.fixture
def masks_of():
    if not FOLDER.is_dir():
        pytest.skip("the masks are not beside this checkout")

    def read(case):
        paths = [FOLDER / "masks" / name / f"{case}.png" for name in RATERS]
        arrays = [np.array(Image.open(p)).astype(np.int64) if p.exists() else None for p in paths]
        return [None if a is None else np.where(a == 255, -1, a) for a in arrays]

    return read


def golden():
    return json.loads((FOLDER / "raters.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_cases_that_peers_scored(masks_of, case):
    expected, votes = golden()["cases"][case], Votes.of(masks_of(case))[0]
    table = votes.table(3)
    assert krippendorff_alpha(coincidences(table, votes.pixels)) == pytest.approx(
        expected["krippendorff_alpha"], abs=1e-12
    )
    full = table.sum(1) == votes.has_case.sum()
    number = votes.pixels[full].sum()
    agreement = votes.pixels[full] @ pairwise_agreement(table[full]) / number
    shares = votes.pixels[full] @ table[full] / (number * votes.has_case.sum())
    assert fleiss_kappa(agreement, shares) == pytest.approx(expected["fleiss_kappa"], abs=1e-12)
    assert number == expected["fleiss_pixels"]
    assert agreement == pytest.approx(expected["mean_pairwise_agreement"], abs=1e-12)
    for (a, b), counts in zip(combinations(RATERS, 2), votes.overlaps(3), strict=True):
        if f"{a}|{b}" in expected["pairs"]:
            both, first, second = counts.T
            with np.errstate(invalid="ignore"):
                dice = 2 * both / (first + second)
            golden_dice = np.array(expected["pairs"][f"{a}|{b}"]["dice"], float)
            assert dice == pytest.approx(golden_dice, nan_ok=True)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("index", [1, 2])
def test_staple_is_that_of_itk(masks_of, case, index):
    votes, place = Votes.of(masks_of(case))
    found = staple(votes, index)
    if not (votes.patterns == index).any():
        assert np.isnan(found.probability).all()
        return
    expected = golden()["cases"][case]["staple"][str(index)]
    assert found.sensitivity[votes.has_case] == pytest.approx(expected["sensitivity"], abs=1e-6)
    assert found.specificity[votes.has_case] == pytest.approx(expected["specificity"], abs=1e-6)
    image = np.load(FOLDER / "consensus" / f"{case}_staple_{index}.npy")
    assert found.probability[place] == pytest.approx(image, abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_majority_leaves_ties_undecided(masks_of, case):
    votes, place = Votes.of(masks_of(case))
    expected = np.array(Image.open(FOLDER / "consensus" / f"{case}_majority_ties_255.png"))
    found = majority(votes.table(3))[place]
    assert np.array_equal(np.where(found < 0, 255, found), expected)


@pytest.mark.parametrize("rule", ["majority", "staple"])
def test_two_raters_who_differ_as_often_either_way_are_undecided(rule):
    votes, place = Votes.of([np.array([[0, 0, 1, 1, 0, 1]]), np.array([[0, 0, 1, 1, 1, 0]])])
    assert consensus(votes, rule)[place].tolist() == [[0, 0, 1, 1, -1, -1]]


def test_staple_ends(monkeypatch):
    monkeypatch.setattr("segiou.raters.votes._MOST", 100)
    patterns = np.array([[1, 0], [0, 1], [1, 1]])
    votes = Votes(patterns, np.array([12, 31, 414532]), np.array([True, True]))
    found = staple(votes, 1)  # 204 620 iterations without a limit
    assert found.sensitivity == pytest.approx([1, 1], abs=1e-4)
    assert found.probability[[0, 2]] == pytest.approx([1, 1], abs=1e-3)
