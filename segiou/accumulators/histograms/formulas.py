"""The scores that follow from histograms, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from segiou.accumulators.histograms import threshold_curves as curves
from segiou.accumulators.histograms.calibration_errors import diagram, errors
from segiou.accumulators.histograms.region_overlaps import LIMIT, aupro
from segiou.accumulators.histograms.score_bins import SCORE_UNIT, ScoreBins
from segiou.metrics.overall import mean
from segiou.metrics.ratio import Floats


class Formula(NamedTuple):
    """A score of cells (..., C + 2, B, 2), also in tensors of ``keras.ops``."""

    title: str
    #: Cells and the module of their arrays → values of the classes (..., C).
    of_classes: Callable[..., Any]
    #: The same → the overall value (...); by default, the mean of the classes.
    overall: Callable[..., Any] | None = None
    better: Literal["higher", "lower"] = "higher"

    def whole(self, cells: Any, include: Any, xp: Any = np) -> Any:
        """The score of all classes; ``xp`` is the module of the cells, NumPy or ``keras.ops``."""
        if self.overall is not None:
            return self.overall(cells, xp)
        return mean(self.of_classes(cells, xp), include, xp)


def formulas_of(
    num_classes: int, bins: ScoreBins, rows: int = 15, *, limit: float | None = None
) -> dict[str, Formula]:
    """The scores of histograms of these classes; ``rows`` are those of reliability diagrams.

    ``limit`` is that of AUPRO in histograms that count regions; its name and title state it.
    """

    def by_class(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda cells, xp: function(cells[..., :num_classes, :, :], xp=xp)

    def class_error(at: int) -> Callable[..., Floats]:
        def error(cells: Any, _: Any) -> Floats:
            counts = cells[..., :num_classes, :, :]
            sums = counts.sum(-1) * bins.values
            return errors(*diagram(counts, sums, bins, rows))[at]

        return error

    def top_error(at: int) -> Callable[..., Floats]:
        def error(cells: Any, xp: Any) -> Floats:
            sums = cells[..., num_classes + 1, :, 0] * SCORE_UNIT
            return errors(*diagram(cells[..., num_classes, :, :], sums, bins, rows, xp), xp)[at]

        return error

    formulas = {
        "average_precision": Formula("AP", by_class(curves.average_precision)),
        "roc_auc": Formula("AUROC", by_class(curves.roc_auc)),
        "best_iou": Formula("best IoU", by_class(curves.best_iou)),
        "fpr95": Formula("FPR at 95 % TPR", by_class(curves.fpr_at_tpr), better="lower"),
    }
    if limit is not None:
        highest, shown = limit, repr(limit).removesuffix(".0")
        name = "aupro" if limit == LIMIT else f"aupro_{shown}"
        formulas[name] = Formula(f"AUPRO {shown}", lambda cells, _: aupro(cells, highest))
    for at, name in enumerate(("ece", "mce", "ace")):
        formulas[name] = Formula(name.upper(), class_error(at), top_error(at), "lower")
    brier = by_class(partial(curves.brier, values=bins.values))

    def summed(cells: Any, xp: Any) -> Any:
        return xp.sum(brier(cells, xp), axis=-1)

    return {**formulas, "brier": Formula("Brier score", brier, summed, "lower")}
