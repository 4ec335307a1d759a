"""The images of a run → its report."""

from __future__ import annotations

from typing import Any

from segiou._arguments import check_integer, check_kind
from segiou.boundary import boundary_rows
from segiou.protocols import Protocol
from segiou.report import Report, WorstImages
from segiou.runs.images import Images
from segiou.uncertainty import Intervals

__all__ = ["report_of"]

#: Counts of all images at once are given to a report that does not need them
#: up to this many numbers.
_MANY_COUNTS = 1 << 24


def report_of(
    images: Images,
    rule: Protocol,
    title: str,
    intervals: Intervals | None,
    *,
    worst: int,
    worst_by: str,
    left_out: int,
) -> Report:
    """All scores of a run, by a rule; arguments as of :meth:`segiou.Run.report`."""
    if intervals is not None:
        check_kind("intervals", intervals, Intervals, "what Run.intervals gives")
    check_integer("worst", worst, 0)
    check_kind("title", title, str, "text")
    few = len(images) * images.options.num_classes <= _MANY_COUNTS
    listed = WorstImages(worst_by, tuple(images.worst(worst, by=worst_by))) if worst else None
    return Report(
        class_names=images.class_names,
        tally=images._total.tally,
        pairs=len(images),
        protocol=rule,
        include=images.include,
        per_image=images.counts if few or rule.needs_images else None,
        groups=images.options.groups,
        title=title or images.name,
        provenance=images.provenance,
        intervals=intervals,
        worst_images=listed,
        left_out=left_out,
        **_boundary_part(images),
    )


def _boundary_part(images: Images) -> dict[str, Any]:
    total = images._boundary_total
    if total is None:
        return {}
    rows = boundary_rows(total, images.class_names, include=images.include)
    return {"boundary": tuple(rows), "boundary_options": total.options.to_dict()}
