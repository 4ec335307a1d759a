"""Quantiles with repeated and infinite values."""

import numpy as np
import pytest

from segiou.metrics.quantile import quantile

INF = np.inf


@pytest.mark.parametrize(
    ("values", "times", "share", "expected"),
    [
        ([1, 2, 4], None, 0.5, 2),
        ([1, 2, 4, 8], None, 0.5, 3),
        ([1, 2, 4, 8], None, 0.25, 1.75),  # place 0.75
        ([1, 2, 4, 8], None, 0.75, 5),  # place 2.25
        ([1, 2, 4, 8], None, 1, 8),
        ([1, 2, 4], [3, 0, 1], 0.5, 1),  # 1, 1, 1, 4
        ([1, 2, 4], [1, 0, 1], 0.5, 2.5),
        ([1, 2, 4], [0, 0, 0], 0.5, np.nan),
        ([1, INF], None, 0.5, INF),
        ([1, 2, INF], None, 0.5, 2),
        ([1, 2, INF, INF], None, 0.5, INF),
        ([INF, INF], None, 0.25, INF),
        ([], None, 0.5, np.nan),
    ],
)
def test_quantiles_by_hand(values, times, share, expected):
    often = None if times is None else np.array(times)
    found = quantile(np.array(values, dtype=float), share, often)
    assert found == pytest.approx(expected, nan_ok=True)


def test_each_row_of_times_has_its_own_quantile():
    times = np.array([[1, 1, 1], [0, 2, 0], [0, 0, 0], [2, 0, 2]])
    found = quantile(np.array([1.0, 2.0, 4.0]), 0.5, times)
    assert found == pytest.approx([2, 2, np.nan, 2.5], nan_ok=True)
