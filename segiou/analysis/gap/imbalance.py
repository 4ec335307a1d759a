"""Gap between pixel accuracy and mean IoU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from segiou._support import text
from segiou._support.arguments import names_options, read_several, refuse_kind
from segiou._support.numbers import cell, percent, points, signed_points, tone_of
from segiou._support.text import Json
from segiou.analysis.gap.baselines import (
    Baseline,
    WeightedMean,
    baseline_of,
    majority_class,
    majority_counts,
    random_iou,
    weighted_mean,
)
from segiou.analysis.gap.steps import NextStep, top_steps
from segiou.counting.counts import ConfusionCounts, Counts
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Cell, Column, Facts, Line, Part, Table
from segiou.inference.scored_runs import hint_for, run_under, unit_of_pixels
from segiou.inference.units import HasCounts
from segiou.metrics.overall import pixel_accuracy
from segiou.metrics.per_class import iou, prevalence, recall
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import included, ratio


@dataclass(frozen=True, slots=True)
class ClassBalance:
    """One class's weight in pixel accuracy and in mean IoU.

    Attributes
    ----------
    name : str
    included : bool
        Whether the class is included in the means.
    share, predicted_share : float
        Share of the valid pixels in the truth and in the prediction.
    recall, iou : float
        On the data set; NaN if undefined.
    accuracy_cost : float
        Loss of pixel accuracy if no pixel of the class were found: TP / n.
    mean_iou_cost : float
        The same loss of mean IoU: IoU / K over K classes.
    accuracy_lost, mean_iou_lost : float
        Cost of the class's current errors: FN / n and (1 − IoU) / K.
    gap_part : float
        ``mean_iou_lost - accuracy_lost``; sums to PA − mIoU over all classes.
    imbalance_part, false_positive_part : float
        ``gap_part`` split like the gap: (1 − recall)/K − FN/n, which sums to
        PA − mAcc, and the rest, which sums to mAcc − mIoU.
    """

    name: str
    included: bool
    share: float
    predicted_share: float
    recall: float
    iou: float
    accuracy_cost: float
    mean_iou_cost: float
    accuracy_lost: float
    mean_iou_lost: float
    gap_part: float
    imbalance_part: float
    false_positive_part: float

    @property
    def never_predicted(self) -> bool:
        """Whether the class is in the truth but never predicted."""
        return self.share > 0 and self.predicted_share == 0

    @property
    def predicted_only(self) -> bool:
        """Whether the class is predicted but not in the truth."""
        return self.share == 0 and self.predicted_share > 0


@dataclass(frozen=True, slots=True, repr=False)
class Imbalance(Finding):
    """Decomposition of the gap between pixel accuracy and mean IoU.

    Attributes
    ----------
    protocol : str
        Protocol of the means.
    pixels : int
        Valid pixels.
    pixel_accuracy, mean_accuracy, mean_iou : float
    mean_accuracy_classes, mean_iou_classes : int
        Classes that the means cover. A class that is only predicted has an IoU
        of 0 but no recall, so mean IoU can cover more.
    gap : float
        PA − mIoU.
    gap_imbalance : float
        PA − mAcc: rare classes weigh as much as common ones in mAcc only.
    gap_false_positives : float
        mAcc − mIoU: false positives, which IoU penalises and accuracy does not.
    classes : tuple of ClassBalance
    majority, random : Baseline
        Always predicting the most frequent class; sampling each pixel's class
        with the class shares of the truth.
    """

    protocol: str
    pixels: int
    pixel_accuracy: float
    mean_accuracy: float
    mean_iou: float
    mean_accuracy_classes: int
    mean_iou_classes: int
    gap: float
    gap_imbalance: float
    gap_false_positives: float
    classes: tuple[ClassBalance, ...]
    majority: Baseline
    random: Baseline
    _pixel_unit: str = field(default="pixels", repr=False, compare=False)

    _index = ("name",)

    @property
    def _pixel(self) -> str:
        """What a pixel is called."""
        return text.nouns(self._pixel_unit).pixel

    @property
    def never_predicted(self) -> tuple[str, ...]:
        """Classes that are in the truth but never predicted."""
        return tuple(c.name for c in self.classes if c.never_predicted)

    @property
    def predicted_only(self) -> tuple[str, ...]:
        """Classes that are predicted but not in the truth."""
        return tuple(c.name for c in self.classes if c.predicted_only)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data: dict[str, Any] = text.plain(self)
        data["never_predicted"] = list(self.never_predicted)
        data["predicted_only"] = list(self.predicted_only)
        return data

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _parts(self, steps: Sequence[NextStep] = ()) -> Iterator[Part]:
        """Next steps, findings, the split of the gap and the classes."""
        yield from (Line(str(s), lead=f"{n}. ") for n, s in enumerate(top_steps(steps), 1))
        yield from [GAP] if steps else []
        yield from map(Line, self.sentences())
        yield from (GAP, Facts([*_split(self)]), GAP)
        rows = sorted(self.classes, key=lambda row: (math.isnan(row.gap_part), -row.gap_part))
        columns = (
            Column("class", [row.name for row in rows], 9, is_text=True),
            Column("share", [cell(row.share) for row in rows], 7),
            Column("recall", [cell(row.recall) for row in rows], 4),
            Column("IoU", [Cell(cell(row.iou), tone_of(row.iou)) for row in rows], 8),
            Column("accuracy loss", [_points(row.accuracy_cost) for row in rows], 2),
            Column("mean IoU loss", [_points(row.mean_iou_cost) for row in rows], 3),
            Column("gap points", [_points(row.gap_part) for row in rows], 5),
        )
        note = "loss: points that each score would drop if the model stopped finding the class"
        yield Table(columns, [note])

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per class.

        Yields
        ------
        dict
            The values of a row by column.
        """
        for row in self.classes:
            yield text.plain(row)

    def sentences(self) -> list[str]:
        """Return the findings as sentences, rounded to 0.01 points."""
        if not self.pixels:
            return [f"No valid {self._pixel}s; nothing to explain."]
        return [*_score_sentences(self), *_class_sentences(self), *_lost_sentences(self)]


@names_options
def explain(
    counts: Counts | HasCounts,
    class_names: Sequence[str] | None = None,
    *,
    include: Any = None,
    protocol: Protocol | str | None = None,
) -> Imbalance:
    """Decompose the gap between pixel accuracy and mean IoU.

    PA − mIoU = (PA − mAcc) + (mAcc − mIoU), exactly. Since
    PA = 1 − Σ FN_c / n and mIoU = 1 − Σ (1 − IoU_c) / K, the gap is also the
    sum over classes of (1 − IoU_c) / K − FN_c / n. Under a protocol that
    averages over images, 1/K is replaced by the weights of its mean.

    Parameters
    ----------
    counts : Counts of shape (C,) or (N, C), Run, ConfusionMatrix or Report
        Counts of the data set or of its images, or an object that has them.
    class_names : sequence of str, optional
        Required with bare counts; by default, those of the object.
    include : array_like of bool, shape (C,), optional
        Classes that are included in the means; pixel accuracy covers all.
    protocol : Protocol or str, optional
        Protocol of the means; by default that of the run or report, or ``"segiou"``.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or bare counts have no names.
    ValueError
        If the number of names is wrong, channels overlap, or the protocol
        averages over images and the counts are those of a data set.

    References
    ----------
    J. Long et al., CVPR 2015, section 5; Z. Wang et al., NeurIPS 2023
    (arXiv 2310.19252), section 1.

    Examples
    --------
    >>> counts = Counts(tp=[95, 0], fp=[5, 0], fn=[0, 5], tn=[0, 95])
    >>> found = explain(counts, ["background", "cell"])
    >>> found.pixel_accuracy, found.mean_iou, round(found.majority.mean_iou, 3)
    (0.95, 0.475, 0.475)
    >>> print(found.sentences()[2])
    The model never predicts cell: 5.00 % of the pixels but 1 of 2 classes. This
    costs 5.00 points of pixel accuracy and 50.00 points of mean IoU.
    """
    if not isinstance(counts, Counts):
        return _explain_scored(counts, class_names, include, protocol)
    if class_names is None:
        raise refuse_kind("class_names", None, "passed with counts, one per class")
    names = tuple(read_several("class_names", class_names, "a sequence of names, one per class"))
    protocol = load_protocol("segiou" if protocol is None else protocol)
    images = counts_of_images(counts, names, protocol)
    total = images.summed()
    ious, recalls = (weighted_mean(images, metric, protocol, include) for metric in (iou, recall))
    accuracy = float(pixel_accuracy(total))
    chosen, prior = majority_class(total), prevalence(total)
    always = majority_counts(images, chosen)
    mean_always = weighted_mean(always, iou, protocol, include)
    by_chance = weighted_mean(images, lambda c: random_iou(prevalence(c), prior), protocol, include)
    right = float(pixel_accuracy(always.summed())), float((prior * prior).sum())
    model = accuracy, ious.value
    return Imbalance(
        protocol=protocol.name,
        pixels=int(total.truth.sum()),
        pixel_accuracy=accuracy,
        mean_accuracy=recalls.value,
        mean_iou=ious.value,
        mean_accuracy_classes=recalls.classes,
        mean_iou_classes=ious.classes,
        gap=accuracy - ious.value,
        gap_imbalance=accuracy - recalls.value,
        gap_false_positives=recalls.value - ious.value,
        classes=_classes(total, names, include, ious, recalls),
        majority=baseline_of("majority", names[chosen], right[0], mean_always, model),
        random=baseline_of("random", None, right[1], by_chance, model),
    )


def counts_of_images(counts: Counts, names: tuple[str, ...], protocol: Protocol) -> Counts:
    """Counts of images (N, C), which are one image if the protocol pools them."""
    shape = counts.tp.shape
    if shape[-1:] != (len(names),) or len(shape) > 2:
        msg = f"counts have shape {shape}, got {len(names)} class names"
        raise ValueError(msg)
    if len(shape) == 1 and protocol.needs_images:
        msg = (
            f"protocol {protocol.name!r} averages over images and needs per-image counts of "
            "shape (N, C), got counts of the whole data set"
        )
        raise ValueError(msg)
    return counts if protocol.needs_images else counts.summed()[None]


def _explain_scored(
    scored: HasCounts,
    class_names: Sequence[str] | None,
    include: Any,
    protocol: Protocol | str | None,
) -> Imbalance:
    if not all(hasattr(scored, name) for name in ("counts", "class_names", "include")):
        wanted = "segiou.Counts, a run, a confusion matrix or a report"
        msg = f"{refuse_kind('counts', scored, wanted)}{hint_for(scored)}"
        raise TypeError(msg)
    tally = getattr(scored, "tally", None)
    if isinstance(tally, ConfusionCounts) and tally.ignored.ndim:
        msg = (
            "cannot explain overlapping channels: pixel accuracy over classes is undefined; use "
            "counts.one_vs_rest() to explain one channel against the rest"
        )
        raise ValueError(msg)
    images = getattr(scored, "per_image", None)  # a report's, where it has them
    usual = getattr(scored, "protocol", None) or "segiou"
    protocol = load_protocol(usual if protocol is None else protocol)
    counts = run_under(scored, protocol).counts
    if isinstance(tally, ConfusionCounts):
        counts = protocol.tally_of(tally).counts
    imbalance = explain(
        counts if images is None else images,
        scored.class_names if class_names is None else class_names,
        include=protocol.include_of(scored) if include is None else include,
        protocol=protocol,
    )
    return replace(imbalance, _pixel_unit=unit_of_pixels(scored))


def _classes(
    total: Counts, names: tuple[str, ...], include: Any, ious: WeightedMean, recalls: WeightedMean
) -> tuple[ClassBalance, ...]:
    pixels = total.truth.sum()
    accuracy_lost = ratio(total.fn, pixels)
    mean_iou_lost = ious.per_class(1 - ious.values)
    mean_accuracy_lost = recalls.per_class(1 - recalls.values)
    rows = text.records(
        name=names,
        included=included(include, len(names)),
        share=prevalence(total),
        predicted_share=ratio(total.pred, pixels),
        recall=recall(total),
        iou=iou(total),
        accuracy_cost=ratio(total.tp, pixels),
        mean_iou_cost=ious.per_class(),
        accuracy_lost=accuracy_lost,
        mean_iou_lost=mean_iou_lost,
        gap_part=mean_iou_lost - accuracy_lost,
        imbalance_part=mean_accuracy_lost - accuracy_lost,
        false_positive_part=mean_iou_lost - mean_accuracy_lost,
    )
    return tuple(ClassBalance(**row) for row in rows)


def _score_sentences(imbalance: Imbalance) -> list[str]:
    """The gap with its two parts, and the majority baseline."""
    sign, where = (-1, "higher") if imbalance.gap < 0 else (1, "lower")
    why = "rare classes weigh as much as common ones"
    if imbalance.gap_imbalance < 0:
        why = "common classes have the lower recall here, and rare ones weigh as much"
    majority = imbalance.majority
    always = text.called(str(majority.predicted_class))
    return [
        f"{text.capital(imbalance._pixel)} accuracy is {percent(imbalance.pixel_accuracy)}; "
        f"mean IoU over {text.plural(imbalance.mean_iou_classes, 'class', 'classes')} is "
        f"{percent(imbalance.mean_iou)}, {points(abs(imbalance.gap))} points {where}: "
        f"{points(sign * imbalance.gap_imbalance)} from class imbalance ({why}), "
        f"{points(sign * imbalance.gap_false_positives)} from false positives (which IoU "
        "penalises and accuracy does not).",
        f"Always predicting {always} (the majority baseline) gives "
        f"{percent(majority.pixel_accuracy)} {imbalance._pixel} accuracy and "
        f"{percent(majority.mean_iou)} mean IoU; {majority.skill_in_words()}.",
    ]


def _class_sentences(imbalance: Imbalance) -> Iterator[str]:
    """Classes that are never predicted, and those that are only predicted."""
    pixel = imbalance._pixel
    covered = text.plural(imbalance.mean_iou_classes, "class", "classes")
    if never := [c for c in imbalance.classes if c.never_predicted]:
        counted = sum(c.mean_iou_lost > 0 for c in never)
        yield (
            f"The model never predicts {text.classes(imbalance.never_predicted)}: "
            f"{percent(sum(c.share for c in never))} of the {pixel}s but {counted} of "
            f"{covered}. This costs {points(sum(c.accuracy_lost for c in never))} points of "
            f"{pixel} accuracy and {points(sum(c.mean_iou_lost for c in never))} points of "
            "mean IoU."
        )
    if names := imbalance.predicted_only:
        occurs, each = ("occurs", "its") if len(names) == 1 else ("occur", "their")
        # Of the means, an excluded class is in neither.
        differ = imbalance.mean_iou_classes != imbalance.mean_accuracy_classes
        means = f"mean IoU covers {covered} and mean accuracy {imbalance.mean_accuracy_classes}"
        yield (
            f"The model predicts {text.classes(names)}, which never {occurs} in the truth: {each} "
            f"IoU is 0 and {each} recall undefined{f', so {means}' if differ else ''}."
        )


def _lost_sentences(imbalance: Imbalance) -> list[str]:
    """The cost of losing a class, for up to six classes."""
    pixel = imbalance._pixel
    # Those whose costs in mean IoU and in accuracy differ most.
    costly = (c for c in imbalance.classes if c.mean_iou_cost > c.accuracy_cost and c.share > 0)
    lost = [c for c in costly if not c.never_predicted]
    lost = sorted(lost, key=lambda c: c.accuracy_cost - c.mean_iou_cost)[:6]
    rows = [
        (
            text.called(c.name),
            percent(c.share),
            *map(points, (c.accuracy_cost, c.mean_iou_cost)),
        )
        for c in lost
    ]
    if len(rows) < 2:
        return [
            f"If the model stopped finding {name} ({share} of {pixel}s), {pixel} accuracy would "
            f"fall by {accuracy} points and mean IoU by {mean_iou}."
            for name, share, accuracy, mean_iou in rows
        ]
    shown = [
        f"{name} ({share}{'' if i else f' of {pixel}s'}) {accuracy} and {mean_iou}"
        for i, (name, share, accuracy, mean_iou) in enumerate(rows)
    ]
    return [
        f"If the model stopped finding one class, {pixel} accuracy and mean IoU would fall by (in "
        f"points): {'; '.join(shown)}."
    ]


def _split(imbalance: Imbalance) -> Iterator[tuple[str, str, str]]:
    pixel = imbalance._pixel
    yield f"{pixel} accuracy", cell(imbalance.pixel_accuracy), ""
    for name, score, lost, why in (
        ("mean accuracy", imbalance.mean_accuracy, imbalance.gap_imbalance, "imbalance"),
        ("mean IoU", imbalance.mean_iou, imbalance.gap_false_positives, "false positives"),
    ):
        yield name, cell(score), f"{signed_points(-lost)} points: {why}"
    for name, base in (
        ("majority baseline", imbalance.majority),
        ("random baseline", imbalance.random),
    ):
        yield name, cell(base.mean_iou), f"mean IoU; {pixel} accuracy {cell(base.pixel_accuracy)}"


def _points(value: float) -> str:
    return "–" if math.isnan(value) else points(value)
