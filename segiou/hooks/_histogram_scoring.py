"""Scoring of hooks: a confusion matrix, or the histograms of a passed accumulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou._support.text import capital
from segiou.histograms.score_bins import Activation
from segiou.histograms.score_counts import ScoreHistogram
from segiou.histograms.score_plan import ScoreOptions
from segiou.hooks._scoring import Scores, Scoring, digest, with_shape, without_channel
from segiou.labels.class_options import ClassOptions
from segiou.measures.measure import Masks, Plan


class HistogramScoring:
    """Score names, and the reading of batches, for histograms; the interface of `Scoring`."""

    def __init__(
        self,
        histogram: ScoreHistogram,
        *,
        scores: Scores,
        axis: int | None,
        activation: Activation | None,
        ignore: Any = (),
    ) -> None:
        given = histogram._classes
        more = ClassOptions.of(given.labels, ignore=ignore).ignore
        self.options = replace(given, ignore=tuple(dict.fromkeys((*given.ignore, *more))))
        self._like = histogram.bins.kind, histogram.regions
        measure = ScoreOptions(activation or "", bins=histogram.bins.kind)
        self.plan: Plan = measure.plan(self.options, Masks())
        self.rows: int = measure.rows
        self.axis = axis
        self.threshold = None  # scores are not decided
        self.how: dict[str, Any] = {"axis": axis, "activation": activation}
        self.names = (scores,) if isinstance(scores, str) else tuple(scores)
        for name in self.names:
            check_choice("scores", name, tuple(self.plan.scores))
        #: The score that was requested as a single name.
        self.only = scores if isinstance(scores, str) else None
        self._digest = digest([self.options.to_dict(), [*self._like], self.how])

    def digest(self) -> list[int]:
        """Bytes that are equal for options that count the same scores equally."""
        return self._digest

    @property
    def higher_is_better(self) -> bool:
        """Whether the first score is better if higher."""
        return self.plan.scores[self.names[0]].better == "higher"

    def empty(self) -> ScoreHistogram:
        """Histograms without counts."""
        return ScoreHistogram.from_options(self.options, *self._like)

    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Truth without a class axis of size 1, scores, and the keywords for `update`."""
        truth, pred = with_shape(truth, "truth"), with_shape(pred, "scores")
        same = len(truth.shape) == len(pred.shape)
        if self.axis is not None and same and tuple(truth.shape) != tuple(pred.shape):
            truth = without_channel(truth, self.axis)
        return truth, pred, self.how

    def values(self, counted: Any, separator: str = "/") -> dict[str, float]:
        """Overall scores by name; NaN if undefined."""
        cells: NDArray[Any] = counted._cells[: counted.num_classes + 2].ravel()
        return {name: float(self.plan.scores[name].evaluate(cells)[0]) for name in self.names}


AnyScoring = Scoring | HistogramScoring
Kind = TypeVar("Kind")


def scoring_of(
    labels: Any,
    *,
    scores: Scores | None,
    default: Scores,
    axis: int | None = 1,
    activation: Activation | None = None,
    **options: Any,
) -> AnyScoring:
    """How a hook counts and scores: histograms if `labels` is an accumulator of them."""
    if not isinstance(labels, ScoreHistogram):
        if axis is None or activation is not None:
            name = "axis=None" if axis is None else "activation"
            msg = f"{name} needs a segiou.ScoreHistogram in place of the labels"
            raise ValueError(msg)
        return Scoring(labels, scores=default if scores is None else scores, axis=axis, **options)
    ignore = options.pop("ignore", ())
    usual = {"protocol": "segiou", "threshold": None}
    if other := [name for name, value in options.items() if value != usual.get(name, ...)]:
        msg = f"{other[0]} does not apply to a ScoreHistogram; pass its classes to the histogram"
        raise ValueError(msg)
    if scores is None:
        scores = "average_precision" if isinstance(default, str) else _names()
    return HistogramScoring(labels, scores=scores, axis=axis, activation=activation, ignore=ignore)


def _names() -> tuple[str, ...]:
    return tuple(ScoreOptions().plan(ClassOptions.of(2), Masks()).scores)


_NO_REPEATS = "use a sampler without repetition, such as range(rank, len(dataset), processes)"
_ONLY_FOR_PIXELS = {
    "ids": f"ids need counts per image, which a ScoreHistogram does not keep; {_NO_REPEATS}",
    "report": "report needs a confusion matrix; add a callback with the labels for it",
}


def only_for_pixels(scoring: AnyScoring, **given: Any) -> None:
    """Raise a ValueError for options that histograms do not have."""
    names = [name for name, value in given.items() if value]
    if names and isinstance(scoring, HistogramScoring):
        raise ValueError(_ONLY_FOR_PIXELS[names[0]])


def fix_of_repeats(scoring: AnyScoring, fix: str) -> str:
    """The end of a warning of repeated images: the fix, or that of histograms."""
    return capital(_NO_REPEATS) if isinstance(scoring, HistogramScoring) else fix


def of_kind(counted: Any, kind: type[Kind]) -> Kind:
    """An accumulator of a hook; TypeError if the hook counts something else."""
    if not isinstance(counted, kind):
        msg = f"the counts are a {type(counted).__name__}, not a {kind.__name__}"
        raise TypeError(msg)
    return counted
