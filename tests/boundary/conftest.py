"""Masks that the tests of boundaries share, and definitions written out pixel by pixel."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import ndimage

from segiou.measures.boundary import image as boundary_image
from segiou.regions import surface_points

CAMVID = Path(__file__).parents[3] / "shared" / "data" / "camvid"


def blobs(seed, shape=(40, 50), num_classes=3, smooth=3.0):
    """A random label map of a few smooth regions."""
    return _blobs(seed, shape, num_classes, smooth).copy()


@cache
def _blobs(seed, shape, num_classes, smooth):
    rng = np.random.default_rng(seed)
    fields = [ndimage.gaussian_filter(rng.normal(size=shape), smooth) for _ in range(num_classes)]
    return np.argmax(fields, axis=0).astype(np.uint8)


def pair_of_blobs(seed, **kwargs):
    """A label map, and one much like it."""
    truth = blobs(seed, **kwargs)
    pred = np.roll(truth, (1, -2), (0, 1))
    noise = np.random.default_rng(seed + 1000).random(truth.shape) < 0.02
    return truth, np.where(noise, blobs(seed + 1, **kwargs), pred).astype(np.uint8)


def square(shape=(20, 20), top=5, left=5, size=8):
    """A square of class 1 in class 0."""
    mask = np.zeros(shape, dtype=np.uint8)
    mask[top : top + size, left : left + size] = 1
    return mask


def camvid_pairs(every):
    """Real truth and predictions, void among them."""
    from PIL import Image

    if not CAMVID.is_dir():
        pytest.skip(f"no CamVid masks at {CAMVID}")
    paths = sorted((CAMVID / "truth").glob("*.png"))[::every]
    return [
        (np.array(Image.open(p)), np.array(Image.open(CAMVID / "base" / p.name))) for p in paths
    ]


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
def masks():
    """The functions above, for test modules, which do not import each other."""
    return SimpleNamespace(
        blobs=blobs,
        pair_of_blobs=pair_of_blobs,
        square=square,
        camvid_pairs=camvid_pairs,
        iterated_erosion_band=iterated_erosion_band,
        naive_bands=naive_bands,
    )


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
