"""How many planted errors of truth masks are ranked first: ``python -m benchmarks.suspects``.

The CamVid frames of the benchmarks are taken as right, and one error is planted in a share of
them: an object labelled as its surroundings, an object of a wrong class, a part of 1 to 20 % of
the image with a wrong class, or two classes exchanged. Images are ranked by their suspects, with
regions and without, and by pixel accuracy and mean IoU; the figure is the average precision.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import ndimage

import segiou

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
CLASSES, VOID = 11, 11
RANKINGS = ("regions", "matrices", "accuracy", "mean IoU")


def objects(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """A random component of a class, of 0.2 to 8 % of the image."""
    for c in rng.permutation(CLASSES):
        ids, number = ndimage.label(truth == c, np.ones((3, 3)))
        sizes = np.bincount(ids.ravel())[1:] / truth.size
        fit = np.flatnonzero((sizes > 0.002) & (sizes < 0.08))
        if number and len(fit):
            return ids == 1 + rng.choice(fit)
    return None


def missing(truth: np.ndarray, rng: np.random.Generator) -> None:
    """Label an object as its surroundings."""
    if (where := objects(truth, rng)) is not None:
        around = truth[ndimage.binary_dilation(where, iterations=4) & ~where]
        around = around[around != VOID]
        truth[where] = np.bincount(around, minlength=1).argmax() if len(around) else VOID


def flipped(truth: np.ndarray, rng: np.random.Generator) -> None:
    """Give an object a wrong class."""
    if (where := objects(truth, rng)) is not None:
        truth[where] = (truth[where][0] + rng.integers(1, CLASSES)) % CLASSES


def part(truth: np.ndarray, rng: np.random.Generator) -> None:
    """Give a rectangle of 1 to 20 % of the image the class of another place."""
    area = truth.size * rng.uniform(0.01, 0.2)
    height = int(np.clip(np.sqrt(area * rng.uniform(0.5, 2)), 8, truth.shape[0] - 1))
    width = int(np.clip(area / height, 8, truth.shape[1] - 1))
    top, left = (rng.integers(0, n - m) for n, m in zip(truth.shape, (height, width), strict=True))
    inside = truth[top : top + height, left : left + width]
    others = np.setdiff1d(np.unique(truth), [VOID, np.bincount(inside.ravel()).argmax()])
    inside[inside != VOID] = rng.choice(others)


def exchanged(truth: np.ndarray, rng: np.random.Generator) -> None:
    """Exchange two classes."""
    a, b = rng.choice(np.setdiff1d(np.unique(truth), [VOID]), 2, replace=False)
    first, second = truth == a, truth == b
    truth[first], truth[second] = b, a


KINDS = (missing, flipped, part, exchanged)


def average_precision(scores: np.ndarray, wrong: np.ndarray) -> float:
    """Mean precision at the wrong images, ties in the order of the images."""
    ranked = wrong[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(ranked) / np.arange(1, len(ranked) + 1))[ranked].mean())


def rankings(run: segiou.Run) -> dict[str, np.ndarray]:
    """The scores of the images, large for those to look at first."""
    found = {name: np.zeros(len(run)) for name in RANKINGS}
    place = {id: i for i, id in enumerate(run.ids)}
    for image in segiou.find_suspects(run).images:
        found["regions"][place[image.id]] = image.score
    by = {"matrices": "suspects", "accuracy": "pixel_accuracy", "mean IoU": "mean_iou"}
    for name, score in by.items():
        sign = 1 if score == "suspects" else -1
        for row in run.worst(len(run), by=score):
            found[name][place[str(row["id"])]] = sign * float(row[score])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=15)
    draws = parser.parse_args().draws
    ids = sorted(path.stem for path in (DATA / "truth").glob("*.png"))
    read = [np.asarray(Image.open(DATA / "truth" / f"{id}.png")) for id in ids]
    preds = [np.asarray(Image.open(DATA / "base" / f"{id}.png")) for id in ids]
    options = {"labels": CLASSES, "ignore": VOID, "measures": ["suspects"]}
    start = time.perf_counter()
    segiou.score(read, preds, **options)
    print(f"{len(ids)} frames counted in {time.perf_counter() - start:.2f} s")
    print(f"{'wrong':>6}", *(f"{name:>16}" for name in RANKINGS))
    for share in (0.05, 0.1, 0.2):
        values = []
        for seed in range(draws):
            rng = np.random.default_rng([seed, int(100 * share)])
            wrong = np.zeros(len(ids), bool)
            wrong[rng.choice(len(ids), max(2, round(share * len(ids))), replace=False)] = True
            truths = [mask.copy() if bad else mask for mask, bad in zip(read, wrong, strict=True)]
            for i in np.flatnonzero(wrong):
                KINDS[rng.integers(len(KINDS))](truths[i], rng)
            found = rankings(
                segiou.score(
                    dict(zip(ids, truths, strict=True)),
                    dict(zip(ids, preds, strict=True)),
                    **options,
                )
            )
            values.append([average_precision(found[name], wrong) for name in RANKINGS])
        means, spread = np.mean(values, 0), 1.96 * np.std(values, 0, ddof=1) / np.sqrt(draws)
        print(f"{share:6.0%}", *(f"{m:8.3f} ± {s:.3f}" for m, s in zip(means, spread, strict=True)))
        assert means[0] > means[2], "regions must be ahead of accuracy"


if __name__ == "__main__":
    main()
