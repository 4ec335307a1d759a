"""The measure of cost: the expected cost of a pixel, from a table of costs by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_flag, check_kind, check_number, read_several
from segiou._support.table_files import cell_text, file_rows
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.matrices import MatrixPlan, table_sums
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.score import MEAN, Score, mean_first, mean_weights
from segiou.metrics.ratio import Floats, ratio

#: True class, predicted class and the cost of a pixel.
Cost = tuple[str, str, float]
#: Largest cost: sums of so many costs are finite.
_MOST = 1e100


@dataclass(frozen=True)
class CostOptions(Measure):
    """Expected cost of a pixel, from a table of costs of confusions.

    Attributes
    ----------
    costs : mapping of (str, str) to float, or sequence of (str, str, float)
        Cost of a pixel by the names of its true and its predicted class, 0 or more. Other
        confusions cost 1, correct pixels 0.
    balanced : bool
        Whether all classes weigh the same in the overall value, instead of by their pixels.

    Raises
    ------
    TypeError
        If a value has the wrong type.
    ValueError
        If a cost is negative or above 1e100, or a pair of classes occurs twice.

    References
    ----------
    L. Maier-Hein et al., Metrics reloaded, Nature Methods 21 (2024), 195-212.

    Examples
    --------
    >>> CostOptions({("tumour", "background"): 5})
    CostOptions(costs=(('tumour', 'background', 5.0),), balanced=False)
    """

    key: ClassVar[str] = "cost"
    title: ClassVar[str] = "Cost"
    score_names: ClassVar[tuple[str, ...]] = ("expected_cost",)

    costs: tuple[Cost, ...] = ()
    balanced: bool = False

    def __post_init__(self) -> None:
        check_flag("balanced", self.balanced)
        object.__setattr__(self, "costs", _checked(self.costs))

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> CostOptions | None:
        """Options from the command line: a table, or equal costs."""
        if not (table := given.get("cost")):
            if given.get("cost_balanced"):
                msg = "--cost-balanced needs --cost"
                raise ValueError(msg)
            return None
        costs = () if table == "equal" else _read(Path(table))
        return cls(costs, balanced=bool(given.get("cost_balanced")))

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes; ValueError if a cost is of another class."""
        return CostPlan(self, classes, masks)


def _checked(costs: Any) -> tuple[Cost, ...]:
    """Costs as triples; an error names the pair of classes."""
    if isinstance(costs, Mapping):
        pairs = ((key if isinstance(key, tuple) else (key,), cost) for key, cost in costs.items())
        costs = [(*pair, cost) for pair, cost in pairs]
    wanted = "triples (true class, predicted class, cost)"
    checked: dict[tuple[str, str], float] = {}
    for entry in read_several("costs", costs, wanted):
        if not isinstance(entry, (tuple, list)) or len(entry) != 3:
            msg = f"costs must be {wanted}, got {entry!r}"
            raise ValueError(msg)
        true, predicted, cost = entry
        for name in (true, predicted):
            check_kind("a class of costs", name, str, "a name")
        name = f"the cost of {true} predicted as {predicted}"
        if (true, predicted) in checked:
            msg = f"{name} is given twice"
            raise ValueError(msg)
        checked[true, predicted] = check_number(name, cost, 0, _MOST)
    return tuple((*pair, cost) for pair, cost in checked.items())


def _read(path: Path) -> tuple[Cost, ...]:
    """The costs of a table, whose first column has the true classes; empty cells are skipped."""
    costs: list[Cost] = []
    for row in file_rows(path):
        (_, true), *cells = row.items()
        for predicted, cell in cells:
            if not (text := cell_text(cell)):
                continue
            try:
                costs.append((cell_text(true), predicted, float(text)))
            except ValueError:
                what = f"the cost of {true} predicted as {predicted}"
                msg = f"{path}: {what} must be a number, got {text!r}"
                raise ValueError(msg) from None
    return tuple(costs)


@dataclass(frozen=True)
class CostPlan(MatrixPlan):
    """Plan of the measure of cost."""

    measure: CostOptions

    def __post_init__(self) -> None:
        _ = self.weights

    @property
    def options_text(self) -> str:
        """The costs that are not 1."""
        costs = [f"{true} predicted as {pred} {cost:g}" for true, pred, cost in self.measure.costs]
        weighed = ["classes weigh the same"] * self.measure.balanced
        return "; ".join([*costs, *weighed])

    @cached_property
    def weights(self) -> Floats:
        """Cost of each confusion, (C, C + 1); no class costs as much as the worst one."""
        labels = self.classes.labels
        weights = 1 - np.eye(labels.num_classes)
        for true, predicted, cost in self.measure.costs:
            weights[labels.index(true), labels.index(predicted)] = cost
        return np.concatenate([weights, weights.max(1, keepdims=True)], axis=1)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """The expected cost of a pixel, and of a pixel of each class."""
        include, is_mean = self.classes.include, self.measure.balanced

        def evaluate(sums: NDArray[Any]) -> Floats:
            tables = self.tables(sums)
            costs, pixels = (tables * self.weights).sum(-1), tables.sum(-1)
            each = ratio(costs, pixels)
            if is_mean:
                return mean_first(each, include)
            overall = ratio(costs.sum(-1), pixels.sum(-1))
            return np.concatenate([overall[..., None], each], axis=-1)

        score = Score(
            "expected_cost",
            "expected cost",
            self.classes.labels.class_names,
            table_sums,
            evaluate,
            unit="number",
            better="lower",
            rule="balanced" if is_mean else "",
            overall=MEAN if is_mean else "all pixels",
            include=include if is_mean else None,
            weights=mean_weights(evaluate, include) if is_mean else None,
        )
        return {score.name: score}
