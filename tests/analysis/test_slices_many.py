"""Slices of very many images are summed at once, and have the same scores and limits."""

import numpy as np
import pytest

from segiou import score, slices
from segiou.analysis.slices import scored
from segiou.inference import statistics, units

IMAGES = 400


@pytest.fixture
def run():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, (IMAGES, 5, 6))
    wrong = rng.random(truth.shape) < rng.beta(2, 5, (IMAGES, 1, 1))
    return score(list(truth), list(np.where(wrong, (truth + 1) % 3, truth)), labels=3)


def metadata(run):
    rng = np.random.default_rng(4)
    sites = rng.choice([*"aaab"], IMAGES).tolist()
    times = rng.choice(["day", "night", ""], IMAGES).tolist()
    ages = rng.integers(0, 90, IMAGES).tolist()
    columns = zip(run.ids, sites, times, ages, strict=True)
    return {id: {"site": site, "time": time, "age": age} for id, site, time, age in columns}


def as_many(monkeypatch, number):
    for module in (units, statistics, scored):
        monkeypatch.setattr(module, "MOST_RESAMPLED", number)
    monkeypatch.setattr(units, "_DENSE", 0)
    monkeypatch.setattr(units, "_PART", 60)


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{}, {"against": "day"}, {"metric": "pixel_accuracy"}])
def test_groups_have_the_same_slices(monkeypatch, run, options):
    groups = [i // 7 for i in range(IMAGES)]
    few = slices(run, by=metadata(run), groups=groups, **options)
    as_many(monkeypatch, 399)
    many = slices(run, by=metadata(run), groups=groups, **options)
    assert [one.name for one in many] == [one.name for one in few]
    for one, expected in zip(many, few, strict=True):
        assert (one.images, one.units, one.classes) == (
            expected.images,
            expected.units,
            expected.classes,
        )
        numbers = [
            (
                each.score,
                each.low,
                each.high,
                each.gap.value,
                each.gap.low,
                each.gap.high,
                each.gap.p,
            )
            for each in (one, expected)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, nan_ok=True)
    assert [t.p for t in many.trends] == pytest.approx([t.p for t in few.trends])


def test_images_have_the_same_scores_and_about_the_same_limits(monkeypatch, run):
    few = slices(run, by=metadata(run), groups="none")
    as_many(monkeypatch, 200)
    many = slices(run, by=metadata(run), groups="none")
    for one, expected in zip(many, few, strict=True):
        assert (one.images, one.units) == (expected.images, expected.units)
        assert one.score == expected.score
        assert one.gap.value == pytest.approx(expected.gap.value, rel=1e-12)
        # 200 groups: the standard error has an error of 5 %.
        assert one.high - one.low == pytest.approx(expected.high - expected.low, rel=0.15)
        wide = expected.gap.high - expected.gap.low
        assert one.gap.high - one.gap.low == pytest.approx(wide, rel=0.15)
    # A slope over groups would be less precise, so trends are over images.
    assert [t.p for t in many.trends] == pytest.approx([t.p for t in few.trends])


def test_parts_without_an_image_of_a_slice(monkeypatch):
    truth = [np.array([[0, 0, 1, 1]])] * 12
    preds = [np.array([[0, int(i < 6), 1, 1]]) for i in range(12)]
    ids = [f"{'ab'[i // 6]}{i}" for i in range(12)]
    every = [dict(zip(ids, masks, strict=True)) for masks in (truth, preds)]
    run = score(*every, labels=2)
    whole = slices(run, by="(?P<site>[ab])", groups="none").slices
    monkeypatch.setattr(units, "_PART", 6)  # three images of two classes
    assert slices(run, by="(?P<site>[ab])", groups="none").slices == whole
    a, b = whole
    # IoU 6/12 and 12/18 of a. The IoU of b with one pixel changed is 12/13, so the limit of half
    # the mean is at the logit of 1/13 and 13/12 * sqrt(5/6) * 2.5706 above it.
    assert (a.score, b.score) == (pytest.approx(7 / 12), 1.0)
    assert b.low == pytest.approx(1 - 0.5 / (1 + 12 * np.exp(-2.5422)), abs=1e-4)
