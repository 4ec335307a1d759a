"""Several scores of the same models: verdicts side by side, and a table of classes and models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple

from segiou._support.arguments import check_flag, read_several
from segiou._support.numbers import shown, shown_range
from segiou._support.text import Json, plain
from segiou.analysis.comparison import text as comparison_text
from segiou.analysis.comparison.compare_runs import compare
from segiou.analysis.comparison.result import Comparison, Difference
from segiou.document.findings import Finding
from segiou.document.parts import Cell, Column, Part, Section, Table
from segiou.inference.intervals import Interval, Intervals, confidence_intervals
from segiou.inference.units import HasRunCounts, Metric
from segiou.measures.score import overall_of
from segiou.metrics.pixel_scores import PIXEL_SCORES

#: Options of a comparison that intervals of one model have as well.
_OF_INTERVALS = ("protocol", "groups", "blocks", "level", "resamples", "seed")

#: The scores of the models by row, of each comparison.
_Scores = tuple[Mapping[str, tuple["ModelScore", ...]], ...]
#: The key of the score over all classes, which is not the name of a class.
_MEAN = ""


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Finding):
    """Comparisons of the same models by several scores.

    Attributes
    ----------
    comparisons : tuple of Comparison
        One per score, in the given order.
    """

    comparisons: tuple[Comparison, ...]

    def _parts(self) -> Iterable[Part]:
        from segiou.analysis.comparison.document import side_by_side_parts

        return side_by_side_parts(self.comparisons)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        return {"comparisons": [comparison.to_dict() for comparison in self.comparisons]}

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per score, pair of models and class.

        Yields
        ------
        dict
            The values of a row by column.
        """
        for comparison in self.comparisons:
            yield from ({"score": comparison.metric} | row for row in comparison.rows())


def compare_scores(*runs: HasRunCounts, metrics: Sequence[Metric], **options: Any) -> SideBySide:
    """Compare models by several scores.

    Parameters
    ----------
    *runs : Run
        Two or more runs on the same images.
    metrics : sequence of str
        The scores, such as ``["dice", "hausdorff_95", "surface_dice"]``.
    **options
        See :func:`compare`. p-values are adjusted over the classes of each score, not
        over the scores.

    Raises
    ------
    ValueError
        If ``metrics`` is empty.

    Examples
    --------
    >>> from segiou import score
    >>> truths = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]
    >>> worse = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    >>> runs = [score([[t] for t in truths], [[t] for t in p], labels=2) for p in (worse, truths)]
    >>> found = compare_scores(*runs, metrics=["iou", "recall"], names=("old", "new"))
    >>> [round(one.pairs[0].overall.delta, 4) for one in found.comparisons]
    [0.5048, 0.3125]
    """
    metrics = read_several("metrics", metrics, "scores, such as ['iou', 'dice']")
    if not metrics:
        msg = "metrics is empty; pass at least one score, such as 'dice'"
        raise ValueError(msg)
    return SideBySide(tuple(compare(*runs, metric=metric, **options) for metric in metrics))


class ModelScore(NamedTuple):
    """The score of a class for one model.

    Attributes
    ----------
    value, low, high : float
        NaN if undefined, or without an interval.
    best : bool
        Whether it is better than that of every other model, each with a Holm-adjusted
        p < 1 − level.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    best: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class ModelTable(Finding):
    """Scores of classes and models, the score over all classes last.

    Attributes
    ----------
    names : tuple of str
        Names of the models.
    comparisons : tuple of Comparison
        One per score.
    scores : tuple of mapping
        For each comparison, the scores of the models, in the order of names, by class; that over
        all classes has the key "". Classes that no model scores are omitted.
    groups : tuple of mapping
        For each comparison, the scores of the models by group of classes, or region; empty
        without groups.
    """

    names: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    scores: tuple[Mapping[str, tuple[ModelScore, ...]], ...]
    groups: tuple[Mapping[str, tuple[ModelScore, ...]], ...] = ()

    _index = ("class",)

    @property
    def classes(self) -> list[str]:
        """The classes that any model scores."""
        return [*dict.fromkeys(name for table in self.scores for name in table if name)]

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per class, the mean, one row per group; a column per score and model.

        Limits of intervals are columns of their own, if there are any.

        Yields
        ------
        dict
            The values of a row by column: ``iou:model``, and ``iou:model:low`` and ``:high``.
        """
        for tables, names in self._tables:
            for name in names:
                row: dict[str, Json] = {"class": name or self._overall}
                for comparison, table in zip(self.comparisons, tables, strict=True):
                    values = table.get(name, (ModelScore(math.nan),) * len(self.names))
                    for model, score in zip(self.names, values, strict=True):
                        key = f"{comparison.metric}:{model}"
                        row[key] = score.value
                        if self._has_intervals:
                            row |= {f"{key}:low": score.low, f"{key}:high": score.high}
                yield row

    @property
    def _tables(self) -> list[tuple[_Scores, list[str]]]:
        """The scores of classes and those of groups, each with the names of its rows."""
        groups = [*dict.fromkeys(name for table in self.groups for name in table)]
        tables = [(self.scores, [*self.classes, _MEAN])]
        return [*tables, (self.groups, groups)] if groups else tables

    @property
    def _overall(self) -> str:
        """The name of the row with the scores over all classes."""
        return overall_of(comparison.overall for comparison in self.comparisons)

    @property
    def _has_intervals(self) -> bool:
        return any(not math.isnan(score.low) for score in self._every())

    def _every(self) -> Iterator[ModelScore]:
        """Each score of a class or group."""
        for table in (*self.scores, *self.groups):
            for scores in table.values():
                yield from scores

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        return {
            "models": list(self.names),
            "level": self.comparisons[0].level,
            "scores": self._plain(self.scores),
            "groups": self._plain(self.groups),
        }

    def _plain(self, tables: _Scores) -> dict[str, Json]:
        """Plain values of the tables of the comparisons."""
        return {
            comparison.metric: {
                name or self._overall: [plain(score._asdict()) for score in scores]
                for name, scores in table.items()
            }
            for comparison, table in zip(self.comparisons, tables, strict=False)
        }

    def __repr__(self) -> str:
        scores = ", ".join(comparison.metric for comparison in self.comparisons)
        return f"<ModelTable of {', '.join(self.names)} by {scores}: {len(self.classes)} classes>"

    def _parts(self) -> Iterable[Part]:
        for number, (tables, names) in enumerate(self._tables, 1):
            of_groups = number > 1
            head = "group" if of_groups else "class"
            first = Column(head, [name or self._overall for name in names], 9, is_text=True)
            columns = [
                column
                for comparison, table in zip(self.comparisons, tables, strict=True)
                for place in range(len(self.names))
                for column in self._columns(comparison, table, names, place)
            ]
            notes = self._notes() if number == len(self._tables) else []
            part = Table([first, *columns], notes, last=0 if of_groups else 1, split=True)
            yield Section("Groups", [part], shown=True) if of_groups else part

    def _columns(
        self,
        comparison: Comparison,
        table: Mapping[str, tuple[ModelScore, ...]],
        names: Sequence[str],
        place: int,
    ) -> Iterator[Column]:
        """The values of a model, and their intervals."""
        unit, model = comparison.score_unit, self.names[place]
        title = comparison_text.score_title(comparison, comparison.pairs[0])
        head = model if len(self.comparisons) == 1 else f"{title}, {model}"
        scores = [table[name][place] if name in table else None for name in names]
        key = f"{comparison.metric}:{model}"
        cells = [
            "" if score is None else Cell(shown(score.value, unit), "bold" if score.best else "")
            for score in scores
        ]
        yield Column(head, cells, 8, score=key)
        if self._has_intervals:
            limits = [
                "" if score is None else shown_range(score.low, score.high, unit)
                for score in scores
            ]
            yield Column(f"{head}, interval", limits, 7, score=key)

    def _notes(self) -> list[str]:
        """The meaning of bold, and the classes that the means skip."""
        alpha = f"{1 - self.comparisons[0].level:.3g}"
        rule = f"bold: better than every other model, each with Holm-adjusted p < {alpha}"
        if not any(score.best for score in self._every()):
            rule = (
                f"no value is better than those of all other models with Holm-adjusted p < {alpha}"
            )
        return [rule, *dict.fromkeys(filter(None, map(comparison_text.left_out, self.comparisons)))]


def model_table(
    *runs: HasRunCounts,
    metrics: Metric | Sequence[Metric] = ("iou",),
    intervals: bool = False,
    **options: Any,
) -> ModelTable:
    """Tabulate the scores of several models by class, as papers do.

    Parameters
    ----------
    *runs : Run
        Two or more runs on the same images.
    metrics : str or sequence of str
        The scores, such as ``["iou", "dice"]``.
    intervals : bool
        Whether to add the confidence interval of every value.
    **options
        See :func:`compare`.

    Returns
    -------
    ModelTable

    Raises
    ------
    ValueError
        If ``metrics`` is empty.

    Examples
    --------
    >>> from segiou import score
    >>> truths = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]
    >>> worse = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    >>> runs = [score([[t] for t in truths], [[t] for t in p], labels=2) for p in (worse, truths)]
    >>> found = model_table(*runs, names=("old", "new"))
    >>> [(row["class"], round(row["iou:old"], 4), row["iou:new"]) for row in found.rows()]
    [('0', 0.6154, 1.0), ('1', 0.375, 1.0), ('mean', 0.4952, 1.0)]
    """
    check_flag("intervals", intervals)
    several = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    comparisons = compare_scores(*runs, metrics=several, **options).comparisons
    chosen = {name: options[name] for name in _OF_INTERVALS if name in options}

    def limits(metric: Metric) -> list[Intervals]:
        return [confidence_intervals(run, metric, **chosen) for run in runs] if intervals else []

    table = table_of(comparisons, [limits(metric) for metric in several])
    if not all(metric in PIXEL_SCORES for metric in several) or not (groups := _groups_of(runs)):
        return table
    keys = [[f"{metric}:{name}" for name in groups] for metric in several]
    of_groups = (
        [_scores(compare(*runs, metric=key, **options), limits(key))[_MEAN] for key in of_metric]
        for of_metric in keys
    )
    return replace(table, groups=tuple(dict(zip(groups, row, strict=True)) for row in of_groups))


def _groups_of(runs: Sequence[HasRunCounts]) -> list[str]:
    """Groups of classes that all runs have, without those that are named as a class."""
    several = [[*getattr(getattr(run, "options", None), "groups", ())] for run in runs]
    classes = {name for run in runs for name in run.class_names}
    common = [group for group in several[0] if all(group in others for others in several)]
    return [name for name, _ in common if name not in classes]


def table_of(
    comparisons: Sequence[Comparison], intervals: Sequence[Sequence[Intervals]] | None = None
) -> ModelTable:
    """The table of comparisons of the same models, with the intervals of each score and model."""
    scores = tuple(map(_scores, comparisons, intervals or repeat(())))
    return ModelTable(comparisons[0].names, tuple(comparisons), scores)


def _scores(
    comparison: Comparison, intervals: Sequence[Intervals]
) -> dict[str, tuple[ModelScore, ...]]:
    """The scores of the models by class, that over all classes first."""
    limits = [{_MEAN: i.overall, **{row.name: row for row in i.classes}} for i in intervals]
    of_models = limits or [{}] * len(comparison.names)
    of_pairs = [(pair.overall, *pair.classes) for pair in comparison.pairs]
    scores: dict[str, tuple[ModelScore, ...]] = {}
    for place, rows in enumerate(zip(*of_pairs, strict=True)):
        name = rows[0].name if place else _MEAN
        ones = tuple(
            _score(comparison, rows, model, of_model.get(name))
            for model, of_model in zip(comparison.names, of_models, strict=True)
        )
        if not place or not all(math.isnan(score.value) for score in ones):
            scores[name] = ones
    return scores


def _score(
    comparison: Comparison, rows: Sequence[Difference], model: str, interval: Interval | None
) -> ModelScore:
    """The score of a model from a row of each pair, with the interval if it is of this value."""
    pairs = zip(comparison.pairs, rows, strict=True)
    own = [(row, pair.b == model) for pair, row in pairs if model in (pair.a, pair.b)]
    row, is_second = own[0]
    value = row.b if is_second else row.a
    best = all(
        row.differs(comparison.level)
        and row.delta
        and (row.delta > 0) == (is_second == (comparison.better == "higher"))
        for row, is_second in own
    )
    if interval is None or not math.isclose(interval.value, value, rel_tol=1e-9):
        return ModelScore(value, best=best)
    return ModelScore(value, interval.low, interval.high, best)
