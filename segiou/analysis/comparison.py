"""What a comparison holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segiou._support.arguments import check_integer
from segiou._support.text import plain
from segiou.analysis import comparison_words as words
from segiou.analysis.dependence import Dependence
from segiou.analysis.imbalance_difference import ImbalanceDifference
from segiou.analysis.significance import Power
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
        """Whether interval and adjusted p both speak for a difference."""
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
        """Classes that differ after Holm's adjustment, the widest difference first."""
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
class Comparison:
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

    metric: str
    aggregate: str
    protocol: str
    names: tuple[str, ...]
    images: int
    unit: str
    units: int
    level: float
    method: str
    resamples: int
    seed: int
    ranking: tuple[Ranked, ...]
    pairs: tuple[PairComparison, ...]
    dependence: Dependence | None = None
    block_length: float | None = None

    @property
    def unsafe(self) -> bool:
        """Whether the images were taken for independent although they may not be."""
        return self.unit == "image" and self.dependence is not None and self.dependence.noteworthy

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        return words.sentences(self)

    def ranking_sentences(self) -> list[str]:
        """Say in which order the models come; empty of two."""
        return words.ranking_sentences(self)

    def pair_sentences(self, pair: PairComparison) -> list[str]:
        """Say what was found of two models."""
        return words.pair_sentences(self, pair)

    def closing_sentences(self) -> list[str]:
        """Say how far all of it can be relied on."""
        return words.closing_sentences(self)

    def to_text(self, width: int = 100) -> str:
        """Write sentences and tables as plain text.

        Parameters
        ----------
        width : int
            Columns of the paragraphs; tables are as wide as they must be.
        """
        return words.text(self, check_integer("width", width, 1))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
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
