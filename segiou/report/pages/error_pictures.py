"""Pictures of the worst images for slides: truth, prediction and their difference as PNG files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from segiou._support.output_folder import OutputFolder
from segiou.labels.label_set import LabelSet
from segiou.report.pages.page import Color, class_colors
from segiou.report.pages.photos import match_images
from segiou.report.pages.picture_masks import (
    Masks,
    PictureError,
    Reader,
    ScoreReader,
    adjusted_reader,
    read_indices,
)
from segiou.report.pages.pictures import read_image

if TYPE_CHECKING:
    from segiou.runs.run import Run

#: Widest picture; larger masks are shrunk.
_WIDTH = 2048
#: Found, missed and false pixels of a class, as in the plot of an overlay.
_FOUND, _MISSED, _FALSE = (42, 165, 139), (109, 157, 224), (248, 180, 106)
#: Correct pixels without a photo; one step of the legend.
_CORRECT, _STEP = (228, 228, 228), 24


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
    single class, found, missed and false pixels have three colours. Of a volume
    the plane with the most wrong voxels is drawn. ``legend.png`` has the colours.

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
    labels = run.labels
    truth, pred = _classes(labels, of)
    ids = _worst(run, number, by, truth, pred)
    colors = class_colors(labels)
    photos = {} if images is None else match_images(images, ids).files
    out = OutputFolder(folder, overwrite=overwrite)
    written = []
    for rank, id in enumerate(ids, 1):
        masks = _masks(run, id, read)
        pictures = _pictures(masks, colors, (truth, pred), photos.get(id))
        plain = re.sub(r"[^\w.-]", "_", id)
        name = f"{rank:0{len(str(len(ids)))}}_{plain}"
        for kind, picture in pictures.items():
            written.append(out.write(f"{name}_{kind}.png", _png(Image.fromarray(picture))))
    legend = _legend(labels, colors, (truth, pred))
    return [*written, out.write("legend.png", _png(legend))]


def _png(picture: Image.Image) -> bytes:
    data = BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def _classes(labels: LabelSet, wanted: str) -> tuple[int | None, int | None]:
    """The class, or the class of the truth and the predicted one."""
    names = labels.class_names
    if not wanted or wanted in names:
        return names.index(wanted) if wanted else None, None
    for at in (i for i, sign in enumerate(wanted) if sign == ":"):
        pair = wanted[:at], wanted[at + 1 :]
        if all(name in names for name in pair) and pair[0] != pair[1]:
            return names.index(pair[0]), names.index(pair[1])
    msg = f"unknown class {wanted!r}; pass a class or TRUTH:PRED of {', '.join(names)}"
    raise ValueError(msg)


def _worst(run: Run, number: int, by: str, truth: int | None, pred: int | None) -> list[str]:
    """Ids of the worst images."""
    if truth is None:
        return [str(row["id"]) for row in run.worst(number, by=by)]
    if pred is None:
        wrong = (run.counts.fp + run.counts.fn)[:, truth]
    else:
        wrong = np.array([_confused(run, i, truth, pred) for i in range(len(run))])
    order = np.argsort(-wrong, kind="stable")[:number]
    if not wrong.any():
        msg = "no image has such errors; see the confusion matrix of segiou report --format json"
        raise ValueError(msg)
    return [run.ids[i] for i in order if wrong[i]]


def _confused(run: Run, index: int, truth: int, pred: int) -> int:
    """Pixels of a class that are predicted as another."""
    cells = run.tally(index).cells
    place = truth * (run.options.num_classes + 1) + pred
    return int(cells.values[cells.indices == place].sum())


def _masks(run: Run, id: str, read: Reader | None) -> Masks:
    """The masks of an image; of a volume, the plane with the most wrong voxels."""
    image = run.images[run.ids.index(id)]
    reader = adjusted_reader(run, read)
    try:
        masks = read_indices(
            image.truth,
            [(image.pred, run.options)],
            reader,
            _WIDTH,
            readers=[ScoreReader.of(run, read)],
        )
    except PictureError as error:
        msg = f"{id}: no pictures, since {error}"
        raise ValueError(msg) from error
    truth, pred = masks.arrays
    if truth.ndim == 2:
        return masks
    wrong = ((truth != pred) & (truth != run.options.num_classes)).sum((1, 2))
    plane = int(wrong.argmax())
    return replace(masks, arrays=(truth[plane], pred[plane]))


def _pictures(
    masks: Masks,
    colors: Sequence[Color],
    classes: tuple[int | None, int | None],
    photo: Path | None,
) -> Mapping[str, NDArray[np.uint8]]:
    """Truth, prediction and difference in colours."""
    truth, pred = masks.arrays
    palette = np.array(colors, np.uint8)
    ground = np.full((*truth.shape, 3), _CORRECT, np.uint8)
    if photo is not None:
        grey = np.asarray(read_image(photo, truth.shape[::-1]).convert("L"))
        ground = np.repeat((128 + grey // 2)[..., None], 3, axis=2)
    valid = truth != len(colors) - 2
    ground[~valid] = palette[-2]
    for color, where in _errors(truth, pred, palette, classes):
        shown = where & valid
        ground[shown] = color[shown] if color.ndim == 3 else color
    return {"truth": palette[truth], "prediction": palette[pred], "difference": ground}


def _errors(
    truth: NDArray[Any],
    pred: NDArray[Any],
    palette: NDArray[np.uint8],
    classes: tuple[int | None, int | None],
) -> list[tuple[NDArray[np.uint8], NDArray[np.bool_]]]:
    """Colours of the difference, and the pixels that have them."""
    chosen, other = classes
    if chosen is None:
        return [(palette[pred], truth != pred)]
    if other is not None:
        return [(palette[other], (truth == chosen) & (pred == other))]
    is_true, is_pred = truth == chosen, pred == chosen
    masks = (is_true & is_pred, is_true & ~is_pred, is_pred & ~is_true)
    kinds = np.array((_FOUND, _MISSED, _FALSE), np.uint8)
    return [*zip(kinds, masks, strict=True)]


def _legend(
    labels: LabelSet, colors: Sequence[Color], classes: tuple[int | None, int | None]
) -> Image.Image:
    """Names beside their colours."""
    rows = [*zip((*labels.class_names, "ignored", "no class"), colors, strict=True)]
    rows.append(("correct (difference)", _CORRECT))
    if classes[0] is not None and classes[1] is None:
        name = labels.class_names[classes[0]]
        kinds = ("found", _FOUND), ("missed", _MISSED), ("false", _FALSE)
        rows += [(f"{name}: {kind}", color) for kind, color in kinds]
    picture = Image.new("RGB", (360, _STEP * len(rows) + 8), "white")
    draw = ImageDraw.Draw(picture)
    for i, (name, color) in enumerate(rows):
        top = i * _STEP + 6
        draw.rectangle((8, top, 8 + 30, top + 16), fill=color, outline="grey")
        draw.text((48, top + 3), name, fill="black")
    return picture
