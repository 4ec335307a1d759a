"""Coverage of the intervals of map accuracy: ``python -m benchmarks.map_coverage``.

Samples from maps with known errors, with the strata of the map and with others, and counts how
often each interval contains the true value.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from segiou.maps import map_accuracy

#: Shares of the area: reference class by map class; table 8 of Olofsson et al. (2014).
SHARES = np.array(
    [
        [0.0176, 0, 0.0019, 0.0040],
        [0, 0.0110, 0, 0.0020],
        [0.0013, 0.0016, 0.2967, 0.0179],
        [0.0011, 0.0024, 0.0213, 0.6212],
    ]
)
NAMES = ("overall", "kappa", "users", "producers", "f1", "areas")


def true_values(p: np.ndarray) -> dict[str, np.ndarray]:
    """The scores of the whole map."""
    agreed, chance = np.trace(p), p.sum(1) @ p.sum(0)
    right = np.diag(p)
    return {
        "overall": np.array([agreed]),
        "kappa": np.array([(agreed - chance) / (1 - chance)]),
        "users": right / p.sum(0),
        "producers": right / p.sum(1),
        "f1": 2 * right / (p.sum(0) + p.sum(1)),
        "areas": p.sum(1),
    }


def coverage(units: list[int], samples: int, *, mixed: bool, seed: int = 0) -> dict[str, list]:
    """Share of intervals that contain the true value, for each score and class."""
    rng = np.random.default_rng(seed)
    p = SHARES / SHARES.sum()
    # Strata that are not the classes: each class of the map is split between two of them.
    split = np.array([0.7 * np.eye(4)[h] + 0.3 * np.eye(4)[h - 1] for h in range(4)])
    cells = split[:, None, :] * p if mixed else np.eye(4)[:, None, :] * p
    truth, found = true_values(p), defaultdict(list)
    areas = cells.sum((1, 2))
    for _ in range(samples):
        counts = [
            rng.multinomial(n, (c / c.sum()).ravel()) for n, c in zip(units, cells, strict=True)
        ]
        at = np.repeat(np.arange(4 * 16), np.concatenate(counts))
        table = {"reference": at % 16 // 4, "map": at % 4}
        if len(set(table["map"])) < 4:
            continue
        drawn = map_accuracy(table, areas, strata=at // 16) if mixed else map_accuracy(table, areas)
        for name in NAMES:
            value = getattr(drawn, name)
            value = value if isinstance(value, tuple) else (value,)
            found[name].append(
                [
                    one.low <= true <= one.high if np.isfinite(one.low) else np.nan
                    for one, true in zip(value, truth[name], strict=True)
                ]
            )
    return {name: np.nanmean(rows, axis=0).tolist() for name, rows in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    count = parser.parse_args().samples
    for mixed in (False, True):
        for units in ([75, 75, 165, 325], [30, 30, 60, 120], [300, 300, 600, 1200]):
            print("other strata" if mixed else "strata = map", units)
            for name, shares in coverage(units, count, mixed=mixed).items():
                print(f"  {name:10}", " ".join(f"{100 * share:5.1f}" for share in shares))
