"""The measured bands, for counts, scores and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from segiou._support.arguments import check_choice, check_flag
from segiou.measures.measure import Measure
from segiou.regions.tolerance import Tolerance, read_tolerances

Border = Literal["reference", "boundary", "none"]


@dataclass(frozen=True)
class BandOptions(Measure):
    """Values of ``BoundaryOptions``, which makes the plan."""

    widths: Any = ("2%",)
    trimaps: bool = True
    border: Border = "reference"

    def __post_init__(self) -> None:
        check_flag("trimaps", self.trimaps)
        check_choice("border", self.border, get_args(Border))
        object.__setattr__(self, "widths", _widths(self.widths))

    def difference(self, other: BandOptions) -> str:
        """Describe the differences to other options; empty if there are none.

        Parameters
        ----------
        other : BandOptions
            The options to compare with.
        """
        return "; ".join(
            f"boundary {name} is {_shown(mine)} here and {_shown(theirs)} there"
            for name in self.to_dict()
            if (mine := getattr(self, name)) != (theirs := getattr(other, name))
        )

    @property
    def band_border(self) -> bool:
        """Whether the image border is a boundary for Boundary IoU."""
        return self.border != "none"

    @property
    def trimap_border(self) -> bool:
        """Whether the image border is a boundary for trimaps."""
        return self.border == "boundary"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
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
