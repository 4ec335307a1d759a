"""The measure of semantic change detection: functions of the confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

from segiou.counting.counts import counts_array
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.matrices import MatrixPlan, table_sums
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.score import OVERALL, Score
from segiou.metrics.ratio import Floats, ratio


class ChangeScores(TypedDict):
    """Result of `change_scores`."""

    sek: float
    f_scd: float
    scd_miou: float
    scd_score: float


def change_scores(matrix: Any) -> ChangeScores:
    """Scores of semantic change detection, from a confusion matrix whose class 0 is no change.

    Parameters
    ----------
    matrix : array_like of int, shape (C, C)
        Pixels by true and predicted class, of the maps of both dates together.

    Returns
    -------
    dict
        ``sek``
            Separated kappa: Cohen's kappa without the pixels that are unchanged in both, times
            exp(IoU of change - 1).
        ``f_scd``
            Harmonic mean of the share of right classes among pixels predicted as changed, and
            among changed pixels.
        ``scd_miou``
            Mean of the IoU of no change, and of change whatever its classes.
        ``scd_score``
            0.3 · ``scd_miou`` + 0.7 · ``sek``.

        NaN without pixels.

    Raises
    ------
    TypeError
        If the matrix does not contain integers.
    ValueError
        If it is not square, or a number is negative.

    References
    ----------
    K. Yang et al., Asymmetric Siamese networks for semantic change detection, arXiv 2010.05687;
    L. Ding et al., Joint spatio-temporal modeling (SCanNet), IEEE TGRS 62 (2024).

    Examples
    --------
    >>> found = change_scores([[6, 1, 0], [1, 2, 0], [0, 1, 1]])
    >>> round(found["scd_miou"], 4), round(found["f_scd"], 4)
    (0.7083, 0.6)
    """
    table = counts_array(matrix, "matrix")
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        msg = f"matrix must have shape (C, C), got {table.shape}"
        raise ValueError(msg)
    values: Any = {name: float(formula(table)) for name, (_, formula) in _SCORES.items()}
    scores: ChangeScores = values
    return scores


def _change_ious(table: NDArray[Any]) -> tuple[Floats, Floats]:
    """IoU of no change and of change, (...), of matrices (..., C, C)."""
    same = table[..., 0, 0]
    row, column, total = table[..., 0, :].sum(-1), table[..., :, 0].sum(-1), _total(table)
    return ratio(same, row + column - same), ratio(total - row - column + same, total - same)


def _total(table: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(table.sum((-2, -1)))


def _mean_iou(table: NDArray[Any]) -> Floats:
    """Mean of both; 1 for change if nothing changed in either."""
    unchanged, changed = _change_ious(table)
    return np.asarray((unchanged + np.where(_total(table) > 0, _or_one(changed), np.nan)) / 2)


def _or_one(values: Floats) -> Floats:
    return np.where(np.isnan(values), 1.0, values)


def _separated_kappa(table: NDArray[Any]) -> Floats:
    """Cohen's kappa without the pixels that are unchanged in both; 0 if it is undefined."""
    kept = np.array(table, float)
    kept[..., 0, 0] = 0
    total = _total(kept)
    observed = ratio(np.trace(kept, axis1=-2, axis2=-1), total)
    expected = ratio((kept.sum(-1) * kept.sum(-2)).sum(-1), total**2)
    kappa = np.nan_to_num(ratio(observed - expected, 1 - expected))
    return np.where(_total(table) > 0, kappa * np.exp(_or_one(_change_ious(table)[1]) - 1), np.nan)


def _f_scd(table: NDArray[Any]) -> Floats:
    """Harmonic mean of the precision and recall of changed pixels with their class."""
    right = np.trace(table, axis1=-2, axis2=-1) - table[..., 0, 0]
    total = _total(table)
    changed = 2 * total - table[..., :, 0].sum(-1) - table[..., 0, :].sum(-1)
    return ratio(2 * right, changed)


def _score(table: NDArray[Any]) -> Floats:
    return np.asarray(0.3 * _mean_iou(table) + 0.7 * _separated_kappa(table))


#: Title and formula of each score.
_SCORES: dict[str, tuple[str, Callable[[NDArray[Any]], Floats]]] = {
    "sek": ("SeK", _separated_kappa),
    "f_scd": ("F_scd", _f_scd),
    "scd_miou": ("mIoU of change and no change", _mean_iou),
    "scd_score": ("SCD score", _score),
}


@dataclass(frozen=True)
class ChangeOptions(Measure):
    """Semantic change detection, in which the first class is no change: SeK, F_scd, Score.

    Examples
    --------
    >>> ChangeOptions()
    ChangeOptions()
    """

    key: ClassVar[str] = "change"
    title: ClassVar[str] = "Change"
    score_names: ClassVar[tuple[str, ...]] = tuple(ChangeScores.__annotations__)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for two or more classes."""
        if classes.num_classes < 2:
            msg = "scores of change need a class of no change and one or more of change"
            raise ValueError(msg)
        return ChangePlan(self, classes, masks)


@dataclass(frozen=True)
class ChangePlan(MatrixPlan):
    """Plan of the measure of change."""

    measure: ChangeOptions

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """The scores by name; none has classes, or pixels that are predicted as no class."""
        return {name: self._table_score(name, *rest) for name, rest in _SCORES.items()}

    def _table_score(
        self, name: str, title: str, formula: Callable[[NDArray[Any]], Floats]
    ) -> Score:
        def evaluate(sums: NDArray[Any]) -> Floats:
            value = formula(self.tables(sums)[..., :-1])
            return value[..., None]

        # Both are negative if changes agree less than by chance, as kappa is.
        scale = "fisher" if name in ("sek", "scd_score") else ""
        return Score(name, title, (), table_sums, evaluate, scale=scale, overall=OVERALL)
