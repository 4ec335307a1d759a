"""Equal to surface-distance and MONAI, where their definitions are."""

import warnings

import numpy as np
import pytest

from segiou.boundary.boundary_image import measure_boundaries
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_scores import surface_dice

TOLERANCES = (0.0, 1.0, 2.5)


def outlines(spacing):
    return BoundaryOptions(
        (), trimaps=False, contours=("pixels", "elements"), tolerances=TOLERANCES, spacing=spacing
    )


def surface_distance_says(truth, pred, spacing, tolerances):
    peer = pytest.importorskip("surface_distance")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = peer.compute_surface_distances(truth, pred, spacing)
    return (
        [peer.compute_surface_dice_at_tolerance(found, t) for t in tolerances],
        peer.compute_average_surface_distance(found),
        [peer.compute_robust_hausdorff(found, p) for p in (100, 95, 50)],
    )


def check_surface_distance(truth, pred, num_classes, spacing):
    result = measure_boundaries(truth, pred, num_classes, options=outlines(spacing))
    exact = result.distances["elements"]
    checked = 0
    for c in range(num_classes):
        # Where a side is empty the peer uses names that NumPy 2 no longer has.
        if (truth == c).any() and (pred == c).any():
            dice, average, hausdorff = surface_distance_says(
                truth == c, pred == c, spacing, TOLERANCES
            )
            assert surface_dice(result.counts, "elements")[:, c] == pytest.approx(dice, rel=1e-12)
            assert exact.average()[:, c] == pytest.approx(average, rel=1e-12)
            ours = [exact.hausdorff(p)[c] for p in (100, 95, 50)]
            assert ours == pytest.approx(hausdorff, rel=1e-12)
            checked += 1
    assert checked


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (1.5, 0.7)])
@pytest.mark.parametrize("seed", range(3))
def test_equals_surface_distance(masks, seed, spacing):
    check_surface_distance(*masks.pair_of_blobs(seed), 3, spacing)


def test_camvid_equals_surface_distance(masks):
    truth, pred = masks.camvid_pairs(every=30)[0]
    check_surface_distance(np.where(truth == 11, 3, truth), pred, 11, (1.0, 1.0))


def one_hot(mask, num_classes):
    torch = pytest.importorskip("torch")
    return torch.as_tensor(np.stack([mask == c for c in range(num_classes)])[None])


def check_monai(truth, pred, num_classes, spacing):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = pytest.importorskip("monai.metrics")
        y, y_pred = one_hot(truth, num_classes), one_hot(pred, num_classes)
        common = {"include_background": True, "spacing": spacing}
        dice = [
            [
                peer.compute_surface_dice(
                    y_pred, y, [t] * num_classes, use_subvoxels=subvoxels, **common
                ).numpy()[0]
                for t in TOLERANCES
            ]
            for subvoxels in (False, True)
        ]
        hausdorff = peer.compute_hausdorff_distance(y_pred, y, **common).numpy()[0]
        robust = peer.compute_hausdorff_distance(y_pred, y, percentile=95, **common).numpy()[0]
        average = [
            peer.compute_average_surface_distance(a, b, **common).numpy()[0]
            for a, b in ((y, y_pred), (y_pred, y))
        ]
    result = measure_boundaries(truth, pred, num_classes, options=outlines(spacing))
    exact = result.distances["pixels"]
    # MONAI answers in float32, and NaN rather than infinity for some classes with an empty side.
    has = np.array([(truth == c).any() and (pred == c).any() for c in range(num_classes)])
    np.testing.assert_allclose(surface_dice(result.counts, "pixels"), dice[0], rtol=3e-7)
    np.testing.assert_allclose(surface_dice(result.counts, "elements"), dice[1], rtol=3e-7)
    np.testing.assert_allclose(exact.hausdorff()[has], hausdorff[has], rtol=3e-7)
    # Its percentiles interpolate between points at ranks that are float32 themselves.
    np.testing.assert_allclose(exact.hausdorff(95, "linear")[has], robust[has], rtol=1e-5)
    np.testing.assert_allclose(exact.average()[:, has], np.array(average)[:, has], rtol=1e-6)


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (1.5, 0.7)])
@pytest.mark.parametrize("seed", range(2))
def test_equals_monai(masks, seed, spacing):
    check_monai(*masks.pair_of_blobs(seed), 3, spacing)


def test_camvid_equals_monai(masks):
    truth, pred = (mask[100:260, 100:300] for mask in masks.camvid_pairs(every=30)[1])
    check_monai(np.where(truth == 11, 3, truth), pred, 11, (1.0, 1.0))
