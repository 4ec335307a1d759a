"""Surface distances of labels in 2-D and 3-D."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import check_integer, check_kind, read_several
from segiou.counting.arrays import label_arrays
from segiou.measures.surfaces.rows import STATES, SurfaceRows, row_type
from segiou.regions.conventions import CONVENTIONS, LONE
from segiou.regions.surface_points import Both, Label, SurfacePair, check_spacing, reached_by
from segiou.regions.tolerance import length_in

if TYPE_CHECKING:
    from segiou.measures.surfaces.options import SurfaceOptions


def measure_surfaces(
    truth: Any,
    pred: Any,
    structures: Iterable[int] | Mapping[Any, int | Iterable[int]] | None = None,
    *,
    ignore: int | Iterable[int] = (),
    spacing: float | Sequence[float] | None = None,
    options: SurfaceOptions | None = None,
    case: str = "",
    threads: int = 1,
) -> SurfaceRows:
    """Measure the surface distances of the structures of one case.

    Parameters
    ----------
    truth, pred : array_like of int or bool, equal shapes (H, W) or (D, H, W)
        Label images or volumes.
    structures : iterable of int, or mapping of label to int or iterable of int, optional
        Labels, or names with their labels; several labels form a region, and
        regions may overlap. By default every label except 0 that has a surface.
    ignore : int or iterable of int
        Truth values whose voxels are skipped regardless of the prediction; they
        form no surface with a structure.
    spacing : float or sequence of float, optional
        Size of a voxel along each axis; 1 by default.
    options : SurfaceOptions, optional
        Options of the measurement.
    case : str
        Name of the case in its rows.
    threads : int
        Number of surfaces measured at once.

    Returns
    -------
    SurfaceRows
        One row per structure.

    Raises
    ------
    TypeError, ValueError
        As for :func:`surface_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.zeros((8, 8, 8), dtype=np.uint8)
    >>> truth[2:6, 2:6, 2:6] = 1
    >>> truth[4:6, 2:6, 2:6] = 2
    >>> rows = measure_surfaces(truth, truth * (truth == 1), {"whole": (1, 2), "core": 2})
    >>> [(row["label"], row["state"], row["hausdorff"]) for row in rows]
    [('whole', 'found', 2.0), ('core', 'missed', inf)]
    """
    from segiou.measures.surfaces.options import SurfaceOptions

    options = SurfaceOptions() if options is None else options
    check_kind("options", options, SurfaceOptions, "SurfaceOptions")
    sides = label_arrays(truth, pred)
    steps = check_spacing(sides[0], spacing, "surfaces")
    convention = CONVENTIONS[options.convention]
    check_integer("threads", threads, 1)
    skipped = frozenset(as_values("ignore", ignore))
    pair = SurfacePair(*sides, steps, convention.surface, skipped, threads, border=options.border)
    by_name = named_values(structures)
    distances = convention.distances(pair, by_name, options.percentiles)
    if by_name is None:
        by_name = {label: (int(label),) for label in sorted(distances)}
    numbers = np.full(len(by_name), np.nan, row_type(options))
    extent = (n * step for n, step in zip(sides[0].shape, steps, strict=True))
    numbers["diagonal"], numbers["bands"] = math.hypot(*extent), 0
    for row, label in zip(numbers, by_name, strict=True):
        _fill(row, label, distances.get(label, Both()), options)
    if options.widths:
        _fill_bands(numbers["bands"], pair, by_name, options.widths)
    return SurfaceRows(options, (case,) * len(by_name), tuple(by_name), numbers)


def _fill_bands(
    bands: Any,
    pair: SurfacePair,
    by_name: Mapping[Label, tuple[int, ...]],
    widths: tuple[float, ...],
) -> None:
    """Write the voxels in the bands of the structures that are present."""
    places = {label: index for index, label in enumerate(by_name)}
    for label, counts in pair.bands(by_name, widths):
        bands[places[label]] = counts


def _fill(row: Any, label: Label, sides: Both, options: SurfaceOptions) -> None:
    """Write the numbers of one structure into its row."""
    convention = CONVENTIONS[options.convention]
    sizes = [side.size for side in sides]
    row["state"] = STATES.index((*LONE, "found")[2 * (sizes[0] > 0) + (sizes[1] > 0)])
    row["sizes"] = sizes
    # The tools of the other conventions compare rounded numbers.
    is_exact = options.convention == "segiou"
    for index, limit in enumerate(options.tolerances_at(label)):
        distance = length_in(limit, float(row["diagonal"]))
        reached = reached_by(distance) if is_exact else distance
        row["within"][index] = [side.within(reached) for side in sides]
    if all(sizes):
        row["hausdorff"] = max(side.values[-1] for side in sides)
        row["average"] = sides.average(convention.average)
        shares = [percentile / 100 for percentile in options.percentiles]
        row["percentiles"] = [sides.percentile(convention.percentile, share) for share in shares]


def as_values(name: str, labels: int | Iterable[int]) -> tuple[int, ...]:
    """One or several labels."""
    is_one = isinstance(labels, str) or not isinstance(labels, Iterable)
    several: Iterable[Any] = (labels,) if is_one else labels  # type: ignore[assignment]
    return tuple(check_integer(name, label) for label in several)


def named_values(
    structures: Iterable[int] | Mapping[Any, int | Iterable[int]] | None,
) -> dict[Label, tuple[int, ...]] | None:
    """The labels of each structure by name; None for None."""
    if structures is None:
        return None
    if not isinstance(structures, Mapping):
        structures = {
            label: label
            for label in as_values(
                "labels", read_several("labels", structures, "a sequence of labels")
            )
        }
    return {name: as_values("labels", labels) for name, labels in structures.items()}
