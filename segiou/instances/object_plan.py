"""The built-in measure of objects: counts per pair, panoptic scores and their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import digits, listed, plural
from segiou.counting.counts import ConfusionCounts
from segiou.instances.object_files import ObjectOptions
from segiou.instances.panoptic import PROTOCOLS, PanopticCounts, qualities
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair
from segiou.measures.measure import Counted, ImageColumn, Plan
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.score import Score
from segiou.measures.score_table import Column, ScoreTable
from segiou.metrics.ratio import Floats, exact_parts, of_parts

_NAMED = 8
_NUMBERS = {"found": 0, "missed": 2, "false_positive": 1}
_MEANS = {"all": "mean", "things": "mean of things", "stuff": "mean of stuff"}


@dataclass(frozen=True)
class ObjectPlan(Plan):
    """Plan of the objects measure."""

    measure: ObjectOptions

    @cached_property
    def _scored(self) -> ClassOptions:
        """The classes; the background of volumes and of images of ids has no objects."""
        values = self.classes.labels.class_values
        is_volume = self.masks.volumes and self.measure.source == "components"
        lone = [c for c, own in enumerate(values) if own == (0,) and is_volume]
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
        found = self.measure.matched(counts, sides)
        image = found.images[2]
        order = np.lexsort((*found.overlaps.T[::-1], image))
        arrays = {"detections": counts.outcomes(found), "overlaps": found.overlaps[order]}
        sizes = {"overlaps": np.bincount(image, minlength=found.number)}
        return Parts(self.layout, found.number, arrays, sizes)

    @cached_property
    def _nothing(self) -> PanopticCounts:
        """Empty counts, which match the objects of every pair."""
        return self.measure.empty(self._scored)

    def check(self, parts: Parts) -> None:
        """Reject impossible matches."""
        rows = parts["overlaps"]
        wrong = (rows[:, 0] >= self.classes.num_classes) | (rows[:, 1] > rows[:, 2])
        tp, owner = parts["detections"][..., 0].copy(), parts.owner("overlaps")
        wrong |= (rows < [0, 1, 1]).any(1)
        if not wrong.any() and not PROTOCOLS[self.measure.protocol].every_stuff_overlap:
            np.subtract.at(tp, (owner, rows[:, 0]), 1)
            wrong = tp != 0
        if wrong.any():
            msg = "a match of objects has an unknown class or impossible numbers"
            raise ValueError(msg)

    def counts(self, total: Parts, pairs: int) -> PanopticCounts:
        """The total as an accumulator."""
        rows, often = np.unique(total["overlaps"], axis=0, return_counts=True)
        new: dict[str, Any] = {"counts": total["detections"][0], "pairs": pairs}
        new["overlaps"] = np.concatenate([rows, often[:, None]], axis=1)
        empty = self.measure.empty(self._scored)
        return empty.load_state_dict({**empty.state_dict(), **new})

    def counts_of(self, run: Any) -> PanopticCounts:
        """The counts of all images."""
        return self.counts(run.measured[self.key], len(run))

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """PQ, SQ and RQ; their means do not depend on the protocol of the pixels."""
        how: Any = {
            "rule": self.measure.protocol,
            "absent_is_zero": PROTOCOLS[self.measure.protocol].absent_is_zero,
            "seen": lambda parts: parts["detections"][..., [0, 2]].any(-1),
        }
        return {
            name: Score.of_classes(
                name, name.upper(), self._scored, self._numbers, partial(_quality, name), **how
            )
            for name in self.measure.score_names
        }

    def _numbers(self, parts: Parts) -> NDArray[np.int64]:
        """TP, FP, FN and the sum of IoU per class in two parts, (N, C, 5)."""
        rows = parts["overlaps"]
        ious = np.zeros((len(parts), self.classes.num_classes, 2), np.int64)
        units = exact_parts(rows[:, 1] / rows[:, 2])
        np.add.at(ious, (parts.owner("overlaps"), rows[:, 0]), units)
        return np.concatenate([parts["detections"], ious], axis=2)

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Scores and objects of each image; ``objects_invented`` is a former name."""
        tp, fp, fn = parts["detections"].sum(1).T
        found = {"objects_found": tp, "objects_false_positive": fp, "objects_missed": fn}
        return {**found, "objects_invented": fp, **super().columns(parts)}

    @cached_property
    def image_columns(self) -> tuple[ImageColumn, ...]:
        """Numbers of errors are better if they are lower."""
        lower = ("objects_false_positive", "objects_missed", "objects_invented")
        return tuple(
            column._replace(better="lower") if column.name in lower else column
            for column in super().image_columns
        )

    def table(self, found: Counted) -> ScoreTable:
        """Qualities and numbers per class, and the means of things and stuff."""
        counts, names = self.counts(found.total, found.images), self.classes.labels.class_names
        summary: Any = counts.summary()
        kinds = {
            "all": np.ones_like(counts.things),
            "things": counts.things,
            "stuff": ~counts.things,
        }
        kinds = {
            kind: classes
            for kind, classes in kinds.items()
            if kind == "all" or 0 < classes.sum() < len(names)
        }
        intervals = found.intervals
        qualities = []
        for name, score in self.scores.items():
            values = np.array([np.nan, *(row[name] for row in summary["classes"])])
            column = Column.of_score(score, values, intervals.get(name))
            limits = column.limits and (*column.limits, *[None] * (len(kinds) - 1))
            means = tuple(summary[kind][name] for kind in kinds)
            qualities.append(column._replace(means=means, limits=limits))
        numbers = [
            Column.of_counts(
                f"objects_{name}",
                name.replace("_", " "),
                counts.detections[:, at],
                [
                    counts.detections[classes & self._scored.include, at].sum()
                    for classes in kinds.values()
                ],
            )
            for name, at in _NUMBERS.items()
        ]
        former = numbers[-1]._replace(name="objects_invented", title="")
        rows_of = ((*column.values, *column.means) for column in numbers)
        empty = tuple(not any(row) for row in zip(*rows_of, strict=True))
        if (bounds := intervals.get("pq")) is not None:
            rows = {"": summary["all"]} | {row["name"]: row for row in summary["classes"]}
            for name, one in zip(["", *(one.name for one in bounds.classes)], bounds, strict=True):
                rows[name] |= {"pq_low": one.low, "pq_high": one.high}
            summary["intervals"] = bounds.to_dict()
        about = (
            "True objects found and missed, and predicted objects with no match (false positives). "
            "An object is found if a predicted object of its class overlaps it with IoU above 0.5. "
            "PQ = SQ (mean IoU of found objects) × RQ (F1 score of objects)."
        )
        table = ScoreTable(
            "objects",
            "Objects",
            about,
            names,
            (qualities[0], *numbers, *qualities[1:], former),
            tuple(_MEANS[kind] for kind in kinds),
            self._note(counts, summary, found.tally),
            "name",
            empty,
            data={"objects": {**summary, "options": self.measure.to_dict()}},
        )
        # Things come before stuff; the background of volumes is left out.
        background = {*self._scored.exclude} - {*self.classes.exclude}
        shown = [c for c in range(len(names)) if c not in background]
        return table.taken(sorted(shown, key=lambda c: not counts.things[c]))

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
    tp, fp, fn = np.moveaxis(sums[..., :3], -1, 0)
    return qualities(tp, fp, fn, of_parts(sums[..., 3:]))[name]
