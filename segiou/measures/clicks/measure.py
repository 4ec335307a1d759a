"""The measure of clicks: IoU after each click of an interactive segmentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_number, read_several
from segiou._support.text import plural
from segiou.counting.arrays import read_floats
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.masks.raw_mask import MaskError, RawMask, image_shape
from segiou.masks.read import from_bytes, to_labels
from segiou.masks.sources.derived import SEVERAL
from segiou.masks.sources.folders import Source
from segiou.measures.clicks.files import ClickFiles
from segiou.measures.mask_pair import MaskPair, Masks, ScoredPrediction
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Score
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.measures.structures import TargetPlan
from segiou.metrics.ratio import Floats, ratio

_IOU, _LEAST = (85.0, 90.0), 0.01
_LIMIT, _MOST = 20, 1000
#: Clicks after which tables show the mean IoU.
_SHOWN = (1, 3, 5, 10, 20)


def number_of_clicks(ious: Any, threshold: float, *, limit: int = _LIMIT) -> int:
    """The first click after which an IoU is reached; the limit if it is never reached.

    Parameters
    ----------
    ious : array_like of float, shape (K,)
        IoU after each click; NaN reaches no threshold.
    threshold : float
        IoU to reach, in (0, 1].
    limit : int
        Maximum number of clicks.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or value, such as an IoU above 1.

    References
    ----------
    K. Sofiiuk et al., Reviving iterative training with mask guidance for interactive segmentation,
    ICIP 2022 (RITM). Its ``compute_noc_metric`` also counts images that reach the IoU at the last
    click as failures.

    Examples
    --------
    >>> number_of_clicks([0.5, 0.86, 0.84, 0.91], 0.9), number_of_clicks([0.5, 0.86], 0.9)
    (4, 20)
    """
    threshold = check_number("threshold", threshold, 0, 1)
    limit = check_integer("limit", limit, 1, _MOST)
    reached = _checked_ious(ious)[:limit] >= threshold
    return int(reached.argmax()) + 1 if reached.any() else limit


def _checked_ious(ious: Any) -> Floats:
    """IoU after each click; an undefined one reaches no threshold."""
    values = read_floats(ious, "ious", "numbers, the IoU after each click")
    if values.ndim != 1 or ((values < 0) | (values > 1)).any():
        msg = (
            f"ious must have shape (K,) and values from 0 to 1, got shape {values.shape} and "
            f"values from {values.min(initial=1):g} to {values.max(initial=0):g}"
        )
        raise ValueError(msg)
    return values


@dataclass(frozen=True)
class ClickOptions(Measure):
    """Interactive segmentation: number of clicks until an IoU is reached (NoC), from folders.

    Attributes
    ----------
    iou : tuple of float
        IoU to reach, in per cent.
    limit : int
        Maximum number of clicks; images that never reach an IoU count as this number.
    target : tuple of str or int
        Name or index of the class of the object; by default the second of two classes.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or value.

    Examples
    --------
    >>> ClickOptions(iou=(90,), limit=10).limit
    10
    """

    key: ClassVar[str] = "clicks"
    title: ClassVar[str] = "Clicks"
    score_names: ClassVar[tuple[str, ...]] = (
        *("noc_85", "noc_90", "click_failures_85", "click_failures_90"),
        *(f"click_iou_{click}" for click in range(1, _LIMIT + 1)),
    )

    iou: tuple[float, ...] = _IOU
    limit: int = _LIMIT
    target: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        several = read_several("iou", self.iou, "a sequence of percentages")
        shares = tuple(check_number("an IoU of iou", share, _LEAST, 100) for share in several)
        if not shares or len({*map(_percent, shares)}) < len(shares):
            msg = f"iou must be one or more distinct percentages, got {self.iou}"
            raise ValueError(msg)
        object.__setattr__(self, "limit", check_integer("limit", self.limit, 1, _MOST))
        object.__setattr__(self, "iou", shares)
        object.__setattr__(self, "target", tuple(read_several("target", self.target, "classes")))

    @classmethod
    def for_score(cls, name: str) -> ClickOptions:
        """The measure with the IoU that a score reaches."""
        return cls(_ious_of(name) or _IOU)

    @classmethod
    def flag_for(cls, score: str = "") -> str:
        """``--clicks``, and the IoU that one score also needs."""
        several = _ious_of(score)
        return f"--clicks --clicks-iou {_percent(several[0])}" if several else "--clicks"

    def predictions(self, source: Source, classes: ClassOptions) -> Source:
        """Masks after each click as one image."""
        return ClickFiles(source, self.limit)

    def check_arrays(self) -> None:
        """Reject arrays, because only folders have one mask per click."""
        msg = (
            "arrays do not have one mask per click; pass one folder per click to score_folder, or "
            "the IoU after each click to segiou.measures.clicks.number_of_clicks"
        )
        raise ValueError(msg)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes in images."""
        if masks.volumes:
            msg = "clicks are not supported for volumes; pass images"
            raise ValueError(msg)
        return ClickPlan(self, classes, masks)


@dataclass(frozen=True)
class ClickPlan(TargetPlan):
    """Plan of the measure of clicks."""

    measure: ClickOptions

    reads_predictions: ClassVar[bool] = True

    @property
    def layout(self) -> Layout:
        """Pixels of the object; and pixels of intersection and union after each click."""
        return {
            "objects": Field((), rows=True, single=True),
            "clicks": Field((self.measure.limit, 2), rows=True, single=True),
        }

    def read_prediction(
        self, data: bytes | RawMask, path: str, truth: tuple[int, ...]
    ) -> ScoredPrediction:
        """Read the masks of an image, of which the last one is counted."""
        files: Any = [(path, data)]
        if isinstance(data, RawMask) and data.mode == SEVERAL:
            files = data.values
        masks = np.stack([self._labels(content, file, truth) for file, content in files])
        return ScoredPrediction(masks[-1], masks)

    def _labels(self, data: bytes | RawMask, path: str, truth: tuple[int, ...]) -> NDArray[Any]:
        raw = data if isinstance(data, RawMask) else from_bytes(data, path)
        labels = np.asarray(to_labels(raw, path, self.classes.pred_labels))
        if image_shape(labels.shape, truth) != truth:
            raise MaskError(path, f"has shape {labels.shape}, but its truth has shape {truth}")
        return labels.reshape(truth)

    def count(self, pair: MaskPair) -> Parts:
        """Count the pixels after each click of one image."""
        if pair.scores is None:
            self.measure.check_arrays()
        encoding, rows, pixels = Encoding.of_classes(self.classes), [], 0
        for labels in pair.scores:
            counts = encoding.count(pair.truth, labels, mask=pair.mask, are_labels=True).counts
            tp, fp, fn = (int(n[self.target]) for n in (counts.tp, counts.fp, counts.fn))
            rows.append((tp, tp + fp + fn))
            pixels = tp + fn
        self._check_end(rows, pixels)
        rows += rows[-1:] * (self.measure.limit - len(rows))
        return Parts.of(self.layout, objects=pixels, clicks=rows)

    def _check_end(self, rows: list[tuple[int, int]], pixels: int) -> None:
        """Raise an error if masks end before the limit and before an IoU is reached."""
        best = max(ratio([tp for tp, _ in rows], [union for _, union in rows]))
        missed = [share for share in self.measure.iou if best < share / 100]
        if missed and pixels and len(rows) < self.measure.limit:
            msg = (
                f"has masks after {plural(len(rows), 'click')}, which do not reach IoU "
                f"{_percent(missed[0])} %; add the masks up to click {self.measure.limit}, or pass "
                f"limit={len(rows)} (--clicks-limit {len(rows)})"
            )
            raise ValueError(msg)

    def check(self, parts: Parts) -> None:
        """Reject impossible numbers of pixels."""
        tp, union = np.moveaxis(parts["clicks"], -1, 0)
        if (tp > union).any() or (union < parts["objects"][:, None]).any():
            msg = "invalid rows of clicks"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Means over the images: clicks, images that never reach an IoU, and IoU after clicks."""
        scores = {}
        low: Any = {"better": "lower"}
        for share in self.measure.iou:
            name, clicks = f"noc_{_percent(share)}", partial(self._clicks, share / 100)
            scores[name] = self._score(name, f"NoC@{_percent(share)}", clicks, unit="clicks", **low)
        for share in self.measure.iou:
            name, failed = f"click_failures_{_percent(share)}", partial(self._failed, share / 100)
            scores[name] = self._score(name, f"failures@{_percent(share)}", failed, **low)
        for click in range(1, self.measure.limit + 1):
            title = f"IoU, {plural(click, 'click')}"
            after = partial(self._iou_after, click)
            scores[f"click_iou_{click}"] = self._score(f"click_iou_{click}", title, after)
        return scores

    def _score(
        self, name: str, title: str, values: Callable[[Parts], Floats], **more: Any
    ) -> Score:
        return Score.of_cases(name, title, (self.target_name,), values, **more)

    def _ious(self, parts: Parts) -> Floats:
        """IoU after each click, (N, limit); NaN for images without an object."""
        tp, union = np.moveaxis(parts["clicks"], -1, 0)
        return np.where(parts["objects"][:, None] > 0, ratio(tp, union), np.nan)

    def _iou_after(self, click: int, parts: Parts) -> Floats:
        return self._ious(parts)[:, click - 1 : click]

    def _clicks(self, threshold: float, parts: Parts) -> Floats:
        """Number of clicks of each image, (N, 1)."""
        ious = self._ious(parts)
        reached = ious >= threshold
        clicks = np.where(reached.any(1), reached.argmax(1) + 1.0, self.measure.limit)
        return np.where(np.isnan(ious[:, 0]), np.nan, clicks)[:, None]

    def _failed(self, threshold: float, parts: Parts) -> Floats:
        """Whether an image never reaches the IoU, (N, 1)."""
        ious = self._ious(parts)
        failed = 1.0 - (ious >= threshold).any(1)
        return np.where(np.isnan(ious[:, 0]), np.nan, failed)[:, None]

    def table(self, counted: Counted) -> ScoreTable:
        """The scores, with the number of failures; text shows the IoU after some clicks."""
        usual, (row,) = super().table(counted), next(iter(self.scores.values())).names
        columns = []
        for column in usual.columns:
            start, _, last = column.name.rpartition("_")
            is_hidden = start == "click_iou" and int(last) not in _SHOWN
            columns.append(replace(column, title="" if is_hidden else column.title))
            if start == "click_failures":
                failed = self._failed(float(last) / 100, counted.total)
                number = [int(np.nansum(failed))]
                columns.append(
                    ScoreValues.of_counts(f"nof_{last}", f"NoF@{last}", [row], number, number)
                )
        return replace(
            usual,
            columns=tuple(columns),
            note=(
                f"clicks: number of clicks until an IoU in per cent is reached (NoC); images that "
                f"never reach it count as {self.measure.limit} clicks and as failures (NoF); the "
                "table of classes scores the last masks"
            ),
        )


def _ious_of(score: str) -> tuple[float, ...]:
    """The IoU in the name of a score; none in that of others."""
    match = re.fullmatch(r"(?:noc|click_failures)_([0-9.]+)", score)
    return (float(match[1]),) if match else ()


def _percent(share: float) -> str:
    return f"{share:g}"
