"""Comparison results, as numbers and as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from segiou._support import text
from segiou._support.arguments import check_kind
from segiou._support.optional import Drawable
from segiou._support.text import Json
from segiou.analysis.comparison import text as comparison_text
from segiou.analysis.comparison.ranking import ModelRank, Ranking
from segiou.analysis.gap.imbalance_difference import ImbalanceDifference
from segiou.document.findings import Finding
from segiou.document.parts import Part
from segiou.inference.intervals import OverUnits
from segiou.inference.significance import Power, is_significant
from segiou.inference.units import FEW_UNITS, FEWEST_COMPARED
from segiou.measures.score import MEAN

if TYPE_CHECKING:
    from segiou.analysis.comparison.model_table import ModelTable


@dataclass(frozen=True, slots=True)
class Difference:
    """A score of two models and its difference, second minus first.

    Attributes
    ----------
    name : str
        Name of the class, or of the score over all classes.
    a, b : float
        The score of each model.
    delta : float
        b − a.
    low, high : float
        Limits of the paired interval of delta, from the permutations of the test, or by Student's
        t for three to five units; NaN for fewer, or if all units differ by the same amount. Those
        of the score of one of more than two models are adjusted over the pairs like ``p_holm``.
    standard_error : float
        Jackknife standard error of delta, or its standard deviation over the
        resamples.
    p : float
        p-value of the paired permutation test; of Student's t for three to five units. Without
        an adjustment and a bootstrap, the interval excludes 0 if and only if p < 1 − level.
    p_holm : float
        Holm-adjusted p: over the classes for a class, over the pairs of models
        for the score. All pairs of the best model have the largest p of these pairs,
        because "it is the best" is a single claim.
    units : int
        Units whose truth contains the class; for the score, all units.
    undefined_share : float
        Share of the resamples in which delta was undefined; NaN if nothing was
        resampled.
    freedom : float
        Degrees of freedom of the standard error; NaN for the bootstrap.
    """

    name: str
    a: float
    b: float
    delta: float
    low: float
    high: float
    standard_error: float
    p: float
    p_holm: float
    units: int
    undefined_share: float = math.nan
    freedom: float = math.nan

    @property
    def few(self) -> bool:
        """Whether too few units contain the class."""
        return self.units < FEW_UNITS

    def differs(self, level: float) -> bool:
        """Whether the adjusted p is below 1 − level.

        Parameters
        ----------
        level : float
            Level of the intervals, such as 0.95.
        """
        return bool(is_significant(self.p_holm, level))


@dataclass(frozen=True, slots=True)
class InfluentialImage:
    """An image with a large influence on the difference.

    Attributes
    ----------
    id : str
    effect : float
        Delta minus delta without the image.
    a, b : float
        The score of each model on this image; means cover the classes in its truth.
    """

    id: str
    effect: float
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Comparison of two models.

    Attributes
    ----------
    a, b : str
        Names of the models; differences are b minus a.
    overall : Difference
    classes : tuple of Difference
        Empty for a metric without per-class values.
    permutations : int
    exact : bool
        Whether these are all permutations.
    favours_a, favours_b : tuple of InfluentialImage
        The most influential images in favour of each model, strongest first.
    power : Power
    defined_for_one : tuple of str
        Classes whose score is defined for one model only; the means exclude them.
    imbalance : ImbalanceDifference
        Pixel accuracy and mean IoU of the two models.
    images_differing : int
        Number of images on which the counts of the models differ.
    bounds : tuple of float
        One-sided 95 % bounds of the difference of the score.
    over : mapping
        Their units, which depend on no third model: ``unit``, ``units``, ``dependence``,
        ``block_length``, ``independence`` and ``limit``, as of the comparison.
    """

    a: str
    b: str
    overall: Difference
    classes: tuple[Difference, ...]
    permutations: int
    exact: bool
    favours_a: tuple[InfluentialImage, ...]
    favours_b: tuple[InfluentialImage, ...]
    power: Power
    defined_for_one: tuple[str, ...]
    imbalance: ImbalanceDifference
    images_differing: int
    bounds: tuple[float, float] = (math.nan, math.nan)
    over: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: Whether p of the score is of Student's t.
    _is_students: bool = field(default=False, repr=False, compare=False)

    def different(self, level: float) -> tuple[Difference, ...]:
        """Classes with a significant difference, largest first.

        Parameters
        ----------
        level : float
            Level of the intervals, such as 0.95.
        """
        differing = [c for c in self.classes if c.differs(level)]
        return tuple(sorted(differing, key=lambda c: -abs(c.delta)))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(OverUnits, Finding, Drawable):
    """Comparison of models on the same images.

    Attributes
    ----------
    metric, aggregate, protocol : str
        The score, how it was aggregated, and the protocol of its mean.
    names : tuple of str
        Names of the models, in the given order.
    images : int
    unit : {"image", "group", "sequence", "batch"}
        Unit that is omitted or resampled, and permuted.
    units : int
        Number of units.
    level : float
    method : {"permutation", "percentile", "bca"}
    resamples, seed : int or None
        None if nothing is random.
    ranking : tuple of ModelRank
        Best score first.
    pairs : tuple of PairComparison
        Every pair, in the given order.
    dependence : Dependence or None
        Dependence between the images, estimated from the differences between
        the models (the pair with the largest design effect). None if groups
        were passed or the images were declared independent.
    block_length : float or None
        Mean number of images per batch, if batches were asked for.
    better : {"higher", "lower"}
        Which values of the score are better.
    score_unit : str
        Unit of the score, such as ``"mm"``; empty for a ratio.
    overall : str
        Name of the score over all classes: ``"mean"``, or for example ``"harmonic mean"``.
    independence : str
        Why images are treated as independent, if they are.
    limit : Caution or None
        Why the intervals are unreliable, if they are.
    run_scores : tuple of tuple of float
        Scores of the training runs of each model; empty if each has one run.
    stability : Ranking or None
        The ranking with its stability, of more than two models.
    excluded_classes : mapping of str to str
        Classes that the means of all models exclude, with the reason: ``"excluded"`` by the
        options or the protocol, or ``"absent"``.
    uncommon_classes : tuple of str
        Classes that only some of the models score, which the means
        exclude. A class that the truth lacks counts 0 for a model that predicts it
        and is skipped for the others.
    protocol_scores : tuple of float
        The score of each model over all classes of the protocol, if classes are
        excluded.
    is_matched : bool
        Whether clusters of a model were matched to classes, which tests treat as fixed.
    """

    _plot_kind = "comparison_forest"

    metric: str
    protocol: str
    names: tuple[str, ...]
    images: int
    ranking: tuple[ModelRank, ...]
    pairs: tuple[PairComparison, ...]
    better: str = "higher"
    overall: str = MEAN
    run_scores: tuple[tuple[float, ...], ...] = ()
    stability: Ranking | None = None
    excluded_classes: Mapping[str, str] = field(default_factory=dict)
    uncommon_classes: tuple[str, ...] = ()
    protocol_scores: tuple[float, ...] = ()
    is_matched: bool = False

    @property
    def too_few(self) -> bool:
        """Whether there are too few units to compare models."""
        return self.units < FEWEST_COMPARED

    def of(self, pair: PairComparison) -> Comparison:
        """The same over the units of a pair.

        Parameters
        ----------
        pair : PairComparison
            Two of the models.
        """
        check_kind("pair", pair, PairComparison, "one of Comparison.pairs")
        return replace(self, **pair.over)

    @property
    def best_pair(self) -> PairComparison:
        """The comparison of the best two models of the ranking."""
        best = {model.name for model in self.ranking[:2]}
        return next((pair for pair in self.pairs if {pair.a, pair.b} == best), self.pairs[0])

    @property
    def ordered_pairs(self) -> tuple[PairComparison, ...]:
        """All pairs; the best two models come first."""
        best = self.best_pair
        return (best, *(pair for pair in self.pairs if pair is not best))

    def sentences(self) -> list[str]:
        """Return the findings as sentences, rounded to 0.01 points."""
        lines: list[str] = []
        for pair in self.ordered_pairs:
            lines += [*self.pair_sentences(pair), comparison_text.contributions(self, pair)]
            if pair.imbalance.disagree:
                lines += pair.imbalance.sentences()
            if pair.images_differing:
                lines += comparison_text.method(self, pair)
        return [line for line in dict.fromkeys(lines) if line]

    def outcome(self, pair: PairComparison) -> comparison_text.Outcome:
        """The finding of the comparison of two models, which the verdict puts into words.

        Parameters
        ----------
        pair : PairComparison
            Two of the models.

        Returns
        -------
        Outcome
            Its kind, and the models, the better one first.
        """
        check_kind("pair", pair, PairComparison, "one of Comparison.pairs")
        return comparison_text.outcome(self, pair)

    def pair_sentences(self, pair: PairComparison) -> list[str]:
        """Return the verdict, its evidence and at most one caution.

        Parameters
        ----------
        pair : PairComparison
            Two of the models.
        """
        check_kind("pair", pair, PairComparison, "one of Comparison.pairs")
        return [*comparison_text.claims(self, pair), *comparison_text.cautions(self, pair)]

    def limitations(self) -> list[str]:
        """Return the limitations of the images and models: independence and scope."""
        return comparison_text.limitations(self)

    def table(self) -> ModelTable:
        """Return the scores of all models by class, see :func:`segiou.analysis.model_table`."""
        from segiou.analysis.comparison.model_table import table_of

        return table_of([self])

    def _parts(self) -> Iterable[Part]:
        from segiou.analysis.comparison.document import comparison_parts

        return comparison_parts(self)

    def __repr__(self) -> str:
        names = text.listed(self.names, 6)
        images = text.plural(self.images, self._image)
        return f"<Comparison of {names} by {self.metric}: {images}>"

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data = self._plain()
        for result, pair in zip(self.pairs, data["pairs"], strict=True):
            pair["imbalance"] = result.imbalance.to_dict()
            del pair["over"]
            pair["unit"], pair["units"] = result.power.unit, result.power.units
        data["stability"] = None if self.stability is None else self.stability.to_dict()
        return data | {"sentences": self.sentences()}

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per pair of models and class, the score over all classes first.

        Yields
        ------
        dict
            The values of a row by column.
        """
        shown = ("name", "a", "b", "delta", "low", "high", "standard_error", "p", "p_holm", "units")
        for pair in self.pairs:
            for row in (pair.overall, *pair.classes):
                yield {"model_a": pair.a, "model_b": pair.b} | {n: getattr(row, n) for n in shown}
