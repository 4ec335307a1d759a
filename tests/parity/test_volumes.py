"""Volumes against the tools themselves, on random pairs of every kind, and by hand.

What no package index has is run by tests/importable/volume_peers.py; its counts are in
docs/volumes.md. SEGIOU_PEER_SOURCES names its folder of checkouts, and then it runs here, too.
"""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from mask_files import required

import segiou
from segiou.metrics import load_protocol

pytest.importorskip("segiou.measures.surfaces")

import volume_peers

SOURCES = os.environ.get("SEGIOU_PEER_SOURCES")
NAMES = ("hausdorff", "hausdorff_95", "average_surface_distance")


@pytest.mark.parametrize(
    ("ndim", "number"),
    [(2, 20), (3, 20), *(pytest.param(n, 300, marks=pytest.mark.gate) for n in (2, 3))],
)
@pytest.mark.parametrize("tool", ["medpy", "MONAI", "surface-distance"])
def test_tools_agree(tool, ndim, number):
    for name in {"medpy": ["medpy"], "MONAI": ["monai", "torch"]}.get(tool, ["surface_distance"]):
        required(name)
    counts, differing = volume_peers.compare(tool, number, ndim)
    assert (counts["pairs"], differing) == (number, [])
    # medpy alone refuses empty masks.
    assert counts["refused by the tool"] == 0 or tool == "medpy"


def test_pairs_are_of_every_kind():
    pairs = list(volume_peers.masks(300))
    assert {kind for kind, *_ in pairs} == set(volume_peers.KINDS)
    assert sum(not truth.any() and not pred.any() for _, truth, pred, _ in pairs) > 20
    assert sum(truth.sum() == 1 for _, truth, *_ in pairs) > 20
    assert sum(len({*spacing}) > 1 for *_, spacing in pairs) > 200


@pytest.mark.parametrize("ndim", [2, 3])
def test_metrics_reloaded_agrees(ndim):
    """What it gave itself, for the first pairs of the campaign; None is NaN."""
    golden = json.loads(Path(__file__).with_name("metricsreloaded.json").read_text())[str(ndim)]
    compared = 0
    for (_, truth, pred, spacing), row in zip(volume_peers.masks(64, ndim), golden, strict=True):
        found = volume_peers.ours(truth, pred, spacing, "metricsreloaded")
        expected = [math.nan if value is None else value for value in row]
        if truth.any() != pred.any():
            # Its surface Dice of a lone mask measures to where SciPy takes nothing to lie.
            found, expected = {name: found[name] for name in NAMES}, expected[:3]
        shares = ("boundary_precision", "boundary_recall", "boundary_f1")
        found = {name: value for name, value in found.items() if name not in shares}
        assert list(found.values()) == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
        compared += 1
    assert compared == 64


@pytest.mark.skipif(SOURCES is None, reason="SEGIOU_PEER_SOURCES names no checkouts")
@pytest.mark.parametrize("tool", volume_peers.CHALLENGES)
def test_challenges_agree(tool):
    for mine, theirs, reason in volume_peers.CHALLENGES[tool](Path(SOURCES), 40):
        assert reason or volume_peers.is_close(mine, theirs), (mine, theirs)


#: Four cases of one label: found, missed, invented, in neither.
TRUTH = np.array([[0, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]).reshape(4, 1, 1, 4)
PRED = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]).reshape(4, 1, 1, 4)


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        # kits23/evaluation/metrics.py, compute_metrics_for_label: both empty 1, one empty 0.
        ("kits23", [0.8, 0, 0, 1]),
        # FLARE22_DSC_NSD_Eval.py: the same three branches.
        ("flare22", [0.8, 0, 0, 1]),
        # TotalSegmentator, resources/evaluate.py, calc_metrics: NaN without truth, else 0.
        ("totalsegmentator", [0.8, 0, math.nan, math.nan]),
    ],
)
def test_what_challenges_count_where_a_mask_is_empty(name, cases):
    labels = ["background", "liver"]
    run = segiou.score(TRUTH, PRED, labels=labels, exclude=0, surfaces=name, spacing=(1, 1, 1))
    report = run.report(name)
    found = [row["dice"] for row in report.measures["surface_cases"]]
    assert found == pytest.approx(cases, nan_ok=True)
    mean = np.nanmean(cases)
    assert report.measures["surfaces"][0]["dice"]["mean"] == pytest.approx(mean)
    # The protocol's mean of Dice over cases and classes is the same.
    assert report.mean_dice == pytest.approx(mean)
    limit = {"flare22": 5, "totalsegmentator": 3}.get(name, 1)
    assert report.measures["surfaces"][0][f"surface_dice_{limit}"]["mean_cases"] == np.sum(
        ~np.isnan(cases)
    )
    if name == "totalsegmentator":
        # It measures on voxels of 1.5 mm, whatever the file says.
        assert run.plan("surfaces").options.tolerances == (3.0,)


def test_metrics_reloaded_averages_cases_and_counts_dice_of_nothing_1():
    # pairwise_measures.py: dsc() is 1 and intersection_over_union() NaN where both are empty;
    # overall_process.py, label_aggregation: the mean over the labels of a case that are defined.
    run = segiou.score(TRUTH, PRED, labels=2, exclude=0)
    report = run.report("metricsreloaded")
    assert report.mean_dice == pytest.approx((0.8 + 0 + 0 + 1) / 4)
    assert report.mean_iou == pytest.approx((2 / 3 + 0 + 0) / 3)
    for name, value in (("dice", report.mean_dice), ("iou", report.mean_iou)):
        found = run.intervals(name, protocol="metricsreloaded", resamples=50).overall.value
        assert found == pytest.approx(value)
    assert "Dice: count as 1" in load_protocol("metricsreloaded").description


def test_kits_has_its_own_tolerances_and_the_protocol_chooses_the_convention(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    rng = np.random.default_rng(0)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        image = nibabel.Nifti1Image(rng.integers(0, 4, (6, 6, 6), np.uint8), np.eye(4))
        image.to_filename(tmp_path / side / "case.nii.gz")
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels="kits23", boundary=True, protocol="kits23")
    assert run.plan("surfaces").options.convention == "kits23"
    rows = {row["label"]: row for row in run.report().measures["surfaces"]}
    # kits23/configuration/labels.py, HEC_SD_TOLERANCES_MM
    assert "surface_dice_1.03308" in rows["kidney_and_mass"]
    assert {"surface_dice_1.13288", "surface_dice_1.14982"} <= rows["mass"].keys() | rows[
        "tumor"
    ].keys()
    own = segiou.score_folder(*folders, labels="kits23", boundary=True, surfaces="medpy")
    assert own.plan("surfaces").options.convention == "medpy"
