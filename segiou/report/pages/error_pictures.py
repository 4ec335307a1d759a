"""Masks and their errors in colours: for figures, and as PNG files for slides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from segiou._support.arguments import check_kind
from segiou._support.output_folder import OutputFolder
from segiou._support.text import did_you_mean
from segiou.inference.paired_runs import check_runs
from segiou.labels.label_set import LabelSet
from segiou.report.pages.page import IGNORED_COLOR, Color, class_colors
from segiou.report.pages.photos import found_photos
from segiou.report.pages.picture_masks import (
    Indices,
    Masks,
    PictureError,
    Reader,
    plane_of,
    read_indices,
    reader_of,
)
from segiou.report.pages.pictures import photo_of
from segiou.runs.tables import background_of

if TYPE_CHECKING:
    from segiou.runs.run import Run

Picture = NDArray[np.uint8]

#: Widest picture; larger masks are shrunk.
_WIDTH = 2048
#: True positives, false negatives and false positives of a class: name and colour. Light enough
#: for black hatching, which tells them apart in black and white.
OUTCOMES: dict[str, Color] = {
    "true positive": (42, 165, 139),
    "false negative": (109, 157, 224),
    "false positive": (248, 180, 106),
}
#: Name of the pixels whose truth is ignored.
IGNORED = "ignored"
#: Correct pixels without a photo; the stripes of ignored pixels, and their number per picture.
CORRECT: Color = (232, 232, 232)
STRIPE: Color = (128, 125, 118)
_STRIPES = 100
#: One step of the legend.
_STEP = 24


@dataclass(frozen=True, slots=True)
class ErrorColors:
    """Colours of classes and of errors: of all classes, of one, or of one confusion."""

    names: tuple[str, ...]
    #: Colours of the classes, of ignored pixels and of those of no class.
    classes: tuple[Color, ...]
    #: The class, or the class of the truth and the predicted one.
    truth: int | None = None
    pred: int | None = None

    @classmethod
    def of(cls, run: Run, wanted: str = "") -> ErrorColors:
        """Colours of a class or ``TRUTH:PRED``; by default of the foreground of binary masks."""
        labels = run.labels
        truth, pred = classes_of(labels, wanted)
        if not wanted and labels.num_classes == 2:
            (foreground,) = np.nonzero(run.include & ~background_of(run))
            truth = int(foreground[0]) if foreground.size == 1 else None
        return cls(labels.class_names, class_colors(labels), truth, pred)

    def classes_in(self, indices: Indices) -> Picture:
        """A mask in the colours of its classes, with stripes where it is ignored."""
        return self._striped(np.array(self.classes, np.uint8)[indices], indices)

    def errors(self, truth: Indices, pred: Indices, photo: Image.Image | None = None) -> Picture:
        """Wrong pixels in colours, on a photo or grey."""
        picture = np.full((*truth.shape, 3), CORRECT, np.uint8)
        if photo is not None:
            picture = np.repeat((128 + np.asarray(photo.convert("L")) // 2)[..., None], 3, axis=2)
        palette = np.array(self.classes, np.uint8)
        if self.truth is None:
            picture = np.where((truth != pred)[..., None], palette[pred], picture)
        elif self.pred is not None:
            picture[(truth == self.truth) & (pred == self.pred)] = palette[self.pred]
        else:
            is_true, is_pred = truth == self.truth, pred == self.truth
            masks = (is_true & is_pred, is_true & ~is_pred, is_pred & ~is_true)
            for color, mask in zip(OUTCOMES.values(), masks, strict=True):
                picture[mask] = color
        return self._striped(picture, truth)

    def _striped(self, picture: Picture, truth: Indices) -> Picture:
        """The same with stripes where the truth is ignored."""
        rows, columns = np.ogrid[: truth.shape[0], : truth.shape[1]]
        dark = (rows + columns) // max(1, max(truth.shape) // _STRIPES) % 2 == 0
        is_ignored = truth == len(self.names)
        picture[is_ignored] = IGNORED_COLOR
        picture[is_ignored & dark] = STRIPE
        return picture

    def legend(self, occurring: Iterable[int]) -> list[tuple[str, Color]]:
        """Names and colours of the classes that occur, and of the errors."""
        known = [*zip((*self.names, IGNORED, "no class"), self.classes, strict=True)]
        is_one = self.truth is not None and self.pred is None
        # Other pixels may be wrong, if there are more classes than this and the others.
        ground = "correct" if self.truth is None or len(self.names) == 2 else "other"
        outcomes = OUTCOMES.items() if is_one else ()
        return [*(known[i] for i in sorted({*occurring})), *outcomes, (ground, CORRECT)]


def classes_of(labels: LabelSet, wanted: str) -> tuple[int | None, int | None]:
    """The class, or the class of the truth and the predicted one; ValueError if unknown."""
    check_kind("of", wanted, str, "a class or TRUTH:PRED")
    names = labels.class_names
    if not wanted or wanted in names:
        return names.index(wanted) if wanted else None, None
    for at in (i for i, sign in enumerate(wanted) if sign == ":"):
        pair = wanted[:at], wanted[at + 1 :]
        if all(name in names for name in pair) and pair[0] != pair[1]:
            return names.index(pair[0]), names.index(pair[1])
    msg = f"unknown class {wanted!r}; pass a class or TRUTH:PRED of {', '.join(names)}"
    raise ValueError(msg)


def worst_ids(runs: Sequence[Run], number: int, of: str = "", by: str = "mean_iou") -> list[str]:
    """Ids of the images with the most wrong pixels of a class or a confusion in all runs.

    Without one, those of the lowest score of a run, or the most wrong pixels of several.
    """
    truth, pred = classes_of(runs[0].labels, of)
    if truth is None and len(runs) == 1:
        return [str(row["id"]) for row in runs[0].worst(number, by=by)]
    wrong = dict.fromkeys(runs[0].ids, 0)
    for run in runs:
        own = dict(zip(run.ids, _wrong_pixels(run, truth, pred).tolist(), strict=True))
        wrong = {id: pixels + own[id] for id, pixels in wrong.items() if id in own}
    if not any(wrong.values()):
        msg = "such errors do not occur; see the confusion matrix of segiou report --format json"
        raise ValueError(msg)
    worst = sorted(wrong, key=lambda id: -wrong[id])[:number]
    return [id for id in worst if wrong[id]]


def _wrong_pixels(run: Run, truth: int | None, pred: int | None) -> NDArray[np.int64]:
    """Pixels of each image that are wrong, of a class, or of a class predicted as another."""
    if truth is not None and pred is not None:
        place = truth * (run.options.num_classes + 1) + pred
        cells = (run.tally(i).cells for i in range(len(run)))
        return np.array([int(counts.values[counts.indices == place].sum()) for counts in cells])
    wrong = run.counts.fp + run.counts.fn
    return wrong.sum(1) if truth is None else wrong[:, truth]


def masks_of(
    runs: Sequence[Run], id: str, read: Reader | None = None, largest: int = _WIDTH
) -> Masks:
    """The masks of an image: truth and predictions; of a volume the plane with most errors."""
    places = [run.ids.index(id) for run in runs if id in run.ids]
    if len(places) < len(runs):
        msg = f"unknown image {id!r}{did_you_mean(id, runs[0].ids)}"
        raise ValueError(msg)
    files = [run.images[place] for run, place in zip(runs, places, strict=True)]
    readers = [reader_of(run, read) for run in runs]
    try:
        masks = read_indices(files[0].truth, [file.pred for file in files], readers, largest)
    except PictureError as error:
        msg = f"{id}: no pictures, because {error}"
        raise ValueError(msg) from error
    truth, *preds = masks.arrays
    if truth.ndim == 2:
        return masks
    wrong = np.zeros(len(truth), np.int64)
    for pred in preds:
        wrong += ((truth != pred) & (truth != runs[0].options.num_classes)).sum((1, 2))
    plane = int(wrong.argmax())
    return plane_of(masks, plane)


def save_errors(
    folder: str | Path,
    run: Run,
    *,
    number: int = 10,
    by: str = "mean_iou",
    of: str = "",
    images: str | Path | None = None,
    read: Reader | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write truth, prediction and difference of the worst images as PNG files.

    In the difference, wrong pixels have the colour of the predicted class; of a
    single class, and of the foreground of binary masks, true positives, false negatives
    and false positives have three colours. Of a volume the plane with the most wrong voxels is
    drawn. ``legend.png`` has the colours. A warning reports that no photo was found.

    Parameters
    ----------
    folder : str or path
        Created if it does not exist.
    run : Run
        Scored from files.
    number : int
        Most images.
    by : str
        Score to rank the images by, see :meth:`segiou.Run.worst`.
    of : str
        A class, to rank by its wrong pixels, or ``"TRUTH:PRED"``, to rank by the
        pixels of one class that are predicted as another.
    images : str or path, optional
        Folder of the original images, shown in grey below the difference.
    read : callable, optional
        Reads the file of a path, for masks that are not local.
    overwrite : bool
        Whether to replace files that segiou did not write there.

    Returns
    -------
    list of Path
        The files, those of the worst image first.

    Raises
    ------
    ValueError
        If the class or score is unknown, no image has such errors, or a file
        cannot be shown.
    FileExistsError
        If a file exists that segiou did not write there, or a link.
    """
    check_runs("save_errors", (run,))
    colors = ErrorColors.of(run, of)
    ids = worst_ids([run], number, of, by)
    photos = found_photos(images, ids)
    out = OutputFolder(folder, overwrite=overwrite)
    written = []
    for rank, id in enumerate(ids, 1):
        masks = masks_of([run], id, read)
        truth, pred = masks.arrays
        photo = photo_of(photos[id], masks) if id in photos else None
        pictures = {
            "truth": colors.classes_in(truth),
            "prediction": colors.classes_in(pred),
            "difference": colors.errors(truth, pred, photo),
        }
        plain = re.sub(r"[^\w.-]", "_", id)
        name = f"{rank:0{len(str(len(ids)))}}_{plain}"
        for kind, picture in pictures.items():
            written.append(out.write(f"{name}_{kind}.png", _png(Image.fromarray(picture))))
    return [
        *written,
        out.write("legend.png", _png(_legend(colors.legend(range(len(colors.classes)))))),
    ]


def _png(picture: Image.Image) -> bytes:
    data = BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def _legend(rows: Sequence[tuple[str, Color]]) -> Image.Image:
    """Names beside their colours."""
    picture = Image.new("RGB", (360, _STEP * len(rows) + 8), "white")
    draw = ImageDraw.Draw(picture)
    for i, (name, color) in enumerate(rows):
        top = i * _STEP + 6
        draw.rectangle((8, top, 8 + 30, top + 16), fill=color, outline="grey")
        draw.text((48, top + 3), name, fill="black")
    return picture
