"""Rules of surface measures, for rows, measuring and the plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_kind,
    check_number,
    read_several,
    read_spacing,
)
from segiou._support.text import Json, without_numpy
from segiou.measures.measure import Measure
from segiou.regions.conventions import (
    CONVENTIONS,
    DISTANCES,
    MEASURES,
    SHARES,
    TOLERANCES,
    Filling,
    Fillings,
    State,
)
from segiou.regions.surface_points import Label
from segiou.regions.tolerance import Length, check_different, length_text, read_length

Scores = dict[str, Any]


@dataclass(frozen=True)
class SurfaceRules(Measure):
    """Values of ``SurfaceOptions``, which makes the plan."""

    tolerances: tuple[Length, ...] = TOLERANCES
    percentiles: tuple[float, ...] = (95.0,)
    convention: str = "segiou"
    tolerances_of: Mapping[Label, tuple[Length, ...]] = field(default_factory=dict)
    empty: Mapping[str, Fillings] = field(default_factory=dict)
    widths: tuple[float, ...] = ()
    unit: str = ""
    spacing: tuple[float, ...] | None = None
    border: bool = True

    def __post_init__(self) -> None:
        check_choice("convention", self.convention, tuple(CONVENTIONS))
        check_flag("border", self.border)
        check_kind("tolerances_of", self.tolerances_of, Mapping, "a mapping of labels to distances")
        check_kind("empty", self.empty, Mapping, "a mapping of measures to three values each")
        check_choice("unit", self.unit, ("", "mm", "px"))
        common = _lengths("tolerances", self.tolerances)
        by_label = {
            label: _lengths("tolerances", some) for label, some in self.tolerances_of.items()
        }
        for label, some in by_label.items():
            if len(some) != len(common):
                msg = f"label {label} has tolerances {some}; expected {len(common)}, as in common"
                raise ValueError(msg)
        several = read_several("percentiles", self.percentiles, "a sequence of percentiles")
        percentiles = tuple(check_number("a percentile", p, 0, 100) + 0.0 for p in several)
        check_different("percentiles", [f"{p:g}" for p in percentiles])
        widths = _lengths("widths", self.widths)
        _check_widths(widths, self.border)
        self.__dict__.update(
            tolerances=common,
            percentiles=percentiles,
            tolerances_of=by_label,
            widths=widths,
            spacing=None if self.spacing is None else read_spacing(self.spacing),
            empty={measure: _fillings(measure, some) for measure, some in self.empty.items()},
        )

    def to_dict(self) -> dict[str, Json]:
        """The options as JSON-ready values, with "nan" and "inf" as strings."""
        plain = without_numpy(vars(self))
        plain["tolerances_of"] = [
            [without_numpy(label), [*limits]] for label, limits in self.tolerances_of.items()
        ]
        plain["empty"] = {
            measure: [v if v == "diagonal" or math.isfinite(v) else str(float(v)) for v in values]
            for measure, values in self.empty.items()
        }
        if self.border:
            del plain["border"]
        optional = ("widths", "unit", "spacing")
        return {name: value for name, value in plain.items() if value or name not in optional}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Options from the values of :meth:`to_dict`."""
        empty: dict[str, Any] = {
            measure: tuple(v if v == "diagonal" else float(v) for v in values)
            for measure, values in state["empty"].items()
        }
        return cls(**{**state, "tolerances_of": dict(state["tolerances_of"]), "empty": empty})

    def tolerances_at(self, label: Label) -> tuple[Length, ...]:
        """Tolerances of a structure.

        Parameters
        ----------
        label : int or str
            Label or name of the structure.
        """
        return self.tolerances_of.get(label, self.tolerances)

    def scores_of(self, label: Label) -> list[tuple[str, Length | None]]:
        """Scores of a structure: name, and tolerance or width (None if it has none).

        Parameters
        ----------
        label : int or str
            Label or name of the structure.
        """
        distances = ["hausdorff", *(f"hausdorff_{p:g}" for p in self.percentiles)]
        names = ["iou", "dice", *distances, "average_surface_distance"]
        limits = self.tolerances_at(label)
        by_length = {**dict.fromkeys(SHARES, limits), "boundary_iou": self.widths}
        lengths = [(name, length) for name, several in by_length.items() for length in several]
        return [*((name, None) for name in names), *lengths]

    def filling_rule(self, measure: str, state: State) -> Filling:
        """Value of a measure if a mask is empty: a number, or "diagonal" for distances.

        A share cannot be a length, so "diagonal" leaves it undefined.

        Parameters
        ----------
        measure : str
            Name of the measure.
        state : State
            Which of the masks are empty.
        """
        return CONVENTIONS[self.convention].filling(measure, state, self.empty)


def _lengths(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    several = read_several(name, values, "a sequence of distances")
    lengths = tuple(read_length(name, length) for length in several)
    check_different(name, [length_text(length) for length in lengths])
    return lengths


def _check_widths(widths: tuple[Length, ...], border: bool) -> None:
    if relative := [width for width in widths if isinstance(width, str)]:
        msg = f"widths must be distances, got {relative[0]}; use BoundaryOptions for images"
        raise ValueError(msg)
    if 0 in widths or math.inf in widths:
        msg = f"widths must be positive and finite, got {widths}; a band of width 0 has no voxels"
        raise ValueError(msg)
    if widths and not border:
        msg = "Boundary IoU counts the border as a boundary; omit widths or border=False"
        raise ValueError(msg)


def _fillings(measure: str, fillings: Any) -> tuple[Any, ...]:
    """The values of a measure for empty masks."""
    check_choice("a measure of empty masks", measure, MEASURES)
    name = f"empty[{measure!r}]"
    wanted = "three numbers or 'diagonal', for both masks, the truth or the prediction being empty"
    fillings = read_several(name, fillings, wanted)
    known = [isinstance(value, int | float) or str(value) == "diagonal" for value in fillings]
    if known != [True] * 3:
        msg = f"{name} must be {wanted}; got {fillings!r}"
        raise ValueError(msg)
    most, where = (math.inf, "at least 0") if measure in DISTANCES else (1, "from 0 to 1")
    # NaN is not equal to itself, and integers may be too large for a float.
    if wrong := [v for v in fillings if v != "diagonal" and v == v and not 0 <= v <= most]:
        msg = f"{name} must be {where}, or nan for undefined; got {wrong[0]}"
        raise ValueError(msg)
    numbers = (v if v == "diagonal" or v != v else check_number(name, v) for v in fillings)
    return tuple(numbers)
