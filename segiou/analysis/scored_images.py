"""What is analysed: the counts of each image of a run, of a report, or bare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol as Structure

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, read_several, refuse_kind
from segiou.analysis.statistics import Metric
from segiou.analysis.unit_sums import CountParts, is_large
from segiou.boundary.measures import band_iou
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol, load_protocol


class Scored(Structure):
    """What has counts of known classes: a run, a report, a confusion matrix."""

    @property
    def counts(self) -> Counts: ...  # noqa: D102
    @property
    def class_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def include(self) -> NDArray[np.bool_]: ...  # noqa: D102


class ScoredRun(Scored, Structure):
    """What a comparison needs of a run; :class:`segiou.Run` has it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def ids(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def protocol(self) -> Protocol: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class ScoredImages:
    """Counts of each image, (N, C), and how they are named and averaged."""

    counts: Counts | CountParts
    ids: tuple[str, ...] | None
    class_names: tuple[str, ...] | None
    include: NDArray[np.bool_] | None
    protocol: Protocol

    @property
    def num_images(self) -> int:
        """How many images there are."""
        if isinstance(self.counts, CountParts):
            return self.counts.num_images
        return len(self.counts.tp)


def scored_images(
    source: Counts | Scored,
    metric: Metric,
    protocol: Protocol | str | None,
    ids: Sequence[str] | None = None,
) -> tuple[ScoredImages, Metric]:
    """Find the counts of each image that a metric is to be taken of, and the metric of counts."""
    if isinstance(source, Counts):
        given = None if ids is None else read_several("ids", ids, "a sequence, one id an image")
        for name in given or ():
            check_kind("an id", name, str, "text")
        named = None if given is None else tuple(given)
        return ScoredImages(source, named, None, None, load_protocol(protocol or "segiou")), metric
    run: Any = source
    if not hasattr(run, "ids"):
        raise _no_images(run)
    is_report = hasattr(run, "per_image")
    counts = run.per_image if is_report else _run_counts(run)
    if counts is None:
        msg = "the report has no counts of its images; give the run that it was made of"
        raise ValueError(msg)
    if metric == "boundary_iou":
        counts, metric = band_counts(run, "the report" if is_report else "the run"), band_iou
    protocol, named = load_protocol(protocol or run.protocol), tuple(run.ids) or None
    include = protocol.include_of(run)
    return ScoredImages(counts, named, run.class_names, include, protocol), metric


def _run_counts(run: Any) -> Counts | CountParts:
    """Counts of a run; of a large one in parts, for they would not fit into memory."""
    number, classes = len(run.ids), len(run.class_names)
    if hasattr(run, "count_parts") and is_large(number, 4 * classes):
        return CountParts(number, classes, run.count_parts)
    counts: Counts = run.counts
    return counts


def _no_images(source: Any) -> TypeError:
    wanted = "a run, a report or the counts of each image (segiou.Counts of shape (N, C))"
    if not hasattr(source, "counts"):
        hint = "; open a run file with segiou.Run.open" if isinstance(source, str) else ""
        return TypeError(f"{refuse_kind('counts', source, wanted)}{hint}")
    return TypeError(
        f"a {type(source).__name__} has no images, only sums over them, and sums do not show how "
        f"much images differ; give {wanted}"
    )


def band_counts(run: Any, name: str) -> Counts:
    """Counts of Boundary IoU of a run at its first width, (N, C)."""
    found: Counts | None = getattr(run, "band_counts", None)
    if found is None:
        msg = f"{name} has no boundary counts; score it again with boundary=True (--boundary)"
        raise ValueError(msg)
    return found
