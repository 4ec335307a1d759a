"""Surface distances over many cases: an accumulator of rows, and summaries per label."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Self, get_args

import numpy as np

from segiou._support.text import Json, plural
from segiou.accumulators.base import Accumulator
from segiou.boundary.surface_options import DISTANCES, Scores, State, SurfaceOptions
from segiou.boundary.surface_points import Label
from segiou.boundary.surfaces import (
    SurfaceRow,
    as_values,
    band_share,
    measure_surfaces,
    named_values,
)


class SurfaceAccumulator(Accumulator):
    """Collect the surface distances of cases, one row per case and structure.

    Accumulators with the same structures and options add up; see
    :class:`segiou.accumulators.base.Accumulator`. Each row is kept, about 1.3 kB
    per case and structure.

    Parameters
    ----------
    structures : iterable of int, or mapping of label to int or iterable of int, optional
        As for :func:`segiou.boundary.measure_surfaces`; by default, the labels
        present in each case.
    ignore : int or iterable of int
        Truth values whose voxels are skipped.
    options : SurfaceOptions, optional
        Options of the measurement.

    Attributes
    ----------
    rows : list of SurfaceRow
        The rows, in the order of the cases.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.zeros((8, 8, 8), dtype=np.uint8)
    >>> truth[2:6, 2:6, 2:6] = 1
    >>> surfaces = SurfaceAccumulator({"liver": 1})
    >>> _ = surfaces.update(truth, np.roll(truth, 1, axis=0), spacing=(3, 1, 1), case="a")
    >>> _ = surfaces.update(truth, np.zeros_like(truth), spacing=(3, 1, 1), case="b")
    >>> liver = surfaces.summary()[0]
    >>> liver["cases"], liver["missed"]
    (2, 1)
    >>> liver["hausdorff_95"]["mean_of_found"], liver["hausdorff_95"]["median"]
    (3.0, inf)
    """

    _noun = "surfaces"

    def __init__(
        self,
        structures: Iterable[int] | Mapping[Any, int | Iterable[int]] | None = None,
        *,
        ignore: int | Iterable[int] = (),
        options: SurfaceOptions | None = None,
    ) -> None:
        self.structures: dict[Label, tuple[int, ...]] | None = named_values(structures)
        self.ignore: tuple[int, ...] = as_values(ignore)
        self.options: SurfaceOptions = SurfaceOptions() if options is None else options
        self._forget()

    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        spacing: float | Sequence[float] | None = None,
        case: str = "",
    ) -> list[SurfaceRow]:
        """Measure a case and keep its rows; raises the errors of ``measure_surfaces``.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes (H, W) or (D, H, W)
            True and predicted label image or volume.
        spacing : float or sequence of float, optional
            Size of a pixel or voxel along each axis.
        case : str, default ""
            Name of the case.
        """
        found = measure_surfaces(
            truth,
            pred,
            self.structures,
            ignore=self.ignore,
            spacing=spacing,
            options=self.options,
            case=case,
        )
        self.rows.extend(found)
        return found

    def scores(self) -> list[Scores]:
        """The scores of each row, with its ``case``, ``label`` and ``state``."""
        return [
            {"case": r.case, "label": r.label, "state": r.state, **r.values(self.options)}
            for r in self.rows
        ]

    def summary(self) -> list[dict[str, Json]]:
        """Summary over the cases; see :func:`summarize_surfaces`."""
        return summarize_surfaces(self.rows, self.options)

    def _forget(self) -> None:
        self.rows: list[SurfaceRow] = []

    def _settings(self) -> dict[str, Any]:
        named = self.structures
        return {
            "structures": None if named is None else [[k, [*v]] for k, v in named.items()],
            "ignore": list(self.ignore),
            "options": self.options.to_dict(),
        }

    def _difference(self, other: Self) -> str:
        mine, theirs = self._settings(), other._settings()
        return "; ".join(f"{k}: {mine[k]} and {theirs[k]}" for k in mine if mine[k] != theirs[k])

    def _join(self, others: Sequence[Self]) -> None:
        self.rows += [row for other in others for row in other.rows]

    def _content(self) -> dict[str, Any]:
        return {"rows": [row.to_dict() for row in self.rows]}

    def _fill(self, state: Mapping[str, Any]) -> None:
        self.rows += [SurfaceRow.from_dict(row, self.options) for row in state["rows"]]

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        structures = None if state["structures"] is None else dict(state["structures"])
        options = SurfaceOptions.from_dict(state["options"])
        return cls(structures, ignore=state["ignore"], options=options)

    def __repr__(self) -> str:
        return f"<SurfaceAccumulator: {plural(len(self.rows), 'row')}>"


def summarize_surfaces(
    rows: Iterable[SurfaceRow],
    options: SurfaceOptions,
    overlaps: Iterable[Mapping[str, float]] | None = None,
) -> list[dict[str, Json]]:
    """Summarise the surface distances of each label over the cases.

    Parameters
    ----------
    rows : iterable of SurfaceRow
        Rows of one or more cases.
    options : SurfaceOptions
        Options with which the rows were measured.
    overlaps : iterable of mapping of str to float, optional
        Overlap scores of each row by name, such as "dice".

    Returns
    -------
    list of dict
        One dict per label, in the order of the rows: ``label``; ``cases``, the
        number of cases with the structure in truth or prediction; the numbers
        ``found``, ``missed``, ``false_positive`` (predicted only) and
        ``absent``; and for each measure ("hausdorff", "hausdorff_95",
        "average_surface_distance", "surface_dice_1", …) a dict of

        - ``mean``: over the cases, with empty masks valued by the options. NaN
          is skipped, and ``mean_cases`` is the number of remaining cases;
        - ``mean_of_found``: over found cases only, so missing more can improve it;
        - ``median``, ``quartiles``: over the cases, where missed and
          false-positive ones count as infinitely far (surface Dice: 0), regardless
          of the options;
        - ``data_set``, for surface Dice and Boundary IoU: pooled over all cases.

        ``invented`` repeats ``false_positive`` and will be removed.
    """
    by_label: dict[Label, list[tuple[SurfaceRow, dict[str, float]]]] = {}
    for row, overlap in zip(rows, repeat({}) if overlaps is None else overlaps, strict=False):
        found = {**overlap, **flat_scores(row.values(options))}
        by_label.setdefault(row.label, []).append((row, found))
    return [
        _summary(label, options.widths, *zip(*both, strict=True))
        for label, both in by_label.items()
    ]


def _summary(
    label: Label,
    widths: tuple[float, ...],
    rows: Sequence[SurfaceRow],
    values: Sequence[dict[str, float]],
) -> dict[str, Any]:
    states = [row.state for row in rows]
    counts = {name: states.count(name) for name in get_args(State)}
    counts["invented"] = counts["false_positive"]  # former name
    summary: dict[str, Any] = {"label": label, "cases": len(rows) - counts["absent"], **counts}
    for name in values[0]:
        worst = math.inf if name.startswith(DISTANCES) else 0.0
        pairs = [(state, of_row[name]) for state, of_row in zip(states, values, strict=True)]
        ranked = sorted(v if s == "found" else worst for s, v in pairs if s != "absent")
        defined = [v for _, v in pairs if not math.isnan(v)]
        summary[name] = {
            "mean": _mean(defined),
            "mean_cases": len(defined),
            "mean_of_found": _mean([v for state, v in pairs if state == "found"]),
            "median": _quantile(ranked, 0.5),
            "quartiles": [_quantile(ranked, 0.25), _quantile(ranked, 0.75)],
        }
    for i, limit in enumerate(rows[0].tolerances):
        total = sum(sum(row.sizes) for row in rows)
        within = sum(sum(row.within[i]) for row in rows)
        summary[f"surface_dice_{limit:g}"]["data_set"] = within / total if total else math.nan
    for width, bands in zip(widths, zip(*(row.bands for row in rows), strict=True), strict=False):
        total = np.sum(bands, axis=0).tolist()
        summary[f"boundary_iou_{width:g}"]["data_set"] = band_share(*total)
    return summary


def flat_scores(values: Scores) -> dict[str, float]:
    """The scores in one flat mapping."""
    by_length = ("surface_dice", "boundary_iou")
    flat = {name: value for name, value in values.items() if name not in by_length}
    for name in by_length:
        flat |= {f"{name}_{length:g}": share for length, share in values.get(name, {}).items()}
    return flat


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _quantile(ranked: list[float], share: float) -> float:
    """A quantile with linear interpolation; infinite if either neighbour is."""
    if not ranked:
        return math.nan
    place = (len(ranked) - 1) * share
    low, high = ranked[math.floor(place)], ranked[math.ceil(place)]
    return low if low == high else low + (high - low) * (place - math.floor(place))
