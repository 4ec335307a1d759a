"""The measure of few-shot segmentation: FB-IoU, a function of the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.matrices import MatrixPlan, table_sums
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.score import Score
from segiou.metrics.ratio import Floats, ratio


@dataclass(frozen=True)
class FewShotOptions(Measure):
    """FB-IoU of few-shot segmentation: mean IoU of background and foreground.

    Every pair is one episode: its masks have the class of the episode, or 1, on the background.
    Pixels are pooled over all episodes, regardless of their class.

    Attributes
    ----------
    background : str
        Name of the background class; by default the first class. All others are foreground.

    Raises
    ------
    TypeError
        If the name is not text.

    References
    ----------
    K. Rakelly et al., Conditional networks for few-shot semantic segmentation, ICLR workshop 2018;
    J. Min et al., Hypercorrelation squeeze for few-shot segmentation (HSNet), ICCV 2021.

    Examples
    --------
    >>> FewShotOptions("ground")
    FewShotOptions(background='ground')
    """

    key: ClassVar[str] = "few_shot"
    title: ClassVar[str] = "Few-shot segmentation"
    score_names: ClassVar[tuple[str, ...]] = ("fb_iou",)

    background: str = ""

    def __post_init__(self) -> None:
        check_kind("background", self.background, str, "the name of a class")

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for two or more classes; ValueError if the background is unknown."""
        if classes.num_classes < 2:
            msg = "FB-IoU needs a background class and at least one foreground class"
            raise ValueError(msg)
        return FewShotPlan(self, classes, masks)


@dataclass(frozen=True)
class FewShotPlan(MatrixPlan):
    """Plan of the measure of few-shot segmentation."""

    measure: FewShotOptions

    def __post_init__(self) -> None:
        _ = self.background

    @cached_property
    def background(self) -> int:
        """Index of the background."""
        name = self.measure.background
        return self.classes.labels.index(name) if name else 0

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """FB-IoU, and the IoU of background and foreground."""
        rows = ("background", "foreground")
        every = np.ones(2, bool)
        score = Score.of_names("fb_iou", "FB-IoU", rows, every, self._areas, _iou)
        return {score.name: score}

    @cached_property
    def _is_in(self) -> NDArray[np.int64]:
        """Whether each cell of a matrix is in intersection and union of both, (C · (C + 1), 4)."""
        number, at = self.classes.num_classes, self.background
        true, predicted = np.arange(number)[:, None] == at, np.arange(number + 1) == at
        other = ~predicted & (np.arange(number + 1) < number)  # no class is neither
        kinds = true & predicted, true | predicted, ~true & other, ~true | other
        return np.stack([kind.ravel() for kind in kinds], -1).astype(np.int64)

    def _areas(self, parts: Any) -> NDArray[np.int64]:
        """Intersection and union of background and foreground of N images, (N, 2, 2)."""
        areas: NDArray[np.int64] = (table_sums(parts) @ self._is_in).reshape(-1, 2, 2)
        return areas


def _iou(areas: NDArray[Any]) -> Floats:
    return ratio(areas[..., 0], areas[..., 1])
