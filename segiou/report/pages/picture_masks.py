"""The masks of an image for its pictures: read as they were counted, as large as a page shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Problem
from segiou.counting.value_codes import ValueCodes
from segiou.masks.formats.image_files import Scratch
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import to_labels
from segiou.masks.reading import Reading
from segiou.masks.sources.class_files import ClassMasks
from segiou.masks.sources.derived import ReadBy
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.opening import adjusted, open_source
from segiou.masks.sources.pairing import Pair
from segiou.masks.windows import resized
from segiou.measures.plan import Plan
from segiou.scoring.array_axes import BY_SHAPE
from segiou.scoring.open_mask import OpenMask
from segiou.scoring.pair import PairScorer

if TYPE_CHECKING:
    from segiou.masks.raw_mask import Volume

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
#: Pixels of a large file that are read at once.
_WINDOW_PIXELS = 1 << 24


def reader_of(run: Any, read: Reader | None = None) -> PairScorer:
    """The scorer that reads the masks of a run as they were counted; ``read`` gives their files."""
    options, known = run.options, run.provenance
    axes = known.get("array_axes")
    reading = Reading.of({**known, "array_axes": None if axes == BY_SHAPE else axes})
    places = [_place_of(known.get(side, ""), read) for side in ("truth", "pred")]
    if (pattern := reading.class_files) is not None:
        sides = zip(places, (options.labels, options.pred_labels), strict=True)
        lossy = reading.allow_lossy
        places = [ClassMasks.of(place, pattern, own, allow_lossy=lossy) for place, own in sides]
    truth, pred = adjusted(places[0], places[1], reading)
    for plan in run.plans:
        pred = plan.measure.predictions(pred, options)
    return PairScorer(run._header, truth, pred, reading)


def _place_of(root: str, read: Reader | None) -> Source:
    """The place of the files of a run; merged runs have files of several places."""
    place = open_source(root) if root and "://" not in root else LocalFolder(root)
    if read is None and not root:
        return ReadBy(place, lambda path: open_source(path).read(path)[0])
    return place if read is None else ReadBy(place, read)


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
    readers: Sequence[PairScorer],
    largest: int = 480,
    drawers: Sequence[Plan] = (),
) -> Masks:
    """Read masks as class indices, each prediction on the grid on which its run counted it."""
    if not truth:
        raise PictureError("scored from arrays, so there are no image files")
    try:
        return _read_sides(truth, preds, readers, largest, drawers)
    except (MaskError, OSError) as error:
        raise PictureError(str(error)) from error


def _read_sides(
    truth: str,
    preds: Sequence[str],
    readers: Sequence[PairScorer],
    largest: int,
    drawers: Sequence[Plan],
) -> Masks:
    arrays: list[Indices] = []
    whole: list[Any] = []
    scores: list[NDArray[np.uint8] | None] = []
    # One by one and reduced immediately, because masks may be huge.
    for path, reader in zip(preds, readers, strict=True):
        with ExitStack() as stack:
            first, pred = _opened(stack, reader, Pair("", truth, path))
            sides = [(pred, reader.encoding.pred, path)]
            if not arrays:
                frame = _Frame.of(first, pred, truth, largest, reader)
                sides.insert(0, (first, reader.encoding.truth, truth))
            for side, codes, where in sides:
                arrays.append(frame.indices(side, codes, where))
                whole += [frame.whole(side, where)] if drawers else []
            scores.append(frame.scores(pred, reader.score_reader))
    masks = Masks(tuple(arrays), frame.full, frame.spacing, frame.axes)
    masks = _add_scores(masks, scores, frame.num_classes)
    # Objects of the whole image would differ from those that were counted in a region.
    return _add_objects(masks, drawers, whole) if drawers and first.valid is None else masks


def _opened(stack: ExitStack, reader: PairScorer, pair: Pair) -> tuple[OpenMask, OpenMask]:
    """Truth and prediction as they were counted; MaskError if they cannot be read."""
    truth, pred = reader.open_pair(stack, pair, (Scratch(), Scratch()), {})
    for side in (truth, pred):
        if isinstance(side, Problem):
            raise MaskError(side.where, side.text)
    assert isinstance(truth, OpenMask) and isinstance(pred, OpenMask)
    return reader.alignment.aligned(pair, truth, pred)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The size at which the masks of an image are drawn: that of its truth, reduced."""

    full: Shape
    shape: Shape
    spacing: tuple[float, ...]
    axes: tuple[int, ...]
    largest: int
    num_classes: int
    #: The geometry of a volume, whose planes are axial, from top to bottom.
    volume: Volume | None

    @classmethod
    def of(
        cls, truth: OpenMask, pred: OpenMask, path: str, largest: int, reader: PairScorer
    ) -> _Frame:
        full, volume = tuple(truth.values.shape), truth.volume or pred.volume
        if len(full) not in (2, 3):
            msg = f"{path} has shape {full}, which cannot be drawn as a picture"
            raise PictureError(msg)
        spacing = (1.0, 1.0, 1.0) if volume is None else volume.spacing
        axes: tuple[int, ...] = (0, 1, 2)
        if volume is not None and len(full) == 3:
            nothing = np.broadcast_to(np.uint8(0), full)
            upright, spacing = _upright(replace(volume, values=nothing))
            full, axes = upright.shape, _upright_axes(volume)
        elif reader.reading.axes_of_volumes == "xyz" and len(full) == 3:
            full, axes = full[::-1], (2, 1, 0)
        num_classes = reader.encoding.num_classes
        shape = reduced(full, largest if len(full) == 2 else _VOXELS)
        return cls(full, shape, spacing, axes, largest, num_classes, volume)

    def upright(self, values: NDArray[Any]) -> NDArray[Any]:
        """An array of pixels of a volume as it is drawn."""
        if values.ndim != 3:
            return values
        if self.volume is None:
            return values.transpose(self.axes)
        return _upright(replace(self.volume, values=values))[0]

    def labels(self, side: OpenMask, path: str) -> NDArray[Any]:
        """The label of each pixel."""
        if side.sets:
            classes = RawMask(side.values, "L", "PNG", sets=side.sets)
            return self.upright(to_labels(classes, path, None))
        return self.upright(np.asarray(side.labelled().whole()))

    def indices(self, side: OpenMask, codes: ValueCodes, path: str) -> Indices:
        """Class indices; C where a truth is ignored or outside the region, C + 1 for no class."""
        if side.is_big and len(self.shape) == 2:
            labels = self._reduced_in_windows(side)
        else:
            labels = resized(self.labels(side, path), self.shape)
        coded: Indices = codes.codes_of(labels)
        # Undeclared is one past ignored in the truth and takes ignored's place in
        # the prediction, which knows no ignoring.
        coded[coded == codes.undeclared] = self.num_classes + 1
        if side.valid is not None:
            coded[~resized(self.upright(side.valid), self.shape)] = self.num_classes
        return coded

    def _reduced_in_windows(self, side: OpenMask) -> NDArray[Any]:
        """The labels of a large file at the size of the picture."""
        small, (height, width) = side.resized(self.shape), self.shape
        rows = max(1, _WINDOW_PIXELS * height // math.prod(self.full))
        starts = range(0, height, rows)
        windows = [small.values[start : start + rows, :width] for start in starts]
        return np.concatenate([small.decoded(window) for window in windows])

    def scores(self, side: OpenMask, plan: Any) -> NDArray[np.uint8] | None:
        """The scores of all classes of a prediction in hundredths, (C, ...), if it has any."""
        if side.scores is None:
            return None
        width = min(self.largest, _SCORES_WIDTH)
        size = reduced(self.full, width) if len(self.full) == 2 else self.shape

        def small(plane: NDArray[Any]) -> NDArray[Any]:
            return resized(self.upright(plane), size)

        is_one = side.scores.ndim == len(self.full)
        scores = small(side.scores) if is_one else np.stack([*map(small, side.scores)])
        shares = plan.class_scores(scores, size)
        if shares is None:
            return None
        # Ignored pixels may have any score.
        whole = np.rint(100 * np.nan_to_num(shares).clip(0, 1))
        return np.asarray(whole, np.uint8)

    def whole(self, side: OpenMask, path: str) -> Any:
        """Objects or labels at the size of the truth."""
        if side.objects is None:
            return self.labels(side, path)
        objects = side.objects.whole().checked()
        classes, ids = self.upright(objects.classes), self.upright(objects.id_map)
        return objects._replace(classes=classes, ids=ids)


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
