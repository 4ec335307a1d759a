"""Coverage of the intervals of raters' agreement: ``python -m benchmarks.rater_coverage``.

Cases are sampled from a pool whose agreement is known. A share of the structures is missed by one
of the two raters, and the worst mean is that of the tenth of cases with the lowest Dice.
"""

from __future__ import annotations

import argparse

import numpy as np

from segiou.inference import worst_mean_limits
from segiou.raters.scores import rater_agreement
from segiou.raters.votes import Votes

NAMES = ("dice", "mean_dice", "fleiss_kappa", "krippendorff_alpha")
POOL, PIXELS = 4000, 400


def pool(missed: float, rng: np.random.Generator) -> tuple[list[Votes], np.ndarray]:
    """Votes of two raters on cases of a row of pixels, and the Dice of each case."""
    votes, dice = [], []
    for size in np.exp(rng.normal(3.5, 0.6, POOL)).clip(6, 300).astype(int):
        masks = np.zeros((2, PIXELS), np.int64)
        for mask in masks:
            start, stop = rng.normal(0, 0.06 * size, 2).round().astype(int)
            mask[30 + start : max(30 + start + 1, 30 + size + stop)] = 1
        if rng.random() < missed:
            masks[rng.integers(2)] = 0
        votes.append(Votes.of([mask[None] for mask in masks])[0])
        dice.append(2 * (masks[0] & masks[1]).sum() / masks.sum())
    return votes, np.array(dice)


def found(votes: list[Votes]) -> dict[str, object]:
    """The estimates of both raters."""
    ids = [str(i) for i in range(len(votes))]
    result = rater_agreement(votes, ids, ("a", "b"), ("0", "1"))
    (pair,) = (one for one in result.pairs if one.class_name == "1")
    return {name: getattr(pair if "dice" in name else result, name) for name in NAMES}


def coverage(missed: float, number: int, samples: int, seed: int) -> dict[str, float]:
    """Share of 95 % intervals that contain the value of the pool."""
    rng = np.random.default_rng([seed, number])
    votes, dice = pool(missed, rng)
    true = {name: one.value for name, one in found(votes).items()}
    true["worst_mean"] = float(np.sort(dice)[: POOL // 10].mean())
    inside = dict.fromkeys(true, 0)
    for _ in range(samples):
        chosen = rng.integers(0, POOL, number)
        for name, one in found([votes[i] for i in chosen]).items():
            inside[name] += one.low <= true[name] <= one.high
        low, high = worst_mean_limits(dice[chosen], 10)
        inside["worst_mean"] += low <= true["worst_mean"] <= high
    return {name: hits / samples for name, hits in inside.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    count = parser.parse_args().samples
    for missed in (0.0, 0.01, 0.05):
        for number in (20, 50, 100):
            shares = coverage(missed, number, count, seed=0)
            print(missed, number, *(f"{name} {100 * x:.1f}" for name, x in shares.items()))
