"""One pair of files → its counts, or what is wrong with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

from numpy.typing import NDArray

from segiou._arguments import check_choice, check_flag
from segiou.boundary import BoundaryOptions, LabelCodes, count_labels
from segiou.classes import ClassOptions
from segiou.counting import Encoding, PairCount, UndeclaredValuesError
from segiou.labels import LabelSet
from segiou.pairing import Pair
from segiou.readers import MaskError
from segiou.readers.scratch import Scratch
from segiou.runs import ImageCount, ImageFiles, Problem
from segiou.runs.boundaries import pack_boundary
from segiou.scoring.masks import Content, OpenMask, open_labels, read_ahead
from segiou.scoring.problems import size_text, undeclared_text
from segiou.sources import LocalFolder, Source
from segiou.windows import ResizedMask, count_windows

__all__ = ["PairScorer", "Result", "resized_nearest"]

Result = ImageCount | list[Problem]
T = TypeVar("T")

#: Pairs whose files, if small, are read at once: not one at a time, since every call of the
#: operating system lets another thread run, and not all, since they take memory.
_AHEAD = 8

_kept = threading.local()


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
    """

    options: ClassOptions
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None
    truth_source: Source = field(default_factory=lambda: LocalFolder("."))
    pred_source: Source = field(default_factory=lambda: LocalFolder("."))
    boundary: BoundaryOptions | None = None

    def __post_init__(self) -> None:
        check_flag("allow_lossy", self.allow_lossy)
        if self.resize_pred is not None:
            check_choice("resize_pred", self.resize_pred, ("nearest",))

    def __call__(self, pairs: Sequence[Pair]) -> list[Result]:
        """Score a batch; a pair that cannot be scored gives its problems."""
        memory = _memory_of_thread()
        results = []
        for start in range(0, len(pairs), _AHEAD):
            ahead = pairs[start : start + _AHEAD]
            truths = read_ahead(self.truth_source, [pair.truth for pair in ahead])
            preds = read_ahead(self.pred_source, [pair.pred for pair in ahead])
            for pair, *contents in zip(ahead, truths, preds, strict=True):
                results.append(self._score(pair, contents, memory))
        return results

    @cached_property
    def _encoding(self) -> Encoding:
        return self.options.encoding()

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
            counted = _explained(pair.pred, lambda: self._count(pair, truth, pred))
        if isinstance(counted, Problem):
            return [counted]
        files = ImageFiles(pair.truth, pair.pred, truth.stamp, pred.stamp)
        return ImageCount.of(pair.id, counted[0], files, counted[1])

    def _open(
        self,
        stack: ExitStack,
        path: str,
        source: Source,
        labels: LabelSet,
        content: Content | None,
        scratch: Scratch,
    ) -> OpenMask | Problem:
        def opened() -> OpenMask:
            return open_labels(
                stack,
                path,
                source,
                labels,
                allow_lossy=self.allow_lossy,
                content=content,
                scratch=scratch,
            )

        return _explained(path, opened)

    def _count(
        self, pair: Pair, truth: OpenMask, pred: OpenMask
    ) -> tuple[PairCount, bytes | None] | Problem:
        shapes = tuple(truth.values.shape), tuple(pred.values.shape)
        big = truth.is_big or pred.is_big
        if shapes[0] != shapes[1]:
            if self.resize_pred is None or len(shapes[0]) != len(shapes[1]):
                return Problem(pair.pred, size_text(pair.truth, shapes))
            pred = pred.resized(shapes[0])
        try:
            if big:
                decoded = truth.decoded, pred.decoded
                count = count_windows(self._encoding, truth.values, pred.values, decoded=decoded)
            else:
                count = self._encoding.count(truth.values, pred.values)
        except UndeclaredValuesError as error:
            path = pair.truth if error.side == "truth" else pair.pred
            return Problem(
                path, undeclared_text(error, self.options.num_classes, self.options.ignore)
            )
        at_boundaries = self._measured(truth, pred)
        truth.check()
        pred.check()
        return count, at_boundaries

    def _measured(self, truth: OpenMask, pred: OpenMask) -> bytes | None:
        if self.boundary is None:
            return None
        labels = truth.whole(), pred.whole()
        return pack_boundary(count_labels(self._codes, *labels, self.boundary))

    @cached_property
    def _codes(self) -> LabelCodes:
        return LabelCodes(self._encoding)


def _memory_of_thread() -> tuple[Scratch, Scratch]:
    """Memory for truth and prediction, the same for all pairs of a thread."""
    if not hasattr(_kept, "memory"):
        _kept.memory = Scratch(), Scratch()
    memory: tuple[Scratch, Scratch] = _kept.memory
    return memory


def _explained(path: str, do: Callable[[], T]) -> T | Problem:
    """The outcome, or what is wrong with the file."""
    try:
        return do()
    except MaskError as error:
        return Problem(error.path, error.problem)
    except MemoryError:
        return Problem(path, "does not fit into memory; store it as tiled TIFF or .npy")
    except Exception as error:  # noqa: BLE001 - one odd file must not end the run
        return Problem(path, f"cannot be read: {type(error).__name__}: {error}")


def resized_nearest(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Resize a label array by taking the nearest pixel centre along each axis."""
    return ResizedMask(array, shape)[tuple(slice(0, length) for length in shape)]
