"""What pixel accuracy hides: the split of its gap to mean IoU, and trivial predictors.

:func:`explain` takes the counts of one model apart, :func:`explain_difference`
those of two, :func:`at_prevalence` and :func:`prevalence_curve` ask what the
same model would score where its classes are rarer or more frequent.
"""

from segiou.imbalance.baselines import (
    Baseline,
    majority_class,
    majority_counts,
    random_iou,
    skill,
)
from segiou.imbalance.difference import ImbalanceDifference, explain_difference
from segiou.imbalance.explained import explain
from segiou.imbalance.findings import ClassBalance, Imbalance
from segiou.imbalance.prevalence import (
    Prevalence,
    PrevalenceCurve,
    at_prevalence,
    prevalence_curve,
)

__all__ = [
    "Baseline",
    "ClassBalance",
    "Imbalance",
    "ImbalanceDifference",
    "Prevalence",
    "PrevalenceCurve",
    "at_prevalence",
    "explain",
    "explain_difference",
    "majority_class",
    "majority_counts",
    "prevalence_curve",
    "random_iou",
    "skill",
]
