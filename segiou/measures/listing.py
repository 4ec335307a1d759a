"""The measures that are installed, with their scores and options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Any

from segiou._support.text import Json, option_text
from segiou.document.parts import (
    GAP,
    Column,
    Line,
    Part,
    Section,
    Table,
)
from segiou.labels.class_options import ClassOptions
from segiou.measures.guard import package_of
from segiou.measures.mask_pair import Masks
from segiou.measures.registry import flag_of, loaded_measures, measure_of, plans_of
from segiou.measures.score import Score


@dataclass(frozen=True)
class ListedMeasure:
    """A measure: its key, one line about it, its scores, its options with defaults, its source.

    ``details`` is its documentation, with formulas and references.
    """

    key: str
    about: str
    scores: tuple[Score, ...]
    options: dict[str, str]
    package: str
    source: str
    details: str

    def to_dict(self) -> dict[str, Json]:
        """Plain values."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        return {**values, "scores": self._described()}

    def rows(self) -> list[dict[str, Json]]:
        """One row per score."""
        return [{"measure": self.key, **score} for score in self._described()]

    def _described(self) -> list[dict[str, Json]]:
        return [{"name": score.name, **score.described()} for score in self.scores]


def listed_measure(key: str) -> ListedMeasure:
    """One measure with its defaults; ValueError if it is unknown."""
    kind = measure_of(key)
    usual: Any = kind.of(True)
    plans = plans_of([usual], ClassOptions.of(2), Masks())
    scores = tuple(score for plan in plans for score in plan.scores.values())
    return ListedMeasure(
        key=key,
        about=(kind.__doc__ or "").partition("\n")[0],
        scores=scores,
        options={option.name: option_text(getattr(usual, option.name)) for option in fields(usual)},
        package=package_of(kind),
        source=f"{kind.__module__}.{kind.__qualname__}",
        details=cleandoc(kind.__doc__ or "").partition("\n\nExamples\n")[0],
    )


def listed_measures() -> tuple[list[ListedMeasure], list[str]]:
    """Every usable measure, segiou's own first, and the problems of the others."""
    measures, problems = loaded_measures()
    return [listed_measure(key) for key in measures], [*problems.values()]


def measures_parts(listed: Sequence[ListedMeasure], *, detail: bool = False) -> Iterator[Part]:
    """A list of measures: about each, its scores and its options; in detail, its documentation."""
    for measure in listed:
        columns = (
            Column("score", [score.name for score in measure.scores], 9, is_text=True),
            Column("title", [score.title for score in measure.scores], 4, is_text=True),
            Column("unit", [score.unit or "ratio" for score in measure.scores], 5, is_text=True),
            Column("better", [score.better for score in measure.scores], 7, is_text=True),
        )
        options = ", ".join(f"{name}={value}" for name, value in measure.options.items())
        chosen = Line(f"options: {options}" if options else "no options", "dim")
        parts: list[Part] = [Line(measure.about), Table(columns), chosen, GAP]
        if detail:
            texts = measure.details.split("\n")[1:]
            parts += [
                *map(Line, texts),
                GAP,
                Line(f"defined by {measure.source} ({measure.package})"),
            ]
        yield Section(f"{measure.key} ({flag_of(measure.key)})", parts, shown=True)
    yield Line("To measure one: segiou score … OPTION, or measures=[KEY] in Python", "dim")
