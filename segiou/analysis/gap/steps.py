"""Next steps: the mean IoU that each kind of error costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, read_several
from segiou._support.numbers import percent, points
from segiou._support.text import Json, called, listed, nouns, plain, plural
from segiou.counting.counts import ConfusionCounts, Counts, check_counts
from segiou.metrics.per_class import iou
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats, included

Ints = NDArray[np.int64]
Kind = Literal["confusion", "missed_class", "false_class", "swapped_classes", "few_images"]
#: Kind, classes of the truth and of the prediction, and cells of the matrix.
_Draft = tuple[Kind, int | None, int | None, Sequence[int] | Ints]
#: Most steps.
_STEPS = 20
#: Most cells of the matrix whose exact gain is computed, chosen by an estimate.
_CANDIDATES = 1000
#: Most numbers that are processed at once.
_AT_ONCE = 1 << 22
#: A class in so few of at least so many images suggests a labelling problem.
_FEW_IMAGES, _MANY_IMAGES = 2, 10


@dataclass(frozen=True, slots=True)
class NextStep:
    """One kind of error, and the gain in mean IoU from fixing it.

    Attributes
    ----------
    kind : {"confusion", "missed_class", "false_class", "swapped_classes", "few_images"}
        Pixels of ``truth`` predicted as ``pred`` (None: outside all classes);
        all pixels of a class that is never predicted; all pixels predicted as
        a class that is not in the truth; pixels of two classes mostly predicted
        as each other; all missed pixels of a class that occurs in only one or
        two of at least ten images.
    truth, pred : str or None
    gain : float
        Exact gain in mean IoU, as a fraction.
    pixels : int
    share : float
        Share of the pixels of ``truth``, or of the valid pixels if it is None.
    images : tuple of str
        Ids of the images that contain half of the pixels, at most ten, those
        with most pixels first. Empty if the images are unknown.
    mean_iou : float
        Current mean IoU, as a fraction; NaN under a protocol that averages over
        images, because the gain refers to a different mean.
    low, high : float
        Jackknife-t interval of the gain over the images (or their sequences), from
        0 if the gain is within noise;
        NaN if unknown.
    tied : bool
        Whether the gain may be as large as that of the first step.
    """

    kind: Kind
    truth: str | None
    pred: str | None
    gain: float
    pixels: int
    share: float
    images: tuple[str, ...] = ()
    mean_iou: float = math.nan
    low: float = math.nan
    high: float = math.nan
    tied: bool = False
    _pixel_unit: str = field(default="pixels", repr=False, compare=False)

    @property
    def uncertain(self) -> bool:
        """Whether the gain may be 0 on other images of this kind."""
        return self.low <= 0

    def to_dict(self) -> dict[str, Json]:
        """Plain values; None if undefined."""
        names = ("kind", "truth", "pred", "gain", "low", "high", "tied", "pixels", "share")
        data: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        return data | {"images": list(self.images)}

    @property
    def error(self) -> str:
        """The error in words, without its cost."""
        pixel, image = nouns(self._pixel_unit)
        truth, pred = called(str(self.truth)), called(str(self.pred))
        answer = "outside all classes" if self.pred is None else f"as {pred}"
        return {
            "confusion": f"{percent(self.share)} of {truth} {pixel}s predicted {answer}",
            "missed_class": f"{truth} is never predicted",
            "false_class": (
                f"{pred} is predicted on {plural(self.pixels, pixel)} but never occurs in the truth"
            ),
            "swapped_classes": (
                f"{truth} and {pred} are mostly predicted as each other; check for swapped labels"
            ),
            "few_images": (
                f"{truth} occurs in only one or two {image}s; check their truth, or add {image}s"
            ),
        }[self.kind]

    def __str__(self) -> str:
        finding = self.kind in ("missed_class", "few_images")
        every = f"every {nouns(self._pixel_unit).pixel} of {called(str(self.truth))}"
        act = f"Finding {every}" if finding else "Fixing this"
        about = []
        if not math.isnan(self.mean_iou):
            now, then = points(self.mean_iou), percent(self.mean_iou + self.gain)
            about.append(f"{now} → {then}")
        if not math.isnan(self.low):
            noise = ", within noise" if self.uncertain else ""
            about.append(f"95 % interval {points(self.low)} to {points(self.high)}{noise}")
        more = f" ({'; '.join(about)})" if about else ""
        said = f"{self.error}. {act} would raise mean IoU by {points(self.gain)} points{more}."
        return f"{said} Start with {listed(self.images[:3])}." if self.images else said


def next_steps(
    tally: ConfusionCounts,
    class_names: Sequence[str],
    protocol: Protocol,
    include: NDArray[np.bool_],
    per_image: Counts | None = None,
    pixel_unit: str = "pixels",
) -> tuple[NextStep, ...]:
    """The errors that cost most mean IoU, largest gain first.

    Parameters
    ----------
    tally : ConfusionCounts
        Counts of the data set.
    class_names : sequence of str
        Names of the classes.
    protocol : Protocol
        A protocol that averages over images is replaced by ``"segiou"``,
        because its gains do not follow from the counts of the data set.
    include : ndarray of bool, shape (C,)
        Classes that are included in the mean.
    per_image : Counts of shape (N, C), optional
        Per-image counts, to find classes that occur in few images.
    pixel_unit : {"pixels", "voxels"}
        Unit of the counts, in sentences.

    Returns
    -------
    tuple of NextStep
        At most twenty, all with a positive gain.

    Examples
    --------
    >>> from segiou.metrics import load_protocol
    >>> tally = ConfusionCounts.of_matrix([[8, 2], [0, 10]])
    >>> (step,) = next_steps(tally, ["road", "car"], load_protocol("segiou"), np.ones(2, bool))
    >>> print(step)
    20.00 % of road pixels predicted as car. Fixing this would raise mean IoU by
    18.33 points (81.67 → 100.00 %).
    """
    check_kind("tally", tally, ConfusionCounts, "ConfusionCounts, such as Report.tally")
    check_kind("protocol", protocol, Protocol, "a Protocol, such as load_protocol('segiou')")
    if per_image is not None:
        check_counts(per_image, "per_image")
    include = included(include, tally.num_classes)
    class_names = read_several("class_names", class_names, "the names of the classes")
    if len(class_names) != tally.num_classes:
        msg = f"class_names has {len(class_names)} names; expected {tally.num_classes}"
        raise ValueError(msg)
    moves, counts = _Moves(tally, protocol, include), tally.counts
    errors = _errors(moves, counts, per_image)
    names, now = [*class_names, None], math.nan if protocol.needs_images else moves.mean
    steps = []
    gains = moves.gains([cells for *_, cells in errors]).tolist()
    for (kind, t, p, cells), gain in zip(errors, gains, strict=True):
        pixels = int(moves.pixels[cells].sum())
        both = [c for c in (t, p if kind == "swapped_classes" else None) if c is not None]
        whole = counts.truth[both].sum() if both else tally.valid
        first, second = (None if c is None else names[c] for c in (t, p))
        share = pixels / int(whole)
        about: Any = {"mean_iou": now, "_pixel_unit": pixel_unit}
        steps.append(NextStep(kind, first, second, gain, pixels, share, **about))
    useful = [step for step in steps if step.gain > 0]
    return tuple(sorted(useful, key=lambda step: -step.gain)[:_STEPS])


def _errors(moves: _Moves, counts: Counts, per_image: Counts | None) -> list[_Draft]:
    """Errors of every kind with their cells of the matrix, each once."""
    truth, pred = moves.truth, moves.pred
    missed = np.flatnonzero((counts.pred == 0) & (counts.fn > 0)).tolist()
    false = np.flatnonzero((counts.truth == 0) & (counts.fp > 0)).tolist()
    images = np.zeros(0) if per_image is None else (per_image.truth > 0).sum(0)
    several = per_image is not None and len(per_image.tp) >= _MANY_IMAGES
    few = np.flatnonzero((images > 0) & (images <= _FEW_IMAGES) & several).tolist()
    drafts: list[_Draft] = [
        *(("missed_class", c, None, moves.row(c)) for c in missed),
        *(("false_class", None, c, np.flatnonzero(pred == c)) for c in false),
        *(("swapped_classes", a, b, both) for a, b, both in moves.swapped()),
        *(("confusion", int(truth[i]), int(pred[i]), [i]) for i in moves.candidates().tolist()),
        *(("few_images", c, None, moves.row(c)) for c in few),
    ]
    # A confusion that is all of a missed or false class is one error, under the name of the class.
    once: dict[tuple[int, ...], _Draft] = {}
    for draft in drafts:
        once.setdefault((draft[0] == "few_images", *draft[3]), draft)
    return [*once.values()]


def confusion_gains(
    tally: ConfusionCounts, protocol: Protocol, include: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Gain in mean IoU from fixing each cell of the table, (C, C + 1); NaN if not computed."""
    moves = _Moves(tally, protocol, include)
    chosen = moves.candidates()
    gains = np.full((len(include), len(include) + 1), np.nan)
    gains[moves.truth[chosen], moves.pred[chosen]] = moves.gains(chosen[:, None])
    return gains


class _Moves:
    """Mean IoU after moving the pixels of some cells to the diagonal of the matrix."""

    def __init__(
        self, tally: ConfusionCounts, protocol: Protocol, include: NDArray[np.bool_]
    ) -> None:
        self._protocol = protocol.for_pixels
        self._include, self._counts = include, tally.counts
        self.truth, self.pred = np.divmod(tally.cells.indices, len(include) + 1)
        self.pixels = tally.cells.values
        none = np.zeros((1, len(include)), np.int64)
        self.mean = float(self._means(none, none)[0])

    def candidates(self) -> Ints:
        """The off-diagonal cells; of very many, those with the largest estimated gain."""
        wrong = np.flatnonzero(self.truth != self.pred)
        if len(wrong) <= _CANDIDATES:
            return wrong
        truth, pred, pixels = self.truth[wrong], self.pred[wrong], self.pixels[wrong]
        union = np.append(self._counts.tp + self._counts.fp + self._counts.fn, 1)
        hit = np.append(self._counts.tp, 0)
        left = np.maximum(union[pred] - pixels, 1)
        estimate = pixels / union[truth] + hit[pred] / left - hit[pred] / union[pred]
        return np.asarray(wrong[np.sort(np.argsort(-estimate, kind="stable")[:_CANDIDATES])])

    def row(self, c: int) -> Ints:
        """The off-diagonal cells of a class of the truth."""
        cells = np.arange(*np.searchsorted(self.truth, [c, c + 1]))
        return np.asarray(cells[self.pred[cells] != c])

    def swapped(self) -> Iterator[tuple[int, int, list[int]]]:
        """Pairs of classes that are mostly predicted as each other, and their two cells."""
        # A model that guesses between two classes is wrong about as often as right.
        often = 2 * self.pixels >= 3 * self._counts.tp[self.truth]
        most = (self.pred < len(self._include)) & often
        (chosen,) = np.nonzero((self.truth != self.pred) & most)
        pairs = zip(self.truth[chosen].tolist(), self.pred[chosen].tolist(), strict=True)
        place = dict(zip(pairs, chosen.tolist(), strict=True))
        for (a, b), cell in place.items():
            if a < b and (b, a) in place:
                yield a, b, [cell, place[b, a]]

    def gains(self, moves: Sequence[Sequence[int] | Ints] | Ints) -> Floats:
        """Gain of each move, which corrects all pixels of some cells."""
        rows = max(1, _AT_ONCE // len(self._include))
        parts = [np.zeros(0)]
        for start in range(0, len(moves), rows):
            several = moves[start : start + rows]
            owner = np.repeat(np.arange(len(several)), [len(cells) for cells in several])
            at = np.concatenate(several)
            # The last column is outside all classes: no class's false positives.
            hit, lost = np.zeros((2, len(several), len(self._include) + 1), np.int64)
            np.add.at(hit, (owner, self.truth[at]), self.pixels[at])
            np.add.at(lost, (owner, self.pred[at]), self.pixels[at])
            parts.append(self._means(hit[:, :-1], lost[:, :-1]) - self.mean)
        return np.concatenate(parts)

    def _means(self, hits: Ints, lost: Ints) -> Floats:
        """Means after finding missed pixels and removing false positives of each class."""
        new = corrected(self._counts, hits, lost)
        return self._protocol.pooled_mean(iou, new, self._include)


def corrected(counts: Counts, hits: Ints, lost: Ints) -> Counts:
    """Counts after finding missed pixels and removing false positives of each class."""
    return Counts.trusted(counts.tp + hits, counts.fp - lost, counts.fn - hits, counts.tn + lost)


def top_steps(steps: Sequence[NextStep]) -> list[NextStep]:
    """The first three steps of different classes of the truth; of a false class, one step."""
    false = {step.pred for step in steps if step.kind == "false_class"}
    first: dict[tuple[bool, str | None], NextStep] = {}
    for step in steps:
        is_false = step.pred in false
        first.setdefault((is_false, step.pred if is_false else step.truth), step)
    return list(first.values())[:3]
