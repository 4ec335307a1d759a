"""One pair of mask files, read and counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Problem, Stamp
from segiou.counting.class_sets import count_class_sets, read_sets
from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.counting.one_hot import OneHotError
from segiou.counting.window_counts import count_windows
from segiou.labels.label_set import LabelSet
from segiou.masks.formats.image_files import Scratch
from segiou.masks.formats.numpy_files import Fits
from segiou.masks.raw_mask import VOLUME_SUFFIXES, MaskError, RawMask
from segiou.masks.read import from_bytes, to_labels
from segiou.masks.reading import Reading
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.pairing import Pair
from segiou.measures.mask_pair import MaskPair
from segiou.runs.image_counts import ImageCount, ImageFiles, pack_measured
from segiou.scoring.alignment import Alignment, check_size
from segiou.scoring.open_mask import OpenMask, is_packed, open_large
from segiou.scoring.problems import UndeclaredError, one_hot_text, or_problem, undeclared_problem

if TYPE_CHECKING:
    from segiou.measures.object_mask import ObjectMask
    from segiou.measures.plan import Plan
    from segiou.runs.header import Header

Result = ImageCount | list[Problem]
T = TypeVar("T")

#: Pairs of ids that are counted at once; more of them take memory and save no time.
_MOST_SHARED = 1 << 16
_HERE = LocalFolder(".")


class _ThreadMemory(threading.local):
    """Memory that a thread reuses from pair to pair: for one truth and one prediction."""

    def __init__(self) -> None:
        self.memory = Scratch(), Scratch()


_thread = _ThreadMemory()


@dataclass(frozen=True)
class PairScorer:
    """Reads and counts pairs of files; cheap to send to workers.

    Attributes
    ----------
    header : Header
        The classes and measures.
    truth_source, pred_source : Source
        The places of the files.
    reading : Reading
        How masks are read.
    nodata : int, optional
        Nodata value of the first truth file.
    segments : tuple of (str, int)
        Values of the segments of 3D Slicer's files that are not classes, by name.
    """

    header: Header
    truth_source: Source = _HERE
    pred_source: Source = _HERE
    reading: Reading = Reading()
    nodata: int | None = None
    segments: tuple[tuple[str, int], ...] = ()

    def __call__(self, pairs: Sequence[Pair]) -> list[Result]:
        """Score a batch; the result of a pair that cannot be scored is its problems."""
        annotations: dict[str, Any] = {}
        return self._add_shared([self._score(pair, annotations) for pair in pairs])

    @cached_property
    def encoding(self) -> Encoding:
        """The classes of the label values of both sides."""
        return Encoding.of_classes(self.header.options)

    def _score(self, pair: Pair, annotations: dict[str, Any]) -> _Scored:
        with ExitStack() as stack:
            truth, pred = self.open_pair(stack, pair, _thread.memory, annotations)
            if isinstance(truth, Problem) or isinstance(pred, Problem):
                return [result for result in (truth, pred) if isinstance(result, Problem)]
            counted = or_problem(pair.pred, self._count, pair, truth, pred)
        return [counted] if isinstance(counted, Problem) else counted

    def open_pair(
        self,
        stack: ExitStack,
        pair: Pair,
        memory: tuple[Scratch, Scratch],
        annotations: dict[str, Any],
    ) -> list[OpenMask | Problem]:
        """Open both files of a pair; a file that cannot be read is a problem.

        Parameters
        ----------
        stack : ExitStack
            Closes large files.
        pair : Pair
            The files.
        memory : tuple of Scratch
            Memory of the labels of both sides, which are valid until it is reused.
        annotations : dict
            What was read beside the files of a batch so far.
        """
        opened: dict[int, OpenMask | Problem] = {}
        for side in (1, 0) if self.truth_source.lacks_size(pair.truth) else (0, 1):
            arguments = pair, side, memory[side], annotations, opened.get(1 - side)
            opened[side] = or_problem(pair.sides[side], self._open, stack, *arguments)
        return [opened[0], opened[1]]

    def _open(
        self,
        stack: ExitStack,
        pair: Pair,
        side: int,
        scratch: Scratch,
        annotations: dict[str, Any],
        other: OpenMask | Problem | None,
    ) -> OpenMask:
        """Open a mask file; its labels are valid until ``scratch``, their memory, is reused."""
        path, source = pair.sides[side], (self.truth_source, self.pred_source)[side]
        labels = (self.header.options.labels, self.header.options.pred_labels)[side]
        small = None
        if isinstance(source, LocalFolder) and not is_packed(path):
            small = source.read_small(path, scratch)
        if side and self.score_reader is not None:
            data, stamp = small or source.read(path)
            return OpenMask(np.empty(0), stamp, content=data)
        if small is None and self._reader is None:
            big = open_large(stack, path, source, labels, self.reading.allow_lossy)
            if big is not None:
                return big
        shape = tuple(other.values.shape) if isinstance(other, OpenMask) else ()
        data, stamp = small or source.read_sized(path, shape)
        raw = from_bytes(data, path, scratch, self._fits(pair, other) if side else None)
        with_ids = self._open_ids(raw, stamp, path, labels, annotations)
        return self._open_labels(raw, stamp, path, labels) if with_ids is None else with_ids

    def _open_ids(
        self, raw: RawMask, stamp: Stamp, path: str, labels: LabelSet, annotations: dict[str, Any]
    ) -> OpenMask | None:
        """The mask with ids of objects; None if no measure reads them from such a file."""
        if self._reader is None or (raw.lossy and not self.reading.allow_lossy):
            return None
        ids = self._reader.read(raw, path, labels, annotations)
        if ids is None:
            return None
        stamp = stamp.joined(ids.stamp) if ids.stamp else stamp
        about: dict[str, Any] = {"volume": raw.volume, "array_spacing": raw.spacing}
        return OpenMask(ids.ids, stamp, objects=ids, valid=raw.valid, **about)

    def _open_labels(self, raw: RawMask, stamp: Stamp, path: str, labels: LabelSet) -> OpenMask:
        if not all(shape := tuple(raw.values.shape)) or not shape:
            raise MaskError(path, f"has shape {shape}, which has no pixels")
        if raw.volume is not None:
            from segiou.masks.formats.slicer import assign_values, values_of

            raw = assign_values(raw, {**dict(self.segments), **values_of(labels)}, path)
        # Only pixels are counted: classes may overlap.
        sets = () if self.header.plans else raw.sets
        how = {"allow_lossy": self.reading.allow_lossy, "pages": True}
        values = raw.values if sets else to_labels(raw, path, labels, **how)
        return OpenMask(
            values,
            stamp,
            volume=raw.volume,
            raster=raw.raster,
            outside=(raw.background, raw.outside(labels)),
            valid=raw.valid,
            array_spacing=raw.spacing,
            sets=sets,
        )

    def _fits(self, pair: Pair, truth: OpenMask | Problem | None = None) -> Fits | None:
        """The check that rejects predictions of a different shape unread; None if any may fit."""
        if not isinstance(truth, OpenMask) or self.reading.resize_pred or self._reader is not None:
            return None
        shape = tuple(truth.values.shape)
        is_array = truth.volume is not None and not pair.pred.lower().endswith(VOLUME_SUFFIXES)
        may_be: dict[str, Any] = {"may_be_reversed": is_array, "may_be_image": truth.volume is None}
        return partial(check_size, pair, shape, **may_be)

    def _count(self, pair: Pair, truth: OpenMask, pred: OpenMask) -> _Scored:
        self._check_nodata(pair, truth)
        truth, pred = self.alignment.aligned(pair, truth, pred)
        files = ImageFiles(pair.truth, pair.pred, truth.stamp, pred.stamp)
        if truth.objects is not None and pred.objects is not None:
            if truth.valid is None and (
                shared := self._count_object_ids(pair, files, truth.objects, pred.objects)
            ):
                return shared
            truth, pred = truth.labelled(), pred.labelled()
        counted = self._confusion(pair, truth, pred)
        measured = self._measured(pair, truth, pred, counted)
        truth.check()
        pred.check()
        return ImageCount.of(pair.id, counted, files, measured)

    def _measured(
        self, pair: Pair, truth: OpenMask, pred: OpenMask, counted: ConfusionCounts
    ) -> bytes | None:
        """The packed counts of the measures, if there are any."""
        if not self.header.counts_more:
            return None
        images = MaskPair(
            truth.whole(),
            pred.whole(),
            self.header.options,
            (truth.objects, pred.objects),
            mask=truth.valid,
            spacing=self.alignment.spacing(pair, truth),
            tally=counted,
            scores=pred.scores,
            raster=truth.raster or pred.raster,
        )
        with _problem_of(pair.truth if pred.scores is None else pair.pred):
            return self.measured(images)

    def _count_object_ids(
        self, pair: Pair, files: ImageFiles, truth: ObjectMask, pred: ObjectMask
    ) -> list[Problem] | _SharedPair | None:
        """The pair without maps of pixels; None if other measures need them."""
        is_alone = len(self.header.plans) == 1
        if is_alone and (shared := self._reader.shared(truth, pred)):
            return _SharedPair(pair, files, shared)
        return _problems_of((truth, pred)) or None

    def _add_shared(self, results: Sequence[Result | _SharedPair]) -> list[Result]:
        """The results, with those of pairs that share ids counted together."""
        shared = [result for result in results if isinstance(result, _SharedPair)]
        before = np.cumsum([0, *(len(pair.pixels) for pair in shared)]) // _MOST_SHARED
        starts = [*np.flatnonzero(np.diff(before[:-1], prepend=-1)).tolist(), len(shared)]
        parts = (shared[start:stop] for start, stop in pairwise(starts))
        counted = chain.from_iterable(map(self._count_shared, parts))
        return [next(counted) if isinstance(r, _SharedPair) else r for r in results]

    def _count_shared(self, pairs: Sequence[_SharedPair]) -> list[Result]:
        """Count pairs at once; one by one if any of them has a problem."""
        result = or_problem(pairs[0].pair.pred, self._count_at_once, pairs)
        if not isinstance(result, Problem):
            return [*result]
        if len(pairs) == 1:
            return [_problems_of(pairs[0].sides) or [result]]
        return [*chain.from_iterable(self._count_shared([pair]) for pair in pairs)]

    def _count_at_once(self, pairs: Sequence[_SharedPair]) -> list[ImageCount]:
        from segiou.measures.object_mask import classified

        sides = [classified([pair.sides[k] for pair in pairs]) for k in (0, 1)]
        truth, pred = (np.concatenate([mask.classes for mask in masks]) for masks in sides)
        pixels = np.concatenate([pair.pixels for pair in pairs])
        try:
            cells = self.encoding.count_shared(truth, pred, pixels, [len(p.pixels) for p in pairs])
        except UndeclaredValuesError as error:
            raise self._undeclared(pairs[0].pair, error) from error
        (plan,) = self.header.plans
        images = [
            MaskPair(first.classes, second.classes, plan.classes, (first, second))
            for first, second in zip(*sides, strict=True)
        ]
        with _problem_of(pairs[0].pair.truth):
            packed = pack_measured(self.header, {plan.key: plan.count_several(images)})
        counted = zip(pairs, cells, packed, strict=True)
        return [ImageCount.of(p.pair.id, tally, p.files, more) for p, tally, more in counted]

    def _undeclared(
        self,
        pair: Pair,
        error: UndeclaredValuesError,
        truth: OpenMask | None = None,
        pred: OpenMask | None = None,
    ) -> UndeclaredError:
        """The problem of the file with undeclared values."""
        path, mask = (pair.truth, truth) if error.side == "truth" else (pair.pred, pred)
        unit = "pixels" if truth is None or truth.volume is None else "voxels"
        nodata = mask.raster.nodata if mask and mask.raster else None
        return UndeclaredError(undeclared_problem(path, error, self.header.options, unit, nodata))

    def _confusion(self, pair: Pair, truth: OpenMask, pred: OpenMask) -> ConfusionCounts:
        """The confusion matrix; errors name the file."""
        try:
            if truth.sets or pred.sets:
                return self._count_sets(truth, pred)
            return self._count_labels(truth, pred)
        except UndeclaredValuesError as error:
            raise self._undeclared(pair, error, truth, pred) from error
        except OneHotError as error:
            raise MaskError(pair.truth, one_hot_text(error)) from error

    def _count_labels(self, truth: OpenMask, pred: OpenMask) -> ConfusionCounts:
        """The counts of labels; nodata of the prediction is outside all classes."""
        try:
            return _count_masks(self.encoding, truth, pred)
        except UndeclaredValuesError as error:
            nodata = pred.raster.nodata if pred.raster else None
            if error.side != "pred" or {*error.values} != {nodata}:
                raise
            return _count_masks(replace(self.encoding, unassigned="count"), truth, pred)

    def _count_sets(self, truth: OpenMask, pred: OpenMask) -> ConfusionCounts:
        """The counts of each class against the rest."""
        of_truth, of_pred = self.encoding.truth, self.encoding.pred
        outside = (truth.sets or pred.sets)[0]  # of pixels outside all files
        return count_class_sets(
            read_sets("truth", truth.whole(), truth.sets, of_truth),
            read_sets("pred", pred.whole(), pred.sets, of_pred),
            self.header.options.num_classes,
            int((of_truth if truth.sets else of_pred).codes_of(np.array(outside))[0]),
            truth.valid,
        )

    def _check_nodata(self, pair: Pair, truth: OpenMask) -> None:
        """Raise an error if a class is nodata in this truth file but not in the first one."""
        nodata = truth.raster.nodata if truth.raster else None
        options = self.header.options
        if nodata is None or nodata == self.nodata or nodata in options.ignore:
            return
        for label in options.labels.classes:
            if nodata in label.values:
                first = "none" if self.nodata is None else self.nodata
                problem = (
                    f"has nodata value {nodata}, which is class {label.name!r}, but the first "
                    f"truth file has {first}; use the same nodata value in all truth files"
                )
                raise MaskError(pair.truth, problem)

    def measured(self, pair: MaskPair) -> bytes | None:
        """Counts of all measures of a pair, packed as in :class:`segiou.runs.ImageCount`.

        Parameters
        ----------
        pair : MaskPair
            Truth and prediction.
        """
        options, plans = pair.classes, self.header.plans
        tally = pair.tally
        if options.unassigned == "error" and tally is not None and tally.unassigned.any():
            # Nodata of a prediction is outside all classes.
            options = replace(options, unassigned="count")
            pair = replace(pair, classes=options)
            plans = tuple(replace(plan, classes=options) for plan in plans)
        packed = pack_measured(self.header, {plan.key: plan.count(pair) for plan in plans})
        return packed[0] if packed else None

    @cached_property
    def alignment(self) -> Alignment:
        """The grid of each pair."""
        return Alignment(self.reading, self.header.plans, self.score_reader)

    @cached_property
    def score_reader(self) -> Plan | None:
        """The plan that reads the predictions, if they are scores."""
        return next((plan for plan in self.header.plans if plan.reads_predictions), None)

    @cached_property
    def _reader(self) -> Any:
        """The measure that also reads object ids from the files, if any."""
        return next((p.measure for p in self.header.plans if p.measure.reads_ids), None)


@contextmanager
def _problem_of(path: str) -> Iterator[None]:
    """Turn a ValueError of a measure into a problem of a file."""
    try:
        yield
    except MaskError:
        raise
    except ValueError as error:
        raise MaskError(path, str(error)) from error


def _problems_of(sides: Sequence[ObjectMask]) -> list[Problem]:
    """Problems of masks whose segments are not those of their annotations."""
    checked: list[Any] = [or_problem(side.path, side.checked) for side in sides]
    return [result for result in checked if isinstance(result, Problem)]


def _count_masks(encoding: Encoding, truth: OpenMask, pred: OpenMask) -> ConfusionCounts:
    # Files of images and volumes have axes of pixels; arrays may have any.
    is_array = truth.volume is None and pred.volume is None and len(truth.values.shape) > 2
    options: dict[str, Any] = {"are_labels": not is_array}
    if truth.valid is not None:
        return encoding.count(truth.values, pred.whole(), mask=truth.valid, **options)
    if truth.is_big or pred.is_big:
        decoded = truth.decoded, pred.decoded
        return count_windows(encoding, truth.values, pred.values, decoded=decoded, **options)
    return encoding.count(truth.values, pred.values, **options)


class _SharedPair(NamedTuple):
    """A pair whose classes follow from ids; the pixels of ids are counted, those of classes not."""

    pair: Pair
    files: ImageFiles
    #: Truth and prediction, with one entry per pair of ids that share pixels.
    sides: Sequence[ObjectMask]

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Pixels of each pair of ids."""
        return np.asarray(self.sides[0].pixels)


_Scored = Result | _SharedPair
