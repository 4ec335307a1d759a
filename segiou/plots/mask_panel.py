"""Images side by side: photo, truth, the prediction of each model, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from segiou._support.arguments import (
    check_flag,
    check_integer,
    check_kind,
    check_number,
    read_several,
)
from segiou.inference.paired_runs import names_of
from segiou.plots.style import COLUMN, PAGE, new_figure, require, short_names
from segiou.report.pages.error_pictures import (
    IGNORED,
    STRIPE,
    ErrorColors,
    Picture,
    masks_of,
    worst_ids,
)
from segiou.report.pages.photos import found_photos
from segiou.report.pages.picture_masks import Masks, Reader
from segiou.report.pages.pictures import photo_of
from segiou.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

#: Widest pictures in pixels; columns of pictures up to which a figure is as wide as a column.
_PIXELS, _FEW = 1024, 4
#: Gaps between pictures, and lines of text, in inches.
_GAP, _LINE = 0.03, 0.16
#: Size of text in points, at least that of titles, and its width in inches.
_SIZE, _LEAST, _CHARACTER = 7.0, 5.0, 0.056
#: Width of a patch of the legend with its gaps, in characters.
_PATCH = 5


class _Row(NamedTuple):
    """The pictures of an image, None if it has no photo, and their height by their width."""

    pictures: list[Picture | None]
    aspect: float
    #: Classes, ignored or outside all, that occur in truth or predictions.
    occurring: set[int]


def panel(
    runs: Run | Sequence[Run],
    ids: Sequence[str] | int = 3,
    *,
    of: str = "",
    names: Sequence[str] | None = None,
    images: str | Path | None = None,
    errors: bool = True,
    width: float | None = None,
    title: str | None = None,
    read: Reader | None = None,
) -> Figure:
    """Draw images with their truth, the prediction of each model and its errors.

    Wrong pixels have the colour of the predicted class; of a single class, and of the
    foreground of binary masks, true positives, false negatives and false positives have
    three colours. Ignored pixels are striped. Of a volume the plane with the most wrong voxels
    is drawn.

    Parameters
    ----------
    runs : Run or sequence of Run
        Scored from files, with the same classes.
    ids : sequence of str, or int
        Images, one per row; or how many of those with the most wrong pixels in all runs (of
        one run, with the lowest mean IoU).
    of : str
        A class, or a confusion ``"TRUTH:PRED"``, whose errors choose the images and are drawn.
    names : sequence of str, optional
        Names of the models; by default those of the runs.
    images : str or path, optional
        Folder of the photos, see :func:`segiou.report.match_images`, or of the scans of volumes
        (``ID.nii.gz``, or ``ID_0000.nii.gz`` of nnU-Net). They are the first column, and grey
        below the errors.
    errors : bool
        Whether to draw the errors of each model.
    width : float, optional
        Width in inches; by default that of a column of a paper (3.3) for up to four pictures
        per row, otherwise that of a page (7).
    title : str, optional
        Title of the figure.
    read : callable, optional
        Reads the file of a path, for masks that are not local.

    Returns
    -------
    Figure
        The current figure of pyplot, with one axes per picture, row by row.

    Raises
    ------
    ValueError
        If an image or class is unknown, the runs have different classes, or masks cannot be
        drawn, because they were scored from arrays or their files are gone.
    """
    check_flag("errors", errors)
    several = [runs] if isinstance(runs, Run) else _items("runs", runs, Run)
    models = _models(several, names)
    check_kind("of", of, str, "the name of a class, or TRUTH:PRED")
    if width is not None:
        check_number("width", width, 1, 100)
    colors = ErrorColors.of(several[0], of)
    if isinstance(ids, (int, Integral)):  # also of NumPy
        chosen = worst_ids(several, check_integer("ids", ids, 1), of)
    else:
        chosen = _items("ids", ids, str)
    photos = found_photos(images, chosen)
    rows = [_row(masks_of(several, id, read, _PIXELS), colors, photos, id, errors) for id in chosen]
    titles = [*(["image"] if photos else []), "truth", *models]
    if errors:
        titles += ["errors"] if len(models) == 1 else [f"errors of {name}" for name in models]
    return _drawn(rows, titles, _legend(rows, colors, photos, errors), width, title)


def _items(name: str, items: Iterable[T], kind: type[T]) -> list[T]:
    """The items of an argument; TypeError for other ones, ValueError if there are none."""
    wanted = f"a sequence of {'ids' if kind is str else 'runs'}"
    several = read_several(name, items, wanted)
    for item in several:
        check_kind(name, item, kind, wanted)
    if not several:
        msg = f"{name} is empty; expected {wanted}"
        raise ValueError(msg)
    return several


def _models(runs: Sequence[Run], names: Sequence[str] | None) -> list[str]:
    """The titles of the predictions; ValueError if the runs have different classes."""
    if any(run.class_names != runs[0].class_names for run in runs):
        msg = "the models have different classes; score them with the same label set"
        raise ValueError(msg)
    return ["prediction"] if len(runs) == 1 and names is None else [*names_of(runs, names)]


def _row(
    masks: Masks, colors: ErrorColors, photos: Mapping[str, Path], id: str, errors: bool
) -> _Row:
    """The pictures of an image."""
    truth, *preds = masks.arrays
    photo = photo_of(photos[id], masks) if id in photos else None
    pictures: list[Picture | None] = [colors.classes_in(mask) for mask in masks.arrays]
    if photos:
        pictures.insert(0, None if photo is None else np.asarray(photo))
    if errors:
        pictures += [colors.errors(truth, pred, photo) for pred in preds]
    height, width = masks.full[-2] * masks.spacing[-2], masks.full[-1] * masks.spacing[-1]
    return _Row(pictures, height / width, {int(i) for m in masks.arrays for i in np.unique(m)})


def _legend(
    rows: Sequence[_Row], colors: ErrorColors, photos: Mapping[str, Path], errors: bool
) -> list[Any]:
    """Patches of the classes that occur, and of the errors."""
    patch = require("matplotlib.patches").Patch
    every = colors.legend(set.union(*(row.occurring for row in rows)))
    classes = len(every) if errors else sum(color in colors.classes for _, color in every)
    if errors and photos:  # in place of correct pixels
        classes -= 1
    patches = []
    for name, color in every[:classes]:
        look: dict[str, Any] = {"edgecolor": "#8a8880", "linewidth": 0.4}
        if name == IGNORED:
            look = {"edgecolor": np.array(STRIPE) / 255, "linewidth": 0, "hatch": "//////"}
        patches.append(patch(facecolor=np.array(color) / 255, label=name, **look))
    return patches


def _drawn(
    rows: Sequence[_Row],
    titles: Sequence[str],
    patches: Sequence[Any],
    width: float | None,
    title: str | None,
) -> Figure:
    """Place pictures, titles and legend in inches, because layout engines leave gaps."""
    width = width or (COLUMN if len(titles) <= _FEW else PAGE)
    each = (width - _GAP * (len(titles) - 1)) / len(titles)
    names = short_names([patch.get_label() for patch in patches])
    for patch, name in zip(patches, names, strict=True):
        patch.set_label(name)
    legend_columns = _columns(names, width)
    above = _LINE * (1 if title is None else 2.2)
    below = _LINE * -(-len(names) // legend_columns) + 2 * _GAP
    heights = [each * row.aspect for row in rows]
    total = above + sum(heights) + _GAP * (len(rows) - 1) + below
    with new_figure((width, total), layout="none") as figure:
        top = total - above
        for row, height in zip(rows, heights, strict=True):
            for column, picture in enumerate(row.pictures):
                left = column * (each + _GAP)
                place = left / width, (top - height) / total, each / width, height / total
                _show(figure.add_axes(place), picture)
            top -= height + _GAP
        size = min(_SIZE, max(_LEAST, _SIZE * each / _CHARACTER / max(map(len, titles))))
        shown = short_names(titles, max(5, int(each / _CHARACTER * _SIZE / size)))
        for axes, text in zip(figure.axes, shown, strict=False):
            axes.set_title(text, fontsize=size, pad=3, parse_math=False)
        look: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 0)}
        look |= {"handlelength": 1.2, "handletextpad": 0.4, "columnspacing": 1.0, "borderpad": 0.2}
        legend = figure.legend(handles=patches, ncols=legend_columns, **look)
        for label in legend.get_texts():
            label.set_parse_math(False)
        if title is not None:
            figure.suptitle(title, y=1 - _GAP / total, va="top", parse_math=False)
    return figure


def _show(axes: Any, picture: Picture | None) -> None:
    """A picture in its axes, or the note that it is missing."""
    axes.set_axis_off()
    if picture is None:
        axes.text(0.5, 0.5, "no photo", ha="center", va="center", fontsize=_SIZE)
    else:
        axes.imshow(picture, aspect="auto")


def _columns(names: Sequence[str], inches: float) -> int:
    """The most columns in which a legend of names fits."""
    lengths = [len(name) + _PATCH for name in names]
    for number in range(len(names), 1, -1):
        widths = [int(max(column)) for column in np.array_split(lengths, number)]
        if sum(widths) * _CHARACTER <= inches:
            return -(-len(names) // -(-len(names) // number))  # with equal rows
    return 1
