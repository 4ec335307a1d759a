"""One pair of mask files, read and counted; very large ones window by window."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from segiou._support.files import Problem, Stamp
from segiou._support.text import plural
from segiou.counting.counts import Tally
from segiou.counting.encoding import Encoding, UndeclaredValuesError, count_windows
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.masks.image_files import Scratch
from segiou.masks.pairing import Pair
from segiou.masks.read import MaskError, RawMask, from_bytes, to_labels
from segiou.masks.sources import PIXELS_AHEAD, LocalFolder, RemoteFolder, Source, stable_stamp
from segiou.masks.windows import FileMask, ResizedMask, WindowedMask, open_windowed, resized
from segiou.measures.measure import MaskPair
from segiou.runs.image_counts import ImageCount, ImageFiles, pack_measured

if TYPE_CHECKING:
    from segiou.instances.object_files import ObjectMask
    from segiou.masks.tiff import Raster
    from segiou.masks.volumes import Volume
    from segiou.runs.header import Header

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
_HERE = LocalFolder(".")

_TOO_LARGE_TO_TURN = (
    "is too large to exchange its axes; save it in the orientation of its truth, or as .nii.gz"
)
#: What texts about undeclared values begin with.
UNDECLARED = ("has very many values that are no class", "has values that are no class")


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
    header : Header
        The classes, and what else is counted.
    truth_source, pred_source : Source
        Where the files are.
    allow_lossy : bool
        Whether JPEG masks are taken.
    resize_pred : {"nearest"}, optional
        Resize predictions, never truth, to the truth's size.
    geometry : {"check", "ignore", "reorient"}
        What is done where the volumes of a pair lie differently in space.
    """

    header: Header
    truth_source: Source = _HERE
    pred_source: Source = _HERE
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None
    geometry: Geometry = "check"

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
            # Small files all at once; the others one by one.
            local = zip(paths, is_local * len(chosen), strict=True)
            at_once = [here and not _is_packed(path) for path, here in local]
            read = iter(LocalFolder("").read_small(list(compress(paths, at_once)), ahead))
            contents = [next(read) if is_read else None for is_read in at_once]
            for i, pair in enumerate(chosen):
                results.append(self._score(pair, contents[2 * i : 2 * i + 2], memory))
            decoded = [c[0] for c in contents if c and isinstance(c[0], RawMask)]
            _kept.pixels = max((mask.values.size for mask in decoded), default=0)
        return results

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding.of_classes(self.header.options)

    def _score(
        self, pair: Pair, contents: Sequence[Content | None], memory: Sequence[Scratch]
    ) -> Result:
        sides = (
            (pair.truth, self.truth_source, self.header.options.labels),
            (pair.pred, self.pred_source, self.header.options.pred_labels),
        )
        with ExitStack() as stack:
            opened = [
                _or_problem(side[0], self._open, stack, *side, content, scratch)
                for side, content, scratch in zip(sides, contents, memory, strict=True)
            ]
            truth, pred = opened
            if isinstance(truth, Problem) or isinstance(pred, Problem):
                return [found for found in opened if isinstance(found, Problem)]
            counted = _or_problem(pair.pred, self._count, pair, truth, pred)
        return [counted] if isinstance(counted, Problem) else counted

    def _open(
        self,
        stack: ExitStack,
        path: str,
        source: Source,
        labels: LabelSet,
        content: Content | None,
        scratch: Scratch,
    ) -> _OpenMask:
        """Open a mask file until the stack closes it; ``content`` was read of it already.

        The labels are valid until ``scratch``, their memory, is used again.
        """
        if content is None and self._reader is None:
            big = _open_windowed(stack, path, source, labels, self.allow_lossy)
            if big is not None:
                return big
        data, stamp = source.read(path) if content is None else content
        raw = from_bytes(data, path, scratch)
        if self._reader is not None and (self.allow_lossy or not raw.lossy):
            stamp = self._reader.stamp(stamp, path)
            ids = self._reader.read(raw, path)
            if ids is not None:
                return _OpenMask(ids.classes, stamp, objects=ids)
        values = to_labels(raw, path, labels, allow_lossy=self.allow_lossy)
        return _OpenMask(values, stamp, volume=raw.volume, raster=raw.raster)

    def _count(self, pair: Pair, truth: _OpenMask, pred: _OpenMask) -> ImageCount:
        pred = self._aligned(pair, truth, pred)
        shapes = tuple(truth.values.shape), tuple(pred.values.shape)
        if shapes[0] != shapes[1]:
            if self.resize_pred is None or len(shapes[0]) != len(shapes[1]):
                raise MaskError(pair.pred, size_text(pair.truth, shapes))
            pred = pred.resized(shapes[0])
        try:
            if truth.is_big or pred.is_big:
                decoded = truth.decoded, pred.decoded
                counted: Tally = count_windows(
                    self._encoding, truth.values, pred.values, decoded=decoded
                )
            else:
                counted = self._encoding.count(truth.values, pred.values)
        except UndeclaredValuesError as error:
            path = pair.truth if error.side == "truth" else pair.pred
            unit = "pixels" if truth.volume is None else "voxels"
            raise MaskError(path, undeclared_text(error, self.header.options, unit)) from error
        beside: bytes | None = None
        if self.header.counts_more:
            spacing = None if truth.volume is None else truth.volume.spacing
            objects = truth.objects, pred.objects
            try:
                beside = self.measured(
                    truth.whole(), pred.whole(), objects, spacing=spacing, tally=counted
                )
            except MaskError:
                raise
            except ValueError as error:
                raise MaskError(pair.truth, str(error)) from error
        truth.check()
        pred.check()
        files = ImageFiles(pair.truth, pair.pred, truth.stamp, pred.stamp)
        return ImageCount.of(pair.id, counted, files, beside)

    def _aligned(self, pair: Pair, truth: _OpenMask, pred: _OpenMask) -> _OpenMask:
        """The prediction, if it lies in space as its truth does."""
        if self.geometry == "ignore":
            return pred
        if truth.raster and pred.raster:
            shapes = truth.values.shape, pred.values.shape
            if difference := truth.raster.difference(pred.raster, *shapes):
                text = geometry_text(pair.truth, difference, "warp", "pixel")
                raise MaskError(pair.pred, text)
        if truth.volume is None or pred.volume is None:
            return pred
        from segiou.masks.volumes import geometry_difference, reorient

        volume = pred.volume
        if self.geometry == "reorient" and volume.orientation != truth.volume.orientation:
            if pred.is_big:
                raise MaskError(pair.pred, _TOO_LARGE_TO_TURN)
            volume = reorient(volume, truth.volume)
        if difference := geometry_difference(truth.volume, volume):
            raise MaskError(pair.pred, geometry_text(pair.truth, difference))
        return replace(pred, values=volume.values, volume=volume)

    def measured(
        self,
        truth: Any,
        pred: Any,
        ids: Sequence[ObjectMask | None] = (None, None),
        *,
        mask: Any = None,
        spacing: Sequence[float] | None = None,
        tally: Tally | None = None,
    ) -> bytes | None:
        """What is counted beside the pixels, packed.

        Parameters
        ----------
        truth, pred : array_like
            Labels of either side.
        ids : sequence of ObjectMask or None, optional
            Ids of the objects of either side, where it has some.
        mask : array_like, optional
            True where a pixel counts; all by default.
        spacing : sequence of float, optional
            Spacing of the truth's file.
        tally : Tally, optional
            Its pixels as they were counted.

        Returns
        -------
        bytes or None
            As :class:`segiou.runs.ImageCount` keeps them.
        """
        options = self.header.options
        images = MaskPair(truth, pred, options, (ids[0], ids[1]), mask, spacing, tally)
        counted = {one.key: one.count(images) for one in self.header.plans}
        return pack_measured(self.header, counted)

    @cached_property
    def _reader(self) -> Any:
        """The measure that reads more of a file than classes, if one does."""
        return next((p.measure for p in self.header.plans if hasattr(p.measure, "read")), None)


def _or_problem(path: str, do: Callable[..., T], *given: Any) -> T | Problem:
    """The outcome, or what is wrong with the file."""
    try:
        return do(*given)
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

    values: WindowedMask
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
        values = ResizedMask(self.values, shape) if self.is_big else resized(self.values, shape)
        return replace(self, values=values, objects=self.objects and self.objects.resized(shape))


def _open_windowed(
    stack: ExitStack, path: str, source: Source, labels: LabelSet, allow_lossy: bool
) -> _OpenMask | None:
    """A mask that is not read whole; None of one that is."""
    is_local = isinstance(source, LocalFolder)
    if is_local and _may_be_big(path):
        version, stamp = stable_stamp(path)
        big = open_windowed(path)
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


def size_text(truth: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    """What to do about a prediction of another size than its truth."""

    def size(shape: tuple[int, ...]) -> str:
        flat = len(shape) == 2
        return f"is {shape[1]} × {shape[0]} pixels" if flat else f"has shape {shape}"

    return (
        f"{size(shapes[1])}, but its truth {size(shapes[0])}; predict at the truth's size, or "
        f"resize predictions: resize_pred='nearest' (--resize-pred nearest) [truth: {truth}]"
    )


def geometry_text(truth: str, difference: str, move: str = "resample", unit: str = "voxel") -> str:
    """What to do about a mask that does not lie in space as its truth does."""
    fix = f"{move} it to the grid of its truth"
    if difference.startswith("orientation"):
        fix = "exchange its axes: geometry='reorient' (--geometry reorient)"
    # Voxels of unequal shapes have no partners.
    if not difference.startswith("shape"):
        fix += f", or compare {unit} by {unit}: geometry='ignore' (--geometry ignore)"
    return f"has {difference}; {fix} [truth: {truth}]"


def undeclared_text(error: UndeclaredValuesError, options: ClassOptions, unit: str) -> str:
    """What undeclared values in a file most likely mean, and the options that take them."""
    values = error.values
    ranked = sorted(values.items(), key=lambda item: -item[1])
    more = f" and {len(ranked) - 6} more" if len(ranked) > 6 else ""
    shown = ", ".join(str(value) for value, _ in ranked[:6])
    names = ("px", "px") if unit == "pixels" else ("voxel", "voxels")
    pixels = ", ".join(f"{value}: {plural(count, *names)}" for value, count in ranked[:6])
    declared = {value for several in options.labels.class_values for value in several}
    # What Cityscapes has instances of are its labels 24 to 33.
    if any(24 <= value // 1000 <= 33 and value // 1000 in declared for value in values):
        return (
            f"has values that are no class: {shown}{more}; if they are Cityscapes' instanceIds: "
            "objects='cityscapes' (segiou score --objects cityscapes), or take the labelIds files "
            f"[{pixels}{more}]"
        )
    if len(values) > max(8, options.num_classes):
        return (
            "has very many values that are no class; so many look like a mask that was resized "
            "with interpolation or saved with loss: make it again with nearest neighbour, as PNG "
            f"[{pixels}{more}]"
        )
    text = f"has values that are no class: {shown}{more}"
    if set(values) == {255} and options.num_classes <= 2:
        text += "; a 0/255 mask? labels='binary' (--labels binary) reads both"
    if error.side == "truth":
        ignore = " ".join(f"--ignore {value}" for value, _ in ranked[:6])
        return f"{text}; add them to the label set, or drop their {unit}: {ignore} [{pixels}]"
    ignored = set(values) <= set(options.ignore)
    swapped = "the truth ignores them: are truth and prediction swapped? If not, "
    return (
        f"{text}, on {unit} that are not ignored; {swapped if ignored else ''}add them to the "
        "label set, or count them as missed: unassigned='count' (--unassigned count) "
        f"[{pixels}]"
    )
