"""What an explanation holds, and how it is said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from segiou._fragments import sentence_list
from segiou.imbalance import wording
from segiou.imbalance.baselines import Baseline
from segiou.imbalance.plain import plain

__all__ = ["ClassBalance", "Imbalance"]


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
        """In the truth, but answered on no pixel."""
        return self.share > 0 and self.predicted_share == 0

    @property
    def predicted_only(self) -> bool:
        """Answered, but not in the truth: nothing but false positives."""
        return self.share == 0 and self.predicted_share > 0


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Pixel accuracy against mean IoU, and what the difference is made of.

    Attributes
    ----------
    protocol : str
        The rule of both means.
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
        Answering the most frequent class everywhere; drawing each pixel's
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
        """Classes of the truth that the model answers nowhere."""
        return tuple(c.name for c in self.classes if c.never_predicted)

    @property
    def predicted_only(self) -> tuple[str, ...]:
        """Classes that the model answers though the truth has none of them."""
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
        """Say it in words, rounded to a tenth of a point."""
        if not self.pixels:
            return ["There are no valid pixels, so there is nothing to explain."]
        said = [_gap_sentence(self), _baseline_sentence(self)]
        if self.never_predicted:
            said.append(_never_sentence(self))
        if self.predicted_only:
            said.append(_only_sentence(self))
        return said + [_class_sentence(c) for c in _telling(self)]


def _gap_sentence(found: Imbalance) -> str:
    return (
        f"Pixel accuracy is {wording.percent(found.pixel_accuracy)}, mean IoU over "
        f"{wording.plural(found.mean_iou_classes, 'class', 'classes')} "
        f"{wording.percent(found.mean_iou)}: a gap of {wording.points(found.gap)} points, "
        f"{wording.points(found.gap_imbalance)} from imbalance (in accuracy pixels vote, "
        f"in the mean classes) and {wording.points(found.gap_false_positives)} from false "
        "positives, which accuracy does not charge."
    )


def _baseline_sentence(found: Imbalance) -> str:
    majority = found.majority
    return (
        f"Answering {wording.called(str(majority.answer))} everywhere would give a pixel accuracy "
        f"of {wording.percent(majority.pixel_accuracy)} and a mean IoU of "
        f"{wording.percent(majority.mean_iou)}; {_skill_clause(majority)}."
    )


def _skill_clause(majority: Baseline) -> str:
    skills = majority.accuracy_skill, majority.mean_iou_skill
    in_accuracy, in_iou = map(wording.percent, skills)
    if any(map(math.isnan, skills)):
        return "where that is perfect, no score of a model says anything"
    if min(skills) < 0:
        return (
            f"the skill of the model over that is {in_accuracy} in accuracy and {in_iou} in mean "
            "IoU (0 % is no better, 100 % perfect)"
        )
    return (
        f"from there to a perfect score the model has come {in_accuracy} of the way in accuracy "
        f"and {in_iou} in mean IoU"
    )


def _never_sentence(found: Imbalance) -> str:
    never = [c for c in found.classes if c.never_predicted]
    counted = sum(c.mean_iou_lost > 0 for c in never)
    lost_accuracy = sum(c.accuracy_lost for c in never)
    lost_iou = sum(c.mean_iou_lost for c in never)
    return (
        f"The model never predicts {wording.classes(found.never_predicted)}. "
        f"That is {wording.percent(sum(c.share for c in never))} of the pixels, so pixel "
        f"accuracy loses {wording.points(lost_accuracy)} points, but {counted} of "
        f"{wording.plural(found.mean_iou_classes, 'class', 'classes')}, so mean IoU loses "
        f"{wording.points(lost_iou)} points."
    )


def _only_sentence(found: Imbalance) -> str:
    names = found.predicted_only
    them = "it has" if len(names) == 1 else "they have"
    return (
        f"The truth has no pixel of {wording.classes(names)}, but the model answers "
        f"{'it' if len(names) == 1 else 'them'}: {them} an IoU of 0 and no recall, so mean IoU "
        f"covers {wording.plural(found.mean_iou_classes, 'class', 'classes')} and mean accuracy "
        f"{found.mean_accuracy_classes}."
    )


def _class_sentence(balance: ClassBalance) -> str:
    return (
        f"{wording.called(balance.name)}: {wording.percent(balance.share)} of pixels; "
        "losing it altogether costs "
        f"{wording.points(balance.accuracy_cost)} points of accuracy and "
        f"{wording.points(balance.mean_iou_cost)} of mean IoU."
    )


def _telling(found: Imbalance) -> list[ClassBalance]:
    """Up to six predicted classes with the widest step from cost in PA to cost in mIoU."""
    shown = [
        c
        for c in found.classes
        if c.mean_iou_cost > c.accuracy_cost and not c.never_predicted and c.share > 0
    ]
    return sorted(shown, key=lambda c: c.accuracy_cost - c.mean_iou_cost)[:6]
