"""Images that distort a report: without valid pixels, with an empty prediction, or all wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import printable
from segiou._support.text import Json, capital, encodable, listed
from segiou.inference.scored_runs import of_volumes
from segiou.labels.label_set import BACKGROUNDS
from segiou.runs.run import Run

#: Most ids that are listed, in sentences and in JSON.
_NAMED, _LISTED = 3, 100


@dataclass(frozen=True, slots=True)
class ImageCaution:
    """Images that a reader should look at before the scores.

    Attributes
    ----------
    kind : {"void", "empty", "structures_missed", "classes_missed"}
        Every pixel is ignored; the prediction is background only, unlike the
        truth; every structure or class of the truth is missed.
    images : tuple of str
        Ids of the images.
    """

    kind: Literal["void", "empty", "structures_missed", "classes_missed"]
    images: tuple[str, ...]

    def __str__(self) -> str:
        names, number = listed([printable(id) for id in self.images], _NAMED), len(self.images)
        finding = {
            "void": "every pixel is ignored",
            "empty": "the prediction is empty",
            "structures_missed": "every structure is missed",
            "classes_missed": "every class is missed",
        }[self.kind]
        if number == 1:
            return f"{names}: {finding}."
        if self.kind == "empty":
            return f"{number} predictions are empty: {names}."
        return f"{capital(finding)} in {number} images: {names}."

    def to_dict(self) -> dict[str, Json]:
        """Plain values: the number of images and the ids of the first hundred."""
        images = [encodable(id) for id in self.images[:_LISTED]]
        return {"kind": self.kind, "count": len(self.images), "images": images, "text": str(self)}


def image_cautions(run: Run, include: NDArray[np.bool_]) -> tuple[ImageCaution, ...]:
    """One caution per kind of image that occurs; ``include`` are the classes of the mean."""
    counts, background = run.counts, _background(run)
    structures, total = include & ~background, counts.total[:, 0]
    wanted = counts.truth[:, structures].sum(-1) > 0
    empty = wanted & (counts.pred[:, background].sum(-1) == total)
    missed = wanted & (counts.tp[:, structures].sum(-1) == 0) & ~empty
    cautions = (
        ImageCaution("void", tuple(compress(run.ids, total == 0))),
        ImageCaution("empty", tuple(compress(run.ids, empty))),
        ImageCaution(
            "structures_missed" if background.any() else "classes_missed",
            tuple(compress(run.ids, missed)),
        ),
    )
    return tuple(one for one in cautions if one.images)


def _background(run: Run) -> NDArray[np.bool_]:
    """The class that is named background, or else the class of value 0 in volumes."""
    named = np.array([name.lower() in BACKGROUNDS for name in run.class_names], bool)
    volumes = of_volumes(run.provenance) or any(plan.masks.volumes for plan in run.plans)
    if named.any() or not volumes:
        return named
    return np.array([values == (0,) for values in run.labels.class_values], bool)
