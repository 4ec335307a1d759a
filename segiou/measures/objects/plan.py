"""The built-in measure of objects: counts per pair, panoptic scores and their table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import digits
from segiou._support.text import listed, plural
from segiou.counting.counts import ConfusionCounts
from segiou.counting.id_pairs import mapped
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair
from segiou.measures.object_mask import Drawn
from segiou.measures.objects.counts import pack_ids
from segiou.measures.objects.panoptic import PROTOCOLS, PanopticCounts, joined_ious, qualities
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Score
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from segiou.measures.objects.options import ObjectOptions

_NAMED = 8
_NUMBERS = ("found", "missed", "false_positive")
_ABOUT = (
    "True objects found and missed, and predicted objects with no match (false positives). "
    "An object is found if a predicted object of its class overlaps it with IoU above 0.5. "
    "PQ = SQ (mean IoU of found objects) × RQ (F1 score of objects)."
)
_MEANS = {"all": "mean", "things": "mean of things", "stuff": "mean of stuff"}


@dataclass(frozen=True)
class ObjectPlan(Plan):
    """Plan of the objects measure."""

    measure: ObjectOptions

    draws_objects: ClassVar[bool] = True
    error_columns: ClassVar[tuple[str, ...]] = ("objects_missed", "objects_false_positive")

    @cached_property
    def _scored(self) -> ClassOptions:
        """The classes; the background of volumes and of images of ids has no objects."""
        values = self.classes.labels.class_values
        is_volume = self.masks.volumes and self.measure.source == "components"
        lone = [c for c, several in enumerate(values) if several == (0,) and is_volume]
        if self.measure.source == "labels":
            lone = np.flatnonzero(~self.measure.empty(self.classes).things).tolist()
        if len(lone) == len(values):
            return self.classes
        return replace(self.classes, exclude=tuple({*self.classes.exclude, *lone}))

    @property
    def layout(self) -> Layout:
        """TP, FP and FN per class; and class, intersection and union of each match."""
        shape = self.classes.num_classes, 3
        return {"detections": Field(shape), "overlaps": Field((3,), rows=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Match the objects of a pair."""
        return self.count_several([pair])

    def count_several(self, pairs: Sequence[MaskPair]) -> Parts:
        """Match the objects of several pairs at once."""
        counts = self._nothing
        sides = [
            self.measure.sides(
                counts, pair.ids[0] or pair.truth, pair.ids[1] or pair.pred, pair.mask, pair.spacing
            )
            for pair in pairs
        ]
        matches = self.measure.matched(counts, sides)
        image = matches.images[2]
        order = np.lexsort((*matches.overlaps.T[::-1], image))
        arrays = {"detections": counts.outcomes(matches), "overlaps": matches.overlaps[order]}
        sizes = {"overlaps": np.bincount(image, minlength=matches.number)}
        return Parts(self.layout, matches.number, arrays, sizes)

    @cached_property
    def _nothing(self) -> PanopticCounts:
        """Empty counts, which match the objects of every pair."""
        return self.measure.empty(self._scored)

    def check(self, parts: Parts) -> None:
        """Reject impossible matches."""
        rows, images = parts["overlaps"], parts.owner("overlaps")
        if not self._nothing.are_matches(parts["detections"], rows, images):
            msg = "a match of objects has an unknown class or impossible numbers"
            raise ValueError(msg)

    def object_classes(self) -> list[int]:
        """Indices of the things."""
        return [int(index) for index in np.flatnonzero(self._nothing.things)]

    def object_outcomes(self, parts: Parts) -> NDArray[np.int64]:
        """Found, false positive and missed things of each image."""
        outcomes: NDArray[np.int64] = parts["detections"][:, self._nothing.things].sum(1)
        return outcomes

    def drawn_objects(self, truth: Any, pred: Any, shape: Any, spacing: Any) -> Drawn:
        """Outcome of each object of a pair, and its pixels in pictures of this shape."""
        counts = self.measure.empty(self.classes)
        sides = self.measure.sides(counts, truth, pred, spacing=spacing)
        matches = self.measure.matched(counts, [sides])
        drawn = []
        for k, side in enumerate(sides):
            pixels = side.resized(shape).whole()[:2]
            codes = counts._segments(k, pack_ids(*pixels, ("classes", "ids")))
            things = np.append(counts.things, False)[matches.rows[k][:, 1]]
            numbers = {code: n for n, code in enumerate(matches.segments[k][things].tolist(), 1)}
            drawn.append((mapped(codes, numbers), matches.rows[k][things].tolist()))
        return tuple(drawn)

    def counts(self, total: Parts, pairs: int) -> PanopticCounts:
        """The total as an accumulator."""
        return self._nothing.empty().add_counts(total["detections"][0], total["overlaps"], pairs)

    def counts_of(self, run: Any) -> PanopticCounts:
        """The counts of all images."""
        return self.counts(run.measured[self.key], len(run))

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """PQ, SQ and RQ; their means do not depend on the protocol of the pixels."""
        options: Any = {
            "rule": self.measure.protocol,
            "absent_is_zero": PROTOCOLS[self.measure.protocol].absent_is_zero,
            "seen": lambda parts: parts["detections"][..., [0, 2]].any(-1),
        }
        return {
            name: Score.of_classes(
                name, name.upper(), self._scored, self._numbers, partial(_quality, name), **options
            )
            for name in self.measure.score_names
        }

    def _numbers(self, parts: Parts) -> NDArray[np.int64]:
        """TP, FP, FN and the sum of IoU per class in two parts, (N, C, 5)."""
        return joined_ious(parts["detections"], parts["overlaps"], parts.owner("overlaps"))

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Scores and objects of each image."""
        tp, fp, fn = parts["detections"].sum(1).T
        numbers = {"objects_found": tp, "objects_false_positive": fp, "objects_missed": fn}
        return {**numbers, **super().columns(parts)}

    def table(self, counted: Counted) -> ScoreTable:
        """Qualities and numbers per class, and the means of things and stuff."""
        counts = self.counts(counted.total, counted.images)
        summary: Any = counts.summary()
        parts = _parts(counts.things)
        first, *others = (
            _add_means(counted.values_of(score), [summary[part] for part in parts])
            for score in self.scores.values()
        )
        numbers = self._number_columns(counts, parts.values())
        rows_of = ((*column.values, *column.means) for column in numbers)
        table = ScoreTable(
            key="objects",
            title="Objects",
            about=_ABOUT,
            rows=counts.class_names,
            columns=(first, *numbers, *others),
            means=tuple(_MEANS[part] for part in parts),
            note=self._note(counts, summary, counted.tally),
            of="name",
            empty=tuple(not any(row) for row in zip(*rows_of, strict=True)),
            data={"objects": {**summary, "options": self.measure.to_dict()}},
        )
        # Things come before stuff; the background of volumes is excluded.
        background = {*self._scored.exclude} - {*self.classes.exclude}
        shown = [c for c in range(len(table.rows)) if c not in background]
        return table.with_rows(sorted(shown, key=lambda c: not counts.things[c]))

    def _number_columns(
        self, counts: PanopticCounts, parts: Iterable[NDArray[np.bool_]]
    ) -> list[ScoreValues]:
        """Objects found, missed and false positive, and their totals over each part."""
        included = [classes & self._scored.include for classes in parts]
        return [
            ScoreValues.of_counts(
                f"objects_{name}",
                name.replace("_", " "),
                counts.class_names,
                each,
                [each[c].sum() for c in included],
            )
            for name, each in zip(_NUMBERS, (counts.tp, counts.fn, counts.fp), strict=True)
        ]

    def _note(
        self, counts: PanopticCounts, summary: Mapping[str, Any], tally: ConfusionCounts
    ) -> str:
        protocol = PROTOCOLS[self.measure.protocol]
        covered = plural(summary["all"]["classes"], "class", "classes")
        note = f"objects: {self.measure.source}, protocol {protocol.name} ({protocol.description})"
        note += f"; mean over {covered}; found, missed and false positive are totals"
        if size := self.measure.min_size:
            unit = "voxels" if self.masks.volumes else "pixels"
            least = size if isinstance(size, str) else f"{digits(size)} {unit}"
            least = least.replace("mm2", " mm²").replace("mm3", " mm³")
            note += f"; components below {least} are void"
        pixels = counts.things & (tally.counts.truth > 0)
        if pixels.any() and not counts.detections[pixels][:, [0, 2]].any():
            names = listed([*compress(counts.class_names, pixels)], _NAMED)
            note += (
                f"; the truth contains {names} but no objects of them; are these class maps rather "
                "than instance maps?"
            )
        return note


def _quality(name: str, sums: NDArray[Any]) -> Floats:
    """A quality of each class from TP, FP, FN and the sum of IoU in two parts, (..., C, 5)."""
    return qualities(sums)[name]


def _parts(things: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """All classes; and things and stuff, if there are both."""
    parts = {"all": np.ones_like(things)}
    if things.any() and not things.all():
        parts |= {"things": things, "stuff": ~things}
    return parts


def _add_means(quality: ScoreValues, parts: Sequence[Mapping[str, Any]]) -> ScoreValues:
    """A quality with its means over all classes, things and stuff."""
    others = (part[quality.name] for part in parts[1:])
    return replace(quality, means=(quality.value, *others))
