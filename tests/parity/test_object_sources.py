"""Scores of objects against programs that no registry has, run from their own sources.

SEGIOU_PEER_SOURCES names a folder with checkouts of PRBonn/semantic-kitti-api and
rachitsaluja/BraTS-2023-Metrics, each under the second part of its name.
"""

import contextlib
import importlib.util
import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from deletable import kind_of_scores

from segiou.measures.objects import PROTOCOLS, PanopticCounts

SCENES = 1000


@pytest.fixture
def source(monkeypatch):
    """Load a module of a checkout."""

    def load(path):
        root = os.environ.get("SEGIOU_PEER_SOURCES")
        if root is None:
            pytest.skip("SEGIOU_PEER_SOURCES names no folder of checkouts")
        file = Path(root, path)
        monkeypatch.syspath_prepend(str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_semantickitti_counts_the_same(source, monkeypatch):
    script = source("semantic-kitti-api/auxiliary/eval_np.py")
    rng = np.random.default_rng(1)
    for k in range(SCENES):
        points, least = int(rng.integers(1, 900)), int(rng.choice([1, 30]))
        truth, truth_ids = (np.repeat(rng.integers(0, n, 40), 25)[:points] for n in (5, 4))
        changed = rng.random(points) < rng.choice([0, 0.05, 0.3])
        pred = np.where(changed, rng.integers(0, 5, points), truth)
        pred_ids = np.where(rng.random(points) < 0.1, rng.integers(0, 4, points), truth_ids + 7)
        pred, truth = pred if k % 20 else pred * 0 + 1, truth if k % 33 else truth * 0
        with contextlib.redirect_stdout(io.StringIO()):
            peer = script.PanopticEval(5, ignore=[0], min_points=least)
        peer.addBatchPanoptic(pred, pred_ids, truth, truth_ids)
        protocol = replace(PROTOCOLS["semantickitti"], least_pixels=least)
        monkeypatch.setitem(PROTOCOLS, "semantickitti", protocol)
        counts = PanopticCounts(5, ignore=0, exclude=[0], protocol="semantickitti")
        found = counts.update(truth, truth_ids, pred, pred_ids).panoptic_quality()
        expected = np.stack([peer.pan_tp, peer.pan_fp, peer.pan_fn], 1)
        np.testing.assert_array_equal(counts.detections[1:], expected[1:])
        scores = [found[name] for name in ("pq", "sq", "rq")]
        np.testing.assert_allclose(scores, peer.getPQ()[:3], rtol=1e-12, atol=1e-14)


def lesions(rng, k):
    """Labels of a volume that has up to four boxes, and a prediction, empty ones among them."""
    shape = (14, 15, 13)
    truth = np.zeros(shape, np.uint8)
    for _ in range(rng.integers(0, 5)):
        start = rng.integers(1, 10, 3)
        stop = np.minimum(start + rng.integers(1, 6, 3), 12)
        truth[tuple(map(slice, start, stop))] = rng.integers(1, 4)
    pred = np.roll(truth, rng.integers(0, 3, 3), (0, 1, 2)) if k % 5 else truth * 0
    pred = np.where(rng.random(shape) < rng.choice([0, 0.003]), 3, pred).astype(np.uint8)
    # Its crop loses what touches the far border.
    inside = np.pad(np.ones(np.subtract(shape, 2), np.uint8), 1)
    return truth * (k % 17 > 0), pred * inside


@pytest.mark.needs("measures.lesions")
@pytest.mark.filterwarnings("ignore")
def test_brats_scores_the_same(source, monkeypatch):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    # It is written for older releases of NumPy and pandas.
    monkeypatch.setattr(np, "Inf", np.inf, raising=False)
    monkeypatch.delitem(sys.modules, "surface_distance", raising=False)
    for name in [name for name in sys.modules if name.startswith("surface_distance.")]:
        monkeypatch.delitem(sys.modules, name)
    plain = pandas.DataFrame.replace

    def replaced(frame, old, new, **options):
        if "hd95_lesionwise" not in frame:
            return plain(frame, old, new, **options)
        finite = [new if value == old else value for value in frame.hd95_lesionwise]
        return frame.assign(hd95_lesionwise=finite)

    monkeypatch.setattr(pandas.DataFrame, "replace", replaced)
    joined = lambda frame, other: pandas.concat([frame, other])  # noqa: E731
    monkeypatch.setattr(pandas.DataFrame, "append", joined, raising=False)
    script = source("BraTS-2023-Metrics/metrics.py")
    volumes = {}

    def opened(path):
        header = SimpleNamespace(get_zooms=lambda: volumes["spacing"])
        return SimpleNamespace(header=header, get_fdata=lambda: volumes[path].astype(float))

    monkeypatch.setattr(script, "nib", SimpleNamespace(load=opened))
    names = {
        "tp": "Num_TP",
        "fp": "Num_FP",
        "fn": "Num_FN",
        "dice": "LesionWise_Score_Dice",
        "hausdorff_95": "LesionWise_Score_HD95",
        "overall_dice": "Legacy_Dice",
    }
    rng = np.random.default_rng(5)
    for k in range(SCENES):
        truth, pred = lesions(rng, k)
        spacing = (1.0, 1.0, float(rng.choice([1, 2])))
        volumes |= {"truth": truth, "pred": pred, "spacing": spacing}
        challenge = ["GLI", "SSA", "MEN", "PED", "MET"][k % 5]
        table = script.get_LesionWiseResults("pred", "truth", f"BraTS-{challenge}")
        expected = table.set_index("Labels")
        protocol = f"brats2023-{challenge.lower()}"
        found = kind_of_scores("lesions").lesion_scores(
            truth, pred, spacing=spacing, protocol=protocol
        )
        for region, scores in found.items():
            ours = [scores[name] for name in names]
            theirs = [float(expected.loc[region, name]) for name in names.values()]
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, err_msg=f"{challenge} {region} {k}")
