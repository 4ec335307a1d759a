"""Ranks from scores of cases; the tables named A1, A2 are those of challengeR's own tests."""

import numpy as np
import pytest

from segiou.analysis import rank_cases
from segiou.analysis.comparison.case_ranks import ranks_of, signed_rank_tests

NAN = float("nan")
FIRST = "aggregate-then-rank"
RANKS = "rank-then-aggregate"
TESTS = "test-then-rank"
FOUR = [[0.2] * 4, [1.0] * 4]
THREE = [[NAN, 0.2, 0.2, 0.2], [1.0] * 4]


@pytest.mark.parametrize(
    ("scores", "options", "values", "ranks"),
    [
        ([[0.6], [0.8]], {"better": "lower"}, [0.6, 0.8], [1, 2]),
        ([[0.6], [0.8]], {}, [0.6, 0.8], [2, 1]),
        ([[0.6], [0.6]], {"better": "lower"}, [0.6, 0.6], [1, 1]),
        ([[0.6], [0.6]], {"better": "lower", "ties": "max"}, [0.6, 0.6], [2, 2]),
        ([[0.6, 0.4], [0.8, 1.0]], {"better": "lower"}, [0.5, 0.9], [1, 2]),
        ([[0.6, 0.4], [0.8, 1.0]], {"better": "lower", "statistic": "median"}, [0.5, 0.9], [1, 2]),
        ([[0.6]], {"better": "lower"}, [0.6], [1]),
        ([[0.6], [0.8]], {"missing": 0}, [0.6, 0.8], [2, 1]),
        ([[NAN], [0.8]], {"missing": 0}, [0.0, 0.8], [2, 1]),
        ([[NAN], [0.8]], {"missing": -1}, [-1.0, 0.8], [2, 1]),
        ([[0.5], [0.4]], {"better": "lower"}, [0.5, 0.4], [2, 1]),
        ([[NAN], [0.4]], {"better": "lower", "missing": 100}, [100.0, 0.4], [2, 1]),
    ],
)
def test_aggregate_then_rank(scores, options, values, ranks):
    found = rank_cases(scores, scheme=FIRST, **options)
    assert found.values.tolist() == pytest.approx(values)
    assert found.ranks.tolist() == ranks


@pytest.mark.parametrize(
    ("scores", "options", "values", "ranks"),
    [
        ([[0.6], [0.8]], {"better": "lower"}, [1, 2], [1, 2]),
        ([[0.6], [0.8]], {}, [2, 1], [2, 1]),
        ([[0.6], [0.6]], {"better": "lower"}, [1, 1], [1, 1]),
        ([[0.6], [0.6]], {"better": "lower", "ties": "max"}, [2, 2], [2, 2]),
        ([[0.6, 0.4], [0.8, 1.0]], {"better": "lower"}, [1, 2], [1, 2]),
        ([[0.6, 0.4], [0.8, 1.0]], {"better": "lower", "statistic": "median"}, [1, 2], [1, 2]),
        ([[0.6]], {"better": "lower"}, [1], [1]),
        ([[NAN], [0.8]], {}, [2, 1], [2, 1]),
        ([[NAN], [0.4]], {"better": "lower"}, [2, 1], [2, 1]),
    ],
)
def test_rank_then_aggregate(scores, options, values, ranks):
    found = rank_cases(scores, scheme=RANKS, **options)
    assert found.values.tolist() == values
    assert found.ranks.tolist() == ranks


@pytest.mark.parametrize(
    ("scores", "options", "values", "ranks"),
    [
        ([[0.6], [0.8]], {}, [0, 0], [1, 1]),
        (FOUR, {}, [1, 0], [1, 2]),
        (FOUR, {"better": "higher"}, [0, 1], [2, 1]),
        ([[0.6, 0.6], [0.8, 0.8]], {"ties": "max"}, [0, 0], [2, 2]),
        (FOUR, {"missing": 0}, [1, 0], [1, 2]),
        (THREE, {"missing": 100.0}, [0, 0], [1, 1]),
        (THREE, {"missing": 0.0}, [1, 0], [1, 2]),
        (THREE, {"missing": "drop"}, [0, 0], [1, 1]),
        ([[0.6, 0.6], [NAN, 0.8]], {"missing": "drop"}, [0, 0], [1, 1]),
    ],
)
def test_test_then_rank(scores, options, values, ranks):
    found = rank_cases(scores, scheme=TESTS, **{"better": "lower"} | options)
    assert found.values.tolist() == values
    assert found.ranks.tolist() == ranks


def test_a_model_without_a_score_ranks_last():
    found = rank_cases([[NAN], [0.8]], missing="drop")
    assert np.isnan(found.values[0])
    assert found.ranks.tolist() == [2, 1]


def test_one_model_has_no_other_to_beat():
    assert np.isnan(rank_cases([[0.6]], scheme=TESTS).values[0])


@pytest.mark.parametrize(
    ("ties", "ranks"),
    [
        # Of 4, 4, 7, NaN, NaN; challengeR gives missing values the last rank plus one, or plus
        # the mean of their places.
        ("min", [1, 1, 3, 4, 4]),
        ("average", [1.5, 1.5, 3, 4.5, 4.5]),
        ("max", [2, 2, 3, 5, 5]),
    ],
)
def test_ties_and_missing_values(ties, ranks):
    assert ranks_of(np.array([4, 4, 7, NAN, NAN]), "lower", ties).tolist() == ranks


def test_signed_ranks_agree_with_scipy():
    wilcoxon = pytest.importorskip("scipy.stats").wilcoxon
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 9, (3, 40)) + np.array([[0], [1], [2]])  # with ties and zeros
    found = signed_rank_tests(scores, "higher")[0]
    for i, j in ((1, 0), (2, 0), (2, 1)):
        options = {"alternative": "greater", "correction": True, "method": "approx"}
        assert found[i, j] == pytest.approx(wilcoxon(scores[i], scores[j], **options).pvalue)


def test_a_weight_is_a_number_of_cases():
    rng = np.random.default_rng(1)
    scores, times = rng.random((2, 12)), rng.integers(0, 4, 12)
    repeated = signed_rank_tests(np.repeat(scores, times, axis=1), "lower")
    assert signed_rank_tests(scores, "lower", times[None]) == pytest.approx(repeated, nan_ok=True)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([[NAN], [0.8]], {}, "missing"),
        ([[NAN], [0.8]], {"scheme": TESTS}, "model 0 in case 0"),
        ([[0.6], [0.8]], {"missing": "na.rmx"}, "'drop'"),
        ([[0.6], [0.8]], {"missing": NAN}, "NaN"),
        ([[0.6], [0.8]], {"ties": "maxx"}, "'max'"),
        ([[0.6], [0.8]], {"scheme": RANKS, "missing": 0}, "rank last"),
        ([[0.6], [0.8]], {"scheme": "rank"}, "'rank-then-aggregate'"),
        ([[0.6], [0.8]], {"statistic": "meanx"}, "'median'"),
        ([[0.6], [0.8]], {"scheme": TESTS, "alpha": 2}, "alpha"),
        ([0.6, 0.8], {}, r"\(M, N\)"),
        ([[], []], {}, r"\(M, N\)"),
    ],
)
def test_refused(scores, options, message):
    with pytest.raises(ValueError, match=message):
        rank_cases(scores, **options)
