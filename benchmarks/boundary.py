"""Boundaries on CamVid pairs, all classes: segiou compared with common implementations.

``python -m benchmarks.boundary`` checks that all agree, and prints the factors quoted in the
documentation.
"""

import statistics
import time
import warnings
from pathlib import Path

import numpy as np

from segiou.measures.boundary import BACKEND, BoundaryOptions, boundary_counts, boundary_iou
from segiou.measures.surfaces import SurfaceOptions, measure_surfaces

CAMVID = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
CLASSES, VOID, WIDTH, TOLERANCE = 11, 11, 12, 2.0
BANDS = BoundaryOptions("2%", trimaps=False)


def camvid_pairs(count=12):
    """Truth and prediction, with the same fill for void, because no other tool can ignore it."""
    from PIL import Image

    paths = sorted((CAMVID / "truth").glob("*.png"))
    chosen = paths[:: max(1, len(paths) // count)][:count]
    pairs = [
        (np.array(Image.open(CAMVID / side / p.name)) for side in ("truth", "base")) for p in chosen
    ]
    return [(t, np.where(t == VOID, VOID, p).astype(np.uint8)) for t, p in pairs]


def erode_opencv(mask):
    """The reference implementation: OpenCV merges the iterations into one."""
    import cv2

    padded = cv2.copyMakeBorder(mask, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    return cv2.erode(padded, np.ones((3, 3), np.uint8), iterations=WIDTH)[1:-1, 1:-1]


def erode_opencv_iterated(mask):
    """Erosion by 3 x 3, iterated."""
    import cv2

    eroded = cv2.copyMakeBorder(mask, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    for _ in range(WIDTH):
        eroded = cv2.erode(eroded, np.ones((3, 3), np.uint8))
    return eroded[1:-1, 1:-1]


def erode_scipy(mask):
    """Erosion by 3 x 3, iterated, in SciPy."""
    from scipy import ndimage

    eroded = ndimage.binary_erosion(np.pad(mask, 1), np.ones((3, 3)), iterations=WIDTH)
    return eroded[1:-1, 1:-1].astype(np.uint8)


def boundary_iou_by(erode):
    def measure(truth, pred):
        both, either = np.zeros((2, CLASSES), dtype=int)
        for c in range(CLASSES):
            t, p = ((x == c).astype(np.uint8) for x in (truth, pred))
            t, p = t - erode(t), p - erode(p)
            both[c], either[c] = np.count_nonzero(t & p), np.count_nonzero(t | p)
        return both, either

    return measure


def bands_here(truth, pred):
    """Boundary counts of the classes."""
    return boundary_counts(truth, pred, CLASSES, ignore=VOID, options=BANDS)


def surfaces_here(convention):
    """Surface scores of the classes by a convention; void is a label like others."""
    options = SurfaceOptions((TOLERANCE,), convention=convention)

    def measure(truth, pred):
        rows = measure_surfaces(truth, pred, range(CLASSES), options=options)
        return rows.shares("surface_dice")[:, 0], rows.values()["hausdorff_95"]

    return measure


def surface_distance(truth, pred):
    import surface_distance as peer

    dice, farthest = np.full((2, CLASSES), np.nan)
    for c in range(CLASSES):
        t, p = truth == c, pred == c
        if t.any() and p.any():
            found = peer.compute_surface_distances(t, p, (1.0, 1.0))
            dice[c] = peer.compute_surface_dice_at_tolerance(found, TOLERANCE)
            farthest[c] = peer.compute_robust_hausdorff(found, 95)
    return dice, farthest


def one_hot(mask):
    import torch

    return torch.as_tensor(np.stack([mask == c for c in range(CLASSES)])[None])


def monai(name, **options):
    """One of MONAI's functions, applied to label maps."""

    def measure(truth, pred):
        from monai import metrics

        function = getattr(metrics, name)
        found = function(one_hot(pred), one_hot(truth), include_background=True, **options)
        return found.numpy()[0]

    return measure


THRESHOLDS = {"class_thresholds": [TOLERANCE] * CLASSES}
#: Group -> tool -> function of truth and prediction; segiou first.
CONTESTS = {
    "Boundary IoU": {
        "segiou": bands_here,
        "3 x 3, OpenCV, iterations merged": boundary_iou_by(erode_opencv),
        "3 x 3, OpenCV, iterated": boundary_iou_by(erode_opencv_iterated),
        "3 x 3, SciPy, iterated": boundary_iou_by(erode_scipy),
    },
    "surface Dice and 95 % Hausdorff, elements": {
        "segiou": surfaces_here("segiou"),
        "surface-distance": surface_distance,
        "MONAI surface Dice alone": monai("compute_surface_dice", use_subvoxels=True, **THRESHOLDS),
    },
    "surface Dice and 95 % Hausdorff, pixels": {
        "segiou": surfaces_here("monai"),
        "MONAI surface Dice alone": monai("compute_surface_dice", **THRESHOLDS),
        "MONAI Hausdorff alone": monai("compute_hausdorff_distance", percentile=95),
    },
}


def check(pairs):
    """Reject implementations that differ."""
    for truth, pred in pairs:
        filled = [np.where(labels == VOID, 3, labels) for labels in (truth, pred)]
        ours = boundary_iou(bands_here(*filled))[0]
        for erode in (erode_opencv, erode_opencv_iterated, erode_scipy):
            both, either = boundary_iou_by(erode)(*filled)
            seen = either > 0
            np.testing.assert_allclose(ours[seen], both[seen] / either[seen], rtol=1e-15)
        check_surfaces(truth, pred)


def check_surfaces(truth, pred):
    for tools in [*CONTESTS.values()][1:]:
        dice, farthest = tools["segiou"](truth, pred)
        both = np.isfinite(farthest)  # classes in both masks
        for name, measure in tools.items():
            found = measure(truth, pred)
            # Each of MONAI's functions computes one score, in float32.
            if "Dice" in name:
                pairs = [(dice, found)]
            elif "Hausdorff" in name:
                pairs = [(farthest, found)]
            else:
                pairs = zip((dice, farthest), found, strict=True)
            for ours, theirs in pairs:
                np.testing.assert_allclose(theirs[both], ours[both], rtol=3e-6, err_msg=name)


def seconds(measure, truth, pred):
    start = time.perf_counter()
    measure(truth, pred)
    return time.perf_counter() - start


def compare(contestants, pairs, rounds=5):
    """Median times, and median ratios to segiou's time on the same pair."""
    times = {name: [] for name in contestants}
    order = list(contestants)
    for _ in range(rounds):
        for pair in pairs:
            # The first tool reads from memory, the others from cache, so the order rotates.
            order = [*order[1:], order[0]]
            for name in order:
                times[name].append(seconds(contestants[name], *pair))
    factors = {
        name: [t / own for t, own in zip(row, times["segiou"], strict=True)]
        for name, row in times.items()
    }
    return {n: (statistics.median(times[n]), statistics.median(factors[n])) for n in times}


def main():
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    pairs = camvid_pairs()
    check(pairs[:4])
    print(f"{len(pairs)} CamVid pairs of 480 x 360, {CLASSES} classes, one thread, {BACKEND}")
    for group, contestants in CONTESTS.items():
        print(group)
        for name, (median, factor) in compare(contestants, pairs).items():
            print(f"  {name:36} {median * 1000:8.2f} ms per pair {factor:7.1f} x")


if __name__ == "__main__":
    main()
