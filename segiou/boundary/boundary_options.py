"""Boundary options, and the bin widths of distance histograms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_number,
    read_several,
    read_spacing,
)
from segiou._support.text import Json, digits
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure, Plan

__all__ = [
    "BINS",
    "FIXED_POINT",
    "Border",
    "BoundaryOptions",
    "Contour",
    "Tolerance",
    "bin_distances",
    "bin_indices",
    "fixed_point",
]

#: Sums of distances are kept as integers in units of the resolution divided by this.
FIXED_POINT = 1 << 16
_FINE = 64
_PER_OCTAVE = 32
_OCTAVES = 11
#: Number of bins; the last is for infinite distances.
BINS = _FINE + _PER_OCTAVE * _OCTAVES + 1


def bin_distances(resolution: float) -> NDArray[np.float64]:
    """Representative distance of each histogram bin.

    Bins have the width of the resolution up to 64 resolutions (16 pixels by
    default); beyond, their width doubles whenever the distance doubles. The
    rounding error is at most half the resolution in the first part and at most
    1/64 of the distance beyond. The last bin is infinite.

    Parameters
    ----------
    resolution : float
        Width of the finest bins, in pixels.

    Examples
    --------
    >>> values = bin_distances(0.25)
    >>> values[[0, 1, 4, 63, 64, 65]].tolist(), float(values[-2]), float(values[-1])
    ([0.0, 0.25, 1.0, 15.75, 16.0, 16.5], 32256.0, inf)
    """
    return _UNIT_VALUES * resolution


#: Values and upper ends of the bins in units of the resolution; the last finite bin has no end.
_UNIT_VALUES = np.concatenate(
    [
        np.arange(float(_FINE)),
        *(_FINE * 2.0**k * (1 + np.arange(_PER_OCTAVE) / _PER_OCTAVE) for k in range(_OCTAVES)),
        [np.inf],
    ]
)
_UNIT_ENDS = np.append((_UNIT_VALUES[1:-1] + _UNIT_VALUES[:-2]) / 2, np.finfo(np.float64).max)


def bin_indices(distances: NDArray[np.float64], resolution: float) -> NDArray[np.intp]:
    """Bin of each distance."""
    # Multiples of the spacing that end a bin belong to it, whatever their rounding.
    units = distances / resolution * (1 - 1e-12)
    beyond = np.isfinite(units) & (units > _FINE * 2.0**_OCTAVES)
    if beyond.any():
        msg = (
            f"distances up to {distances[beyond].max():g} are too large for histograms with a "
            f"resolution of {resolution:g}; choose a coarser resolution"
        )
        raise ValueError(msg)
    return np.searchsorted(_UNIT_ENDS, units, side="left")


def fixed_point(distances: NDArray[np.float64], resolution: float) -> NDArray[np.float64]:
    """Distances as whole units of sums; 0 if infinite, since the last bin counts those."""
    finite = np.where(np.isfinite(distances), distances, 0.0)
    return np.rint(finite * (FIXED_POINT / resolution))


Border = Literal["reference", "boundary", "none"]
Contour = Literal["pixels", "elements"]
Unit = Literal["absolute", "diagonal", "mm"]
#: Units by their suffix.
_UNITS: dict[str, Unit] = {"%": "diagonal", "mm": "mm"}
NO_SPACING = "tolerances in mm require the pixel size in mm; pass spacing=(H, W) (--spacing H,W)"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A distance, absolute, in millimetres or as a fraction of the image diagonal.

    Attributes
    ----------
    value : float
        Pixels (units of the spacing, for distances between contours), or the
        fraction: 0.02 is 2 % of the diagonal.
    unit : {"absolute", "diagonal", "mm"}
        Unit of the value; ``"mm"`` requires a spacing in mm.

    Examples
    --------
    >>> Tolerance.of(3), Tolerance.of("2%")
    (Tolerance(value=3.0, unit='absolute'), Tolerance(value=0.02, unit='diagonal'))
    >>> Tolerance.of("2%").width((360, 480)), str(Tolerance.of("2%"))
    (12, '2%')
    """

    value: float
    unit: Unit = "absolute"

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, get_args(Unit))
        if not (math.isfinite(check_number("tolerance", self.value)) and self.value >= 0):
            msg = f"a tolerance must be finite and at least 0, got {self.value}"
            raise ValueError(msg)

    @classmethod
    def of(cls, value: Tolerance | float | str) -> Tolerance:
        """Read a number (absolute) or text: ``"3"``, ``"2%"`` of the diagonal, ``"2mm"``.

        Parameters
        ----------
        value : Tolerance or float or str
            A tolerance, number or text.

        Raises
        ------
        TypeError
            If the value has a different type.
        ValueError
            If the text is not a valid tolerance.
        """
        if isinstance(value, Tolerance):
            return value
        if isinstance(value, bool) or not (isinstance(value, str) or hasattr(value, "__float__")):
            msg = f"a tolerance must be a number or a string such as '2%', got {value!r}"
            raise TypeError(msg)
        if not isinstance(value, str):
            return cls(float(value))
        text = value.strip()
        unit: Unit = next((u for end, u in _UNITS.items() if text.endswith(end)), "absolute")
        try:
            parsed = float(text.removesuffix("%").removesuffix("mm"))
        except ValueError:
            msg = (
                f"invalid tolerance {value!r}; use '3' (pixels), '2%' (of the image diagonal) "
                "or '2mm'"
            )
            raise ValueError(msg) from None
        return cls(parsed / 100 if unit == "diagonal" else parsed, unit)

    def __str__(self) -> str:
        if self.unit == "diagonal":
            return f"{digits(round(self.value * 100, 12))}%"
        return f"{digits(self.value)}{'mm' * (self.unit == 'mm')}"

    def distance(self, shape: tuple[int, int], spacing: tuple[float, float]) -> float:
        """Distance in units of the spacing, for an image of this shape in pixels.

        Parameters
        ----------
        shape : tuple of int
            Height and width in pixels.
        spacing : tuple of float
            Size of a pixel along each axis.
        """
        if self.unit != "diagonal":
            return self.value
        return self.value * math.hypot(shape[0] * spacing[0], shape[1] * spacing[1])

    def width(self, shape: tuple[int, int]) -> int:
        """Width in whole pixels, at least 1; a fraction is rounded as in boundary-iou-api.

        Parameters
        ----------
        shape : tuple of int
            Height and width in pixels.
        """
        return max(1, round(self.distance(shape, (1.0, 1.0))))


def _tolerances(values: Any, name: str) -> tuple[Tolerance, ...]:
    if isinstance(values, (str, int, float, Tolerance)):
        values = (values,)
    several = read_several(name, values, "a number, a string such as '2%', or several of them")
    read = tuple(Tolerance.of(v) for v in several)
    if len(set(read)) != len(read):
        msg = f"{name} contains duplicates: {', '.join(map(str, read))}"
        raise ValueError(msg)
    return read


@dataclass(frozen=True, init=False)
class BoundaryOptions(Measure):
    """Boundary IoU, F1 and surface Dice; results with different options cannot be added.

    Parameters
    ----------
    widths : Tolerance, float or str, or several
        Widths d of Boundary IoU and of trimaps, in pixels; ``()`` for none.
    trimaps : bool
        Whether trimaps are measured.
    tolerances : Tolerance, float or str, or several
        Tolerances of boundary precision, recall, F1 and surface Dice, in units
        of the spacing; with ``()``, only distances are measured.
    contours : {"pixels", "elements"}, or both
        Elements of a boundary for these scores and for distances: pixels, or
        surface elements between pixels; ``()`` for neither.
    spacing : (float, float)
        Height and width of a pixel.
    border : {"reference", "boundary", "none"}
        Whether a class that touches the image border has a boundary there.
        ``"reference"`` follows the reference implementation of each measure:
        a boundary everywhere except in trimaps.
    resolution : float, optional
        Finest bin width of distance histograms; by default a quarter of the
        smaller spacing.

    Examples
    --------
    >>> options = BoundaryOptions(widths=["2%", 3], tolerances=2)
    >>> [str(t) for t in options.widths], options.resolution
    (['2%', '3'], 0.25)
    """

    key: ClassVar[str] = "boundary"
    noun: ClassVar[str] = "boundaries"
    score_names: ClassVar[tuple[str, ...]] = (
        *("boundary_iou", "boundary_f1", "boundary_surface_dice", "boundary_hd95"),
    )

    widths: tuple[Tolerance, ...]
    trimaps: bool
    tolerances: tuple[Tolerance, ...]
    contours: tuple[Contour, ...]
    spacing: tuple[float, float]
    border: Border
    resolution: float

    def __init__(
        self,
        widths: Any = ("2%",),
        *,
        trimaps: bool = True,
        tolerances: Any = (1, 2, 4),
        contours: Contour | Iterable[Contour] = ("pixels",),
        spacing: tuple[float, float] = (1.0, 1.0),
        border: Border = "reference",
        resolution: float | None = None,
    ) -> None:
        height, width = read_spacing(spacing, "two")
        check_flag("trimaps", trimaps)
        check_choice("border", border, get_args(Border))
        if resolution is None:
            resolution = min(height, width) / 4
        resolution = check_number("resolution", resolution)
        if not (math.isfinite(resolution) and resolution > 0):
            msg = f"resolution must be positive, got {resolution}"
            raise ValueError(msg)
        for name, value in (
            ("widths", _widths(widths)),
            ("trimaps", bool(trimaps)),
            ("tolerances", _tolerances(tolerances, "tolerances")),
            ("contours", _contours(contours)),
            ("spacing", (height, width)),
            ("border", border),
            ("resolution", resolution),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, choice: BoundaryOptions | bool | None) -> BoundaryOptions | None:  # type: ignore[override]
        """Options from a caller's choice: True for the defaults, False and None for nothing."""
        if choice is None or isinstance(choice, bool):
            return cls() if choice else None
        if not isinstance(choice, BoundaryOptions):
            msg = f"boundary must be True or BoundaryOptions, got {choice!r}"
            raise TypeError(msg)
        return choice

    def difference(self, other: BoundaryOptions) -> str:
        """Describe the differences to other options; empty if there are none.

        Parameters
        ----------
        other : BoundaryOptions
            The options to compare with.
        """
        return "; ".join(
            f"boundary {name} is {_shown(mine)} here and {_shown(theirs)} there"
            for name in self.to_dict()
            if (mine := getattr(self, name)) != (theirs := getattr(other, name))
        )

    @classmethod
    def asked(cls, given: Mapping[str, Any], classes: ClassOptions) -> BoundaryOptions | None:
        """Options from the command line."""
        widths, in_mm, of = asked_lengths(given)
        every = [tolerance for several in of.values() for tolerance in several]
        if not widths and not in_mm and not every:
            return None
        options: dict[str, Any] = {"widths": widths} if widths else {}
        if in_mm or every:
            options["tolerances"] = of[""] or [Tolerance(1, every[0].unit if every else "mm")]
        if not widths and asks_for_surfaces(given, in_mm, of):
            # The tolerances are those of the surfaces; boundaries are not measured.
            options |= {"widths": (), "trimaps": False, "contours": ()}
        spacing = given.get("spacing")
        if spacing is not None and len(spacing) == 2:
            options["spacing"] = spacing
        return cls(**options)

    @classmethod
    def for_score(cls, name: str) -> BoundaryOptions:
        """Bands without contours, which take longer."""
        return cls(contours=())

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> Measure | None:
        """These options for images; the surfaces of volumes."""
        from segiou.boundary.surface_options import SurfaceConvention

        if not masks.volumes:
            has_size = masks.spacing is not None or self.spacing != (1.0, 1.0)
            if not has_size and any(one.unit == "mm" for one in self.tolerances):
                raise ValueError(NO_SPACING)
            return self if self.widths or self.contours else None
        if self.widths not in ((), BoundaryOptions().widths):
            msg = (
                f"widths {', '.join(map(str, self.widths))}: Boundary IoU of volumes needs widths "
                "in mm; pass --boundary=2mm (Python: surfaces=SurfaceOptions(widths=...))"
            )
            raise ValueError(msg)
        if any(one.key == SurfaceConvention.key for one in measures):
            return None
        return SurfaceConvention().resolved(measures, masks, protocol)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        from segiou.boundary.boundary_plan import BoundaryPlan

        return BoundaryPlan(self, classes, masks)

    @property
    def band_border(self) -> bool:
        """Whether the image border is a boundary for Boundary IoU."""
        return self.border != "none"

    @property
    def trimap_border(self) -> bool:
        """Whether the image border is a boundary for trimaps."""
        return self.border == "boundary"

    @property
    def contour_border(self) -> bool:
        """Whether the image border is a boundary for contours and their distances."""
        return self.border != "none"

    def to_dict(self) -> dict[str, Json]:
        """The options as JSON-ready values; :meth:`from_dict` reads them."""
        plain = asdict(self)
        return {name: [*v] if isinstance(v, tuple) else v for name, v in plain.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BoundaryOptions:
        """Options from the values of :meth:`to_dict`."""
        read = {
            name: tuple(Tolerance(**t) for t in data[name]) for name in ("widths", "tolerances")
        }
        return cls(**{**data, **read})


def asked_lengths(
    given: Mapping[str, Any],
) -> tuple[list[str], list[float], dict[str, list[Tolerance]]]:
    """Widths in pixels and in mm on the command line, and tolerances by structure ("": common)."""
    texts = [text for text in (given.get("boundary") or "").split(",") if text]
    in_mm = [Tolerance.of(text).value for text in texts if text.endswith("mm")]
    of: dict[str, list[Tolerance]] = {"": []}
    for text in (given.get("boundary_tolerance") or "").split(","):
        if text:
            name, _, value = text.rpartition("=")
            of.setdefault(name.strip(), []).append(Tolerance.of(value))
    return [text for text in texts if not text.endswith("mm")], in_mm, of


def asks_for_surfaces(given: Mapping[str, Any], in_mm: list[float], of: Mapping[str, Any]) -> bool:
    """Whether the command line asks for surfaces."""
    return bool(given.get("surface") or given.get("empty") or in_mm or of.keys() > {""})


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _widths(values: Any) -> tuple[Tolerance, ...]:
    widths = _tolerances(values, "widths")
    for width in widths:
        pixels = width.unit == "absolute" and width.value >= 1 and width.value % 1 == 0
        if not pixels and (width.unit != "diagonal" or not width.value):
            wanted = "a whole number of pixels, at least 1, or a share of the diagonal above 0 %"
            msg = f"a width must be {wanted}, got {width}"
            raise ValueError(msg)
    return widths


def _contours(values: Any) -> tuple[Contour, ...]:
    wanted = "'pixels', 'elements' or both"
    chosen = [values] if isinstance(values, str) else read_several("contours", values, wanted)
    if wrong := [c for c in chosen if c not in get_args(Contour)]:
        msg = f"contours must be {wanted}, got {wrong[0]!r}"
        raise ValueError(msg)
    return tuple(c for c in get_args(Contour) if c in chosen)
