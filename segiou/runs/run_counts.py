"""The counts of the images of a run, of their classes and measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_flag, check_integer, check_kind, read_several
from segiou._support.files import Problem
from segiou._support.optional import Drawable
from segiou._support.text import Json
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import Cells, ConfusionCounts, Counts, SparseConfusionCounts
from segiou.inference.scored_runs import has_volumes
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.measures.parts import Parts
from segiou.metrics.pixel_scores import CASE_SCORES
from segiou.metrics.protocols import Protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount, unpack_parts

if TYPE_CHECKING:
    from segiou.measures.plan import Plan
    from segiou.runs.database import RunFile

#: Counts created at a time in runs that are too large for all of them.
_PART = 1 << 20
#: Images whose measures are unpacked at a time.
_UNPACKED = 256


class RunCounts(Drawable):
    """The images of a run and their counts."""

    def __init__(
        self, header: Header, images: Columns | RunFile, skipped: Sequence[Problem] = ()
    ) -> None:
        self._header, self._images = header, images
        self.skipped: tuple[Problem, ...] = tuple(
            read_several("skipped", skipped, "a sequence of problems")
        )

    @property
    def options(self) -> ClassOptions:
        """The classes and counting options."""
        return self._header.options

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._header.name

    @property
    def protocol(self) -> Protocol:
        """The default protocol of the run's reports."""
        return self._header.protocol

    @property
    def path(self) -> Path | None:
        """The run file; None for runs in memory."""
        return self._images.path

    @property
    def finished(self) -> bool:
        """Whether all pairs have been scored."""
        return self._header.finished

    @property
    def provenance(self) -> dict[str, Json]:
        """Origin of the run, and whether it is complete."""
        known = dict(self._header.provenance)
        if not self.finished:
            known["unfinished"] = self._progress()
        if missing := self._header.missing_shards():
            known["partial"] = missing
        if unread := self._header.unread:
            known["unread"] = "; ".join(map(str, unread))
        return known

    def _progress(self) -> str:
        """Progress of an unfinished run; masks without a partner are not pairs."""
        scored, expected = len(self), self._header.expected
        if expected is None:
            return f"{scored} pairs are scored"
        if scored < expected:
            return f"{scored} of {expected} pairs are scored"
        return f"all {scored} pairs are scored, but the command stopped with an error; run it again"

    @property
    def labels(self) -> LabelSet:
        """The classes."""
        return self.options.labels

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return self.options.labels.class_names

    @property
    def include(self) -> NDArray[np.bool_]:
        """Boolean mask of the classes included in means, (C,)."""
        return self.options.include

    def plan(self, key: str) -> Plan | None:
        """The plan of a measure; None if it was not counted.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        return self._header.plan(key)

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[ImageCount]:
        return iter(self._images)

    @cached_property
    def images(self) -> tuple[ImageCount, ...]:
        """All images, sorted by id; iterate over large runs instead."""
        return tuple(self)

    # A plain property, because pyright rejects cached ones for protocols.
    @property
    def ids(self) -> tuple[str, ...]:
        """Image ids, sorted as text: "10" before "2"."""
        return self._ids

    @property
    def counts(self) -> Counts:
        """Counts of each image in the order of ``ids``, shape (N, C)."""
        return self._counts

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        return tuple(id for block in self._images.blocks(files=False) for id in block.ids)

    @cached_property
    def ignored(self) -> NDArray[np.int64]:
        """Number of ignored pixels of each image, (N,)."""
        parts = [block.ignored for block in self._images.blocks(files=False)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    @cached_property
    def _counts(self) -> Counts:
        number = self.options.num_classes
        if self.path is None:
            return self._stacked(self.count_parts(), number)
        # Whoever needs counts also needs ids and sums, and reading a file takes longer than either.
        ids, sums = list[str](), list[Cells]()

        def parts() -> Iterator[Counts]:
            for block in self._images.blocks(files=False):
                ids.extend(block.ids)
                sums.append(SparseConfusionCounts.summed(number, [block.summed()]).cells)
                yield from self._parts_of(block)

        counts = self._stacked(parts(), number)
        vars(self).update(_ids=tuple(ids), _sums=sums)
        return counts

    def _stacked(self, parts: Iterable[Counts], width: int) -> Counts:
        """Stack parts of counts into one array per count, (N, width)."""
        arrays = np.zeros((4, len(self), width), dtype=np.int64)
        start = 0
        for part in parts:
            stop = start + len(part.tp)
            for array, counted in zip(arrays, (part.tp, part.fp, part.fn, part.tn), strict=True):
                array[start:stop] = counted
            start = stop
        return Counts(*arrays)

    def count_parts(self) -> Iterator[Counts]:
        """Yield counts of shape (n, C) for a limited number of images at a time, sorted by id.

        Yields
        ------
        Counts
        """
        for block in self._images.blocks(files=False):
            yield from self._parts_of(block)

    def _parts_of(self, block: Columns) -> Iterator[Counts]:
        num_classes = self.options.num_classes
        for part in block.parts(max(1, _PART // num_classes)):
            yield part.counts(num_classes)

    def structure_counts(
        self, members: Sequence[Sequence[int]], *, grouped_truth_only: bool = False
    ) -> Counts:
        """Counts of groups of classes in each image, each against the rest, shape (N, G).

        Parameters
        ----------
        members, grouped_truth_only
            As in :meth:`segiou.runs.Columns.structure_counts`.
        """
        check_flag("grouped_truth_only", grouped_truth_only)
        members = read_several("members", members, "a sequence of sequences of class indices")
        width, rule = self.options.num_classes, {"grouped_truth_only": grouped_truth_only}
        blocks = self._images.blocks(files=False)
        parts = (block.structure_counts(members, width, **rule) for block in blocks)
        return self._stacked(parts, len(members))

    @property
    def quick_scores(self) -> list[str]:
        """Scores of measures and cases, except those whose intervals take a long bootstrap."""
        names = [n for n, plan in self.score_plans.items() if plan.scores[n].is_smooth]
        has_cases = has_volumes(self.provenance) and self.options.structures
        return [*names, *(CASE_SCORES if has_cases else ())]

    @cached_property
    def _tally(self) -> SparseConfusionCounts:
        sums = vars(self).pop("_sums", None)
        if sums is None:
            sums = (block.summed() for block in self._images.blocks(files=False))
        return SparseConfusionCounts.summed(self.options.num_classes, sums)

    def total(self) -> ConfusionMatrix:
        """The confusion matrix of all images."""
        return ConfusionMatrix.from_options(self.options).add(self._tally, pairs=len(self))

    def tally(self, index: int) -> ConfusionCounts:
        """The confusion matrix of one image.

        Parameters
        ----------
        index : int
            Position of the image in the run.
        """
        check_integer("index", index, -len(self), len(self) - 1)
        image = self._loaded.take([range(len(self))[index]])
        return SparseConfusionCounts(self.options.num_classes, image.summed())

    @cached_property
    def _loaded(self) -> Columns:
        return Columns.joined(self._images.blocks())

    def _packed(self) -> list[bytes]:
        """The packed measures of each image."""
        blocks = self._images.blocks(files=False, measured=True)
        return [packed for block in blocks for packed in block.measured]

    def under(self, protocol: Protocol) -> Self:
        """The run, without the pixels that a protocol ignores.

        Parameters
        ----------
        protocol : Protocol
            The protocol of the scores.
        """
        check_kind("protocol", protocol, Protocol, "a Protocol")
        if protocol.undeclared == "miss" or not self._tally.unassigned.any():
            return self
        return self._declared

    @cached_property
    def _declared(self) -> Self:
        blocks = self._images.blocks(measured=True)
        images = Columns.joined(block.declared(self.options.num_classes) for block in blocks)
        return type(self)(self._header, images, self.skipped)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The measures counted in every image."""
        return self._header.plans

    def parts(self, key: str) -> Parts:
        """The counts of a measure in each image.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        return unpack_parts(self._packed(), self._header, key)

    @cached_property
    def measured(self) -> dict[str, Parts]:
        """The counts of each measure summed over all images, by key."""
        summed = {}
        for plan in self.plans:
            none = Parts.joined(plan.layout, [])
            blocks = self._images.blocks(files=False, measured=True)
            parts = (p for block in blocks for p in block.parts(_UNPACKED))
            totals = (unpack_parts(p.measured, self._header, plan.key).total for p in parts)
            summed[plan.key] = Parts.joined(plan.layout, [none, *totals]).total
        return summed

    @property
    def score_plans(self) -> dict[str, Plan]:
        """The plan of every score of a measure, by name."""
        return {name: plan for plan in self.plans for name in plan.scores}

    def counts_of(self, key: str) -> object:
        """The counts of a measure in the form that its functions take; None if not counted.

        Such as :class:`segiou.measures.boundary.BoundaryCounts` of each image for
        ``"boundary"``; of a measure without a form of its own, the parts of each image.

        Parameters
        ----------
        key : str
            Key of the measure.
        """
        plan = self.plan(key)
        if plan is not None and key not in self._counts_by_key:
            self._counts_by_key[key] = plan.counts_of(self)
        return self._counts_by_key.get(key)

    @cached_property
    def _counts_by_key(self) -> dict[str, Any]:
        return {}
