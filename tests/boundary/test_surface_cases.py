"""Surface distances over cases: rows, what empty masks count, means that missing never improves."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from segiou.boundary.surface_cases import SurfaceAccumulator, summarize_surfaces
from segiou.boundary.surface_options import CONVENTIONS, SurfaceOptions
from segiou.boundary.surfaces import SurfaceRow, measure_surfaces, surface_scores

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


def accumulated(*names, **settings):
    surfaces = SurfaceAccumulator({"cube": 1}, **settings)
    for name in names:
        surfaces.update(*CASES[name], case=name)
    return surfaces


def test_rows_name_the_state():
    surfaces = accumulated(*CASES)
    assert [(row.case, row.state) for row in surfaces.rows] == [
        ("same", "found"),
        ("shifted", "found"),
        ("missed", "missed"),
        ("false_positive", "false_positive"),
        ("absent", "absent"),
    ]
    assert [score["hausdorff_95"] for score in surfaces.scores()][:4] == [0, 2, math.inf, math.inf]
    assert math.isnan(surfaces.scores()[4]["hausdorff_95"])


def test_former_names_of_states_are_read():
    (row,) = accumulated("false_positive").rows
    assert SurfaceRow.from_dict({**row.to_dict(), "state": "invented"}) == row
    (cube,) = accumulated(*CASES).summary()
    assert cube["invented"] == cube["false_positive"] == 1


def test_a_summary_by_hand():
    (cube,) = accumulated(*CASES).summary()
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
    whole, moved = (accumulated(name).rows[0] for name in ("same", "shifted"))
    share = (sum(whole.sizes) + sum(moved.within[0])) / (3 * sum(whole.sizes))
    assert cube["surface_dice_1"]["data_set"] == pytest.approx(share)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_missing_more_never_improves_medians(convention):
    options = SurfaceOptions(convention=convention)
    names = ["same", "shifted", "shifted", "shifted"]
    for i in range(len(names)):
        missing = [*names[:i], *["missed"] * (len(names) - i)]
        better, worse = (accumulated(*n, options=options).summary()[0] for n in (names, missing))
        assert worse["missed"] == len(names) - i
        for low, high in ((better, worse),):
            assert low["hausdorff_95"]["median"] <= high["hausdorff_95"]["median"]
            assert low["hausdorff_95"]["quartiles"] <= high["hausdorff_95"]["quartiles"]
            assert low["surface_dice_1"]["median"] >= high["surface_dice_1"]["median"]


def test_the_mean_of_monai_skips_what_is_missed_and_says_so():
    options = SurfaceOptions(convention="monai")
    (cube,) = accumulated("shifted", "missed", options=options).summary()
    found = cube["hausdorff_95"]
    assert (found["mean"], found["mean_cases"], cube["cases"]) == (2.0, 1, 2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [((1, 2, 3), (3, 2, 1)), (("diagonal", math.nan, 374), (374, math.nan, math.hypot(8, 8, 8)))],
)
def test_what_an_empty_mask_counts_can_be_said(given, expected):
    options = SurfaceOptions(empty={"average_surface_distance": given})
    scores = accumulated("missed", "false_positive", "absent", options=options).scores()
    np.testing.assert_equal([s["average_surface_distance"] for s in scores], expected)
    assert scores[0]["hausdorff"] == math.inf


def test_accumulators_add_up():
    parts = accumulated("same", "missed"), accumulated("shifted")
    together = accumulated("same", "missed", "shifted")
    assert (parts[0] + parts[1]).rows[2] == together.rows[2]
    assert (parts[0] + parts[1]).summary() == together.summary()
    other = accumulated("same", options=SurfaceOptions((2.0,)))
    with pytest.raises(ValueError, match="cannot merge surfaces: options: "):
        parts[0] + other


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
    (row,) = measure_surfaces(truth, pred, [1], ignore=2, spacing=(99, 3, 1), options=options)
    assert row.bands == ((1, 1, 0), (2, 2, 1))


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
        (row,) = measure_surfaces(truth, pred, [1], spacing=spacing, options=options)
        assert row.bands == (expected,)


def test_boundary_iou_of_many_cases():
    surfaces = accumulated("same", "missed", options=SurfaceOptions(widths=(1,)))
    assert [row["boundary_iou"] for row in surfaces.scores()] == [{1: 1.0}, {1: 0.0}]
    found = surfaces.summary()[0]["boundary_iou_1"]
    assert (found["mean"], found["median"], found["data_set"]) == (0.5, 0.5, 0.5)


def test_rows_and_options_survive_json():
    options = SurfaceOptions(
        (1, 2.5),
        widths=(1, 2),
        percentiles=(95, 99),
        convention="medpy",
        tolerances_of={"cube": (3, 4)},
        empty={"hausdorff": (math.nan, math.inf, "diagonal")},
    )
    surfaces = accumulated(*CASES, options=options)
    read = SurfaceAccumulator.from_state_dict(
        json.loads(json.dumps(surfaces.state_dict(), allow_nan=False))
    )
    assert read.state_dict() == surfaces.state_dict()
    np.testing.assert_equal(read.scores(), surfaces.scores())
    assert SurfaceRow.from_dict(surfaces.rows[0].to_dict()) == surfaces.rows[0]
    assert summarize_surfaces(read.rows, read.options) == summarize_surfaces(surfaces.rows, options)


def test_each_label_has_its_own_tolerances():
    truth = np.where(np.arange(8) < 4, CUBE, 2 * CUBE)
    options = SurfaceOptions((1,), tolerances_of={2: (3,)})
    rows = measure_surfaces(truth, np.roll(truth, 2, axis=0), [1, 2], options=options)
    assert [list(row.values(options)["surface_dice"]) for row in rows] == [[1.0], [3.0]]
    assert rows[1].values(options)["surface_dice"] == {3.0: 1.0}


def test_regions_overlap_as_masks_of_their_own_do():
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 4, (2, 5, 6, 7))
    regions = {"whole": (1, 2, 3), "core": (1, 3), "rest": 2}
    rows = measure_surfaces(truth, pred, regions)
    for row, values in zip(rows, regions.values(), strict=True):
        (alone,) = measure_surfaces(np.isin(truth, values), np.isin(pred, values))
        assert row.to_dict() | {"label": 1} == alone.to_dict()


@pytest.mark.parametrize("convention", ["medpy", "segiou"])
def test_no_surface_lies_between_a_label_and_ignored_voxels(convention):
    truth = np.zeros((1, 12), np.uint8)
    truth[0, 3:9] = 1
    truth[0, 6:] = 255
    pred = np.roll(truth, 1, axis=1)
    options = SurfaceOptions(convention=convention)
    (row,) = measure_surfaces(truth, pred, [1], ignore=255, options=options)
    # Voxels 3 to 5 and 4 to 5: whatever is predicted from 6 on has no say.
    assert (row.state, row.hausdorff) == ("found", 1.0)
    pred[0, 6:] = 7
    assert measure_surfaces(truth, pred, [1], ignore=255, options=options)[0] == row
    truth[0, :3] = 255
    (row,) = measure_surfaces(truth, truth, [1], ignore=255, options=options)
    # Rows above and below the image end the label; corners beside ignored voxels carry nothing.
    assert row.state == "found"


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


@pytest.mark.parametrize(
    "change",
    [{"state": "missed"}, {"sizes": [1.0, 1.0]}, {"hausdorff": -1.0}, {"within": [[1e9, 0.0]]}],
)
def test_states_with_impossible_rows_are_refused(change):
    state = accumulated("same").state_dict()
    state["rows"][0] |= change
    with pytest.raises(ValueError, match="not a row of these options"):
        SurfaceAccumulator.from_state_dict(state)
