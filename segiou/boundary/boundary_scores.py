"""Boundary scores: pure functions from ``BoundaryCounts`` to float64.

A class without a boundary on either side is NaN. A class with a boundary on
only one side scores 0, and its distances are infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_number
from segiou._support.text import Json
from segiou.boundary.boundary_options import (
    FIXED_POINT,
    BoundaryOptions,
    Contour,
    bin_distances,
)
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.boundary.contours import element_lengths, percentile_place
from segiou.counting.counts import Counts
from segiou.metrics.overall import mean, pixel_accuracy
from segiou.metrics.per_class import iou
from segiou.metrics.ratio import Floats, included, ratio

__all__ = [
    "BAND_MEASURES",
    "CONTOUR_MEASURES",
    "average_surface_distance",
    "band_iou",
    "boundary_f1",
    "boundary_iou",
    "boundary_precision",
    "boundary_recall",
    "boundary_rows",
    "class_trimap_accuracy",
    "class_trimap_iou",
    "hausdorff_distance",
    "surface_dice",
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
    own = counts.class_trimap_counts()
    return ratio(own.tp + own.tn, own.total)


def boundary_precision(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Share of the predicted boundary within each tolerance of the true one, shape (..., S, C).

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.
    contour : Contour, optional
        Kind of contour; by default the first measured.

    References
    ----------
    G. Csurka et al., BMVC 2013, eq. 3.
    """
    return _matched_share(counts, contour, 1)


def boundary_recall(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Share of the true boundary within each tolerance of the predicted one, shape (..., S, C).

    Parameters
    ----------
    counts, contour
        As for :func:`boundary_precision`.

    References
    ----------
    G. Csurka et al., BMVC 2013, eq. 3.
    """
    return _matched_share(counts, contour, 0)


def boundary_f1(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Boundary F1 (BF): harmonic mean of boundary precision and recall, shape (..., S, C).

    Parameters
    ----------
    counts, contour
        As for :func:`boundary_precision`.

    References
    ----------
    G. Csurka et al., BMVC 2013, eq. 3.
    """
    return f1_of_lengths(*_lengths(counts, contour))


def f1_of_lengths(matched: Floats, total: Floats) -> Floats:
    """Boundary F1 from matched and total lengths of truth and prediction, (..., 2, C)."""
    r, p = _share(matched, total, 0), _share(matched, total, 1)
    return np.where(p + r == 0, 0.0, 2 * ratio(p * r, p + r))


def surface_dice(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Normalised surface Dice: share of both boundaries within each tolerance, shape (..., S, C).

    Computed from lengths of surface elements for the contour "elements" (Nikolov
    et al.; surface-distance), and from pixels for "pixels" (MONAI's default).

    Parameters
    ----------
    counts, contour
        As for :func:`boundary_precision`.

    References
    ----------
    S. Nikolov et al., arXiv 1809.04430 (2018), section "Surface DSC".
    """
    return dice_of_lengths(*_lengths(counts, contour))


def dice_of_lengths(matched: Floats, total: Floats) -> Floats:
    """Surface Dice from matched and total lengths of truth and prediction, (..., 2, C)."""
    return ratio(matched.sum(-2), total.sum(-2))


def average_surface_distance(
    counts: BoundaryCounts,
    contour: Contour | None = None,
    *,
    direction: Literal["both", "truth_to_pred", "pred_to_truth"] = "both",
    lone: Literal["infinite", "skip"] = "infinite",
) -> Floats:
    """Average distance between the boundaries, weighted by length, per class, (..., C).

    Sums are kept in steps of the resolution / 65536; an image's own
    exact value comes from :meth:`ContourDistances.average`.

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.
    contour : {"pixels", "elements"}, optional
        By default the first measured.
    direction : {"both", "truth_to_pred", "pred_to_truth"}
        Points to average over.
    lone : {"infinite", "skip"}
        Whether a boundary whose class has none on the other side of the same
        image counts as infinitely far or is skipped.

    """
    sides = {"both": slice(None), "truth_to_pred": slice(1), "pred_to_truth": slice(1, 2)}
    check_choice("direction", direction, list(sides))
    check_choice("lone", lone, ("infinite", "skip"))
    chosen, parts = counts.contour_parts(contour)
    lengths = element_lengths(chosen, counts.options.spacing)
    sums = parts["distance"] @ lengths * (counts.options.resolution / FIXED_POINT)
    far = parts["histogram"][..., -1] @ lengths
    total = parts["total"] @ lengths
    if lone == "skip":
        total = total - far
    else:
        sums = np.where(far > 0, np.inf, sums)
        empty = (total == 0) & (total.sum(-2, keepdims=True) > 0)
        sums = np.where(empty & (direction != "both"), np.inf, sums)
        total = np.where(empty & (direction != "both"), 1.0, total)
    side = sides[direction]
    return ratio(sums[..., side, :].sum(-2), total[..., side, :].sum(-2))


def hausdorff_distance(
    counts: BoundaryCounts, percentile: float = 95.0, contour: Contour | None = None
) -> Floats:
    """Percentile of the distances pooled over all images, per class, (..., C).

    The result is the larger percentile of both directions: the smallest histogram
    bin within which at least that share of the boundary length lies;
    :func:`segiou.boundary.bin_distances` documents the rounding. 100 gives the
    Hausdorff distance of the whole data set.

    Parameters
    ----------
    counts : BoundaryCounts
        Boundary counts.
    percentile : float, default 95.0
        Between 0 and 100.
    contour : Contour, optional
        Kind of contour; by default the first measured.

    Raises
    ------
    ValueError
        If the percentile is outside [0, 100].
    """
    check_number("percentile", percentile, 0, 100)
    chosen, parts = counts.contour_parts(contour)
    return distance_of_histograms(parts["histogram"], percentile, chosen, counts.options)


def distance_of_histograms(
    histogram: NDArray[Any], percentile: float, contour: Contour, options: BoundaryOptions
) -> Floats:
    """The larger percentile of both directions, from histograms (..., 2, C, W, bins)."""
    place, is_empty = _places(np.moveaxis(histogram, -1, -2), percentile, contour, options.spacing)
    values = np.where(is_empty, np.nan, bin_distances(options.resolution)[place])
    there, back = values[..., 0, :], values[..., 1, :]
    return np.where(np.isnan(there) != np.isnan(back), np.inf, np.fmax(there, back))


def _places(
    elements: NDArray[Any], percentile: float, contour: Contour, spacing: tuple[float, float]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The places of percentiles of elements (..., bins, W), and where there are none."""
    if elements.shape[-1] == 1:  # integers are compared exactly
        reached, share = np.cumsum(elements[..., 0], axis=-1), Fraction(str(percentile)) / 100
        needed = np.maximum(reached[..., -1:] * share.numerator, 1)
        return (reached * share.denominator >= needed).argmax(-1), reached[..., -1] == 0
    lengths = np.cumsum(elements @ element_lengths(contour, spacing), axis=-1)
    whole = lengths[..., -1]
    limit = whole[..., None] * (percentile / 100)
    place = (lengths >= np.maximum(limit * (1 - 1e-9), np.finfo(np.float64).tiny)).argmax(-1)
    there = np.take_along_axis(lengths, place[..., None], -1)
    close = (whole > 0) & (there <= limit * (1 + 1e-9))[..., 0]
    for row in map(tuple, np.argwhere(close).tolist()):  # rounding could decide
        place[row] = percentile_place(elements[row], contour, spacing, percentile)
    return place, whole == 0


#: Measures of shape (..., K, C), by the names used in reports.
BAND_MEASURES: dict[str, Callable[[BoundaryCounts], Floats]] = {
    "boundary_iou": boundary_iou,
    "trimap_iou": trimap_iou,
    "class_trimap_iou": class_trimap_iou,
    "class_trimap_accuracy": class_trimap_accuracy,
}
#: Measures of shape (..., S, C), by the names used in reports.
CONTOUR_MEASURES: dict[str, Callable[[BoundaryCounts, Contour | None], Floats]] = {
    "boundary_precision": boundary_precision,
    "boundary_recall": boundary_recall,
    "boundary_f1": boundary_f1,
    "surface_dice": surface_dice,
}


def _lengths(counts: BoundaryCounts, contour: Contour | None) -> tuple[Floats, Floats]:
    chosen, parts = counts.contour_parts(contour)
    lengths = element_lengths(chosen, counts.options.spacing)
    return parts["matched"] @ lengths, (parts["total"] @ lengths)[..., None, :, :]


def _matched_share(counts: BoundaryCounts, contour: Contour | None, side: int) -> Floats:
    """Matched share of one side's boundaries; 0 if only the other side has the class."""
    return _share(*_lengths(counts, contour), side)


def _share(matched: Floats, total: Floats, side: int) -> Floats:
    share = ratio(matched[..., side, :], total[..., side, :])
    return np.where(np.isnan(share) & (total.sum(-2) > 0), 0.0, share)


def boundary_rows(
    counts: BoundaryCounts, class_names: Sequence[str] | None = None, *, include: Any = None
) -> list[dict[str, Json]]:
    """Every measure at every tolerance, per class and as the mean over classes.

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
        ``measure``, ``tolerance`` (a string such as "2%", or None),
        ``contour`` (or None), ``mean``, ``mean_classes`` (number of classes
        averaged), and ``classes``, a mapping of class name to value.

    Raises
    ------
    ValueError
        If the counts have leading axes, or the number of names is wrong.

    Examples
    --------
    >>> from segiou.boundary import BoundaryOptions, boundary_counts
    >>> options = BoundaryOptions(widths=1, trimaps=False, contours=())
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
    taken = included(include, len(names))
    rows: list[dict[str, Any]] = []
    for measure, tolerance, contour, values in _measured(counts):
        of_classes = values.ndim > 0
        rows.append(
            {
                "measure": measure,
                "tolerance": tolerance,
                "contour": contour,
                "mean": float(mean(values, taken) if of_classes else values),
                "mean_classes": int((values == values)[taken].sum()) if of_classes else None,
                "classes": dict(zip(names, values.tolist(), strict=True)) if of_classes else {},
            }
        )
    return rows


def _measured(counts: BoundaryCounts) -> Iterator[tuple[str, str | None, str | None, Floats]]:
    """Measure, tolerance, contour, and values per class (or one value for all classes)."""
    options = counts.options
    bands: dict[str, Callable[[BoundaryCounts], Floats]] = {"boundary_iou": boundary_iou}
    if options.trimaps:
        bands = {**BAND_MEASURES, "trimap_accuracy": trimap_accuracy}
    for name, of_band in bands.items():
        for width, values in zip(options.widths, of_band(counts), strict=True):
            yield name, str(width), None, np.asarray(values)
    for contour in options.contours:
        for name, of_contour in CONTOUR_MEASURES.items():
            for limit, values in zip(options.tolerances, of_contour(counts, contour), strict=True):
                yield name, str(limit), contour, values
        yield "average_surface_distance", None, contour, average_surface_distance(counts, contour)
        for name, percentile in (("hausdorff_95", 95.0), ("hausdorff", 100.0)):
            yield name, None, contour, hausdorff_distance(counts, percentile, contour)
