"""Volumes, surfaces and objects, as a user would write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import segiou
from segiou.measures.boundary import boundary_counts, boundary_iou
from segiou.measures.lesions import lesion_scores
from segiou.measures.objects import PanopticCounts
from segiou.measures.surfaces import SurfaceOptions, SurfaceRows, measure_surfaces, surface_scores
from segiou.regions import label_components


def cases() -> dict[str, tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    rng = np.random.default_rng(0)
    return {
        name: (rng.integers(0, 2, (4, 4, 4), np.uint8), rng.integers(0, 2, (4, 4, 4), np.uint8))
        for name in ("a", "b")
    }


def surfaces() -> float:
    options = SurfaceOptions(tolerances=(1.0,))
    kept = SurfaceRows.joined(
        measure_surfaces(*pair, {"tumour": 1}, spacing=(1.0, 1.0, 2.5), options=options, case=name)
        for name, pair in cases().items()
    )
    assert kept[0]["label"] == "tumour"
    found = surface_scores(*cases()["a"], spacing=1.0)
    assert found
    distances = kept.summary()[0]["hausdorff_95"]
    assert isinstance(distances, dict)
    mean = distances["mean"]
    assert isinstance(mean, float)
    return mean


def boundaries(truth: NDArray[np.uint8], pred: NDArray[np.uint8]) -> NDArray[np.float64] | float:
    return boundary_iou(boundary_counts(truth, pred, 2))


def objects(truth: NDArray[np.uint8], pred: NDArray[np.uint8]) -> dict[str, float]:
    counts = PanopticCounts(["tissue", "tumour"], things=["tumour"])
    ids = label_components(truth), label_components(pred)
    counts.update(truth, ids[0], pred, ids[1])
    lesions = lesion_scores(truth > 0, pred > 0, spacing=1.0)
    return {"pq": float(counts.pq().mean()), "lesions": float(len(lesions))}


def score(folder: Path) -> None:
    run = segiou.score_folder(
        folder / "truth", folder / "pred", labels="brats2023", boundary=True, geometry="check"
    )
    report = run.report()
    report.save(folder / "report.html")
    for name, low in ((row.name, row.iou) for row in report.classes):
        assert name and low <= 1
