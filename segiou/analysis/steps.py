"""What to work on next: the points of mean IoU that each kind of error costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json, called, listed, percent, plural, points
from segiou.counting.counts import Counts, Tally
from segiou.metrics.per_class import iou
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats

Ints = NDArray[np.int64]
#: Steps that are given.
_STEPS = 20
#: Images that a step names, at most.
_STEP_IMAGES = 10
#: Cells of the matrix whose exact gain is computed, at most: the best by an estimate.
_CANDIDATES = 1000
#: Numbers that are computed with at once.
_AT_ONCE = 1 << 22
#: A class in so few of at least so many images is a problem of the labels.
_FEW_IMAGES, _MANY_IMAGES = 2, 10


@dataclass(frozen=True, slots=True)
class NextStep:
    """Errors of one kind, and what mean IoU gains if exactly they are put right.

    Attributes
    ----------
    kind : {"confusion", "missed_class", "false_class", "swapped_classes", "few_images"}
        Pixels of ``truth`` predicted as ``pred`` (None: as no class); all pixels
        of a class that is never predicted; all pixels predicted as a class that
        is nowhere in the truth; pixels of two classes predicted as each other,
        more than are correct; all missed pixels of a class that is in one or two
        of ten images or more.
    truth, pred : str or None
    gain : float
        Exact difference of mean IoU, as a fraction.
    pixels : int
    share : float
        Of the pixels of ``truth``, where the step has one; else of the valid pixels.
    images : tuple of str
        Ids of the images with most of the pixels, the most first: as many as
        hold half of them, ten at most. Empty where no images are known.
    mean_iou : float
        Mean IoU as it is, a fraction; NaN under a protocol that averages over
        images, since the gain is of another mean.
    """

    kind: Literal["confusion", "missed_class", "false_class", "swapped_classes", "few_images"]
    truth: str | None
    pred: str | None
    gain: float
    pixels: int
    share: float
    images: tuple[str, ...] = ()
    mean_iou: float = math.nan

    def to_dict(self) -> dict[str, Json]:
        """Plain values."""
        names = ("kind", "truth", "pred", "gain", "pixels", "share")
        return {name: getattr(self, name) for name in names} | {"images": list(self.images)}

    def __str__(self) -> str:
        worth = f"would raise mean IoU by {points(self.gain)} points"
        if not math.isnan(self.mean_iou):
            now, then = points(self.mean_iou), percent(self.mean_iou + self.gain)
            worth = f"{worth} ({now} → {then})"
        if self.kind == "missed_class":
            said = f"{called(str(self.truth))} is never predicted. Finding all of it {worth}"
        elif self.kind == "false_class":
            said = (
                f"{called(str(self.pred))} is predicted on {plural(self.pixels, 'pixel')} and "
                f"nowhere in the truth. Correcting them {worth}"
            )
        elif self.kind == "swapped_classes":
            said = (
                f"{called(str(self.truth))} and {called(str(self.pred))} are predicted as each "
                f"other: check whether their labels are swapped. Correcting them {worth}"
            )
        elif self.kind == "few_images":
            said = (
                f"{called(str(self.truth))} is in one or two images only: check their truth, or "
                f"add images. Finding all of it {worth}"
            )
        else:
            answer = "no class" if self.pred is None else called(self.pred)
            said = (
                f"{called(str(self.truth))}: {percent(self.share)} of its pixels are predicted as "
                f"{answer}. Correcting them {worth}"
            )
        if not self.images:
            return f"{said}."
        return f"{said}. See first {listed(self.images[:3])}."


def next_steps(
    tally: Tally,
    class_names: Sequence[str],
    protocol: Protocol,
    include: NDArray[np.bool_],
    per_image: Counts | None = None,
) -> tuple[NextStep, ...]:
    """The errors that cost most mean IoU, the largest gain first.

    Parameters
    ----------
    tally : Tally
        Of the data set.
    class_names : sequence of str
        Names of the classes.
    protocol : Protocol
        One that averages over images, whose gains the counts of the data set do
        not tell, is replaced by ``"segiou"``.
    include : ndarray of bool, shape (C,)
        Classes that take part in the mean.
    per_image : Counts of shape (N, C), optional
        Counts of each image, which tell what classes are in few of them.

    Returns
    -------
    tuple of NextStep
        Twenty at most, of those that gain anything.

    Examples
    --------
    >>> tally = Tally.of_matrix([[8, 2], [0, 10]])
    >>> (step,) = next_steps(tally, ["road", "car"], load_protocol("segiou"), np.ones(2, bool))
    >>> print(step)
    road: 20.00 % of its pixels are predicted as car. Correcting them would raise
    mean IoU by 18.33 points (81.67 → 100.00 %).
    """
    over_images = protocol.needs_images
    protocol = load_protocol("segiou") if over_images else protocol
    moves = _Moves(tally, protocol, include)
    counts, names = tally.counts, [*class_names, None]
    steps = []
    candidates = moves.candidates()
    for t, p, pixels, gain in zip(*candidates.tolist(), moves.gains(*candidates), strict=True):
        share = pixels / int(counts.truth[t])
        steps.append(NextStep("confusion", names[t], names[p], float(gain), pixels, share))
    for c in np.flatnonzero((counts.tp + counts.fp == 0) & (counts.fn > 0)).tolist():
        gain, pixels = moves.gain_of_row(c), int(counts.fn[c])
        steps.append(NextStep("missed_class", names[c], None, gain, pixels, 1.0))
    for c in np.flatnonzero((counts.truth == 0) & (counts.fp > 0)).tolist():
        gain, pixels = moves.gain_of_column(c), int(counts.fp[c])
        share = pixels / int(tally.valid)
        steps.append(NextStep("false_class", None, names[c], gain, pixels, share))
    for a, b, pixels, gain in moves.swapped():
        share = pixels / int(counts.truth[a] + counts.truth[b])
        steps.append(NextStep("swapped_classes", names[a], names[b], gain, pixels, share))
    for c in _in_few_images(per_image):
        gain, pixels = moves.gain_of_row(c), int(counts.fn[c])
        share = pixels / int(counts.truth[c])
        steps.append(NextStep("few_images", names[c], None, gain, pixels, share))
    now = math.nan if over_images else float(moves.mean)
    useful = [replace(step, mean_iou=now) for step in steps if step.gain > 0]
    return tuple(sorted(useful, key=lambda step: -step.gain)[:_STEPS])


def confusion_gains(
    tally: Tally, protocol: Protocol, include: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """What mean IoU gains by each cell of the table, (C, C + 1); NaN where it was not computed."""
    protocol = load_protocol("segiou") if protocol.needs_images else protocol
    moves = _Moves(tally, protocol, include)
    candidates = moves.candidates()
    gains = np.full((len(include), len(include) + 1), np.nan)
    gains[candidates[0], candidates[1]] = moves.gains(*candidates)
    return gains


def _in_few_images(per_image: Counts | None) -> list[int]:
    if per_image is None or len(per_image.tp) < _MANY_IMAGES:
        return []
    images = (per_image.truth > 0).sum(0)
    few: list[int] = np.flatnonzero((images > 0) & (images <= _FEW_IMAGES)).tolist()
    return few


class _Moves:
    """Mean IoU after pixels of the matrix have been moved to its diagonal."""

    def __init__(self, tally: Tally, protocol: Protocol, include: NDArray[np.bool_]) -> None:
        cells, self._counts = tally.cells, tally.counts
        self._cells = np.stack([*np.divmod(cells.indices, len(include) + 1), cells.values])
        self._protocol, self._include = protocol, include
        self.mean = self._means(np.zeros((1, len(include)), np.int64), 0)[0]

    def candidates(self) -> Ints:
        """Truth, prediction and pixels (3, n) of confused cells; of very many the best guesses."""
        truth, pred, pixels = wrong = self._cells[:, self._cells[0] != self._cells[1]]
        if len(pixels) <= _CANDIDATES:
            return wrong
        union = np.append(self._counts.tp + self._counts.fp + self._counts.fn, 1)
        hit = np.append(self._counts.tp, 0)
        left = np.maximum(union[pred] - pixels, 1)
        estimate = pixels / union[truth] + hit[pred] / left - hit[pred] / union[pred]
        return wrong[:, np.sort(np.argsort(-estimate, kind="stable")[:_CANDIDATES])]

    def gains(self, truth: Ints, pred: Ints, pixels: Ints) -> Floats:
        """What each cell alone gains."""
        num_classes = len(self._include)
        rows = max(1, _AT_ONCE // num_classes)
        parts = [np.zeros(0)]
        for start in range(0, len(truth), rows):
            t, p, n = (x[start : start + rows] for x in (truth, pred, pixels))
            found, kept = self._shifts(len(t)), np.arange(len(t))
            found[kept, t] = n
            lost = self._shifts(len(t))
            named = p < num_classes
            lost[kept[named], p[named]] = n[named]
            parts.append(self._means(found, lost) - self.mean)
        return np.concatenate(parts)

    def gain_of_row(self, c: int) -> float:
        """What is gained where all pixels of a class are predicted as it."""
        found, lost = self._shifts(1), self._shifts(1)
        first, stop = np.searchsorted(self._cells[0], [c, c + 1])
        pred, pixels = self._cells[1:, first:stop]
        named = (pred < len(self._include)) & (pred != c)
        lost[0, pred[named]] = pixels[named]
        found[0, c] = self._counts.fn[c]
        return float(self._means(found, lost)[0] - self.mean)

    def gain_of_column(self, c: int) -> float:
        """What is gained where all pixels predicted as a class are what they are."""
        found, lost = self._shifts(1), self._shifts(1)
        truth, pred, pixels = self._cells
        wrong = (pred == c) & (truth != c)
        found[0, truth[wrong]] = pixels[wrong]
        lost[0, c] = found.sum()
        return float(self._means(found, lost)[0] - self.mean)

    def swapped(self) -> list[tuple[int, int, int, float]]:
        """Pairs of classes that are predicted as each other, with their pixels and the gain."""
        truth, pred, pixels = self._cells
        most = (truth != pred) & (pred < len(self._include)) & (pixels > self._counts.tp[truth])
        wrong = {(t, p): n for t, p, n in self._cells[:, most].T.tolist()}
        pairs = []
        for (a, b), n in wrong.items():
            back = wrong.get((b, a), 0)
            if a < b and back:
                found, lost = self._shifts(1), self._shifts(1)
                found[0, [a, b]], lost[0, [b, a]] = (n, back), (n, back)
                pairs.append((a, b, n + back, float(self._means(found, lost)[0] - self.mean)))
        return pairs

    def _shifts(self, rows: int) -> Ints:
        return np.zeros((rows, len(self._include)), np.int64)

    def _means(self, found: Ints, lost: Ints | int) -> Floats:
        """Means where ``found`` missed pixels of each class are found, ``lost`` false ones gone."""
        old = self._counts
        new = Counts.trusted(old.tp + found, old.fp - lost, old.fn - found, old.tn + lost)
        values, part = self._protocol.values_taken(iou(new), new.truth > 0, self._include)
        return self._protocol.divide(values.sum(-1), part.sum(-1))


def steps_with_images(
    steps: Sequence[NextStep], class_names: Sequence[str], blocks: Iterable[Any]
) -> tuple[NextStep, ...]:
    """The steps with the images that hold most of their pixels, of the columns of a run."""
    index: dict[str | None, int] = {name: i for i, name in enumerate([*class_names, None])}
    held: list[list[tuple[int, str]]] = [[] for _ in steps]
    for block in blocks:
        owner = np.repeat(np.arange(len(block)), block.sizes)
        for step, images in zip(steps, held, strict=True):
            chosen = _cells_of(step, block.cells, index)
            sums = np.bincount(owner[chosen], block.values[chosen], minlength=len(block))
            images += [(int(sums[i]), block.ids[i]) for i in np.flatnonzero(sums).tolist()]
    return tuple(
        replace(step, images=_most(images)) for step, images in zip(steps, held, strict=True)
    )


def _cells_of(
    step: NextStep, cells: NDArray[np.int64], index: Mapping[str | None, int]
) -> NDArray[np.bool_]:
    """Which cells of a table, given by their flat index, a step is about."""
    columns = len(index)
    if step.kind == "confusion":
        cell = index[step.truth] * columns + index[step.pred]
        return np.equal(cells, cell)
    if step.kind == "swapped_classes":
        a, b = index[step.truth], index[step.pred]
        return np.isin(cells, (a * columns + b, b * columns + a))
    if step.truth is not None:
        return np.equal(cells // columns, index[step.truth])
    return np.equal(cells % columns, index[step.pred])


def _most(images: list[tuple[int, str]]) -> tuple[str, ...]:
    """The images that hold half of the pixels, the most first."""
    pixels, held, found = sum(n for n, _ in images), 0, []
    for n, id in sorted(images, key=lambda image: -image[0])[:_STEP_IMAGES]:
        found.append(id)
        held += n
        if 2 * held >= pixels:
            break
    return tuple(found)
