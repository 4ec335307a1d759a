"""Boundary scores: pure functions from ``BoundaryCounts`` to float64.

A class without a boundary on either side is NaN. A class with a boundary on
only one side scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from segiou._support.text import Json
from segiou.counting.counts import Counts
from segiou.measures.boundary.sums import BoundaryCounts
from segiou.metrics.overall import mean, pixel_accuracy
from segiou.metrics.per_class import iou
from segiou.metrics.ratio import Floats, included, ratio

__all__ = [
    "BAND_MEASURES",
    "band_iou",
    "boundary_iou",
    "boundary_rows",
    "class_trimap_accuracy",
    "class_trimap_iou",
    "trimap_accuracy",
    "trimap_iou",
]


def boundary_iou(counts: BoundaryCounts) -> Floats:
    """Boundary IoU per width and class: IoU of the inner bands, shape (..., K, C).

    ``|(G_d ∩ G) ∩ (P_d ∩ P)| / |(G_d ∩ G) ∪ (P_d ∩ P)|``, where X_d are the
    pixels within d of X's contour.

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.

    References
    ----------
    B. Cheng et al., CVPR 2021, eq. 2, arXiv 2103.16562.
    """
    return iou(counts.band_counts())


def band_iou(counts: Counts) -> Floats:
    """Boundary IoU from band counts, (..., C), for functions that work on plain counts.

    Parameters
    ----------
    counts : Counts
        Counts in the bands, (..., C).
    """
    return iou(counts)


# Results are named after the measure.
band_iou.__name__ = "boundary_iou"


def trimap_iou(counts: BoundaryCounts) -> Floats:
    """IoU per width and class in the band around all boundaries of the truth, shape (..., K, C).

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.

    References
    ----------
    P. Krähenbühl and V. Koltun, NIPS 2011, section 5.
    """
    return iou(counts.trimap_counts())


def trimap_accuracy(counts: BoundaryCounts) -> Floats:
    """Share of correct pixels in the band around all boundaries of the truth, shape (..., K).

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.

    References
    ----------
    P. Kohli et al., IJCV 82 (2009), section 6.
    """
    return pixel_accuracy(counts.trimap_counts())


def class_trimap_iou(counts: BoundaryCounts) -> Floats:
    """Trimap IoU per width and class, in the band around its truth boundary, shape (..., K, C).

    ``|G_d ∩ (G ∩ P)| / |G_d ∩ (G ∪ P)|``; not symmetric, since the band follows the truth.

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.

    References
    ----------
    B. Cheng et al., CVPR 2021, section 3.
    """
    return iou(counts.class_trimap_counts())


def class_trimap_accuracy(counts: BoundaryCounts) -> Floats:
    """Share of correct pixels (class or not) near the class's truth boundary, (..., K, C).

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.
    """
    near = counts.class_trimap_counts()
    return ratio(near.tp + near.tn, near.total)


#: Measures of shape (..., K, C), by the names used in reports.
BAND_MEASURES: dict[str, Callable[[BoundaryCounts], Floats]] = {
    "boundary_iou": boundary_iou,
    "trimap_iou": trimap_iou,
    "class_trimap_iou": class_trimap_iou,
    "class_trimap_accuracy": class_trimap_accuracy,
}


def boundary_rows(
    counts: BoundaryCounts, class_names: Sequence[str] | None = None, *, include: Any = None
) -> list[dict[str, Json]]:
    """Every measure at every width, per class and as the mean over classes.

    Parameters
    ----------
    counts : BoundaryCounts
        Counts without leading axes.
    class_names : sequence of str, optional
        By default the class indices.
    include : array_like of bool, shape (C,), optional
        Classes included in the means.

    Returns
    -------
    list of dict
        ``measure``, ``tolerance`` (the width, a string such as "2%"), ``mean``,
        ``mean_classes`` (number of classes averaged), and ``classes``, a mapping
        of class name to value.

    Raises
    ------
    ValueError
        If the counts have leading axes, or the number of names is wrong.

    Examples
    --------
    >>> from segiou.measures.boundary import BoundaryOptions, boundary_counts
    >>> options = BoundaryOptions(widths=1, trimaps=False)
    >>> rows = boundary_rows(boundary_counts([[0, 1]], [[0, 1]], 2, options=options), ["a", "b"])
    >>> rows[0]["measure"], rows[0]["tolerance"], rows[0]["mean"], rows[0]["classes"]
    ('boundary_iou', '1', 1.0, {'a': 1.0, 'b': 1.0})
    """
    if counts.table.ndim != 1:
        msg = f"expected one set of counts, got leading axes {counts.table.shape[:-1]}; sum first"
        raise ValueError(msg)
    names = list(map(str, range(counts.num_classes))) if class_names is None else list(class_names)
    if len(names) != counts.num_classes:
        msg = f"expected {counts.num_classes} class names, got {len(names)}"
        raise ValueError(msg)
    selected = included(include, len(names))
    rows: list[dict[str, Any]] = []
    for measure, width, values in _measured(counts):
        of_classes = values.ndim > 0
        rows.append(
            {
                "measure": measure,
                "tolerance": width,
                "mean": float(mean(values, selected) if of_classes else values),
                "mean_classes": int((values == values)[selected].sum()) if of_classes else None,
                "classes": dict(zip(names, values.tolist(), strict=True)) if of_classes else {},
            }
        )
    return rows


def _measured(counts: BoundaryCounts) -> Iterator[tuple[str, str, Floats]]:
    """Measure, width, and values per class (or one value for all classes)."""
    bands: dict[str, Callable[[BoundaryCounts], Floats]] = {"boundary_iou": boundary_iou}
    if counts.options.trimaps:
        bands = {**BAND_MEASURES, "trimap_accuracy": trimap_accuracy}
    for name, of_band in bands.items():
        for width, values in zip(counts.options.widths, of_band(counts), strict=True):
            yield name, str(width), np.asarray(values)
