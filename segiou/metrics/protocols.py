"""Averaging protocols: how classes and images are combined into "mIoU".

A :class:`Protocol` defines where ratios are taken (over the data set, each image,
or each class in each image), what an absent class counts as, and which classes
are averaged. The presets reproduce the scores of other tools; every report names
its protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_callable, check_choice, check_kind
from segiou._support.text import did_you_mean, nouns
from segiou.counting.arrays import AtLeast
from segiou.counting.counts import ConfusionCounts, Counts, check_counts
from segiou.labels.label_set import ONE_CLASS
from segiou.metrics.per_class import dice
from segiou.metrics.ratio import Floats, included, ratio

Unit = Literal["dataset", "image", "image-class", "class"]
Absent = Literal["skip", "zero", "one", "nan"]
Over = Literal["occurring", "truth"]
Empty = Literal["nan", "zero"]
Ignored = Literal["keep", "exclude"]
Groups = Literal["all", "grouped"]
AtThreshold = Literal["negative", "positive"]
Background = Literal["keep", "exclude"]
Undeclared = Literal["miss", "drop"]

_UNIT_WORDS = {
    "dataset": "all {pixel}s are pooled over the {image}s, then scored",
    "image": "scored per {image}, averaged over classes, then over {image}s",
    "image-class": "scored per {image} and class, all values averaged",
    "class": "scored per {image}, averaged over {image}s per class, then over classes",
}
_ABSENT_WORDS = {
    "skip": "are skipped",
    "zero": "count as 0",
    "one": "count as 1",
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
    "at_threshold": AtThreshold,
    "background": Background,
    "undeclared": Undeclared,
}
_FILL = {"zero": 0.0, "one": 1.0}


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and the classes that it covers.

    Attributes
    ----------
    value : float
        The mean; NaN if no class has a value.
    classes : int
        Number of classes averaged.
    skipped : mapping of int to str
        Reason for each class that was not averaged, by index: ``"excluded"``,
        ``"absent"`` (in neither truth nor prediction), ``"not in truth"`` (only
        predicted), ``"never predicted"`` (has no precision), ``"undefined"``
        (such as the specificity of a class that covers everything) or ``"left out
        by the protocol"`` (has a value, but a custom protocol skips it).
    """

    value: float
    classes: int
    skipped: dict[int, str]


@dataclass(frozen=True, slots=True)
class Protocol:
    """How scores are averaged over classes and images.

    Attributes
    ----------
    name : str
        Name of the preset, or ``"custom"``.
    whose : str
        The tools that average this way.
    unit : {"dataset", "image", "image-class", "class"}
        Where ratios are taken.
    absent : {"skip", "zero", "one", "nan"}
        Value of 0/0 in a mean. With unit ``"class"``, images whose ratio is 0/0
        are always skipped, and this applies to classes without a ratio in any
        image.
    absent_dice : {"skip", "zero", "one", "nan"}, optional
        Value of 0/0 in a mean of Dice, if different.
    over : {"occurring", "truth"}
        Classes averaged: those in truth or prediction, or only those in the
        truth (of the data set, or of each image).
    empty : {"nan", "zero"}
        Value of a mean over no classes.
    ignored : {"keep", "exclude"}
        Whether a declared class whose truth pixels are all ignored is averaged.
        Such a class can still be predicted.
    groups : {"all", "grouped"}
        Pixels over which groups of classes are scored: all valid pixels, or
        those whose truth is in a group.
    at_threshold : {"negative", "positive"}
        Whether a score equal to the threshold is negative (``>``) or positive
        (``>=``); see :meth:`threshold`.
    background : {"keep", "exclude"}
        Whether the background of a single class is averaged; of label sets from a
        ``data.yaml`` with one name.
    undeclared : {"miss", "drop"}
        Whether undeclared predictions, which ``unassigned="count"`` accepts, are
        missed, or their pixels are ignored.

    Raises
    ------
    ValueError
        If a field has an unknown value.

    Notes
    -----
    Presets are tested for mean IoU. The means of other metrics use the same
    rules, as most tools do, but not all: mmsegmentation's mFscore drops classes
    that are never found.

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
    at_threshold: AtThreshold = "negative"
    background: Background = "keep"
    undeclared: Undeclared = "miss"

    def __post_init__(self) -> None:
        for field in ("name", "whose"):
            check_kind(field, getattr(self, field), str, "text")
        for field, choices in _CHOICES.items():
            if (word := getattr(self, field)) is not None or field != "absent_dice":
                check_choice(field, word, get_args(choices))

    def of_metric(self, metric: Callable[[Counts], Floats]) -> Protocol:
        """The protocol for means of a metric.

        Parameters
        ----------
        metric : callable
            A per-class metric of :mod:`segiou.metrics`.
        """
        if self.absent_dice is None or metric is not dice:
            return self
        return replace(self, absent=self.absent_dice, absent_dice=None)

    def threshold(self, value: float) -> float:
        """A threshold for scores that treats equal scores as this protocol does.

        Pass it as ``threshold`` to :meth:`segiou.ConfusionMatrix.update` or
        :func:`segiou.counting.scores_to_labels`; hooks do so themselves.

        Parameters
        ----------
        value : float
            The threshold.

        Examples
        --------
        >>> from segiou.counting import scores_to_labels
        >>> smp = load_protocol("smp")
        >>> scores_to_labels([0.4, 0.5], threshold=smp.threshold(0.5)).tolist()
        [False, True]
        """
        return AtLeast(value) if self.at_threshold == "positive" else value

    @property
    def description(self) -> str:
        """A description of the protocol."""
        return self._description("pixels")

    def _description(self, pixel_unit: str) -> str:
        """A description for counts with this unit."""
        pixel, image = nouns(pixel_unit)
        per_image = self.unit in ("image", "image-class")
        never = (
            f"absent from {'an' if image == 'image' else 'a'} {image}"
            if per_image
            else "that never occur"
        )
        parts = [
            _UNIT_WORDS[self.unit].format(pixel=pixel, image=image),
            f"classes {never} {_ABSENT_WORDS[self.absent]}"
            + (f" (Dice: {_ABSENT_WORDS[self.absent_dice]})" if self.absent_dice else ""),
            "only classes present in the truth count" if self.over == "truth" else "",
            "an empty mean is 0" if self.empty == "zero" else "",
            "ignored classes are excluded from the mean" if self.ignored == "exclude" else "",
            f"groups skip {pixel}s whose truth is in no group" if self.groups == "grouped" else "",
            "undeclared predictions are ignored" if self.undeclared == "drop" else "",
            "a single class is scored as foreground" if self.background == "exclude" else "",
        ]
        return "; ".join(part for part in parts if part)

    @property
    def needs_images(self) -> bool:
        """Whether the protocol needs counts per image."""
        return self.unit != "dataset"

    def tally_of(self, tally: ConfusionCounts) -> ConfusionCounts:
        """Counts without the pixels that the protocol ignores.

        Parameters
        ----------
        tally : ConfusionCounts
            Counts with undeclared predictions.
        """
        if self.undeclared == "miss" or not tally.unassigned.any():
            return tally
        ignored = tally.ignored + tally.unassigned.sum(-1)
        return ConfusionCounts.of_matrix(tally.matrix, ignored=ignored)

    def include_of(self, scored: Any) -> NDArray[np.bool_]:
        """Classes of a matrix, run or report that can be averaged, (C,).

        Parameters
        ----------
        scored : ConfusionMatrix, ChannelCounts, Run or Report
            Counts with their classes.
        """
        include: NDArray[np.bool_] = np.array(scored.include, dtype=bool)
        options = getattr(scored, "options", None)
        has_values = getattr(scored, "_has_matrix", True)  # channels have no values of classes
        if self.ignored == "exclude" and options is not None and has_values:
            include &= [not set(c.values) <= set(options.ignore) for c in options.labels.classes]
        labels = getattr(getattr(scored, "options", None), "labels", None)
        if self.background == "exclude" and labels is not None:
            include[0] &= not labels.source.startswith(ONE_CLASS)
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
            Classes to average over; all by default.
        per_image : Counts of shape (N, C), optional
            Counts of each image; required if ``needs_images``.

        Raises
        ------
        ValueError
            If the protocol needs counts per image and there are none, or their
            number of classes differs.
        """
        value, part = self._mean(metric, counts, include, per_image)
        covered = np.atleast_2d(part).any(0)
        reasons = _reasons(counts, metric(counts), included(include, counts.tp.shape[-1]))
        skipped = {c: str(reasons[c]) for c in np.flatnonzero(~covered).tolist()}
        return Mean(value, int(covered.sum()), skipped)

    def _mean(
        self, metric: Callable[[Counts], Floats], counts: Counts, include: Any, per_image: Any
    ) -> tuple[float, NDArray[np.bool_]]:
        """The mean, and a mask of the values in it."""
        check_counts(counts)
        check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
        num_classes = counts.tp.shape[-1]
        scored = counts
        if self.needs_images:
            if per_image is None:
                msg = (
                    f"protocol {self.name!r} averages over images and needs per-image counts; "
                    "use segiou.score or segiou.score_folder"
                )
                raise ValueError(msg)
            scored, shape = per_image, per_image.tp.shape
            if len(shape) != 2 or shape[1] != num_classes:
                msg = f"counts per image must have shape (N, {num_classes}), got {shape}"
                raise ValueError(msg)
        values, part = self.taken(metric, scored, include)
        if self.unit == "image":
            images = ratio(values.sum(1), part.sum(1))[part.any(1)]
            return float(self.divide(images.sum(), len(images))), part
        if self.unit == "class":
            of_classes = ratio(values.sum(0), part.sum(0))
            values, part = self.of_metric(metric).taken_classes(of_classes, include)
        return float(self.divide(values.sum(), np.count_nonzero(part))), part

    def taken(
        self,
        metric: Callable[[Counts], Floats],
        counts: Counts,
        include: Any = None,
        xp: Any = np,
        values: Floats | None = None,
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Values of a metric with 0/0 replaced under this protocol, and a mask of those to average.

        Every mean asks here which classes it covers.

        Parameters
        ----------
        metric : callable
            A per-class metric of :mod:`segiou.metrics`.
        counts : Counts of shape (..., C)
            Counts per class, of the data set or of images.
        include : array_like of bool, shape (C,), optional
            Classes to average over; all by default.
        xp : module
            Module of the arrays: NumPy, or ``keras.ops``.
        values : ndarray of float, shape (..., C), optional
            The metric of these counts, if it is known.

        Returns
        -------
        values : ndarray of float, shape (..., C)
            0 for values that are not averaged; NaN only if it makes the mean NaN.
        part : ndarray of bool, shape (..., C)
            True for values that are averaged.
        """
        absent = "skip" if self.unit == "class" else self.of_metric(metric).absent
        in_truth = counts.truth > 0 if self.over == "truth" else None
        values = metric(counts) if values is None else values
        # Specificity is 1 for absent classes, which would raise the mean with each of them.
        occurs = counts.tp + counts.fp + counts.fn > 0
        values = xp.where(occurs, values, np.nan)
        return _filled(values, absent, in_truth, include, xp)

    def taken_classes(
        self, values: Floats, include: Any = None
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Means of classes with NaN replaced, and which to average, for the unit ``"class"``.

        Parameters
        ----------
        values, include
            As of :meth:`mean_of_classes`.

        Returns
        -------
        tuple of ndarray of shape (..., C)
            Values and part, as of :meth:`taken`.
        """
        has_images = ~np.isnan(values) if self.over == "truth" else None
        return _filled(values, self.absent, has_images, include)

    def mean_of_classes(self, values: Floats, include: Any = None) -> Floats:
        """Average the means of classes over the last axis, for the unit ``"class"``.

        Parameters
        ----------
        values : ndarray of float, shape (..., C)
            The mean of each class over its images; NaN if it has none.
        include : array_like of bool, shape (C,), optional
            Classes to average over; all by default.

        Returns
        -------
        ndarray of float, shape (...)
        """
        filled, part = self.taken_classes(values, include)
        return self.divide(filled.sum(-1), part.sum(-1))

    def pooled_mean(
        self,
        metric: Callable[[Counts], Floats],
        counts: Counts,
        include: Any = None,
        xp: Any = np,
        values: Floats | None = None,
    ) -> Floats:
        """Average a metric over the classes of pooled counts.

        Parameters
        ----------
        metric, counts, include, xp, values
            As of :meth:`taken`.

        Returns
        -------
        ndarray of float, shape (...)
        """
        values, part = self.taken(metric, counts, include, xp, values)
        number = xp.sum(xp.where(part, xp.ones_like(values), 0.0), axis=-1)
        return self.divide(xp.sum(values, axis=-1), number, xp)

    def divide(self, total: Any, number: Any, xp: Any = np) -> Floats:
        """Divide sums of values by their number; an empty mean is NaN, or 0 if ``empty`` is "zero".

        Parameters
        ----------
        total : array_like
            Sums of values.
        number : array_like
            Number of values in each sum.
        xp : module
            Module of the arrays.
        """
        means = ratio(total, number)
        if self.empty == "nan":
            return means
        filled: Floats = xp.where(number > 0, means, 0.0)
        return filled

    @property
    def for_pixels(self) -> Protocol:
        """The protocol for pooled counts: segiou's, if this one averages over images."""
        return load_protocol("segiou") if self.needs_images else self


def _filled(
    values: Floats, absent: Absent, in_truth: Any, include: Any, xp: Any = np
) -> tuple[Floats, NDArray[np.bool_]]:
    """Values with 0/0 replaced, and which of them are averaged."""
    undefined = xp.isnan(values)
    if absent in ("zero", "one"):
        # This applies to other classes than absent ones: the recall of a class that is only
        # predicted is also 0/0.
        values = xp.where(undefined, _FILL[absent], values)
    is_used = xp.logical_not(undefined) if absent == "skip" else xp.ones_like(undefined)
    part = xp.logical_and(is_used, included(include, values.shape[-1]))
    if in_truth is not None:
        part = xp.logical_and(part, in_truth)
    return xp.where(part, values, 0.0), part


def _reasons(counts: Counts, values: Floats, include: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Reason why each class would not be averaged, (C,)."""
    in_truth, predicted = counts.truth > 0, counts.pred > 0
    reasons = {
        "excluded": ~include,
        "left out by the protocol": in_truth & ~np.isnan(values),
        "undefined": in_truth & predicted,
        "never predicted": in_truth,
        "not in truth": predicted,
    }
    return np.select([*reasons.values()], [*reasons], "absent")


_PRESETS = (
    Protocol("segiou", "segiou's default; data set counts, absent classes skipped"),
    Protocol("cityscapes", "cityscapesScripts, IoU of classes and categories", groups="grouped"),
    Protocol("mmsegmentation", "mmsegmentation's IoUMetric, mIoU"),
    Protocol("huggingface", "Hugging Face evaluate, mean_iou"),
    Protocol("keras", "Keras MeanIoU", empty="zero", at_threshold="positive", undeclared="drop"),
    Protocol("torchmetrics", "torchmetrics MulticlassJaccardIndex, macro", ignored="exclude"),
    Protocol("torchmetrics-segmentation", "torchmetrics segmentation.MeanIoU", unit="image-class"),
    Protocol("detectron2", "detectron2 SemSegEvaluator", over="truth"),
    Protocol("coco-stuff", "COCO-Stuff evaluation", over="truth"),
    Protocol(
        "ultralytics",
        "Ultralytics, semantic segmentation",
        over="truth",
        empty="zero",
        background="exclude",
        undeclared="drop",
    ),
    Protocol("ade20k", "the CSAIL ADE20K development kit", absent="zero"),
    Protocol(
        "semantickitti", "semantic-kitti-api, evaluate_semantics", absent="zero", ignored="exclude"
    ),
    Protocol("nuscenes", "nuscenes-devkit, evaluation of lidarseg", ignored="exclude"),
    Protocol("ignite", "PyTorch-Ignite mIoU", absent="zero"),
    Protocol("paddleseg", "PaddleSeg", absent="one", absent_dice="zero"),
    Protocol("smp", "segmentation_models.pytorch, macro", absent="one", at_threshold="positive"),
    Protocol(
        "smp-imagewise",
        "segmentation_models.pytorch, macro-imagewise",
        unit="image-class",
        absent="one",
        at_threshold="positive",
    ),
    Protocol("torchvision", "the torchvision reference script", absent="nan"),
    Protocol("sklearn", "scikit-learn jaccard_score, macro, labels=range(C)", absent="zero"),
    Protocol(
        "nnunet", "nnU-Net v2, foreground_mean of the labels scored", unit="class", absent="nan"
    ),
    Protocol(
        "monai",
        "MONAI MeanIoU, reduction mean",
        unit="image",
        over="truth",
        at_threshold="positive",
    ),
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
    """Find a protocol by name; a :class:`Protocol` is returned unchanged.

    Installed packages can add protocols under the entry point ``segiou.protocols``.

    Parameters
    ----------
    protocol : Protocol or str
        A protocol, or the name of one.

    Raises
    ------
    TypeError
        If the argument is neither.
    ValueError
        If the name is unknown.
    """
    if isinstance(protocol, Protocol):
        return protocol
    check_kind("protocol", protocol, str, "a Protocol or its name")
    if protocol in PROTOCOLS:
        return PROTOCOLS[protocol]
    from segiou._support.optional import find_plugin, plugin_names

    if (added := find_plugin("protocols", protocol, Protocol)) is not None:
        plugin: Protocol = added
        return plugin
    known = (*PROTOCOLS, *plugin_names("protocols"))
    hint = did_you_mean(protocol, known)
    msg = f"unknown protocol {protocol!r}; choose from {', '.join(known)}{hint}"
    raise ValueError(msg)
