"""Surface distances of labels in 2-D and 3-D."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, Final, get_args

from segiou._support.arguments import check_choice, read_several
from segiou._support.text import Json
from segiou.boundary.surface_options import (
    CONVENTIONS,
    LONE,
    MEASURES,
    Scores,
    State,
    SurfaceOptions,
)
from segiou.boundary.surface_points import (
    Both,
    Label,
    SurfacePair,
    check_spacing,
    reached_by,
)
from segiou.counting.arrays import label_arrays

#: Former names of states, in saved rows.
_OLD_STATES: Final = {"invented": "false_positive"}


@dataclass(frozen=True)
class SurfaceRow:
    """Surface distances of one structure in one case.

    Attributes
    ----------
    label : int or str
        A label, or the name of a structure.
    case : str
    state : {"found", "missed", "false_positive", "absent"}
        Whether the structure is in both masks, only in the truth, only in the
        prediction, or in neither. A structure without a surface, because it
        touches only ignored voxels, counts as absent.
    diagonal : float
        Diagonal of the volume, in the unit of the spacing.
    sizes : (float, float)
        Surface of truth and prediction: area (length in 2-D), or number of voxels.
    tolerances : tuple of float
    within : tuple of (float, float)
        For each tolerance, the part of either surface within it.
    hausdorff, average : float
        NaN unless the structure was found.
    percentiles : tuple of float
        One value per percentile of the options; empty unless the structure was
        found.
    bands : tuple of (int, int, int)
        For each width of the options, the voxels in the band of the truth, of
        the prediction, and of both.
    """

    label: Label
    case: str
    state: State
    diagonal: float
    sizes: tuple[float, float]
    tolerances: tuple[float, ...]
    within: tuple[tuple[float, float], ...]
    hausdorff: float = math.nan
    average: float = math.nan
    percentiles: tuple[float, ...] = ()
    bands: tuple[tuple[int, int, int], ...] = ()

    def values(self, options: SurfaceOptions) -> Scores:
        """The scores by name, with the options' values if a mask is empty.

        Parameters
        ----------
        options : SurfaceOptions
            Options with which the row was measured.

        Returns
        -------
        dict
            ``"hausdorff"``, ``"hausdorff_95"``, …, ``"average_surface_distance"``, and
            ``"surface_dice"``, a dict by tolerance; with widths also
            ``"boundary_iou"``, a dict by width.
        """
        if self.state == "found":
            hausdorff, average, percentiles = self.hausdorff, self.average, self.percentiles
            shares = [sum(both) / sum(self.sizes) for both in self.within]
        else:
            hausdorff, percentile, average, share = (
                options.filling(measure, self.state, self.diagonal) for measure in MEASURES[:4]
            )
            percentiles = (percentile,) * len(options.percentiles)
            shares = [share] * len(self.tolerances)
        names = [f"hausdorff_{percentile:g}" for percentile in options.percentiles]
        found: Scores = {
            "hausdorff": hausdorff,
            **dict(zip(names, percentiles, strict=True)),
            "average_surface_distance": average,
            "surface_dice": dict(zip(self.tolerances, shares, strict=True)),
        }
        if options.widths:
            shares = [band_share(*band) for band in self.bands]
            found["boundary_iou"] = dict(zip(options.widths, shares, strict=True))
        return found

    def to_dict(self) -> dict[str, Json]:
        """The row as JSON-ready values; undefined distances are None."""
        plain = asdict(self)
        if self.state != "found":
            plain["hausdorff"] = plain["average"] = None
        if not self.bands:
            del plain["bands"]
        return plain

    @classmethod
    def from_dict(
        cls, state: Mapping[str, Any], options: SurfaceOptions | None = None
    ) -> SurfaceRow:
        """A row from the values of :meth:`to_dict`, also after JSON.

        Parameters
        ----------
        state : mapping
            Values of :meth:`to_dict`.
        options : SurfaceOptions, optional
            Options with which the row was measured, to check the values.

        Raises
        ------
        ValueError
            If a value is impossible with these options.
        """
        given = {**state, "state": _OLD_STATES.get(state["state"], state["state"])}
        if options is not None:
            _check_entry(given, options)
        given["within"] = tuple((float(a), float(b)) for a, b in given["within"])
        given["bands"] = tuple((int(a), int(b), int(c)) for a, b, c in given.get("bands", ()))
        for name in ("sizes", "tolerances", "percentiles"):
            given[name] = tuple(given[name])
        for name in ("hausdorff", "average"):
            given[name] = math.nan if given[name] is None else given[name]
        return cls(**given)


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
) -> list[SurfaceRow]:
    """Measure the surface distances of the structures of one case.

    Parameters
    ----------
    truth, pred : array_like of int or bool, equal shapes (H, W) or (D, H, W)
        Label images or volumes.
    structures : iterable of int, or mapping of label to int or iterable of int, optional
        Labels, or names with their labels; several labels form a region, and
        regions may overlap. By default every label present except 0.
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
    list of SurfaceRow
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
    >>> [(row.label, row.state, row.hausdorff) for row in rows]
    [('whole', 'found', 2.0), ('core', 'missed', nan)]
    """
    options = SurfaceOptions() if options is None else options
    sides = label_arrays(truth, pred)
    steps = check_spacing(sides[0], spacing, "surfaces")
    convention = CONVENTIONS[options.convention]
    pair = SurfacePair(*sides, steps, convention.surface, frozenset(as_values(ignore)), threads)
    named = named_values(structures)
    diagonal = math.hypot(*(n * step for n, step in zip(sides[0].shape, steps, strict=True)))
    rows = {}
    for label, both in pair.distances(named):
        if convention.percentile == "summed" and both.has_tie(options.percentiles):
            both = pair.each_distance((int(label),) if named is None else named[label])
        rows[label] = _row(label, case, both, diagonal, options)
    if named is None:
        named = {label: (int(label),) for label in sorted(rows)}
    ordered = [rows.get(label) or _row(label, case, Both(), diagonal, options) for label in named]
    if not options.widths:
        return ordered
    bands = dict(pair.bands(named, options.widths))
    none = ((0, 0, 0),) * len(options.widths)
    return [replace(row, bands=bands.get(row.label, none)) for row in ordered]


def surface_scores(
    truth: Any,
    pred: Any,
    *,
    labels: Iterable[int] | Mapping[str, int | Iterable[int]] | None = None,
    spacing: float | Sequence[float] | None = None,
    tolerances: Iterable[float] = (1.0,),
    convention: str = "segiou",
    widths: Iterable[float] = (),
    threads: int = 1,
    percentiles: Iterable[float] = (95.0,),
) -> dict[int | str, Scores]:
    """Measure the distances between the true and predicted surfaces of labels.

    A label also has a surface at the border of the array. All labels are measured
    in one call, each within its bounding box.

    Parameters
    ----------
    truth, pred : array_like of int or bool, equal shapes (H, W) or (D, H, W)
        Label images or volumes.
    labels : iterable of int or mapping of str to int or iterable of int, optional
        Labels, or the labels of each region by name; by default every label
        present except 0. A label given here that neither mask contains has NaN
        scores.
    spacing : float or sequence of float, optional
        Size of a voxel along each axis, in the unit of the results (mm); 1 by
        default.
    tolerances : iterable of float
        Tolerances of surface Dice.
    convention : {"segiou", "medpy", "monai", "surface-distance", "metricsreloaded"}
        Tool whose results are reproduced; see the notes.
    widths : iterable of float
        Widths of the bands of Boundary IoU; none by default. See the notes.
    threads : int
        Number of surfaces measured at once.
    percentiles : iterable of float
        Percentiles of the distances, from 0 to 100.

    Returns
    -------
    dict
        Label → ``{"hausdorff": …, "hausdorff_95": …, "average_surface_distance": …,
        "surface_dice": {tolerance: …}}``. In segiou's convention, a missed or
        false-positive label has infinite distances and surface Dice 0; a label
        absent from both masks has NaN. With widths also
        ``"boundary_iou": {width: …}``.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes differ or do not have two or three axes, a spacing is not
        positive, a tolerance is negative, or the convention is unknown.

    See Also
    --------
    measure_surfaces : Regions, ignored voxels and rows that can be stored.
    SurfaceAccumulator : Many cases.

    Notes
    -----
    medpy, MONAI and MetricsReloaded measure between voxels, and every voxel has
    the same weight, regardless of its shape. surface-distance and segiou measure
    between corners, weighted by the area of the surface there (Nikolov et al.
    2018), so the results depend less on the voxel shape. For a ball shifted by
    6 mm along different axes, on voxels of three shapes, surface Dice at 3 mm is
    0.62 to 0.69 by area and 0.35 to 0.70 by voxels. For two spheres 15 mm apart
    and voxels of 1 mm, the 95th percentile by area is closest to 15 (15.03; medpy
    15.13, MONAI 15.17), and every convention underestimates the average (14.42 by
    area, 14.74 by voxels).
    segiou differs from surface-distance in two ways: its average pools both
    surfaces, and it computes 95 % of the area exactly.

    Boundary IoU is the IoU of two bands. A voxel of a label is in the band if its
    centre is within the width of the centre of a voxel outside the label or
    outside the array. Computing it takes much longer than the surfaces.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.zeros((8, 8, 8), dtype=np.uint8)
    >>> truth[2:6, 2:6, 2:6] = 1
    >>> pred = np.roll(truth, 1, axis=0)
    >>> found = surface_scores(truth, pred, spacing=(3, 1, 1), tolerances=(1, 3))
    >>> found[1]["hausdorff"], found[1]["surface_dice"][3]
    (3.0, 1.0)
    """
    lengths: Any = {"tolerances": tolerances, "widths": widths, "percentiles": percentiles}
    options = SurfaceOptions(convention=convention, **lengths)
    rows = measure_surfaces(truth, pred, labels, spacing=spacing, options=options, threads=threads)
    return {row.label: row.values(options) for row in rows}


def _check_entry(entry: Mapping[str, Any], options: SurfaceOptions) -> None:
    """Reject impossible values, since a run file may be forged."""
    check_choice("state", entry["state"], get_args(State))
    found = entry["state"] == "found"
    lists = [entry["sizes"], entry["percentiles"], *entry["within"], *entry.get("bands", ())]
    lengths = [2, found * len(options.percentiles), *[2] * len(options.tolerances)]
    lengths += [3] * len(options.widths)
    numbers = [entry["diagonal"], *chain(*lists)]
    numbers += [entry["hausdorff"], entry["average"]] if found else []
    is_row = [*map(len, lists)] == lengths and {*map(type, numbers)} <= {int, float}
    if is_row:
        there, back = entry["sizes"]
        state = (*LONE, "found")[2 * (there > 0) + (back > 0)]
        most = [size * (1 + 1e-9) for size in entry["sizes"]]
        inside = all(
            part <= end for both in entry["within"] for part, end in zip(both, most, strict=True)
        )
        is_row = state == entry["state"] and inside and min(numbers) >= 0
    if not is_row:
        msg = f"not a row of these options: {dict(entry)!r:.100}"
        raise ValueError(msg)


def band_share(in_truth: int, in_pred: int, both: int) -> float:
    """Boundary IoU of two bands; NaN if both are empty."""
    union = in_truth + in_pred - both
    return both / union if union else math.nan


def as_values(given: int | Iterable[int]) -> tuple[int, ...]:
    """One or several labels."""
    return tuple(map(int, given)) if isinstance(given, Iterable) else (int(given),)


def named_values(
    structures: Iterable[int] | Mapping[Any, int | Iterable[int]] | None,
) -> dict[Label, tuple[int, ...]] | None:
    """The labels of each structure by name; None for None."""
    if structures is None:
        return None
    if not isinstance(structures, Mapping):
        structures = {
            int(label): int(label)
            for label in read_several("labels", structures, "a sequence of labels")
        }
    return {name: as_values(given) for name, given in structures.items()}


def _row(
    label: Label, case: str, both: Both, diagonal: float, options: SurfaceOptions
) -> SurfaceRow:
    """The row of one structure, from its distances."""
    there, back = both
    limits = options.tolerances_of.get(label, options.tolerances)
    state = (*LONE, "found")[2 * (there.size > 0) + (back.size > 0)]
    # The tools of the other conventions compare rounded numbers.
    reached = [reached_by(limit) if options.convention == "segiou" else limit for limit in limits]
    within = tuple((there.within(limit), back.within(limit)) for limit in reached)
    row = SurfaceRow(label, case, state, diagonal, (there.size, back.size), limits, within)
    if state != "found":
        return row
    how = CONVENTIONS[options.convention]
    return replace(
        row,
        hausdorff=float(max(there.values[-1], back.values[-1])),
        average=both.average(how.average),
        percentiles=tuple(both.percentile(how.percentile, p / 100) for p in options.percentiles),
    )
