"""Overlap of maps of probabilities."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import Counts, metrics

maps = hnp.arrays(np.float64, (2, 3, 4), elements=st.floats(0, 1, width=32))


def test_values_by_hand():
    truth, pred = [0.2, 1.0, 0.0], [0.6, 0.5, 0.0]
    assert metrics.soft_iou(truth, pred) == pytest.approx(0.7 / 1.6)
    assert metrics.soft_dice(truth, pred) == pytest.approx(1.4 / 2.3)


@given(maps, maps)
def test_identities(truth, pred):
    soft = metrics.soft_iou(truth, pred, axis=(1, 2))
    np.testing.assert_array_equal(soft, metrics.soft_iou(pred, truth, axis=(1, 2)))
    np.testing.assert_allclose(
        metrics.soft_dice(truth, pred, axis=(1, 2)), 2 * soft / (1 + soft), rtol=1e-12
    )


def test_on_zeros_and_ones_it_is_iou():
    rng = np.random.default_rng(0)
    truth, pred = rng.random((2, 3, 50)) < 0.4
    counts = Counts(
        *(
            (a & b).sum(1)
            for a, b in ((truth, pred), (~truth, pred), (truth, ~pred), (~truth, ~pred))
        )
    )
    np.testing.assert_array_equal(metrics.soft_iou(truth, pred, axis=1), metrics.iou(counts))
    np.testing.assert_array_equal(metrics.soft_dice(truth, pred, axis=1), metrics.dice(counts))


def test_two_empty_maps_have_no_overlap_to_speak_of():
    assert np.isnan(metrics.soft_iou(np.zeros(3), np.zeros(3)))
    assert np.isnan(metrics.soft_dice([], []))


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan")])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(ValueError, match="pred must be probabilities in"):
        metrics.soft_iou([0.0, 1.0], [0.0, bad])
    with pytest.raises(ValueError, match="truth must be probabilities in"):
        metrics.soft_dice([0.0, bad], [0.0, 1.0])


def test_shapes_must_be_equal():
    with pytest.raises(ValueError, match=r"truth has shape \(2,\) but pred has \(3,\)"):
        metrics.soft_iou([0, 1], [0, 1, 1])
