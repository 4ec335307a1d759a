"""One model's scores taken apart, class by class."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._arguments import read_several, refuse_kind
from segiou.counts import ChannelTally, Counts
from segiou.imbalance.baselines import majority_baseline, random_baseline
from segiou.imbalance.findings import ClassBalance, Imbalance
from segiou.imbalance.rule import Case, Scores, Terms
from segiou.metrics import iou, pixel_accuracy, recall, share
from segiou.metrics._include import included
from segiou.metrics._ratio import ratio
from segiou.protocols import Protocol, load_protocol

__all__ = ["explain"]


class Scored(typing.Protocol):
    """What an explanation needs of a run, a confusion matrix or a report."""

    @property
    def counts(self) -> Counts: ...
    @property
    def class_names(self) -> tuple[str, ...]: ...
    @property
    def include(self) -> NDArray[np.bool_]: ...


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
        Rule of the means; by default that of the run or report, or ``"segiou"``.

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
    The model never predicts cell. That is 5.0 % of the pixels, so pixel accuracy
    loses 5.0 points, but 1 of 2 classes, so mean IoU loses 50.0 points.
    """
    if not isinstance(counts, Counts):
        return _explain_scored(counts, class_names, include, protocol)
    if class_names is None:
        raise refuse_kind("class_names", None, "given with counts, one a class")
    names = tuple(read_several("class_names", class_names, "a sequence of names, one a class"))
    rule = load_protocol("segiou" if protocol is None else protocol)
    case = Case(_as_images(counts, len(names), rule), rule, include)
    total, ious, recalls = case.total, case.terms(iou), case.terms(recall)
    accuracy = float(pixel_accuracy(total))
    model = Scores(accuracy, ious.mean)
    return Imbalance(
        protocol=rule.name,
        pixels=int(total.truth.sum()),
        pixel_accuracy=accuracy,
        mean_accuracy=recalls.mean,
        mean_iou=ious.mean,
        mean_accuracy_classes=recalls.classes,
        mean_iou_classes=ious.classes,
        gap=accuracy - ious.mean,
        gap_imbalance=accuracy - recalls.mean,
        gap_false_positives=recalls.mean - ious.mean,
        classes=_classes(case, names, ious, recalls),
        majority=majority_baseline(case, names, model),
        random=random_baseline(case, model),
    )


def _explain_scored(
    scored: Scored,
    class_names: Sequence[str] | None,
    include: Any,
    protocol: Protocol | str | None,
) -> Imbalance:
    if not all(hasattr(scored, name) for name in ("counts", "class_names", "include")):
        raise refuse_kind("counts", scored, "segiou.Counts, a run, a confusion matrix or a report")
    if isinstance(getattr(scored, "tally", None), ChannelTally):
        msg = (
            "overlapping channels have no pixel accuracy over classes to explain; explain one "
            "channel against its rest: counts.one_vs_rest()"
        )
        raise ValueError(msg)
    images = getattr(scored, "per_image", None)  # a report's, where it has them
    return explain(
        scored.counts if images is None else images,
        scored.class_names if class_names is None else class_names,
        include=scored.include if include is None else include,
        protocol=getattr(scored, "protocol", None) if protocol is None else protocol,
    )


def _as_images(counts: Counts, num_names: int, rule: Protocol) -> Counts:
    shape = counts.tp.shape
    if shape[-1:] != (num_names,) or len(shape) > 2:
        msg = f"counts have shape {shape}, but there are {num_names} class names"
        raise ValueError(msg)
    if len(shape) == 1 and rule.needs_images:
        msg = (
            f"protocol {rule.name!r} averages over images and needs their counts, "
            "shape (N, C); the counts given are those of the whole data set"
        )
        raise ValueError(msg)
    return counts[None] if len(shape) == 1 else counts


def _classes(
    case: Case, names: tuple[str, ...], ious: Terms, recalls: Terms
) -> tuple[ClassBalance, ...]:
    total = case.total
    pixels = total.truth.sum()
    taken = included(case.include, len(names))
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
