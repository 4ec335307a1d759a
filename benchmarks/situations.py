"""Simulated situations of a benchmark, measured in several processes with a seed of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np


class Cell(NamedTuple):
    """One simulated situation."""

    table: str
    measure: Callable[..., list[float]]
    design: str
    number: int
    options: tuple[float, ...] = ()


def measured(cell: Cell, samples: int) -> np.ndarray:
    """Means over the samples of a cell."""
    rng = np.random.default_rng([cell.number, *repr(cell[2:]).encode()])
    found = [cell.measure(cell.design, cell.number, rng, *cell.options) for _ in range(samples)]
    return np.nanmean(found, 0)


def print_cells(cells: Iterable[Cell], about: str, samples: int, line: Callable[..., str]) -> None:
    """Measure the cells of the tables on the command line, and print a line for each."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="tables to measure; all by default")
    parser.add_argument("--samples", type=int, default=samples)
    parser.add_argument("--workers", type=int, default=2)
    parsed = parser.parse_args()
    chosen = [cell for cell in cells if not parsed.tables or cell.table in parsed.tables]
    with ProcessPoolExecutor(parsed.workers) as pool:
        found = pool.map(measured, chosen, [parsed.samples] * len(chosen))
        for cell, means in zip(chosen, found, strict=True):
            options = " ".join(f"{option:g}" for option in cell.options)
            print(line(cell, options, means), flush=True)
