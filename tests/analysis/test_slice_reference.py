"""Slices of random data, with random options, against formulas written with NumPy alone.

Score, interval, difference to the rest (of one model, or the interaction of two), p, Holm's
adjustment, trend and mix. SEGIOU_SLOW=1 tests 500 data sets.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from segiou import Counts, Protocol, slices
from segiou.metrics import load_protocol

#: Tails of usual levels, whose limits are nested.
USUAL = 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0005
NODES, WEIGHTS = np.polynomial.legendre.leggauss(300)


@dataclass
class Scored:
    """A run as a comparison sees it."""

    name: str
    counts: Counts
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    include: np.ndarray
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))


def t_tail(x, freedom):
    """Tail of Student's t, by x = √ν tan θ."""
    end = math.pi / 2 - math.atan(x / math.sqrt(freedom))
    # u² = φ smooths the integrand at 0.
    u = math.sqrt(end) * (NODES + 1) / 2
    part = (WEIGHTS * 2 * u * np.sin(u * u) ** (freedom - 1)).sum() * math.sqrt(end) / 2
    gammas = math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    return part / (math.sqrt(math.pi) * math.exp(gammas))


@cache
def t_at(tail, freedom):
    low, high = -12.0, 25.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(2**middle, freedom) > tail else (low, middle)
    return 2**low


def ratio_of(metric, tp, fp, fn):
    """A score by the sums of counts."""
    weight = {"iou": 1.0, "dice": 0.5}[metric]
    with np.errstate(invalid="ignore", divide="ignore"):
        return tp / (tp + weight * (fp + fn))


@dataclass
class Side:
    """Units of a slice or a rest: for each model values and leave-one-out steps."""

    values: list
    steps: list
    seen: np.ndarray
    moved: np.ndarray | None = None

    @classmethod
    def of(cls, runs, inside, groups, metric, include):
        index = np.unique(groups[inside], return_inverse=True)[1]
        values, steps = [], []
        for run in runs:
            own = [np.zeros((index.max() + 1, len(include))) for _ in range(3)]
            for table, name in zip(own, ("tp", "fp", "fn"), strict=True):
                np.add.at(table, index, getattr(run.counts, name)[inside])
            whole = ratio_of(metric, *(table.sum(0) for table in own))
            without = ratio_of(metric, *(table.sum(0) - table for table in own))
            values.append(whole)
            steps.append(whole - without)
            truth = own[0] + own[2]
        # The mean over the classes that are left without a unit.
        means = []
        for whole, step in zip(values, steps, strict=True):
            alone = (whole - step)[:, include]
            there = np.isfinite(alone)
            mean = np.where(there, alone, 0).sum(1) / np.maximum(there.sum(1), 1)
            scored = whole[include][np.isfinite(whole[include])]
            means.append(scored.sum() / max(len(scored), 1) - mean)
        moved = means[-1] - means[0] if len(runs) > 1 else means[0]
        return cls(values, [np.nan_to_num(s) for s in steps], (truth > 0).sum(0), moved)

    def mean(self, classes):
        """The difference of two models, or the value of one, over some classes."""
        change = self.values[-1] - self.values[0] if len(self.values) > 1 else self.values[0]
        return change[classes].mean()

    def moves(self, classes):
        d = self.steps[-1] - self.steps[0] if len(self.steps) > 1 else self.steps[0]
        d = d[:, classes]
        return d, d.mean(1)

    def freedom(self, classes):
        """Satterthwaite's, of classes in at least two units."""
        d, _ = self.moves(classes)
        k, v = self.seen[classes] - 1.0, (d**2).sum(0)
        use = (k > 0) & (v > 0)  # a class in one unit has no degree of freedom
        if len(classes) == 1:
            return k[0]
        if not use.any():
            return len(d) - 1
        return np.clip(v[use].sum() ** 2 / (v[use] ** 2 / k[use]).sum(), 2, len(d) - 1)

    def reach(self, classes, tail, *, whole=False):
        """Distances of the limits; those of a mean are the largest at any lower level."""
        freedom = self.freedom(classes)
        t = t_at(tail, freedom)
        lower = np.r_[np.geomspace(0.25, 64, 25), [t_at(one, freedom) for one in USUAL]]
        if len(classes) == 1 or len(self.values) > 1:
            lower = lower[:0]
        tried = [self.reach_at(classes, one, whole=whole) for one in (*lower[lower < t], t)]
        return tuple(np.max(tried, 0).tolist())

    def reach_at(self, classes, t, *, whole):
        """Distances of the limits at a quantile, which are symmetric on the logit."""
        d, together = self.moves(classes)
        moved = self.moved if whole else together
        units, v, arms = len(d), (d**2).sum(0), []
        for values, steps in zip(self.values, self.steps, strict=True):
            x = values[classes]
            width = t * np.sqrt((steps[:, classes] ** 2).sum(0))
            with np.errstate(all="ignore"):  # scores of 0 and 1, and classes in one unit
                odds, move = np.log(x / (1 - x)), width / (x * (1 - x))
                low = (x - 1 / (1 + np.exp(move - odds))) / width
                high = (1 / (1 + np.exp(-move - odds)) - x) / width
            fine = np.isfinite(low) & np.isfinite(high) & (width > 0)
            arms.append([np.where(fine, one, 1.0) for one in (low, high)])
        down, up = arms[-1]
        if len(arms) > 1:
            down, up = np.maximum(down, arms[0][1]), np.maximum(up, arms[0][0])
        if len(classes) == 1:  # without the shrinkage and the bias of a mean
            own = t * math.sqrt(v[0])
            return (own, own) if len(arms) > 1 else (own * down[0], own * up[0])
        if not moved.any():
            return math.nan, math.nan
        shrink = (units - 1) / units
        bias = shrink * moved.sum() if len(arms) == 1 else 0.0
        wider = t * math.sqrt(1 + bias**2 / (shrink * (moved**2).sum()))
        return tuple(
            wider * math.sqrt(shrink * ((moved - together + (d * arm).mean(1)) ** 2).sum())
            for arm in (down, up)
        )


def gap_of(slice_, rest, groups, include, tail):
    """Slice minus rest: value, low, high and number of classes."""
    (own, inside), (other, outside) = slice_, rest
    classes = np.flatnonzero(include & (own.seen >= 2) & (other.seen >= 2))
    y, z = (side.moves(classes)[1] for side in (own, other))
    both = np.intersect1d(
        np.unique(groups[inside]), np.unique(groups[outside]), return_indices=True
    )
    rho = (y[both[1]] @ z[both[2]]) / math.sqrt((y @ y) * (z @ z))
    (a, b), (c, d) = own.reach(classes, tail), other.reach(classes, tail)
    delta = own.mean(classes) - other.mean(classes)
    low = delta - math.sqrt(a * a + d * d - 2 * rho * a * d)
    return delta, low, delta + math.sqrt(b * b + c * c - 2 * rho * b * c), len(classes)


def mix_of(sides, shares, tail, *, whole):
    """A weighted mean of slices, whose common units are correlated."""
    scores = [side.mean(there) for side, _, there in sides]
    if min(len(units) for _, units, _ in sides) < 3:
        return shares @ np.array(scores), math.nan, math.nan
    reach = np.array([side.reach(there, tail, whole=whole) for side, _, there in sides]).T
    moves = [side.moved if whole else side.moves(there)[1] for side, _, there in sides]
    _, mine, theirs = np.intersect1d(sides[0][1], sides[1][1], return_indices=True)
    rho = moves[0][mine] @ moves[1][theirs]
    scale = math.sqrt((moves[0] @ moves[0]) * (moves[1] @ moves[1]))
    rho = rho / scale if scale else 0.0
    value, arms = shares @ np.array(scores), reach * shares
    down, up = (math.sqrt(a * a + b * b + 2 * rho * a * b) for a, b in arms)
    return value, value - down, value + up


def trend_of(runs, x, groups, include, metric, tail):
    """Change between two percentiles: the slope of the influence of units, with HC3 errors."""
    side = Side.of(runs, np.ones(len(groups), bool), groups, metric, include)
    classes = np.flatnonzero(include & np.isfinite(sum(side.values)) & (side.seen >= 2))
    d, moves = side.moves(classes)
    units, k, v = len(moves), side.seen[classes] - 1.0, (d**2).sum(0)
    y = units * moves * (1 if len(classes) == 1 else math.sqrt((units - 1) / units))
    mean = np.bincount(groups, x) / np.bincount(groups)
    design = np.column_stack([np.ones(units), mean])
    inverse = np.linalg.inv(design.T @ design)
    slope = (inverse @ design.T @ y)[1]
    hat = np.einsum("ij,jk,ik->i", design, inverse, design)
    rest = (y - design @ inverse @ design.T @ y) / (1 - hat)
    error = math.sqrt((inverse @ (design.T * rest**2) @ design @ inverse)[1, 1])
    freedom = np.clip(v.sum() ** 2 / (v**2 / k).sum(), 2, units - 1)
    if len(runs) > 1:  # a difference of means has those of its units
        freedom = units - 1
    freedom = min(units - 2, k[0] if len(classes) == 1 else freedom)
    start, end = np.quantile(mean, [0.1, 0.9])
    half = t_at(tail, freedom) * error
    ends = [(end - start) * one for one in (slope, slope - half, slope + half)]
    return *ends, 2 * t_tail(abs(slope) / error, freedom)


def sampled(seed):
    """Runs, columns and options that nobody has seen."""
    rng = np.random.default_rng(seed)
    number, classes, models = rng.integers(24, 90), rng.integers(2, 9), 1 + seed % 2
    ids = tuple(f"{i:03}" for i in range(number))
    truth = rng.integers(200, 5000, (number, classes))
    truth[rng.random((number, classes)) < rng.choice([0, 0.3, 0.7])] = 0
    truth[0], truth[-1] = 300, 300
    include = np.arange(classes) != (classes - 1 if classes > 3 and rng.random() < 0.3 else -1)
    quality = 1 / (1 + np.exp(-rng.normal(1, 0.8, (number, 1)) - rng.normal(0, 0.5, truth.shape)))
    runs = []
    for name in "AB"[:models]:
        tp = rng.binomial(truth, np.clip(quality + rng.normal(0, 0.05, truth.shape), 0.05, 0.95))
        fp = rng.poisson(rng.uniform(20, 400, classes), truth.shape)
        counts = Counts(tp, fp, truth - tp, 100_000 - truth - fp)
        runs.append(Scored(name, counts, ids, tuple(f"c{c}" for c in range(classes)), include))
    columns = {
        f"k{k}": [f"v{v}" for v in rng.integers(0, rng.integers(2, 6), number)] for k in range(2)
    }
    columns["k0"] = [None if rng.random() < 0.1 else value for value in columns["k0"]]
    columns["x"] = rng.normal(50, 20, number).tolist()
    groups = np.arange(number) // rng.integers(1, 4)
    options = {
        "metric": str(rng.choice(["iou", "dice"])),
        "level": float(rng.choice([0.8, 0.9, 0.95, 0.99])),
        "against": "v1" if rng.random() < 0.3 else None,
        "mix": {"k1": {"v0": 0.7, "v1": 0.3}} if {"v0", "v1"} <= {*columns["k1"]} else None,
    }
    return runs, columns, groups, include, options


@pytest.mark.parametrize("seed", range(500 if os.environ.get("SEGIOU_SLOW") else 8))
@pytest.mark.gate
def test_slices_equal_the_formulas(seed):
    runs, columns, groups, include, options = sampled(seed)
    metric, tail = options["metric"], (1 - options["level"]) / 2
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    by = dict(zip(runs[0].ids, rows, strict=True))
    found = slices(*runs, by=by, groups=groups.tolist(), **options)
    p = {}
    for name in ("k0", "k1"):
        own = np.array([value or "" for value in columns[name]])
        known = own != ""
        values = sorted({*own[known].tolist()})
        for value in values:
            inside = own == value
            rest = known & ~inside
            if options["against"] in values:
                rest = (own == options["against"]) & ~inside
            one = found[f"{name}={value}"]
            slice_, other = (
                Side.of(runs, at, groups, metric, include) if at.sum() else None
                for at in (inside, rest)
            )
            units = [len(np.unique(groups[at])) for at in (inside, rest)]
            assert one.units == units[0]
            if units[0] >= 3:
                there = np.flatnonzero(include & np.isfinite(sum(slice_.values)))
                down, up = slice_.reach(there, tail, whole=len(runs) == 1)
                if math.isnan(down):  # no unit changes the score
                    continue
                score = slice_.mean(there)
                assert one.score == pytest.approx(score, abs=1e-6)
                if len(runs) > 1:  # from permutations: tests/inference/test_paired.py
                    excluded = one.low > 0 or one.high < 0
                    assert excluded == (one.p < 1 - options["level"] - 1e-9)
                    assert one.low <= one.score <= one.high
                else:
                    ends = max(score - down, 0.0), min(score + up, 1.0)
                    assert (one.low, one.high) == pytest.approx(ends, abs=1e-6)
            common = other and include & (slice_.seen >= 2) & (other.seen >= 2)
            if min(units) < 3 or not common.any():
                assert math.isnan(one.gap.value)
                continue
            both = (slice_, inside), (other, rest)
            expected = gap_of(*both, groups, include, tail)
            gap = one.gap
            shown = (gap.value, gap.low, gap.high, gap.classes)
            if len(runs) > 1:  # limits of both differences are from permutations
                assert (gap.value, gap.classes) == pytest.approx(expected[::3], abs=1e-6)
                assert gap.low <= gap.value <= gap.high
            else:
                assert shown == pytest.approx(expected, abs=1e-6)
            assert math.isnan(gap.p) == (min(units) < 5)
            if min(units) >= 5 and len(runs) > 1:
                excluded = gap.low > 0 or gap.high < 0
                assert excluded == (gap.p < 1 - options["level"] - 1e-9)
            elif min(units) >= 5:
                _, low, high, _ = gap_of(*both, groups, include, gap.p / 2)
                near = 1e-6 if gap.p > 1e-7 else 1e-3  # levels near 1 are rounded
                assert (low if gap.value > 0 else high) == pytest.approx(0, abs=near)
            if min(units) >= 5:
                # Two complements are one test.
                key = name if len(values) == 2 else one.name
                p.setdefault(key, []).append(gap)
    for mix in found.mixes:
        sides = []
        for value in mix.shares:
            inside = np.array(columns["k1"]) == value
            side = Side.of(runs, inside, groups, metric, include)
            there = np.flatnonzero(include & np.isfinite(sum(side.values)))
            sides.append((side, np.unique(groups[inside]), there))
        expected = mix_of(sides, [*mix.shares.values()], tail, whole=len(runs) == 1)
        if len(runs) > 1:
            assert mix.score == pytest.approx(expected[0], abs=1e-6)
            assert math.isnan(mix.low) or mix.low <= mix.score <= mix.high
        else:
            assert (mix.score, mix.low, mix.high) == pytest.approx(expected, abs=1e-6, nan_ok=True)
    (trend,) = found.trends
    expected = trend_of(runs, columns["x"], groups, include, metric, tail)
    shown = (trend.change, trend.low, trend.high, trend.p)
    assert shown == pytest.approx(expected, abs=1e-6)
    each = [(gaps[0].p, gaps) for gaps in p.values()] + [(trend.p, [trend])]
    assert found.tests == len(each)
    largest = 0.0
    for place, (own, gaps) in enumerate(sorted(each, key=lambda one: one[0])):
        largest = max(largest, min(own * (len(each) - place), 1.0))
        assert [gap.p_holm for gap in gaps] == pytest.approx([largest] * len(gaps))
