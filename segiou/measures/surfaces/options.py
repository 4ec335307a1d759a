"""Options of surface distances, and the conventions of several tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from segiou._support.arguments import check_choice, check_kind
from segiou._support.numbers import number_in
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.surfaces.plan import SurfacePlan
from segiou.measures.surfaces.rules import SurfaceRules
from segiou.regions.conventions import CONVENTIONS, DISTANCES
from segiou.regions.tolerance import Length, Tolerance, split_lengths

NO_SPACING = "tolerances in mm require the pixel size in mm; pass spacing=(H, W) (--spacing H,W)"


@dataclass(frozen=True)
class SurfaceOptions(SurfaceRules):
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
