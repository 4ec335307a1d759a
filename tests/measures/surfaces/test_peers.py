"""Surfaces of images equal those of surface-distance and MONAI, where their definitions are."""

import warnings

import numpy as np
import pytest

from segiou.measures.surfaces import SurfaceOptions, measure_surfaces

TOLERANCES = (0.0, 1.0, 2.5)
PERCENTILES = (100, 95, 50)


def measured(truth, pred, num_classes, spacing, convention):
    """Rows of the classes, class 0 among them."""
    options = SurfaceOptions(TOLERANCES, PERCENTILES, convention)
    return measure_surfaces(truth, pred, range(num_classes), spacing=spacing, options=options)


def percentiles_of(row):
    return [row[f"hausdorff_{percentile}"] for percentile in PERCENTILES]


def surface_distance_scores(truth, pred, spacing):
    peer = pytest.importorskip("surface_distance")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = peer.compute_surface_distances(truth, pred, spacing)
    return {
        "dice": [peer.compute_surface_dice_at_tolerance(found, t) for t in TOLERANCES],
        "overlap": [peer.compute_surface_overlap_at_tolerance(found, t) for t in TOLERANCES],
        "averages": peer.compute_average_surface_distance(found),
        "sizes": [found[f"surfel_areas_{side}"].sum() for side in ("gt", "pred")],
        "hausdorff": [peer.compute_robust_hausdorff(found, p) for p in PERCENTILES],
    }


def check_surface_distance(truth, pred, num_classes, spacing):
    ours, exact = (
        measured(truth, pred, num_classes, spacing, convention)
        for convention in ("surface-distance", "segiou")
    )
    checked = 0
    for c in range(num_classes):
        # If a side is empty, the peer uses names that NumPy 2 no longer has.
        if not ((truth == c).any() and (pred == c).any()):
            continue
        theirs = surface_distance_scores(truth == c, pred == c, spacing)
        averages, sizes = theirs["averages"], theirs["sizes"]
        for rows in (ours, exact):
            assert rows.numbers["sizes"][c] == pytest.approx(sizes, rel=1e-12)
            row = rows[c]
            assert [*row["surface_dice"].values()] == pytest.approx(theirs["dice"], rel=1e-12)
            # The shares of the two surfaces are its overlaps, truth first.
            overlaps = zip(*theirs["overlap"], strict=True)
            for name, overlap in zip(
                ("boundary_recall", "boundary_precision"), overlaps, strict=True
            ):
                assert [*row[name].values()] == pytest.approx(overlap, rel=1e-12)
            assert row["hausdorff"] == theirs["hausdorff"][0]
            assert percentiles_of(row) == pytest.approx(theirs["hausdorff"], rel=1e-12)
        # The peer has one average per direction; ours are their mean, and that of all elements.
        average = ours[c]["average_surface_distance"]
        assert average == pytest.approx(sum(averages) / 2, rel=1e-12)
        average = exact[c]["average_surface_distance"]
        assert average == pytest.approx(np.dot(averages, sizes) / sum(sizes), rel=1e-12)
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
        pair = one_hot(pred, num_classes), one_hot(truth, num_classes)
        common = {"include_background": True, "spacing": spacing}

        def shares(use_subvoxels):
            found = [
                peer.compute_surface_dice(
                    *pair, [tolerance] * num_classes, use_subvoxels=use_subvoxels, **common
                )
                for tolerance in TOLERANCES
            ]
            return np.array([values.numpy()[0] for values in found]).T

        of_pixels, of_elements = shares(use_subvoxels=False), shares(use_subvoxels=True)
        hausdorff = peer.compute_hausdorff_distance(*pair, **common).numpy()[0]
        robust = {
            p: peer.compute_hausdorff_distance(*pair, percentile=p, **common).numpy()[0]
            for p in PERCENTILES
        }
        average = peer.compute_average_surface_distance(*pair, symmetric=True, **common)
    rows = measured(truth, pred, num_classes, spacing, "monai")
    # MONAI returns float32, and NaN rather than infinity for some classes with an empty side.
    np.testing.assert_allclose(rows.shares("surface_dice"), of_pixels, rtol=3e-7)
    has = np.array([state == "found" for state in rows.states])
    assert has.any()
    values = {name: column[has] for name, column in rows.values().items()}
    np.testing.assert_allclose(values["hausdorff"], hausdorff[has], rtol=3e-7)
    for percentile in PERCENTILES:
        # Its percentiles interpolate between points at ranks that are float32 themselves.
        found = values[f"hausdorff_{percentile}"]
        np.testing.assert_allclose(found, robust[percentile][has], rtol=1e-5)
    # Both pool the distances of the two directions.
    ours, theirs = values["average_surface_distance"], average.numpy()[0][has]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    for convention in ("segiou", "surface-distance"):
        elements = measured(truth, pred, num_classes, spacing, convention)
        np.testing.assert_allclose(elements.shares("surface_dice"), of_elements, rtol=3e-7)


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (1.5, 0.7)])
@pytest.mark.parametrize("seed", range(2))
def test_equals_monai(masks, seed, spacing):
    check_monai(*masks.pair_of_blobs(seed), 3, spacing)


def test_camvid_equals_monai(masks):
    truth, pred = (mask[100:260, 100:300] for mask in masks.camvid_pairs(every=30)[1])
    check_monai(np.where(truth == 11, 3, truth), pred, 11, (1.0, 1.0))
