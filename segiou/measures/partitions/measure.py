"""The measure of partitions: adapted Rand error and variation of information."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou.counting.id_pairs import count_id_pairs, distinct, sums
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Better, Score, case_values
from segiou.metrics.ratio import Floats, ratio

Rule = Literal["scikit-image", "cremi"]
_RULES = ("scikit-image", "cremi")


class PartitionScores(TypedDict):
    """Result of `partition_scores`."""

    rand_error: float
    rand_precision: float
    rand_recall: float
    voi_split: float
    voi_merge: float


def partition_scores(
    truth_ids: Any, pred_ids: Any, *, rule: Rule = "scikit-image", ignore: Iterable[int] = (0,)
) -> PartitionScores:
    """Adapted Rand error and variation of information of two partitions into segments.

    Parameters
    ----------
    truth_ids, pred_ids : array_like of int, equal shapes
        Id of each pixel's segment.
    rule : {"scikit-image", "cremi"}
        Treatment of predicted id 0 in the Rand error: a segment, or singletons.
        The latter counts pairs of a pixel with itself.
    ignore : iterable of int
        True ids whose pixels are dropped.

    Returns
    -------
    dict
        ``rand_error``; ``rand_precision``, which merges lower, and
        ``rand_recall``, which splits lower (scikit-image returns these two in
        reverse order); ``voi_split`` = H(pred | truth) and ``voi_merge`` =
        H(truth | pred) in bits. NaN if undefined.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes differ or the rule is unknown.

    References
    ----------
    I. Arganda-Carreras et al., Frontiers in Neuroanatomy 9 (2015), 142; M. Meilă,
    J. Multivariate Analysis 98 (2007), 873-895.

    Examples
    --------
    >>> found = partition_scores([[1, 1, 2, 2]], [[1, 1, 1, 1]])  # a merge
    >>> found["rand_precision"], found["rand_recall"], found["voi_split"], found["voi_merge"]
    (0.3333333333333333, 1.0, 0.0, 1.0)
    """
    check_choice("rule", rule, _RULES)
    in_truth, in_pred, pixels = count_id_pairs(truth_ids, pred_ids, ignore=ignore)
    of_all = np.size(truth_ids)
    # Squares of sizes may exceed int64.
    shared, rows, columns = pixels.astype(float), _sizes(in_truth, pixels), _sizes(in_pred, pixels)
    total = shared.sum()
    # Σ s² over segments of size s is Σ n · s over the pairs.
    kept = (in_pred != 0) | (rule == "scikit-image")
    pairs, true, predicted = (
        shared[kept] @ shared[kept],
        shared @ rows,
        shared[kept] @ columns[kept],
    )
    alike = -total if rule == "scikit-image" else shared[~kept].sum() / max(of_all, 1)
    pairs, predicted = pairs + alike, predicted + alike
    true -= total if rule == "scikit-image" else 0
    share = shared / total if total else shared
    split, merge = (-np.sum(share * np.log2(shared / side)) for side in (rows, columns))
    undefined = total == 0 and rule == "scikit-image"
    return {
        "rand_error": float(1 - ratio(2 * pairs, true + predicted)),
        "rand_precision": float(ratio(pairs, predicted)),
        "rand_recall": float(ratio(pairs, true)),
        "voi_split": math.nan if undefined else float(split) + 0.0,
        "voi_merge": math.nan if undefined else float(merge) + 0.0,
    }


def _sizes(ids: NDArray[Any], pixels: NDArray[np.int64]) -> Floats:
    """Pixels of the segment of each pair."""
    (_,), places = distinct(ids)
    return sums(places, pixels, int(places.max(initial=-1)) + 1)[places].astype(float)


@dataclass(frozen=True)
class PartitionOptions(Measure):
    """Adapted Rand error and variation of information of objects with ids.

    Attributes
    ----------
    rule : {"scikit-image", "cremi"}
        As for `partition_scores`.

    Examples
    --------
    >>> PartitionOptions("cremi")
    PartitionOptions(rule='cremi')
    """

    key: ClassVar[str] = "partitions"
    title: ClassVar[str] = "Partitions"
    score_names: ClassVar[tuple[str, ...]] = tuple(PartitionScores.__annotations__)

    rule: Rule = "scikit-image"

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, _RULES)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return PartitionPlan(self, classes, masks)


#: Title, unit and better values of each score.
_SCORES: dict[str, tuple[str, str, Better]] = {
    "rand_error": ("adapted Rand error", "", "lower"),
    "rand_precision": ("Rand precision", "", "higher"),
    "rand_recall": ("Rand recall", "", "higher"),
    "voi_split": ("VOI split", "bits", "lower"),
    "voi_merge": ("VOI merge", "bits", "lower"),
}


@dataclass(frozen=True)
class PartitionPlan(Plan):
    """Plan of the measure of partitions."""

    measure: PartitionOptions

    @property
    def layout(self) -> Layout:
        """The scores of each image, since ids of different images mean nothing together."""
        return {"cases": Field((1, len(_SCORES)), rows=True, floats=True, single=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Score one image."""
        truth, pred = pair.id_maps
        if pair.mask is not None:
            truth = np.where(pair.mask, truth, 0)
        scores_of_pair: Mapping[str, Any] = partition_scores(truth, pred, rule=self.measure.rule)
        return Parts.of(self.layout, cases=[[scores_of_pair[name] for name in _SCORES]])

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Means over the images."""
        scores = {}
        for at, (name, (title, unit, better)) in enumerate(_SCORES.items()):
            values, rows = partial(case_values, at), ("objects",)
            scores[name] = Score.of_cases(name, title, rows, values, unit=unit, better=better)
        return scores
