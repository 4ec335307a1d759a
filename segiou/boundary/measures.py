"""Ratios of boundary counts: pure functions from ``BoundaryCounts`` to float64.

A class without any boundary on either side is NaN; with a boundary on one
side only it scores 0, and its distances are infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from segiou.boundary.contours import kind_lengths
from segiou.boundary.counts import BoundaryCounts
from segiou.boundary.options import Contour
from segiou.boundary.scale import FIXED_POINT, bin_values
from segiou.metrics import Floats, iou, pixel_accuracy
from segiou.metrics._ratio import ratio

__all__ = [
    "BAND_MEASURES",
    "CONTOUR_MEASURES",
    "average_surface_distance",
    "boundary_f1",
    "boundary_iou",
    "boundary_precision",
    "boundary_recall",
    "class_trimap_accuracy",
    "class_trimap_iou",
    "hausdorff_distance",
    "surface_dice",
    "trimap_accuracy",
    "trimap_iou",
]


def boundary_iou(counts: BoundaryCounts) -> Floats:
    """Boundary IoU per width and class: IoU of the inner bands of truth and prediction.

    |(G_d ∩ G) ∩ (P_d ∩ P)| / |(G_d ∩ G) ∪ (P_d ∩ P)|, where X_d are the
    pixels within d of X's contour.

    Returns
    -------
    ndarray of float64, shape (..., K, C)

    References
    ----------
    B. Cheng et al., CVPR 2021, eq. 2, arXiv 2103.16562.
    """
    return iou(counts.band_counts())


def trimap_iou(counts: BoundaryCounts) -> Floats:
    """IoU per width and class in the band around all boundaries of the truth, shape (..., K, C).

    References
    ----------
    P. Krähenbühl and V. Koltun, NIPS 2011, section 5.
    """
    return iou(counts.trimap_counts())


def trimap_accuracy(counts: BoundaryCounts) -> Floats:
    """Share of right pixels in the band around all boundaries of the truth, shape (..., K).

    References
    ----------
    P. Kohli et al., IJCV 82 (2009), section 6.
    """
    return pixel_accuracy(counts.trimap_counts())


def class_trimap_iou(counts: BoundaryCounts) -> Floats:
    """Trimap IoU per width and class, in the band around that class's truth boundary.

    |G_d ∩ (G ∩ P)| / |G_d ∩ (G ∪ P)|; not symmetric, since the band is the truth's.

    Returns
    -------
    ndarray of float64, shape (..., K, C)

    References
    ----------
    B. Cheng et al., CVPR 2021, section 3.
    """
    return iou(counts.class_trimap_counts())


def class_trimap_accuracy(counts: BoundaryCounts) -> Floats:
    """Share of right pixels, class against rest, near the class's truth boundary, (..., K, C)."""
    own = counts.class_trimap_counts()
    return ratio(own.tp + own.tn, own.total)


def boundary_precision(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Share of the predicted boundary within each tolerance of the truth's, shape (..., S, C).

    References
    ----------
    G. Csurka et al., BMVC 2013, eq. 3.
    """
    matched, total = _lengths(counts, contour)
    return _zero_where_lone(ratio(matched[..., 1, :], total[..., 1, :]), total)


def boundary_recall(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Share of the truth's boundary within each tolerance of the predicted one, shape (..., S, C).

    References
    ----------
    G. Csurka et al., BMVC 2013, eq. 3.
    """
    matched, total = _lengths(counts, contour)
    return _zero_where_lone(ratio(matched[..., 0, :], total[..., 0, :]), total)


def boundary_f1(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Boundary F1 (BF): harmonic mean of boundary precision and recall, shape (..., S, C).

    References
    ----------
    G. Csurka et al., BMVC 2013, eq. 3.
    """
    p, r = boundary_precision(counts, contour), boundary_recall(counts, contour)
    return np.where(p + r == 0, 0.0, 2 * ratio(p * r, p + r))


def surface_dice(counts: BoundaryCounts, contour: Contour | None = None) -> Floats:
    """Normalised surface Dice: share of both boundaries that lies within each tolerance.

    Lengths of surface elements where the contour is "elements" (Nikolov et al.;
    surface-distance), numbers of pixels where it is "pixels" (MONAI's default).

    Returns
    -------
    ndarray of float64, shape (..., S, C)

    References
    ----------
    S. Nikolov et al., arXiv 1809.04430 (2018), section "Surface DSC".
    """
    matched, total = _lengths(counts, contour)
    return ratio(matched.sum(-2), total.sum(-2))


def average_surface_distance(
    counts: BoundaryCounts,
    contour: Contour | None = None,
    *,
    direction: Literal["both", "truth_to_pred", "pred_to_truth"] = "both",
    lone: Literal["infinite", "skip"] = "infinite",
) -> Floats:
    """Average distance between the boundaries, weighted by length, per class.

    Sums are kept in steps of the resolution / 65536; an image's own
    exact value comes from :meth:`ContourDistances.average`.

    Parameters
    ----------
    counts : BoundaryCounts
    contour : {"pixels", "elements"}, optional
        By default the first that was measured.
    direction : {"both", "truth_to_pred", "pred_to_truth"}
        Whose points are averaged over.
    lone : {"infinite", "skip"}
        What boundaries count whose class has none on the other side of the
        same image: infinitely far, or not at all.

    Returns
    -------
    ndarray of float64, shape (..., C)
    """
    chosen = {"both": slice(None), "truth_to_pred": slice(1), "pred_to_truth": slice(1, 2)}
    if direction not in chosen:
        msg = f"direction must be one of {', '.join(map(repr, chosen))}, got {direction!r}"
        raise ValueError(msg)
    if lone not in ("infinite", "skip"):
        msg = f"lone must be 'infinite' or 'skip', got {lone!r}"
        raise ValueError(msg)
    lengths, parts, _ = _weights(counts, contour)
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
    side = chosen[direction]
    return ratio(sums[..., side, :].sum(-2), total[..., side, :].sum(-2))


def hausdorff_distance(
    counts: BoundaryCounts, percentile: float = 95.0, contour: Contour | None = None
) -> Floats:
    """Percentile of the distances over all images, the larger of both directions, per class.

    The smallest step of the histogram within which at least that share of the
    boundary's length lies; :func:`segiou.boundary.bin_values` says how exact
    the steps are. 100 is the Hausdorff distance of the whole data set.

    Returns
    -------
    ndarray of float64, shape (..., C)

    Raises
    ------
    ValueError
        If the percentile lies outside [0, 100].
    """
    if not 0 <= percentile <= 100:
        msg = f"a percentile lies between 0 and 100, got {percentile}"
        raise ValueError(msg)
    lengths, parts, _ = _weights(counts, contour)
    reached = np.cumsum(np.einsum("...wb,w->...b", parts["histogram"], lengths), axis=-1)
    total = reached[..., -1:]
    needed = np.maximum(total * (percentile / 100), np.finfo(np.float64).tiny)
    # The same sum in two orders may differ in the last bit.
    place = np.argmax(reached >= needed * (1 - 1e-12), axis=-1)
    values = np.where(total[..., 0] > 0, bin_values(counts.options.resolution)[place], np.nan)
    there, back = values[..., 0, :], values[..., 1, :]
    return np.where(np.isnan(there) != np.isnan(back), np.inf, np.fmax(there, back))


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


def _weights(counts: BoundaryCounts, contour: Contour | None) -> Any:
    chosen = contour if contour is not None else (*counts.options.contours, "pixels")[0]
    return kind_lengths(chosen, counts.options.spacing), counts.contour_parts(chosen), chosen


def _lengths(counts: BoundaryCounts, contour: Contour | None) -> tuple[Floats, Floats]:
    lengths, parts, _ = _weights(counts, contour)
    return parts["matched"] @ lengths, (parts["total"] @ lengths)[..., None, :, :]


def _zero_where_lone(values: Floats, total: Floats) -> Floats:
    lone = np.isnan(values) & (total.sum(-2) > 0)
    return np.where(lone, 0.0, values)
