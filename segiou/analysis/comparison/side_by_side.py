"""Several scores of the same models side by side, such as Dice, HD95 and surface Dice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from segiou._support.text import Json
from segiou.analysis.comparison.compare_runs import compare
from segiou.analysis.comparison.result import Comparison
from segiou.document.findings import Finding
from segiou.document.parts import Part
from segiou.inference.units import HasRunCounts, Metric


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
        for one in self.comparisons:
            yield from ({"score": one.metric} | row for row in one.rows())


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
    if not metrics:
        msg = "metrics is empty; pass at least one score, such as 'dice'"
        raise ValueError(msg)
    return SideBySide(tuple(compare(*runs, metric=metric, **options) for metric in metrics))
