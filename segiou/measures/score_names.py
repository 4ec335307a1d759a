"""Names of scores, read by one rule: NAME is the whole, NAME:ROW a class or structure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from segiou._support.arguments import check_kind
from segiou._support.text import did_you_mean
from segiou.measures.registry import (
    check_installed,
    flag_of,
    known_scores,
    measure_of_score,
    own_scores,
)
from segiou.measures.spellings import ALIASES, is_whole, spellings
from segiou.metrics.pixel_scores import CASE_SCORES, PIXEL_SCORES

if TYPE_CHECKING:
    from segiou.labels.class_options import ClassOptions
    from segiou.measures.plan import Plan


class ScoreName(NamedTuple):
    """A score, and one of its classes or structures; empty for the whole."""

    score: str
    row: str = ""

    def __str__(self) -> str:
        return f"{self.score}:{self.row}" if self.row else self.score

    @property
    def column(self) -> str:
        """The name in older outputs, where a mean over classes of pixels begins with ``mean``."""
        score = PIXEL_SCORES.get(self.score)
        if self.row or score is None or not score.per_class:
            return str(self)
        return "mean_accuracy" if self.score == "recall" else f"mean_{self.score}"


def read_name(text: str, others: Iterable[str] = ()) -> ScoreName:
    """Read a name of a score; ``others`` are those of the measures of a run.

    >>> [str(read_name(name)) for name in ("mIoU", "mean_iou", "f1:car", "PPV:liver")]
    ['iou', 'iou', 'dice:car', 'precision:liver']

    Raises
    ------
    ValueError
        If the score is unknown, or has no classes.
    """
    check_kind("the name of a score", text, str, "text")
    score, colon, row = text.partition(":")
    known, name = {*PIXEL_SCORES, *CASE_SCORES, *others}, ""
    for more in ((), own_scores, known_scores):  # measures are loaded only where they are needed
        known.update(more() if more else ())
        if name := next((n for n in spellings(score) if n in known), ""):
            break
    if name and colon and not row:
        msg = f"{text!r}: unknown class ''; expected {score}:CLASS"
        raise ValueError(msg)
    if not name:
        _check_known_measure(text, score)
        hint = did_you_mean(text, sorted({*known, *ALIASES}))
        choices = ", ".join(dict.fromkeys([*PIXEL_SCORES, *others]))
        msg = (
            f"unknown score {text!r}; choose from {choices}, or NAME:CLASS; segiou measures lists "
            f"the scores of the installed measures{hint}"
        )
        raise ValueError(msg)
    if row and is_whole(score):
        msg = f"{text!r}: {score} is the mean over all classes; for one class, use {name}:{row}"
        raise ValueError(msg)
    if row and name in PIXEL_SCORES and not PIXEL_SCORES[name].per_class:
        msg = f"{text!r}: {name} has no values of classes"
        raise ValueError(msg)
    return ScoreName(name, row)


def _check_known_measure(text: str, score: str) -> None:
    """Raise MissingMeasureError if a score is one of segiou whose measure is not installed."""
    several = set(spellings(score))
    for alias in ALIASES.values():
        if alias.measure and alias.score in several:
            check_installed(alias.measure, text)


def members_of(
    name: ScoreName,
    class_names: Sequence[str],
    groups: Iterable[tuple[str, tuple[int, ...]]],
    options: ClassOptions | None,
) -> dict[str, tuple[int, ...]] | None:
    """The classes of the structures that a score is of; None if it is of single classes."""
    if name.score in CASE_SCORES:
        return None if options is None else options.structures
    members = dict(groups).get(name.row) if name.score in PIXEL_SCORES else None
    return None if members is None or name.row in class_names else {name.row: members}


def rows_of_score(name: str, options: ClassOptions, plans: Iterable[Plan] = ()) -> tuple[str, ...]:
    """The classes, groups or structures that have a score."""
    rows = {row: None for plan in plans if name in plan.scores for row in plan.scores[name].names}
    if rows or name not in (known := CASE_SCORES | PIXEL_SCORES):
        return tuple(rows)
    if name in CASE_SCORES:
        return tuple(options.structures)
    groups = [group for group, _ in options.groups]
    return (*options.labels.class_names, *groups) if known[name].per_class else ()


def not_measured(name: ScoreName) -> ValueError:
    """The error for a score that was not measured, with the option that measures it."""
    if name.score in CASE_SCORES:
        return ValueError(f"{name} was not measured; it is a score of volumes")
    flags = flag_of(measure_of_score(name.score) or "", name.score)
    return ValueError(f"{name} was not measured; score with {flags}")


def row_of(name: str, rows: Sequence[str], score: str) -> int:
    """The position of a class or structure that has a score."""
    if name in rows:
        return [*rows].index(name)
    choices = f"choose from {', '.join(rows)}" if rows else "it has no per-class values"
    msg = f"{score} of {name!r}: unknown class; {choices}{did_you_mean(name, rows)}"
    raise ValueError(msg)
