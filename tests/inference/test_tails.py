"""The tail at which a limit is 0, by the distances of limits at their level."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from segiou.inference.limits import tail_of


@given(st.floats(0.01, 7), st.floats(0.1, 3), st.booleans())
def test_normal_limits_have_the_tail_of_the_normal_distribution(value, error, below):
    def reach(level):
        far = stats.norm.ppf((1 + level) / 2) * error
        return (1000.0, far) if below else (far, 1000.0)

    expected = stats.norm.sf(value / error)
    found = tail_of(reach, -value if below else value)
    # Levels near 1 are rounded; 15 decades are the smallest p.
    assert found == pytest.approx(max(expected, 5e-16), rel=0.01 if expected < 1e-10 else 1e-6)


def test_limits_in_steps_have_the_tail_of_their_step():
    # As of 100 permutations: the limit passes 0 at the level .93.
    sizes = np.linspace(0, 2, 100)

    def reach(level):
        place = min(math.floor(level * 100 + 1e-9), 99)
        return sizes[place], sizes[place]

    assert tail_of(reach, sizes[93] - 1e-9) == pytest.approx(0.035, rel=1e-6)


def test_extremes():
    assert tail_of(lambda _: (0.1, 0.1), 5.0) == 0.5e-15
    # The closest limits at level 0 are beyond 0, as of two groups of permutations.
    assert tail_of(lambda level: (1.0 + level, 1.0 + level), 0.9) == 0.5
    assert tail_of(lambda level: (level, level), 0.0) == 0.5
    assert math.isnan(tail_of(lambda _: (math.nan, math.nan), 0.5))
    assert math.isnan(tail_of(lambda level: (level if level < 0.5 else math.nan,) * 2, 0.9))
