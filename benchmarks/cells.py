"""Cells compared with StarDist's matching: ``python -m benchmarks.cells [--rounds N]``.

One image of 512 × 512 pixels with about 200 cells; the results are checked. Processor time, medians
of alternating rounds. StarDist computes the counts of ten thresholds; segiou also AJI, AJI+, PQ,
SEG and Cellpose's AP.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from scipy import ndimage
from stardist.matching import matching

from benchmarks.counting import table
from benchmarks.reading import seconds
from segiou.measures.cells import cell_scores

THRESHOLDS = tuple(np.arange(0.5, 1, 0.05).round(2).tolist())


def scene() -> tuple[np.ndarray, np.ndarray]:
    """Ids of touching cells; some of the predictions are moved, split or missing."""
    rng = np.random.default_rng(0)
    seeds = rng.uniform(0, 512, (200, 2))
    grid = np.stack(np.mgrid[:512, :512], -1)
    distance = ((grid[:, :, None] - seeds) ** 2).sum(-1)
    truth = np.where(distance.min(-1) < 18**2, distance.argmin(-1) + 1, 0)
    pred = ndimage.shift(truth, (2, -1), order=0)
    pred[pred % 11 == 0] = 0
    pred[:, 256:][pred[:, 256:] % 7 == 1] += 200
    return truth.astype(np.int32), pred.astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    truth, pred = scene()
    theirs, ours = matching(truth, pred, thresh=THRESHOLDS), cell_scores(truth, pred)
    assert abs(ours["stardist_ap"] - np.mean([one.accuracy for one in theirs])) < 1e-12
    taken = seconds(
        {
            "segiou": partial(cell_scores, truth, pred),
            "StarDist": partial(matching, truth, pred, thresh=THRESHOLDS),
        },
        rounds,
    )
    own, other = (1e3 * value for value in taken.values())
    print(f"{len(np.unique(truth)) - 1} cells")
    print(
        table(
            ["ms per image", "StarDist", "×"],
            [[f"{own:.1f}", f"{other:.1f}", f"{other / own:.1f}"]],
        )
    )


if __name__ == "__main__":
    main()
