"""Overlays of one class: their layers, their legend and what they refuse."""

import numpy as np
import pytest

from segiou import plots

pytest.importorskip("matplotlib")


def test_overlay_counts_its_pixels():
    truth = np.array([[1, 1, 0, 9], [1, 0, 0, 9]])
    pred = np.array([[1, 0, 1, 1], [1, 0, 0, 0]])
    ax = plots.overlay(truth, pred, 1, ignore=[9])
    ax.figure.draw_without_rendering()  # warnings are errors here
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["TP 2 px", "FN 1 px", "FP 1 px"]
    covered = [image.get_array()[..., 3] > 0 for image in ax.images[1:]]
    np.testing.assert_array_equal(covered[0], [[1, 0, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(covered[2], [[0, 0, 1, 0], [0, 0, 0, 0]])


def test_overlay_takes_a_photograph_of_the_same_size():
    truth = np.eye(6, dtype=int)
    image = np.full((6, 6, 3), 200, np.uint8)
    ax = plots.overlay(truth, truth, 1, image=image)
    assert ax.images[0].get_array()[0, 0] == pytest.approx(0.25 + 0.75 * 200 / 255)
    with pytest.raises(ValueError, match="resize the image"):
        plots.overlay(truth, truth, 1, image=image[:3])
    with pytest.raises(ValueError, match="label images of equal shape"):
        plots.overlay(truth, truth[:3], 1)
    with pytest.raises(TypeError, match="image has dtype complex128"):
        plots.overlay(truth, truth, 1, image=truth * 1j)
    with pytest.raises(TypeError, match="pred has dtype complex128"):
        plots.overlay(truth, truth * 1j, 1)


@pytest.mark.parametrize("label", ["car", 1.5, None, True])
def test_an_overlay_of_what_is_no_value_is_refused(label):
    with pytest.raises(TypeError, match="label must be"):
        plots.overlay([[0, 1]], [[0, 1]], label)
