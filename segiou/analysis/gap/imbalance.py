"""Gap between pixel accuracy and mean IoU, of one model and of two on the same truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segiou._support import text
from segiou._support.arguments import read_several, refuse_kind
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
from segiou.counting.counts import ConfusionCounts, Counts, check_counts
from segiou.document.parts import Part, Shown
from segiou.inference.paired_runs import classes_in_common
from segiou.inference.scored_runs import hint_for, under
from segiou.inference.units import HasCounts, difference
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


@dataclass(frozen=True, slots=True)
class Imbalance(Shown):
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
        data |= {name: getattr(self, name).to_dict() for name in ("majority", "random")}
        data["never_predicted"] = list(self.never_predicted)
        data["predicted_only"] = list(self.predicted_only)
        return data

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _parts(self) -> Iterable[Part]:
        from segiou.analysis.gap.document import imbalance_parts

        return imbalance_parts(self)

    def sentences(self) -> list[str]:
        """Return the findings as sentences, rounded to 0.01 points."""
        if not self.pixels:
            return ["No valid pixels; nothing to explain."]
        return [*_score_sentences(self), *_class_sentences(self), *_lost_sentences(self)]


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
    images = _per_image(counts, names, protocol)
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


def _per_image(counts: Counts, names: tuple[str, ...], protocol: Protocol) -> Counts:
    """Counts of images (N, C); those of a data set are one image, if the protocol pools images."""
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
    return counts[None] if len(shape) == 1 else counts


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
    protocol = load_protocol(protocol or getattr(scored, "protocol", None) or "segiou")
    counts = under(scored, protocol).counts
    if isinstance(tally, ConfusionCounts):
        counts = protocol.tally_of(tally).counts
    return explain(
        counts if images is None else images,
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
        f"Pixel accuracy is {text.percent(imbalance.pixel_accuracy)}; mean IoU over "
        f"{text.plural(imbalance.mean_iou_classes, 'class', 'classes')} is "
        f"{text.percent(imbalance.mean_iou)}, {text.points(abs(imbalance.gap))} points {where}: "
        f"{text.points(sign * imbalance.gap_imbalance)} from class imbalance ({why}), "
        f"{text.points(sign * imbalance.gap_false_positives)} from false positives (which IoU "
        "penalises and accuracy does not).",
        f"Always predicting {always} (the majority baseline) gives "
        f"{text.percent(majority.pixel_accuracy)} pixel accuracy and "
        f"{text.percent(majority.mean_iou)} mean IoU; {majority.skill_in_words()}.",
    ]


def _class_sentences(imbalance: Imbalance) -> Iterator[str]:
    """Classes that are never predicted, and those that are only predicted."""
    covered = text.plural(imbalance.mean_iou_classes, "class", "classes")
    if never := [c for c in imbalance.classes if c.never_predicted]:
        counted = sum(c.mean_iou_lost > 0 for c in never)
        yield (
            f"The model never predicts {text.classes(imbalance.never_predicted)}: "
            f"{text.percent(sum(c.share for c in never))} of the pixels but {counted} of "
            f"{covered}. This costs {text.points(sum(c.accuracy_lost for c in never))} points of "
            f"pixel accuracy and {text.points(sum(c.mean_iou_lost for c in never))} points of mean "
            "IoU."
        )
    if names := imbalance.predicted_only:
        occurs, each = ("occurs", "its") if len(names) == 1 else ("occur", "their")
        yield (
            f"The model predicts {text.classes(names)}, which never {occurs} in the truth: {each} "
            f"IoU is 0 and {each} recall undefined, so mean IoU covers {covered} and mean accuracy "
            f"{imbalance.mean_accuracy_classes}."
        )


def _lost_sentences(imbalance: Imbalance) -> list[str]:
    """The cost of losing a class, for up to six classes."""
    # Those whose costs in mean IoU and in accuracy differ most.
    costly = (c for c in imbalance.classes if c.mean_iou_cost > c.accuracy_cost and c.share > 0)
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
            f"If the model stopped finding {name} ({share} of pixels), pixel accuracy would fall "
            f"by {accuracy} points and mean IoU by {mean_iou}."
            for name, share, accuracy, mean_iou in rows
        ]
    shown = [
        f"{name} ({share}{'' if i else ' of pixels'}) {accuracy} and {mean_iou}"
        for i, (name, share, accuracy, mean_iou) in enumerate(rows)
    ]
    return [
        "If the model stopped finding one class, pixel accuracy and mean IoU would fall by (in "
        f"points): {'; '.join(shown)}."
    ]


@dataclass(frozen=True, slots=True)
class ImbalanceDifference(Shown):
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
        Classes that only one of the models scores, which both means leave out, as in
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
    _pixel: str = field(default="pixel", repr=False, compare=False)

    @property
    def disagree(self) -> bool:
        """Whether pixel accuracy and mean IoU rank the models differently."""
        return self.accuracy_difference * self.mean_iou_difference < 0

    def _parts(self) -> Iterable[Part]:
        from segiou.analysis.gap.document import imbalance_difference_parts

        return imbalance_difference_parts(self)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data: dict[str, Any] = text.plain(self)
        data["models"] = [model.to_dict() for model in self.models]
        data["disagree"] = self.disagree
        false_alarms = {"silent_false_alarms": "omitted_fp"}
        wins = {"silent": "omitted", "wins_by_silence": "wins_by_omission"}
        return text.old_keys(data, silent_hits="omitted_tp", **false_alarms, **wins)

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
    include = included(include, len(class_names))
    images = [_per_image(one, tuple(class_names), protocol) for one in (counts_a, counts_b)]
    keep = classes_in_common(images, class_names, include, protocol)
    first, second = (
        explain(one, class_names, include=include & keep, protocol=protocol) for one in images
    )
    a, b = counts_a.summed(), counts_b.summed()
    _check_truth(a, b, class_names, names)
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


def _omission(a: Counts, b: Counts, gain: float) -> tuple[list[int], int, int, bool]:
    """Classes that only the less accurate model predicts, its FP and TP, and if they may decide."""
    higher, lower = (b, a) if gain > 0 else (a, b)
    omitted = (higher.truth > 0) & (higher.pred == 0) & (lower.pred > 0) & (gain != 0)
    fp, tp = int(lower.fp[omitted].sum()), int(lower.tp[omitted].sum())
    # In pixels, because both sides are equal for two classes, except for rounding.
    is_decisive = int((higher.tp - lower.tp).sum()) <= fp - tp
    return np.flatnonzero(omitted).tolist(), fp, tp, is_decisive


def _check_truth(a: Counts, b: Counts, class_names: Sequence[str], names: tuple[str, str]) -> None:
    """ValueError if the truth of the two models differs."""
    differing = np.flatnonzero(a.truth != b.truth)
    if len(differing):
        c = int(differing[0])
        msg = (
            f"the two models were scored against different ground truth: class {class_names[c]} "
            f"has {a.truth[c]} pixels with {names[0]} and {b.truth[c]} with {names[1]}; "
            "score both on the same images"
        )
        raise ValueError(msg)


def _coverage_sentence(difference: ImbalanceDifference) -> Iterator[str]:
    if difference.uncommon_classes:
        some = text.classes(difference.uncommon_classes)
        yield f"The means cover the classes that both models score, without {some}."


def _order_sentence(difference: ImbalanceDifference) -> str:
    name, other = (difference.names[i] for i in difference._ranked)
    a, b = (difference.models[i] for i in difference._ranked)
    accuracies = f"({text.percent(a.pixel_accuracy)} vs {text.percent(b.pixel_accuracy)})"
    ious, pixel = f"({text.percent(a.mean_iou)} vs {text.percent(b.mean_iou)})", difference._pixel
    if difference.disagree:
        return f"{name} has higher {pixel} accuracy {accuracies} but lower mean IoU {ious}."
    if difference.accuracy_difference == 0 or difference.mean_iou_difference == 0:
        return f"{name} vs {other}: {pixel} accuracy {accuracies}, mean IoU {ious}."
    return f"{name} has higher {pixel} accuracy {accuracies} and higher mean IoU {ious}."


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
        f"this costs it {text.points(sum(c.accuracy_lost for c in omitted))} points of accuracy "
        f"and {text.points(sum(c.mean_iou_lost for c in omitted))} of mean IoU."
    )


def _omission_sentences(difference: ImbalanceDifference) -> list[str]:
    higher, other = (difference.names[i] for i in difference._ranked)
    omitted, number = _omitted(difference)
    # Counts of one model do not show where the other is also wrong, so this is an upper bound.
    most = text.points(difference.omitted_fp - difference.omitted_tp)
    return [
        f"{higher} never predicts {number}: {text.classes(difference.omitted)}.",
        f"{other} predicts {'it' if len(omitted) == 1 else 'them'}: "
        f"{text.percent(difference.omitted_tp)} of all {difference._pixel}s are true positives and "
        f"{text.percent(difference.omitted_fp)} are false positives.",
        f"This costs {other} at most {most} points of accuracy, less wherever {higher} is also "
        f"wrong; the whole difference is {text.points(abs(difference.accuracy_difference))}.",
    ]
