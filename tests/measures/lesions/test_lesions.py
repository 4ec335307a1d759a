"""Lesion-wise scores: by hand, the golden figures of BraTS, and its rule written out."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

import segiou
from segiou.measures.lesions import (
    LESION_PROTOCOLS,
    LesionOptions,
    LesionProtocol,
    lesion_scores,
    object_scores,
)

BRATS = Path(__file__).parents[3].parent / "shared" / "data" / "volumes" / "brats"
REGIONS = {"WT": [1, 2, 3], "TC": [1, 3], "ET": [3]}

# Object 1 is met by 5 (2 of its 3 pixels) and 6 (1 of 1), 2 by 6 too far away, 3 by nothing.
TRUTH = np.array([[1, 1, 1, 1, 0, 2, 2, 0, 3, 0]])
PRED = np.array([[0, 5, 5, 5, 6, 6, 0, 0, 0, 9]])


def scored(matching, **options):
    protocol = LesionProtocol("own", "", matching=matching, **options)
    return object_scores(TRUTH, PRED, spacing=None, protocol=protocol)


def partners(found):
    return {row["id"]: row["pred"] for row in found["lesions"]}


#: Fields of a protocol that are refused, and why.
WRONG = [
    ({"large": -1}, ValueError, "large must be at least 0"),
    ({"large": "20"}, TypeError, "large must be a number"),
    ({"least_dice": 1.5}, ValueError, "least_dice must be at most 1"),
    ({"penalty": float("nan")}, ValueError, "penalty must be a number, got NaN"),
    ({"min_volume": None}, TypeError, "min_volume must be a number"),
    ({"merge": 1.0}, TypeError, "merge must be an integer"),
    ({"reach": -1}, ValueError, "reach must be at least 0"),
    ({"published": "yes"}, TypeError, "published must be True or False"),
    ({"surface_dice": 1}, TypeError, "surface_dice must be True or False"),
    ({"convention": "mm"}, ValueError, "convention must be 'segiou', 'medpy'"),
    ({"connectivity": 5}, ValueError, "connectivity must be 4, 8, 6, 18 or 26, got 5"),
    ({"nothing": (1,)}, ValueError, "nothing must be two numbers"),
    ({"none_found": (0, -1)}, ValueError, "none_found must be two numbers"),
    ({"none_found": 0}, TypeError, "none_found must be two numbers, Dice and a distance"),
    ({"regions": {"et": 3}}, TypeError, "regions.'et'. must be a sequence of mask values"),
    ({"regions": {"et": ("3",)}}, TypeError, "a value of regions.'et'. must be an integer"),
    ({"regions": [3]}, TypeError, "regions must be mask values by name"),
]


def test_matching_by_hand():
    assert partners(scored("any")) == {1: [5], 2: [6], 3: []}
    assert partners(scored("any", reach=1)) == {1: [5, 6], 2: [6], 3: [9]}
    assert partners(scored("iou")) == {1: [5], 2: [], 3: []}
    assert partners(scored("iou", threshold=1 / 3)) == {1: [5], 2: [6], 3: []}
    assert partners(scored("id")) == {1: [], 2: [], 3: []}


def test_greatest_overlap_takes_one():
    truth, pred = np.array([[4, 4, 4, 4, 7]]), np.array([[1, 2, 2, 2, 2]])
    protocol = LesionProtocol("own", "", matching="greatest")
    found = object_scores(truth, pred, spacing=1, protocol=protocol)
    assert partners(found) == {4: [2], 7: [2]}
    assert (found["tp"], found["fp"], found["fn"]) == (2, 1, 0)


def test_the_assignment_is_the_best_one():
    # Greedily 1 takes 8 (IoU 4/8) and 2 goes without; 1 with 7 and 2 with 8 have more together.
    truth = np.array([[1, 1, 1, 1, 1, 1, 2, 2, 2]])
    pred = np.array([[7, 7, 8, 8, 8, 8, 8, 8, 0]])
    protocol = LesionProtocol("own", "", matching="iou", threshold=0.3)
    assert partners(object_scores(truth, pred, spacing=1, protocol=protocol)) == {1: [8], 2: []}
    protocol = replace(protocol, threshold=0.25)
    found = object_scores(truth, pred, spacing=1, protocol=protocol)
    assert partners(found) == {1: [7], 2: [8]}
    assert found["iou"] == pytest.approx((2 / 6 + 2 / 7) / 2)


def test_scores_by_hand():
    found = scored("any")
    assert (found["tp"], found["fp"], found["fn"]) == (2, 1, 1)
    assert found["sensitivity"] == found["precision"] == found["f1"] == 2 / 3
    assert found["dice"] == pytest.approx((6 / 7 + 2 / 4) / 2)
    assert found["iou"] == pytest.approx((3 / 4 + 1 / 3) / 2)
    assert found["overall_dice"] == 8 / 13
    assert (found["fp_volume"], found["fn_volume"]) == (1, 1)
    assert [row["volume"] for row in found["lesions"]] == [4, 2, 1]
    punished = scored("any", penalty=10.0, convention="medpy")
    assert punished["dice"] == pytest.approx((6 / 7 + 2 / 4) / 4)
    distances = [row["hausdorff_95"] for row in punished["lesions"]]
    assert distances[2] == np.inf
    assert punished["hausdorff_95"] == pytest.approx((distances[0] + distances[1] + 20) / 4)


def test_small_lesions_are_found_and_missed_by_nobody():
    found = scored("any", min_volume=2)
    assert (found["tp"], found["fp"], found["fn"]) == (1, 1, 0)
    assert partners(found) == {1: [5]}


def test_bands_of_volume():
    found = object_scores(
        TRUTH, PRED, spacing=(1, 2), protocol=LesionProtocol("own", ""), bands=[3, 5]
    )
    bands = [(b["from"], b["to"], b["tp"], b["fp"], b["fn"]) for b in found["bands"]]
    assert bands == [(0, 3, 0, 1, 1), (3, 5, 1, 0, 0), (5, np.inf, 1, 0, 0)]
    assert sum(band["tp"] for band in found["bands"]) == found["tp"]
    assert scored("any")["bands"] == []


def test_nothing_at_all():
    empty = np.zeros((3, 4, 4), int)
    brats = lesion_scores(empty, empty, spacing=1)
    assert {(s["dice"], s["hausdorff_95"], s["overall_dice"]) for s in brats.values()} == {
        (1, 0, 1)
    }
    other = lesion_scores(empty, empty, spacing=1, protocol="autopet")["lesion"]
    assert np.isnan([other["dice"], other["sensitivity"], other["overall_dice"]]).all()
    assert (other["fp_volume"], other["fn_volume"]) == (0, 0)
    assert lesion_scores(empty, empty, spacing=1, protocol="panoptica") == {}
    assert lesion_scores(empty[:0], empty[:0], spacing=1)["ET"]["dice"] == 1


def test_an_own_protocol_may_leave_labels_out():
    own = replace(LESION_PROTOCOLS["brats2023-met"], regions={"lesion": (4,)})
    truth = [[1, 0, 0, 4, 4, 4]]
    found = lesion_scores(truth, truth, spacing=1, protocol=own)
    assert {name: scores["tp"] for name, scores in found.items()} == {"lesion": 1}


def test_ids_far_apart_are_objects_like_others():
    truth = TRUTH.astype(np.uint64) << np.uint64(60)
    found = object_scores(truth, PRED, spacing=1, protocol=LesionProtocol("own", ""))
    assert [row["dice"] for row in found["lesions"]] == [
        row["dice"] for row in scored("any")["lesions"]
    ]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"truth has shape \(1, 2\) but pred has \(2, 1\)"):
        lesion_scores([[1, 1]], [[1], [1]], spacing=1)
    with pytest.raises(ValueError, match="ids must not be negative, got -3"):
        object_scores([[-3]], [[1]], spacing=1)
    with pytest.raises(ValueError, match="protocol must be"):
        lesion_scores([[1]], [[1]], spacing=1, protocol="brats")
    with pytest.raises(
        ValueError, match=r"label 4 is not in any region of 'autopet': {'lesion': \(1,\)}"
    ):
        lesion_scores([[0, 1]], [[4, 1]], spacing=1, protocol="autopet")
    with pytest.raises(ValueError, match="matching must be"):
        LesionProtocol("x", "", matching="best")
    with pytest.raises(ValueError, match="threshold must be at most 1, got 50"):
        LesionProtocol("x", "", threshold=50)
    for wrong, kind, text in WRONG:
        with pytest.raises(kind, match=text):
            LesionProtocol("x", "", **wrong)
    with pytest.raises(TypeError, match="bands must be a sequence of volumes, not int"):
        lesion_scores([[1]], [[1]], spacing=1, bands=50)
    with pytest.raises(TypeError, match="truth"):
        lesion_scores([[0.5]], [[1]], spacing=1)
    with pytest.raises(ValueError, match="spacing must be one number"):
        lesion_scores([[3]], [[3]], spacing=-1)


@pytest.mark.skipif(not BRATS.is_dir(), reason="the BraTS volumes are not beside this checkout")
@pytest.mark.parametrize("challenge", ["GLI", "MEN"])
def test_the_golden_figures_of_brats(challenge):
    nibabel = pytest.importorskip("nibabel", reason="needs nibabel")
    images = [nibabel.load(BRATS / f"{side}.nii.gz") for side in ("gt", "pred")]
    truth, pred = (np.asarray(image.dataobj).astype(np.uint8) for image in images)
    spacing = images[1].header.get_zooms()
    found = lesion_scores(truth, pred, spacing=spacing, protocol=f"brats2023-{challenge.lower()}")
    names = {
        "tp": "Num_TP",
        "fp": "Num_FP",
        "fn": "Num_FN",
        "dice": "LesionWise_Score_Dice",
        "hausdorff_95": "LesionWise_Score_HD95",
        "overall_dice": "Legacy_Dice",
    }
    golden = json.loads((BRATS / "lesionwise.json").read_text())[f"BraTS-{challenge}"]
    for region, expected in golden.items():
        assert {theirs: found[region][ours] for ours, theirs in names.items()} == pytest.approx(
            {theirs: expected[theirs] for theirs in names.values()}, rel=1e-12
        )


def written_out(truth, pred, spacing, dilations, least, distance):
    """The rule of BraTS 2023, mask by mask."""
    near, all_around = (ndimage.generate_binary_structure(3, rank) for rank in (2, 3))
    wide = ndimage.label(ndimage.binary_dilation(truth, near, iterations=dilations), all_around)[0]
    objects, number = ndimage.label(pred, all_around)
    met, dices, distances, tp, fn = set(), [], [], 0, 0
    for lesion in range(1, wide.max() + 1):
        own = truth & (wide == lesion)
        around = ndimage.binary_dilation(own, near, iterations=dilations)
        found = {*np.unique(objects[around]).tolist()} - {0}
        met |= found
        if own.sum() * np.prod(spacing) <= least:
            continue
        tp, fn = tp + bool(found), fn + (not found)
        theirs = np.isin(objects, [*found])
        dices.append(2 * (own & theirs).sum() / (own.sum() + theirs.sum()))
        distances.append(distance(own, theirs) if found else 374)
    fp = number - len(met)
    count = len(dices) + fp
    dice, far = (sum(dices) / count, (sum(distances) + 374 * fp) / count) if count else (1, 0)
    return {"tp": tp, "fp": fp, "fn": fn, "dice": dice, "hausdorff_95": far}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("challenge", ["gli", "men", "met"])
def test_the_rule_of_brats_written_out(challenge, monkeypatch):
    peer = pytest.importorskip("surface_distance", reason="needs surface-distance")
    spacing = (1.0, 1.0, 1.5)
    # The program makes its table of areas anew for every pair, though only the spacing decides it.
    table = peer.metrics.lookup_tables.create_table_neighbour_code_to_surface_area(spacing)
    monkeypatch.setattr(
        peer.metrics.lookup_tables,
        "create_table_neighbour_code_to_surface_area",
        {spacing: table}.__getitem__,
    )
    protocol = replace(LESION_PROTOCOLS[f"brats2023-{challenge}"], min_volume=4)

    def distance(truth, pred):
        # A margin, for the program's crop loses what touches the far border.
        sides = (np.pad(side, 1) for side in (truth, pred))
        surfaces = peer.compute_surface_distances(*sides, spacing)
        return min(peer.compute_robust_hausdorff(surfaces, 95), 374)

    rng = np.random.default_rng(len(challenge))
    for round_ in range(10):
        truth = np.zeros((10, 12, 11), np.uint8)
        for _ in range(rng.integers(0, 6)):
            corner = rng.integers(0, 9, 3)
            stop = corner + rng.integers(1, 4, 3)
            truth[tuple(slice(a, b) for a, b in zip(corner, stop, strict=True))] = rng.integers(
                1, 4
            )
        pred = np.roll(truth, rng.integers(0, 3, 3), (0, 1, 2)) if round_ % 5 else truth * 0
        pred = np.where(rng.random(truth.shape) < 0.004, 3, pred).astype(np.uint8)
        found = lesion_scores(truth, pred, spacing=spacing, protocol=protocol)
        for region, values in REGIONS.items():
            sides = (np.isin(side, values) for side in (truth, pred))
            expected = written_out(*sides, spacing, protocol.merge, 4, distance)
            assert {name: found[region][name] for name in expected} == pytest.approx(expected)


def test_the_volumes_of_autopet():
    structure = ndimage.generate_binary_structure(3, 2)
    rng = np.random.default_rng(3)
    for density in (0, 0.02, 0.1, 0.1, 0.2):
        truth, pred = (rng.random((2, 8, 9, 10)) < density).astype(np.uint8)
        volumes = [
            sum(
                (ids == i).sum() * 1.5 for i in range(1, ids.max() + 1) if not other[ids == i].any()
            )
            for ids, other in (
                (ndimage.label(pred, structure)[0], truth),
                (ndimage.label(truth, structure)[0], pred),
            )
        ]
        found = lesion_scores(truth, pred, spacing=(1, 1, 1.5), protocol="autopet")["lesion"]
        assert [found["fp_volume"], found["fn_volume"]] == pytest.approx(volumes)


def test_panoptica_counts_missed_lesions_as_worst():
    truth, pred = np.zeros((2, 4, 4, 4), int)
    truth[1, 1, 1] = 1
    for sides in ((truth, pred), (pred, truth)):
        found = lesion_scores(*sides, spacing=1, protocol="panoptica")["1"]
        assert (found["dice"], found["iou"], found["hausdorff_95"]) == (0, 0, np.inf)


def test_labels_absent_on_both_sides_have_nan_scores():
    truth = np.zeros((4, 4, 4), int)
    truth[1, 1, 1] = 1
    found = lesion_scores(truth, truth, spacing=1, protocol="panoptica", labels=[1, 2])
    assert (found["1"]["dice"], found["2"]["tp"]) == (1, 0)
    assert np.isnan(found["2"]["dice"]) and np.isnan(found["2"]["hausdorff_95"])
    with pytest.raises(ValueError, match="omit labels"):
        lesion_scores(truth, truth, spacing=1, protocol="autopet", labels=[1])


@pytest.mark.parametrize(
    ("protocol", "labels", "message"),
    [
        # Value 3 is the enhancing tumour of GLI, but the cystic component of PED.
        ("brats2026-gli", "brats2024-ped", "has other classes; use labels='brats2024-gli'"),
        ("brats2026-ped", "brats2024-gli", "has other classes; use labels='brats2024-ped'"),
        ("brats2026-gli", "brats2023", "'brats2023' has other classes; use labels='brats2024-gli'"),
        ("brats2023-gli", 5, "class '4' of label set 'custom' is in no region; use labels='brats2"),
        ("brats2023-gli", "brats", "class 'enhancing tumor' of .* is in no region; use labels='b"),
        ("brats2023-gli", "kits23", "has other classes; use labels='brats2023'"),
        ("autopet", "kits23", "class 'tumor' of .* is in no region; use labels='binary'"),
    ],
)
def test_regions_of_other_label_sets_are_refused(protocol, labels, message):
    masks = [np.zeros((3, 3, 3), int)]
    given = {"measures": [LesionOptions(protocol)], "spacing": (1, 1, 1)}
    with pytest.raises(ValueError, match=message) as caught:
        segiou.score(masks, masks, labels=labels, **given)
    right = re.search("labels='(.*)'", str(caught.value))[1]
    assert len(segiou.score(masks, masks, labels=right, **given)) == 1


def test_classes_with_the_values_of_regions_are_accepted():
    masks = [np.ones((5, 6, 7), int)]
    for labels in (3, 4, {"no": 0, "a": 1, "b": 2, "c": 3}):
        run = segiou.score(masks, masks, labels=labels, measures=["lesions"], spacing=(1, 1, 1))
        assert run.report().measures["lesions"] is not None
    segiou.score(masks, masks, labels=4, measures=[LesionOptions("panoptica")], spacing=(1, 1, 1))


def test_bands_from_a_generator_are_those_of_every_region():
    truth = np.zeros((4, 6, 6), int)
    truth[1:3, 1:3, 1:3], truth[1:3, 4, 4] = 3, 1
    several = lesion_scores(truth, truth, spacing=1, bands=iter([5])).values()
    assert [[band["from"] for band in one["bands"]] for one in several] == [[0, 5]] * 3


def test_each_band_has_volumes():
    truth = np.ones((1, 2, 2), int)
    for bands in ([2], [2, 2, 2.0], [0, 2], [2, math.inf]):
        found = object_scores(truth, truth, spacing=None, bands=bands)["bands"]
        assert [(band["from"], band["to"]) for band in found] == [(0, 2), (2, math.inf)]


@pytest.mark.parametrize("label", [3.5, "3", True])
def test_labels_of_lesions_are_integers(label):
    mask = np.full((1, 2, 2), 3)
    with pytest.raises(TypeError, match="labels must be an integer"):
        lesion_scores(mask, mask, spacing=1, protocol="panoptica", labels=[label])


def test_lesions_have_a_spacing_whose_volumes_are_floats():
    mask = np.full((1, 2, 2), 3)
    with pytest.raises(ValueError, match="spacing must be one number"):
        lesion_scores(mask, mask, spacing=1e-320)
