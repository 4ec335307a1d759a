"""Images that distort a report: without valid pixels, with an empty prediction, or all wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import printable
from segiou._support.text import Json, capital, encodable, listed, nouns
from segiou.inference.scored_runs import unit_of_pixels
from segiou.runs.run import Run
from segiou.runs.tables import background_of, false_alarms

Kind = Literal["void", "empty", "structures_missed", "classes_missed", "false_alarms"]
#: A short name of each kind of images, and what is so in them.
_TEXTS: dict[Kind, tuple[str, str]] = {
    "void": ("every {pixel} ignored", "every {pixel} is ignored"),
    "empty": ("empty predictions", "the prediction is empty"),
    "structures_missed": ("every structure missed", "every structure is missed"),
    "classes_missed": ("every class missed", "every class is missed"),
    "false_alarms": (
        "false positives without foreground",
        "the truth has no foreground, but the prediction has",
    ),
}
#: Most ids that are listed, in sentences and in JSON.
_NAMED, _LISTED = 3, 100


@dataclass(frozen=True, slots=True)
class ImageCaution:
    """Images to check before reading the scores.

    Attributes
    ----------
    kind : {"void", "empty", "structures_missed", "classes_missed", "false_alarms"}
        Every pixel is ignored; the prediction is background only, unlike the
        truth; every structure or class of the truth is missed; the truth is
        background only, unlike the prediction.
    images : tuple of str
        Ids of the images.
    of : int
        Number of images whose truth is background only, for ``"false_alarms"``.
    """

    kind: Kind
    images: tuple[str, ...]
    of: int = 0
    _pixel_unit: str = field(default="pixels", repr=False, compare=False)

    @property
    def title(self) -> str:
        """A short name of the kind of images."""
        return _TEXTS[self.kind][0].format(pixel=nouns(self._pixel_unit).pixel)

    def __str__(self) -> str:
        pixel, image = nouns(self._pixel_unit)
        names, number = listed([printable(id) for id in self.images], _NAMED), len(self.images)
        finding = _TEXTS[self.kind][1].format(pixel=pixel)
        if self.kind == "false_alarms" and self.of > 1:
            found = f"{number} of {self.of} {image}s without foreground"
            return f"{found} {'has' if number == 1 else 'have'} false positives: {names}."
        if number == 1:
            return f"{names}: {finding}."
        if self.kind == "empty":
            return f"{number} predictions are empty: {names}."
        return f"{capital(finding)} in {number} {image}s: {names}."

    def to_dict(self) -> dict[str, Json]:
        """Plain values: the number of images and the ids of the first hundred."""
        images = [encodable(id) for id in self.images[:_LISTED]]
        data: dict[str, Json] = {"kind": self.kind, "count": len(self.images), "images": [*images]}
        return data | ({"of": self.of} if self.of else {}) | {"text": str(self)}


def image_cautions(run: Run, include: NDArray[np.bool_]) -> tuple[ImageCaution, ...]:
    """One caution per kind of image that occurs; ``include`` are the classes of the mean."""
    counts, background = run.counts, background_of(run)
    structures, total = include & ~background, counts.total[:, 0]
    wanted = counts.truth[:, structures].sum(-1) > 0
    empty = wanted & (counts.pred[:, background].sum(-1) == total)
    missed = wanted & (counts.tp[:, structures].sum(-1) == 0) & ~empty
    alarms, without = false_alarms(counts, background, include)
    missed_kind: Kind = "structures_missed" if background.any() else "classes_missed"
    found: dict[Kind, tuple[Any, int]] = {
        "void": (total == 0, 0),
        "empty": (empty, 0),
        missed_kind: (missed, 0),
        "false_alarms": (alarms, int(without.sum())),
    }
    unit = unit_of_pixels(run)
    cautions = (
        ImageCaution(kind, tuple(compress(run.ids, of)), number, unit)
        for kind, (of, number) in found.items()
    )
    return tuple(caution for caution in cautions if caution.images)
