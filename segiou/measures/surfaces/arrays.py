"""Surface distances of the structures of two arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from segiou.measures.surfaces.measuring import measure_surfaces
from segiou.measures.surfaces.options import SurfaceOptions
from segiou.regions.tolerance import Length


def surface_scores(
    truth: Any,
    pred: Any,
    *,
    labels: Iterable[int] | Mapping[str, int | Iterable[int]] | None = None,
    spacing: float | Sequence[float] | None = None,
    tolerances: Iterable[Length] = (1.0,),
    convention: str = "segiou",
    widths: Iterable[float] = (),
    threads: int = 1,
    percentiles: Iterable[float] = (95.0,),
) -> dict[int | str, dict[str, Any]]:
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
    tolerances : iterable of float or str
        Tolerances of surface Dice and boundary F1, such as 1 or ``"0.75%"`` of the
        diagonal.
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
        "surface_dice": {tolerance: …}, …}``, with ``"boundary_precision"``,
        ``"boundary_recall"`` and ``"boundary_f1"`` like ``"surface_dice"``. In
        segiou's convention, a missed or false-positive label has infinite distances
        and surface Dice 0; a label absent from both masks has NaN. With widths also
        ``"boundary_iou": {width: …}``.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes differ or do not have two or three axes, a spacing is not
        positive, a tolerance is negative, or the convention is unknown.

    See Also
    --------
    measure_surfaces : Regions, ignored voxels and rows that can be stored.
    segiou.scoring.Evaluator : Many cases.

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
    >>> scores = surface_scores(truth, pred, spacing=(3, 1, 1), tolerances=(1, 3))
    >>> scores[1]["hausdorff"], scores[1]["surface_dice"][3]
    (3.0, 1.0)
    """
    lengths: Any = {"tolerances": tolerances, "widths": widths, "percentiles": percentiles}
    options = SurfaceOptions(convention=convention, **lengths)
    rows = measure_surfaces(truth, pred, labels, spacing=spacing, options=options, threads=threads)
    return {row.pop("label"): _scores(row) for row in rows}


def _scores(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("case", "state")}
