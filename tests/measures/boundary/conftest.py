"""Bands written out pixel by pixel, and both routines that count them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import ndimage

from segiou.measures.boundary import image as boundary_image
from segiou.regions import surface_points


def iterated_erosion_band(mask, width):
    """What 3 x 3 erosion with zeros around the image, iterated, takes off a mask."""
    padded = np.pad(mask, 1)
    eroded = ndimage.binary_erosion(padded, np.ones((3, 3)), iterations=width)
    return (padded & ~eroded)[1:-1, 1:-1]


def naive_bands(truth, pred, valid, num_classes, width, border):
    """Pixel by pixel: counts of both inner bands and of both at once, per class."""
    height, breadth = truth.shape

    def near(codes, y, x):
        inside = y - width >= 0 and x - width >= 0 and y + width < height and x + width < breadth
        rows = slice(max(0, y - width), y + width + 1)
        cols = slice(max(0, x - width), x + width + 1)
        differs = ((codes[rows, cols] != codes[y, x]) & valid[rows, cols]).any()
        return differs or (border and not inside)

    counts = np.zeros((num_classes, 3), dtype=int)
    for y, x in np.argwhere(valid):
        in_truth, in_pred = near(truth, y, x), near(pred, y, x)
        counts[truth[y, x], 0] += in_truth
        counts[pred[y, x], 1] += in_pred
        counts[truth[y, x], 2] += in_truth and in_pred and truth[y, x] == pred[y, x]
    return counts


@pytest.fixture(scope="session")
def by_hand():
    """The functions above, for test modules, which do not import each other."""
    return SimpleNamespace(iterated_erosion=iterated_erosion_band, naive=naive_bands)


@pytest.fixture(params=["live", "numpy"])
def backend(request, monkeypatch):
    """Run a test with the compiled routines, where they were built, and with NumPy's."""
    if request.param == "numpy":
        if boundary_image.BACKEND == "numpy":
            pytest.skip("NumPy is what is live")
        monkeypatch.setattr(boundary_image, "count_bands", boundary_image.reference_bands)
        monkeypatch.setattr(surface_points, "_kernel", None)
        monkeypatch.setattr(surface_points, "warn_missing", lambda module: None)
    return request.param
