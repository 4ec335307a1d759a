"""What pixel accuracy hides: a model beside its majority baseline, and two models on one truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support import text
from segiou._support.arguments import read_several, refuse_kind
from segiou._support.html import sentence_list
from segiou._support.text import Json
from segiou.analysis.baselines import (
    AveragedCounts,
    Baseline,
    WeightedMean,
    majority_baseline,
    random_baseline,
)
from segiou.analysis.units import Scored
from segiou.counting.counts import Counts, Tally, check_counts
from segiou.metrics.overall import pixel_accuracy
from segiou.metrics.per_class import iou, recall, share
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
        said = [_gap_sentence(self), _baseline_sentence(self)]
        if self.never_predicted:
            said.append(_never_sentence(self))
        if self.predicted_only:
            said.append(_only_sentence(self))
        return said + _lost_sentences(_undervalued(self))


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
    averaged = AveragedCounts.of(counts, len(names), protocol, include)
    total, ious, recalls = averaged.total, averaged.mean_of(iou), averaged.mean_of(recall)
    accuracy = float(pixel_accuracy(total))
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
        classes=_classes(averaged, names, ious, recalls),
        majority=majority_baseline(averaged, names, model),
        random=random_baseline(averaged, model),
    )


def _explain_scored(
    scored: Scored,
    class_names: Sequence[str] | None,
    include: Any,
    protocol: Protocol | str | None,
) -> Imbalance:
    if not all(hasattr(scored, name) for name in ("counts", "class_names", "include")):
        raise refuse_kind("counts", scored, "segiou.Counts, a run, a confusion matrix or a report")
    tally = getattr(scored, "tally", None)
    if isinstance(tally, Tally) and tally.ignored.ndim:
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
    averaged: AveragedCounts, names: tuple[str, ...], ious: WeightedMean, recalls: WeightedMean
) -> tuple[ClassBalance, ...]:
    total = averaged.total
    pixels = total.truth.sum()
    taken = included(averaged.include, len(names))
    accuracy_lost = ratio(total.fn, pixels)
    mean_iou_lost = ious.per_class(1 - ious.values)
    mean_accuracy_lost = recalls.per_class(1 - recalls.values)
    columns: tuple[NDArray[Any], ...] = (
        taken,
        share(total),
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


def _gap_sentence(found: Imbalance) -> str:
    sign, where = (-1, "higher") if found.gap < 0 else (1, "lower")
    return (
        f"Pixel accuracy is {text.percent(found.pixel_accuracy)}; mean IoU over "
        f"{text.plural(found.mean_iou_classes, 'class', 'classes')} is "
        f"{text.percent(found.mean_iou)}, {text.points(abs(found.gap))} points {where}: "
        f"{text.points(sign * found.gap_imbalance)} because rare classes count as much as common "
        f"ones, {text.points(sign * found.gap_false_positives)} because false positives lower "
        "IoU but not accuracy."
    )


def _baseline_sentence(found: Imbalance) -> str:
    majority = found.majority
    return (
        f"A model that says {text.called(str(majority.answer))} everywhere (the majority baseline) "
        f"has a pixel accuracy of {text.percent(majority.pixel_accuracy)} and a mean IoU of "
        f"{text.percent(majority.mean_iou)}; {majority.skill_in_words()}."
    )


def _never_sentence(found: Imbalance) -> str:
    never = [c for c in found.classes if c.never_predicted]
    counted = sum(c.mean_iou_lost > 0 for c in never)
    return (
        f"The model never predicts {text.classes(found.never_predicted)}. That is "
        f"{text.percent(sum(c.share for c in never))} of the pixels, so pixel accuracy loses "
        f"{text.points(sum(c.accuracy_lost for c in never))} points, but {counted} of "
        f"{text.plural(found.mean_iou_classes, 'class', 'classes')}, so mean IoU loses "
        f"{text.points(sum(c.mean_iou_lost for c in never))} points."
    )


def _only_sentence(found: Imbalance) -> str:
    names = found.predicted_only
    them = "it has" if len(names) == 1 else "they have"
    return (
        f"The truth has no pixel of {text.classes(names)}, but the model predicts "
        f"{'it' if len(names) == 1 else 'them'}: {them} an IoU of 0 and no recall, so mean IoU "
        f"covers {text.plural(found.mean_iou_classes, 'class', 'classes')} and mean accuracy "
        f"{found.mean_accuracy_classes}."
    )


def _lost_sentences(lost: Sequence[ClassBalance]) -> list[str]:
    """What finding each class no more would cost; in one sentence for several."""
    falls = [(text.points(c.accuracy_cost), text.points(c.mean_iou_cost)) for c in lost]
    names = [
        f"{text.called(c.name)} ({text.percent(c.share)}{'' if i else ' of pixels'})"
        for i, c in enumerate(lost)
    ]
    if len(lost) < 2:
        return [
            f"If the model stopped finding {name}, accuracy would fall by {accuracy} points and "
            f"mean IoU by {mean_iou}."
            for name, (accuracy, mean_iou) in zip(names, falls, strict=True)
        ]
    pairs = (f"{name} {a} and {m}" for name, (a, m) in zip(names, falls, strict=True))
    return [
        "If the model stopped finding one of these classes, accuracy and mean IoU would fall by "
        f"these points: {'; '.join(pairs)}."
    ]


def _undervalued(found: Imbalance) -> list[ClassBalance]:
    """Up to six predicted classes with the widest step from cost in PA to cost in mIoU."""
    shown = [
        c
        for c in found.classes
        if c.mean_iou_cost > c.accuracy_cost and not c.never_predicted and c.share > 0
    ]
    return sorted(shown, key=lambda c: c.accuracy_cost - c.mean_iou_cost)[:6]


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
        if self.wins_by_silence:
            said.append(_silence_sentence(self))
        elif self.silent:
            said.append(_silent_sentence(self))
        if not np.isnan(self.mean_iou_difference):
            said.append(_parts_sentence(self))
        return said


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
    names = _pair(names)
    found = tuple(
        explain(counts, class_names, include=include, protocol=protocol)
        for counts in (counts_a, counts_b)
    )
    a, b = counts_a.summed(), counts_b.summed()
    _check_same_truth(a, b, class_names, names)
    lead = found[0].pixel_accuracy - found[1].pixel_accuracy
    ahead, other = (a, b) if lead > 0 else (b, a)
    silent = (ahead.truth > 0) & (ahead.pred == 0) & (other.pred > 0) & (lead != 0)
    false_alarms, hits = int(other.fp[silent].sum()), int(other.tp[silent].sum())
    behind = (found[1].mean_iou - found[0].mean_iou) * lead > 0
    pixels = max(1, int(a.truth.sum()))
    return ImbalanceDifference(
        names=names,
        models=(found[0], found[1]),
        accuracy_difference=-lead,
        mean_iou_difference=found[1].mean_iou - found[0].mean_iou,
        accuracy_parts=_parts(found, "accuracy_cost"),
        mean_iou_parts=_parts(found, "mean_iou_cost"),
        silent=tuple(class_names[c] for c in np.flatnonzero(silent).tolist()),
        silent_false_alarms=false_alarms / pixels,
        silent_hits=hits / pixels,
        # In pixels: for two classes the two sides are equal, and floats are not.
        wins_by_silence=behind and int((ahead.tp - other.tp).sum()) <= false_alarms - hits,
    )


def _pair(names: Iterable[str]) -> tuple[str, str]:
    found = read_several("names", names, "two names, one a model")
    if len(found) != 2:
        msg = f"names must be two, one a model, got {found}"
        raise ValueError(msg)
    return found[0], found[1]


def _check_same_truth(
    a: Counts, b: Counts, class_names: Sequence[str], names: tuple[str, str]
) -> None:
    differing = np.flatnonzero(a.truth != b.truth)
    if len(differing):
        c = int(differing[0])
        msg = (
            f"the two models were counted on different truths: class {class_names[c]} has "
            f"{a.truth[c]} pixels with {names[0]} and {b.truth[c]} with {names[1]}; "
            "score both on the same images"
        )
        raise ValueError(msg)


def _parts(found: tuple[Imbalance, ...], what: str) -> dict[str, float]:
    a, b = found
    return {
        x.name: getattr(y, what) - getattr(x, what)
        for x, y in zip(a.classes, b.classes, strict=True)
    }


def _ahead(found: ImbalanceDifference, difference: float) -> tuple[int, int]:
    """Index of the model that is ahead, and of the other."""
    return (1, 0) if difference > 0 else (0, 1)


def _order_sentence(found: ImbalanceDifference) -> str:
    first, second = _ahead(found, found.accuracy_difference)
    name = found.names[first]
    a, b = found.models[first], found.models[second]
    accuracies = f"({text.percent(a.pixel_accuracy)} against {text.percent(b.pixel_accuracy)})"
    ious = f"({text.percent(a.mean_iou)} against {text.percent(b.mean_iou)})"
    if found.disagree:
        return f"{name} has the higher pixel accuracy {accuracies} and the lower mean IoU {ious}."
    if found.accuracy_difference == 0 or found.mean_iou_difference == 0:
        return (
            f"{found.names[first]} against {found.names[second]}: pixel accuracy {accuracies}, "
            f"mean IoU {ious}."
        )
    return f"{name} is ahead in pixel accuracy {accuracies} and in mean IoU {ious}."


def _silence_sentence(found: ImbalanceDifference) -> str:
    first, second = _ahead(found, found.accuracy_difference)
    ahead, other = found.names[first], found.names[second]
    them = "it" if len(found.silent) == 1 else "them"
    price = found.silent_false_alarms - found.silent_hits
    return (
        f"{ahead} wins on accuracy only because it never predicts {_rare(found)}: "
        f"{text.classes(found.silent)}. {other} predicts {them}, correctly on "
        f"{text.percent(found.silent_hits)} of all pixels and as false positives on "
        f"{text.percent(found.silent_false_alarms)}. That costs {other} {text.points(price)} "
        f"points of accuracy, no less than the lead of {ahead}, "
        f"{text.points(abs(found.accuracy_difference))}."
    )


def _silent_sentence(found: ImbalanceDifference) -> str:
    first, _ = _ahead(found, found.accuracy_difference)
    classes = [c for c in found.models[first].classes if c.name in found.silent]
    return (
        f"{found.names[first]} never predicts {_rare(found)} ({text.classes(found.silent)}), "
        f"which costs it {text.points(sum(c.accuracy_lost for c in classes))} points of "
        f"accuracy and {text.points(sum(c.mean_iou_lost for c in classes))} of mean IoU."
    )


def _rare(found: ImbalanceDifference) -> str:
    """Count the silent classes; they are rare where each has less than an even share."""
    first, _ = _ahead(found, found.accuracy_difference)
    model = found.models[first]
    shares = [c.share for c in model.classes if c.name in found.silent]
    even = 1 / max(1, sum(c.share > 0 for c in model.classes))
    rare = "rare " if max(shares) < even else ""
    return text.plural(len(shares), f"{rare}class", f"{rare}classes")


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
