"""One pair of files → its counts, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou.classes import ClassOptions
from segiou.counting import Encoding, PairCount, UndeclaredValuesError
from segiou.labels import LabelSet
from segiou.pairing import Pair
from segiou.readers import MaskError
from segiou.readers.masks import from_bytes, to_labels
from segiou.runs import ImageCount, ImageFiles, Problem, Stamp
from segiou.scoring.problems import size_text, undeclared_text
from segiou.sources import LocalFolder, Source

__all__ = ["PairScorer", "Result", "resized_nearest"]

Result = ImageCount | list[Problem]


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
    """

    options: ClassOptions
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None
    truth_source: Source = field(default_factory=lambda: LocalFolder("."))
    pred_source: Source = field(default_factory=lambda: LocalFolder("."))

    def __call__(self, pairs: Sequence[Pair]) -> list[Result]:
        """Score a batch; a pair that cannot be scored gives its problems."""
        encoding = self.options.encoding()
        return [self.score(pair, encoding) for pair in pairs]

    def score(self, pair: Pair, encoding: Encoding) -> Result:
        """Score one pair."""
        sides = (
            (pair.truth, self.truth_source, self.options.labels),
            (pair.pred, self.pred_source, self.options.pred_labels),
        )
        read = [self._read(*side) for side in sides]
        problems = [found for found in read if isinstance(found, Problem)]
        if problems:
            return problems
        (truth, truth_stamp), (pred, pred_stamp) = read  # type: ignore[misc]
        counted = self._count(pair, truth, pred, encoding)
        if isinstance(counted, Problem):
            return [counted]
        files = ImageFiles(pair.truth, pair.pred, truth_stamp, pred_stamp)
        return ImageCount.of(pair.id, counted, files)

    def _read(
        self, path: str, source: Source, labels: LabelSet
    ) -> tuple[NDArray[Any], Stamp] | Problem:
        try:
            data, stamp = source.read(path)
            raw = from_bytes(data, path)
            return to_labels(raw, path, labels, allow_lossy=self.allow_lossy), stamp
        except MaskError as error:
            return Problem(error.path, error.problem)
        except MemoryError:
            return Problem(path, "does not fit into memory; store it as tiled TIFF or .npy")
        except Exception as error:  # noqa: BLE001 - one odd file must not end the run
            return Problem(path, f"cannot be read: {type(error).__name__}: {error}")

    def _count(
        self, pair: Pair, truth: NDArray[Any], pred: NDArray[Any], encoding: Encoding
    ) -> PairCount | Problem:
        if truth.shape != pred.shape:
            if self.resize_pred is None or truth.ndim != pred.ndim:
                return Problem(pair.pred, size_text(pair.truth, (truth.shape, pred.shape)))
            pred = resized_nearest(pred, truth.shape)
        try:
            return encoding.count(truth, pred)
        except UndeclaredValuesError as error:
            path = pair.truth if error.side == "truth" else pair.pred
            return Problem(path, undeclared_text(error, self.options.num_classes))


def resized_nearest(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Resize a label array by taking the nearest pixel centre along each axis."""
    for axis, (old, new) in enumerate(zip(array.shape, shape, strict=True)):
        array = array.take(nearest_index(old, new), axis=axis)
    return array


def nearest_index(old: int, new: int) -> NDArray[np.int64]:
    """For each of the new pixels along an axis, the old one nearest to it."""
    nearest: NDArray[np.int64] = ((2 * np.arange(new, dtype=np.int64) + 1) * old) // (2 * new)
    return nearest
