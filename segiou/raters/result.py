"""The agreement of raters: its numbers, sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from segiou._support.arguments import check_choice
from segiou._support.numbers import (
    COEFFICIENT,
    cell,
    change_range,
    interval_name,
    p_text,
    points,
    shown,
    shown_range,
    signed_points,
)
from segiou._support.text import Json, called, listed, plain, plural
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Column, Facts, Line, Part, Table
from segiou.metrics.ratio import Floats

#: Scores of a pair of raters.
PAIR_SCORES = ("dice", "iou", "mean_dice", "mean_iou")


#: Scores of all experts together.
_OF_ALL = ("agreement", "unanimity", "fleiss_kappa", "krippendorff_alpha")


class Estimate(NamedTuple):
    """A value with its interval over cases.

    Attributes
    ----------
    value, low, high : float
        NaN if undefined; the ends also if fewer than two cases have a value.
    cases : int
        Number of cases with a value.
    """

    value: float
    low: float
    high: float
    cases: int


class RaterPair(NamedTuple):
    """Overlap of two raters for one class, over pixels that both marked.

    Attributes
    ----------
    first, second : str
        Names of the raters.
    class_name : str
        The class.
    dice, iou : Estimate
        Pixels are pooled over the cases that both have.
    mean_dice, mean_iou : Estimate
        Mean over the cases in which at least one of them has the class.
    """

    first: str
    second: str
    class_name: str
    dice: Estimate
    iou: Estimate
    mean_dice: Estimate
    mean_iou: Estimate


class ExpertTest(NamedTuple):
    """Whether the model passes as one more expert of the same population.

    Attributes
    ----------
    p : float
        Two-sided p; small if the model differs.
    t : float
        Student's t.
    freedom : int
        Degrees of freedom: the number of experts minus 1.
    reason : str
        Why there is no test; empty if there is one.
    """

    p: float
    t: float
    freedom: int
    reason: str = ""


class ModelAgreement(NamedTuple):
    """How much more a model disagrees with the experts than they do among themselves.

    Attributes
    ----------
    class_name : str
        The class.
    difference : Estimate
        Mean over cases of the mean of 1 − Dice between model and experts minus its mean
        between experts; positive if the model disagrees more.
    expert : ExpertTest
        The test as one more expert.
    """

    class_name: str
    difference: Estimate
    expert: ExpertTest


@dataclass(frozen=True, repr=False)
class RaterAgreement(Finding):
    """Agreement of several raters on the same cases.

    Attributes
    ----------
    raters : tuple of str
        The experts.
    model : str
        Name of the model; empty without one.
    class_names : tuple of str
        The classes.
    ids : tuple of str
        The cases.
    missing : mapping of str to tuple of str
        Cases that a rater lacks, which are skipped in this rater's pairs.
    level : float
        Level of the intervals.
    unit : {"image", "group"}
        Unit that is omitted for intervals: the case, or a group of cases.
    agreement : Estimate
        Mean share of pairs of experts that agree on a pixel.
    unanimity : Estimate
        Share of pixels on which all experts agree.
    fleiss_kappa : Estimate
        Over pixels that all experts marked; these three skip cases that an expert lacks.
    krippendorff_alpha : Estimate
        Over pixels that at least two experts marked.
    pairs : tuple of RaterPair
        Pairs of experts, then of the model and each expert, per class.
    against_model : tuple of ModelAgreement
        One per class; empty without a model.
    """

    raters: tuple[str, ...]
    model: str
    class_names: tuple[str, ...]
    ids: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]
    level: float
    unit: str
    agreement: Estimate
    unanimity: Estimate
    fleiss_kappa: Estimate
    krippendorff_alpha: Estimate
    pairs: tuple[RaterPair, ...]
    against_model: tuple[ModelAgreement, ...]
    _pixel_unit: str = field(default="pixels", repr=False, compare=False)

    def matrix(self, score: str, class_name: str) -> Floats:
        """A score of every pair of raters, the model last.

        Parameters
        ----------
        score : {"dice", "iou", "mean_dice", "mean_iou"}
            Score of the pairs.
        class_name : str
            The class.

        Returns
        -------
        ndarray of float64, shape (K, K)
            Symmetric, with 1 on the diagonal.
        """
        check_choice("score", score, PAIR_SCORES)
        check_choice("class_name", class_name, self.class_names)
        names = [*self.raters, *([self.model] if self.model else [])]
        table = np.eye(len(names))
        for pair in self.pairs:
            if pair.class_name == class_name:
                a, b = names.index(pair.first), names.index(pair.second)
                table[a, b] = table[b, a] = getattr(pair, score).value
        return table

    def _parts(self) -> Iterator[Part]:
        """The verdict on the model, agreement of the experts, pairs per class, and scope."""
        claims = verdicts(self)
        yield from (Line(text, "bold") for text in claims)
        yield from [GAP] if claims else []
        yield Facts(
            [
                ("pairwise agreement", _ratio(self.agreement), _interval_text(self.agreement)),
                ("all agree", _ratio(self.unanimity), _interval_text(self.unanimity)),
                ("Fleiss' kappa", *_coefficient(self.fleiss_kappa)),
                ("Krippendorff's alpha", *_coefficient(self.krippendorff_alpha)),
            ]
        )
        if self.against_model:
            yield GAP
            yield _model_table(self)
        yield GAP
        yield _pair_table(self)
        yield GAP
        yield from map(Line, notes(self))

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per score, with its class and raters.

        Yields
        ------
        dict
            The values of a row by column.
        """
        none = {"class": "", "first": "", "second": ""}
        for score in _OF_ALL:
            yield {"score": score, **none, **getattr(self, score)._asdict()}
        for pair in self.pairs:
            names = {"class": pair.class_name, "first": pair.first, "second": pair.second}
            for score in PAIR_SCORES:
                yield {"score": score, **names, **getattr(pair, score)._asdict()}
        for row in self.against_model:
            names = {"class": row.class_name, "first": self.model, "second": ""}
            yield {"score": "difference", **names, **row.difference._asdict()}

    def to_dict(self) -> dict[str, Json]:
        """Plain values for JSON; NaN is None."""
        as_data: Callable[[Any], Any] = plain
        return {
            "raters": as_data(self.raters),
            "model": self.model or None,
            "classes": as_data(self.class_names),
            "cases": as_data(self.ids),
            "missing": {name: as_data(ids) for name, ids in self.missing.items()},
            "level": self.level,
            "unit": self.unit,
            **{name: as_data(getattr(self, name)._asdict()) for name in _OF_ALL},
            "pairs": [as_data(_nested(pair)) for pair in self.pairs],
            "against_model": [as_data(_nested(row)) for row in self.against_model],
        }


def _nested(row: Any) -> dict[str, Any]:
    fields = row._asdict()
    return {k: v._asdict() if hasattr(v, "_asdict") else v for k, v in fields.items()}


def verdicts(result: RaterAgreement) -> list[str]:
    """The verdict of each class that has one."""
    return [*filter(None, (_verdict(row, result) for row in result.against_model))]


def _verdict(row: ModelAgreement, result: RaterAgreement) -> str:
    """Whether the model disagrees with the experts more than they do among themselves."""
    value, low, high, cases = row.difference
    if math.isnan(value) or math.isnan(low):
        return ""
    model, size = called(result.model), points(abs(value))
    direction, other = ("lower", "higher") if value > 0 else ("higher", "lower")
    ends = (low, high) if value > 0 else (-high, -low)
    limits = f"{points(ends[0])} to {points(ends[1])} points {direction}"
    if ends[0] < 0:
        limits = f"from {points(-ends[0])} points {other} to {points(ends[1])} points {direction}"
    if low > 0 or high < 0:
        more = "more" if low > 0 else "less"
        claim = f"{model} disagrees with these experts {more} than they disagree with each other"
    else:
        claim = f"no significant difference between {model} and these experts"
    evidence = f"{interval_name(result.level)} {limits}, {plural(cases, 'case')}"
    return (
        f"{called(row.class_name)}: {claim}. Its Dice with them is {size} percentage "
        f"points {direction} than their Dice with each other ({evidence})."
    )


def notes(result: RaterAgreement) -> list[str]:
    """Missing cases, the scope of the numbers, and their limits."""
    lines = [
        f"{called(name)} lacks {plural(len(ids), 'case')} ({listed(ids)}), skipped in its pairs."
        for name, ids in result.missing.items()
    ]
    units, pixels = "groups" if result.unit == "group" else "cases", result._pixel_unit
    lines.append(
        f"{plural(len(result.raters), 'expert')}, {plural(len(result.ids), 'case')}. Intervals are "
        f"over {units}, never {pixels}. Pairs count the {pixels} that both marked; mean Dice and "
        "IoU are means over the cases in which either has the class."
    )
    if result.against_model:
        reason = _untested(result)
        lines.append(
            "The difference is valid for these experts only. An interval that contains 0 does not "
            "show agreement, so state the margin that matters. "
            + (
                f"There is no test as one more expert, because {reason}."
                if reason
                else "The test as one more expert generalises to other experts and assumes that "
                "each name is one person."
            )
        )
    return lines


def _untested(result: RaterAgreement) -> str:
    """Why no class has a test as one more expert; empty if one has, or reasons differ."""
    reasons = {row.expert.reason for row in result.against_model}
    return reasons.pop() if len(reasons) == 1 else ""


def _ratio(estimate: Estimate) -> str:
    return cell(estimate.value)


def _range(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.low) else shown_range(estimate.low, estimate.high)


def _interval_text(estimate: Estimate) -> str:
    """The interval and its cases, which exclude those that an expert lacks."""
    return ", ".join(filter(None, (_range(estimate), plural(estimate.cases, "case"))))


def _changes(estimate: Estimate) -> str:
    """The interval of the difference of Dice, which is that of distances turned around."""
    return "" if math.isnan(estimate.low) else change_range(-estimate.high, -estimate.low)


def _coefficient(estimate: Estimate) -> tuple[str, str]:
    if math.isnan(estimate.value):
        return "–", ""
    limits = shown_range(estimate.low, estimate.high, COEFFICIENT)
    ends = "" if math.isnan(estimate.low) else f"{limits}, "
    return shown(estimate.value, COEFFICIENT), f"{ends}{plural(estimate.cases, 'case')}"


def _pair_table(result: RaterAgreement) -> Table:
    """One row per class and pair of raters."""
    rows = sorted(result.pairs, key=lambda pair: result.class_names.index(pair.class_name))
    scored = ("dice", "Dice"), ("mean_dice", "mean Dice"), ("iou", "IoU"), ("mean_iou", "mean IoU")
    columns = [
        Column("class", [pair.class_name for pair in rows], 9, is_text=True),
        Column("raters", [f"{pair.first}, {pair.second}" for pair in rows], 9, is_text=True),
        Column("cases", [str(pair.mean_dice.cases) for pair in rows], 3),
    ]
    for rank, (key, title) in zip((8, 7, 5, 4), scored, strict=True):
        ones = [getattr(pair, key) for pair in rows]
        columns.append(Column(title, [*map(_ratio, ones)], rank))
        if title.endswith("Dice"):
            columns.append(Column("interval", [*map(_range, ones)], rank - 5))
    return Table(columns)


def _model_table(result: RaterAgreement) -> Table:
    """One row per class: the difference, its interval, and the test as one more expert."""
    rows = result.against_model
    changes = [signed_points(-row.difference.value) for row in rows]
    tests = [
        row.expert.reason or f"p {p_text(row.expert.p)}, t({row.expert.freedom})" for row in rows
    ]
    columns = [
        Column("class", [row.class_name for row in rows], 9, is_text=True),
        Column("cases", [str(row.difference.cases) for row in rows], 4),
        Column("Dice minus experts'", changes, 8),
        Column("interval", [_changes(row.difference) for row in rows], 7),
    ]
    if not _untested(result):  # otherwise, a note states the reason once
        columns.append(Column("as one more expert", tests, 6, is_text=True))
    return Table(columns)
