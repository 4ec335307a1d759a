"""Options of surface distances, and the conventions of several tools."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal

from segiou._support.arguments import (
    check_choice,
    check_kind,
    check_number,
    read_several,
    read_spacing,
)
from segiou._support.text import Json
from segiou.boundary.boundary_options import (
    NO_SPACING,
    BoundaryOptions,
    asked_lengths,
    asks_for_surfaces,
)
from segiou.boundary.surface_points import Kind, Label
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure, Plan

#: Value of a measure if a mask is empty: a number, or the diagonal of the volume.
Filling = float | Literal["diagonal"]
#: Values if both masks, only the truth, or only the prediction are empty.
Fillings = tuple[Filling, Filling, Filling]
State = Literal["found", "missed", "false_positive", "absent"]
#: States in which a structure is absent from a mask, in the order of `Fillings`.
LONE: Final[tuple[State, ...]] = ("absent", "false_positive", "missed")
Scores = dict[str, Any]

_NAN, _INF = float("nan"), float("inf")
_FARTHEST: Fillings = (_NAN, _INF, _INF)
_NOTHING: Fillings = (_NAN, 0.0, 0.0)


@dataclass(frozen=True)
class Convention:
    """A tool's definition of the distance between two surfaces.

    Attributes
    ----------
    surface : {"voxels", "elements"}
        Elements of a surface: voxels of the label with a face to a different
        label, each of weight 1; or corners between voxels that differ, each
        weighted by the area of the surface there.
    percentile : {"linear", "pooled", "weighted", "summed"}
        The larger of both directions' percentiles, interpolated linearly; the
        percentile over the pooled distances of both directions; or the larger
        of both directions' smallest distances within which that share of the
        surface lies, by exact shares or with surface-distance's sums.
    average : {"pooled", "directions"}
        The mean over both surfaces pooled, or the mean of the two means.
    empty : mapping of str to (both empty, truth empty, prediction empty)
        Value of each measure if a mask is empty: a number, or "diagonal". By
        default, if one mask is empty, distances are infinite and shares 0; if
        both are empty, all measures are undefined.
    tolerances, tolerances_of, spacing
        Defaults of a challenge: common tolerances, tolerances of structures by
        name, and a voxel size that overrides the file.
    is_challenge : bool
        Whether the convention defines tolerances.
    """

    surface: Kind
    percentile: Literal["linear", "pooled", "weighted", "summed"]
    average: Literal["pooled", "directions"]
    empty: Mapping[str, Fillings] = field(default_factory=dict)
    tolerances: tuple[float, ...] = (1.0,)
    tolerances_of: Mapping[Label, tuple[float, ...]] = field(default_factory=dict)
    spacing: tuple[float, ...] | None = None
    is_challenge: bool = False


#: Distances of a pair of surfaces (the 95th percentile is "hausdorff_95"), and shares.
DISTANCES: Final = ("hausdorff", "hausdorff_percentile", "average_surface_distance")
MEASURES: Final = (*DISTANCES, "surface_dice", "dice", "iou")
_EMPTY: Final = dict.fromkeys(DISTANCES, _FARTHEST) | dict.fromkeys(MEASURES[3:], _NOTHING)

_BEST: Fillings = (1.0, 0.0, 0.0)
_WEIGHTED_SUMS = Convention(
    "elements",
    "summed",
    "directions",
    dict.fromkeys(DISTANCES[:2], (_INF,) * 3) | {"average_surface_distance": (_NAN,) * 3},
)


def _challenge(rules: Fillings, tolerances: tuple[float, ...] = (1.0,), **more: Any) -> Convention:
    """surface-distance's surface Dice, with the same rules for Dice and surface Dice."""
    empty = {**_WEIGHTED_SUMS.empty, "surface_dice": rules, "dice": rules}
    return replace(_WEIGHTED_SUMS, empty=empty, tolerances=tolerances, is_challenge=True, **more)


#: Tolerances in mm of the organs of FLARE 2022 and the lesions of FLARE 2023.
_FLARE: Final = {
    **dict.fromkeys(("liver", "pancreas", "stomach"), (5.0,)),
    **dict.fromkeys(("right kidney", "spleen", "esophagus", "left kidney"), (3.0,)),
    **dict.fromkeys(("aorta", "inferior vena cava", "gallbladder", "lesion"), (2.0,)),
    **dict.fromkeys(("right adrenal gland", "left adrenal gland"), (2.0,)),
    "duodenum": (7.0,),
}
_KITS: Final = {
    "kidney_and_mass": (1.0330772532390826,),
    "mass": (1.1328796488598762,),
    "tumor": (1.1498198361434828,),
}

#: Conventions by name. medpy rejects empty masks, so they count as in segiou's convention.
CONVENTIONS: Final = {
    "segiou": Convention("elements", "weighted", "pooled"),
    "medpy": Convention("voxels", "pooled", "pooled"),
    "monai": Convention("voxels", "linear", "pooled", {"hausdorff_percentile": (_NAN,) * 3}),
    "surface-distance": _WEIGHTED_SUMS,
    "metricsreloaded": Convention(
        "voxels",
        "linear",
        "pooled",
        dict.fromkeys(DISTANCES, (0.0, _NAN, _NAN)) | {"surface_dice": _BEST},
    ),
    "totalsegmentator": _challenge((_NAN, _NAN, 0.0), (3.0,), spacing=(1.5, 1.5, 1.5)),
    "kits23": _challenge(_BEST, tolerances_of=_KITS),
    "flare22": _challenge(_BEST, tolerances_of=_FLARE),
}


@dataclass(frozen=True)
class SurfaceOptions(Measure):
    """Surface distances and surface Dice of structures.

    Attributes
    ----------
    tolerances : tuple of float
        Tolerances of surface Dice, in the unit of the spacing.
    percentiles : tuple of float
        Percentiles of the distances, from 0 to 100.
    convention : str
        Name of the tool whose definitions apply: a key of ``CONVENTIONS``.
    tolerances_of : mapping of label to tuple of float
        Tolerances of individual labels, which replace the common ones.
    empty : mapping of str to (both empty, truth empty, prediction empty)
        Values of "hausdorff", "hausdorff_percentile", "average_surface_distance",
        "surface_dice", "dice" and "iou" if a mask is empty: numbers, or, for
        distances, "diagonal" for the diagonal of the volume. By default those of
        the convention.
    widths : tuple of float
        Widths of the bands of Boundary IoU, in the unit of the spacing; none by
        default.
    unit : str
        Unit of the distances, if it is not that of the files.
    spacing : sequence of float, optional
        Size of a pixel along each axis, in place of that of the files.

    Examples
    --------
    >>> options = SurfaceOptions((1, 2), empty={"surface_dice": (1, 0, 0)})
    >>> SurfaceOptions.from_dict(options.to_dict()) == options
    True
    """

    key: ClassVar[str] = "surfaces"
    score_names: ClassVar[tuple[str, ...]] = (
        *("surface_dice", "hausdorff_95", "hausdorff", "average_surface_distance"),
    )

    tolerances: tuple[float, ...] = (1.0,)
    percentiles: tuple[float, ...] = (95.0,)
    convention: str = "segiou"
    tolerances_of: Mapping[Label, tuple[float, ...]] = field(default_factory=dict)
    empty: Mapping[str, Fillings] = field(default_factory=dict)
    widths: tuple[float, ...] = ()
    unit: str = ""
    spacing: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_choice("convention", self.convention, tuple(CONVENTIONS))
        common = _checked_lengths("tolerances", self.tolerances)
        own = {
            label: _checked_lengths("tolerances", given)
            for label, given in self.tolerances_of.items()
        }
        for label, given in own.items():
            if len(given) != len(common):
                msg = f"label {label} has tolerances {given}; expected {len(common)}, as in common"
                raise ValueError(msg)
        several = read_several("percentiles", self.percentiles, "a sequence of percentiles")
        percentiles = tuple(check_number("a percentile", float(p), 0, 100) for p in several)
        for measure, fillings in self.empty.items():
            check_choice("a measure of empty masks", measure, MEASURES)
            known = [value == "diagonal" or isinstance(value, int | float) for value in fillings]
            if known != [True] * 3:
                msg = (
                    f"empty[{measure!r}] must be three numbers or 'diagonal', for both masks, the "
                    f"truth or the prediction being empty; got {fillings!r}"
                )
                raise ValueError(msg)
        widths = _checked_lengths("widths", self.widths)
        if 0 in widths:
            msg = "widths must be positive, got 0; a band of width 0 has no voxels"
            raise ValueError(msg)
        self.__dict__.update(
            tolerances=common,
            percentiles=percentiles,
            tolerances_of=own,
            widths=widths,
            spacing=None if self.spacing is None else read_spacing(self.spacing),
            empty={measure: tuple(values) for measure, values in self.empty.items()},
        )

    @classmethod
    def of(cls, choice: Measure | str | bool) -> Measure:
        """Build from options, True for the defaults, or the name of a convention.

        A convention has the tolerances of the boundaries that are measured beside it.
        """
        if isinstance(choice, Measure):
            return choice
        check_kind("surfaces", choice, (str, bool), "True, a convention or SurfaceOptions")
        if choice is True:  # as boundaries have, but not those of another measure
            return cls(tuple(one.value for one in BoundaryOptions().tolerances))
        return SurfaceConvention(str(choice))

    @classmethod
    def for_score(cls, name: str) -> Measure:
        """The convention of segiou."""
        return SurfaceConvention("segiou")

    @classmethod
    def flag_for(cls, score: str = "") -> str:
        """The option of the convention."""
        return "--surface"

    def to_dict(self) -> dict[str, Json]:
        """The options as JSON-ready values, with "nan" and "inf" as strings."""
        plain = {k: [*v] if isinstance(v, tuple) else v for k, v in vars(self).items()}
        plain["tolerances_of"] = [[label, [*own]] for label, own in self.tolerances_of.items()]
        plain["empty"] = {
            measure: [v if v == "diagonal" or math.isfinite(v) else str(float(v)) for v in values]
            for measure, values in self.empty.items()
        }
        optional = ("widths", "unit", "spacing")
        return {name: value for name, value in plain.items() if value or name not in optional}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> SurfaceOptions:
        """Options from the values of :meth:`to_dict`."""
        if state.keys() == {"convention"}:  # before it is resolved
            return SurfaceConvention(state["convention"])  # type: ignore[return-value]
        empty: dict[str, Any] = {
            measure: tuple(v if v == "diagonal" else float(v) for v in values)
            for measure, values in state["empty"].items()
        }
        return cls(**{**state, "tolerances_of": dict(state["tolerances_of"]), "empty": empty})

    @classmethod
    def asked(cls, given: Mapping[str, Any], classes: ClassOptions) -> Measure | None:
        """A convention from the command line, or options that go beyond one."""
        _, in_mm, of = asked_lengths(given)
        if not asks_for_surfaces(given, in_mm, of):
            return None
        if not (given.get("empty") or in_mm or of.keys() > {""}):
            return SurfaceConvention(given["surface"])
        if len({tolerance.unit for several in of.values() for tolerance in several}) > 1:
            text = given["boundary_tolerance"]
            msg = f"--boundary-tolerance {text}: use the same unit for all tolerances"
            raise ValueError(msg)
        values = {name: [one.value for one in several] for name, several in of.items()}
        common = values.pop("")
        return _of_convention(
            given.get("surface") or "",
            given.get("protocol"),
            common,
            usual=given.get("boundary") is not None and not values,
            tolerances_of=values,
            empty=dict(rule for text in given.get("empty") or () for rule in _rules(text)),
            widths=in_mm,
            unit="mm"
            if any(one.unit == "mm" for several in of.values() for one in several)
            else "",
        )

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> SurfaceOptions:
        """The options, whose unit may be that of the masks."""
        if self.unit == "mm" and (self.spacing or masks.spacing) is None and not masks.volumes:
            raise ValueError(NO_SPACING)
        return replace(self, unit="") if self.unit == masks.unit else self

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        from segiou.boundary.surface_plan import SurfacePlan

        return SurfacePlan(self, classes, masks)

    def tolerances_at(self, label: Label) -> tuple[float, ...]:
        """Tolerances of surface Dice of a structure.

        Parameters
        ----------
        label : int or str
            Label or name of the structure.
        """
        return self.tolerances_of.get(label, self.tolerances)

    def scores_of(self, label: Label) -> list[tuple[str, float | None]]:
        """Scores of a structure: name, and tolerance or width (None if it has none).

        Parameters
        ----------
        label : int or str
            Label or name of the structure.
        """
        distances = ["hausdorff", *(f"hausdorff_{p:g}" for p in self.percentiles)]
        names = ["iou", "dice", *distances, "average_surface_distance"]
        by_length = {"surface_dice": self.tolerances_at(label), "boundary_iou": self.widths}
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
        rules = {**_EMPTY, **CONVENTIONS[self.convention].empty, **self.empty}
        value = rules[measure][LONE.index(state)]
        return _NAN if value == "diagonal" and measure not in DISTANCES else value


def _checked_lengths(name: str, given: Iterable[float]) -> tuple[float, ...]:
    limits = tuple(
        check_number(name, limit) for limit in read_several(name, given, "a sequence of distances")
    )
    if not all(limit >= 0 for limit in limits):
        msg = f"{name} must not be negative, got {list(limits)}"
        raise ValueError(msg)
    return limits


@dataclass(frozen=True)
class SurfaceConvention(Measure):
    """Surface distances by a convention, with the tolerances of the boundaries.

    Attributes
    ----------
    convention : str
        A key of ``CONVENTIONS``; empty for that of the protocol, or segiou's.
    """

    key: ClassVar[str] = "surfaces"

    convention: str = ""

    def __post_init__(self) -> None:
        if self.convention:
            check_choice("convention", self.convention, tuple(CONVENTIONS))

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> SurfaceOptions:
        """Options of the convention, with the tolerances of the boundaries."""
        boundary = _boundary_of(measures)
        tolerances = boundary.tolerances
        if shares := [str(t) for t in tolerances if t.unit == "diagonal"]:
            msg = (
                f"tolerance {shares[0]}: surface tolerances cannot be relative to the diagonal; "
                "use pixels, or mm such as '2mm'"
            )
            raise ValueError(msg)
        is_usual = tolerances == BoundaryOptions().tolerances
        given = () if is_usual else tuple(one.value for one in tolerances)
        options = _of_convention(self.convention, protocol, given, usual=is_usual)
        shared: dict[str, Any] = {}
        if any(tolerance.unit == "mm" for tolerance in tolerances):
            shared["unit"] = "mm"
        if masks.spacing is None and boundary.spacing != BoundaryOptions().spacing:
            shared["spacing"] = boundary.spacing
        return replace(options, **shared).resolved(measures, masks, protocol)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan of the options."""
        return self.resolved((), masks, "segiou").plan(classes, masks)


def _of_convention(
    convention: str, protocol: str | None, tolerances: Sequence[float], *, usual: bool, **own: Any
) -> SurfaceOptions:
    """Options of a convention, by default that of the protocol.

    Without tolerances, ``usual`` takes those of boundaries, unless a challenge defines its own.
    """
    name = convention or (protocol if protocol in CONVENTIONS else "segiou")
    if usual and not tolerances and not CONVENTIONS[name].is_challenge:
        tolerances = [one.value for one in BoundaryOptions().tolerances]
    if not tolerances:
        tolerances = CONVENTIONS[name].tolerances
        own["tolerances_of"] = {**CONVENTIONS[name].tolerances_of, **own.get("tolerances_of", {})}
    return SurfaceOptions(tuple(tolerances), convention=name, **own)


def _boundary_of(measures: Sequence[Measure]) -> BoundaryOptions:
    found = (one for one in measures if isinstance(one, BoundaryOptions))
    return next(found, BoundaryOptions((), tolerances=(), contours=()))


def _rules(text: str) -> list[tuple[str, tuple[float | str, ...]]]:
    """Values of measures for empty masks, from the command line."""
    name, _, values = text.partition("=")
    try:
        rule = tuple(v if v == "diagonal" else float(v) for v in values.split(","))
    except ValueError:
        msg = (
            f"--empty {text}: expected MEASURE=BOTH,TRUTH,PRED, where values are numbers, nan, inf "
            "or diagonal, e.g. hausdorff_95=nan,diagonal,diagonal"
        )
        raise ValueError(msg) from None
    measure = "hausdorff_percentile" if name.startswith("hausdorff_") else name
    return [(m, rule) for m in (DISTANCES if name == "distances" else [measure])]
