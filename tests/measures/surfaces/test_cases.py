"""Surface distances over cases: rows, what empty masks count, means that missing never improves."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import segiou
from segiou.measures.surfaces import SurfaceOptions, SurfaceRows, measure_surfaces, surface_scores
from segiou.regions.conventions import CONVENTIONS

EMPTY = np.zeros((8, 8, 8), np.uint8)
CUBE = EMPTY.copy()
CUBE[2:6, 2:6, 2:6] = 1
#: Names of the cases, and the truth and prediction of each.
CASES = {
    "same": (CUBE, CUBE),
    "shifted": (CUBE, np.roll(CUBE, 2, axis=0)),
    "missed": (CUBE, EMPTY),
    "false_positive": (EMPTY, CUBE),
    "absent": (EMPTY, EMPTY),
}


def measured(*names, **settings):
    return SurfaceRows.joined(
        measure_surfaces(*CASES[name], {"cube": 1}, case=name, **settings) for name in names
    )


def test_rows_name_the_state():
    surfaces = measured(*CASES)
    assert [(row["case"], row["state"]) for row in surfaces] == [
        ("same", "found"),
        ("shifted", "found"),
        ("missed", "missed"),
        ("false_positive", "false_positive"),
        ("absent", "absent"),
    ]
    assert [row["hausdorff_95"] for row in surfaces[:4]] == [0, 2, math.inf, math.inf]
    assert math.isnan(surfaces[4]["hausdorff_95"])


def test_summaries_leave_the_numbers_alone():
    surfaces = measured("missed")
    before = surfaces.numbers.tobytes()
    surfaces.summary()
    assert surfaces.numbers.tobytes() == before


def test_a_former_name_of_a_state_is_in_summaries():
    (cube,) = measured(*CASES).summary()
    assert cube["false_positive"] == 1


def test_a_summary_by_hand():
    (cube,) = measured(*CASES).summary()
    counts = {
        key: cube[key] for key in ("label", "cases", "found", "missed", "false_positive", "absent")
    }
    assert counts == {
        "label": "cube",
        "cases": 4,
        "found": 2,
        "missed": 1,
        "false_positive": 1,
        "absent": 1,
    }
    assert cube["hausdorff"] == {
        "mean": math.inf,
        "mean_cases": 4,
        "mean_of_found": 1.0,
        "median": math.inf,
        "quartiles": [1.5, math.inf],
    }
    assert cube["surface_dice_1"]["median"] < 0.5
    # The areas of one cube twice over, once within no distance, are 2 of 4 surfaces and more.
    whole, moved = (measured(name).numbers[0] for name in ("same", "shifted"))
    share = (whole["sizes"].sum() + moved["within"][0].sum()) / (3 * whole["sizes"].sum())
    assert cube["surface_dice_1"]["data_set"] == pytest.approx(share)
    recall = (whole["sizes"][0] + moved["within"][0, 0]) / (3 * whole["sizes"][0])
    assert cube["boundary_recall_1"]["data_set"] == pytest.approx(recall)
    precision = (whole["sizes"][0] + moved["within"][0, 1]) / (3 * whole["sizes"][0])
    f1 = 2 * precision * recall / (precision + recall)
    assert cube["boundary_f1_1"]["data_set"] == pytest.approx(f1)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_missing_more_never_improves_medians(convention):
    options = SurfaceOptions(convention=convention)
    names = ["same", "shifted", "shifted", "shifted"]
    for i in range(len(names)):
        missing = [*names[:i], *["missed"] * (len(names) - i)]
        better, worse = (measured(*n, options=options).summary()[0] for n in (names, missing))
        assert worse["missed"] == len(names) - i
        for low, high in ((better, worse),):
            assert low["hausdorff_95"]["median"] <= high["hausdorff_95"]["median"]
            assert low["hausdorff_95"]["quartiles"] <= high["hausdorff_95"]["quartiles"]
            assert low["surface_dice_1"]["median"] >= high["surface_dice_1"]["median"]


def test_the_mean_of_monai_skips_what_is_missed_and_says_so():
    options = SurfaceOptions(convention="monai")
    (cube,) = measured("shifted", "missed", options=options).summary()
    found = cube["hausdorff_95"]
    assert (found["mean"], found["mean_cases"], cube["cases"]) == (2.0, 1, 2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [((1, 2, 3), (3, 2, 1)), (("diagonal", math.nan, 374), (374, math.nan, math.hypot(8, 8, 8)))],
)
def test_what_an_empty_mask_counts_can_be_said(given, expected):
    options = SurfaceOptions(empty={"average_surface_distance": given})
    scores = measured("missed", "false_positive", "absent", options=options)
    np.testing.assert_equal([row["average_surface_distance"] for row in scores], expected)
    assert scores[0]["hausdorff"] == math.inf


def test_a_share_cannot_be_the_diagonal():
    rules = dict.fromkeys(("surface_dice", "dice", "iou"), ("diagonal",) * 3)
    (row,) = measured("missed", options=SurfaceOptions(empty=rules))
    assert math.isnan(row["surface_dice"][1])
    run = segiou.score([CUBE], [EMPTY], labels=2, surfaces=SurfaceOptions(empty=rules))
    (row,) = run.counts_of("surfaces")
    assert math.isnan(row["dice"])
    assert math.isnan(row["iou"])


def test_rows_of_the_same_options_are_joined():
    parts = measured("same", "missed"), measured("shifted")
    together = SurfaceRows.joined(parts)
    assert together == measured("same", "missed", "shifted")
    assert together[1:] != together
    assert together[-1] == parts[1][0]
    other = measured("same", options=SurfaceOptions((2.0,)))
    with pytest.raises(ValueError, match="different options"):
        SurfaceRows.joined([parts[0], other])
    with pytest.raises(ValueError, match="rows to join are missing"):
        SurfaceRows.joined([])
    with pytest.raises(IndexError):
        _ = together[3]


def test_a_structure_that_is_always_absent_has_no_scores():
    (cube,) = measured("absent", "absent").summary()
    shares = ("surface_dice_1", "boundary_precision_1", "boundary_recall_1", "boundary_f1_1")
    assert all(math.isnan(cube[name]["data_set"]) for name in shares)


def test_a_structure_is_seen_where_the_truth_has_it():
    truth, pred = zip(*CASES.values(), strict=True)
    labels = ["background", "cube"]
    run = segiou.score([*truth], [*pred], labels=labels, surfaces=True)
    seen = run.plan("surfaces").scores["surface_dice"].seen_in(run.parts("surfaces"))
    assert seen.tolist() == [[True], [True], [True], [False], [False]]


def test_tolerances_that_look_alike_cannot_share_a_name():
    near = 2 - 1e-9
    (row,) = measured("shifted", options=SurfaceOptions((near,), convention="monai"))
    assert row["surface_dice"][near] < 1
    with pytest.raises(ValueError, match="tolerances contains duplicates: 2, 2"):
        SurfaceOptions((near, 2))


def test_boundary_iou_by_hand():
    truth = np.zeros((1, 3, 12), np.uint8)
    truth[0, 1, 2:8] = 1  # each voxel has outside ones above and below, 3 mm away
    pred = np.roll(truth, 1, axis=2)
    found = surface_scores(truth, pred, spacing=(9, 3, 1), widths=(0.5, 1, 2, 3))
    # Bands of 1: {2, 7} and {3, 8}; of 2: {2, 3, 6, 7} and {3, 4, 7, 8}.
    np.testing.assert_equal(
        found[1]["boundary_iou"], {0.5: math.nan, 1.0: 0.0, 2.0: 2 / 6, 3.0: 5 / 7}
    )
    # Beside ignored voxels nothing ends.
    truth[0, :, 8:] = truth[0, ::2, 2:8] = 2
    options = SurfaceOptions(widths=(1, 2))
    rows = measure_surfaces(truth, pred, [1], ignore=2, spacing=(99, 3, 1), options=options)
    assert rows.numbers["bands"].tolist() == [[[1, 1, 0], [2, 2, 1]]]


@pytest.mark.parametrize("spacing", [1e-12, 1, 1e12])
@pytest.mark.parametrize("shape", [(6, 6), (1, 6, 6), (6, 6, 6)])
def test_bands_narrower_than_a_voxel_and_wider_than_the_array(shape, spacing):
    """No voxel is within less than a step of the outside, and all are within any larger width."""
    mask = np.zeros(shape, int)
    mask[..., 1:5, 1:5] = 1
    widths = (1e-300, 1e-200, 0.5 * spacing, 1e200, 1e300)
    options = SurfaceOptions(widths=widths)
    rows = measure_surfaces(mask, mask, [1], spacing=spacing, options=options)
    size = int(mask.sum())
    assert rows.numbers["bands"][0].tolist() == [[0] * 3] * 3 + [[size] * 3] * 2


@pytest.mark.parametrize("shape", [(9, 8), (5, 7, 6)])
def test_bands_are_those_of_all_pairs_of_voxels(shape):
    rng = np.random.default_rng(0)
    spacing = (1.5, 1.0, 0.7)[-len(shape) :]
    for _ in range(20):
        truth, pred = rng.random((2, *shape)) < 0.7
        bands = []
        for mask in (truth, pred):
            outside = np.argwhere(~np.pad(mask, 1)) - 1
            gaps = (np.argwhere(mask)[:, None] - outside) * spacing
            band = np.zeros(shape, bool)
            band[mask] = np.sqrt((gaps**2).sum(-1)).min(1) <= 1.6
            bands.append(band)
        expected = *map(np.count_nonzero, bands), np.count_nonzero(bands[0] & bands[1])
        options = SurfaceOptions(widths=(1.6,))
        rows = measure_surfaces(truth, pred, [1], spacing=spacing, options=options)
        assert rows.numbers["bands"].tolist() == [[[*expected]]]


def test_boundary_iou_of_many_cases():
    surfaces = measured("same", "missed", options=SurfaceOptions(widths=(1,)))
    assert [row["boundary_iou"] for row in surfaces] == [{1: 1.0}, {1: 0.0}]
    found = surfaces.summary()[0]["boundary_iou_1"]
    assert (found["mean"], found["median"], found["data_set"]) == (0.5, 0.5, 0.5)


def test_options_survive_json():
    options = SurfaceOptions(
        (1, 2.5),
        widths=(1, 2),
        percentiles=(95, 99),
        convention="medpy",
        tolerances_of={"cube": (3, 4)},
        empty={"hausdorff": (math.nan, math.inf, "diagonal")},
    )
    read = SurfaceOptions.from_dict(json.loads(json.dumps(options.to_dict(), allow_nan=False)))
    assert read.to_dict() == options.to_dict()
    (ours,) = measured(*CASES, options=read).summary()
    (theirs,) = measured(*CASES, options=options).summary()
    np.testing.assert_equal(ours, theirs)


def test_each_label_has_its_own_tolerances():
    truth = np.where(np.arange(8) < 4, CUBE, 2 * CUBE)
    options = SurfaceOptions((1,), tolerances_of={2: (3,)})
    rows = measure_surfaces(truth, np.roll(truth, 2, axis=0), [1, 2], options=options)
    assert [list(row["surface_dice"]) for row in rows] == [[1.0], [3.0]]
    assert rows[1]["surface_dice"] == {3.0: 1.0}
    assert math.isnan(rows.values()["surface_dice_3"][0])


def test_regions_overlap_as_masks_of_their_own_do():
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 4, (2, 5, 6, 7))
    regions = {"whole": (1, 2, 3), "core": (1, 3), "rest": 2}
    rows = measure_surfaces(truth, pred, regions)
    for row, values in zip(rows, regions.values(), strict=True):
        (alone,) = measure_surfaces(np.isin(truth, values), np.isin(pred, values))
        assert row | {"label": 1} == alone


@pytest.mark.parametrize("convention", ["medpy", "segiou"])
def test_no_surface_lies_between_a_label_and_ignored_voxels(convention):
    truth = np.zeros((1, 12), np.uint8)
    truth[0, 3:9] = 1
    truth[0, 6:] = 255
    pred = np.roll(truth, 1, axis=1)
    options = SurfaceOptions(convention=convention)
    rows = measure_surfaces(truth, pred, [1], ignore=255, options=options)
    # Voxels 3 to 5 and 4 to 5: whatever is predicted from 6 on has no say.
    assert (rows[0]["state"], rows[0]["hausdorff"]) == ("found", 1.0)
    pred[0, 6:] = 7
    assert measure_surfaces(truth, pred, [1], ignore=255, options=options) == rows
    truth[0, :3] = 255
    (row,) = measure_surfaces(truth, truth, [1], ignore=255, options=options)
    # Rows above and below the image end the label; corners beside ignored voxels carry nothing.
    assert row["state"] == "found"


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"tolerances": (-1,)}, "tolerances must not be negative"),
        ({"percentiles": (101,)}, "a percentile"),
        ({"convention": "other"}, "convention"),
        ({"tolerances_of": {1: (1, 2)}}, "label 1 has tolerances"),
        ({"empty": {"recall": (0, 0, 0)}}, "a measure of empty masks"),
        ({"empty": {"surface_dice": (0, 0)}}, "three numbers or 'diagonal'"),
    ],
)
def test_options_that_are_refused(settings, what):
    with pytest.raises(ValueError, match=what):
        SurfaceOptions(**settings)
