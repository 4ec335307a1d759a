"""Differences of two models on the same truth in pixel accuracy and mean IoU, class by class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from segiou._support import text
from segiou._support.arguments import read_several
from segiou._support.numbers import cell, percent, points, signed_points
from segiou._support.text import Json
from segiou.analysis.gap.imbalance import ClassBalance, Imbalance, counts_of_images, explain
from segiou.counting.counts import Counts, check_counts
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Column, Line, Part, Table
from segiou.inference.paired_runs import SameImages, classes_in_common
from segiou.inference.scored_runs import unit_of_pixels
from segiou.inference.units import difference
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import included


@dataclass(frozen=True, slots=True, repr=False)
class ImbalanceDifference(Finding):
    """Pixel accuracy and mean IoU of two models, with each class's part of the differences.

    Attributes
    ----------
    names : tuple of str
        The two models.
    models : tuple of Imbalance
        The decomposition of each.
    accuracy_difference, mean_iou_difference : float
        Second minus first.
    accuracy_parts, mean_iou_parts : mapping of str to float
        Each class's part of the two differences.
    omitted : tuple of str
        Classes of the truth that the model with the higher pixel accuracy never
        predicts although the other model does. Empty if accuracies are equal.
    omitted_fp, omitted_tp : float
        False and true positives of the other model on these classes, as shares
        of all pixels.
    wins_by_omission : bool
        Whether the higher pixel accuracy may be due to never predicting the
        omitted classes: mean IoU is lower, and the difference in accuracy is at
        most ``omitted_fp - omitted_tp``, the largest possible cost of predicting
        them.
    uncommon_classes : tuple of str
        Classes that only one of the models scores, which both means skip, as in
        :func:`segiou.compare`.
    """

    names: tuple[str, str]
    models: tuple[Imbalance, Imbalance]
    accuracy_difference: float
    mean_iou_difference: float
    accuracy_parts: dict[str, float]
    mean_iou_parts: dict[str, float]
    omitted: tuple[str, ...]
    omitted_fp: float
    omitted_tp: float
    wins_by_omission: bool
    uncommon_classes: tuple[str, ...] = ()

    _index = ("name",)

    @property
    def _pixel(self) -> str:
        """What a pixel is called."""
        return self.models[0]._pixel

    @property
    def disagree(self) -> bool:
        """Whether pixel accuracy and mean IoU rank the models differently."""
        return self.accuracy_difference * self.mean_iou_difference < 0

    def _parts(self) -> Iterator[Part]:
        """Findings, both scores and each class's part of the two differences."""
        yield from map(Line, self.sentences())
        a, b = self.models
        names = [*self.accuracy_parts]
        order = sorted(names, key=lambda name: -abs(self.mean_iou_parts.get(name) or 0.0))
        recalls = [
            Column(
                f"{name} recall",
                [cell(model.mean_accuracy), *(cell(of[n]) for n in order)],
                4,
                group="recall",
            )
            for name, model in zip(self.names, (a, b), strict=True)
            for of in [{row.name: row.recall for row in model.classes}]
        ]
        shares = {row.name: row.share for row in a.classes}
        columns = (
            Column("class", ["all classes", *order], 9, is_text=True),
            Column("share", ["", *(cell(shares[name]) for name in order)], 7),
            *recalls,
            _parts_of("accuracy", self.accuracy_difference, self.accuracy_parts, order, 6),
            _parts_of("mean IoU", self.mean_iou_difference, self.mean_iou_parts, order, 8),
        )
        note = f"accuracy, mean IoU: {self.names[1]} minus {self.names[0]}, in points"
        yield from (GAP, Table(columns, [note], first=1))

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per class.

        Yields
        ------
        dict
            The values of a row by column.
        """
        for name, part in self.accuracy_parts.items():
            row: dict[str, Json] = {"name": name, "accuracy_part": part}
            yield row | {"mean_iou_part": self.mean_iou_parts[name]}

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data: dict[str, Any] = text.plain(self)
        data["models"] = [model.to_dict() for model in self.models]
        return data | {"disagree": self.disagree}

    def sentences(self) -> list[str]:
        """Return the findings as sentences, rounded to 0.01 points."""
        omission: list[str] = []
        if self.wins_by_omission:
            omission = _omission_sentences(self)
        elif self.omitted:
            omission = [_omitted_sentence(self)]
        return [_order_sentence(self), *omission, *_coverage_sentence(self)]

    @property
    def _ranked(self) -> tuple[int, int]:
        """Index of the model with the higher pixel accuracy, and of the other."""
        return (1, 0) if self.accuracy_difference > 0 else (0, 1)


def explain_difference(
    counts_a: Counts,
    counts_b: Counts,
    class_names: Sequence[str],
    *,
    names: tuple[str, str] = ("A", "B"),
    include: Any = None,
    protocol: Protocol | str = "segiou",
    pixel_unit: str = "pixels",
) -> ImbalanceDifference:
    """Explain the differences of two models in pixel accuracy and in mean IoU.

    A class's part of the difference in accuracy is the difference of its TP / n;
    its part of the difference in mean IoU is that of its IoU / K, or of its
    weighted IoU under the protocol.

    Parameters
    ----------
    counts_a, counts_b : Counts of shape (C,) or (N, C)
        Counts of the two models on the same truth.
    class_names : sequence of str
        Names of the classes.
    names : pair of str
        Names of the models.
    include, protocol
        As for :func:`explain`.
    pixel_unit : {"pixels", "voxels"}
        Unit of the counts, in sentences.

    Raises
    ------
    ValueError
        If the two models were scored against different ground truth.

    Examples
    --------
    >>> plain_model = Counts(tp=[950, 0], fp=[50, 0], fn=[0, 50], tn=[0, 950])
    >>> keen_model = Counts(tp=[880, 40], fp=[10, 70], fn=[70, 10], tn=[40, 880])
    >>> found = explain_difference(
    ...     plain_model, keen_model, ["road", "person"], names=("plain", "keen")
    ... )
    >>> found.wins_by_omission, found.omitted
    (True, ('person',))
    """
    check_counts(counts_a, "counts_a")
    check_counts(counts_b, "counts_b")
    both = read_several("names", names, "two names, one per model")
    if len(both) != 2:
        msg = f"names must be two names, one per model, got {both}"
        raise ValueError(msg)
    names = both[0], both[1]
    protocol = load_protocol(protocol)
    class_names = read_several("class_names", class_names, "the names of the classes")
    include = included(include, len(class_names))
    images = [counts_of_images(side, tuple(class_names), protocol) for side in (counts_a, counts_b)]
    keep = classes_in_common(images, class_names, include, protocol)
    rule: Any = {"include": include & keep, "protocol": protocol}
    first, second = (
        replace(explain(side, class_names, **rule), _pixel_unit=pixel_unit) for side in images
    )
    a, b = counts_a.summed(), counts_b.summed()
    _check_truth(a, b, class_names, names, pixel_unit)
    accuracy_difference = float(difference(first.pixel_accuracy, second.pixel_accuracy))
    mean_iou_difference = float(difference(first.mean_iou, second.mean_iou))
    omitted, omitted_fp, omitted_tp, is_decisive = _omission(a, b, accuracy_difference)
    pixels = max(1, int(a.truth.sum()))
    pairs = [*zip(first.classes, second.classes, strict=True)]
    return ImbalanceDifference(
        names=names,
        models=(first, second),
        accuracy_difference=accuracy_difference,
        mean_iou_difference=mean_iou_difference,
        accuracy_parts={x.name: y.accuracy_cost - x.accuracy_cost for x, y in pairs},
        mean_iou_parts={x.name: y.mean_iou_cost - x.mean_iou_cost for x, y in pairs},
        omitted=tuple(class_names[c] for c in omitted),
        omitted_fp=omitted_fp / pixels,
        omitted_tp=omitted_tp / pixels,
        wins_by_omission=is_decisive and mean_iou_difference * accuracy_difference < 0,
        uncommon_classes=tuple(class_names[c] for c in np.flatnonzero(~keep).tolist()),
    )


def explain_runs(
    same: SameImages, counts: Sequence[Counts], names: tuple[str, str]
) -> ImbalanceDifference:
    """Explain the differences of two models, from their counts on the same images."""
    first, second = counts
    return explain_difference(
        first,
        second,
        same.class_names,
        names=names,
        include=same.include,
        protocol=same.protocol,
        pixel_unit=unit_of_pixels(same.runs[0]),
    )


def _omission(a: Counts, b: Counts, gain: float) -> tuple[list[int], int, int, bool]:
    """Classes that only the less accurate model predicts, its FP and TP, and if they may decide."""
    higher, lower = (b, a) if gain > 0 else (a, b)
    omitted = (higher.truth > 0) & (higher.pred == 0) & (lower.pred > 0) & (gain != 0)
    fp, tp = int(lower.fp[omitted].sum()), int(lower.tp[omitted].sum())
    # In pixels, because both sides are equal for two classes, except for rounding.
    is_decisive = int((higher.tp - lower.tp).sum()) <= fp - tp
    return np.flatnonzero(omitted).tolist(), fp, tp, is_decisive


def _check_truth(
    a: Counts, b: Counts, class_names: Sequence[str], names: tuple[str, str], pixel_unit: str
) -> None:
    """ValueError if the truth of the two models differs."""
    differing = np.flatnonzero(a.truth != b.truth)
    if len(differing):
        c = int(differing[0])
        msg = (
            f"the two models were scored against different ground truth: class {class_names[c]} "
            f"has {a.truth[c]} {pixel_unit} with {names[0]} and {b.truth[c]} with {names[1]}; "
            f"score both on the same {text.nouns(pixel_unit).image}s"
        )
        raise ValueError(msg)


def _coverage_sentence(difference: ImbalanceDifference) -> Iterator[str]:
    if difference.uncommon_classes:
        some = text.classes(difference.uncommon_classes)
        yield f"The means cover the classes that both models score, without {some}."


def _order_sentence(difference: ImbalanceDifference) -> str:
    name, other = (difference.names[i] for i in difference._ranked)
    a, b = (difference.models[i] for i in difference._ranked)
    accuracies = f"({percent(a.pixel_accuracy)} vs {percent(b.pixel_accuracy)})"
    ious = f"({percent(a.mean_iou)} vs {percent(b.mean_iou)})"
    pixel = difference._pixel
    if difference.disagree:
        return f"{name} has higher {pixel} accuracy {accuracies} but lower mean IoU {ious}."
    if difference.accuracy_difference * difference.mean_iou_difference > 0:
        return f"{name} has higher {pixel} accuracy {accuracies} and higher mean IoU {ious}."
    return f"{name} vs {other}: {pixel} accuracy {accuracies}, mean IoU {ious}."


def _omitted(difference: ImbalanceDifference) -> tuple[list[ClassBalance], str]:
    """The omitted classes of the model with the higher accuracy, and their number in words."""
    occurring = [c for c in difference.models[difference._ranked[0]].classes if c.share > 0]
    omitted = [c for c in occurring if c.name in difference.omitted]
    # Rare: each has less than an even share.
    rare = "rare " if max(c.share for c in omitted) < 1 / len(occurring) else ""
    return omitted, text.plural(len(omitted), f"{rare}class", f"{rare}classes")


def _omitted_sentence(difference: ImbalanceDifference) -> str:
    omitted, number = _omitted(difference)
    name = difference.names[difference._ranked[0]]
    return (
        f"{name} never predicts {number} ({text.classes(difference.omitted)}); "
        f"this costs it {points(sum(c.accuracy_lost for c in omitted))} points of accuracy "
        f"and {points(sum(c.mean_iou_lost for c in omitted))} of mean IoU."
    )


def _omission_sentences(difference: ImbalanceDifference) -> list[str]:
    higher, other = (difference.names[i] for i in difference._ranked)
    omitted, number = _omitted(difference)
    # Counts of one model do not show where the other is also wrong, so this is an upper bound.
    most = points(difference.omitted_fp - difference.omitted_tp)
    return [
        f"{higher} never predicts {number}: {text.classes(difference.omitted)}.",
        f"{other} predicts {'it' if len(omitted) == 1 else 'them'}: "
        f"{percent(difference.omitted_tp)} of all {difference._pixel}s are true positives and "
        f"{percent(difference.omitted_fp)} are false positives.",
        f"This costs {other} at most {most} points of accuracy, less wherever {higher} is also "
        f"wrong; the whole difference is {points(abs(difference.accuracy_difference))}.",
    ]


def _parts_of(
    head: str, whole: float, parts: Mapping[str, float], order: Sequence[str], rank: int
) -> Column:
    values = [whole, *(parts.get(name, math.nan) for name in order)]
    return Column(head, ["–" if math.isnan(x) else signed_points(x) for x in values], rank)
