"""The built-in measure of lesions: counts per case, scores and their table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, check_number
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.labels.loading import labelset_names
from segiou.measures.lesions.protocols import COMPONENTS, LesionProtocol, read_protocol
from segiou.measures.lesions.scores import lesion_scores
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure, read_number
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Score, case_values
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.ratio import Floats, ratio

_NUMBERS = ("found", "missed", "false_positive")
_BANDS = ("lesion_f1_large", "lesion_f1_small")
#: Title of each score of cases, and its value in the result of a region.
_CASES: dict[str, tuple[str, Callable[[Any], float]]] = {
    "lesion_dice": ("lesion Dice", itemgetter("dice")),
    "lesion_hd95": ("lesion HD95", itemgetter("hausdorff_95")),
    "lesion_surface_dice": ("lesion surface Dice", itemgetter("surface_dice")),
    "region_dice": ("region Dice", itemgetter("overall_dice")),
    "region_hd95": ("region HD95", itemgetter("overall_hausdorff_95")),
    "region_surface_dice": ("region surface Dice", itemgetter("overall_surface_dice")),
    "lesion_f1_cases": ("lesion F1, cases", itemgetter("f1")),
    "lesion_f1_large": ("F1 of large lesions", lambda row: float(row["bands"][1]["f1"])),
    "lesion_f1_small": ("F1 of small lesions", lambda row: float(row["bands"][0]["f1"])),
}


@dataclass(frozen=True)
class LesionOptions(Measure):
    """Lesion-wise scores under the rules of a challenge.

    Attributes
    ----------
    protocol : str
        Rules of a challenge: a key of ``LESION_PROTOCOLS``. ``"components-skip"`` scores the
        components of any structure without unmatched ones; ``"components-374"`` scores
        unmatched ones with this distance, for which any number may be set.
    tolerance : float, optional
        Tolerance of surface Dice for ``"components-…"``, in the unit of the spacing; by default
        the smallest spacing.

    Raises
    ------
    ValueError
        If the protocol is unknown, or has its own tolerance.

    Examples
    --------
    >>> LesionOptions("autopet")
    LesionOptions(protocol='autopet', tolerance=None)
    """

    key: ClassVar[str] = "lesions"
    title: ClassVar[str] = "Lesions"
    score_names: ClassVar[tuple[str, ...]] = (
        *("lesion_f1", "lesion_dice", "lesion_hd95"),
        *("lesion_surface_dice", "region_dice", "region_hd95", "region_surface_dice"),
        *("lesion_f1_cases", "lesion_f1_large", "lesion_f1_small"),
    )

    protocol: str = "brats2023-gli"
    tolerance: float | None = None

    def __post_init__(self) -> None:
        check_kind("protocol", self.protocol, str, "text")
        object.__setattr__(self, "protocol", read_protocol(self.protocol).name)
        if self.tolerance is None:
            return
        object.__setattr__(self, "tolerance", check_number("tolerance", self.tolerance, 0, 1e100))
        if not self.protocol.startswith(COMPONENTS):
            msg = (
                f"protocol {self.protocol!r} has its own tolerance; use {COMPONENTS}skip or "
                f"{COMPONENTS}374 to set one"
            )
            raise ValueError(msg)

    @classmethod
    def of(cls, choice: Any) -> LesionOptions:
        """Build from options, the name of a protocol, or True for BraTS 2023 GLI."""
        return choice if isinstance(choice, cls) else cls() if choice is True else cls(choice)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> LesionOptions | None:
        """Options from the command line."""
        tolerance = given.get("lesions_tolerance")
        if not given.get("lesions"):
            if tolerance is not None:
                msg = "--lesions-tolerance needs --lesions"
                raise ValueError(msg)
            return None
        if tolerance is not None:
            tolerance = read_number("--lesions-tolerance", tolerance, float)
        return cls(given["lesions"], tolerance)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes; ValueError if they are not those of the regions."""
        _check_values(read_protocol(self.protocol), classes.labels)
        return LesionPlan(self, classes, masks)


def _check_values(protocol: LesionProtocol, labels: LabelSet) -> None:
    """Raise ValueError if a label set has classes other than those of the regions."""
    wanted = {value for values in (protocol.regions or {}).values() for value in values}
    label_set = labels.name if labels.name in labelset_names() else protocol.label_set
    unknown = [entry for entry in labels.classes if not {0, *wanted}.intersection(entry.values)]
    if not wanted or (label_set == protocol.label_set and not unknown):
        return
    what = f"label set {labels.name!r} has other classes"
    if unknown:
        what = f"class {unknown[0].name!r} of label set {labels.name!r} is in no region"
    msg = (
        f"lesions of protocol {protocol.name!r} are regions of the values "
        f"{', '.join(map(str, sorted(wanted)))}, but {what}"
    )
    fix = f"use labels={protocol.label_set!r} (--labels {protocol.label_set})"
    raise ValueError(f"{msg}; {fix}" if protocol.label_set else msg)


@dataclass(frozen=True)
class LesionPlan(Plan):
    """Plan of the lesions measure.

    The regions are those of the protocol, by the values of the masks. Protocols
    without regions score the groups of the label set, or its classes other than 0.
    """

    measure: LesionOptions

    error_columns: ClassVar[tuple[str, ...]] = ("lesions_missed", "lesions_false_positive")

    @property
    def protocol(self) -> LesionProtocol:
        """The protocol by its name, with the tolerance of the options."""
        protocol, tolerance = read_protocol(self.measure.protocol), self.measure.tolerance
        return protocol if tolerance is None else replace(protocol, tolerance=tolerance)

    @cached_property
    def regions(self) -> Mapping[str, tuple[int, ...]]:
        """Mask values of each region."""
        if self.protocol.regions is not None:
            return self.protocol.regions
        values = self.classes.labels.class_values
        names = self.classes.labels.class_names
        whole = {n: sum((values[c] for c in members), ()) for n, members in self.classes.groups}
        kept = [c for c in range(len(names)) if c not in self.classes.exclude]
        return whole or {names[c]: values[c] for c in kept if values[c] != (0,)}

    @property
    def unit(self) -> str:
        """Unit of the distances."""
        return self.masks.unit or ("px" if self.masks.spacing is None else "units")

    @property
    def counted_structures(self) -> tuple[tuple[int, ...], ...]:
        """The regions."""
        return tuple(self.regions.values())

    @property
    def layout(self) -> Layout:
        """Found, missed and false-positive lesions; mean Dice and HD95 of each case, and more."""
        shape = len(self.regions), len(self._values_of)
        return {
            "lesions": Field((len(self.regions), 3)),
            "cases": Field(shape, rows=True, floats=True, single=True),
        }

    @property
    def _values_of(self) -> Mapping[str, tuple[str, Callable[[Any], float]]]:
        """Title of each score of cases, and its value in the result of a region."""
        names = _CASES if self.protocol.surface_dice else ("lesion_dice", "lesion_hd95")
        has_bands = self.protocol.large is not None
        return {name: _CASES[name] for name in names if has_bands or name not in _BANDS}

    def count(self, pair: MaskPair) -> Parts:
        """Score the lesions of a case."""
        protocol: Any = self.measure.protocol
        if self.protocol.regions is None:
            protocol = replace(self.protocol, regions=self.regions)
        spacing = self.masks.spacing or pair.spacing
        result = lesion_scores(*self._values(pair), spacing=spacing, protocol=protocol)
        rows: list[Any] = [result[name] for name in self.regions]
        numbers = [[row[name] for name in ("tp", "fn", "fp")] for row in rows]
        for row in rows:
            if row["overall_hausdorff_95"] == math.inf:
                row["overall_hausdorff_95"] = self.protocol.farthest
        cases = [[value_of(row) for _, value_of in self._values_of.values()] for row in rows]
        arrays = {"lesions": np.array(numbers, int), "cases": np.array(cases)}
        return Parts.of(
            self.layout, **{n: a.reshape(self.layout[n].shape) for n, a in arrays.items()}
        )

    def _values(self, pair: MaskPair) -> tuple[NDArray[Any], NDArray[Any]]:
        """Truth and prediction in values of the truth; 0 where the truth is ignored."""
        values = np.array([several[0] for several in self.classes.labels.class_values])
        plain = self.classes.pred_labels == self.classes.labels and pair.mask is None
        encoding = Encoding.of_classes(self.classes)
        ignored = encoding.truth.codes_of(pair.truth) >= self.classes.num_classes
        if plain and not ignored.any():
            return pair.truth, pair.pred
        truth, pred = (np.where(side >= 0, values[side], 0) for side in pair.indices)
        return truth, pred

    def check(self, parts: Parts) -> None:
        """Reject negative numbers."""
        if (parts["cases"] < 0).any():
            msg = "invalid lesion rows"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """F1 over all lesions, and means of Dice, HD95 and others over the cases."""
        names, every = tuple(self.regions), np.ones(len(self.regions), bool)
        f1 = Score.of_names("lesion_f1", "lesion F1", names, every, _lesions, _f1, seen=self._seen)
        scores = {f1.name: f1}
        tolerance = self.measure.tolerance
        for at, (name, (title, _)) in enumerate(self._values_of.items()):
            if tolerance is not None and name.endswith("surface_dice"):
                title = f"{title} {tolerance:g} {self.unit}"
            far: Any = {"unit": self.unit, "better": "lower", "alone": partial(_alone, at)}
            more = far if name.endswith("hd95") else {}
            values = partial(case_values, at)
            scores[name] = Score.of_cases(name, title, names, values, seen=self._seen, **more)
        return scores

    @staticmethod
    def _seen(parts: Parts) -> NDArray[np.bool_]:
        return np.asarray(parts["lesions"][..., :2].any(-1))

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """The scores of each case, and its lesions."""
        columns = super().columns(parts)
        for at, name in enumerate(_NUMBERS):
            columns[f"lesions_{name}"] = parts["lesions"][..., at].sum(-1)
        return columns

    def table(self, counted: Counted) -> ScoreTable:
        """Lesions of each region and the scores."""
        usual = super().table(counted)
        numbers = counted.total["lesions"].sum(0)
        columns = [
            ScoreValues.of_counts(
                f"lesions_{name}", name.replace("_", " "), usual.rows, column, [column.sum()]
            )
            for name, column in zip(_NUMBERS, numbers.T, strict=True)
        ]
        return replace(
            usual,
            about="Lesions found, missed and false positive, and their overlap and distance under "
            "the rules of a challenge.",
            columns=(usual.columns[0], *columns, *usual.columns[1:]),
            note=(
                f"lesions: protocol {self.protocol.name} ({self.protocol.description}); F1 covers "
                f"all lesions, Dice and HD95 are means over {counted.images} cases"
            ),
            of="region",
            empty=(*(~numbers.any(1)).tolist(), False),
        )


def _lesions(parts: Parts) -> NDArray[np.int64]:
    return parts["lesions"]


def _f1(n: NDArray[Any]) -> Floats:
    return ratio(2 * n[..., 0], 2 * n[..., 0] + n[..., 1] + n[..., 2])


def _alone(at: int, parts: Parts) -> Floats:
    values = case_values(at, parts)
    return np.asarray(np.where(np.isfinite(values), values, 0.0).mean(-1))
