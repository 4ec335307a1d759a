"""The page of suspects: a card with pictures and answers for each entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.text import listed
from segiou.document.parts import Table
from segiou.labels.label_set import hex_color
from segiou.report.pages.page import Color, class_colors, feature_page
from segiou.report.pages.parts import Section
from segiou.report.pages.photos import ImageMatch, match_photos
from segiou.report.pages.picture_masks import (
    Masks,
    PictureError,
    Reader,
    plane_of,
    read_indices,
    reader_of,
)
from segiou.report.pages.pictures import data_uri, photo_of
from segiou.runs.run import Run
from segiou.scoring.pair import PairScorer
from segiou.suspects.ranking import find_suspects
from segiou.suspects.result import VERDICTS, Region, Suspects, about_errors, notes, nothing, title

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
    """An entry with its pictures by name, colours of its classes, and why pictures are missing."""

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
    context = {
        "result": result,
        "heading": title(result),
        "cards": cards[: len(cards) - len(others)],
        "small": cards[len(cards) - len(others) :],
        "small_extent": SMALL,
        "verdicts": VERDICTS,
        "known": about_errors(result),
        "notes": [note for note in notes(result) if note != about_errors(result)],
        "lines": [] if result.regions else [nothing(result)],
        "list": next((part for part in result._parts() if isinstance(part, Table)), None),
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
    photos = None if images is None else match_photos(images, run.ids)
    reader, numbers = reader_of(run, read), {id: i for i, id in enumerate(run.ids)}
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
            cards.append(Card(region, (label, suggestion), {}, f"No pictures: {masks}"))
        else:
            pictures, problem = _crops(masks, region, run, colors, photos)
            cards.append(Card(region, (label, suggestion), pictures, problem))
    return cards


def _masks(run: Run, at: int, reader: PairScorer) -> Masks | str:
    """The masks of an image, or why they cannot be shown."""
    image = run.images[at]
    try:
        return read_indices(image.truth, [image.pred], [reader], _WIDTH)
    except (OSError, ValueError) as error:
        return str(error)


def _crops(
    masks: Masks,
    region: Region,
    run: Run,
    colors: Sequence[Color],
    photos: ImageMatch | None,
) -> tuple[dict[str, str], str]:
    """Photo, truth and prediction around a region, which is outlined; why there is no photo."""
    masks, inside, box = _in_plane(masks, region, run)
    truth, pred = masks.arrays
    view = _widened(box, inside.shape)
    outline = _Outline.of(inside[view])
    palette = np.array(colors, np.uint8)
    pictures = {
        "truth": outline.drawn(palette[truth[view]]),
        "prediction": outline.drawn(palette[pred[view]]),
    }
    if photos is None:
        return pictures, ""
    if region.image not in photos.files:
        return pictures, photos.no_photo
    try:
        photo = np.asarray(photo_of(photos.files[region.image], masks))
    except PictureError as error:
        return pictures, f"No photo: {error}"
    return {"photo": outline.drawn(photo[view]), **pictures}, ""


_Box = tuple[slice, ...]


def _in_plane(masks: Masks, region: Region, run: Run) -> tuple[Masks, NDArray[np.bool_], _Box]:
    """The masks, the pixels of a region and its box; of a volume, the plane with most of it."""
    label, suggestion = (run.class_names.index(name) for name in (region.label, region.suggestion))
    where = (masks.arrays[0] == label) & (masks.arrays[1] == suggestion)
    box = _scaled(region, masks, where.shape) or _box_of(where)
    inside = np.zeros_like(where)
    # Reduced masks have lost pixels that connect others.
    is_whole = region.box and where.shape == tuple(masks.full)
    inside[box] = _component(where[box], region.pixels) if is_whole else where[box]
    if where.ndim == 2:
        return masks, inside, box
    sizes = inside.sum((1, 2))
    # Reduced masks may have lost a small region.
    plane = int(sizes.argmax()) if sizes.any() else (box[0].start + box[0].stop) // 2
    box = _box_of(inside[plane]) if sizes.any() else box[1:]
    return plane_of(masks, plane), inside[plane], box


def _component(where: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """The connected pixels whose number is closest to that of a region; its box has others."""
    from scipy import ndimage  # type: ignore[import-untyped]

    components, number = ndimage.label(where, np.ones((3,) * where.ndim))
    if number < 2:
        return where
    sizes = np.bincount(components.ravel())[1:]
    return np.asarray(components == 1 + np.abs(sizes - pixels).argmin())


def _scaled(region: Region, masks: Masks, shape: Sequence[int]) -> _Box | None:
    """The box of a region in pictures, whose size and axes may differ; None without one."""
    if len(region.box) != len(shape):
        return None
    box = []
    for axis, whole, size in zip(masks.axes, masks.full, shape, strict=False):
        begin, end = region.box[axis if axis >= 0 else ~axis]
        if axis < 0:
            begin, end = whole - end, whole - begin
        box.append(slice(begin * size // whole, -(-end * size // whole)))
    return tuple(box)


def _box_of(where: NDArray[np.bool_]) -> _Box:
    """The smallest box with all pixels; everything if there are none."""
    if not where.any():
        return tuple(slice(0, size) for size in where.shape)
    return tuple(slice(int(at.min()), int(at.max()) + 1) for at in where.nonzero())


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
        from scipy import ndimage

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
