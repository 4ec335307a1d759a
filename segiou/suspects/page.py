"""The page of suspects: a card with pictures and answers for each entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.text import listed
from segiou.document.parts import Line, Table
from segiou.labels.label_set import hex_color
from segiou.report.pages.page import Color, class_colors, feature_page
from segiou.report.pages.parts import Section
from segiou.report.pages.photos import match_images
from segiou.report.pages.picture_masks import MaskReader, Masks, PictureError, Reader, read_indices
from segiou.report.pages.pictures import data_uri, read_image
from segiou.runs.run import Run
from segiou.suspects.ranking import find_suspects
from segiou.suspects.result import VERDICTS, Region, Suspects, about_errors, notes, title

#: Width at which masks are read, and the longer side of a picture.
_WIDTH, _SIDE = 2048, 260
#: Room around a region as a share of its box, and at least so many pixels.
_ROOM, _LEAST = 0.4, 12
_INNER, _OUTER = (255, 255, 255), (0, 0, 0)
_STYLE = "segiou.suspects:page.css"
#: Largest share of an image that regions of the second list cover.
SMALL = 0.003
#: Number of entries on the page of a report.
_OF_REPORT = 20


class Card(NamedTuple):
    """An entry with its pictures by name and colours of its classes; a problem without pictures."""

    region: Region
    colors: tuple[str, str]
    pictures: Mapping[str, str]
    problem: str = ""


def suspects_html(
    result: Suspects,
    run: Run,
    *,
    small: Suspects | None = None,
    images: str | Path | None = None,
) -> str:
    """The page: entries with crops of photo, truth and prediction, and their review.

    `small` is a second list, of regions (or confusions of images) up to `SMALL` of an image.
    """
    listed_before = {region.key for region in result.entries}
    others = [] if small is None else [r for r in small.entries if r.key not in listed_before]
    others = [region._replace(rank=i) for i, region in enumerate(others, 1)]
    cards = _cards([*result.entries, *others], run, images)
    parts = [*result._parts()]
    context = {
        "result": result,
        "heading": title(result),
        "cards": cards[: len(cards) - len(others)],
        "small": cards[len(cards) - len(others) :],
        "small_extent": SMALL,
        "verdicts": VERDICTS,
        "known": about_errors(result),
        "notes": [note for note in notes(result) if note != about_errors(result)],
        "lines": [part.text for part in parts if isinstance(part, Line) and part.text][1:],
        "list": next((part for part in parts if isinstance(part, Table)), None),
        "pictures": listed([*cards[0].pictures]) if cards else "",
    }
    rows = [[*card.region.key, card.region.verdict] for card in cards]
    more = ([_STYLE], ["segiou.suspects:page.js"])
    page = "segiou.suspects:page.html", context, run.class_names, result.unit, more
    return feature_page(*page, review=rows)


def report_section(run: Run, *, images: str | Path | None, read: Reader | None) -> Section:
    """The first entries of a run, on the page of its report."""
    result = find_suspects(run, first=_OF_REPORT)
    cards = _cards(result.entries, run, images, read)
    context = {"result": result, "cards": cards, "known": about_errors(result)}
    return Section("segiou.suspects:section.html", context, (_STYLE,))


def _cards(
    entries: Iterable[Region], run: Run, images: str | Path | None, read: Reader | None = None
) -> list[Card]:
    """The entries with pictures; the masks of images that follow each other are read once."""
    photos = {} if images is None else match_images(images, run.ids).files
    reader, numbers = MaskReader.of(run, read), {id: i for i, id in enumerate(run.ids)}
    colors, known = class_colors(run.labels), dict[str, Masks | str]()
    cards = []
    for region in entries:
        if region.image not in known:
            known.clear()
            known[region.image] = _masks(run, numbers[region.image], reader)
        masks = known[region.image]
        label, suggestion = (
            hex_color(colors[run.class_names.index(name)])
            for name in (region.label, region.suggestion)
        )
        if isinstance(masks, str):
            cards.append(Card(region, (label, suggestion), {}, masks))
        else:
            pictures = _crops(masks, region, run, colors, photos)
            cards.append(Card(region, (label, suggestion), pictures))
    return cards


def _masks(run: Run, at: int, reader: MaskReader) -> Masks | str:
    """The masks of an image, or why they cannot be shown."""
    image = run.images[at]
    try:
        return read_indices(image.truth, [image.pred], [reader], _WIDTH)
    except (OSError, ValueError) as error:
        return str(error)


def _crops(
    masks: Masks, region: Region, run: Run, colors: Sequence[Color], photos: Mapping[str, Path]
) -> dict[str, str]:
    """Photo, truth and prediction around a region, which is outlined."""
    truth, pred = masks.arrays
    pair = [run.class_names.index(name) for name in (region.label, region.suggestion)]
    where = (truth == pair[0]) & (pred == pair[1])
    if truth.ndim == 3:  # the plane with most of it; axes of pictures may differ from the file's
        plane = int(where.sum((1, 2)).argmax())
        truth, pred, where = truth[plane], pred[plane], where[plane]
        box = _box_of(where)
    else:
        box = _scaled(region, masks.full, where.shape) or _box_of(where)
    inside = np.zeros_like(where)
    inside[box] = where[box]
    view = _widened(box, where.shape)
    outline = _Outline.of(inside[view])
    palette = np.array(colors, np.uint8)
    pictures = {
        "truth": outline.drawn(palette[truth[view]]),
        "prediction": outline.drawn(palette[pred[view]]),
    }
    if (path := photos.get(region.image)) is not None:
        try:
            photo = np.asarray(read_image(path, truth.shape[::-1]))
        except PictureError:
            return pictures
        pictures = {"photo": outline.drawn(photo[view]), **pictures}
    return pictures


_Box = tuple[slice, slice]


def _scaled(region: Region, full: Sequence[int], shape: Sequence[int]) -> _Box | None:
    """The box of a region in a picture of another size; None without one."""
    if len(region.box) != 2:
        return None
    rows, columns = (
        slice(begin * size // whole, -(-end * size // whole))
        for (begin, end), whole, size in zip(region.box, full, shape, strict=True)
    )
    return rows, columns


def _box_of(where: NDArray[np.bool_]) -> _Box:
    """The smallest box with all pixels; everything if there are none."""
    if not where.any():
        return slice(0, where.shape[0]), slice(0, where.shape[1])
    rows, columns = (np.flatnonzero(where.any(axis)) for axis in (1, 0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _widened(box: _Box, shape: Sequence[int]) -> _Box:
    """A box with room around it."""
    rows, columns = (
        slice(max(0, side.start - room), min(size, side.stop + room))
        for side, size in zip(box, shape, strict=True)
        for room in [max(_LEAST, round(_ROOM * (side.stop - side.start)))]
    )
    return rows, columns


class _Outline(NamedTuple):
    """The outline of a region at the size of its pictures."""

    size: tuple[int, int]
    inner: NDArray[np.bool_]
    outer: NDArray[np.bool_]

    @classmethod
    def of(cls, inside: NDArray[np.bool_]) -> _Outline:
        """White along the inside of the region, black along its outside."""
        from scipy import ndimage  # type: ignore[import-untyped]

        scale = _SIDE / max(inside.shape)
        scale = max(1, round(scale)) if scale > 1 else scale
        size = (max(1, round(inside.shape[1] * scale)), max(1, round(inside.shape[0] * scale)))
        large = np.asarray(Image.fromarray(inside).resize(size, Image.Resampling.NEAREST))
        width = 2 if scale > 1 else 1  # pages show pictures smaller
        return cls(
            size,
            large & ~ndimage.binary_erosion(large, iterations=width, border_value=1),
            ndimage.binary_dilation(large, iterations=width) & ~large,
        )

    def drawn(self, colors: NDArray[np.uint8]) -> str:
        """A picture with the outline as a data URI."""
        picture = Image.fromarray(colors).resize(self.size, Image.Resampling.NEAREST)
        pixels = np.array(picture)
        pixels[self.inner], pixels[self.outer] = _INNER, _OUTER
        return data_uri(Image.fromarray(pixels), "png")
