"""The values of every score of a report, from which all outputs are made."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segiou._support.text import Json
from segiou.measures.score import Score
from segiou.measures.score_table import Kind
from segiou.metrics.ratio import Floats


class ScoreValues(NamedTuple):
    """A score, its value, and those of its classes, groups or structures."""

    name: str
    title: str
    unit: str
    better: str
    value: float
    rows: dict[str, float]
    intervals: Any = None
    classes: int | None = None
    """How many of the rows the value covers, if it is their mean."""
    kind: Kind = "ratio"
    about: str = ""
    """A sentence on what its measure counts."""

    @classmethod
    def of(cls, score: Score, total: Any, values: Floats, intervals: Any) -> ScoreValues:
        """Those of a score with its values, the whole first."""
        whole, *of_rows = values.tolist()
        rows = dict(zip(score.names, of_rows, strict=True))
        return cls(
            name=score.name,
            title=score.title,
            unit=score.unit,
            better=score.better,
            value=whole,
            rows=rows,
            intervals=intervals,
            classes=_covered(score, total, values[1:]),
            kind="distance" if score.unit else "ratio",
        )

    def at(self, row: str = "") -> float | None:
        """The value, or that of a row; None without such a row."""
        return self.rows.get(row) if row else self.value

    def to_dict(self, intervals: Any) -> dict[str, Json]:
        """Plain values with limits of intervals."""
        ends = [] if intervals is None else [intervals.overall, *intervals.classes]
        limits = {"" if i == 0 else one.name: one for i, one in enumerate(ends)}

        def with_limits(value: float, name: str) -> dict[str, Any]:
            interval = limits.get(name)
            ends = {} if interval is None else {"low": interval.low, "high": interval.high}
            return {"value": value, **ends}

        rows = {name: with_limits(value, name) for name, value in self.rows.items()}
        about = {"title": self.title, "unit": self.unit, "better": self.better}
        return {**about, **with_limits(self.value, ""), "classes": self.classes, "rows": rows}


def _covered(score: Score, total: Any, values: Floats) -> int | None:
    """Number of rows in the mean of a score; None if it is not a mean of rows."""
    if not score.is_mean or score.include is None or score.weights is None:
        return None
    known = score.include & ~np.isnan(values)
    if score.median_of is None and (sums := score.sums(total)).shape[0]:
        # Less than 1 if undefined classes count 0 in the mean.
        counts_all = score.weights(sums.sum(0)).sum() < 1 - 1e-9
        return int(score.include.sum() if counts_all else known.sum())
    return int(known.sum())
