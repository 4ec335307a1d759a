"""The scores of pixels: the only list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from segiou._support.numbers import COEFFICIENT
from segiou._support.text import nouns
from segiou.counting.counts import Counts
from segiou.metrics import overall, per_class
from segiou.metrics.ratio import Floats


class ClassMetric(NamedTuple):
    """A score of the counts of each class; or, not ``per_class``, of those of all classes.

    Attributes
    ----------
    name : str
        Its name in options, JSON and columns.
    function : callable
        Counts (..., C) → (..., C) values of classes; or, with the module of the arrays, (...) of
        the data set.
    title : str
        Its name in tables and sentences; ``{pixel}`` stands for pixel or voxel.
    formula, definition : str
        What a page explains; ``{unit}`` stands for pixels or voxels.
    rank : int
        Columns of classes with a lower rank are hidden first.
    scale : str
        Scale on which intervals are symmetric.
    per_class : bool
        Whether the values are those of classes; the score is then their mean.
    unit : str
        Unit of the values; empty for ratios.
    """

    name: str
    function: Callable[..., Floats]
    title: str
    formula: str = ""
    definition: str = ""
    rank: int = 7
    scale: str = "logit"
    per_class: bool = True
    unit: str = ""


_SCORES = (
    ClassMetric(
        "iou",
        per_class.iou,
        "IoU",
        "TP / (TP + FP + FN)",
        "Intersection over union (Jaccard index): the overlap of truth and prediction divided by "
        "their union.",
    ),
    ClassMetric(
        "dice",
        per_class.dice,
        "Dice",
        "2 TP / (2 TP + FP + FN)",
        "The overlap of truth and prediction divided by their mean size; equal to the F1 score.",
        rank=3,
    ),
    ClassMetric(
        "precision",
        per_class.precision,
        "precision",
        "TP / (TP + FP)",
        "The share of the {unit} predicted as the class that are correct.",
        rank=4,
    ),
    ClassMetric(
        "recall",
        per_class.recall,
        "recall",
        "TP / (TP + FN)",
        "The share of the class’s {unit} that were found; also called class accuracy or "
        "sensitivity.",
        rank=5,
    ),
    ClassMetric(
        "specificity",
        per_class.specificity,
        "specificity",
        "TN / (TN + FP)",
        "The share of the {unit} of other classes that were not predicted as the class.",
    ),
    ClassMetric(
        "balanced_accuracy",
        per_class.balanced_accuracy,
        "balanced accuracy",
        "(recall + specificity) / 2",
        "The mean of recall and specificity.",
    ),
    ClassMetric(
        "volumetric_similarity",
        per_class.volumetric_similarity,
        "volumetric similarity",
        "1 − |FN − FP| / (2 TP + FP + FN)",
        "The agreement of the sizes of truth and prediction, wherever they are.",
    ),
    ClassMetric("pixel_accuracy", overall.pixel_accuracy, "{pixel} accuracy", per_class=False),
    ClassMetric(
        "frequency_weighted_iou",
        overall.frequency_weighted_iou,
        "frequency-weighted IoU",
        per_class=False,
    ),
    ClassMetric(
        "cohen_kappa",
        overall.cohen_kappa,
        "Cohen's kappa",
        scale="fisher",
        per_class=False,
        unit=COEFFICIENT,
    ),
    ClassMetric(
        "matthews_correlation",
        overall.matthews_correlation,
        "Matthews correlation",
        scale="fisher",
        per_class=False,
        unit=COEFFICIENT,
    ),
)
PIXEL_SCORES = {metric.name: metric for metric in _SCORES}
#: Scores of volumes by groups of classes, or else classes: means over the cases, and the Dice of
#: all cases pooled.
CASE_SCORES = {
    "dice_cases": ClassMetric("dice_cases", per_class.dice, "Dice over cases"),
    "iou_cases": ClassMetric("iou_cases", per_class.iou, "IoU over cases"),
    "dice_pooled": ClassMetric("dice_pooled", per_class.dice, "pooled Dice"),
}
#: Per-class metrics by their names in reports, on the command line and in JSON.
METRICS: dict[str, Callable[[Counts], Floats]] = {
    metric.name: metric.function for metric in _SCORES if metric.per_class
}
#: Scores with a value of each class.
OF_CLASSES = tuple(METRICS)


def metric_label(metric: str, pixel_unit: str = "pixels") -> str:
    """The name of a metric in a sentence about counts with this unit."""
    score = (PIXEL_SCORES | CASE_SCORES).get(metric)
    if score is None:
        return metric.replace("_", " ")
    return score.title.format(pixel=nouns(pixel_unit).pixel)


def unit_of(metric: str) -> str:
    """The unit of a metric; empty for ratios and functions."""
    score = (PIXEL_SCORES | CASE_SCORES).get(metric)
    return "" if score is None else score.unit


def scale_of(metric: str) -> str:
    """The scale on which intervals of a metric are symmetric; functions have none."""
    score = (PIXEL_SCORES | CASE_SCORES).get(metric)
    return "identity" if score is None else score.scale
