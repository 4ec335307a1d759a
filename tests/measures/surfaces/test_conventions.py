"""Surfaces of label volumes: by hand, against each tool itself, and the shared golden numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from segiou.masks import Volume
from segiou.measures.surfaces import surface_scores
from segiou.regions.conventions import CONVENTIONS, SHARES

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "volumes"


def cube(shape, start, stop):
    volume = np.zeros(shape, np.uint8)
    volume[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = 1
    return volume


def scores_of(truth, pred, **settings):
    return surface_scores(truth, pred, **settings)[1]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_equal_labels_are_no_distance_apart(convention):
    truth = cube((6, 7, 8), (1, 2, 0), (4, 5, 8))
    assert scores_of(truth, truth, convention=convention) == {
        "hausdorff": 0.0,
        "hausdorff_95": 0.0,
        "average_surface_distance": 0.0,
    } | {key: {1.0: 1.0} for key in SHARES}


def test_two_voxels_by_hand():
    truth, pred = cube((1, 1, 9), (0, 0, 1), (1, 1, 2)), cube((1, 1, 9), (0, 0, 5), (1, 1, 6))
    for convention in ("medpy", "monai", "metricsreloaded"):
        found = scores_of(
            truth, pred, spacing=(1, 1, 0.5), tolerances=[1.9, 2], convention=convention
        )
        assert found == {
            "hausdorff": 2.0,
            "hausdorff_95": 2.0,
            "average_surface_distance": 2.0,
        } | {key: {1.9: 0.0, 2.0: 1.0} for key in SHARES}
    # Eight corners each: four are as far from the other voxel as its far side, four less by one.
    for convention in ("segiou", "surface-distance"):
        found = scores_of(
            truth, pred, spacing=(1, 1, 0.5), tolerances=[1.5, 2], convention=convention
        )
        assert found == {
            "hausdorff": 2.0,
            "hausdorff_95": 2.0,
            "average_surface_distance": 1.75,
        } | {key: {1.5: 0.5, 2.0: 1.0} for key in SHARES}


def test_a_shift_of_two_slices_is_a_distance_of_two():
    truth = cube((12, 12, 12), (2, 2, 2), (8, 8, 8))
    pred = np.roll(truth, 2, axis=0)
    for convention in CONVENTIONS:
        assert scores_of(truth, pred, convention=convention)["hausdorff"] == 2.0
        assert scores_of(truth, pred, spacing=3, convention=convention)["hausdorff"] == 6.0


def ball(spacing, radius, offset):
    axes = [np.arange(int(50 // step) + 1) * step - 25 for step in spacing]
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    return sum((a - o) ** 2 for a, o in zip(grid, offset, strict=True)) <= radius**2


def test_areas_depend_less_than_counts_on_the_shape_of_voxels():
    # A ball moved by 4: half of its surface, by area, lies within 2, whichever way it moved.
    shares = {"medpy": [], "segiou": []}
    for spacing in ((1, 1, 1), (3, 1, 1), (5, 0.7, 0.7)):
        for offset in ((4, 0, 0), (0, 4, 0)):
            pair = ball(spacing, 20, (0, 0, 0)), ball(spacing, 20, offset)
            for name, found in shares.items():
                scores = scores_of(*pair, spacing=spacing, tolerances=[2], convention=name)
                found.append(scores["surface_dice"][2.0])
    spread = {name: max(found) - min(found) for name, found in shares.items()}
    assert spread["segiou"] < spread["medpy"] / 2


def test_percentiles_of_three_conventions_by_hand():
    # Twenty voxels in a row; one of the prediction's lies ten away from them.
    truth = np.zeros((1, 40), np.uint8)
    truth[0, :20] = 1
    pred = truth.copy()
    pred[0, 29] = 1
    found = {
        name: scores_of(truth, pred, convention=name)["hausdorff_95"]
        for name in ("medpy", "monai", "metricsreloaded")
    }
    # Of 41 distances 40 are 0, of 21 in one direction 20.
    assert found == {"medpy": 0.0, "monai": 0.0, "metricsreloaded": 0.0}
    pred[0, 30] = 1
    # Of 22 distances in one direction the places 0.95 * 21 = 19.95: between 0 and 10.
    assert scores_of(truth, pred, convention="monai")["hausdorff_95"] == pytest.approx(9.5)
    assert scores_of(truth, pred, convention="medpy")["hausdorff_95"] == 0.0


def test_labels_are_measured_one_by_one():
    truth, pred = np.zeros((2, 5, 5), np.int16), np.zeros((2, 5, 5), np.int16)
    truth[0, 1:3, 1:3], pred[0, 1:3, 1:3] = 7, 7
    truth[1, 4, 4], pred[1, 0, 0] = -3, 300
    found = surface_scores(truth, pred)
    assert list(found) == [-3, 7, 300]
    assert found[7]["hausdorff"] == 0.0
    assert found[-3]["hausdorff"] == found[300]["hausdorff"] == math.inf
    assert found[-3]["surface_dice"] == {1.0: 0.0}
    assert list(surface_scores(truth, pred, labels=[7, 8])) == [7, 8]
    assert math.isnan(surface_scores(truth, pred, labels=[8])[8]["hausdorff_95"])


@pytest.mark.parametrize("dtype", ["bool", "int8", ">i2", "uint16", "int64", ">u4"])
def test_labels_of_any_type(dtype):
    truth = cube((4, 5), (1, 1), (3, 3)).astype(dtype)
    expected = {1}
    if dtype != "bool":
        truth[0, 0], truth[3, 4] = np.iinfo(dtype).max, np.iinfo(dtype).min
        expected |= {int(truth[0, 0]), int(truth[3, 4])} - {0}
    assert set(surface_scores(truth, truth[::-1][::-1])) == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_left_alone(order):
    truth = np.array(cube((5, 6, 7), (1, 1, 1), (4, 4, 4)), order=order)
    truth.flags.writeable = False
    assert scores_of(truth, truth)["hausdorff"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "settings", "what"),
    [
        (
            (np.zeros((2, 3), int), np.zeros((2, 4), int)),
            {},
            r"shape \(2, 3\) but pred has \(2, 4\)",
        ),
        ((np.zeros(3, int), np.zeros(3, int)), {}, r"got shape \(3,\)"),
        ((np.zeros((2, 2), int),) * 2, {"spacing": (1, 0)}, "spacing must be one number"),
        ((np.zeros((2, 2), int),) * 2, {"tolerances": [-1]}, "tolerances must not be negative"),
        ((np.zeros((2, 2), int),) * 2, {"convention": "other"}, "convention"),
    ],
)
def test_what_is_refused(arguments, settings, what):
    with pytest.raises(ValueError, match=what):
        surface_scores(*arguments, **settings)


def test_what_is_no_series_is_named():
    both = (np.zeros((2, 2), int),) * 2
    with pytest.raises(TypeError, match="tolerances must be a sequence of distances, not int"):
        surface_scores(*both, tolerances=1)
    with pytest.raises(TypeError, match="labels must be a sequence of labels, not int"):
        surface_scores(*both, labels=2)
    with pytest.raises(TypeError, match="for a Volume, pass its values"):
        surface_scores(Volume(both[0], (1.0, 1.0), np.eye(4), "RA"), both[1])


def test_regions_have_names():
    pred = cube((6, 6, 6), (1, 1, 1), (5, 5, 5))
    truth = pred + cube((6, 6, 6), (2, 2, 2), (4, 4, 4))
    found = surface_scores(truth, pred, labels={"whole": (1, 2), "core": 2})
    assert {name: scores["hausdorff"] for name, scores in found.items()} == {
        "whole": 0,
        "core": math.inf,
    }


def approx(values):
    return pytest.approx(values, rel=1e-12, abs=1e-12)


def golden():
    """Name, both volumes, spacing, label and what the tools give."""
    expected = json.loads((SHARED / "surfaces.json").read_text())
    for ndim in (2, 3):
        folder = SHARED / "mesh"
        names = [folder / f"example_{ndim}d_{side}_mask.nii.gz" for side in ("ref", "pred")]
        yield (*names, 1, expected[f"MeshMetrics_example_{ndim}d"])
    names = [SHARED / "spine" / f"{side}.nii.gz" for side in ("ref", "pred")]
    for label, values in expected["spine"].items():
        yield (*names, int(label), values)


def test_golden_numbers():
    nibabel = pytest.importorskip("nibabel", reason="needs nibabel")
    if not SHARED.is_dir():
        pytest.skip("the shared volumes are not beside this checkout")
    for truth, pred, label, expected in golden():
        image = nibabel.load(truth)
        values = [np.asarray(nibabel.load(path).dataobj).squeeze() for path in (truth, pred)]
        spacing = [float(step) for step in image.header.get_zooms()][: values[0].ndim]
        found = {
            name: surface_scores(
                *(side.astype(np.int16) for side in values),
                labels=[label],
                spacing=spacing,
                tolerances=[1, 2],
                convention=name,
            )[label]
            for name in CONVENTIONS
        }
        medpy, theirs = expected["medpy"], expected["surface_distance"]
        assert found["medpy"]["hausdorff"] == medpy["hd"]
        assert found["medpy"]["hausdorff_95"] == approx(medpy["hd95"])
        assert found["medpy"]["average_surface_distance"] == approx(medpy["assd"])
        elements = found["surface-distance"]
        assert elements["hausdorff"] == theirs["hd"]
        assert elements["hausdorff_95"] == theirs["hd95"]
        both = theirs["asd_gt_to_pred"] + theirs["asd_pred_to_gt"]
        assert elements["average_surface_distance"] == approx(both / 2)
        for limit, share in elements["surface_dice"].items():
            assert share == approx(theirs[f"nsd@{limit}"])
        assert found["monai"]["hausdorff_95"] == approx(expected["monai_formula"]["hd95"])


@pytest.mark.few(6)
@pytest.mark.parametrize("scale", [1, 0.1, 1.1, 0.7, 1e6, float(np.float32(0.8))])
@pytest.mark.parametrize("spacing", [(1, 1, 1), (3, 1, 2), (1, 2)])
def test_a_scale_of_all_lengths_changes_no_score(scale, spacing):
    """Whole multiples of the spacing are within a tolerance or a width of that multiple."""
    noise = np.random.default_rng(2)
    shape = (9, 10, 12)[-len(spacing) :]
    truth, pred = (noise.random((2, *shape)) < 0.6).astype(np.uint8)
    truth[1:5], pred[2:6] = 1, 1

    def scores(factor):
        limits = {name: [factor * x for x in (1, 2, 3)] for name in ("tolerances", "widths")}
        found = scores_of(truth, pred, spacing=[factor * s for s in spacing], **limits)
        shares = [list(found.pop(name).values()) for name in (*SHARES, "boundary_iou")]
        return np.concatenate(shares), np.array(list(found.values())) / factor

    for found, wanted in zip(scores(scale), scores(1), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_three_tenths_are_within_three_times_a_tenth():
    truth = cube((20, 20), (4, 4), (12, 12))
    pred = np.roll(truth, 3, axis=0)
    assert scores_of(truth, pred, spacing=0.1, tolerances=[0.3])["surface_dice"] == {0.3: 1.0}
    # Other tools compare rounded numbers, and their conventions give what they give.
    peer = scores_of(truth, pred, spacing=0.1, tolerances=[0.3], convention="surface-distance")
    assert peer["surface_dice"][0.3] < 0.7


def test_a_band_has_a_width():
    with pytest.raises(ValueError, match="widths must be positive and finite, got"):
        surface_scores([[1]], [[1]], widths=[0])
