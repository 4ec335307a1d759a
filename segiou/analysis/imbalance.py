"""What pixel accuracy hides: a model's counts beside its majority baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from segiou._support import text
from segiou._support.arguments import read_several, refuse_kind
from segiou._support.html import sentence_list
from segiou._support.text import plain
from segiou.analysis.baselines import (
    AveragedCounts,
    Baseline,
    Scores,
    WeightedMean,
    majority_baseline,
    random_baseline,
)
from segiou.analysis.scored_images import Scored
from segiou.counting.counts import Counts, Tally
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
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
        return said + [_class_sentence(c) for c in _undervalued(self)]


def _gap_sentence(found: Imbalance) -> str:
    return (
        f"Pixel accuracy is {text.percent(found.pixel_accuracy)}, mean IoU over "
        f"{text.plural(found.mean_iou_classes, 'class', 'classes')} "
        f"{text.percent(found.mean_iou)}: a gap of {text.points(found.gap)} points, "
        f"{text.points(found.gap_imbalance)} from imbalance (in accuracy pixels vote, "
        f"in the mean classes) and {text.points(found.gap_false_positives)} from false "
        "positives, which accuracy does not charge."
    )


def _baseline_sentence(found: Imbalance) -> str:
    majority = found.majority
    return (
        f"The majority baseline predicts {text.called(str(majority.answer))} everywhere and has a "
        f"pixel accuracy of {text.percent(majority.pixel_accuracy)} and a mean IoU of "
        f"{text.percent(majority.mean_iou)}; {_skill_clause(majority)}."
    )


def _skill_clause(majority: Baseline) -> str:
    skills = majority.accuracy_skill, majority.mean_iou_skill
    in_accuracy, in_iou = map(text.percent, skills)
    if any(map(math.isnan, skills)):
        return "where the baseline is perfect, a score of a model says nothing"
    if min(skills) < 0:
        return (
            f"the skill of the model over it is {in_accuracy} in accuracy and {in_iou} in mean "
            "IoU (0 % is no better than the baseline, 100 % is perfect)"
        )
    return (
        f"from there to a perfect score the model has come {in_accuracy} of the way in accuracy "
        f"and {in_iou} in mean IoU"
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


def _class_sentence(balance: ClassBalance) -> str:
    return (
        f"{text.called(balance.name)}: {text.percent(balance.share)} of pixels; "
        "losing it altogether costs "
        f"{text.points(balance.accuracy_cost)} points of accuracy and "
        f"{text.points(balance.mean_iou_cost)} of mean IoU."
    )


def _undervalued(found: Imbalance) -> list[ClassBalance]:
    """Up to six predicted classes with the widest step from cost in PA to cost in mIoU."""
    shown = [
        c
        for c in found.classes
        if c.mean_iou_cost > c.accuracy_cost and not c.never_predicted and c.share > 0
    ]
    return sorted(shown, key=lambda c: c.accuracy_cost - c.mean_iou_cost)[:6]


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
    averaged = AveragedCounts(_as_images(counts, len(names), protocol), protocol, include)
    total, ious, recalls = averaged.total, averaged.mean_of(iou), averaged.mean_of(recall)
    accuracy = float(pixel_accuracy(total))
    model = Scores(accuracy, ious.value)
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
    if isinstance(tally, Tally) and tally.table.ndim > 2:
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


def _as_images(counts: Counts, num_names: int, protocol: Protocol) -> Counts:
    shape = counts.tp.shape
    if shape[-1:] != (num_names,) or len(shape) > 2:
        msg = f"counts have shape {shape}, but there are {num_names} class names"
        raise ValueError(msg)
    if len(shape) == 1 and protocol.needs_images:
        msg = (
            f"protocol {protocol.name!r} averages over images and needs their counts, "
            "shape (N, C); the counts given are those of the whole data set"
        )
        raise ValueError(msg)
    return counts[None] if len(shape) == 1 else counts


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
