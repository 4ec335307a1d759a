"""Options of boundary bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

from segiou._support.arguments import check_choice, check_flag
from segiou._support.text import Json
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure, Plan
from segiou.measures.registry import measure_of
from segiou.regions.tolerance import Tolerance, read_tolerances, split_lengths

__all__ = ["Border", "BoundaryOptions"]

Border = Literal["reference", "boundary", "none"]


@dataclass(frozen=True)
class BoundaryOptions(Measure):
    """Boundary IoU and trimaps; results with different options cannot be added.

    Parameters
    ----------
    widths : Tolerance, float or str, or several
        Widths d of Boundary IoU and of trimaps, in pixels or, as in ``"2%"``,
        relative to the image diagonal.
    trimaps : bool
        Whether trimaps are measured.
    border : {"reference", "boundary", "none"}
        Whether a class that touches the image border has a boundary there.
        ``"reference"`` follows the reference implementation of each measure:
        a boundary everywhere except in trimaps.

    Examples
    --------
    >>> options = BoundaryOptions(widths=["2%", 3])
    >>> [str(width) for width in options.widths]
    ['2%', '3']
    """

    key: ClassVar[str] = "boundary"
    noun: ClassVar[str] = "boundaries"
    score_names: ClassVar[tuple[str, ...]] = ("boundary_iou",)
    version: ClassVar[int] = 2

    widths: Any = ("2%",)
    trimaps: bool = True
    border: Border = "reference"

    def __post_init__(self) -> None:
        check_flag("trimaps", self.trimaps)
        check_choice("border", self.border, get_args(Border))
        object.__setattr__(self, "widths", _widths(self.widths))

    @classmethod
    def of(cls, choice: Any) -> BoundaryOptions:
        """Build from options, or True for the defaults."""
        if choice is not True and not isinstance(choice, BoundaryOptions):
            msg = f"boundary must be True or BoundaryOptions, got {choice!r}"
            raise TypeError(msg)
        return cls() if choice is True else choice

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
        """Options from the command line; widths in mm are those of surfaces."""
        texts = split_lengths("--boundary", given.get("boundary") or "")
        widths = [text for text in texts if not text.endswith("mm")]
        return cls(widths) if widths else None

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> Measure | None:
        """These options for images; the surfaces of volumes."""
        if not masks.volumes:
            return self
        if self.widths != BoundaryOptions().widths:
            msg = (
                f"widths {', '.join(map(str, self.widths))}: Boundary IoU of volumes needs widths "
                "in mm; pass --boundary=2mm (Python: surfaces=SurfaceOptions(widths=...))"
            )
            raise ValueError(msg)
        surfaces: Any = measure_of("surfaces")
        if any(one.key == surfaces.key for one in measures):
            return None
        chosen: Measure = surfaces.of_protocol(protocol)
        return chosen.resolved(measures, masks, protocol)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        from segiou.measures.boundary.plan import BoundaryPlan

        return BoundaryPlan(self, classes, masks)

    @property
    def band_border(self) -> bool:
        """Whether the image border is a boundary for Boundary IoU."""
        return self.border != "none"

    @property
    def trimap_border(self) -> bool:
        """Whether the image border is a boundary for trimaps."""
        return self.border == "boundary"

    def to_dict(self) -> dict[str, Json]:
        """The options as JSON-ready values; :meth:`from_dict` reads them."""
        plain = asdict(self)
        return {name: [*v] if isinstance(v, tuple) else v for name, v in plain.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BoundaryOptions:
        """Options from the values of :meth:`to_dict`."""
        return cls(**{**data, "widths": tuple(Tolerance(**t) for t in data["widths"])})


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _widths(values: Any) -> tuple[Tolerance, ...]:
    widths = read_tolerances(values, "widths")
    if not widths:
        msg = "widths must contain at least one width, such as '2%'"
        raise ValueError(msg)
    for width in widths:
        pixels = width.unit == "absolute" and width.value >= 1 and width.value % 1 == 0
        if not pixels and (width.unit != "diagonal" or not width.value):
            wanted = "a whole number of pixels, at least 1, or a share of the diagonal above 0 %"
            msg = f"a width must be {wanted}, got {width}"
            raise ValueError(msg)
    return widths
