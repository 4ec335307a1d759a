"""The measure of saliency: grey maps of one foreground, scored from histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.histograms.score_bins import two_planes
from segiou.labels.class_options import ClassOptions
from segiou.masks.colors import grey_scores, grey_values
from segiou.masks.raw_mask import MaskError, RawMask, image_shape
from segiou.masks.read import from_bytes
from segiou.measures.mask_pair import MaskPair, Masks, ScoredPrediction
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.saliency.formulas import (
    CURVES,
    OF_IMAGES,
    SCORES,
    SaliencyScores,
    checked_map,
    curves_of,
    image_values,
    of_curve,
)
from segiou.measures.saliency.levels import GreyMap
from segiou.measures.score import Better, Score, case_values, finite_parts, mean_of_parts
from segiou.metrics.ratio import Floats


@dataclass(frozen=True)
class SaliencyOptions(Measure):
    """Grey maps of one foreground, such as salient objects or polyps, as PySODMetrics scores them.

    Predictions are maps: 8- or 16-bit greyscale images, or arrays of scores in [0, 1]. Each is
    stretched to [0, 1]; the confusion matrix counts values above 0.5.

    Examples
    --------
    >>> SaliencyOptions()
    SaliencyOptions()
    """

    key: ClassVar[str] = "saliency"
    title: ClassVar[str] = "Saliency"
    score_names: ClassVar[tuple[str, ...]] = tuple(SaliencyScores.__annotations__)
    #: PySODMetrics takes grey values above 128 of the truth as foreground.
    reading: ClassVar[Mapping[str, Any]] = {"truth_threshold": 129}

    @classmethod
    def class_names(cls, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The classes of a map."""
        return ("background", "foreground") if given.get(cls.key) else None

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for two classes in images."""
        if classes.num_classes != 2 or masks.volumes:
            kind = "volumes" if masks.volumes else f"{classes.num_classes} classes"
            msg = f"saliency maps score one foreground in images, so two classes, not {kind}"
            raise ValueError(msg)
        return SaliencyPlan(self, classes, masks)


@dataclass(frozen=True)
class SaliencyPlan(Plan):
    """Plan of the measure of saliency."""

    measure: SaliencyOptions

    reads_predictions: ClassVar[bool] = True

    @property
    def layout(self) -> Layout:
        """Scores of each image; and its pixels outside and inside the truth in 256 bins."""
        return {
            "cases": Field((1, len(OF_IMAGES)), rows=True, floats=True, single=True),
            "pixels": Field((2, 256), rows=True, single=True),
        }

    def read_prediction(
        self, data: bytes | RawMask, path: str, truth: tuple[int, ...]
    ) -> ScoredPrediction:
        """Read a map, whose foreground is above 0.5 of its range."""
        raw = from_bytes(data, path, floats=True)
        values = np.asarray(raw.values)
        if values.dtype.kind != "f":
            grey = grey_values(raw, path, "to score it as a map")
            values = grey_scores(
                raw._replace(values=grey, mode="L" if raw.is_color else raw.mode), path
            )
        if values.shape != truth and image_shape(values.shape, truth) == truth:
            values = values.reshape(truth)
        try:
            scores = checked_map(values, truth)
        except ValueError as error:
            raise MaskError(path, str(error)) from None
        labels = self.classes.decided_values[_decided(scores)]
        return ScoredPrediction(labels, scores)

    def class_scores(self, scores: NDArray[Any], truth: tuple[int, ...]) -> NDArray[Any] | None:
        """The map and its inverse."""
        return two_planes(scores, None)

    def count(self, pair: MaskPair) -> Parts:
        """Score one image."""
        if pair.scores is None:
            msg = (
                "saliency needs maps, but the prediction contains labels; pass scores with "
                "threshold=0.5, or files of maps"
            )
            raise ValueError(msg)
        truth = pair.codes[0]
        scores = checked_map(pair.scores, truth.shape)
        valid = None if (truth < 2).all() else truth < 2
        values, pixels = image_values(truth == 1, scores, valid)
        return Parts.of(self.layout, cases=values[None], pixels=pixels)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Means over images, and largest and mean values of the mean curves."""
        names = self.classes.labels.class_names[1:]
        scores = {}
        for name, (title, curve, is_max) in SCORES.items():
            if curve:
                scores[name] = self._curve_score(name, title, names, curve, is_max=is_max)
                continue
            values = partial(case_values, OF_IMAGES.index(name))
            better: Better = "lower" if name == "mae" else "higher"
            scores[name] = Score.of_cases(name, title, names, values, better=better)
        return scores

    def _curve_score(
        self, name: str, title: str, names: Sequence[str], curve: str, *, is_max: bool
    ) -> Score:
        """A score of the mean of a curve over the images."""
        at = CURVES.index(curve)

        def numbers(parts: Parts) -> NDArray[np.int64]:
            return finite_parts(curves_of(parts["pixels"])[:, None, at])

        def value(sums: NDArray[Any]) -> Floats:
            means = mean_of_parts(sums.reshape(*sums.shape[:-1], 256, 3))
            return of_curve(means, is_max=is_max)

        return Score.of_names(name, title, names, [True], numbers, value, rule="cases")


def _decided(scores: NDArray[Any]) -> NDArray[np.intp]:
    """Index of the class of each pixel of a map: 1 above 0.5 of its range."""
    return (GreyMap.of(scores).values > 0.5).astype(np.intp)
