"""Options of boundary bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from segiou.labels.class_options import ClassOptions
from segiou.measures.boundary.bands import BandOptions
from segiou.measures.boundary.plan import BoundaryPlan
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.registry import check_installed, measure_of
from segiou.regions.tolerance import split_lengths

__all__ = ["BoundaryOptions"]


@dataclass(frozen=True)
class BoundaryOptions(BandOptions):
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

    @classmethod
    def of(cls, choice: Any) -> BoundaryOptions:
        """Build from options, or True for the defaults."""
        if choice is not True and not isinstance(choice, BoundaryOptions):
            msg = f"boundary must be True or BoundaryOptions, got {choice!r}"
            raise TypeError(msg)
        return cls() if choice is True else choice

    @classmethod
    def from_options(
        cls, given: Mapping[str, Any], classes: ClassOptions
    ) -> BoundaryOptions | None:
        """Options from the command line; widths in mm are those of surfaces."""
        texts = split_lengths("--boundary", given.get("boundary") or "")
        widths = [text for text in texts if not text.endswith("mm")]
        if widths != texts:
            check_installed("surfaces", f"--boundary={','.join(texts)}")
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
        check_installed("surfaces", "Boundary IoU of volumes")
        surfaces: Any = measure_of("surfaces")
        if any(measure.key == surfaces.key for measure in measures):
            return None
        chosen: Measure = surfaces.of_protocol(protocol)
        return chosen.resolved(measures, masks, protocol)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return BoundaryPlan(self, classes, masks)
