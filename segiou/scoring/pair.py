"""One pair of mask files, read and counted; very large ones window by window."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from segiou._support.files import Problem, Stamp
from segiou.counting.counts import Cells
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.masks.pairing import Pair
from segiou.masks.read import MaskError, RawMask, Scratch, from_bytes, to_labels
from segiou.masks.sources import PIXELS_AHEAD, LocalFolder, RemoteFolder, Source, stable_stamp
from segiou.masks.windows import BigMask, FileMask, ResizedMask, open_big
from segiou.runs.image_counts import ImageCount, ImageFiles
from segiou.scoring.pairings import (
    geometry_text,
    raster_text,
    size_text,
    undeclared_text,
)

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions
    from segiou.boundary.codes import LabelCodes
    from segiou.instances.object_files import ObjectMask, ObjectOptions
    from segiou.masks.tiff import Raster
    from segiou.masks.volumes import Volume
    from segiou.runs.surface_plan import SurfacePlan

Geometry = Literal["check", "ignore", "reorient"]

Result = ImageCount | list[Problem]
#: A file, or the mask that was decoded of it.
Content = tuple[bytes | RawMask, Stamp]
T = TypeVar("T")

#: Pairs whose files, if small, are read at once: not one at a time, since every call of the
#: operating system lets another thread run, and not all, since they take memory.
_AHEAD = 8
#: A file of fewer bytes is small, unless it is packed.
_BIG_BYTES = 1 << 26
_MOST_BYTES = 1 << 31

_TOO_LARGE_TO_TURN = (
    "is too large to exchange its axes; save it in the orientation of its truth, or as .nii.gz"
)


class _Kept(threading.local):
    """What a thread keeps from batch to batch."""

    def __init__(self) -> None:
        #: For masks read ahead, and for one truth and one prediction.
        self.memory = tuple(Scratch() for _ in range(3))
        #: Of the largest mask of the last batch.
        self.pixels = 0


_kept = _Kept()


@dataclass(frozen=True)
class PairScorer:
    """Reads and counts pairs of files; small, so that it can be sent to workers.

    Attributes
    ----------
    options : ClassOptions
    allow_lossy : bool
        Whether JPEG masks are taken.
    resize_pred : {"nearest"}, optional
        Resize predictions, never truth, to the truth's size.
    truth_source, pred_source : Source
        Where the files are.
    boundary : BoundaryOptions, optional
        What to measure at boundaries.
    geometry : {"check", "ignore", "reorient"}
        What is done where the volumes of a pair lie differently in space.
    objects : ObjectOptions, optional
        What objects are, and how they are scored.
    surfaces : SurfacePlan, optional
        What to measure between surfaces.
    """

    options: ClassOptions
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None
    truth_source: Source = field(default_factory=lambda: LocalFolder("."))
    pred_source: Source = field(default_factory=lambda: LocalFolder("."))
    boundary: BoundaryOptions | None = None
    geometry: Geometry = "check"
    objects: ObjectOptions | None = None
    surfaces: SurfacePlan | None = None

    def __call__(self, pairs: Sequence[Pair]) -> list[Result]:
        """Score a batch; a pair that cannot be scored gives its problems."""
        ahead, *memory = _kept.memory
        is_local = [isinstance(s, LocalFolder) for s in (self.truth_source, self.pred_source)]
        results: list[Result] = []
        while len(results) < len(pairs):
            # As many as have room if they are as large as the last.
            room = max(1, min(_AHEAD, PIXELS_AHEAD // max(1, 2 * _kept.pixels)))
            chosen = pairs[len(results) : len(results) + room]
            paths = [path for pair in chosen for path in (pair.truth, pair.pred)]
            contents = _read_ahead(paths, is_local * len(chosen), ahead)
            for i, pair in enumerate(chosen):
                results.append(self._score(pair, contents[2 * i : 2 * i + 2], memory))
            _kept.pixels = max(map(_decoded_pixels, contents))
        return results

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding.of_classes(self.options)

    def _score(
        self, pair: Pair, contents: Sequence[Content | None], memory: Sequence[Scratch]
    ) -> Result:
        sides = (
            (pair.truth, self.truth_source, self.options.labels),
            (pair.pred, self.pred_source, self.options.pred_labels),
        )
        with ExitStack() as stack:
            opened = [
                self._open(stack, *side, content, scratch)
                for side, content, scratch in zip(sides, contents, memory, strict=True)
            ]
            truth, pred = opened
            if isinstance(truth, Problem) or isinstance(pred, Problem):
                return [found for found in opened if isinstance(found, Problem)]
            counted = _or_problem(pair.pred, lambda: self._count(pair, truth, pred))
        if isinstance(counted, Problem):
            return [counted]
        files = ImageFiles(pair.truth, pair.pred, truth.stamp, pred.stamp)
        return ImageCount.of(pair.id, counted[0], files, *counted[1:])

    def _open(
        self,
        stack: ExitStack,
        path: str,
        source: Source,
        labels: LabelSet,
        content: Content | None,
        scratch: Scratch,
    ) -> _OpenMask | Problem:
        """Open a mask file until the stack closes it; ``content`` was read of it already.

        The labels are valid until ``scratch``, their memory, is used again.
        """

        def opened() -> _OpenMask:
            if content is None and self.objects is None:
                big = _open_windowed(stack, path, source, labels, self.allow_lossy)
                if big is not None:
                    return big
            data, stamp = source.read(path) if content is None else content
            raw = from_bytes(data, path, scratch)
            ids = None if self.objects is None else self.objects.read(raw, path, source.root)
            if ids is not None:
                return _OpenMask(ids.classes, stamp, objects=ids)
            values = to_labels(raw, path, labels, allow_lossy=self.allow_lossy)
            return _OpenMask(values, stamp, volume=raw.volume, raster=raw.raster)

        return _or_problem(path, opened)

    def _count(
        self, pair: Pair, truth: _OpenMask, pred: _OpenMask
    ) -> tuple[Cells, bytes | None, str | None] | Problem:
        aligned = self._aligned(pair, truth, pred)
        if isinstance(aligned, Problem):
            return aligned
        pred = aligned
        shapes = tuple(truth.values.shape), tuple(pred.values.shape)
        if shapes[0] != shapes[1]:
            if self.resize_pred is None or len(shapes[0]) != len(shapes[1]):
                return Problem(pair.pred, size_text(pair.truth, shapes))
            pred = pred.resized(shapes[0])
        try:
            count = self._count_pixels(truth, pred)
        except UndeclaredValuesError as error:
            path = pair.truth if error.side == "truth" else pair.pred
            unit = "pixels" if truth.volume is None else "voxels"
            problem = undeclared_text(error, self.options.num_classes, self.options.ignore, unit)
            return Problem(path, problem)
        try:
            measured = self._measured(truth, pred), self._measure_surfaces(truth, pred)
        except MaskError:
            raise
        except ValueError as error:
            return Problem(pair.truth, str(error))
        truth.check()
        pred.check()
        return count, *measured

    def _aligned(self, pair: Pair, truth: _OpenMask, pred: _OpenMask) -> _OpenMask | Problem:
        """The prediction, if it lies in space as its truth does."""
        if truth.raster and pred.raster and self.geometry != "ignore":
            shapes = truth.values.shape, pred.values.shape
            if difference := truth.raster.difference(pred.raster, *shapes):
                return Problem(pair.pred, raster_text(pair.truth, difference))
        if truth.volume is None or pred.volume is None or self.geometry == "ignore":
            return pred
        from segiou.masks.volumes import geometry_difference, reoriented

        volume = pred.volume
        if self.geometry == "reorient" and volume.orientation != truth.volume.orientation:
            if pred.is_big:
                raise MaskError(pair.pred, _TOO_LARGE_TO_TURN)
            volume = reoriented(volume, truth.volume)
        if difference := geometry_difference(truth.volume, volume):
            return Problem(pair.pred, geometry_text(pair.truth, difference))
        return replace(pred, values=volume.values, volume=volume)

    def _count_pixels(self, truth: _OpenMask, pred: _OpenMask) -> Cells:
        if not (truth.is_big or pred.is_big):
            return self._encoding.count(truth.values, pred.values).cells
        from segiou.counting.encoding import count_windows

        decoded = truth.decoded, pred.decoded
        return count_windows(self._encoding, truth.values, pred.values, decoded=decoded).cells

    def _measured(self, truth: _OpenMask, pred: _OpenMask) -> bytes | None:
        """Counts at boundaries and of objects."""
        if self.boundary is None and self.objects is None:
            return None
        from segiou.runs.cells import pack_measured

        at_boundaries = objects = None
        if self.boundary is not None:
            from segiou.boundary.image import count_labels

            labels = truth.whole(), pred.whole()
            at_boundaries = count_labels(self._codes, *labels, self.boundary)
        if self.objects is not None:
            empty = self.objects.empty(self.options)
            sides = (side.objects or side.whole() for side in (truth, pred))
            objects = self.objects.count(empty, *sides)
        return pack_measured(at_boundaries, objects)

    def _measure_surfaces(self, truth: _OpenMask, pred: _OpenMask) -> str | None:
        if self.surfaces is None:
            return None
        spacing = None if truth.volume is None else truth.volume.spacing
        labels = truth.whole(), pred.whole()
        return self.surfaces.measure(self.options, *labels, spacing=spacing)

    @cached_property
    def _codes(self) -> LabelCodes:
        from segiou.boundary.codes import LabelCodes

        return LabelCodes(self._encoding)


def _or_problem(path: str, do: Callable[[], T]) -> T | Problem:
    """The outcome, or what is wrong with the file."""
    try:
        return do()
    except MaskError as error:
        return Problem(error.path, error.problem)
    except MemoryError:
        return Problem(path, "does not fit into memory; store it as tiled TIFF or .npy")
    except Exception as error:  # noqa: BLE001 - one odd file must not end the run
        return Problem(path, f"cannot be read: {type(error).__name__}: {error}")


@dataclass(slots=True)  # frozen it would take twice as long to make
class _OpenMask:
    """A mask of labels.

    Attributes
    ----------
    values : ndarray or FileMask
    stamp : Stamp
    volume : Volume, optional
        The same values with their geometry.
    decoded : callable
        Makes labels of a window of ``values``.
    check : callable
        Raises MaskError if the file has changed since.
    objects : ObjectMask, optional
        The same values with the ids of their objects.
    raster : Raster, optional
        Where the pixels of a GeoTIFF lie.
    """

    values: BigMask
    stamp: Stamp
    volume: Volume | None = None
    decoded: Callable[[Any], Any] = lambda window: window
    check: Callable[[], None] = lambda: None
    objects: ObjectMask | None = None
    raster: Raster | None = None

    @property
    def is_big(self) -> bool:
        """Whether it must be counted window by window."""
        return isinstance(self.values, (FileMask, ResizedMask))

    def whole(self) -> Any:
        """All labels as one array, also of a big mask."""
        if not self.is_big:
            return self.values
        return self.decoded(self.values[tuple(slice(0, n) for n in self.values.shape)])

    def resized(self, shape: tuple[int, ...]) -> _OpenMask:
        """The same at another size; each pixel is that of the nearest centre."""
        resized: BigMask = ResizedMask(self.values, shape)
        if not self.is_big:
            resized = resized[tuple(slice(0, length) for length in shape)]
        return replace(self, values=resized, objects=self.objects and self.objects.resized(shape))


def _open_windowed(
    stack: ExitStack, path: str, source: Source, labels: LabelSet, allow_lossy: bool
) -> _OpenMask | None:
    """A mask that is not read whole; None of one that is."""
    is_local = isinstance(source, LocalFolder)
    if is_local and _may_be_big(path):
        version, stamp = stable_stamp(path)
        big = open_big(path)
    elif isinstance(source, RemoteFolder) and _is_packed(path):
        version, stamp = (), source.stamp(path)
        big = source.open_tiff(path) if (stamp.size or 0) >= _BIG_BYTES else None
    else:
        return None
    if big is None:
        return None
    values = stack.enter_context(big.values)

    def decoded(window: Any) -> Any:
        return to_labels(big._replace(values=window), path, labels, allow_lossy=allow_lossy)

    def check() -> None:
        if is_local and stable_stamp(path)[0] != version:
            problem = "is being changed while it is read; score when it is complete"
            raise MaskError(path, problem)

    return _OpenMask(values, stamp, big.volume, decoded, check, raster=big.raster)


def _decoded_pixels(content: Content | None) -> int:
    return content[0].values.size if content and isinstance(content[0], RawMask) else 0


def _read_ahead(
    paths: Sequence[str], is_local: Sequence[bool], scratch: Scratch
) -> list[Content | None]:
    """Small files all at once; None for those to be read one by one."""
    chosen = [local and not _is_packed(path) for path, local in zip(paths, is_local, strict=True)]
    found = iter(LocalFolder("").read_small(list(compress(paths, chosen)), scratch))
    return [next(found) if is_chosen else None for is_chosen in chosen]


def _may_be_big(path: str) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path would take longer than the question
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    packed = _is_packed(path)
    if found.st_size > _MOST_BYTES and not path.lower().endswith((".npy", ".nii")) and not packed:
        problem = f"has {found.st_size} bytes; store masks of this size as tiled TIFF or .npy"
        raise MaskError(path, problem)
    return packed or found.st_size >= _BIG_BYTES


def _is_packed(path: str) -> bool:
    return path.lower().endswith((".tif", ".tiff"))
