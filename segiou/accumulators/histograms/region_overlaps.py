"""Overlap of every true region with the pixels that pass a threshold, and the area below it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_number
from segiou.accumulators.histograms.score_bins import Activation, ScoreBins, activated, as_floats
from segiou.accumulators.histograms.threshold_curves import passing
from segiou.metrics.ratio import Floats, ratio
from segiou.regions.components import label_components

Ints = NDArray[np.int64]

#: Parts of a region are integers that sum to this, so that overlaps add up exactly.
WHOLE: int = 1 << 32
#: Highest false positive rate by default, that of MVTec AD; MVTec AD 2 has 0.05.
LIMIT = 0.3
#: Least rate that a limit may have.
_LEAST_LIMIT = 1e-6


def check_limit(name: str, limit: object) -> float:
    """Return a limit of the false positive rate, which is above 0 and at most 1."""
    return check_number(name, limit, _LEAST_LIMIT, 1)


def count_overlaps(
    codes: NDArray[np.uint16],
    planes: NDArray[Any],
    bins: ScoreBins,
    activation: Activation | None,
) -> tuple[Ints, Ints]:
    """Parts of the regions of each class by score bin (C, B), and numbers of regions (C,).

    The last two axes are an image; codes of C and more belong to no region.
    """
    if codes.ndim < 2:
        msg = f"regions=True needs images with two axes, got shape {codes.shape}"
        raise ValueError(msg)
    classes = len(planes)
    overlaps = np.zeros((classes, bins.number), np.int64)
    numbers = np.zeros(classes, np.int64)
    for plane in np.ndindex(codes.shape[:-2]):
        image, scores = codes[plane], planes[(slice(None), *plane)]
        ids = label_components(image, range(classes))
        inside = ids > 0
        code, region = image[inside].astype(np.intp), ids[inside] - 1
        values = activated(as_floats(scores[:, inside]), activation)
        index = bins.index_of(values[code, np.arange(len(code))])
        _add_regions(overlaps, numbers, code, region, index)
    return overlaps, numbers


def _add_regions(
    overlaps: Ints, numbers: Ints, code: Ints, region: Ints, index: NDArray[np.intp]
) -> None:
    """Add the regions of an image from the class, region and bin of their pixels."""
    if not len(code):
        return
    width = overlaps.shape[1]
    areas = np.bincount(region)
    class_of = np.zeros(len(areas), np.intp)
    class_of[region] = code
    numbers += np.bincount(class_of, minlength=len(numbers))
    keys, pixels = np.unique(region * width + index, return_counts=True)
    owner, at = np.divmod(keys, width)
    # Rounded cumulative sums, not rounded parts: no threshold is off by more than one unit.
    before = np.concatenate([[0], areas.cumsum()[:-1]])[owner]
    upto = pixels.cumsum() - before
    parts = upto * WHOLE // areas[owner] - (upto - pixels) * WHOLE // areas[owner]
    np.add.at(overlaps, (class_of[owner], at), parts)


def aupro(cells: NDArray[Any], limit: float) -> Floats:
    """Area below the mean overlap over the false positive rate up to a limit, over the limit.

    The cells of a histogram that counts regions, (..., 2 C + 2, B, 2), give (..., C).
    """
    classes = (cells.shape[-3] - 2) // 2
    fp, _, _, negative = passing(cells[..., :classes, :, :])
    overlaps, numbers = cells[..., classes + 2 :, :, 0], cells[..., classes + 2 :, :1, 1]
    x = np.asarray(ratio(fp, negative))[..., ::-1]
    y = np.asarray(ratio(overlaps[..., ::-1].cumsum(-1), numbers * float(WHOLE)))
    steps, rises = np.diff(x, prepend=0.0), np.diff(y, prepend=0.0)
    widths = np.diff(np.minimum(x, limit), prepend=0.0)
    shares = np.divide(widths, steps, out=np.zeros_like(steps), where=steps > 0)
    return np.asarray((widths * (y - rises + shares * rises / 2)).sum(-1) / limit)
