"""Options of surface distances, and the conventions of several tools."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_kind,
    check_number,
    read_several,
    read_spacing,
)
from segiou._support.numbers import number_in
from segiou._support.text import Json, without_numpy
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.surfaces.plan import SurfacePlan
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
from segiou.regions.tolerance import (
    Length,
    Tolerance,
    check_different,
    length_text,
    read_length,
    split_lengths,
)

NO_SPACING = "tolerances in mm require the pixel size in mm; pass spacing=(H, W) (--spacing H,W)"


@dataclass(frozen=True)
class SurfaceOptions(Measure):
    """Surface distances and surface Dice of structures.

    Attributes
    ----------
    tolerances : tuple of float or str
        Tolerances of surface Dice and boundary F1, in the unit of the spacing, or
        relative to the diagonal of the image or volume, as in ``"0.75%"``.
    percentiles : tuple of float
        Percentiles of the distances, from 0 to 100.
    convention : str
        Name of the tool whose definitions apply: a key of ``CONVENTIONS``.
    tolerances_of : mapping of label to tuple of float
        Tolerances of individual labels, which replace the common ones.
    empty : mapping of str to (both empty, truth empty, prediction empty)
        Values of "hausdorff", "hausdorff_percentile", "average_surface_distance",
        "surface_dice" (also for boundary precision, recall and F1), "dice" and
        "iou" if a mask is empty: numbers, or, for distances, "diagonal" for the
        diagonal of the volume. By default those of the convention.
    widths : tuple of float
        Widths of the bands of Boundary IoU, in the unit of the spacing; none by
        default.
    unit : str
        Unit of the distances, if it is not that of the files.
    spacing : sequence of float, optional
        Size of a pixel along each axis, in place of that of the files.
    border : bool
        Whether a structure that touches the border of the image or volume has a
        surface there.

    Examples
    --------
    >>> options = SurfaceOptions((1, "0.75%"), empty={"surface_dice": (1, 0, 0)})
    >>> SurfaceOptions.from_dict(options.to_dict()) == options
    True
    """

    key: ClassVar[str] = "surfaces"
    score_names: ClassVar[tuple[str, ...]] = (
        *("surface_dice", "boundary_f1"),
        *("hausdorff_95", "hausdorff", "average_surface_distance"),
    )

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

    @classmethod
    def of(cls, choice: Measure | str | bool) -> Measure:
        """Build from options, True for the defaults, or the name of a convention."""
        if isinstance(choice, Measure):
            return choice
        check_kind("surfaces", choice, (str, bool), "True, a convention or SurfaceOptions")
        return cls() if choice is True else cls.of_convention(str(choice))

    @classmethod
    def of_convention(
        cls, name: str, tolerances: Iterable[Length] = (), **more: Any
    ) -> SurfaceOptions:
        """Options of a convention, by default with its tolerances.

        Parameters
        ----------
        name : str
            Name of the convention.
        tolerances : iterable of float or str
            Tolerances that replace those of the convention.
        **more
            Other options.
        """
        check_choice("convention", name, tuple(CONVENTIONS))
        usual, lengths = CONVENTIONS[name], tuple(tolerances)
        if not lengths:
            more["tolerances_of"] = {**usual.tolerances_of, **more.get("tolerances_of", {})}
        return cls(lengths or usual.tolerances, convention=name, **more)

    @classmethod
    def of_protocol(cls, protocol: str) -> SurfaceOptions:
        """Options of the convention that has the name of a protocol, or of segiou's.

        Parameters
        ----------
        protocol : str
            Name of the protocol.
        """
        return cls.of_convention(_convention_of(protocol))

    @classmethod
    def flag_for(cls, score: str = "") -> str:
        """The option of the convention."""
        return "--surface"

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> SurfaceOptions | None:
        """Options from the command line, with the convention of the protocol by default."""
        texts = split_lengths("--boundary", given.get("boundary") or "")
        widths = [Tolerance.of(text).value for text in texts if text.endswith("mm")]
        tolerances, unit = _asked_tolerances(given.get("boundary_tolerance") or "")
        empty, name = given.get("empty") or (), given.get("surface") or ""
        if not (widths or empty or name or any(tolerances.values())):
            return None
        name = name or _convention_of(given.get("protocol") or "")
        common = tolerances.pop("")
        if tolerances and not CONVENTIONS[name].is_challenge:
            common = common or [1.0]
        return cls.of_convention(
            name,
            common,
            tolerances_of=tolerances,
            empty=dict(rule for text in empty for rule in _rules(text)),
            widths=widths,
            unit="mm" if widths else unit,
        )

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> SurfaceOptions:
        """The options, whose unit may be that of the masks."""
        if self.unit == "mm" and (self.spacing or masks.spacing) is None and not masks.volumes:
            raise ValueError(NO_SPACING)
        return replace(self, unit="") if self.unit == masks.unit else self

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return SurfacePlan(self, classes, masks)


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


def _convention_of(protocol: str) -> str:
    return protocol if protocol in CONVENTIONS else "segiou"


def _asked_tolerances(text: str) -> tuple[dict[Any, list[Length]], str]:
    """Tolerances of the command line by structure ("": common), and their unit."""
    tolerances: dict[Any, list[Length]] = {"": []}
    units = set()
    for part in split_lengths("--boundary-tolerance", text):
        name, equals, value = part.rpartition("=")
        if equals and not name.strip():
            msg = f"--boundary-tolerance {text}: expected a class before '=' in {part!r}"
            raise ValueError(msg)
        tolerance = Tolerance.of(value)
        is_share = tolerance.unit == "diagonal"
        tolerances.setdefault(name.strip(), []).append(
            str(tolerance) if is_share else tolerance.value
        )
        units |= {tolerance.unit} - {"diagonal"}
    if len(units) > 1:
        msg = f"--boundary-tolerance {text}: use the same unit for all tolerances"
        raise ValueError(msg)
    return tolerances, "mm" * (units == {"mm"})


def _rules(text: str) -> list[tuple[str, tuple[float | str, ...]]]:
    """Values of measures for empty masks, from the command line."""
    name, _, values = text.partition("=")
    try:
        rule = tuple(v if v == "diagonal" else number_in(v) for v in values.split(","))
    except ValueError:
        msg = (
            f"--empty {text}: expected MEASURE=BOTH,TRUTH,PRED, where values are numbers, nan, inf "
            "or diagonal, e.g. hausdorff_95=nan,diagonal,diagonal"
        )
        raise ValueError(msg) from None
    measure = "hausdorff_percentile" if name.startswith("hausdorff_") else name
    return [(m, rule) for m in (DISTANCES if name == "distances" else [measure])]
