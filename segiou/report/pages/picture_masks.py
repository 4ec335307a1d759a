"""The masks of an image for its pictures: read as class indices, as large as a page shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.counting.encoding import Encoding
from segiou.counting.value_codes import ValueCodes
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.masks.raw_mask import VOLUME_SUFFIXES, MaskError, RawMask, image_shape
from segiou.masks.read import from_bytes, mapped_background, open_mask, to_labels
from segiou.masks.reading import Reading
from segiou.masks.sources.adjusted import AdjustedSource
from segiou.masks.sources.class_files import ClassMasks
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.opening import adjusted, open_source
from segiou.masks.sources.yolo_files import YoloFolder
from segiou.masks.windows import resized
from segiou.measures.mask_pair import ScoredPrediction
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan

if TYPE_CHECKING:
    from segiou.masks.raw_mask import Volume
    from segiou.measures.object_mask import ObjectMask

Indices = NDArray[np.uint16]
Shape = tuple[int, ...]
Outcomes = tuple[list[list[int]], list[list[int]]]
Reader = Callable[[str], bytes | RawMask]

#: Voxels along each axis of a volume, at most.
_VOXELS = 160
#: Objects of an image are drawn where there are fewer.
_MOST_OBJECTS = 1 << 16
#: Classes of an image whose scores are drawn, and their width, at most.
_SCORED, _SCORES_WIDTH = 8, 480


@dataclass(frozen=True, slots=True)
class ScoreReader:
    """Reads predictions of scores as they were counted."""

    plan: Plan
    source: Source
    read: Reader | None

    @classmethod
    def of(cls, run: Any, read: Reader | None = None) -> ScoreReader | None:
        """The reader of a run's predictions if they are scores."""
        plan = next((plan for plan in run.plans if plan.reads_predictions), None)
        if plan is None:
            return None
        place = LocalFolder(run.provenance.get("pred", ""))
        return cls(plan, plan.measure.predictions(place, run.options), read)

    def __call__(self, truth: Shape, path: str) -> ScoredPrediction:
        """The prediction at a path, by the shape of its truth."""
        data = self.source.read(path)[0] if self.read is None else self.read(path)
        return self.plan.read_prediction(data, path, truth)

    def hundredths(self, prediction: ScoredPrediction, shape: Shape) -> NDArray[np.uint8] | None:
        """The scores of all classes at another size, (C, *shape); None if none are shown."""

        def small(plane: NDArray[Any]) -> NDArray[Any]:
            if prediction.volume is not None:
                plane = _upright(replace(prediction.volume, values=plane))[0]
            return resized(plane, shape)

        is_one = prediction.scores.ndim == prediction.labels.ndim
        scores = small(prediction.scores) if is_one else np.stack([*map(small, prediction.scores)])
        shares = self.plan.class_scores(scores, shape)
        if shares is None:
            return None
        # Ignored pixels may have any score.
        whole = np.rint(100 * np.nan_to_num(shares).clip(0, 1))
        return np.asarray(whole, np.uint8)


def _place(root: str) -> Source:
    """A folder of a run; the files of other places are read from their own paths."""
    source = open_source(root) if root and Path(root).is_dir() else None
    return source if isinstance(source, YoloFolder) else LocalFolder(root)


def adjusted_reader(run: Any, read: Reader | None) -> Reader | None:
    """The reader of a run's files with the options that changed them as they were counted."""
    # Pictures find the axes of arrays by their shapes.
    reading = Reading.of({**run.provenance, "array_axes": None})
    pattern = reading.class_files
    places: list[Any] = [_place(run.provenance.get(side, "")) for side in ("truth", "pred")]
    if pattern is not None:
        label_sets = run.options.labels, run.options.pred_labels
        places = [
            ClassMasks.of(place, pattern, labels, allow_lossy=reading.allow_lossy)
            for place, labels in zip(places, label_sets, strict=True)
        ]
    truth, pred = adjusted(places[0], places[1], reading)
    if [*map(type, (truth, pred))] == [LocalFolder] * 2:
        return read
    suffix = run.provenance.get("pred_suffix")

    def is_pred(path: str) -> bool:
        return bool(suffix) and (path.endswith(suffix) or Path(path).stem.endswith(suffix))

    def content(path: str, other: Shape = ()) -> bytes | RawMask:
        inside = max(places, key=lambda place: path.startswith(place.root) * len(place.root))
        if places[0].root == places[1].root and is_pred(path):
            inside = places[1]
        source = truth if inside is places[0] else pred
        if not isinstance(inside, LocalFolder):
            known = {"other": other} if isinstance(inside, YoloFolder) else {}
            data: bytes | RawMask = inside.read(path, **known)[0]
        else:
            data = Path(path).read_bytes() if read is None else read(path)
        return source.adjusted(data, path) if isinstance(source, AdjustedSource) else data

    return content


@dataclass(frozen=True, slots=True)
class MaskReader:
    """Reads the masks of a run as they were counted."""

    options: ClassOptions
    #: Gives the content of a file; by default, it is read from its path.
    read: Reader | None = None
    scores: ScoreReader | None = None
    #: Whether ``read`` also takes the shape of the truth.
    takes_shape: bool = False

    @classmethod
    def of(cls, run: Any, read: Reader | None = None) -> MaskReader:
        """The reader of a run, whose files may be in other places."""
        reader = adjusted_reader(run, read)
        return cls(run.options, reader, ScoreReader.of(run, read), reader is not read)

    def of_pred(self, truth: Shape) -> Any:
        """The reader of predictions, by the shape of their truth."""
        if self.scores is not None:
            return partial(self.scores, truth)
        read: Any = self.read
        return partial(read, other=truth) if self.takes_shape else read


class PictureError(ValueError):
    """A picture that cannot be shown; its message is for readers of the page."""


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """The masks of one image, as large as a page can show them."""

    #: Truth, then predictions: class indices; C where the truth is ignored, C + 1 for no class.
    arrays: tuple[Indices, ...]
    #: Shape of the truth itself.
    full: Shape
    #: Distance between the planes, rows and columns of a volume.
    spacing: tuple[float, ...] = (1.0, 1.0, 1.0)
    #: For each axis of the arrays that of the file, or its complement if it runs backwards.
    axes: tuple[int, ...] = (0, 1, 2)
    #: Numbers of the objects of each array, from 1; none where they were not scored.
    objects: tuple[Indices, ...] = ()
    #: The plane of a volume that the arrays are, and the number of planes; from :func:`plane_of`.
    plane: tuple[int, int] = (0, 1)
    #: For each prediction, outcomes of the true and of the predicted objects.
    outcomes: tuple[Outcomes, ...] = ()
    #: The classes with the most wrong pixels, if predictions are scores.
    scored: tuple[int, ...] = ()
    #: Their scores for each prediction, in hundredths; empty if it has none.
    scores: tuple[NDArray[np.uint8], ...] = ()


def read_indices(
    truth: str,
    preds: Sequence[str],
    readers: Sequence[MaskReader],
    largest: int = 480,
    drawers: Sequence[Plan] = (),
) -> Masks:
    """Read masks as class indices, predictions at the truth's size, each as its run read it."""
    first = readers[0].options
    objects = drawers[0].measure if drawers else None
    side = _read_side(truth, first.labels, readers[0].read, objects)
    frame = _Frame.of(side, largest, first.num_classes)
    outside, spacing, axes = side.outside, side.spacing, side.axes
    arrays = [frame.indices(side, Encoding.of_classes(first).truth, truth)]
    whole = [frame.whole(side)] if objects else []
    scores: list[NDArray[np.uint8] | None] = []
    has_region = side.valid is not None
    # One by one and reduced immediately, because masks may be huge.
    for path, own in zip(preds, readers, strict=True):
        _check_kinds(truth, path)
        options, reader = own.options, own.scores
        content = own.of_pred(frame.full)
        side = _read_side(path, options.pred_labels, content, objects, outside)
        arrays.append(frame.indices(side, Encoding.of_classes(options).pred, path))
        whole += [frame.whole(side)] if objects else []
        scores.append(frame.scores(side, reader))
        has_region |= side.valid is not None
    masks = _add_scores(Masks(tuple(arrays), frame.full, spacing, axes), scores, first.num_classes)
    # Objects of the whole image would differ from those that were counted in a region.
    return masks if not drawers or has_region else _add_objects(masks, drawers, whole)


def _check_kinds(truth: str, pred: str) -> None:
    if truth.lower().endswith(VOLUME_SUFFIXES) > pred.lower().endswith(VOLUME_SUFFIXES):
        msg = f"{pred} is an array beside a volume; save it as NIfTI to see it"
        raise PictureError(msg)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The size at which the masks of an image are drawn: that of its truth, reduced."""

    full: Shape
    shape: Shape
    largest: int
    num_classes: int

    @classmethod
    def of(cls, truth: _Side, largest: int, num_classes: int) -> _Frame:
        full = truth.values.shape
        return cls(
            full, reduced(full, largest if len(full) == 2 else _VOXELS), largest, num_classes
        )

    def indices(self, side: _Side, codes: ValueCodes, path: str) -> Indices:
        """Class indices; C where a truth is ignored or outside the region, C + 1 for no class."""
        if side.values.ndim != len(self.shape):
            msg = f"{path} has shape {side.values.shape}, but the truth {self.full}"
            raise PictureError(msg)
        coded: Indices = codes.codes_of(resized(side.values, self.shape))
        # Undeclared is one past ignored in the truth and takes ignored's place in
        # the prediction, which knows no ignoring.
        coded[coded == codes.undeclared] = self.num_classes + 1
        if side.valid is not None:
            coded[~resized(side.valid, self.shape)] = self.num_classes
        return coded

    def scores(self, side: _Side, reader: ScoreReader | None) -> NDArray[np.uint8] | None:
        """The scores of a prediction in hundredths, if it has any."""
        if reader is None or side.scored is None:
            return None
        width = min(self.largest, _SCORES_WIDTH)
        size = reduced(self.full, width) if len(self.full) == 2 else self.shape
        return reader.hundredths(side.scored, size)

    def whole(self, side: _Side) -> Any:
        """Objects or labels at the size of the truth."""
        return resized(side.values, self.full) if side.ids is None else side.ids.resized(self.full)


def _add_scores(masks: Masks, scores: Sequence[NDArray[np.uint8] | None], classes: int) -> Masks:
    """The same with the scores of the classes that have the most wrong pixels."""
    if all(of_pred is None for of_pred in scores):
        return masks
    truth, *preds = masks.arrays
    pixels, wrong = np.zeros((2, classes + 2), np.int64)
    for pred in preds:
        valid = truth != classes
        for side in (truth, pred):
            pixels += np.bincount(side[valid], minlength=classes + 2)
            wrong += np.bincount(side[valid & (truth != pred)], minlength=classes + 2)
    # The smaller of two classes with the same errors comes first.
    order = [c for c in np.lexsort((pixels, -wrong)).tolist() if pixels[c] and c < classes]
    chosen = order[:_SCORED]
    none = np.empty((0,), np.uint8)
    drawn = tuple(none if of_pred is None else of_pred[chosen] for of_pred in scores)
    return replace(masks, scored=tuple(chosen), scores=drawn)


def _add_objects(masks: Masks, drawers: Sequence[Plan], whole: Sequence[Any]) -> Masks:
    """The same with the objects of each side, and what became of them."""
    truth, *others = whole
    shape = masks.arrays[0].shape
    drawn = [
        drawer.drawn_objects(truth, pred, shape, masks.spacing)
        for pred, drawer in zip(others, drawers, strict=True)
    ]
    numbers = [drawn[0][0][0], *(pred_numbers for _, (pred_numbers, _) in drawn)]
    if max(int(array.max()) for array in numbers) >= _MOST_OBJECTS:
        return masks
    return replace(
        masks,
        objects=tuple(array.astype(np.uint16) for array in numbers),
        outcomes=tuple((of_truth, of_pred) for (_, of_truth), (_, of_pred) in drawn),
    )


def reduced(shape: Shape, largest: int) -> Shape:
    """Reduce a shape to a width, and a height of half as much again; each axis of a volume.

    >>> reduced((1024, 2048), 480), reduced((3000, 100), 480), reduced((17, 512, 512), 160)
    ((240, 480), (720, 24), (17, 160, 160))
    """
    if len(shape) == 3:
        return tuple(min(n, largest) for n in shape)
    scale = min(1.0, largest / shape[1], 1.5 * largest / shape[0])
    return tuple(max(1, round(n * scale)) for n in shape)


class _Side(NamedTuple):
    """A mask file; the planes of a volume are axial, from top to bottom."""

    #: Label values.
    values: NDArray[Any]
    spacing: tuple[float, ...]
    #: As those of :class:`Masks`.
    axes: tuple[int, ...]
    #: Ids of objects.
    ids: ObjectMask | None
    #: The label outside segments.
    outside: int | None
    scored: ScoredPrediction | None
    #: The region that counts.
    valid: NDArray[np.bool_] | None


def _read_side(
    path: str,
    labels: LabelSet,
    read: Callable[[str], bytes | RawMask | ScoredPrediction] | None,
    objects: Measure | None,
    outside: int | None = None,
) -> _Side:
    """Read a mask file; ``outside`` is the label outside segments of its truth."""
    if not path:
        raise PictureError("scored from arrays, so there are no image files")
    scored = None
    try:
        content = None if read is None else read(path)
        if isinstance(content, ScoredPrediction):
            scored = content
            content = RawMask(scored.labels, "scores", "scores", volume=scored.volume)
        raw = open_mask(path) if content is None else from_bytes(content, path)
        read_objects = None if objects is None else objects.read(raw, path, labels)
        ids = read_objects and read_objects.whole()
        values: Any = (
            to_labels(raw, path, labels, allow_lossy=True, pages=True)
            if ids is None
            else ids.classes
        )
        values = mapped_background(values, raw.background, outside, path)
    except (MaskError, OSError) as error:
        raise PictureError(str(error)) from error
    spacing: tuple[float, ...] = (1.0, 1.0, 1.0)
    axes: tuple[int, ...] = (0, 1, 2)
    valid = raw.valid
    if raw.volume is None and ids is None:
        shape = image_shape(tuple(values.shape))
        values = values.reshape(shape)
        valid = None if valid is None else valid.reshape(shape)
    if raw.volume is not None:
        spacing = raw.volume.spacing
        if values.ndim == 3:
            axes = _upright_axes(raw.volume)
            values, spacing = _upright(raw.volume)
            valid = None if valid is None else _upright(replace(raw.volume, values=valid))[0]
    if values.ndim not in (2, 3) or not values.size:
        msg = f"{path} has shape {values.shape}, which cannot be drawn as a picture"
        raise PictureError(msg)
    return _Side(values, spacing, axes, ids, raw.outside(labels), scored, valid)


def plane_of(masks: Masks, plane: int) -> Masks:
    """One plane of the masks of a volume."""
    arrays = tuple(array[plane] for array in masks.arrays)
    return replace(masks, arrays=arrays, plane=(plane, len(masks.arrays[0])))


def scan_plane(path: Path, masks: Masks) -> NDArray[np.uint8]:
    """The plane of a scan that masks are, in grey."""
    from segiou.masks.formats.volumes import scan

    try:
        values = _upright(scan(path))[0]
    except (MaskError, OSError) as error:
        raise PictureError(str(error)) from error
    if values.shape != masks.full:
        msg = f"{path} has shape {values.shape}, but its masks {masks.full}"
        raise PictureError(msg)
    plane, planes = masks.plane
    shown = resized(values, (planes, *masks.arrays[0].shape))[plane]
    return in_grey(shown, values[:: max(1, len(values) // _VOXELS)])


def in_grey(values: NDArray[Any], every: NDArray[Any]) -> NDArray[np.uint8]:
    """Values in grey, from the 1st to the 99th percentile of every value."""
    known = every[np.isfinite(every)]
    # Few pixels, such as those of metal, would leave the others dark.
    low, high = np.quantile(known, (0.01, 0.99)) if known.size else (0.0, 1.0)
    grey = np.nan_to_num((values.astype(float) - low) / ((high - low) or 1)).clip(0, 1)
    return np.asarray(np.rint(255 * grey), np.uint8)


def _upright(volume: Volume) -> tuple[NDArray[Any], tuple[float, ...]]:
    """Values and spacing of a volume in the radiological orientation."""
    from segiou.masks.formats.volumes import reorient

    # To the right, to the front, to the top.
    turned = reorient(volume, replace(volume, affine=np.eye(4)))
    return turned.values.T[::-1, ::-1, ::-1], turned.spacing[::-1]


def _upright_axes(volume: Volume) -> tuple[int, ...]:
    """The axes of a volume in the radiological orientation, see :class:`Masks`."""
    # Along each axis, the numbers of these voxels differ by another power of two.
    numbers = _upright(replace(volume, values=np.arange(8).reshape(2, 2, 2)))[0]
    steps = [int(numbers[at] - numbers[0, 0, 0]) for at in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    return tuple({4: 0, 2: 1, 1: 2, -4: ~0, -2: ~1, -1: ~2}[step] for step in steps)
