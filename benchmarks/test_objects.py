"""Counting id pairs compared with ``np.unique`` and panopticapi's code.

``pytest benchmarks/test_objects.py`` prints the ratios; all results are checked.
"""

import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segiou.counting import count_id_pairs
from segiou.instances import PanopticCounts, label_components

CAMVID = Path(__file__).parents[2] / "shared" / "data" / "camvid"
DAVIS = CAMVID.with_name("davis")
STREETS = Path(__file__).parents[1] / "fixtures" / "streets"
OFFSET = 256 * 256 * 256


def id_maps():
    """DAVIS masks with one id per object, each with the following frame, if available.

    And masks of streets, each component of a class an object, at the size of COCO's images.
    """
    frames = sorted(DAVIS.glob("kite-surf/*.png"))
    for pair in list(pairwise(frames))[:2]:
        yield tuple(np.asarray(Image.open(path)).astype(np.uint32) for path in pair)
    root, models = (
        (CAMVID, ("truth", "base")) if CAMVID.is_dir() else (STREETS, ("truth", "model_a"))
    )
    for path in sorted((root / "truth").glob("*.png"))[::8]:
        masks = (np.asarray(Image.open(root / model / path.name)) for model in models)
        ids = (label_components(mask.astype(int) + 1) for mask in masks)
        yield tuple(np.kron(side, np.ones((2, 2), int)).astype(np.uint32) for side in ids)


def unique(truth, pred):
    """The most common code: one sort of both columns."""
    found, pixels = np.unique(np.stack([truth.ravel(), pred.ravel()]), axis=1, return_counts=True)
    return found[0], found[1], pixels


def panopticapi(truth, pred):
    """panopticapi's code: both ids as one number, and the areas of the prediction."""
    np.unique(pred, return_counts=True)
    both = truth.astype(np.uint64) * OFFSET + pred.astype(np.uint64)
    found, pixels = np.unique(both, return_counts=True)
    return found // OFFSET, found % OFFSET, pixels


def one_number(truth, pred):
    """Both ids as one number, one sort: the fastest NumPy version."""
    found, pixels = np.unique(truth.astype(np.uint64) << 32 | pred, return_counts=True)
    return found >> np.uint64(32), found & np.uint64(2**32 - 1), pixels


def seconds(function, images, rounds):
    """Mean over images of the shortest round."""
    quickest = np.full((rounds, len(images)), np.inf)
    for i, (truth, pred) in enumerate(images):
        for k in range(rounds):
            start = time.process_time()
            function(truth, pred)
            quickest[k, i] = time.process_time() - start
    return quickest.min(0).mean()


def test_id_pairs(capsys):
    lines = []
    by_shape: dict = {}
    for pair in id_maps():
        by_shape.setdefault(pair[0].shape, []).append(pair)
    for shape, images in by_shape.items():
        for truth, pred in images[:1]:
            for theirs in (unique, one_number, panopticapi):
                for a, b in zip(count_id_pairs(truth, pred), theirs(truth, pred), strict=True):
                    np.testing.assert_array_equal(a, b)
        ours = seconds(count_id_pairs, images[:2], 9)
        lines.append(f"{shape}: {1000 * ours:.2f} ms per image")
        for theirs, rounds in ((unique, 1), (one_number, 5), (panopticapi, 5)):
            taken = seconds(theirs, images[:2], rounds)
            lines.append(
                f"  {theirs.__name__}: {1000 * taken:.1f} ms, {taken / ours:.0f} times as long"
            )
    with capsys.disabled():
        print("\n" + "\n".join(lines))


def test_panoptic_quality(capsys):
    """With torchmetrics' PanopticQuality on the same segments."""
    torch = pytest.importorskip("torch")
    detection = pytest.importorskip("torchmetrics.detection")
    *_, (truth, pred) = id_maps()
    zeros = np.zeros(truth.shape, np.uint8)
    counts = PanopticCounts(1)
    peer = detection.PanopticQuality(things={0}, stuffs={1})
    sides = [
        torch.from_numpy(np.stack([zeros, side], -1).astype(int))[None] for side in (pred, truth)
    ]
    ours = seconds(lambda t, p: counts.update(zeros, t, zeros, p), [(truth, pred)], 5)
    theirs = seconds(lambda t, p: peer.update(*sides), [(truth, pred)], 1)
    assert counts.panoptic_quality()["pq"] == pytest.approx(float(peer.compute()[()]), rel=1e-6)
    with capsys.disabled():
        print(f"\nPQ: {1000 * ours:.1f} ms, torchmetrics {theirs / ours:.0f} times as long")
