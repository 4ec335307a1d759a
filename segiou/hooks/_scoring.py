"""How hooks count and score: a confusion matrix, or counts like those of a passed accumulator."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    check_number,
    check_options,
    read_several,
)
from segiou._support.text import capital
from segiou.accumulators.channel_counts import ChannelCounts, check_channels
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.accumulators.histograms.formulas import Formula, formulas_of
from segiou.accumulators.histograms.score_bins import ScoreBins
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.arrays import AtLeast, not_compiled
from segiou.counting.counts import Cells, Counts, SparseConfusionCounts
from segiou.hooks import _reading as reading
from segiou.hooks.hook_options import HookOptions, Scores, TorchOptions
from segiou.labels.class_options import CLASS_ARGUMENTS, ClassOptions
from segiou.measures.registry import measure_of_score, read_measures, score_names
from segiou.measures.score_names import read_name, row_of
from segiou.measures.spellings import is_whole, plain_name
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.metrics.protocols import load_protocol
from segiou.report.formats import score_keys
from segiou.scoring.evaluator import Conflict, Evaluator

#: Ends the names of means without the first class.
_FOREGROUND = "_foreground"
_NO_REPEATS = "use a sampler without repetition, such as range(rank, len(dataset), processes)"


def _names(scores: Any) -> tuple[str, ...]:
    """The names of several scores."""
    several = tuple(read_several("scores", scores, "the name of a score, or several"))
    for name in several:
        check_kind("the name of a score", name, str, "text")
    return several


class Scoring(ABC):
    """The classes, the names of scores, and the reading of batches."""

    options: ClassOptions
    #: Reason for missing counts per image and reports.
    lacks: ClassVar[dict[str, str]]
    #: Whether the first score is better if higher.
    higher_is_better: bool
    #: Where scores become classes; None if they are not decided by a threshold.
    threshold: Any = None

    def __init__(self, scores: Scores, options: TorchOptions) -> None:
        #: The requested scores: a single name, or several.
        self.scores: str | tuple[str, ...] = scores if isinstance(scores, str) else _names(scores)
        self.names = (self.scores,) if isinstance(self.scores, str) else self.scores
        axis, upsample = options.get("axis", 1), options.get("upsample")
        self.axis = None if axis is None else check_integer("axis", axis)
        self.upsample = upsample
        if upsample is not None:
            check_flag("upsample", upsample)

    @cached_property
    def digest(self) -> list[int]:
        """Bytes that are equal for options that count the same pairs equally."""
        return digest([self.options.to_dict(), bool(self.upsample), *self._settings()])

    @abstractmethod
    def _settings(self) -> list[Any]:
        """Other options that affect counts, as plain data."""

    @abstractmethod
    def empty(self) -> Any:
        """An accumulator without counts."""

    @abstractmethod
    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Truth, prediction or scores, and the keywords for `update`."""

    def counting(self, conflict: Conflict | None) -> Any:
        """An accumulator without counts; one of images if there is a rule for repeated ones."""
        if conflict is None:
            return self.empty()
        return Evaluator.from_options(self.options, conflict=conflict)

    def total(self, counted: Any) -> Any:
        """The counts to score and to show: those of all images together."""
        return counted.total() if isinstance(counted, Evaluator) else counted

    def update(self, counted: Any, truth: Any, pred: Any, **ids: Any) -> None:
        """Add a batch to an accumulator, with the ids of images if it is one of images.

        A list of images of different sizes is added as a whole or, after an error, not at all.
        """
        pairs = reading.pairs_of(truth, pred)
        batch = counted if len(pairs) == 1 else counted.empty()
        for i, pair in enumerate(pairs):
            truth, pred, decision = self.read(*pair)
            own = ids if batch is counted else _ids_of_image(i, len(pairs), **ids)
            batch.update(truth, pred, **decision, **own)
        if batch is not counted:
            counted.merge(batch)

    def cells(self, truth: Any, pred: Any) -> Cells:
        """The counts of a pair, most of which are 0."""
        truth, pred, decision = self.read(truth, pred)
        counted = self.empty()
        table = counted._empty()
        counted._count_into(table, truth, pred, **decision)
        filled = np.flatnonzero(table)
        return Cells(filled, table.ravel()[filled], 0)

    def summed(self, cells: Sequence[Cells]) -> Any:
        """An accumulator with the sum of counts of pairs."""
        counted = self.empty()
        total = counted._empty()
        for pair in cells:
            total.ravel()[pair.indices] += pair.values
        counted._add(total, len(cells))
        return counted

    @abstractmethod
    def values_of(self, counts: Any, separator: str = "/", xp: Any = np) -> dict[str, Any]:
        """Scores of counts in arrays of NumPy or tensors of ``keras.ops``, which is `xp` then."""

    @abstractmethod
    def _counts(self, counted: Any) -> Any:
        """The counts of an accumulator for `values_of`."""

    def values(self, counted: Any, separator: str = "/") -> dict[str, float]:
        """Scores by name, with class scores as ``iou/road``; NaN if undefined."""
        values = self.values_of(self._counts(counted), separator)
        return {key: float(value) for key, value in values.items()}

    @property
    @abstractmethod
    def keys(self) -> list[str]:
        """The names that `values` returns."""

    @cached_property
    def only(self) -> str | None:
        """The score that was requested as a single name, if it is a scalar."""
        return self.scores if isinstance(self.scores, str) and self.scores in self.keys else None

    def result(self, counted: Any) -> float | dict[str, float]:
        """The single score, or the scores by name."""
        values = self.values(counted)
        return values[self.only] if self.only else values

    def check(self, **options: Any) -> None:
        """Raise a ValueError for options of a hook that this kind of counts lacks."""
        if names := [name for name, value in options.items() if value and name in self.lacks]:
            raise ValueError(self.lacks[names[0]])

    def _arranged(self, truth: Any, pred: Any, name: str) -> tuple[Any, Any]:
        """Truth as integers without a class axis of size 1, and scores in its size."""
        truth, pred = reading.shaped(truth, "truth"), reading.shaped(pred, name)
        if self.axis is not None:
            truth = reading.drop_channel(truth, self.axis, pred)
            if not reading.is_float(pred):  # as of argmax(1, keepdim=True)
                pred = reading.drop_channel(pred, self.axis, truth)
            if self.upsample and not reading.fitting_axes(tuple(pred.shape), tuple(truth.shape)):
                pred = reading.upsampled(pred, tuple(truth.shape), self.axis)
            if len(pred.shape) == len(truth.shape) + 1:
                can_upsample = self.upsample is not None
                reading.check_size(truth, pred, self.axis, can_upsample=can_upsample)
        return truth, pred


def _ids_of_image(i: int, images: int, **ids: Any) -> dict[str, Any]:
    """The id of an image of a list, if the images have ids."""
    for name, values in ids.items():
        if len(values) != images:
            msg = f"got {len(values)} {name} for {images} images; pass one per image"
            raise ValueError(msg)
    return {name: [values[i]] for name, values in ids.items()}


class Entry(NamedTuple):
    """A score of pixels: the value of a class, the mean over classes, or one number."""

    score: str
    row: int | None = None
    include: NDArray[np.bool_] | None = None


class PixelScoring(Scoring):
    """Scores of TP, FP, FN and TN of each class."""

    #: The kind of accumulator.
    kind: ClassVar[Any]
    lacks: ClassVar[dict[str, str]] = {}
    higher_is_better = True
    axis: int

    def __init__(self, default: Scores, options: TorchOptions) -> None:
        axis, activation = options.get("axis", 1), options.get("activation")
        if axis is None or activation is not None:
            name = "axis=None" if axis is None else "activation"
            msg = f"{name} needs a segiou.ScoreHistogram in place of the labels"
            raise ValueError(msg)
        scores = options.get("scores")
        super().__init__(default if scores is None else scores, options)
        self.protocol = load_protocol(options.get("protocol", "segiou"))
        if self.protocol.needs_images:
            msg = (
                f"protocol {self.protocol.name!r} averages over images, but hooks only keep pooled "
                "counts; use segiou.scoring.Evaluator and score its run()"
            )
            raise ValueError(msg)
        threshold = options.get("threshold")
        self.threshold = None if threshold is None else self._threshold_of(threshold)
        self._known: dict[str, dict[str, Entry]] = {}
        self.entries()  # raises for unknown names

    def _threshold_of(self, threshold: Any) -> Any:
        return self.protocol.threshold(check_number("threshold", threshold))

    @cached_property
    def _counting(self) -> Any:
        return self.kind.from_options(self.options)

    def empty(self) -> Any:
        """An accumulator without counts."""
        return self._counting.empty()

    def _settings(self) -> list[Any]:
        equal = ["positive"] if isinstance(self.threshold, AtLeast) else []
        return [self.axis, self.threshold, *equal]

    def _counts(self, counted: Any) -> Counts:
        counts: Counts = counted.counts
        return counts

    def values_of(self, counts: Counts, separator: str = "/", xp: Any = np) -> dict[str, Any]:
        """Scores of TP, FP, FN and TN."""
        entries = self.entries(separator).items()
        return {key: self._value(entry, counts, xp) for key, entry in entries}

    def _value(self, entry: Entry, counts: Counts, xp: Any) -> Any:
        function = PIXEL_SCORES[entry.score].function
        if entry.include is not None:
            return self.protocol.pooled_mean(function, counts, entry.include, xp)
        return function(counts, xp) if entry.row is None else function(counts)[entry.row]

    @property
    def keys(self) -> list[str]:
        """The names that `values` returns."""
        return [*self.entries()]

    def entries(self, separator: str = "/") -> dict[str, Entry]:
        """Results of `values` by key."""
        if separator not in self._known:
            self._known[separator] = self._entries(separator)
        return self._known[separator]

    def _entries(self, separator: str) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for name in self.names:
            mean = plain_name(name).removesuffix(_FOREGROUND)
            base = mean if is_whole(mean) else name
            score = read_name(base).score
            if score not in PIXEL_SCORES:
                key = measure_of_score(score)
                fix = f"pass measures=[{key!r}] to segiou.scoring.Evaluator or Lightning's callback"
                fix = fix if key else "score it in a Run"
                msg = f"score {name!r} does not follow from a confusion matrix; {fix}"
                raise ValueError(msg)
            if not PIXEL_SCORES[score].per_class:
                entries[name] = Entry(score)
            elif is_whole(base):
                without_first = plain_name(name) != mean
                entries[name] = Entry(score, include=self._include(without_first=without_first))
            else:
                rows = self.options.labels.class_names
                keys = score_keys([base], lambda _: rows, separator)  # noqa: B023
                entries |= {
                    key: Entry(score, row_of(of_row.row, rows, score))
                    for key, of_row in keys.items()
                }
        return entries

    def _include(self, *, without_first: bool) -> NDArray[np.bool_]:
        include = self.protocol.include_of(self.empty()).copy()
        include[0] &= not without_first
        return include


class MatrixScoring(PixelScoring):
    """Scores of a confusion matrix."""

    kind: ClassVar[Any] = ConfusionMatrix

    def __init__(self, labels: Any, default: Scores, options: TorchOptions) -> None:
        classes: Any = {k: v for k, v in options.items() if k in CLASS_ARGUMENTS}
        self.options = ClassOptions.of(labels, **classes)
        self.options.warn_of_ignored_classes()
        super().__init__(default, options)

    @property
    def drops_undeclared(self) -> bool:
        """Whether the protocol ignores the pixels of undeclared predictions."""
        return self.protocol.undeclared == "drop"

    def _counts(self, counted: Any) -> Counts:
        if not self.drops_undeclared:
            return super()._counts(counted)
        return self.protocol.tally_of(getattr(counted, "tally", counted)).counts

    def cells(self, truth: Any, pred: Any) -> Cells:
        """The counts of a pair, most of which are 0."""
        truth, pred, decision = self.read(truth, pred)
        cells: Cells = self._counting.count(truth, pred, **decision).cells
        return cells

    def summed(self, cells: Sequence[Cells]) -> Any:
        """A matrix with the sum of counts of pairs."""
        tally = SparseConfusionCounts.summed(self.options.num_classes, cells)
        return self.empty().add(tally, pairs=len(cells))

    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Truth and prediction without a class axis of size 1, and the keywords for `update`."""
        truth, pred = self._arranged(truth, pred, "pred")
        self._check_channels(truth, pred)
        if self.threshold is not None:
            if len(pred.shape) == len(truth.shape) + 1:
                pred = reading.drop_channel(pred, self.axis, truth)
            self.options.check_scores(tuple(pred.shape), None)
            return reading.whole_numbers(truth), pred, {"threshold": self.threshold}
        truth = reading.whole_numbers(truth)
        if reading.is_one_hot(truth, pred, self.axis, self.options.num_classes):
            return truth, pred, {"argmax": self.axis}
        if len(pred.shape) != len(truth.shape) + 1:
            reading.check_labels_of_hook(truth, pred)
            return truth, pred, {}
        if pred.shape[self.axis] == 1 and self.options.num_classes == 2:
            msg = (
                f"scores of shape {tuple(pred.shape)} have a single channel along axis {self.axis} "
                "for two classes; pass threshold=T to the hook (0.5 after a sigmoid, 0 for logits)"
            )
            raise ValueError(msg)
        self.options.check_scores(tuple(pred.shape), self.axis)
        return truth, pred, {"argmax": self.axis}

    def _check_channels(self, truth: Any, pred: Any) -> None:
        """Raise a ValueError for two channels, or for those that compiled code could not see."""
        shape, classes = tuple(truth.shape), self.options.num_classes
        is_decided = self.threshold is None and reading.is_float(pred)
        if is_decided or len(shape) < 3 or shape != tuple(pred.shape):
            return
        is_last = len(shape) > 3 and self.axis in (-1, len(shape) - 1)
        if (classes == 2 or is_last) and -len(shape) <= self.axis < len(shape):
            option = "" if self.threshold is None else "threshold=T"
            self.options.check_single(shape, (self.axis,), option)


class ImageScoring(MatrixScoring):
    """Scores of a confusion matrix and of measures, counted image by image on the host."""

    def __init__(
        self, labels: Any, default: Scores, options: TorchOptions, measures: Iterable[Any]
    ) -> None:
        self.measures = read_measures(measures)
        known = [name for measure in self.measures for name in score_names(measure.key)]
        wanted = options.get("scores")
        several = [wanted] if isinstance(wanted, str) else wanted or []
        #: The requested scores of measures; all of them if none are requested.
        self.measured = [name for name in several if read_name(name, known).score in known]
        if wanted is not None:
            options["scores"] = [name for name in several if name not in self.measured]
        else:
            self.measured = known
        super().__init__(labels, default, options)

    def counting(self, conflict: Conflict | None) -> Evaluator:
        """An accumulator of images, with measures."""
        conflict = conflict or "error"
        return Evaluator.from_options(self.options, measures=self.measures, conflict=conflict)

    def total(self, counted: Any) -> Any:
        """The images themselves."""
        return counted

    @property
    def keys(self) -> list[str]:
        """The names that `values` returns, without those of structures."""
        return [*super().keys, *self.measured]

    def values(self, counted: Any, separator: str = "/") -> dict[str, float]:
        """Scores by name; those of measures with their classes or structures."""
        report = counted.report(self.protocol)
        measured: dict[str, float] = report.scores(names=self.measured, separator=separator)
        return super().values(counted.total(), separator) | measured


def _not_kept(kind: str) -> dict[str, str]:
    """The errors for options that need counts per image."""
    text = f"{{}} need counts per image, which {kind} does not keep; "
    fix = "pass labels in its place; measures=['scores'] counts scores of each image"
    return {"ids": text.format("ids") + _NO_REPEATS, "measures": text.format("measures") + fix}


class ChannelScoring(PixelScoring):
    """Scores of channels that may overlap."""

    kind: ClassVar[Any] = ChannelCounts
    lacks: ClassVar[dict[str, str]] = {
        **_not_kept("ChannelCounts"),
        "figure": "figure needs a confusion matrix, which overlapping channels do not have",
    }

    def __init__(self, channels: ChannelCounts, default: Scores, options: TorchOptions) -> None:
        applies = ("scores", "axis", "threshold", "protocol", "ignore", "upsample")
        self.options = _options_like(channels, applies, options)
        super().__init__(default, options)

    def _threshold_of(self, threshold: Any) -> Any:
        if isinstance(threshold, Real):
            return super()._threshold_of(threshold)
        limits = read_several("threshold", threshold, "a number, or one per channel")
        several = [super(ChannelScoring, self)._threshold_of(limit) for limit in limits]
        if len(several) != self.options.num_classes or isinstance(several[0], AtLeast):
            number = self.options.num_classes
            reason = (
                f"protocol {self.protocol.name!r} needs a single threshold"
                if len(several) == number
                else f"expected one threshold, or {number} for {number} channels"
            )
            msg = f"{reason}, got {len(several)}"
            raise ValueError(msg)
        return several

    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Channels, scores of them in their size, and the keywords for `update`."""
        truth, pred = reading.shaped(truth, "truth"), reading.shaped(pred, "pred")
        shape = tuple(truth.shape)
        check_channels(shape, self.axis, self.options.num_classes)
        if self.upsample and shape != tuple(pred.shape) and len(shape) == len(pred.shape):
            axis = self.axis % len(shape)
            pred = reading.upsampled(pred, shape[:axis] + shape[axis + 1 :], self.axis)
        decision = {"axis": self.axis, "threshold": self.threshold}
        return reading.whole_numbers(truth), pred, decision

    def _value(self, entry: Entry, counts: Counts, xp: Any) -> Any:
        """As in reports, accuracy and correlations pool the values of all channels."""
        pooled = ("pixel_accuracy", "cohen_kappa", "matthews_correlation")
        if entry.score not in pooled:
            return super()._value(entry, counts, xp)
        tp, fp, fn, tn = map(xp.sum, (counts.tp, counts.fp, counts.fn, counts.tn))
        pairs = ((tp, tn), (fp, fn), (fn, fp), (tn, tp))
        return super()._value(entry, Counts.trusted(*map(xp.stack, pairs)), xp)


def _options_like(like: Any, applies: Sequence[str], options: TorchOptions) -> ClassOptions:
    """The class options of an accumulator with more ignored values; ValueError for others."""
    usual = {"protocol": "segiou", "threshold": None, "activation": None}
    for name, value in options.items():
        if name not in applies and value != usual.get(name, ...):
            kind = type(like).__name__
            msg = f"{name} does not apply to a {kind}; pass options of the classes to the {kind}"
            raise ValueError(msg)
    classes: ClassOptions = like._classes
    more = ClassOptions.of(classes.labels, ignore=options.get("ignore", ())).ignore
    return replace(classes, ignore=tuple(dict.fromkeys((*classes.ignore, *more))))


class HistogramScoring(Scoring):
    """Overall scores of histograms like a given one."""

    lacks: ClassVar[dict[str, str]] = {
        **_not_kept("a ScoreHistogram"),
        "report": "report needs a confusion matrix; add a callback with the labels for it",
        "figure": "figure needs a confusion matrix; add a callback with the labels for it",
    }

    def __init__(self, histogram: ScoreHistogram, default: Scores, options: TorchOptions) -> None:
        applies = ("scores", "axis", "activation", "ignore", "upsample")
        self.options = _options_like(histogram, applies, options)
        self._like = histogram.bins.kind, histogram.regions
        self.activation = options.get("activation")
        if self.activation is not None:
            check_choice("activation", self.activation, ("softmax", "sigmoid"))
        scores = options.get("scores")
        if scores is None:
            scores = "average_precision" if isinstance(default, str) else tuple(self._formulas())
        super().__init__(scores, options)
        formulas = self._formulas()
        for name in self.names:
            check_choice("scores", name, tuple(formulas))
        self.higher_is_better = formulas[self.names[0]].better == "higher"

    def _formulas(self) -> dict[str, Formula]:
        # Not kept, because hooks are pickled.
        return formulas_of(self.options.num_classes, ScoreBins(self._like[0]))

    def _settings(self) -> list[Any]:
        return [[*self._like], self.axis, self.activation]

    def empty(self) -> ScoreHistogram:
        """Histograms without counts."""
        return ScoreHistogram.from_options(self.options, *self._like)

    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Truth without a class axis of size 1, scores, and the keywords for `update`."""
        truth, pred = self._arranged(truth, pred, "scores")
        if reading.is_one_hot(truth, pred, self.axis, self.options.num_classes):
            msg = (
                f"truth of shape {tuple(truth.shape)} has the channels of the scores along axis "
                f"{self.axis}, so it looks one-hot; pass labels, such as truth.argmax({self.axis})"
            )
            raise ValueError(msg)
        decision = {"axis": self.axis, "activation": self.activation}
        return reading.whole_numbers(truth), pred, decision

    @property
    def keys(self) -> list[str]:
        """The names that `values` returns."""
        return [*self.names]

    def _counts(self, counted: Any) -> NDArray[np.int64]:
        cells: NDArray[np.int64] = counted._cells
        return cells

    def values_of(self, counts: Any, separator: str = "/", xp: Any = np) -> dict[str, Any]:
        """Overall scores of the cells of a histogram."""
        formulas, include = self._formulas(), self.options.include
        return {name: formulas[name].whole(counts, include, xp) for name in self.names}


def scoring_of(
    hook: type,
    labels: Any,
    default: Scores,
    options: HookOptions,
    kind: type = TorchOptions,
    measures: Iterable[Any] = (),
) -> Scoring:
    """How a hook counts and scores: like `labels` if it is an accumulator.

    Options of the typed dict `kind` are accepted.
    """
    check_options(hook, options, kind)
    chosen: TorchOptions = {"upsample": False} if kind is TorchOptions else {}
    chosen.update(options)  # type: ignore[typeddict-item]
    if isinstance(labels, ScoreHistogram):
        return HistogramScoring(labels, default, chosen)
    if isinstance(labels, ChannelCounts):
        return ChannelScoring(labels, default, chosen)
    if measures:
        return ImageScoring(labels, default, chosen, measures)
    return MatrixScoring(labels, default, chosen)


def fix_of_repeats(scoring: Scoring, fix: str) -> str:
    """The end of a warning of repeated images: the fix for counts or for histograms."""
    return capital(_NO_REPEATS) if "ids" in scoring.lacks else fix


class Counting:
    """Adapters that keep counts."""

    def _counted(self) -> Any:
        """The counts as an accumulator."""
        raise NotImplementedError

    @property
    @not_compiled
    def counts(self) -> Any:
        """All counts so far; in Ignite over all processes, in torchmetrics of this process.

        A :class:`segiou.ConfusionMatrix`; or the kind that was passed in place of the labels,
        a :class:`segiou.ChannelCounts` or :class:`segiou.ScoreHistogram`.
        """
        return self._counted()


def digest(data: Any) -> list[int]:
    """SHA-256 of plain data."""
    return [*hashlib.sha256(json.dumps(data, sort_keys=True).encode()).digest()]
