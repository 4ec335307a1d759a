"""The images that a page lists, for one or two runs: scores, confusions, pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.output_folder import OutputFolder
from segiou._support.text import plain
from segiou.labels.label_set import hex_color
from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import Floats
from segiou.report.pages.page import Color, json_in_html
from segiou.report.pages.photos import ImageMatch, match_images
from segiou.report.pages.picture_masks import PictureError, Reader, read_indices, reader_of
from segiou.report.pages.pictures import encoded_within, score_maps
from segiou.runs.image_counts import Columns, unpack_parts

if TYPE_CHECKING:
    from segiou.measures.plan import Plan
    from segiou.runs.run import Run

Ints = NDArray[np.int64]

#: Default number of images with pictures in a page of one file.
EXAMPLES = 100
#: Maximum numbers of listed images, and of cells of their confusion matrices in a page.
LISTED = 10_000
_CELLS = 600_000
#: Characters of all pictures in a page of one file, and of those of one 2-D image.
_ALL_PICTURES = 4_800_000
_ONE_IMAGE = 48_000
#: Longer side in pixels of pictures in the page and in separate files, if they have room.
_WIDTH_WITHIN, _WIDTH_BESIDE = 1024, 2048
_AT_ONCE = 64


class ImageScores(NamedTuple):
    """A score of each image, one array per run."""

    title: str
    unit: str
    values: tuple[Floats, ...]

    @property
    def differences(self) -> Floats:
        """Second minus first; undefined if both are infinite."""
        first, second = self.values
        with np.errstate(invalid="ignore"):
            return np.asarray(second - first)

    @classmethod
    def of_iou(cls, runs: tuple[Run, ...]) -> ImageScores:
        """Mean IoU over the classes in the truth of each image."""
        of_runs = (image_means(run.counts, include=run.include) for run in runs)
        return cls("mean IoU", "", tuple(of_runs))


@dataclass(frozen=True, slots=True, eq=False)
class ImageTable:
    """The images that a page lists, of one run or of two runs of the same images."""

    runs: tuple[Run, ...]
    #: Whose predictions they are.
    models: tuple[str, ...]
    scores: ImageScores
    columns: tuple[Columns, ...]
    #: Number of images that are not listed.
    left: int = 0
    #: Found, false-positive and missed objects in each image, for each run.
    objects: list[list[list[int]]] | None = None
    #: The photos shown under the masks.
    match: ImageMatch | None = None
    #: Gives the content of a mask file.
    read: Reader | None = None
    #: The folder of the page, if pictures are files next to it.
    folder: OutputFolder | None = None
    #: Other scores of an image, as text.
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """Their names."""
        return self.columns[0].ids

    @property
    def kept(self) -> int:
        """Maximum number of confusions per image in a page."""
        return max(1, _CELLS // max(1, len(self.ids) * len(self.runs)))

    @property
    def cut(self) -> bool:
        """Whether an image has more confusions than that."""
        return any(int(c.sizes.max(initial=0)) > self.kept for c in self.columns)

    def payload(self, colors: Sequence[Color], examples: Sequence[int]) -> dict[str, Any]:
        """Data for the script; with pictures of ``examples``, or all in files next to the page."""
        within: dict[str, Any] = {}
        if self.folder is None:
            room = _ALL_PICTURES // max(1, len(examples))
            pictures = self._pictures(colors, examples, room, _WIDTH_WITHIN)
            within = {str(i): picture for i, picture in zip(examples, pictures, strict=True)}
        else:
            # A script for each image: a page from disk may run scripts, and read no other file.
            every = self._pictures(colors, range(len(self.ids)), None, _WIDTH_BESIDE)
            for i, picture in enumerate(every):
                # The id as the page has it.
                found = ", ".join(map(json_in_html, (i, self.ids[i], picture)))
                self.folder.write(f"pictures/{i}.js", f"segiouPicture({found});\n")
        drawer = drawer_of(self.runs[0])
        return {
            "models": list(self.models),
            "colors": [hex_color(color) for color in colors],
            "ids": list(self.ids),
            "score": {"title": self.scores.title, "unit": self.scores.unit},
            "scores": plain(self.scores.values),
            "cells": [_packed(columns, self.kept) for columns in self.columns],
            "objects": self.objects,
            "curves": next((p.key for p in self.runs[0].plans if p.reads_predictions), ""),
            "things": [] if drawer is None else [*drawer.object_classes()],
            "pictures": within,
            "folder": "" if self.folder is None else "pictures",
        }

    def _pictures(
        self, colors: Sequence[Color], indices: Sequence[int], room: int | None, width: int
    ) -> Iterator[dict[str, Any]]:
        objects = [] if self.objects is None else map(drawer_of, self.runs)
        drawers = [drawer for drawer in objects if drawer]
        readers = [reader_of(run, self.read) for run in self.runs]

        def picture(index: int) -> dict[str, Any]:
            files = [columns.files[index] for columns in self.columns]
            preds = [file.pred for file in files]
            image = None if self.match is None else self.match.files.get(self.ids[index])
            try:
                masks = read_indices(files[0].truth, preds, readers, width, drawers)
            except PictureError as error:
                return {"problem": f"No pictures: {error}"}
            is_image = len(masks.full) == 2
            most = min(room, _ONE_IMAGE) if room is not None and is_image else room
            pictured: dict[str, Any] = plain(encoded_within(masks, colors, image, most))
            pictured |= score_maps(masks, pictured, room)
            pictured["text"] = self.texts.get(self.ids[index], "")
            if self.match is not None and image is None and is_image:
                pictured["problem"] = self.match.no_photo
            return pictured

        with ThreadPoolExecutor() as pool:
            for start in range(0, len(indices), _AT_ONCE):
                yield from pool.map(picture, indices[start : start + _AT_ONCE])


def image_table(
    runs: tuple[Run, ...],
    models: tuple[str, ...],
    scores: ImageScores,
    texts: Mapping[str, str],
    *,
    images: str | Path | None,
    read: Reader | None,
    folder: str | Path | OutputFolder | None,
) -> ImageTable:
    """The images of a run or two; only the worst or most different of very many."""
    order = np.argsort(_interest(scores), kind="stable")
    listed = np.sort(order[:LISTED])
    columns = tuple(_columns_of(run, listed) for run in runs)
    taken = scores._replace(values=tuple(of_run[listed] for of_run in scores.values))
    left = len(order) - len(listed)
    return ImageTable(
        runs,
        models,
        taken,
        columns,
        left=left,
        objects=_objects(runs, columns),
        match=None if images is None else match_images(images, runs[0].ids),
        read=read,
        folder=folder if isinstance(folder, OutputFolder | None) else OutputFolder(folder),
        texts=texts,
    )


def _interest(scores: ImageScores) -> Floats:
    """The order of images: by score, or by how far the scores of two models differ."""
    return -np.abs(scores.differences) if len(scores.values) == 2 else scores.values[0]


def _objects(runs: tuple[Run, ...], columns: tuple[Columns, ...]) -> list[list[list[int]]] | None:
    """Objects of each image if all runs have the same options; stuff has none."""
    plans = [*map(drawer_of, runs)]
    first = plans[0]
    if first is None or any(p is None or p.measure != first.measure for p in plans):
        return None
    both = zip(columns, runs, strict=True)
    parts = (unpack_parts(c.measured, r._header, first.key) for c, r in both)
    return [first.object_outcomes(of_run).tolist() for of_run in parts]


def drawer_of(run: Run) -> Plan | None:
    """The plan whose objects are drawn, if there is one."""
    return next((plan for plan in run.plans if plan.draws_objects), None)


def _columns_of(run: Run, indices: Ints) -> Columns:
    """Some images by index; the others are not kept, since a run may be larger than memory."""
    parts, start = [], 0
    for block in run._images.blocks(measured=drawer_of(run) is not None):
        inside = indices[(indices >= start) & (indices < start + len(block))]
        parts.append(block.take((inside - start).tolist()))
        start += len(block)
    return Columns.joined(parts)


def _packed(columns: Columns, most: int) -> dict[str, list[int]]:
    """The ``most`` largest cells of each image: their number, steps between indices, pixels."""
    owner = np.repeat(np.arange(len(columns)), columns.sizes)
    order = np.lexsort((columns.cells, -columns.values, owner))
    starts = np.cumsum(columns.sizes) - columns.sizes
    kept = np.sort(order[np.arange(len(order)) - starts[owner] < most])
    places, owner = columns.cells[kept], owner[kept]
    first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    steps = np.where(first, places, np.diff(places, prepend=0))
    return {
        "sizes": np.bincount(owner, minlength=len(columns)).tolist(),
        "steps": steps.tolist(),
        "pixels": columns.values[kept].tolist(),
    }


def choose(table: ImageTable, number: int, first: Sequence[str], seed: int) -> list[int]:
    """Choose images whose pictures are in the page."""
    place = {id: i for i, id in enumerate(table.ids)}
    chosen = [place[id] for id in first if id in place][: number // 2]
    key = _interest(table.scores)
    order = [i for i in np.argsort(key, kind="stable").tolist() if not np.isnan(key[i])]
    if len(table.runs) == 1:
        drawn = np.random.default_rng(seed).permutation(order).tolist()
        turns = zip(order, order, order[::-1], drawn, strict=True)
        order = [i for turn in turns for i in turn]
    # Images without a score come last: of a volume whose truth is empty, all is a false positive.
    order += np.flatnonzero(np.isnan(key)).tolist()
    return sorted(list(dict.fromkeys([*chosen, *order]))[:number])
