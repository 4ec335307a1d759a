"""What a comparison holds, in numbers and sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from segiou._support import text
from segiou._support.arguments import check_integer
from segiou._support.optional import Drawable
from segiou._support.text import Json
from segiou.analysis.bootstrapping import Method, OverUnits
from segiou.analysis.dependence import Dependence
from segiou.analysis.imbalance import ImbalanceDifference
from segiou.analysis.units import FEW_UNITS


@dataclass(frozen=True, slots=True)
class Difference:
    """One score of two models, second minus first.

    Attributes
    ----------
    name : str
        Of the class, or of the score over all classes.
    a, b : float
        The score of each model.
    delta : float
        b − a.
    low, high : float
        Ends of the paired bootstrap interval of delta; NaN over fewer than ten
        groups.
    standard_error : float
        Standard deviation of delta over the resamples.
    p : float
        Paired permutation p.
    p_holm : float
        Holm's adjustment: of a class over the classes, of the score over the
        pairs of models.
    units : int
        Units whose truth has the class; for the score all units.
    undefined_share : float
        Share of the resamples in which delta had no value.
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
    undefined_share: float

    @property
    def few(self) -> bool:
        """Seen in too few units to rely on."""
        return self.units < FEW_UNITS

    def differs(self, level: float) -> bool:
        """Whether interval and adjusted p both speak for a difference.

        Parameters
        ----------
        level : float
            Level of the intervals, such as 0.95.

        Returns
        -------
        bool
        """
        return (self.low > 0 or self.high < 0) and self.p_holm < 1 - level


@dataclass(frozen=True, slots=True)
class InfluentialImage:
    """An image that moves the difference.

    Attributes
    ----------
    id : str
    effect : float
        How much larger delta is for having the image: delta minus what it
        would be without it.
    a, b : float
        The score of each model on the image alone.
    """

    id: str
    effect: float
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class Power:
    """Chance to see the observed difference with other numbers of units.

    Attributes
    ----------
    unit : {"image", "group"}
    difference : float
        The difference taken for true: the observed one.
    level : float
        Level of the intervals that must exclude 0.
    target : float
        Power to be reached.
    units : int
        Units of the run.
    now : float
        Power with as many.
    needed : int or None
        Units for the target power; None where a million would not do, or the
        difference is 0 or undefined. 5 stands for 5 or fewer.
    grid : tuple of (int, float)
        Numbers of units and the power found with each.
    simulations : int
        Simulated experiments for each.
    """

    unit: str
    difference: float
    level: float
    target: float
    units: int
    now: float
    needed: int | None
    grid: tuple[tuple[int, float], ...]
    simulations: int

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        return dict(text.plain(self))


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two models compared.

    Attributes
    ----------
    a, b : str
        Their names; differences are b minus a.
    overall : Difference
    classes : tuple of Difference
        Empty for a metric of all classes at once.
    permutations : int
        Swaps looked at.
    exact : bool
        Whether these were all there are.
    for_a, for_b : tuple of InfluentialImage
        Images that move the difference most towards each model, the strongest
        first.
    power : Power
    one_sided : tuple of str
        Classes that have a value with one model only, so that the two means
        cover different classes.
    imbalance : ImbalanceDifference
        Why the two stand as they do in pixel accuracy and in mean IoU.
    """

    a: str
    b: str
    overall: Difference
    classes: tuple[Difference, ...]
    permutations: int
    exact: bool
    for_a: tuple[InfluentialImage, ...]
    for_b: tuple[InfluentialImage, ...]
    power: Power
    one_sided: tuple[str, ...]
    imbalance: ImbalanceDifference

    def different(self, level: float) -> tuple[Difference, ...]:
        """Classes that differ after Holm's adjustment, the widest difference first.

        Parameters
        ----------
        level : float
            Level of the intervals, such as 0.95.

        Returns
        -------
        tuple of Difference
        """
        found = [c for c in self.classes if c.differs(level)]
        return tuple(sorted(found, key=lambda c: -abs(c.delta)))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A model's place among several.

    Attributes
    ----------
    name : str
    value : float
    low, high : float
        Bootstrap interval of the score itself. Those of two models may overlap
        although their difference is clear: they share their images.
    best : float
        Share of the resamples in which no other model was better; ties are
        split evenly.
    """

    name: str
    value: float
    low: float
    high: float
    best: float


@dataclass(frozen=True, slots=True)
class Comparison(OverUnits, Drawable):
    """Models compared on the same images.

    Attributes
    ----------
    metric, aggregate, protocol : str
        What was averaged, and how.
    names : tuple of str
        The models, in the order given.
    images : int
    unit : {"image", "group", "block"}
        What was resampled and swapped.
    units : int
        How many there are.
    level : float
    method : {"percentile", "bca"}
    resamples, seed : int
    ranking : tuple of Ranked
        The highest score first.
    pairs : tuple of PairComparison
        Every pair, in the order given; one of two models.
    dependence : Dependence or None
        How far the images are from independent, by the differences of the
        models on them: of the pair with the largest design effect. None where
        groups were given, or the images said to be independent.
    block_length : float or None
        Mean length of the blocks that were drawn, if they were.
    """

    _plot_kind = "comparison_forest"

    metric: str
    aggregate: str
    protocol: str
    names: tuple[str, ...]
    images: int
    unit: str
    units: int
    level: float
    method: Method
    resamples: int
    seed: int
    ranking: tuple[Ranked, ...]
    pairs: tuple[PairComparison, ...]
    dependence: Dependence | None = None
    block_length: float | None = None

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        pairs = (said for pair in self.pairs for said in self.pair_sentences(pair))
        return [*self.ranking_sentences(), *pairs, *self.closing_sentences()]

    def ranking_sentences(self) -> list[str]:
        """Say in which order the models come; empty of two."""
        if len(self.names) == 2:
            return []
        order = f"In order of {self.pairs[0].overall.name}"
        scores = [f"{r.name} {text.percent(r.value)}" for r in self.ranking]
        if math.isnan(self.ranking[0].best):
            return [f"{order}: {text.listed(scores, 10)}."]
        words = {0.0: "none", 1.0: "all"}
        best = [words.get(r.best, text.percent(r.best)) for r in self.ranking]
        places = [f"{score} ({share})" for score, share in zip(scores, best, strict=True)]
        return [
            f"{order}, with the share of {self.resamples} resamples of the {self.unit}s in which "
            f"each is best: {text.listed(places, 10)}."
        ]

    def pair_sentences(self, pair: PairComparison) -> list[str]:
        """Say what was found of two models.

        Parameters
        ----------
        pair : PairComparison
            Two of the models.

        Returns
        -------
        list of str
        """
        if math.isnan(pair.overall.delta):
            return [f"{pair.a} and {pair.b} cannot be compared: one of the scores is undefined."]
        said = [_lead_sentence(self, pair), _verdict_sentence(self, pair)]
        if pair.overall.delta and self.units >= FEW_UNITS:
            said.append(_power_sentence(self, pair))
        if pair.classes:
            said.append(_classes_sentence(self, pair))
        if pair.imbalance.disagree:
            said += pair.imbalance.sentences()
        if pair.one_sided:
            said.append(
                f"{text.classes(pair.one_sided)}: only one of the two has a value, so the means "
                "cover different classes."
            )
        return said

    def closing_sentences(self) -> list[str]:
        """Say how far all of it can be relied on."""
        few = "take intervals and p for hints, and more likely too sure than too cautious."
        return [*self._doubts(few, p=True), _limits_sentence(self)]

    def to_text(self, width: int = 100, *, color: bool = False) -> str:
        """Write sentences and tables for a terminal.

        Parameters
        ----------
        width : int
            Columns to fill; where they are few, the tables have fewer columns.
        color : bool
            Whether to use ANSI colours.

        Returns
        -------
        str
        """
        from segiou.report.findings_text import render_comparison

        return render_comparison(self, check_integer("width", width, 1), color=color)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = text.plain(self)
        for pair in found["pairs"]:
            for row in (pair["overall"], *pair["classes"]):
                row["vanished"] = row.pop("undefined_share")
        found["dependence"] = None if self.dependence is None else self.dependence.to_dict()
        found["sentences"] = self.sentences()
        return found

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou.report.notebook import render_comparison_notebook

        return render_comparison_notebook(self)


def _ahead(pair: PairComparison) -> tuple[str, str]:
    return (pair.b, pair.a) if pair.overall.delta > 0 else (pair.a, pair.b)


def _lead_sentence(found: Comparison, pair: PairComparison) -> str:
    score = pair.overall
    if score.delta == 0:
        return f"{pair.a} and {pair.b} have the same {score.name}, {text.percent(score.a)}."
    first, second = _ahead(pair)
    higher, lower = (text.percent(x) for x in sorted((score.a, score.b), reverse=True))
    low, high = (score.low, score.high) if score.delta > 0 else (-score.high, -score.low)
    ends = f"{text.points(low)} to {text.points(high)} points"
    interval = f"{100 * found.level:g} % interval of the lead {ends}, "
    if math.isnan(low):
        interval = "no interval, "
    p = f"p = {text.p_text(score.p)}"
    if len(found.pairs) > 1:
        p = f"{p}, {text.p_text(score.p_holm)} after Holm"
    swaps = f"all {pair.permutations}" if pair.exact else f"{pair.permutations}"
    return (
        f"{first} is {text.points(abs(score.delta))} points of {score.name} ahead of {second} "
        f"({higher} against {lower}); {interval}{p} ({swaps} swaps of the two on {found.unit}s)."
    )


def _verdict_sentence(found: Comparison, pair: PairComparison) -> str:
    score = pair.overall
    first, _ = _ahead(pair)
    others = _others(found)
    outside = score.low > 0 or score.high < 0 or math.isnan(score.low)
    unlikely = score.p_holm < 1 - found.level
    if score.delta == 0:
        return f"On {others} either could be ahead."
    if (least := 2.0 ** (1 - found.units)) >= 1 - found.level:
        return (
            f"With {text.plural(found.units, found.unit)} no p below {least:.2f} is possible, so "
            f"nothing can be said about other {found.unit}s."
        )
    if outside and unlikely and found.unsafe:
        return (
            "If the images were independent, the difference would be unlikely to be one of these "
            f"images alone. They may not be, so it is not shown that {first} would be ahead on "
            f"{others}."
        )
    if outside and unlikely:
        return (
            f"The difference is unlikely to be one of these {found.unit}s alone: on {others} "
            f"{first} would probably be ahead again."
        )
    if outside or unlikely:
        return f"Borderline: interval and test disagree on whether {first} is ahead on {others}."
    return (
        f"The difference may be one of {found.unit}s, not of models: on {others} it could well "
        "be gone or reversed."
    )


def _others(found: Comparison) -> str:
    """What a comparison is about, apart from the images at hand."""
    if found.block_length is not None and found.dependence is not None:
        return f"other stretches of {found.dependence.where}"
    if found.unsafe and found.dependence is not None:
        few = found.dependence.few_sequences
        return "images of other sequences" if few else "other images"
    return f"another {text.plural(found.units, found.unit)} of this kind"


def _power_sentence(found: Comparison, pair: PairComparison) -> str:
    power = pair.power
    if math.isnan(power.now):
        return "How many images a difference of this size needs cannot be said from this run."
    chance = f"with {power.units}, as here, {text.roughly(power.now)}"
    if power.needed is None:
        return (
            f"No number of {power.unit}s tried, up to {power.grid[-1][0]}, shows a difference of "
            f"this size four times in five; {chance} of such comparisons would."
        )
    needed = text.plural(power.needed, power.unit)
    few = " or fewer" if power.needed == power.grid[0][0] else ""
    if_independent = ", if they are independent" if found.unsafe else ""
    return (
        f"To see a difference of this size four times in five takes about {needed}{few}"
        f"{if_independent}; {chance} of such comparisons would."
    )


def _classes_sentence(found: Comparison, pair: PairComparison) -> str:
    differing = pair.different(found.level)
    if not differing:
        return f"No single class differs between {pair.a} and {pair.b} after Holm's correction."
    shown = [f"{text.called(c.name)} {text.signed_points(c.delta)}" for c in differing]
    head = "The class that differs" if len(shown) == 1 else "Classes that differ"
    return (
        f"{head} after Holm's correction, in points, {pair.b} minus {pair.a}: "
        f"{text.listed(shown, 8)}."
    )


def _limits_sentence(found: Comparison) -> str:
    about = f"other {found.unit}s of the same kind"
    if found.block_length is not None:
        about = _others(found)
    elif found.unsafe and found.dependence is not None and found.dependence.few_sequences:
        about = f"other images of {found.dependence.where}"
    return (
        f"All of this is about {about}, scored with these same models. It says nothing of "
        "training them again, nor of other kinds of images."
    )
