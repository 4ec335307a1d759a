"""How classes and images are averaged: one set of masks, several "mIoU".

A :class:`Protocol` says over what ratios are taken (the data set, each image,
each class in each image), what a class without any pixel counts as, and which
classes take part. The presets reproduce what other programs print; every
report names the one it used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_callable, check_choice, check_kind
from segiou._support.text import did_you_mean
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.per_class import dice
from segiou.metrics.ratio import Floats, included, ratio

Unit = Literal["dataset", "image", "image-class", "class"]
Absent = Literal["skip", "zero", "one", "nan"]
Over = Literal["occurring", "truth"]
Empty = Literal["nan", "zero"]
Ignored = Literal["keep", "exclude"]
Groups = Literal["all", "grouped"]

_UNIT_WORDS = {
    "dataset": "the pixels of all images are added, then scores are computed",
    "image": "scores are computed per image, averaged over its classes, then over images",
    "image-class": "scores are computed per image and class, then all are averaged",
    "class": "scores are computed per image, averaged per class over images, then over classes",
}
_ABSENT_WORDS = {
    "skip": "do not count",
    "zero": "count 0",
    "one": "count 1",
    "nan": "make the mean undefined",
}
_CHOICES = {
    "unit": Unit,
    "absent": Absent,
    "absent_dice": Absent,
    "over": Over,
    "empty": Empty,
    "ignored": Ignored,
    "groups": Groups,
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
    """How a program averages over classes and images.

    Attributes
    ----------
    name : str
        Name of the preset, or ``"custom"``.
    whose : str
        The programs that average so.
    unit : {"dataset", "image", "image-class", "class"}
        Where ratios are taken.
    absent : {"skip", "zero", "one", "nan"}
        What 0/0 counts as in a mean. Where the unit is ``"class"``, an image
        whose ratio is 0/0 is always skipped, and this is about classes that
        have a ratio in no image.
    absent_dice : {"skip", "zero", "one", "nan"}, optional
        What 0/0 counts as in a mean of Dice, where that differs.
    over : {"occurring", "truth"}
        Classes that take part: those in truth or prediction, or only those in
        the truth (of the data set, or of each image).
    empty : {"nan", "zero"}
        Value of a mean in which no class takes part.
    ignored : {"keep", "exclude"}
        Whether a declared class takes part whose truth pixels are all ignored.
        It can still be predicted.
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
    empty: Empty = "nan"
    ignored: Ignored = "keep"
    groups: Groups = "all"
    absent_dice: Absent | None = None

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            if (word := getattr(self, field)) is not None or field != "absent_dice":
                check_choice(field, word, get_args(choices))

    def of_metric(self, metric: Callable[[Counts], Floats]) -> Protocol:
        """The protocol as it averages a metric.

        Parameters
        ----------
        metric : callable
            A per-class metric of :mod:`segiou.metrics`.

        Returns
        -------
        Protocol
        """
        if self.absent_dice is None or metric is not dice:
            return self
        return replace(self, absent=self.absent_dice, absent_dice=None)

    @property
    def description(self) -> str:
        """The protocol in words."""
        per_image = self.unit in ("image", "image-class")
        never = "are not in an image" if per_image else "never occur"
        parts = [
            _UNIT_WORDS[self.unit],
            f"classes that {never} {_ABSENT_WORDS[self.absent]}"
            + (f", for Dice {_ABSENT_WORDS[self.absent_dice]}" if self.absent_dice else ""),
            "only classes in the truth take part" if self.over == "truth" else "",
            "a mean without any class is 0" if self.empty == "zero" else "",
            "classes that are ignored take no part" if self.ignored == "exclude" else "",
            "groups leave out truth that is in no group" if self.groups == "grouped" else "",
        ]
        return "; ".join(part for part in parts if part)

    @property
    def needs_images(self) -> bool:
        """Whether the protocol needs counts per image."""
        return self.unit != "dataset"

    def include_of(self, scored: Any) -> NDArray[np.bool_]:
        """Classes of a matrix, run or report that may take part in a mean, (C,).

        Parameters
        ----------
        scored : array_like
            A matrix, run or report.

        Returns
        -------
        ndarray of bool
        """
        include: NDArray[np.bool_] = np.array(scored.include, dtype=bool)
        if self.ignored == "exclude" and (options := getattr(scored, "options", None)) is not None:
            include &= [not set(c.values) <= set(options.ignore) for c in options.labels.classes]
        return include

    def mean(
        self,
        metric: Callable[[Counts], Floats],
        counts: Counts,
        *,
        include: Any = None,
        per_image: Counts | None = None,
    ) -> Mean:
        """Average a per-class metric.

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

        Returns
        -------
        Mean

        Raises
        ------
        ValueError
            If the protocol needs counts per image and there are none, or they
            are not of these classes.
        """
        check_counts(counts)
        check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
        num_classes = counts.tp.shape[-1]
        scored = counts
        if self.needs_images:
            if per_image is None:
                msg = (
                    f"protocol {self.name!r} averages over images and needs their counts; "
                    "score with segiou.score or segiou.score_folder, which keep them"
                )
                raise ValueError(msg)
            scored, shape = per_image, per_image.tp.shape
            if len(shape) != 2 or shape[1] != num_classes:
                msg = f"counts per image must have shape (N, {num_classes}), got {shape}"
                raise ValueError(msg)
        protocol = self.of_metric(metric)
        values, part = protocol.values_taken(metric(scored), scored.truth > 0, include)
        if self.unit == "class":
            value = protocol.mean_of_classes(ratio(values.sum(0), part.sum(0)), include)
        elif self.unit == "image":
            images = ratio(values.sum(1), part.sum(1))[part.any(1)]
            value = self.divide(images.sum(), len(images))
        else:
            value = self.divide(values.sum(), part.sum())
        covered = np.atleast_2d(part).any(0)
        reasons = _reasons(counts, included(include, num_classes))
        skipped = {c: str(reasons[c]) for c in np.flatnonzero(~covered).tolist()}
        return Mean(float(value), int(covered.sum()), skipped)

    def values_taken(
        self, values: Floats, in_truth: NDArray[np.bool_], include: Any = None
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Values with 0/0 replaced by what it counts as, and which of them are averaged.

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
        absent = "skip" if self.unit == "class" else self.absent
        if absent in ("zero", "one"):
            # Not only the absent: the recall of a class that is only predicted
            # is 0/0 too.
            values = np.where(np.isnan(values), _FILL[absent], values)
        part = np.array(np.broadcast_to(included(include, values.shape[-1]), values.shape))
        if self.over == "truth":
            part &= in_truth
        if absent != "nan":
            part &= ~np.isnan(values)
        return np.where(part, values, 0.0), part

    def mean_of_classes(self, values: Floats, include: Any = None) -> Floats:
        """Average means per class over the last axis, where the unit is ``"class"``.

        Parameters
        ----------
        values : ndarray of float, shape (..., C)
            The mean of each class over its images; NaN where it has none.
        include : array_like of bool, shape (C,), optional
            Classes that may take part.

        Returns
        -------
        ndarray of float, shape (...)
        """
        # As the classes of a data set are averaged.
        whole = replace(self, unit="dataset")
        filled, part = whole.values_taken(values, ~np.isnan(values), include)
        return self.divide(filled.sum(-1), part.sum(-1))

    def divide(self, total: Any, number: Any) -> Floats:
        """Divide sums of values by their number; a mean over nothing is NaN, or 0 by ``empty``.

        Parameters
        ----------
        total : array_like
            Sums of values.
        number : array_like
            How many values were added up.

        Returns
        -------
        float or ndarray
        """
        means = ratio(total, number)
        return np.where(np.asarray(number) == 0, 0.0, means) if self.empty == "zero" else means


def _reasons(counts: Counts, taken: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Why each class would take no part, (C,)."""
    in_truth, predicted = counts.truth > 0, counts.pred > 0
    conditions = [~taken, in_truth & predicted, in_truth, predicted]
    reasons = ["excluded", "undefined", "never predicted", "not in truth"]
    return np.select(conditions, reasons, "absent")


_PRESETS = (
    Protocol("segiou", "segiou's default; data set counts, absent classes skipped"),
    Protocol("cityscapes", "cityscapesScripts, IoU of classes and categories", groups="grouped"),
    Protocol("mmsegmentation", "mmsegmentation's IoUMetric, mIoU"),
    Protocol("huggingface", "Hugging Face evaluate, mean_iou"),
    Protocol("keras", "Keras MeanIoU", empty="zero"),
    Protocol("torchmetrics", "torchmetrics MulticlassJaccardIndex, macro", ignored="exclude"),
    Protocol("torchmetrics-segmentation", "torchmetrics segmentation.MeanIoU", unit="image-class"),
    Protocol("detectron2", "detectron2 SemSegEvaluator", over="truth"),
    Protocol("coco-stuff", "COCO-Stuff evaluation", over="truth"),
    Protocol("ade20k", "the CSAIL ADE20K development kit", absent="zero"),
    Protocol(
        "semantickitti", "semantic-kitti-api, evaluate_semantics", absent="zero", ignored="exclude"
    ),
    Protocol("nuscenes", "nuscenes-devkit, evaluation of lidarseg", ignored="exclude"),
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
    Protocol(
        "nnunet", "nnU-Net v2, foreground_mean of the labels scored", unit="class", absent="nan"
    ),
    Protocol("monai", "MONAI MeanIoU, reduction mean", unit="image", over="truth"),
    Protocol("totalsegmentator", "TotalSegmentator, evaluate", unit="class", over="truth"),
    Protocol("kits23", "the challenge KiTS 2023", unit="image-class", absent="one"),
    Protocol("flare22", "the challenges FLARE 2022 and 2023", unit="image-class", absent="one"),
    Protocol(
        "metricsreloaded",
        "MetricsReloaded, label_aggregation, then the mean over cases",
        unit="image",
        absent_dice="one",
    ),
)

#: The presets by name.
PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in _PRESETS}


def load_protocol(protocol: Protocol | str) -> Protocol:
    """Find a preset by name; a protocol is returned as it is.

    Installed packages add protocols by the entry point ``segiou.protocols``.

    Parameters
    ----------
    protocol : Protocol or str
        A protocol, or the name of one.

    Returns
    -------
    Protocol

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
    if protocol in PROTOCOLS:
        return PROTOCOLS[protocol]
    from segiou._support.optional import find_plugin, plugin_names

    if (added := find_plugin("protocols", protocol, Protocol)) is not None:
        found: Protocol = added
        return found
    known = (*PROTOCOLS, *plugin_names("protocols"))
    msg = f"no protocol {protocol!r}; there are {', '.join(known)}{did_you_mean(protocol, known)}"
    raise ValueError(msg)
