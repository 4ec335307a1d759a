"""The scores of pixels by name: the only list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from segiou.counting.counts import Counts
from segiou.metrics.overall import (
    cohen_kappa,
    frequency_weighted_iou,
    matthews_correlation,
    pixel_accuracy,
)
from segiou.metrics.per_class import METRICS
from segiou.metrics.ratio import Floats


class PixelScore(NamedTuple):
    """A score of Counts.

    Attributes
    ----------
    title : str
        Its name in tables and sentences.
    function : callable
        Counts (..., C) → (..., C) values of classes, or (...) of the data set.
    per_class : bool
        Whether the values are those of classes; the score is then their mean.
    scale : str
        Scale on which intervals are symmetric.
    """

    title: str
    function: Callable[[Counts], Floats]
    per_class: bool = True
    scale: str = "logit"


_TITLES = {"iou": "IoU", "dice": "Dice"}
PIXEL_SCORES: dict[str, PixelScore] = {
    **{
        name: PixelScore(_TITLES.get(name, name.replace("_", " ")), function)
        for name, function in METRICS.items()
    },
    "pixel_accuracy": PixelScore("pixel accuracy", pixel_accuracy, False),
    "frequency_weighted_iou": PixelScore("frequency-weighted IoU", frequency_weighted_iou, False),
    "cohen_kappa": PixelScore("cohen kappa", cohen_kappa, False, "fisher"),
    "matthews_correlation": PixelScore(
        "matthews correlation", matthews_correlation, False, "fisher"
    ),
}
#: Scores with a value of each class.
OF_CLASSES = tuple(name for name, one in PIXEL_SCORES.items() if one.per_class)
