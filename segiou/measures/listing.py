"""The measures that are installed, with their scores and options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Any

from segiou._support.text import Json, option_text
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Column, Line, Part, Section, Table
from segiou.labels.class_options import ClassOptions
from segiou.measures.guard import package_of
from segiou.measures.mask_pair import Masks
from segiou.measures.registry import flag_of, loaded_measures, measure_of, plans_of
from segiou.measures.score import Score


@dataclass(frozen=True)
class ListedMeasure:
    """A measure: its key, summary, scores, options with defaults, and source.

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


@dataclass(frozen=True, repr=False)
class MeasureListing(Finding):
    """Measures with their scores and options; in detail, with their documentation."""

    measures: tuple[ListedMeasure, ...]
    detail: bool

    def to_dict(self) -> dict[str, Json]:
        """Plain values."""
        return {"measures": [measure.to_dict() for measure in self.measures]}

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per score of each measure."""
        for measure in self.measures:
            yield from measure.rows()

    def _parts(self) -> Iterator[Part]:
        for measure in self.measures:
            parts = [*_measure_parts(measure, detail=self.detail)]
            yield Section(f"{measure.key} ({flag_of(measure.key)})", parts, shown=True)
        yield Line("To measure one: segiou score … OPTION, or measures=[KEY] in Python", "dim")


def _measure_parts(measure: ListedMeasure, *, detail: bool) -> Iterator[Part]:
    columns = (
        Column("score", [score.name for score in measure.scores], 9, is_text=True),
        Column("title", [score.title for score in measure.scores], 4, is_text=True),
        Column("unit", [score.unit or "ratio" for score in measure.scores], 5, is_text=True),
        Column("better", [score.better for score in measure.scores], 7, is_text=True),
    )
    lead = "defaults" if detail else "options"
    options = ", ".join(f"{name}={value}" for name, value in measure.options.items())
    chosen = Line(f"{lead}: {options}" if options else "no options", "dim")
    yield from (Line(measure.about), GAP, Table(columns), chosen, GAP)
    if detail:
        if details := _plain(measure.details).partition("\n\n")[2]:
            yield from (*_filled(details.split("\n")), GAP)
        yield (Line(f"defined by {measure.source} ({measure.package})"))


def _plain(details: str) -> str:
    """A docstring without the syntax of numpydoc and its section of exceptions."""
    text = re.sub(r":\w+:`([^`]+)`", r"\1", details).replace("``", "")
    text = re.sub(r"\n\nRaises\n-+\n.*?(?=\n\n\w+\n---|\Z)", "", text, flags=re.DOTALL)
    text = re.sub(r"^(Attributes|Parameters)\n-+$", "Options:", text, flags=re.MULTILINE)
    return re.sub(r"^(\w+)\n-+$", r"\1:", text, flags=re.MULTILINE)


def _filled(lines: Iterable[str]) -> Iterator[Line]:
    """Lines of a docstring as paragraphs of one indent; each option begins one."""
    paragraphs: list[tuple[str, str]] = []
    for line in lines:
        text = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        before = paragraphs[-1] if paragraphs else (indent, "")
        is_new = not (text and before[1]) or before[0] != indent or (not indent and " : " in text)
        if is_new or text.startswith(("-", "*", ".. ", "[")):
            paragraphs.append((indent, text))
        else:
            paragraphs[-1] = (indent, f"{before[1]} {text}")
    yield from (Line(text, lead=indent) for indent, text in paragraphs)


def _listed(key: str) -> ListedMeasure:
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


def listed_measures(key: str | None = None) -> tuple[MeasureListing, list[str]]:
    """One measure in detail, or every usable one, segiou's own first; and problems of others."""
    if key:
        return MeasureListing((_listed(key),), detail=True), []
    measures, problems = loaded_measures()
    return MeasureListing(tuple(map(_listed, measures)), detail=False), [*problems.values()]
