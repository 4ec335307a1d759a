from itertools import product

import numpy as np
import pytest
from scipy import stats

from segiou import Counts
from segiou.counting import ConfusionCounts
from segiou.inference import holm_adjust, permutation_test, statistic, units_of
from segiou.metrics import mean_iou


def two_models(images, classes=3, seed=0, lift=30):
    """Counts of two models on one truth; the second finds more."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(20, 200, (images, classes))
    found = []
    for extra in (0, lift):
        table = np.zeros((images, classes, classes + 1), np.int64)
        missed = np.minimum(rng.integers(0, 100, truth.shape) + lift - extra, truth)
        for c in range(classes):
            table[:, c, c] = truth[:, c] - missed[:, c]
            table[:, c, (c + 1) % classes] = missed[:, c]
        found.append(ConfusionCounts(table).counts)
    return tuple(found)


def statistics(a, b, groups=None, **options):
    units = units_of(len(a.tp), groups)
    return statistic(a, units=units, **options), statistic(b, units=units, **options)


def swapped(a, b, signs):
    pick = np.array(signs, dtype=bool)[:, None]
    fields = ("tp", "fp", "fn", "tn")
    one = Counts(*(np.where(pick, getattr(b, f), getattr(a, f)) for f in fields))
    other = Counts(*(np.where(pick, getattr(a, f), getattr(b, f)) for f in fields))
    return float(mean_iou(other.summed()) - mean_iou(one.summed()))


def test_exact_enumeration_is_every_swap():
    a, b = two_models(6)
    deltas = np.abs([swapped(a, b, signs) for signs in product([0, 1], repeat=6)])
    found = permutation_test(*statistics(a, b), 64, seed=0)
    assert (found.permutations, found.exact) == (64, True)
    assert found.p[0] == (deltas >= deltas[0] - 1e-12).sum() / 64


def test_scipy_gives_the_same_exact_p():
    a, b = two_models(5)

    def difference(x, y, axis):
        x, y = x.astype(int), y.astype(int)
        return score(y) - score(x)

    both = [np.concatenate([getattr(m, f) for m in (a, b)]) for f in ("tp", "fp", "fn", "tn")]

    def score(index):
        # One row per image; index + 5 is the other model's counts of the same image.
        return mean_iou(Counts(*(part[index].sum(-2) for part in both)))

    theirs = stats.permutation_test(
        (np.arange(5.0), np.arange(5.0) + 5),
        difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="two-sided",
    )
    ours = permutation_test(*statistics(a, b), 1000, seed=0)
    assert ours.exact
    # SciPy doubles the smaller tail, which is the same: swapping all turns the sign.
    assert ours.p[0] == pytest.approx(theirs.pvalue)


def test_random_swaps_come_near_the_exact_p():
    a, b = two_models(10, lift=8)
    exact = permutation_test(*statistics(a, b), 1024, seed=0)
    drawn = permutation_test(*statistics(a, b), 1023, seed=0)
    assert (exact.exact, drawn.exact) == (True, False)
    assert 0.02 < exact.p[0] < 0.98
    error = 5 * np.sqrt(exact.p * (1 - exact.p) / 1023) + 1e-3
    assert (np.abs(drawn.p - exact.p) < error).all()


def test_formula_of_random_swaps_counts_the_data_itself():
    a, b = two_models(40, lift=60)
    found = permutation_test(*statistics(a, b), 99, seed=0)
    assert found.p[0] == 1 / 100


def test_equal_models_have_p_one():
    a, _ = two_models(8)
    assert permutation_test(*statistics(a, a), 100, seed=0).p.tolist() == [1.0] * 4


def test_swaps_with_the_same_difference_are_ties():
    # Mean IoU 1/6 and 7/15. With the second image swapped it is 1/5 and 1/2: 3/10 again.
    a = ConfusionCounts([[[0, 3, 0], [0, 1, 0]], [[0, 1, 0], [0, 1, 0]]]).counts
    b = ConfusionCounts([[[2, 1, 0], [0, 1, 0]], [[1, 0, 0], [1, 0, 0]]]).counts
    assert permutation_test(*statistics(a, b), 4, seed=0).p[0] == 1.0


def test_groups_are_swapped_whole():
    a, b = two_models(6)
    grouped = permutation_test(*statistics(a, b, groups=list("xxyyzz")), 100, seed=0)
    deltas = np.abs([swapped(a, b, np.repeat(signs, 2)) for signs in product([0, 1], repeat=3)])
    assert grouped.permutations == 8
    assert grouped.p[0] == (deltas >= deltas[0] - 1e-12).sum() / 8


@pytest.mark.parametrize("aggregate", ["D", "I", "C"])
def test_order_of_the_models_does_not_matter(aggregate):
    a, b = statistics(*two_models(7), aggregate=aggregate)
    first, second = permutation_test(a, b, 500, 0), permutation_test(b, a, 500, 0)
    assert first.p == pytest.approx(second.p)


def test_no_value_no_p():
    zero = np.zeros((3, 1), np.int64)
    a = Counts(zero, zero, zero, zero + 5)
    b = Counts(zero, zero + 1, zero, zero + 4)
    assert np.isnan(permutation_test(*statistics(a, b), 100, 0).p).all()


def test_holm_by_hand():
    # 4 × .005, 3 × .01, 2 × .03, then .04 held up by the one before
    p = np.array([0.03, 0.005, 0.04, 0.01])
    assert holm_adjust(p) == pytest.approx([0.06, 0.02, 0.06, 0.03])
    assert holm_adjust(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]
    assert np.isnan(holm_adjust(np.array([np.nan]))).all()
    assert holm_adjust(np.array([])).size == 0


def test_holm_is_its_formula():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20) ** 3
    ranked = np.sort(p)
    by_hand = [min(1, max((20 - j) * ranked[j] for j in range(i + 1))) for i in range(20)]
    assert np.sort(holm_adjust(p)) == pytest.approx(by_hand)


def test_more_images_than_a_float_has_powers_of_two():
    a, b = two_models(1100, lift=1)
    found = permutation_test(*statistics(a, b), 10, seed=0)
    assert (found.permutations, found.exact) == (10, False)


def with_false_classes(counts, images):
    """Counts with classes that the truth lacks, each predicted in one pixel of one image."""
    false = np.zeros((len(counts.tp), len(images)), np.int64)
    false[images, range(len(images))] = 1
    more = {"tp": 0 * false, "fp": false, "fn": 0 * false, "tn": 0 * false}
    return Counts(*(np.hstack([getattr(counts, name), new]) for name, new in more.items()))


def test_falsely_predicted_classes_skip_no_permutation():
    a, b = two_models(6, seed=3, lift=8)
    plain = permutation_test(*statistics(a, b), 64, seed=0)
    false_a, false_b = with_false_classes(a, [0, 1, 2, 3]), with_false_classes(b, [1, 0, 3, 5])
    found = permutation_test(*statistics(false_a, false_b), 64, seed=0)
    # Both models have each false class in some permutations only, so the means leave them out.
    every = np.abs([swapped(a, b, signs) for signs in product((0, 1), repeat=6)])
    exact = (every >= every[0] - 1e-12).mean()
    assert found.p[0] == plain.p[0] == exact
    assert (found.permutations, found.exact) == (64, True)
    drawn = permutation_test(*statistics(false_a, false_b), 50, seed=0)
    assert drawn.p[0] == permutation_test(*statistics(a, b), 50, seed=0).p[0]
    assert drawn.permutations == 50


def test_permutations_without_a_difference_are_not_counted():
    # Only image 0 of the first and image 1 of the second have predictions, so both models have a
    # precision in the 8 of 16 permutations that exchange both images or none.
    hits = np.zeros((2, 4, 1), np.int64)
    hits[0, 0], hits[1, 1] = 30, 90
    tp, fp = hits, np.where(hits > 0, 100 - hits, 0)
    a, b = (Counts(tp[i], fp[i], 100 - tp[i], 200 - fp[i]) for i in (0, 1))
    found = permutation_test(*statistics(a, b, metric="precision"), 64, seed=0)
    assert (found.permutations, found.exact) == (8, True)
    assert found.p.tolist() == [1.0, 1.0]
