"""The measure of volumes: errors of each case, and the agreement of truth and prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import shown_change
from segiou._support.text import Json
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Quantity, Score, finite_parts
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.measures.structures import StructureOptions, StructurePlan
from segiou.measures.volume.agreement import Agreement, bland_altman
from segiou.metrics.ratio import Floats, exact_parts, joined_parts, ratio

#: Exact sums have room for values up to 2³¹; this power of two makes it 2⁵¹ voxels.
_SCALE = 2.0**20
#: Factor of the second pair of parts of a sum.
_FINE = 2.0**64
#: A volume above this limit means that the spacing is wrong.
_MOST = 2.0**50
_MM3_PER_ML = 1000
#: Columns of cases beside the scores: their titles, and whether they are ratios.
_OF_CASES = {
    "volume_truth": ("true {}", False),
    "volume_pred": ("predicted {}", False),
    "volume_difference": ("{} difference", False),
    "volume_difference_relative": ("relative {} difference", True),
}
#: Columns of agreement: their titles, and the fields of the value and of its interval.
_OF_AGREEMENT = {
    "volume_bias": ("bias", "bias", "bias_interval"),
    "volume_agreement_low": ("lower limit", "low", "low_interval"),
    "volume_agreement_high": ("upper limit", "high", "high_interval"),
}


@dataclass(frozen=True)
class VolumeOptions(StructureOptions):
    """Volumes of structures in truth and prediction: errors, bias and limits of agreement.

    Attributes
    ----------
    classes : tuple of str or int
        Names or indices of the compared classes; by default the groups of the label set if the
        masks are volumes, or else all classes but the background.

    Examples
    --------
    >>> VolumeOptions(("liver",))
    VolumeOptions(classes=('liver',))
    """

    key: ClassVar[str] = "volume"
    title: ClassVar[str] = "Volumes"
    score_names: ClassVar[tuple[str, ...]] = ("volume_error", "volume_error_relative")

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return VolumePlan(self, classes, masks)


@dataclass(frozen=True)
class VolumePlan(StructurePlan):
    """Plan of the measure of volumes: both volumes of each structure in each case."""

    measure: VolumeOptions

    @cached_property
    def structures(self) -> Mapping[str, tuple[int, ...]]:
        """Class indices of each structure."""
        if self.masks.volumes and self.classes.groups and not self.measure.classes:
            return dict(self.classes.groups)
        names, taken = self.classes.labels.class_names, self.classes.include
        kept = (c for c in self.scored if self.measure.classes or taken[c])
        return {names[c]: (c,) for c in kept}

    @property
    def unit(self) -> str:
        """Unit of the volumes: ``"ml"``, or ``"mm²"`` of images; pixels if it is unknown."""
        if self.masks.unit:
            return "ml" if self.masks.volumes else "mm²"
        if self.masks.spacing:
            return "units³" if self.masks.volumes else "units²"
        return "voxels" if self.masks.volumes else "px"

    @property
    def _noun(self) -> str:
        return "volume" if self.masks.volumes else "area"

    @property
    def counted_structures(self) -> tuple[tuple[int, ...], ...]:
        """The structures."""
        return tuple(self.structures.values())

    @property
    def layout(self) -> Layout:
        """Volumes of truth and prediction, one row per case."""
        return {"cases": Field((len(self.structures), 2), rows=True, floats=True, single=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Measure a case."""
        tally: Any = pair.tally
        counts = tally.group_counts([*self.structures.values()])
        spacing = self.masks.spacing or pair.spacing or ()
        size = math.prod(map(float, spacing)) / (_MM3_PER_ML if self.unit == "ml" else 1)
        volumes = np.stack([counts.truth, counts.pred], axis=-1).reshape(-1, 2) * size
        if (most := volumes.max(initial=0)) > _MOST:
            msg = (
                f"{self._noun} {most:.3g} {self.unit} is too large for spacing "
                f"{tuple(spacing)}; correct the spacing"
            )
            raise ValueError(msg)
        return Parts.of(self.layout, cases=volumes)

    def check(self, parts: Parts) -> None:
        """Reject impossible volumes."""
        cases = parts["cases"]
        if not ((cases >= 0) & (cases <= _MOST)).all():
            msg = "invalid rows of volumes"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Means of the absolute and of the relative error over the cases."""
        return {
            "volume_error": self._score("volume_error", f"{self._noun} error", _errors, self.unit),
            "volume_error_relative": self._score(
                "volume_error_relative", f"relative {self._noun} error", _relative_errors
            ),
        }

    def _score(
        self, name: str, title: str, values: Callable[[Parts], Floats], unit: str = ""
    ) -> Score:
        def numbers(parts: Parts) -> NDArray[np.int64]:
            scaled = values(parts) / _SCALE
            coarse = finite_parts(scaled)
            known = coarse[..., 2] > 0
            # Volumes of small voxels are less than the steps of these parts.
            rest = np.where(known, scaled, 0.0) - joined_parts(coarse)
            return np.concatenate([coarse, exact_parts(rest * _FINE)], axis=-1)

        def mean(sums: NDArray[Any]) -> Floats:
            total = joined_parts(sums) + joined_parts(sums[..., 3:]) / _FINE
            return ratio(total, sums[..., 2]) * _SCALE

        names, every = tuple(self.structures), np.ones(len(self.structures), bool)
        # Relative errors are not shares: they may exceed 1.
        more: Any = {"unit": unit, "better": "lower", "scale": "log"}
        more |= {"rule": "cases", "over": "class"}
        return Score.of_names(name, title, names, every, numbers, mean, seen=_is_in_truth, **more)

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """The scores of each case, its volumes and their difference."""
        columns = super().columns(parts)
        truth, pred = np.moveaxis(parts["cases"], -1, 0)
        several = truth, pred, pred - truth, _relative_differences(parts)
        for name, values in zip(_OF_CASES, several, strict=True):
            columns |= zip((f"{name}:{row}" for row in self.structures), values.T, strict=True)
        return columns

    @property
    def case_quantities(self) -> Mapping[str, Quantity]:
        """Volumes and differences; neither direction is better."""
        return {
            name: Quantity(
                name, title.format(self._noun), unit="" if is_ratio else self.unit, better=None
            )
            for name, (title, is_ratio) in _OF_CASES.items()
        }

    def agreement(self, parts: Parts, level: float = 0.95) -> dict[str, Agreement]:
        """Bias and limits of agreement of each structure, over the cases that have it.

        Parameters
        ----------
        parts : Parts
            Parts of N cases.
        level : float
            Level of the confidence intervals.
        """
        by_structure = {}
        for at, name in enumerate(self.structures):
            cases = parts["cases"][:, at]
            truth, pred = cases[cases.any(1)].T
            by_structure[name] = bland_altman(truth, pred, level=level)
        return by_structure

    def table(self, counted: Counted) -> ScoreTable:
        """Errors of each structure, and the agreement of its volumes."""
        title = f"{self._noun.capitalize()}s"
        usual = replace(super().table(counted), title=title, note=self._note())
        entry: Any = usual.to_dict()[self.key]
        agreement = self.agreement(counted.total)
        relative = _means(_relative_differences(counted.total))
        signed = ScoreValues(
            "volume_difference_relative",
            f"relative {self._noun} difference",
            dict(zip(self.structures, relative.tolist(), strict=True)),
            (math.nan,),
            better=None,
        )
        numbers = [entry.cases for entry in agreement.values()]
        every = [counted.images]
        cases = ScoreValues.of_counts("volume_cases", "cases", self.structures, numbers, every)
        return replace(
            usual,
            columns=(
                cases,
                *usual.columns,
                signed,
                *(self._agreement_column(name, agreement) for name in _OF_AGREEMENT),
            ),
            of="structure",
            empty=(*(not number for number in numbers), False),
            data={self.key: {**entry, **self._data(agreement, counted)}},
        )

    def _agreement_column(self, name: str, agreement: Mapping[str, Agreement]) -> ScoreValues:
        """The bias or a limit of each structure, shown with its interval."""
        title, value, interval = _OF_AGREEMENT[name]
        rows = {row: getattr(entry, value) for row, entry in agreement.items()}
        texts = {}
        for row, entry in agreement.items():
            low, high = getattr(entry, interval)
            if not math.isnan(low):
                between = f" ({shown_change(low, self.unit)} to {shown_change(high, self.unit)})"
                texts[row] = f"{shown_change(rows[row], self.unit)}{between}"
        unit: Any = {"unit": self.unit, "better": None}
        return ScoreValues(name, title, rows, (math.nan,), texts=texts, **unit)

    def _note(self) -> str:
        many = f"{self._noun}s"
        return (
            f"{many}: in {self.unit}; errors and differences (prediction minus truth) are means "
            "over the cases with the structure in truth or prediction, relative ones over those "
            "with it in the truth; bias and limits of agreement (bias ± 1.96 SD) with 95 % "
            "intervals for independent cases"
        )

    def _data(self, agreement: Mapping[str, Agreement], counted: Counted) -> dict[str, Json]:
        """In the JSON report also: agreement of each structure, and volumes of each case."""
        rows: list[Json] = [
            {"case": case, "label": label, "truth": truth, "pred": pred}
            for case, volumes in zip(counted.ids(), counted.total["cases"].tolist(), strict=True)
            for label, (truth, pred) in zip(self.structures, volumes, strict=True)
        ]
        return {
            "unit": self.unit,
            "agreement": {
                name: {k: [*v] if isinstance(v, tuple) else v for k, v in entry._asdict().items()}
                for name, entry in agreement.items()
            },
            "cases": rows,
        }


def _is_in_truth(parts: Parts) -> NDArray[np.bool_]:
    return np.asarray(parts["cases"][..., 0] > 0)


def _errors(parts: Parts) -> Floats:
    """Absolute difference of each case and structure, (N, K); NaN where neither side has it."""
    truth, pred = np.moveaxis(parts["cases"], -1, 0)
    return np.where((truth > 0) | (pred > 0), np.abs(pred - truth), np.nan)


def _relative_differences(parts: Parts) -> Floats:
    """Difference in relation to the truth, (N, K); NaN where it is empty."""
    truth, pred = np.moveaxis(parts["cases"], -1, 0)
    return ratio(pred - truth, truth)


def _relative_errors(parts: Parts) -> Floats:
    return np.abs(_relative_differences(parts))


def _means(values: Floats) -> Floats:
    """Means of the defined values of each structure, (K,)."""
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0.0).sum(0), known.sum(0))
