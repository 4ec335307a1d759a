"""The measure of topology: clDice, Betti errors and skeleton recall of thin structures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Score
from segiou.measures.structures import StructureOptions, StructurePlan
from segiou.measures.topology.shapes import (
    CONNECTIVITIES,
    Connectivity,
    betti_numbers,
    skeleton_counts,
)
from segiou.metrics.ratio import Floats, ratio


@dataclass(frozen=True)
class TopologyOptions(StructureOptions):
    """Topology of thin structures: clDice, Betti errors and skeleton recall.

    Attributes
    ----------
    classes : tuple of str or int
        As for :class:`segiou.measures.StructureOptions`: all but a background by default.
    connectivity : {"full", "cross"}
        Whether pixels that touch only at a corner are connected.

    Examples
    --------
    >>> TopologyOptions(classes=("vessel",))
    TopologyOptions(classes=('vessel',), connectivity='full')
    """

    key: ClassVar[str] = "topology"
    title: ClassVar[str] = "Topology"
    score_names: ClassVar[tuple[str, ...]] = (
        *("cldice", "skeleton_precision", "skeleton_sensitivity", "cldice_cases"),
        *("skeleton_recall", "betti_0_error", "betti_1_error"),
    )

    connectivity: Connectivity = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("connectivity", self.connectivity, CONNECTIVITIES)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return TopologyPlan(self, classes, masks)


@dataclass(frozen=True)
class TopologyPlan(StructurePlan):
    """Plan of the topology measure."""

    measure: TopologyOptions

    @property
    def layout(self) -> Layout:
        """Pixels of skeletons, errors of components and holes, and images, per class."""
        number = self.classes.num_classes
        return {
            "skeletons": Field((number, 6)),
            "errors": Field((number, 3)),
            "cases": Field((number,), rows=True, floats=True, single=True),
        }

    def count(self, pair: MaskPair) -> Parts:
        """Compare the skeletons and Betti numbers of one image."""
        number = self.classes.num_classes
        skeletons, errors = np.zeros((number, 6), np.int64), np.zeros((number, 3), np.int64)
        for index in self.scored:
            truth, pred = (side == index for side in pair.indices)
            skeletons[index] = skeleton_counts(truth, pred)
            sides = (
                betti_numbers(side, connectivity=self.measure.connectivity)[:2]
                for side in (truth, pred)
            )
            errors[index] = [*(abs(a - b) for a, b in zip(*sides, strict=True)), 1]
        cases = _cldice(skeletons)
        return Parts.of(self.layout, skeletons=skeletons, errors=errors, cases=cases)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """The scores by name."""
        include = self.is_scored & self.classes.include
        names = self.classes.labels.class_names

        def skeleton(name: str, title: str, formula: Any) -> Score:
            return Score.of_names(
                name, title, names, include, lambda parts: parts["skeletons"], formula
            )

        def error(name: str, title: str, at: int) -> Score:
            return Score.of_names(
                name,
                title,
                names,
                include,
                lambda parts: parts["errors"][..., [at, 2]],
                lambda sums: ratio(sums[..., 0], sums[..., 1]),
                unit="number",
                better="lower",
            )

        every = (
            skeleton("cldice", "clDice", _cldice),
            skeleton("skeleton_precision", "skeleton precision", _share_of(0)),
            skeleton("skeleton_sensitivity", "skeleton sensitivity", _share_of(2)),
            Score.of_cases("cldice_cases", "clDice, cases", names, lambda parts: parts["cases"]),
            skeleton("skeleton_recall", "skeleton recall", _share_of(4)),
            error("betti_0_error", "Betti-0 error", 0),
            error("betti_1_error", "Betti-1 error", 1),
        )
        return {score.name: score for score in every}


def _share_of(at: int) -> Any:
    """The ratio of two neighbouring counts of skeletons, (..., C, 6) -> (..., C)."""
    return lambda sums: ratio(sums[..., at], sums[..., at + 1])


def _cldice(sums: NDArray[Any]) -> Floats:
    """Harmonic mean of skeleton precision and sensitivity; 0 without overlap."""
    precision, sensitivity = _share_of(0)(sums), _share_of(2)(sums)
    product, total = 2 * precision * sensitivity, precision + sensitivity
    return np.where(total == 0, 0.0, ratio(product, total))
