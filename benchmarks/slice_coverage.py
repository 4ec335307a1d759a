"""How often intervals of slices contain the true difference to the rest, and false claims.

    python -m benchmarks.slice_coverage                 # 1000 samples per cell
    python -m benchmarks.slice_coverage --samples 200   # a look
    python -m benchmarks.slice_coverage claims          # one of the tables

Images are those of benchmarks.paired_coverage. A slice of 3 to 30 images has the difficulty of the
rest (null), is more difficult (shift), or varies 2.8 times as much as the rest (unequal) or the
rest as it (unequal2); the truth is the difference between very large sets of both. For two models,
the interval is that of the interaction. Each line has the coverage, the mean width in points, and
the share of intervals that exclude 0. The table of claims has five columns of four random values;
its share is that of samples in which a slice is claimed to differ. The figures are in
docs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.paired_coverage import DESIGNS, models
from benchmarks.situations import Cell, print_cells
from segiou.analysis.slices.search import slices
from segiou.counting.counts import Counts
from segiou.metrics.overall import mean_iou
from segiou.metrics.protocols import Protocol, load_protocol

#: Spread of the difficulty in the slice and in the rest, and the shift of the slice.
KINDS = [(1.0, 1.0, 0.0), (2.8, 1.0, 0.0), (1.0, 2.8, 0.0), (1.0, 1.0, -1.2)]
_MANY, _RHO = 100_000, 0.8


class Scored(NamedTuple):
    """A run as the analysis of slices sees it."""

    name: str
    counts: Counts
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    include: np.ndarray
    protocol: Protocol


def _run(name: str, counts: Counts) -> Scored:
    number, classes = counts.tp.shape
    names = tuple(map(str, range(classes)))
    ids = tuple(map(str, range(number)))
    return Scored(name, counts, ids, names, np.ones(classes, bool), load_protocol("segiou"))


@cache
def _truth(design: str, spread: float, shift: float, lift: float | None) -> float:
    """The score of a very large set, or of two models the difference of their scores."""
    rng = np.random.default_rng(3)
    pair = models(design, _RHO, lift or 0.0, spread * rng.normal(size=_MANY) + shift, rng)
    first, second = (float(mean_iou(one.summed())) for one in pair)
    return first if lift is None else second - first


def side(
    design: str, number: int, rng: np.random.Generator, rest: float, kind: float, two: float
) -> list[float]:
    """A slice and the rest, of one model or of two."""
    wide, wide_rest, shift = KINDS[int(kind)]
    lift = 0.3 if two else None
    inside = np.arange(number + int(rest)) < number
    difficulty = rng.normal(size=len(inside)) * np.where(inside, wide, wide_rest) + shift * inside
    pair = models(design, _RHO, lift or 0.0, difficulty, rng)
    runs = [_run(name, counts) for name, counts in zip("AB", pair, strict=True)][: 1 + int(two)]
    by = {id: "s" if own else "r" for id, own in zip(runs[0].ids, inside, strict=True)}
    gap = slices(*runs, by=by, groups="none")["slice=s"].gap
    if np.isnan(gap.low):
        return [np.nan] * 3
    truth = _truth(design, wide, shift, lift) - _truth(design, wide_rest, 0.0, lift)
    hit = gap.low <= truth <= gap.high
    return [float(hit), 100 * (gap.high - gap.low), float(gap.low > 0 or gap.high < 0)]


def claims(design: str, number: int, rng: np.random.Generator, uneven: float) -> list[float]:
    """Whether anything is claimed about five random columns of four values."""
    run = _run("A", models(design, _RHO, 0.0, rng.normal(size=number), rng)[0])
    shares = [0.7, 0.2, 0.07, 0.03] if uneven else [0.25] * 4
    columns = rng.choice(4, (number, 5), p=shares)
    rows = [
        {"id": id, **{f"c{i}": str(value) for i, value in enumerate(own)}}
        for id, own in zip(run.ids, columns, strict=True)
    ]
    return [float(any(one.differs(0.95) for one in slices(run, by=rows, groups="none")))]


def cells() -> Iterator[Cell]:
    """All situations, table by table."""
    sizes = [(3, 3), (3, 30), (5, 5), (5, 50), (10, 10), (10, 100), (30, 30)]
    for two in (0, 1):
        for design in DESIGNS:
            for kind in range(len(KINDS)):
                for own, rest in sizes:
                    yield Cell("models" if two else "slices", side, design, own, (rest, kind, two))
    for number in (60, 200):
        for uneven in (0, 1):
            yield Cell("claims", claims, "skew", number, (uneven,))


def line(cell: Cell, options: str, means: np.ndarray) -> str:
    """The means of a cell."""
    if len(means) == 1:
        return f"{cell.table:8} {cell.design:7} {cell.number:4}  {options:9} {100 * means[0]:5.1f}"
    hit, width, out = means
    return (
        f"{cell.table:8} {cell.design:7} {cell.number:4}  {options:9} coverage {100 * hit:5.1f}  "
        f"width {width:5.1f}  excludes 0 {100 * out:5.1f}"
    )


if __name__ == "__main__":
    print_cells(cells(), __doc__, 1000, line)
