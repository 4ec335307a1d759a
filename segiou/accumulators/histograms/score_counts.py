"""Accumulator of scores: histograms of each class, and of the highest score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_flag, check_integer, names_options, refuse_kind
from segiou._support.optional import Drawable
from segiou.accumulators.base import TableAccumulator
from segiou.accumulators.histograms import threshold_curves as curves
from segiou.accumulators.histograms.calibration_errors import (
    MOST_ROWS,
    Calibration,
    class_calibration,
    top_calibration,
)
from segiou.accumulators.histograms.region_overlaps import LIMIT, aupro, check_limit, count_overlaps
from segiou.accumulators.histograms.score_bins import (
    Activation,
    ScoreBins,
    as_scores,
    check_axis,
    count_scores,
    two_planes,
)
from segiou.counting.arrays import (
    as_label_array,
    as_valid_mask,
    check_same_shape,
    dtype_name,
    not_compiled,
    with_dimensions_of,
)
from segiou.counting.channels import refuse_channel_values
from segiou.counting.counts import counts_array
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.counting.id_pairs import count_ids
from segiou.labels.class_options import ClassOptions, Labels
from segiou.metrics.ratio import Floats

Ints = NDArray[np.int64]


def places_of(classes: int, *, regions: bool) -> dict[str, Any]:
    """Places of the named counts in cells (rows, B, 2)."""
    places: dict[str, Any] = {
        "counts": np.s_[:classes],
        "top_counts": np.s_[classes],
        "top_sums": np.s_[classes + 1, :, 0],
        "ignored": np.s_[classes + 1, 0, 1],
    }
    if regions:
        places |= {"overlaps": np.s_[classes + 2 :, :, 0], "numbers": np.s_[classes + 2 :, 0, 1]}
    return places


class ScoreHistogram(TableAccumulator, Drawable):
    """Histograms of scores, updated batch by batch.

    Curves, thresholds and calibration are derived from integer counts: the pixels of
    each class by score bin and truth. Histograms add up exactly, like confusion
    matrices: see :class:`segiou.accumulators.base.Accumulator`.

    Parameters
    ----------
    labels, ignore, exclude
        As in :class:`segiou.ConfusionMatrix`.
    bins : int or "float16"
        Number of equal bins in [0, 1], or one bin per half-precision number.
        Half-precision scores are separated by ``"float16"``, 8-bit integers by 256 and
        ``"float16"``, and 16-bit integers by 65536.
    regions : bool
        Whether to count the true regions as well, for :meth:`aupro`: the components of
        each class with 8 neighbours in the last two axes of the truth.

    Attributes
    ----------
    counts : ndarray of int64, shape (C, B, 2)
        ``[c, b, hit]``: pixels whose score of class ``c`` is in bin ``b`` and whose
        truth is another class (0) or ``c`` (1).
    top_counts : ndarray of int64, shape (B, 2)
        ``[b, correct]``: pixels by the bin of their highest score, and whether its
        class is the truth.
    top_sums : ndarray of int64, shape (B,)
        Sum of the highest scores in each bin, in units of 2^-24.
    ignored : int
        Pixels dropped.

    Examples
    --------
    >>> histogram = ScoreHistogram(["background", "cell"], ignore=255)
    >>> scores = [[[0.9, 0.4, 0.2, 0.6]], [[0.1, 0.6, 0.8, 0.4]]]
    >>> _ = histogram.update([[0, 1, 0, 1]], scores, axis=0)
    >>> histogram.average_precision().round(4), histogram.best_threshold("iou").scores.round(4)
    (array([0.75  , 0.5833]), array([0.5   , 0.6667]))
    """

    _noun = "score histograms"
    _plot_kind = "pr_curve"

    @names_options
    def __init__(
        self,
        labels: Labels,
        *,
        bins: int | str = 4096,
        ignore: int | str | Iterable[int | str] = (),
        exclude: int | str | Iterable[int | str] = (),
        regions: bool = False,
    ) -> None:
        options = ClassOptions.of(labels, ignore=ignore, exclude=exclude)
        options.warn_of_ignored_classes()
        self._start(options, bins, regions)

    def _start(self, classes: ClassOptions, bins: int | str = 4096, regions: bool = False) -> None:
        self.bins: ScoreBins = ScoreBins(bins)
        check_flag("regions", regions)
        self.regions: bool = regions
        self._places: dict[str, Any] = places_of(classes.num_classes, regions=regions)
        super()._start(classes)

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding.of_classes(self._classes)

    def _empty(self) -> Ints:
        rows = self.num_classes * (2 if self.regions else 1) + 2
        return np.zeros((rows, self.bins.number, 2), np.int64)

    def _arrays_by_name(self, cells: Ints) -> dict[str, Ints]:
        return {name: cells[rows] for name, rows in self._places.items()}

    def _part(self, name: str) -> Ints:
        part: Ints = self._cells[self._places[name]]
        return part

    def _read(self, arrays: Mapping[str, Any]) -> Ints:
        cells = self._empty()
        for name, rows in self._places.items():
            array, shape = counts_array(arrays[name], name), cells[rows].shape
            if array.shape != shape:
                msg = f"{name} must have shape {shape}, got {array.shape}"
                raise ValueError(msg)
            cells[rows] = array
        return cells

    def _difference(self, other: Self) -> str:
        mine, theirs = self.bins.kind, other.bins.kind
        bins = f"bins is {mine!r} here and {theirs!r} there" if mine != theirs else ""
        regions = "" if self.regions == other.regions else "only one of them has regions=True"
        return "; ".join(part for part in (super()._difference(other), bins, regions) if part)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "bins": self.bins.kind, "regions": self.regions}

    @classmethod
    def _restored(cls, state: Mapping[str, Any]) -> Self:
        classes = ClassOptions.from_dict(state["options"])
        return cls.from_options(classes, state.get("bins", 4096), state.get("regions", False))

    @not_compiled
    def update(
        self,
        truth: Any,
        scores: Any,
        axis: int | None = 1,
        activation: Activation | None = None,
        *,
        mask: Any = None,
    ) -> Self:
        """Count the scores of one image, or of a batch.

        Parameters
        ----------
        truth : array_like of int or bool, any shape
            Labels in the label set's file values. If it has the shape of the scores,
            it holds one channel per class instead, of 0 and 1: whether the pixel is of the
            class. Channels may overlap, and have no highest score.
        scores : array_like of float, uint8 or uint16
            One score per class along ``axis``; of integers, 255 or 65535 is 1.
        axis : int, optional
            The class axis: 1 for (N, C, H, W), -1 for (N, H, W, C), 0 for (C, H, W). None
            for the score of the second of two classes, with the shape of the truth.
        activation : {"softmax", "sigmoid"}, optional
            What turns the scores into numbers in [0, 1]; by default they are such numbers.
        mask : array_like of bool, optional
            True where a pixel is valid; other pixels count as ignored.

        Returns
        -------
        ScoreHistogram
            Itself.

        Raises
        ------
        TypeError
            If the scores are neither floats nor unsigned integers of 8 or 16 bits.
        ValueError
            If shapes do not match, a score of a valid pixel is NaN or outside [0, 1], or a
            truth value is undeclared. The counts are unchanged then.
        """
        self._add(self.count(truth, scores, axis, activation, mask=mask), 1)
        return self

    @not_compiled
    def count(
        self,
        truth: Any,
        scores: Any,
        axis: int | None = 1,
        activation: Activation | None = None,
        *,
        mask: Any = None,
    ) -> Ints:
        """Count scores as :meth:`update` does, without adding them.

        Parameters
        ----------
        truth, scores, axis, activation, mask
            As for :meth:`update`.

        Returns
        -------
        ndarray of int64, shape (C + 2, B, 2)
            ``counts``, then ``top_counts``, then ``top_sums`` and ``ignored``; with
            ``regions=True``, another C rows.
        """
        scores = as_scores(with_dimensions_of(truth, scores, axis))
        truth = as_label_array(truth, "truth")
        check_axis(scores.shape, dtype_name(scores), axis, activation, self.num_classes)
        if axis is not None and truth.shape == scores.shape:
            channels = np.moveaxis(truth, axis, 0), np.moveaxis(scores, axis, 0)
            return self._count_channels(*channels, activation, mask)
        check_same_shape(truth, scores, ("truth", "scores"), argmax=axis)
        planes = two_planes(scores, activation) if axis is None else np.moveaxis(scores, axis, 0)
        return self._counted(self._codes(truth, mask), planes, activation)

    def _count_into(self, cells: Ints, truth: Any, scores: Any, **options: Any) -> None:
        """Add the counts of scores to cells of a histogram."""
        cells += self.count(truth, scores, **options)

    def _counted(
        self, codes: NDArray[np.uint16], planes: NDArray[Any], activation: Activation | None
    ) -> Ints:
        cells = count_scores(codes, planes, self.bins, activation)
        if self.regions:
            overlaps, numbers = count_overlaps(codes, planes, self.bins, activation)
            cells = np.pad(cells, [(0, self.num_classes), (0, 0), (0, 0)])
            cells[self._places["overlaps"]], cells[self._places["numbers"]] = overlaps, numbers
        return cells

    def _codes(self, truth: NDArray[Any], mask: Any) -> NDArray[np.uint16]:
        """The class of each pixel, or C where it is ignored; raises if it is undeclared."""
        codes: NDArray[np.uint16] = self._encoding.truth.codes_of(truth)
        if mask is not None:
            codes[~as_valid_mask(mask, truth.shape)] = self.num_classes
        if codes.max(initial=0) > self.num_classes:
            raise UndeclaredValuesError("truth", count_ids(truth[codes > self.num_classes]))
        return codes

    def _count_channels(
        self, truth: NDArray[Any], planes: NDArray[Any], activation: Activation | None, mask: Any
    ) -> Ints:
        if activation == "softmax":
            msg = "channels that overlap need activation='sigmoid', not 'softmax'"
            raise ValueError(msg)
        cells, valid = self._empty(), None
        arrays = self._arrays_by_name(cells)
        if mask is not None:
            valid = as_valid_mask(mask, planes.shape[1:])
        for c, (labels, plane) in enumerate(zip(truth, planes, strict=True)):
            codes = np.where(labels != 0, np.uint16(0), np.uint16(1))
            if valid is not None:
                codes[~valid] = 2
            nonzero = labels[codes == 0]
            if (nonzero != 1).any():
                refuse_channel_values("truth", Counter(nonzero.tolist()))
            cells[c] = count_scores(codes, plane[None], self.bins, activation, valid_codes=2)[0]
            if self.regions:
                own_regions = count_overlaps(codes, plane[None], self.bins, activation)
                arrays["overlaps"][c], arrays["numbers"][c] = (counts[0] for counts in own_regions)
        cells[self._places["ignored"]] = 0 if valid is None else int((~valid).sum())
        return cells

    @classmethod
    def of_run(cls, run: Any) -> Self:
        """The histograms of all images of a run that was scored with ``measures=["scores"]``.

        Parameters
        ----------
        run : Run
            The run.

        Raises
        ------
        ValueError
            If the run has no histograms.
        """
        if not hasattr(run, "counts_of"):
            raise refuse_kind("run", run, "a Run")
        histogram: Self | None = run.counts_of("scores")
        if histogram is None:
            msg = "the run has no score histograms; rescore with measures=['scores'] (--scores)"
            raise ValueError(msg)
        return histogram

    @property
    def counts(self) -> Ints:
        """Pixels of each class by score bin and truth, (C, B, 2); a copy."""
        return self._part("counts")

    @property
    def top_counts(self) -> Ints:
        """Pixels by bin of the highest score and whether its class is right, (B, 2); a copy."""
        return self._part("top_counts")

    @property
    def top_sums(self) -> Ints:
        """Sum of the highest scores of each bin in units of 2^-24, (B,); a copy."""
        return self._part("top_sums")

    @property
    def ignored(self) -> int:
        """Pixels dropped."""
        return int(self._part("ignored"))

    @property
    def undefined(self) -> dict[str, str]:
        """Reasons why curves are undefined, by class."""
        reasons = {}
        pixels = self.counts.sum(1).tolist()
        for name, (negative, positive) in zip(self.class_names, pixels, strict=True):
            if not positive:
                reasons[name] = "no pixel of the class"
            elif not negative:
                reasons[name] = "no pixel of another class"
        return reasons

    def average_precision(self) -> Floats:
        """Average precision per class by the step rule, as scikit-learn's, (C,)."""
        return curves.average_precision(self.counts)

    def roc_auc(self) -> Floats:
        """Area under the ROC curve per class, (C,)."""
        return curves.roc_auc(self.counts)

    def fpr_at_tpr(self, tpr: float = 0.95) -> Floats:
        """False positive rate at the highest threshold that reaches a true positive rate, (C,).

        Parameters
        ----------
        tpr : float
            The true positive rate (recall).
        """
        return curves.fpr_at_tpr(self.counts, tpr)

    def aupro(self, limit: float = LIMIT) -> Floats:
        """Area under the per-region overlap curve per class, (C,).

        The curve is the mean share of each true region that passes a threshold, over the
        false positive rate. All regions count the same, whatever their size.

        Parameters
        ----------
        limit : float
            Highest false positive rate, from 1e-6 to 1; the area up to the limit is divided by
            the limit. That of MVTec AD is 0.3, that of MVTec AD 2 is 0.05.

        Returns
        -------
        ndarray of float64, shape (C,)
            NaN for classes without a region, or without other pixels.

        Raises
        ------
        ValueError
            If regions were not counted, or the limit is not from 1e-6 to 1.
        """
        if not self.regions:
            msg = "regions were not counted; create the histogram with regions=True"
            raise ValueError(msg)
        return aupro(self._cells, check_limit("limit", limit))

    def brier(self) -> Floats:
        """Brier score per class, the mean squared difference from the truth, (C,)."""
        return curves.brier(self.counts, self.bins.values)

    def pr_curve(self, c: int | str) -> curves.Curve:
        """Precision and recall of a class at each threshold, as scikit-learn's.

        Parameters
        ----------
        c : int or str
            The class, by index or name.

        Returns
        -------
        Curve
            ``x`` is recall, ``y`` precision; the curve ends at recall 0, precision 1.
        """
        return curves.pr_curve(self.counts[self._index(c)], self.bins.edges)

    def roc_curve(self, c: int | str) -> curves.Curve:
        """False and true positive rates of a class at each threshold.

        Parameters
        ----------
        c : int or str
            The class, by index or name.

        Returns
        -------
        Curve
            ``x`` is the false positive rate, ``y`` the true positive rate; the curve
            starts at (0, 0), with an infinite threshold.
        """
        return curves.roc_curve(self.counts[self._index(c)], self.bins.edges)

    def at_thresholds(self) -> curves.ThresholdTable:
        """IoU, Dice, precision and recall of each class at every threshold."""
        return curves.ThresholdTable.of(self.counts, self.bins.edges)

    def best_threshold(self, by: str = "iou", *, beta: float = 1.0) -> curves.BestThreshold:
        """The threshold with the best score, for each class and for the mean of the classes.

        Parameters
        ----------
        by : {"iou", "dice", "fbeta"}
            The score. The thresholds that are best by IoU and by Dice are the same for
            each class.
        beta : float
            Weight of recall in ``"fbeta"``.

        Returns
        -------
        BestThreshold
            A pixel is of the class if its score is at least the threshold.
        """
        return curves.best_threshold(self.counts, self.bins.edges, self.include, by, beta)

    def calibration(self, bins: int = 15, c: int | str | None = None) -> Calibration:
        """Calibration errors, and the rows of the reliability diagram.

        Parameters
        ----------
        bins : int
            Number of equal bins of the diagram.
        c : int or str, optional
            A class, one against the rest; by default the highest score of each pixel.
        """
        bins = check_integer("bins", bins, 1, MOST_ROWS)
        cells = self._cells
        if c is None:
            return top_calibration(cells[: self.num_classes + 2], self.bins, bins)
        return class_calibration(cells[self._index(c)], self.bins, bins)

    def classwise_ece(self, bins: int = 15) -> Floats:
        """Expected calibration error of each class, one against the rest, (C,).

        Parameters
        ----------
        bins : int
            Number of equal bins of the diagram.
        """
        bins = check_integer("bins", bins, 1, MOST_ROWS)
        return np.array([class_calibration(c, self.bins, bins).ece for c in self.counts])

    def risk_coverage(self) -> curves.Curve:
        """Error rate (``y``) of the share of pixels with the highest scores (``x``)."""
        return curves.risk_coverage(self.top_counts, self.bins.edges)

    def _index(self, c: int | str) -> int:
        if isinstance(c, str):
            return self.labels.index(c)
        return check_integer("c", c, 0, self.num_classes - 1)
