"""How often the limits of ``segiou plan`` contain the right number of images.

    python -m benchmarks.planning                 # 1000 samples per cell
    python -m benchmarks.planning --samples 200   # a look
    python -m benchmarks.planning camvid          # some of the tables

The images are those of benchmarks.coverage. The right number is that of a very large pilot, and
samples of that number have intervals of the wanted width, which is checked first. Each line has the
share of pilots whose limits contain it, that of pilots with limits, that of pilots that ask for too
few, and the mean of log2 of the answer relative to the right one. The figures are in
docs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from benchmarks.coverage import CAMVID, GROUP, camvid, grouped, independent, predicted, truths
from benchmarks.situations import Cell, print_cells
from segiou.counting.counts import Counts
from segiou.planning import sample_sizes

_MANY, _CHECKED, _CLOSE = 20_000, 40, 0.05
#: Wanted half-width of the intervals of mean IoU.
WANTED = 0.02


def images(design: str, number: int, rng: np.random.Generator) -> tuple[Counts, None]:
    """Independent images."""
    return predicted(truths(design, independent(number, rng), rng), rng), None


def groups(design: str, number: int, rng: np.random.Generator) -> tuple[Counts, list[int]]:
    """Groups of ten images."""
    counts = predicted(truths(design, grouped(number * GROUP, rng), rng), rng)
    return counts, np.repeat(np.arange(number), GROUP).tolist()


def frames(design: str, number: int, rng: np.random.Generator) -> tuple[Counts, None]:
    """Frames of CamVid with replacement, of a network; one has most of the bicyclists it finds."""
    name, _, left_out = design.partition("-")
    counts = camvid(name, float(left_out or 0))
    return counts[rng.integers(0, len(counts.tp), number)], None


SOURCES = {"images": images, "groups": groups, "camvid": frames}


@cache
def right_number(table: str, design: str) -> int:
    """The number that a very large pilot asks for; intervals over so many have the wanted width."""
    rng = np.random.default_rng(1)
    counts, given = SOURCES[table](design, _MANY // (GROUP if table == "groups" else 1), rng)
    number = sample_sizes(counts, WANTED, groups=given).overall.needed
    assert number is not None
    widths = []
    for _ in range(_CHECKED):
        counts, given = SOURCES[table](design, number, rng)
        widths.append(sample_sizes(counts, WANTED, groups=given).overall.half_width)
    assert abs(np.median(widths) / WANTED - 1) < _CLOSE, (table, design, number, widths)
    return number


def pilot(table: str, design: str, number: int, rng: np.random.Generator) -> list[float]:
    """Whether the limits contain the right number; their presence; too few; log2 of the share."""
    counts, given = SOURCES[table](design, number, rng)
    found, right = sample_sizes(counts, WANTED, groups=given).overall, right_number(table, design)
    if found.low is None or found.needed is None:
        return [np.nan, 0.0, np.nan, np.nan]
    hit = found.low <= right and (found.high is None or right <= found.high)
    return [float(hit), 1.0, float(found.needed < right), float(np.log2(found.needed / right))]


def of_images(design: str, number: int, rng: np.random.Generator) -> list[float]:
    """A pilot of independent images."""
    return pilot("images", design, number, rng)


def of_groups(design: str, number: int, rng: np.random.Generator) -> list[float]:
    """A pilot of groups of ten images."""
    return pilot("groups", design, number, rng)


def of_frames(design: str, number: int, rng: np.random.Generator) -> list[float]:
    """A pilot of CamVid frames."""
    return pilot("camvid", design, number, rng)


def cells() -> Iterator[Cell]:
    """All situations, table by table."""
    for design in ("common", "skew"):
        for number in (10, 20, 50, 100):
            yield Cell("images", of_images, design, number)
        for number in (6, 10, 20, 50):
            yield Cell("groups", of_groups, design, number)
    if CAMVID.is_dir():
        for design in ("base", "base-1"):
            for number in (10, 20, 50):
                yield Cell("camvid", of_frames, design, number)


def line(cell: Cell, options: str, means: np.ndarray) -> str:
    """The shares of a cell."""
    hit, known, few, relative = means
    return (
        f"{cell.table:7} {cell.design:7} {cell.number:4}  coverage {100 * hit:5.1f}  "
        f"limits {100 * known:5.1f}  asks for too few {100 * few:5.1f}  "
        f"mean of log2(answer / right) {relative:5.2f}"
    )


if __name__ == "__main__":
    print_cells(cells(), __doc__, 1000, line)
