"""What pixel accuracy hides: a model beside its majority baseline, and two models on one truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support import text
from segiou._support.arguments import read_several, refuse_kind
from segiou._support.html import sentence_list
from segiou._support.text import Json
from segiou.analysis.baselines import (
    Baseline,
    WeightedMean,
    baseline_of,
    majority_class,
    majority_counts,
    random_iou,
    weighted_mean,
)
from segiou.analysis.units import Scored
from segiou.counting.counts import ConfusionCounts, Counts, check_counts
from segiou.metrics.overall import pixel_accuracy
from segiou.metrics.per_class import iou, prevalence, recall
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import included, ratio


@dataclass(frozen=True, slots=True)
class ClassBalance:
    """What one class weighs in pixel accuracy and in mean IoU.

    Attributes
    ----------
    name : str
    included : bool
        Whether the class may take part in the means.
    share, predicted_share : float
        Its part of the valid pixels in the truth and in the prediction.
    recall, iou : float
        Over the data set; NaN where undefined.
    accuracy_cost : float
        What losing the class altogether would cost pixel accuracy: TP / n,
        which is share · recall.
    mean_iou_cost : float
        What it would cost mean IoU: IoU / K over K classes.
    accuracy_lost, mean_iou_lost : float
        What the class's errors cost now: FN / n, and (1 − IoU) / K.
    gap_part : float
        ``mean_iou_lost - accuracy_lost``; the parts of all classes sum to
        PA − mIoU.
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
        """In the truth, but predicted on no pixel."""
        return self.share > 0 and self.predicted_share == 0

    @property
    def predicted_only(self) -> bool:
        """Predicted, but not in the truth: nothing but false positives."""
        return self.share == 0 and self.predicted_share > 0


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Pixel accuracy against mean IoU, and what the difference is made of.

    Attributes
    ----------
    protocol : str
        How both means are made.
    pixels : int
        Valid pixels.
    pixel_accuracy, mean_accuracy, mean_iou : float
    mean_accuracy_classes, mean_iou_classes : int
        How many classes the means cover. A class that is only predicted has an
        IoU, 0, but no recall, so that mean IoU can cover more.
    gap : float
        PA − mIoU.
    gap_imbalance : float
        PA − mAcc: pixels vote in the one, classes in the other.
    gap_false_positives : float
        mAcc − mIoU: false positives, which accuracy does not charge, those of
        classes that are only predicted included.
    classes : tuple of ClassBalance
    majority, random : Baseline
        Predicting the most frequent class everywhere; drawing each pixel's
        class with the truth's own shares.
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

    @property
    def never_predicted(self) -> tuple[str, ...]:
        """Classes of the truth that the model never predicts."""
        return tuple(c.name for c in self.classes if c.never_predicted)

    @property
    def predicted_only(self) -> tuple[str, ...]:
        """Classes that the model predicts although the truth has none of them."""
        return tuple(c.name for c in self.classes if c.predicted_only)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = text.plain(self)
        found["never_predicted"] = list(self.never_predicted)
        found["predicted_only"] = list(self.predicted_only)
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        return f'<div class="segiou-imbalance">{sentence_list(self.sentences())}</div>'

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        if not self.pixels:
            return ["There are no valid pixels, so there is nothing to explain."]
        return [*_score_sentences(self), *_class_sentences(self), *_lost_sentences(self)]


def explain(
    counts: Counts | Scored,
    class_names: Sequence[str] | None = None,
    *,
    include: Any = None,
    protocol: Protocol | str | None = None,
) -> Imbalance:
    """Take the gap between pixel accuracy and mean IoU apart.

    PA − mIoU = (PA − mAcc) + (mAcc − mIoU), exactly. Class by class, as
    PA = 1 − Σ FN_c / n and mIoU = 1 − Σ (1 − IoU_c) / K, the gap is the sum of
    (1 − IoU_c) / K − FN_c / n: what mean IoU charges for the class's errors
    beyond what pixel accuracy charges. Under a protocol that averages over
    images, 1/K is replaced by the weights of its mean, and the sums hold as
    they are.

    Parameters
    ----------
    counts : Counts of shape (C,) or (N, C), Run, ConfusionMatrix or Report
        Counts of the data set or of its images, or what has them.
    class_names : sequence of str, optional
        Needed with bare counts; else a run's, matrix's or report's own.
    include : array_like of bool, shape (C,), optional
        Classes that take part in the means; pixel accuracy has them all.
    protocol : Protocol or str, optional
        How the means are made; by default that of the run or report, or ``"segiou"``.

    Returns
    -------
    Imbalance

    Raises
    ------
    TypeError
        If an argument is of the wrong kind, or bare counts have no names.
    ValueError
        If the names do not fit the counts, they are of overlapping channels, or
        the protocol averages over images and they are those of a data set.

    References
    ----------
    The three scores: J. Long et al., CVPR 2015, section 5; why they part:
    Z. Wang et al., NeurIPS 2023 (arXiv 2310.19252), section 1.

    Examples
    --------
    >>> counts = Counts(tp=[95, 0], fp=[5, 0], fn=[0, 5], tn=[0, 95])
    >>> found = explain(counts, ["background", "cell"])
    >>> found.pixel_accuracy, found.mean_iou, round(found.majority.mean_iou, 3)
    (0.95, 0.475, 0.475)
    >>> print(found.sentences()[2])
    The model never predicts cell. That is 5.00 % of the pixels, so pixel accuracy
    loses 5.00 points, but 1 of 2 classes, so mean IoU loses 50.00 points.
    """
    if not isinstance(counts, Counts):
        return _explain_scored(counts, class_names, include, protocol)
    if class_names is None:
        raise refuse_kind("class_names", None, "given with counts, one a class")
    names = tuple(read_several("class_names", class_names, "a sequence of names, one a class"))
    protocol = load_protocol("segiou" if protocol is None else protocol)
    shape = counts.tp.shape
    if shape[-1:] != (len(names),) or len(shape) > 2:
        msg = f"counts have shape {shape}, but there are {len(names)} class names"
        raise ValueError(msg)
    if len(shape) == 1 and protocol.needs_images:
        msg = (
            f"protocol {protocol.name!r} averages over images and needs their counts, "
            "shape (N, C); the counts given are those of the whole data set"
        )
        raise ValueError(msg)
    images = counts[None] if len(shape) == 1 else counts
    total = images.summed()
    ious, recalls = (weighted_mean(images, metric, protocol, include) for metric in (iou, recall))
    accuracy = float(pixel_accuracy(total))
    chosen, prior = majority_class(total), prevalence(total)
    always = majority_counts(images, chosen)
    mean_always = weighted_mean(always, iou, protocol, include)
    mean_random = weighted_mean(
        images, lambda c: random_iou(prevalence(c), prior), protocol, include
    )
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
        random=baseline_of("random", None, right[1], mean_random, model),
    )


def _explain_scored(
    scored: Scored, class_names: Sequence[str] | None, include: Any, protocol: Protocol | str | None
) -> Imbalance:
    if not all(hasattr(scored, name) for name in ("counts", "class_names", "include")):
        raise refuse_kind("counts", scored, "segiou.Counts, a run, a confusion matrix or a report")
    tally = getattr(scored, "tally", None)
    if isinstance(tally, ConfusionCounts) and tally.ignored.ndim:
        msg = (
            "overlapping channels have no pixel accuracy over classes to explain; explain one "
            "channel against its rest: counts.one_vs_rest()"
        )
        raise ValueError(msg)
    images = getattr(scored, "per_image", None)  # a report's, where it has them
    protocol = load_protocol(protocol or getattr(scored, "protocol", None) or "segiou")
    return explain(
        scored.counts if images is None else images,
        scored.class_names if class_names is None else class_names,
        include=protocol.include_of(scored) if include is None else include,
        protocol=protocol,
    )


def _classes(
    total: Counts, names: tuple[str, ...], include: Any, ious: WeightedMean, recalls: WeightedMean
) -> tuple[ClassBalance, ...]:
    pixels = total.truth.sum()
    accuracy_lost = ratio(total.fn, pixels)
    mean_iou_lost = ious.per_class(1 - ious.values)
    mean_accuracy_lost = recalls.per_class(1 - recalls.values)
    columns: tuple[NDArray[Any], ...] = (
        included(include, len(names)),
        prevalence(total),
        ratio(total.pred, pixels),
        recall(total),
        iou(total),
        ratio(total.tp, pixels),
        ious.per_class(),
        accuracy_lost,
        mean_iou_lost,
        mean_iou_lost - accuracy_lost,
        mean_accuracy_lost - accuracy_lost,
        mean_iou_lost - mean_accuracy_lost,
    )
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(ClassBalance(*row) for row in rows)


def _score_sentences(found: Imbalance) -> list[str]:
    """The gap with its two parts, and the majority baseline."""
    sign, where = (-1, "higher") if found.gap < 0 else (1, "lower")
    majority = found.majority
    return [
        f"Pixel accuracy is {text.percent(found.pixel_accuracy)}; mean IoU over "
        f"{text.plural(found.mean_iou_classes, 'class', 'classes')} is "
        f"{text.percent(found.mean_iou)}, {text.points(abs(found.gap))} points {where}: "
        f"{text.points(sign * found.gap_imbalance)} because rare classes count as much as common "
        f"ones, {text.points(sign * found.gap_false_positives)} because false positives lower "
        "IoU but not accuracy.",
        f"A model that says {text.called(str(majority.answer))} everywhere (the majority baseline) "
        f"has a pixel accuracy of {text.percent(majority.pixel_accuracy)} and a mean IoU of "
        f"{text.percent(majority.mean_iou)}; {majority.skill_in_words()}.",
    ]


def _class_sentences(found: Imbalance) -> Iterator[str]:
    """Classes that are never predicted, and those that are only predicted."""
    covered = text.plural(found.mean_iou_classes, "class", "classes")
    if never := [c for c in found.classes if c.never_predicted]:
        counted = sum(c.mean_iou_lost > 0 for c in never)
        yield (
            f"The model never predicts {text.classes(found.never_predicted)}. That is "
            f"{text.percent(sum(c.share for c in never))} of the pixels, so pixel accuracy loses "
            f"{text.points(sum(c.accuracy_lost for c in never))} points, but {counted} of "
            f"{covered}, so mean IoU loses {text.points(sum(c.mean_iou_lost for c in never))} "
            "points."
        )
    if names := found.predicted_only:
        it, has = ("it", "it has") if len(names) == 1 else ("them", "they have")
        yield (
            f"The truth has no pixel of {text.classes(names)}, but the model predicts {it}: {has} "
            f"an IoU of 0 and no recall, so mean IoU covers {covered} and mean accuracy "
            f"{found.mean_accuracy_classes}."
        )


def _lost_sentences(found: Imbalance) -> list[str]:
    """What finding each of six classes no more would cost; in one sentence for several."""
    # Those with the widest step from the cost in accuracy to that in mean IoU.
    costly = (c for c in found.classes if c.mean_iou_cost > c.accuracy_cost and c.share > 0)
    lost = [c for c in costly if not c.never_predicted]
    lost = sorted(lost, key=lambda c: c.accuracy_cost - c.mean_iou_cost)[:6]
    rows = [
        (
            text.called(c.name),
            text.percent(c.share),
            *map(text.points, (c.accuracy_cost, c.mean_iou_cost)),
        )
        for c in lost
    ]
    if len(rows) < 2:
        return [
            f"If the model stopped finding {name} ({share} of pixels), accuracy would fall by "
            f"{accuracy} points and mean IoU by {mean_iou}."
            for name, share, accuracy, mean_iou in rows
        ]
    shown = [
        f"{name} ({share}{'' if i else ' of pixels'}) {accuracy} and {mean_iou}"
        for i, (name, share, accuracy, mean_iou) in enumerate(rows)
    ]
    return [
        "If the model stopped finding one of these classes, accuracy and mean IoU would fall by "
        f"these points: {'; '.join(shown)}."
    ]


@dataclass(frozen=True, slots=True)
class ImbalanceDifference:
    """The scores of two models compared, with what each class adds to the differences.

    Attributes
    ----------
    names : tuple of str
        The two models.
    models : tuple of Imbalance
        Each one explained.
    accuracy_difference, mean_iou_difference : float
        Second minus first.
    accuracy_parts, mean_iou_parts : mapping of str to float
        What each class adds to the two differences; they sum to them.
    silent : tuple of str
        Classes of the truth that the model ahead in pixel accuracy never
        predicts, though the other model does. Empty where accuracies are equal.
    silent_false_alarms : float
        False positives of the other model on them, as a share of all pixels.
    silent_hits : float
        True positives of the other model on them, as a share of all pixels.
    wins_by_silence : bool
        Whether the model ahead in pixel accuracy is so only by leaving classes
        out: it is behind in mean IoU, and its lead in accuracy is no more than
        what predicting the silent classes cost the other model: its false
        positives on them less its true positives.
    """

    names: tuple[str, str]
    models: tuple[Imbalance, Imbalance]
    accuracy_difference: float
    mean_iou_difference: float
    accuracy_parts: dict[str, float]
    mean_iou_parts: dict[str, float]
    silent: tuple[str, ...]
    silent_false_alarms: float
    silent_hits: float
    wins_by_silence: bool

    @property
    def disagree(self) -> bool:
        """Whether pixel accuracy and mean IoU put the models in opposite orders."""
        return self.accuracy_difference * self.mean_iou_difference < 0

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = text.plain(self)
        found["models"] = [model.to_dict() for model in self.models]
        found["disagree"] = self.disagree
        return found

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        said = [_order_sentence(self)]
        if self.silent:
            said.append(_silence_sentence(self))
        if not np.isnan(self.mean_iou_difference):
            said.append(_parts_sentence(self))
        return said

    @property
    def _ahead(self) -> tuple[int, int]:
        """Index of the model that is ahead in pixel accuracy, and of the other."""
        return (1, 0) if self.accuracy_difference > 0 else (0, 1)


def explain_difference(
    counts_a: Counts,
    counts_b: Counts,
    class_names: Sequence[str],
    *,
    names: tuple[str, str] = ("A", "B"),
    include: Any = None,
    protocol: Protocol | str = "segiou",
) -> ImbalanceDifference:
    """Explain why two models stand as they do in pixel accuracy and in mean IoU.

    A class's part of the difference in accuracy is that of its TP / n, its
    part of the difference in mean IoU that of its IoU / K (or of whatever the
    protocol's mean is made of).

    Parameters
    ----------
    counts_a, counts_b : Counts of shape (C,) or (N, C)
        Of the two models, on the same truth.
    class_names : sequence of str
        Names of the classes.
    names : pair of str
        What to call the models.
    include, protocol
        As for :func:`explain`.

    Returns
    -------
    ImbalanceDifference

    Raises
    ------
    ValueError
        If the two were counted on different truths.

    Examples
    --------
    >>> plain_model = Counts(tp=[950, 0], fp=[50, 0], fn=[0, 50], tn=[0, 950])
    >>> keen_model = Counts(tp=[880, 40], fp=[10, 70], fn=[70, 10], tn=[40, 880])
    >>> found = explain_difference(
    ...     plain_model, keen_model, ["road", "person"], names=("plain", "keen")
    ... )
    >>> found.wins_by_silence, found.silent
    (True, ('person',))
    """
    check_counts(counts_a, "counts_a")
    check_counts(counts_b, "counts_b")
    both = read_several("names", names, "two names, one a model")
    if len(both) != 2:
        msg = f"names must be two, one a model, got {both}"
        raise ValueError(msg)
    names = both[0], both[1]
    found = [
        explain(counts, class_names, include=include, protocol=protocol)
        for counts in (counts_a, counts_b)
    ]
    a, b = counts_a.summed(), counts_b.summed()
    differing = np.flatnonzero(a.truth != b.truth)
    if len(differing):
        c = int(differing[0])
        msg = (
            f"the two models were counted on different truths: class {class_names[c]} has "
            f"{a.truth[c]} pixels with {names[0]} and {b.truth[c]} with {names[1]}; "
            "score both on the same images"
        )
        raise ValueError(msg)
    lead = found[0].pixel_accuracy - found[1].pixel_accuracy
    ahead, other = (a, b) if lead > 0 else (b, a)
    silent = (ahead.truth > 0) & (ahead.pred == 0) & (other.pred > 0) & (lead != 0)
    false_alarms, hits = int(other.fp[silent].sum()), int(other.tp[silent].sum())
    behind = (found[1].mean_iou - found[0].mean_iou) * lead > 0
    pixels = max(1, int(a.truth.sum()))
    pairs = list(zip(*(model.classes for model in found), strict=True))
    return ImbalanceDifference(
        names=names,
        models=(found[0], found[1]),
        accuracy_difference=-lead,
        mean_iou_difference=found[1].mean_iou - found[0].mean_iou,
        accuracy_parts={x.name: y.accuracy_cost - x.accuracy_cost for x, y in pairs},
        mean_iou_parts={x.name: y.mean_iou_cost - x.mean_iou_cost for x, y in pairs},
        silent=tuple(class_names[c] for c in np.flatnonzero(silent).tolist()),
        silent_false_alarms=false_alarms / pixels,
        silent_hits=hits / pixels,
        # In pixels: for two classes the two sides are equal, and floats are not.
        wins_by_silence=behind and int((ahead.tp - other.tp).sum()) <= false_alarms - hits,
    )


def _order_sentence(found: ImbalanceDifference) -> str:
    first, second = found._ahead
    name, a, b = found.names[first], found.models[first], found.models[second]
    accuracies = f"({text.percent(a.pixel_accuracy)} against {text.percent(b.pixel_accuracy)})"
    ious = f"({text.percent(a.mean_iou)} against {text.percent(b.mean_iou)})"
    if found.disagree:
        return f"{name} has the higher pixel accuracy {accuracies} and the lower mean IoU {ious}."
    if found.accuracy_difference == 0 or found.mean_iou_difference == 0:
        return (
            f"{name} against {found.names[second]}: pixel accuracy {accuracies}, mean IoU {ious}."
        )
    return f"{name} is ahead in pixel accuracy {accuracies} and in mean IoU {ious}."


def _silence_sentence(found: ImbalanceDifference) -> str:
    first, second = found._ahead
    ahead, other = found.names[first], found.names[second]
    occurring = [c for c in found.models[first].classes if c.share > 0]
    silent = [c for c in occurring if c.name in found.silent]
    # They are rare where each has less than an even share.
    rare = "rare " if max(c.share for c in silent) < 1 / len(occurring) else ""
    number, names = (
        text.plural(len(silent), f"{rare}class", f"{rare}classes"),
        text.classes(found.silent),
    )
    if not found.wins_by_silence:
        return (
            f"{ahead} never predicts {number} ({names}), "
            f"which costs it {text.points(sum(c.accuracy_lost for c in silent))} points of "
            f"accuracy and {text.points(sum(c.mean_iou_lost for c in silent))} of mean IoU."
        )
    price = found.silent_false_alarms - found.silent_hits
    return (
        f"{ahead} wins on accuracy only because it never predicts {number}: {names}. {other} "
        f"predicts {'it' if len(silent) == 1 else 'them'}, correctly on "
        f"{text.percent(found.silent_hits)} of all pixels and as false positives on "
        f"{text.percent(found.silent_false_alarms)}. That costs {other} {text.points(price)} "
        f"points of accuracy, no less than the lead of {ahead}, "
        f"{text.points(abs(found.accuracy_difference))}."
    )


def _parts_sentence(found: ImbalanceDifference) -> str:
    ranked = sorted(found.mean_iou_parts.items(), key=lambda item: -abs(item[1]))[:3]
    shown = [
        f"{text.called(name)} {text.signed_points(part)} "
        f"(accuracy {text.signed_points(found.accuracy_parts[name])})"
        for name, part in ranked
        if part
    ]
    if not shown:
        return "No class differs between them."
    return (
        f"Most of the difference in mean IoU ({found.names[1]} minus {found.names[0]}, "
        f"{text.signed_points(found.mean_iou_difference)} points) comes from {text.listed(shown)}."
    )
