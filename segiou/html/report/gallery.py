"""Images to look at: the worst, the best, and some at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou import metrics
from segiou.classes import ClassOptions
from segiou.fine_grained import image_means
from segiou.html.report.colors import Color
from segiou.html.report.encoding import Pictures, fitted
from segiou.html.report.masks import (
    PictureError,
    Reader,
    find_photograph,
    find_photographs,
    read_indices,
)
from segiou.metrics import Floats

if TYPE_CHECKING:
    from segiou.run import ImageCount, Run

__all__ = ["GALLERY_BYTES", "Example", "Gallery", "choose", "comparison_gallery", "gallery"]

#: Characters that all pictures of a page may take; the page as a whole stays below 1.5 MB.
GALLERY_BYTES = 1_150_000
KINDS = ("worst", "best", "random")


@dataclass(frozen=True, slots=True)
class Example:
    """An image of the gallery.

    Attributes
    ----------
    number : int
        Its place in the page.
    id : str
    kind : str
        Why it was chosen.
    scores : tuple of float
        Mean IoU over the classes in it, one a model.
    class_ious : tuple of tuple of float
        IoU of each class, one tuple a model.
    pictures : Pictures or None
    problem : str
        Why there are no pictures, or no photograph.
    """

    number: int
    id: str
    kind: str
    scores: tuple[float, ...]
    class_ious: tuple[tuple[float, ...], ...]
    pictures: Pictures | None
    problem: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """The examples and what they show.

    Attributes
    ----------
    examples : tuple of Example
    kinds : tuple of (str, int)
        What there is to choose from, with how many.
    models : tuple of str
        Whose predictions are shown.
    colors : tuple of colour
        Of the classes, of ignored and of unassigned pixels.
    has_photographs : bool
    missing : str
        The folder of photographs, where none of them is of these images.
    """

    examples: tuple[Example, ...]
    kinds: tuple[tuple[str, int], ...]
    models: tuple[str, ...]
    colors: tuple[Color, ...]
    has_photographs: bool
    missing: str

    def payload(self) -> dict[str, Any]:
        """What the script needs to know about the examples."""
        return {
            "models": list(self.models),
            "colors": ["#{:02x}{:02x}{:02x}".format(*color) for color in self.colors],
            "examples": [
                {
                    "id": e.id,
                    "kind": e.kind,
                    "scores": [_plain(s) for s in e.scores],
                    "ious": [[_plain(v) for v in values] for values in e.class_ious],
                }
                for e in self.examples
            ],
        }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def choose(scores: Floats, number: int, seed: int) -> list[tuple[int, str]]:
    """Choose images: half of them the worst, a quarter the best, the rest at random.

    Parameters
    ----------
    scores : ndarray of float, shape (N,)
        NaN is never chosen.
    number : int
        How many at most.
    seed : int

    Returns
    -------
    list of (int, str)
        Index and why, in the order of the scores.

    Examples
    --------
    >>> choose(np.array([0.9, 0.1, float("nan"), 0.5, 0.7]), 3, seed=0)
    [(1, 'worst'), (3, 'worst'), (0, 'random')]
    """
    order = [i for i in np.argsort(scores, kind="stable").tolist() if not np.isnan(scores[i])]
    number = min(number, len(order))
    worst, best = math.ceil(number / 2), number // 4
    kinds = dict.fromkeys(order[:worst], "worst")
    kinds |= dict.fromkeys(order[len(order) - best :], "best") if best else {}
    rest = [i for i in order if i not in kinds]
    left = number - len(kinds)
    if left:
        drawn = np.random.default_rng(seed).choice(len(rest), left, replace=False)
        kinds |= dict.fromkeys((rest[i] for i in drawn.tolist()), "random")
    return [(i, kinds[i]) for i in order if i in kinds]


def gallery(
    run: Run,
    colors: Sequence[Color],
    *,
    images: str | Path | None,
    examples: int,
    seed: int,
    read: Reader | None = None,
) -> Gallery:
    """Collect examples of one run.

    Parameters
    ----------
    run : Run
    colors : sequence of colour
    images : path, optional
        Folder of the photographs.
    examples : int
        How many at most.
    seed : int
        For those at random.
    read : callable, optional
        Gives the content of a mask file that is not on this machine's disk.
    """
    counts = run.counts
    scores = image_means(counts, include=run.include)
    chosen = choose(scores, examples, seed)
    return _collected((run,), ("prediction",), colors, (images, read), chosen, KINDS)


def comparison_gallery(
    runs: tuple[Run, Run],
    names: tuple[str, str],
    colors: Sequence[Color],
    *,
    images: str | Path | None,
    examples: int,
    read: Reader | None = None,
) -> Gallery:
    """Collect the images on which two runs of the same images differ most."""
    means = [image_means(r.counts, include=r.include) for r in runs]
    difference = means[1] - means[0]
    order = [i for i in np.argsort(difference, kind="stable").tolist() if difference[i]]
    order = [i for i in order if not np.isnan(difference[i])]
    half = examples // 2
    worse = [i for i in order[:half] if difference[i] < 0]
    better = [i for i in order[::-1][: examples - half] if difference[i] > 0]
    kinds = (f"{names[0]} is better", f"{names[1]} is better")
    chosen = [(i, kinds[0]) for i in worse] + [(i, kinds[1]) for i in better]
    return _collected(runs, names, colors, (images, read), chosen, kinds)


def _collected(
    runs: tuple[Run, ...],
    models: tuple[str, ...],
    colors: Sequence[Color],
    files: tuple[str | Path | None, Reader | None],
    chosen: list[tuple[int, str]],
    kinds: tuple[str, ...],
) -> Gallery:
    images, read = files
    photographs = {} if images is None else find_photographs(images)
    ious = [metrics.iou(run.counts) for run in runs]
    means = [image_means(run.counts, include=run.include) for run in runs]
    budget = GALLERY_BYTES // max(1, len(chosen))
    images_of = [_picked(run, {index for index, _ in chosen}) for run in runs]
    found = []
    for number, (index, kind) in enumerate(chosen):
        shown = tuple(picked[index] for picked in images_of)
        preds = [(image.pred, run.options) for image, run in zip(shown, runs, strict=True)]
        photograph = find_photograph(photographs, shown[0].id)
        pictures, problem = _pictures((shown[0].truth, preds, read), colors, photograph, budget)
        found.append(
            Example(
                number,
                shown[0].id,
                kind,
                tuple(float(m[index]) for m in means),
                tuple(tuple(v[index].tolist()) for v in ious),
                pictures,
                problem,
            )
        )
    has_photographs = any(e.pictures and e.pictures.photograph for e in found)
    return Gallery(
        tuple(found),
        tuple((k, sum(e.kind == k for e in found)) for k in kinds),
        models,
        tuple(colors),
        has_photographs,
        "" if images is None or has_photographs else str(images),
    )


def _picked(run: Run, indices: set[int]) -> dict[int, ImageCount]:
    """Some images by index; the others are not kept, since a run may be larger than memory."""
    return {i: image for i, image in enumerate(run) if i in indices}


def _pictures(
    files: tuple[str, Sequence[tuple[str, ClassOptions]], Reader | None],
    colors: Sequence[Color],
    photograph: Path | None,
    budget: int,
) -> tuple[Pictures | None, str]:
    try:
        masks = read_indices(*files)
    except PictureError as error:
        return None, str(error)
    return fitted(masks, colors, photograph, budget)
