"""Rows of surface distances, one per case and structure, and their summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json
from segiou.counting.counts import Counts
from segiou.metrics.per_class import dice, iou
from segiou.metrics.quantile import quantile
from segiou.metrics.ratio import Floats, ratio
from segiou.regions.conventions import DISTANCES, LONE, SHARES, State
from segiou.regions.surface_points import Label
from segiou.regions.tolerance import Length, length_text

if TYPE_CHECKING:
    from segiou.measures.surfaces.options import SurfaceOptions

Scores = dict[str, Any]

#: States by their number in a row.
STATES: Final[tuple[State, ...]] = ("absent", "found", "missed", "false_positive")
#: States in the order of summaries.
_COUNTED: Final[tuple[State, ...]] = ("found", "missed", "false_positive", "absent")

#: Values of every row, by name of the score and its tolerance or width.
ScoreValues = dict[tuple[str, Length | None], Floats]


def row_type(options: SurfaceOptions) -> np.dtype[np.void]:
    """The numbers of a row, from which every score of a case or of pooled cases follows."""
    # "within" has the parts of either surface within each tolerance, "bands" the voxels in the
    # bands of truth, prediction and both, and "pixels" tp, fp and fn (NaN if not counted).
    shapes: dict[str, tuple[int, ...]] = {
        "state": (),
        "diagonal": (),
        "sizes": (2,),
        "hausdorff": (),
        "average": (),
        "within": (len(options.tolerances), 2),
        "percentiles": (len(options.percentiles),),
        "bands": (len(options.widths), 3),
        "pixels": (3,),
    }
    return np.dtype([(name, np.float64, shape) for name, shape in shapes.items()])


@dataclass(frozen=True, eq=False)
class SurfaceRows:
    """Surface distances of structures in cases, one row each.

    Iteration yields a dict per row: ``case``, ``label``, ``state`` ("found" in both
    masks, "missed", "false_positive" or "absent"; a structure without a surface,
    because it touches only ignored voxels, is absent) and the scores, with the
    values of the options if a mask is empty. ``surface_dice``, ``boundary_precision``,
    ``boundary_recall`` and ``boundary_f1`` are dicts by tolerance, ``boundary_iou`` is
    one by width. An index selects the dict of a row, a slice
    several rows.

    Attributes
    ----------
    options : SurfaceOptions
        Options of the measurement.
    cases : tuple of str
        Case of each of R rows.
    labels : tuple of int or str
        Label or structure of each row.
    numbers : structured ndarray, shape (R,)
        ``state`` (index into absent, found, missed, false positive), ``diagonal``
        of the volume, ``sizes`` of both surfaces (area, length or number of
        voxels), ``hausdorff``, ``average`` and ``percentiles`` (NaN unless found),
        ``within`` (parts of both surfaces within each tolerance), ``bands`` (voxels
        in the bands of truth, prediction and both, per width), and ``pixels`` (true
        positives, false positives, false negatives; NaN if not counted).

    Examples
    --------
    >>> from segiou.measures.surfaces import measure_surfaces
    >>> truth = np.zeros((8, 8, 8), dtype=np.uint8)
    >>> truth[2:6, 2:6, 2:6] = 1
    >>> pairs = {"a": (truth, np.roll(truth, 1, axis=0)), "b": (truth, np.zeros_like(truth))}
    >>> rows = SurfaceRows.joined(
    ...     measure_surfaces(*pair, {"liver": 1}, spacing=(3, 1, 1), case=case)
    ...     for case, pair in pairs.items()
    ... )
    >>> liver = rows.summary()[0]
    >>> liver["cases"], liver["missed"]
    (2, 1)
    >>> liver["hausdorff_95"]["mean_of_found"], liver["hausdorff_95"]["median"]
    (3.0, inf)
    """

    options: SurfaceOptions
    cases: tuple[str, ...]
    labels: tuple[Label, ...]
    numbers: NDArray[np.void]

    @classmethod
    def joined(cls, several: Iterable[SurfaceRows]) -> SurfaceRows:
        """The rows of several cases.

        Parameters
        ----------
        several : iterable of SurfaceRows
            Rows measured with the same options.

        Raises
        ------
        ValueError
            If there are none, or their options differ.
        """
        parts = [*several]
        if len({str(part.options.to_dict()) for part in parts}) != 1:
            problem = "were measured with different options" if parts else "are missing"
            msg = f"rows to join {problem}; measure all cases with the same SurfaceOptions"
            raise ValueError(msg)
        cases = tuple(case for part in parts for case in part.cases)
        labels = tuple(label for part in parts for label in part.labels)
        numbers = np.concatenate([part.numbers for part in parts])
        return cls(parts[0].options, cases, labels, numbers)

    @property
    def states(self) -> tuple[State, ...]:
        """State of each row."""
        return tuple(STATES[state] for state in self.numbers["state"].astype(int).tolist())

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Scores: ...
    @overload
    def __getitem__(self, index: slice) -> SurfaceRows: ...
    def __getitem__(self, index: int | slice) -> Scores | SurfaceRows:
        """A row as a dict, or the rows of a slice."""
        if not isinstance(index, slice):
            at = range(len(self))[index]
            return next(iter(self[at : at + 1]))
        parts = self.cases[index], self.labels[index], self.numbers[index]
        return SurfaceRows(self.options, *parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SurfaceRows):
            return NotImplemented
        return (self.options, self.cases, self.labels) == (
            other.options,
            other.cases,
            other.labels,
        ) and self.numbers.tobytes() == other.numbers.tobytes()

    def __iter__(self) -> Iterator[Scores]:
        values = {key: column.tolist() for key, column in self._values().items()}
        rows = zip(self.cases, self.labels, self.states, strict=True)
        for index, (case, label, state) in enumerate(rows):
            row: Scores = {"case": case, "label": label, "state": state}
            for name, length in self._measured(label):
                if length is None:
                    row[name] = values[name, None][index]
                else:
                    row.setdefault(name, {})[length] = values[name, length][index]
            yield row if "surface_dice" in row else {**row, "surface_dice": {}}

    def values(self) -> dict[str, Floats]:
        """Scores of all rows by name, with the tolerance or width in the name.

        Returns
        -------
        dict of str to ndarray, shape (R,)
            As in ``"surface_dice_1"``; NaN for structures that have different
            tolerances.
        """
        columns: dict[str, Floats] = {}
        for (name, length), values in self._values().items():
            flat = flat_name(name, length)
            known = columns.get(flat, values)
            columns[flat] = np.where(np.isnan(values), known, values)
        return columns

    def distances(self) -> dict[str, Floats]:
        """Distances of all rows by name.

        Returns
        -------
        dict of str to ndarray, shape (R,)
            ``"hausdorff"``, its percentiles, as in ``"hausdorff_95"``, and
            ``"average_surface_distance"``.
        """
        numbers, lone = self.numbers, self._lone()
        columns = {"hausdorff": self._filled("hausdorff", numbers["hausdorff"], lone)}
        percentiles = self._filled("hausdorff_percentile", numbers["percentiles"], lone)
        for percentile, column in zip(self.options.percentiles, percentiles.T, strict=True):
            columns[f"hausdorff_{percentile:g}"] = column
        average = self._filled("average_surface_distance", numbers["average"], lone)
        return {**columns, "average_surface_distance": average}

    def shares(self, name: str) -> Floats:
        """A share of the surfaces of each row at its own tolerances, shape (R, K).

        Parameters
        ----------
        name : {"surface_dice", "boundary_precision", "boundary_recall", "boundary_f1"}
            Both surfaces, the predicted one, the true one, or the harmonic mean of
            the last two.

        Returns
        -------
        ndarray of float64

        References
        ----------
        S. Nikolov et al., arXiv 1809.04430 (2018), section "Surface DSC"; G. Csurka et
        al., BMVC 2013, eq. 3.
        """
        numbers = self.numbers
        return self._filled(name, _share(name, numbers["within"], numbers["sizes"]), self._lone())

    def summary(self) -> list[dict[str, Json]]:
        """Summarise the scores of each label over the cases.

        Returns
        -------
        list of dict
            One dict per label, in the order of the rows: ``label``; ``cases``, the
            number of cases with the structure in truth or prediction; the numbers
            ``found``, ``missed``, ``false_positive`` (predicted only) and
            ``absent``; and for each score ("hausdorff", "hausdorff_95",
            "average_surface_distance", "surface_dice_1", …) a dict of

            - ``mean``: over the cases, with empty masks valued by the options. NaN
              is skipped, and ``mean_cases`` is the number of remaining cases;
            - ``mean_of_found``: over found cases only, so missing more can improve it;
            - ``median``, ``quartiles``: over the cases, where missed and
              false-positive ones count as infinitely far (surface Dice: 0), regardless
              of the options;
            - ``data_set``, for shares of surfaces and Boundary IoU: pooled over all cases.
        """
        values, labels = self.values(), np.array(self.labels, dtype=object)
        return [
            self._summary_of(label, values, np.flatnonzero(labels == label))
            for label in dict.fromkeys(self.labels)
        ]

    def _summary_of(
        self, label: Label, values: Mapping[str, Floats], places: NDArray[np.intp]
    ) -> dict[str, Any]:
        numbers = self.numbers[places]
        counts: dict[str, int] = {
            state: int((numbers["state"] == STATES.index(state)).sum()) for state in _COUNTED
        }
        cases = len(numbers) - counts["absent"]
        summary: dict[str, Any] = {"label": label, "cases": cases, **counts}
        for key in self._measured(label):
            name = flat_name(*key)
            summary[name] = _case_summary(name, values[name][places], numbers["state"])
        for name in SHARES:
            shares = _share(name, numbers["within"].sum(0), numbers["sizes"].sum(0))
            for limit, share in zip(self.options.tolerances_at(label), shares, strict=True):
                summary[flat_name(name, limit)]["data_set"] = float(share)
        pooled = _band_iou(numbers["bands"].sum(0))
        for width, share in zip(self.options.widths, pooled, strict=True):
            summary[flat_name("boundary_iou", width)]["data_set"] = float(share)
        return summary

    @property
    def _has_pixels(self) -> bool:
        return not np.isnan(self.numbers["pixels"]).any()

    def _measured(self, label: Label) -> list[tuple[str, Length | None]]:
        scores = self.options.scores_of(label)
        return scores if self._has_pixels else scores[2:]  # without IoU and Dice

    def _lone(self) -> list[NDArray[np.bool_]]:
        """Rows in each state with an empty mask, in the order of ``LONE``."""
        return [self.numbers["state"] == STATES.index(state) for state in LONE]

    def _filled(self, measure: str, values: Floats, lone: list[NDArray[np.bool_]]) -> Floats:
        """The values, with those of the options if a mask is empty."""
        filled = values.copy()
        for state, places in zip(LONE, lone, strict=True):
            if places.any():
                value = self.options.filling_rule(measure, state)
                diagonal = self.numbers["diagonal"][places]
                fill = diagonal if value == "diagonal" else np.full(len(diagonal), float(value))
                filled[places] = fill.reshape(-1, *[1] * (values.ndim - 1))
        return filled

    def _values(self) -> ScoreValues:
        """Scores of the rows; NaN for structures that have different tolerances."""
        columns: ScoreValues = self._overlaps() if self._has_pixels else {}
        columns |= {(name, None): values for name, values in self.distances().items()}
        for name in SHARES:
            columns |= self._tolerance_columns(name)
        pooled = _band_iou(self.numbers["bands"]).T
        for width, share in zip(self.options.widths, pooled, strict=True):
            columns["boundary_iou", width] = share
        return columns

    def _overlaps(self) -> ScoreValues:
        pixels = self.numbers["pixels"].T.astype(np.int64)
        counts = Counts.trusted(*pixels, np.zeros_like(pixels[0]))
        has_truth, has_pred = counts.truth > 0, counts.pred > 0
        lone = [~has_truth & ~has_pred, ~has_truth & has_pred, has_truth & ~has_pred]
        scores = {"iou": iou(counts), "dice": dice(counts)}
        return {(name, None): self._filled(name, v, lone) for name, v in scores.items()}

    def _tolerance_columns(self, name: str) -> ScoreValues:
        shares, tolerances = self.shares(name), self.options.tolerances
        if not self.options.tolerances_of:
            return {(name, limit): share for limit, share in zip(tolerances, shares.T, strict=True)}
        limits = np.empty(shares.shape, dtype=object)  # numbers and texts
        for row, label in zip(limits, self.labels, strict=True):
            row[:] = self.options.tolerances_at(label)
        columns: ScoreValues = {}
        for share, limit in zip(shares.T, limits.T, strict=True):
            for length in dict.fromkeys(limit.tolist()):
                empty = np.full(len(self), np.nan)
                column = columns.setdefault((name, length), empty)
                column[limit == length] = share[limit == length]
        return columns


def flat_name(name: str, length: Length | None) -> str:
    """Name of a score with its tolerance or width, as in "surface_dice_1"."""
    return name if length is None else f"{name}_{length_text(length)}"


def _share(name: str, within: Floats, sizes: Floats) -> Floats:
    """A share of surfaces from their parts within tolerances, (..., S, 2), and sizes, (..., 2)."""
    if name == "surface_dice":
        return ratio(within.sum(-1), sizes.sum(-1)[..., None])
    shares = ratio(within, sizes[..., None, :])
    is_lone = np.isnan(shares) & (sizes.sum(-1) > 0)[..., None, None]
    recall, precision = np.moveaxis(np.where(is_lone, 0.0, shares), -1, 0)
    if name == "boundary_recall":
        return np.asarray(recall)
    if name == "boundary_precision":
        return np.asarray(precision)
    total = precision + recall
    return np.where(total == 0, 0.0, 2 * ratio(precision * recall, total))


def _case_summary(name: str, values: Floats, states: Floats) -> dict[str, Any]:
    """Means, median and quartiles of a score over the cases of a structure."""
    worst = math.inf if name.startswith(DISTANCES) else 0.0
    is_found, is_there = states == STATES.index("found"), states != STATES.index("absent")
    ranked = np.sort(np.where(is_found, values, worst)[is_there])
    defined = values[~np.isnan(values)].tolist()
    return {
        "mean": _mean(defined),
        "mean_cases": len(defined),
        "mean_of_found": _mean(values[is_found].tolist()),
        "median": float(quantile(ranked, 0.5)),
        "quartiles": [float(quantile(ranked, share)) for share in (0.25, 0.75)],
    }


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _band_iou(bands: Floats) -> Floats:
    """Boundary IoU from voxels in the bands of truth, prediction and both, (..., 3)."""
    in_truth, in_pred, in_both = np.moveaxis(bands, -1, 0)
    return ratio(in_both, in_truth + in_pred - in_both)
