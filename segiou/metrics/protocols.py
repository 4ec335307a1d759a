"""By which rule classes and images are averaged: one set of masks, several "mIoU".

A :class:`Protocol` says over what ratios are taken (the data set, each image,
each class in each image), what a class without any pixel counts as, and which
classes take part. The presets reproduce what other programs print; every
report names the one it used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_callable, check_choice, check_kind
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.ratio import Floats, included, ratio

__all__ = ["PROTOCOLS", "Mean", "Protocol", "load_protocol"]

Unit = Literal["dataset", "image", "image-class"]
Absent = Literal["skip", "zero", "one", "nan"]
Over = Literal["occurring", "truth"]
Groups = Literal["all", "grouped"]

_UNIT_WORDS = {
    "dataset": "counts summed over the data set, then divided",
    "image": "divided per image, averaged over its classes, then over images",
    "image-class": "divided per image and class, averaged over all these pairs",
}
_ABSENT_WORDS = {
    "skip": "a class in neither truth nor prediction is skipped",
    "zero": "a class in neither truth nor prediction counts 0",
    "one": "a class in neither truth nor prediction counts 1",
    "nan": "a class in neither truth nor prediction makes the mean undefined",
}
_FILL = {"zero": 0.0, "one": 1.0}


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and what it covers.

    Attributes
    ----------
    value : float
        NaN where nothing has a value.
    classes : int
        How many classes take part.
    skipped : mapping of int to str
        Class index → why it takes no part: ``"excluded"``, ``"absent"`` (in
        neither truth nor prediction), ``"not in truth"`` (only predicted),
        ``"never predicted"`` (the precision of such a class) or
        ``"undefined"`` (the specificity of a class that is everywhere).
    """

    value: float
    classes: int
    skipped: dict[int, str]


@dataclass(frozen=True, slots=True)
class Protocol:
    """A rule of averaging.

    Attributes
    ----------
    name : str
        Name of the preset, or ``"custom"``.
    whose : str
        The programs that use this rule.
    unit : {"dataset", "image", "image-class"}
        Where ratios are taken.
    absent : {"skip", "zero", "one", "nan"}
        What 0/0 counts as in a mean.
    over : {"occurring", "truth"}
        Classes that take part: those in truth or prediction, or only those in
        the truth (of the data set, or of each image).
    groups : {"all", "grouped"}
        Pixels that groups of classes are scored over: all valid ones, or those
        whose truth is in a group.

    Raises
    ------
    ValueError
        If one of these is not one of its words.

    Notes
    -----
    A preset is proven for mean IoU. The means of other metrics follow the same
    words, which is what most of the programs do and not what all of them do:
    PaddleSeg counts an absent class as IoU 1 but as Dice 0.

    Examples
    --------
    >>> counts = Counts(tp=[9, 0, 0], fp=[0, 1, 0], fn=[1, 0, 0], tn=[0, 9, 10])
    >>> from segiou.metrics import iou
    >>> load_protocol("segiou").mean(iou, counts)
    Mean(value=0.45, classes=2, skipped={2: 'absent'})
    >>> load_protocol("detectron2").mean(iou, counts)
    Mean(value=0.9, classes=1, skipped={1: 'not in truth', 2: 'absent'})
    """

    name: str
    whose: str
    unit: Unit = "dataset"
    absent: Absent = "skip"
    over: Over = "occurring"
    groups: Groups = "all"

    def __post_init__(self) -> None:
        fields = (("unit", Unit), ("absent", Absent), ("over", Over), ("groups", Groups))
        for field, words in fields:
            check_choice(field, getattr(self, field), get_args(words))

    @property
    def rule(self) -> str:
        """The rule in words."""
        only = "; only classes in the truth take part" if self.over == "truth" else ""
        return f"{_UNIT_WORDS[self.unit]}; {_ABSENT_WORDS[self.absent]}{only}"

    @property
    def needs_images(self) -> bool:
        """Whether the rule needs counts per image."""
        return self.unit != "dataset"

    def mean(
        self,
        metric: Callable[[Counts], Floats],
        counts: Counts,
        *,
        include: Any = None,
        per_image: Counts | None = None,
    ) -> Mean:
        """Average a per-class metric by this rule.

        Parameters
        ----------
        metric : callable
            A per-class metric of :mod:`segiou.metrics`.
        counts : Counts of shape (C,)
            Counts of the data set.
        include : array_like of bool, shape (C,), optional
            Classes that may take part.
        per_image : Counts of shape (N, C), optional
            Counts of each image; needed where ``needs_images``.

        Raises
        ------
        ValueError
            If the rule needs counts per image and there are none, or they are
            not of these classes.
        """
        check_counts(counts)
        check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
        num_classes = counts.tp.shape[-1]
        scored = self._images(per_image, num_classes) if self.needs_images else counts
        values, part = self.values_taken(metric(scored), scored.truth > 0, include)
        value, covered = self._mean(values, part)
        taken = included(include, num_classes)
        skipped = {
            c: _why_skipped(counts, c, bool(taken[c])) for c in np.flatnonzero(~covered).tolist()
        }
        return Mean(value, int(covered.sum()), skipped)

    def _images(self, per_image: Counts | None, num_classes: int) -> Counts:
        if per_image is None:
            msg = (
                f"protocol {self.name!r} averages over images and needs their counts; "
                "score with segiou.score or segiou.score_folder, which keep them"
            )
            raise ValueError(msg)
        if per_image.tp.ndim != 2 or per_image.tp.shape[1] != num_classes:
            msg = f"counts per image must have shape (N, {num_classes}), got {per_image.tp.shape}"
            raise ValueError(msg)
        return per_image

    def values_taken(
        self, values: Floats, in_truth: NDArray[np.bool_], include: Any = None
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Values with 0/0 replaced by the rule, and which of them are averaged.

        Parameters
        ----------
        values : ndarray of float, shape (..., C)
            A per-class metric.
        in_truth : ndarray of bool, shape (..., C)
            Whether the class occurs in the truth.
        include : array_like of bool, shape (C,), optional
            Classes that may take part.

        Returns
        -------
        values : ndarray of float, shape (..., C)
            0 where nothing is averaged; NaN only where it makes the mean NaN.
        part : ndarray of bool, shape (..., C)
        """
        if self.absent in ("zero", "one"):
            # Not only the absent: the recall of a class that is only predicted
            # is 0/0 too.
            values = np.where(np.isnan(values), _FILL[self.absent], values)
        part = np.array(np.broadcast_to(included(include, values.shape[-1]), values.shape))
        if self.over == "truth":
            part &= in_truth
        if self.absent != "nan":
            part &= ~np.isnan(values)
        return np.where(part, values, 0.0), part

    def _mean(self, values: Floats, part: NDArray[np.bool_]) -> tuple[float, NDArray[np.bool_]]:
        """The mean, and which classes it covers."""
        if self.unit == "dataset":
            return float(ratio(values.sum(), part.sum())), part
        covered = np.asarray(part.any(0))
        if self.unit == "image-class":
            return float(ratio(values.sum(), part.sum())), covered
        images = ratio(values.sum(1), part.sum(1))
        return float(ratio(images[part.any(1)].sum(), part.any(1).sum())), covered


def _why_skipped(counts: Counts, index: int, included: bool) -> str:
    if not included:
        return "excluded"
    in_truth, predicted = counts.truth[index] > 0, counts.pred[index] > 0
    if in_truth and predicted:
        return "undefined"
    return "never predicted" if in_truth else "not in truth" if predicted else "absent"


_PRESETS = (
    Protocol("segiou", "segiou's default; data set counts, absent classes skipped"),
    Protocol("cityscapes", "cityscapesScripts, IoU of classes and categories", groups="grouped"),
    Protocol("mmsegmentation", "mmsegmentation's IoUMetric, mIoU"),
    Protocol("huggingface", "Hugging Face evaluate, mean_iou"),
    Protocol("keras", "Keras MeanIoU"),
    Protocol("torchmetrics", "torchmetrics MulticlassJaccardIndex, macro"),
    Protocol("torchmetrics-segmentation", "torchmetrics segmentation.MeanIoU", unit="image-class"),
    Protocol("detectron2", "detectron2 SemSegEvaluator", over="truth"),
    Protocol("coco-stuff", "COCO-Stuff evaluation", over="truth"),
    Protocol("ade20k", "the CSAIL ADE20K development kit", absent="zero"),
    Protocol("ignite", "PyTorch-Ignite mIoU", absent="zero"),
    Protocol("paddleseg", "PaddleSeg", absent="one"),
    Protocol("smp", "segmentation_models.pytorch, macro", absent="one"),
    Protocol(
        "smp-imagewise",
        "segmentation_models.pytorch, macro-imagewise",
        unit="image-class",
        absent="one",
    ),
    Protocol("torchvision", "the torchvision reference script", absent="nan"),
    Protocol("sklearn", "scikit-learn jaccard_score, macro, labels=range(C)", absent="zero"),
    Protocol("monai", "MONAI MeanIoU, reduction mean", unit="image", over="truth"),
)

#: The presets by name.
PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in _PRESETS}


def load_protocol(protocol: Protocol | str) -> Protocol:
    """Find a preset by name; a protocol is returned as it is.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If there is no such preset; the message lists them.
    """
    if isinstance(protocol, Protocol):
        return protocol
    check_kind("protocol", protocol, str, "a Protocol or the name of one")
    try:
        return PROTOCOLS[protocol]
    except KeyError:
        msg = f"no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}"
        raise ValueError(msg) from None
