"""Boundary measures as rows: what reports, CSV and plots are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.boundary.counts import BoundaryCounts
from segiou.boundary.measures import (
    BAND_MEASURES,
    CONTOUR_MEASURES,
    average_surface_distance,
    hausdorff_distance,
    trimap_accuracy,
)
from segiou.metrics import Floats, mean
from segiou.metrics._include import included

__all__ = ["boundary_rows"]


def boundary_rows(
    counts: BoundaryCounts, class_names: Sequence[str] | None = None, *, include: Any = None
) -> list[dict[str, Any]]:
    """Give every measure at every tolerance, per class and as the mean over classes.

    Parameters
    ----------
    counts : BoundaryCounts
        Without leading axes.
    class_names : sequence of str, optional
        By default the class indices.
    include : array_like of bool, shape (C,), optional
        Classes that take part in the means.

    Returns
    -------
    list of dict
        ``measure``, ``tolerance`` (a string such as "2%", or None),
        ``contour`` (or None), ``mean``, ``mean_classes`` (how many classes it
        covers), and ``classes``, a mapping of class name to value.

    Raises
    ------
    ValueError
        If the counts have leading axes or the names are too few or many.

    Examples
    --------
    >>> from segiou.boundary import BoundaryOptions, boundary_counts
    >>> options = BoundaryOptions(widths=1, trimaps=False, contours=())
    >>> rows = boundary_rows(boundary_counts([[0, 1]], [[0, 1]], 2, options=options), ["a", "b"])
    >>> rows[0]["measure"], rows[0]["tolerance"], rows[0]["mean"], rows[0]["classes"]
    ('boundary_iou', '1', 1.0, {'a': 1.0, 'b': 1.0})
    """
    if counts.table.ndim != 1:
        msg = f"rows are made of one set of counts, got {counts.table.shape[:-1]}; sum them first"
        raise ValueError(msg)
    names = list(map(str, range(counts.num_classes))) if class_names is None else list(class_names)
    if len(names) != counts.num_classes:
        msg = f"there are {counts.num_classes} classes but {len(names)} class names"
        raise ValueError(msg)
    taken = included(include, len(names))
    return [*_band_rows(counts, names, taken), *_contour_rows(counts, names, taken)]


def _band_rows(
    counts: BoundaryCounts, names: list[str], taken: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    measures = (
        BAND_MEASURES if counts.options.trimaps else {"boundary_iou": BAND_MEASURES["boundary_iou"]}
    )
    rows = [
        _row(name, str(width), None, values, names, taken)
        for name, measure in measures.items()
        for width, values in zip(counts.options.widths, measure(counts), strict=True)
    ]
    if counts.options.trimaps:
        for width, value in zip(counts.options.widths, trimap_accuracy(counts), strict=True):
            rows.append(
                {
                    "measure": "trimap_accuracy",
                    "tolerance": str(width),
                    "contour": None,
                    "mean": float(value),
                    "mean_classes": None,
                    "classes": {},
                }
            )
    return rows


def _contour_rows(
    counts: BoundaryCounts, names: list[str], taken: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    rows = []
    for contour in counts.options.contours:
        for name, measure in CONTOUR_MEASURES.items():
            values = measure(counts, contour)
            for tolerance, row in zip(counts.options.tolerances, values, strict=True):
                rows.append(_row(name, str(tolerance), contour, row, names, taken))
        for name, row in (
            ("average_surface_distance", average_surface_distance(counts, contour)),
            ("hausdorff_95", hausdorff_distance(counts, 95.0, contour)),
            ("hausdorff", hausdorff_distance(counts, 100.0, contour)),
        ):
            rows.append(_row(name, None, contour, row, names, taken))
    return rows


def _row(
    measure: str,
    tolerance: str | None,
    contour: str | None,
    values: Floats,
    names: list[str],
    taken: NDArray[np.bool_],
) -> dict[str, Any]:
    return {
        "measure": measure,
        "tolerance": tolerance,
        "contour": contour,
        "mean": float(mean(values, taken)),
        "mean_classes": int((values == values)[taken].sum()),
        "classes": dict(zip(names, values.tolist(), strict=True)),
    }
