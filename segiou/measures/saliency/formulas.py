"""Formulas of the scores of grey maps: MAE, S, E, F and weighted F, mean Dice and IoU."""

from __future__ import annotations

import math
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import as_array, as_float
from segiou.measures.saliency.levels import GreyMap, Levels
from segiou.metrics.ratio import Floats

#: Added to denominators by the codes of the papers: MATLAB's ``eps``.
EPS = float(np.spacing(1))
#: Weight of precision in the F-measure, β².
_BETA = 0.3
#: Distance from the truth after which an error of the weighted F-measure weighs 1.5.
_HALF = 5.0
#: Radius of the Gaussian of the weighted F-measure.
_RADIUS = 3
#: The curves over 256 thresholds.
CURVES = ("e", "f", "dice", "iou")


class SaliencyScores(TypedDict):
    """Result of `saliency_scores`."""

    s_measure: float
    weighted_f_measure: float
    mae: float
    e_measure_max: float
    e_measure_mean: float
    e_measure_adaptive: float
    f_measure_max: float
    f_measure_mean: float
    f_measure_adaptive: float
    dice_at_half: float
    dice_over_thresholds: float
    dice_best_threshold: float
    iou_at_half: float
    iou_over_thresholds: float
    iou_best_threshold: float


#: Title of each score; of scores of mean curves, the curve, and whether it is their maximum.
SCORES = {
    "s_measure": ("S", "", False),
    "weighted_f_measure": ("weighted F", "", False),
    "mae": ("MAE", "", False),
    "e_measure_max": ("max E", "e", True),
    "e_measure_mean": ("mean E", "e", False),
    "e_measure_adaptive": ("adaptive E", "", False),
    "f_measure_max": ("max F", "f", True),
    "f_measure_mean": ("mean F", "f", False),
    "f_measure_adaptive": ("adaptive F", "", False),
    "dice_at_half": ("Dice at 0.5", "", False),
    "dice_over_thresholds": ("Dice over thresholds", "dice", False),
    "dice_best_threshold": ("Dice at the best threshold", "dice", True),
    "iou_at_half": ("IoU at 0.5", "", False),
    "iou_over_thresholds": ("IoU over thresholds", "iou", False),
    "iou_best_threshold": ("IoU at the best threshold", "iou", True),
}
#: The scores that are means over images, in the order of `image_values`.
OF_IMAGES = tuple(name for name, (_, curve, _) in SCORES.items() if not curve)


def saliency_scores(truth: Any, scores: Any) -> SaliencyScores:
    """Scores of a grey map of one foreground, as PySODMetrics computes them.

    The map is stretched to [0, 1] by its own smallest and largest value, unless it is constant.

    Parameters
    ----------
    truth : array_like, shape (H, W)
        Where the foreground is: pixels that are not 0.
    scores : array_like of float, bool, uint8 or uint16, shape (H, W)
        The map; integers are divided by the largest value of their type.

    Returns
    -------
    dict
        ``s_measure``
            Structure measure: the mean of an object and of a region similarity.
        ``weighted_f_measure``
            F-measure that weighs errors by their distance from the truth.
        ``mae``
            Mean absolute error.
        ``e_measure_max``, ``e_measure_mean``, ``e_measure_adaptive``
            Enhanced-alignment measure: the largest and mean value over 256 thresholds, and the
            value at twice the mean of the map (at most 1).
        ``f_measure_max``, ``f_measure_mean``, ``f_measure_adaptive``
            F-measure with β² = 0.3 in the same way.
        ``dice_at_half``, ``dice_over_thresholds``, ``dice_best_threshold``
            Dice above 0.5; its mean over the thresholds, which papers on polyps call mDice; and
            its largest value.
        ``iou_at_half``, ``iou_over_thresholds``, ``iou_best_threshold``
            IoU in the same way.

    Raises
    ------
    TypeError
        If an array has the wrong type.
    ValueError
        If the shapes differ, or the map has values outside [0, 1].

    References
    ----------
    D.-P. Fan et al., Structure-measure, ICCV 2017, 4548-4557; D.-P. Fan et al.,
    Enhanced-alignment measure, IJCAI 2018, 698-704; R. Margolin et al., How to evaluate
    foreground maps, CVPR 2014, 248-255; R. Achanta et al., Frequency-tuned salient region
    detection, CVPR 2009, 1597-1604.

    Examples
    --------
    >>> found = saliency_scores([[1, 1], [0, 0]], [[1.0, 0.5], [0.25, 0.0]])
    >>> found["mae"], found["f_measure_max"], found["dice_at_half"]
    (0.1875, 1.0, 0.6666666666666666)
    """
    inside = as_array(truth, "truth")
    inside = inside if inside.dtype == np.bool_ else inside != 0
    array = checked_map(scores, inside.shape)
    if not inside.size:
        values, pixels = image_values(inside, array)
        curves = curves_of(pixels)
    else:
        grey = GreyMap.of(array)
        counts = Levels.of(inside, grey)
        cuts, binned = _cuts(counts), _highest_bins(counts.binned)
        tables = np.concatenate([cuts, binned], axis=-1)
        agreement = _agreement(tables[1], tables[0], *_totals(counts.pixels))
        values = _image_scores(inside, grey, counts, agreement)
        curves = agreement[:, cuts.shape[-1] :]
    of_images = dict(zip(OF_IMAGES, values.tolist(), strict=True))
    by_name: Any = {
        name: float(of_curve(curves[CURVES.index(curve)], is_max=is_max))
        if curve
        else of_images[name]
        for name, (_, curve, is_max) in SCORES.items()
    }
    scores_by_name: SaliencyScores = by_name
    return scores_by_name


def checked_map(scores: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Scores as an array of this shape with values in [0, 1], or of unsigned integers."""
    array = as_float(as_array(scores, "scores"))
    if array.dtype.kind not in "bfu":
        msg = f"scores must be floats, bool, uint8 or uint16, got {array.dtype}"
        raise TypeError(msg)
    if array.shape != shape or array.ndim != 2:
        msg = f"scores must have the shape (H, W) of the truth, {shape}, got {array.shape}"
        raise ValueError(msg)
    if array.dtype.kind == "f" and array.size:
        low, high = float(array.min()), float(array.max())
        if not (low >= 0 and high <= 1):
            msg = f"scores must be in [0, 1], got {low:g} to {high:g}; apply the sigmoid first"
            raise ValueError(msg)
    return array.astype(np.float64) if array.dtype.kind in "bf" else array


def image_values(
    truth: NDArray[np.bool_], scores: NDArray[Any], valid: Any = None
) -> tuple[Floats, NDArray[np.int64]]:
    """The scores of `OF_IMAGES`, (7,), and pixels by truth and bin, (2, 256), of one image."""
    if not truth.size or (valid is not None and not valid.any()):
        return np.full(len(OF_IMAGES), np.nan), np.zeros((2, 256), np.int64)
    if valid is not None:
        truth = truth & valid
    grey = GreyMap.of(scores, valid)
    counts = Levels.of(truth, grey, valid)
    outside, inside = _cuts(counts)
    agreement = _agreement(inside, outside, *_totals(counts.pixels))
    return _image_scores(truth, grey, counts, agreement, valid), counts.binned


def _image_scores(
    truth: NDArray[np.bool_], grey: GreyMap, counts: Levels, agreement: Floats, valid: Any = None
) -> Floats:
    """The scores of `OF_IMAGES`; the first two columns of the agreement are those of the cuts."""
    (e, _), (f, _), (_, dice), (_, iou) = agreement[:, :2].tolist()
    weighted = weighted_f_measure(truth, grey, valid)
    return np.array([_structure(counts), weighted, _absolute_error(counts), e, f, dice, iou])


def of_curve(curve: Floats, *, is_max: bool) -> Floats:
    """The largest or the mean value of curves (..., 256)."""
    return np.asarray(curve.max(-1) if is_max else curve.mean(-1))


def curves_of(binned: NDArray[Any]) -> Floats:
    """E, F, Dice and IoU at each threshold, (..., 4, 256), of counts (..., 2, 256).

    The first value is that of the highest threshold.
    """
    above = _highest_bins(binned)
    return _agreement(above[..., 1, :], above[..., 0, :], *_totals(binned))


def _highest_bins(binned: NDArray[Any]) -> NDArray[Any]:
    """Pixels in the highest bins, (..., 2, 256)."""
    return np.cumsum(binned[..., ::-1], axis=-1)


def _totals(pixels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pixels inside the truth and of the image, (..., 1)."""
    inside = pixels[..., 1, :].sum(-1, keepdims=True)
    return inside, inside + pixels[..., 0, :].sum(-1, keepdims=True)


def _cuts(counts: Levels) -> NDArray[Any]:
    """Pixels from the adaptive threshold on, which E and F have, and above 0.5, (2, 2)."""
    adaptive, half = min(2 * counts.mean, 1.0), np.nextafter(0.5, 1)
    above = counts.values >= np.array([[adaptive], [half]])
    cuts: NDArray[Any] = counts.pixels @ above.T
    return cuts


def _agreement(tp: Any, fp: Any, inside: Any, size: Any) -> Floats:
    """E, F, Dice and IoU of binary maps, stacked along the axis before the last.

    Without pixels, all are NaN.
    """
    predicted = tp + fp
    precision, recall = _share(tp, predicted), _share(tp, inside)
    f = _share((1 + _BETA) * precision * recall, _BETA * precision + recall)
    dice = _share(2 * tp, inside + predicted)
    iou = _share(tp, inside + fp)
    scores = np.stack([_alignment(tp, fp, inside, size), f, dice, iou], axis=-2)
    return np.where(size[..., None, :] > 0, scores, np.nan)


def _share(top: Any, bottom: Any) -> Floats:
    """A ratio that is 0 if its denominator is 0, as in PySODMetrics."""
    share: Floats = np.divide(top, bottom, out=np.zeros(top.shape), where=bottom != 0)
    return share


def _alignment(tp: Any, fp: Any, inside: Any, size: Any) -> Floats:
    """E-measure of binary maps; NaN for a single pixel, as its sum is divided by pixels − 1."""
    predicted = tp + fp
    mean_pred, mean_truth = _share(predicted, size), _share(inside, size)
    pixels = np.stack([tp, fp, inside - tp, size - inside - fp])
    a, b = (np.stack([1 - mean, 0 - mean]) for mean in (mean_pred, mean_truth))
    a, b = a[[0, 0, 1, 1]], b[[0, 1, 0, 1]]
    aligned = 2 * a * b / (a**2 + b**2 + EPS)
    total = ((aligned + 1) ** 2 / 4 * pixels).sum(0)
    total = np.where(inside == 0, size - predicted, np.where(inside == size, predicted, total))
    return np.where(size > 1, total / (size - 1 + EPS), np.nan)


def _absolute_error(counts: Levels) -> float:
    outside, inside = counts.pixels
    return float((outside @ counts.values + inside @ (1 - counts.values)) / counts.pixels.sum())


def _structure(counts: Levels) -> float:
    """S-measure: the mean of the similarity of objects and of regions."""
    outside, inside = counts.pixels.sum(-1).tolist()
    if not inside or not outside:
        return counts.mean if inside else 1 - counts.mean
    size = inside + outside
    objects = [
        _object_similarity(1 - counts.values, counts.pixels[0], outside) * outside / size,
        _object_similarity(counts.values, counts.pixels[1], inside) * inside / size,
    ]
    regions = [_region_similarity(*quadrant) / size for quadrant in counts.quadrants()]
    return max(0.0, float(sum(objects) + sum(regions)) / 2)


def _object_similarity(values: Floats, pixels: NDArray[Any], number: int) -> float:
    """2 x̄ / (x̄² + 1 + s) of a foreground, or of the inverse of a background."""
    mean = float(pixels @ values) / number
    variance = float(pixels @ (values - mean) ** 2) / (number - 1) if number > 1 else 0.0
    return 2 * mean / (mean**2 + 1 + math.sqrt(variance) + EPS)


def _region_similarity(values: Floats, pixels: NDArray[Any]) -> float:
    """SSIM of a quadrant times its pixels, from its pixels (2, L) outside and inside the truth."""
    outside, inside = pixels.sum(1).tolist()
    counts, number = pixels.sum(0), outside + inside
    if not number:
        return 0.0
    x, y = _mean(values, counts), inside / number
    free = number - 1 + EPS
    deviations = values - x
    var_x = float(counts @ deviations**2) / free
    var_y = (inside * (1 - y) ** 2 + outside * y**2) / free
    far = (pixels @ deviations).tolist()
    cov = ((1 - y) * far[1] - y * far[0]) / free
    top, bottom = 4 * x * y * cov, (x**2 + y**2) * (var_x + var_y)
    if top != 0:
        return float(top / (bottom + EPS) * number)
    return float((bottom == 0) * number)


def _mean(values: Floats, pixels: NDArray[Any]) -> float:
    """The mean of values; exact if only one occurs, whose variance is then 0."""
    present = values[pixels > 0]
    if present.min() == present.max():
        return float(present[0])
    return float(pixels @ values / pixels.sum())


def weighted_f_measure(truth: NDArray[np.bool_], grey: GreyMap, valid: Any = None) -> float:
    """Weighted F-measure: errors are smoothed inside the truth, and weigh more far from it."""
    if not truth.any():
        return 0.0
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped, unused-ignore]

    distances, nearest = distance_transform_edt(~truth, return_indices=True)
    errors = grey.values - truth
    np.abs(errors, out=errors)
    box = tuple(_reach(np.asarray(truth.any(axis))) for axis in (1, 0))
    near = errors[tuple(axis[box] for axis in nearest)]  # errors inside are their own
    smooth = _smoothed(near)
    inside = np.minimum(smooth[truth[box]], errors[truth])
    outside = ~truth if valid is None else ~truth & valid
    weights = 2 - np.exp(np.log(0.5) / _HALF * distances[outside])
    false = float((errors[outside] * weights).sum())
    true = float(len(inside) - inside.sum())
    recall, precision = 1 - float(inside.mean()), true / (true + false + EPS)
    return 2 * recall * precision / (recall + precision + EPS)


def _reach(is_inside: NDArray[np.bool_]) -> slice:
    """Lines of the image from which the Gaussian reaches those inside."""
    first, last = np.flatnonzero(is_inside)[[0, -1]]
    return slice(max(0, int(first) - _RADIUS), int(last) + _RADIUS + 1)


def _smoothed(errors: Floats) -> Floats:
    """A Gaussian of σ = 5 over 7 × 7 pixels, with zeros around the image."""
    from scipy.ndimage import correlate1d  # type: ignore[import-untyped, unused-ignore]

    kernel = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1) ** 2) / 50)
    kernel /= kernel.sum()
    for axis in (0, 1):
        errors = correlate1d(errors, kernel, axis, mode="constant")
    return errors
